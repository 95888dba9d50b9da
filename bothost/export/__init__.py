"""Logged decisions as files: one row per decision, units are closed games.

The formats that come with bothost are registered here, through the same hook as everybody's.
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
