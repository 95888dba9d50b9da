"""The schema: models equal migrations, every released schema upgrades with its data, foreign schemas are refused."""

import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory

from bothost.config import StoreSettings
from bothost.errors import ConfigError, SchemaOutdated, StoreUnavailable
from bothost.native import _native
from bothost.store import DecisionLog, schema
from bothost.store.engine import make_engine, parse_url
from bothost.store.models import COLUMNS, TABLE_OF, metadata


def fill(engine: sa.Engine, rows: int) -> dict[str, int]:
    """Put rows into every table of whatever schema there is; return how many each got."""
    found = sa.MetaData()
    found.reflect(engine)
    counts = {}
    for table in found.sorted_tables:
        if table.name == "alembic_version":
            continue
        values = [{c.name: value_of(c, i) for c in table.columns} for i in range(rows)]
        with engine.begin() as connection:
            connection.execute(table.insert(), values)
        counts[table.name] = rows
    return counts


def value_of(column: sa.Column, i: int) -> object:
    kind = column.type.python_type
    return {bytes: i.to_bytes(16, "big"), str: f"text {i}", int: i, float: i / 2}[kind]


def test_models_equal_migrations(settings):
    assert schema.differences(settings) == []


def test_log_tables_have_the_fields_of_their_records():
    for record, table in TABLE_OF.items():
        assert COLUMNS[table.name] == record.__struct_fields__


def test_known_revisions_are_the_migrations_oldest_first():
    script = ScriptDirectory(str(schema.migrations_folder()))
    assert tuple(r.revision for r in script.walk_revisions())[::-1] == schema.REVISIONS


@pytest.mark.parametrize("revision", schema.REVISIONS)
def test_every_released_schema_upgrades_with_its_data(tmp_path: Path, revision: str):
    settings = StoreSettings(url=f"sqlite:///{tmp_path}/old.db")
    schema.upgrade(settings, revision)
    engine = make_engine(settings)
    counts = fill(engine, 25)
    assert schema.upgrade(settings) == (revision, schema.REVISIONS[-1])
    with engine.connect() as connection:
        for table, rows in counts.items():
            found = connection.execute(sa.select(sa.func.count()).select_from(metadata.tables[table])).scalar()
            assert found == rows
    engine.dispose()
    assert schema.differences(settings) == []


def test_missing_database_is_refused_and_not_made(tmp_path: Path):
    path = tmp_path / "none.db"
    with pytest.raises(StoreUnavailable) as caught:
        schema.check_database(StoreSettings(url=f"sqlite:///{path}"))
    assert "bothost db upgrade" in caught.value.advice
    assert not path.exists()


def test_no_database_is_made_beside_the_newest_rows_of_one_that_was_moved_away(tmp_path: Path):
    path, moved = tmp_path / "log.db", tmp_path / "moved.db"
    settings = StoreSettings(url=f"sqlite:///{path}")
    schema.upgrade(settings)
    with closing(sqlite3.connect(path)) as host:
        host.execute("CREATE TABLE newest (id INTEGER)")
        path.rename(moved)
        for use in (schema.upgrade, schema.check_database):
            with pytest.raises(StoreUnavailable, match="no database at") as caught:
                use(settings)
            assert "move it back" in caught.value.advice
    path.with_name("log.db-wal").rename(f"{moved}-wal")
    assert schema.upgrade(settings) == (None, schema.REVISIONS[-1])
    with closing(sqlite3.connect(moved)) as again:
        assert again.execute("SELECT count(*) FROM newest").fetchone() == (0,)


@pytest.mark.parametrize(("revision", "word"), [(None, "no schema"), ("0000", "newer"), ("9999", "newer")])
def test_foreign_schemas_are_refused_with_the_command_that_mends_them(tmp_path: Path, revision, word):
    path = tmp_path / "odd.db"
    with closing(sqlite3.connect(path)) as db:
        if revision is not None:
            db.execute("CREATE TABLE alembic_version (version_num TEXT)")
            db.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
            db.commit()
    settings = StoreSettings(url=f"sqlite:///{path}")
    for opening in (schema.check_database, lambda s: DecisionLog.open(s, "host", tmp_path / "spool")):
        with pytest.raises(SchemaOutdated) as caught:
            opening(settings)
        assert word in str(caught.value)
        assert "bothost db upgrade" in caught.value.advice
    if revision is not None:
        with pytest.raises(SchemaOutdated):
            schema.upgrade(settings)


def test_a_failed_upgrade_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The tables are made, then something fails: DDL must be rolled back with the rest."""
    folder = tmp_path / "migrations"
    (folder / "versions").mkdir(parents=True)
    real = schema.migrations_folder()
    (folder / "env.py").write_text((real / "env.py").read_text())
    for version in (real / "versions").glob("*.py"):
        (folder / "versions" / version.name).write_text(version.read_text() + "\n    raise RuntimeError('power cut')\n")
    monkeypatch.setattr(schema, "migrations_folder", lambda: folder)
    settings = StoreSettings(url=f"sqlite:///{tmp_path}/half.db")
    with pytest.raises(RuntimeError, match="power cut"):
        schema.upgrade(settings)
    engine = make_engine(settings)
    assert sa.inspect(engine).get_table_names() == []
    engine.dispose()


def test_two_upgrades_of_a_server_wait_for_each_other(postgres_settings):
    """As those of several containers that start at once; PostgreSQL itself would let the second fail."""
    engine = make_engine(postgres_settings)
    with ThreadPoolExecutor(1) as pool, engine.begin() as first:
        first.exec_driver_sql(f"SELECT pg_advisory_xact_lock({schema.LOCK})")
        second = pool.submit(schema.upgrade, postgres_settings)
        with pytest.raises(TimeoutError):
            second.result(timeout=0.3)
        first.rollback()
        assert second.result(timeout=30) == (schema.REVISIONS[-1], schema.REVISIONS[-1])
    engine.dispose()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://host/name", "nonsense", ""])
def test_bad_urls_are_configuration_errors(url: str):
    with pytest.raises(ConfigError) as caught:
        parse_url(url)
    assert caught.value.key == "store.url"
    assert caught.value.advice


def test_migrations_are_found_in_the_layout_of_a_wheel(tmp_path: Path):
    """A wheel has migrations/ inside the package; a checkout, and an editable install of it, beside the package."""
    site = tmp_path / "site-packages"
    package = Path(schema.__file__).parents[1]
    shutil.copytree(package, site / "bothost", ignore=shutil.ignore_patterns("cpp", "__pycache__"), symlinks=False)
    shutil.copy(_native.__file__, site / "bothost" / "native")  # an editable install keeps it elsewhere
    shutil.copytree(schema.migrations_folder(), site / "bothost" / "migrations")
    program = (
        "import bothost.store.schema as s; from bothost.config import StoreSettings;"
        f"print(s.migrations_folder()); print(s.upgrade(StoreSettings(url='sqlite:///{tmp_path}/wheel.db')))"
    )
    # -P and -S: neither this folder nor the checkout of the environment, only what is named.
    paths = [str(site), *(path for path in sys.path if path.endswith("site-packages"))]
    code = f"import sys; sys.path[:0] = {paths!r}; {program}"
    done = subprocess.run([sys.executable, "-P", "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(site / "bothost" / "migrations"), f"(None, '{schema.REVISIONS[-1]}')"]
