"""The JSONL format: one JSON object per line. Bytes are base64, times ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import BinaryIO

import msgspec
import pyarrow as pa

from bothost.export.base import Exporter, Metadata

_JSON_COLUMNS = ("rules", "stats", "view_json")


class JsonLinesExporter(Exporter):
    """``rules``, ``stats`` and ``view_json`` become objects. The manifest is only in ``meta/info.json``."""

    name = "jsonl"
    suffix = ".jsonl"

    def write(
        self, file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table], metadata: Callable[[], Metadata]
    ) -> None:
        nested = [name for name in _JSON_COLUMNS if name in schema.names]
        encode = msgspec.json.Encoder().encode
        for table in tables:
            for batch in table.to_batches(max_chunksize=100):
                for row in batch.to_pylist():
                    for name in nested:
                        if row[name] is not None:
                            row[name] = msgspec.Raw(row[name].encode())
                    file.write(encode(row) + b"\n")
