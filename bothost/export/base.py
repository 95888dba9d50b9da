"""The base class of export formats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import BinaryIO, ClassVar

import pyarrow as pa

Metadata = Mapping[str, str]


class Exporter(ABC):
    """Base class of formats; register the class with the hook ``bothost_exporters``."""

    name: ClassVar[str]
    """Name in ``bothost export --format``: lower-case words joined by hyphens."""
    suffix: ClassVar[str]
    """Suffix of its files, with the dot."""

    @abstractmethod
    def write(
        self, file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table], metadata: Callable[[], Metadata]
    ) -> None:
        """Write one shard.

        ``tables`` is a stream of tables with at most some ten thousand rows each; do not keep them. ``metadata``
        returns the shard's manifest once the stream is exhausted. Equal tables must give equal bytes, so that exports
        can resume.
        """
