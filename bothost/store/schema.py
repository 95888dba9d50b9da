"""Check and upgrade the database schema. Alembic is configured in code, without alembic.ini.

Importing this module is cheap: only :func:`upgrade` and :func:`differences` import Alembic.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

import bothost
from bothost.config import StoreSettings
from bothost.errors import SchemaOutdated, StoreError
from bothost.store import partitions
from bothost.store.engine import make_engine, reaching, shown
from bothost.store.models import metadata

if TYPE_CHECKING:
    from alembic.config import Config

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011")
"""All schema revisions, oldest first. This bothost uses the last one."""
LOCK = partitions.LOCK + 1
"""Number of the advisory lock of an upgrade: several containers may start with one."""


def migrations_folder() -> Path:
    """Return the folder of the migrations: inside the installed package, or beside it in a checkout."""
    package = Path(bothost.__file__).resolve().parent
    for folder in (package / "migrations", package.parent / "migrations"):
        if (folder / "env.py").is_file() and (folder / "versions").is_dir():
            return folder
    raise StoreError(f"the migrations are missing beside {package}", advice="install bothost again")


def revision_of(connection: sa.Connection) -> str | None:
    """Return the schema revision of a database; None if it has no schema."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return version


def check(revision: str | None, where: str) -> None:
    """Raise SchemaOutdated unless ``revision`` is the one that this bothost uses."""
    if revision == REVISIONS[-1]:
        return
    if revision is None or revision in REVISIONS:
        has = "no schema yet" if revision is None else f"schema {revision}"
        advice = "bring it up to date with: bothost db upgrade"
        raise SchemaOutdated(f"database {where} has {has}, and this bothost needs {REVISIONS[-1]}", advice=advice)
    raise SchemaOutdated(
        f"database {where} has schema {revision}, which is newer than this bothost knows ({REVISIONS[-1]})",
        advice="install the newer bothost on this machine too; `bothost db upgrade` never goes back",
    )


def check_database(settings: StoreSettings) -> None:
    """Raise SchemaOutdated or StoreUnavailable unless the database is ready for use."""
    engine = make_engine(settings)
    try:
        with reaching(settings), engine.connect() as connection:
            revision = revision_of(connection)
    finally:
        engine.dispose()
    check(revision, shown(settings.url))


def upgrade(settings: StoreSettings, to: str = "head") -> tuple[str | None, str]:
    """Upgrade the database in one transaction, creating it if needed. Returns the revisions before and after.

    Raises SchemaOutdated if the database is newer than this bothost.
    """
    from alembic import command

    engine = make_engine(settings, create=True)
    try:
        with reaching(settings), engine.begin() as connection:
            if connection.dialect.name == "postgresql":  # SQLite lets one process write at a time anyway
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
            before = revision_of(connection)
            if before is not None and before not in REVISIONS:
                check(before, shown(settings.url))
            command.upgrade(_config(connection), to)
            if to == "head" and connection.dialect.name == "postgresql":
                partitions.make_ahead(lambda statement: _rows(connection.exec_driver_sql(statement)))
            after = revision_of(connection)
    finally:
        engine.dispose()
    return before, str(after)


def differences(settings: StoreSettings) -> list[Any]:
    """Return Alembic's list of differences between the database and the models."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    engine = make_engine(settings)
    try:
        with engine.connect() as connection:
            parts = _partitions(connection)
            opts = {"compare_type": True, "include_name": lambda name, kind, parents: name not in parts}
            context = MigrationContext.configure(connection, opts=opts)
            return list(compare_metadata(context, metadata))
    finally:
        engine.dispose()


def _partitions(connection: sa.Connection) -> set[str]:
    """Names of tables that are partitions."""
    if connection.dialect.name != "postgresql":
        return set()
    return set(connection.exec_driver_sql("SELECT relname FROM pg_class WHERE relispartition").scalars())


def _rows(result: sa.CursorResult[Any]) -> Sequence[sa.Row[Any]]:
    return result.all() if result.returns_rows else ()


def _config(connection: sa.Connection) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    config.attributes["target_metadata"] = metadata
    return config
