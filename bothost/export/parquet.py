"""Parquet, compressed with zstd: the format for training and analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from bothost.export.base import Exporter, Metadata


class ParquetExporter(Exporter):
    """One row group per table; the manifest is in the footer's key-value metadata under ``bothost.*``."""

    name = "parquet"
    suffix = ".parquet"

    def write(
        self, file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table], metadata: Callable[[], Metadata]
    ) -> None:
        # Without the Arrow schema in the file, dictionary columns are read back as the plain text that they stand for.
        with pq.ParquetWriter(file, schema, compression="zstd", store_schema=False) as writer:
            for table in tables:
                writer.write_table(table, row_group_size=max(1, table.num_rows))
            writer.add_key_value_metadata(dict(metadata()))
