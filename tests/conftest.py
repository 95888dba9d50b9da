from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from bothost import rules
from bothost.config import StoreSettings
from bothost.store import schema
from bothost.testing.postgres import new_database, temporary_postgres

_numbers = count()

# How long an example takes says how busy the machine is: that is what benchmarks are for.
settings.register_profile("bothost", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("bothost")


@pytest.fixture(autouse=True)
def _games_of_a_test_end_with_it(monkeypatch):
    """Games that plugins bring are registered for the whole process: no test may see those of another."""
    monkeypatch.setattr(rules, "_factories", dict(rules._factories))


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server."""
    with temporary_postgres() as url:
        yield url


@pytest.fixture(scope="session")
def migrated(postgres_url: str) -> str:
    """The name of a migrated PostgreSQL database that stays empty: a copy of it is made faster."""
    schema.upgrade(StoreSettings(url=new_database(postgres_url, "migrated")))
    return "migrated"


@pytest.fixture
def settings(tmp_path: Path) -> StoreSettings:
    """Settings of a migrated SQLite database."""
    made = StoreSettings(url=f"sqlite:///{tmp_path}/bothost.db")
    schema.upgrade(made)
    return made


@pytest.fixture
def postgres_settings(postgres_url: str, migrated: str) -> StoreSettings:
    """Settings of a migrated PostgreSQL database."""
    return StoreSettings(url=new_database(postgres_url, f"test{next(_numbers)}", template=migrated))


@pytest.fixture(params=["sqlite", "postgresql"])
def any_settings(request: pytest.FixtureRequest) -> StoreSettings:
    """Settings of a migrated database, of each kind in turn."""
    return request.getfixturevalue("settings" if request.param == "sqlite" else "postgres_settings")
