"""A database of this test's own."""

from pathlib import Path

import pytest

from bothost.config import StoreSettings
from bothost.store import schema


@pytest.fixture
def settings(tmp_path: Path) -> StoreSettings:
    """Settings of a migrated SQLite database."""
    made = StoreSettings(url=f"sqlite:///{tmp_path}/bothost.db")
    schema.upgrade(made)
    return made
