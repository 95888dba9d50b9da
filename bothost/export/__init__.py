"""Export logged decisions to files: one row per decision of closed hands.

The included formats are registered here, through the same hook as those of plugins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bothost.hookspecs import hookimpl

if TYPE_CHECKING:
    from bothost.export.base import Exporter


@hookimpl
def bothost_exporters() -> list[type[Exporter]]:
    """Parquet and JSONL."""
    from bothost.export.jsonl import JsonLinesExporter
    from bothost.export.parquet import ParquetExporter

    return [ParquetExporter, JsonLinesExporter]
