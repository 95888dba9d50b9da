"""What an export format is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import BinaryIO, ClassVar

import pyarrow as pa

Metadata = Mapping[str, str]


class Exporter(ABC):
    """Base class of formats; register the class with the hook ``bothost_exporters``."""

    name: ClassVar[str]
    """What ``bothost export --format`` calls it: lower-case words joined by hyphens."""
    suffix: ClassVar[str]
    """Of its files, with the dot."""

    @abstractmethod
    def write(
        self, file: BinaryIO, schema: pa.Schema, tables: Iterable[pa.Table], metadata: Callable[[], Metadata]
    ) -> None:
        """Write one shard.

        ``tables`` is a stream of some ten thousand rows each; keep none of them. ``metadata`` returns the shard's
        manifest once the stream is exhausted. Equal tables must give equal bytes: a resumed export depends on it.
        """
