"""docs/reference/decision-log.md names every table and every column."""

import re
from pathlib import Path

from bothost.export.options import ExportOptions
from bothost.export.rows import schema_of
from bothost.store.models import metadata

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "decision-log.md"


def first_cells(section: str) -> set[str]:
    """The names in the first column of the tables under a heading."""
    text = DOCS.read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    return {
        name
        for line in text.splitlines()
        if line.startswith("| `")
        for name in re.findall("`(\\w+)`", line.split("|")[1])
    }


def test_tables():
    assert first_cells("Tables") == set(metadata.tables)


def test_columns():
    assert first_cells("Exports") == set(schema_of(ExportOptions(raw=True, rllib=True)).names)
