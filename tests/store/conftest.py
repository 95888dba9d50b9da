"""Databases of a test's own."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from bothost.config import StoreSettings
from bothost.store import schema
from bothost.testing.postgres import new_database, temporary_postgres

_numbers = count()


@pytest.fixture
def settings(tmp_path: Path) -> StoreSettings:
    """Settings of a migrated SQLite database."""
    made = StoreSettings(url=f"sqlite:///{tmp_path}/bothost.db")
    schema.upgrade(made)
    return made


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server."""
    with temporary_postgres() as url:
        yield url


@pytest.fixture
def postgres_settings(postgres_url: str) -> StoreSettings:
    """Settings of a migrated PostgreSQL database."""
    made = StoreSettings(url=new_database(postgres_url, f"test{next(_numbers)}"))
    schema.upgrade(made)
    return made


@pytest.fixture(params=["sqlite", "postgresql"])
def any_settings(request: pytest.FixtureRequest) -> StoreSettings:
    """Settings of a migrated database, of each kind in turn."""
    return request.getfixturevalue("settings" if request.param == "sqlite" else "postgres_settings")
