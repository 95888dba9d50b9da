"""Queries as Arrow columns: natively from SQLite what its Python driver gives, and nothing that does not belong."""

import contextlib
import sqlite3

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bothost import rules
from bothost.config import StoreSettings
from bothost.errors import StoreError, StoreUnavailable
from bothost.export import columns, hands, rows
from bothost.export.columns import KEY, SYMBOL, DriverReader, SqliteReader, reader_of
from bothost.export.job import export
from bothost.export.options import ExportOptions
from bothost.export.parquet import ParquetExporter
from bothost.store import Store
from bothost.store import schema as store_schema
from bothost.store.query import HandQuery
from bothost.store.reader import iter_keys
from bothost.store.sqlite_library import sqlite_functions

native = pytest.mark.skipif(sqlite_functions() is None, reason="Python's SQLite does not show its functions")

KINDS = {
    "small": (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    "short": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "word": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "time": (pa.timestamp("us", tz="UTC"), st.integers(0, 2**50)),
    "real": (pa.float64(), st.floats(allow_nan=False)),
    "text": (pa.string(), st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))),
    "blob": (pa.binary(), st.binary()),
    "id": (KEY, st.binary(min_size=16, max_size=16)),
    "actions": (pa.list_(pa.int32()), st.binary(max_size=10).map(lambda b: b * 4)),
    "shares": (pa.list_(pa.float32()), st.lists(st.just(b"\0\0\x80\x3f")).map(b"".join)),
    "role": (SYMBOL, st.sampled_from(["live", "shadow", "", "é"])),
}
SCHEMA = pa.schema([pa.field(name, kind) for name, (kind, _) in KINDS.items()])
QUERY = "SELECT " + ", ".join(SCHEMA.names) + " FROM sample ORDER BY rowid"


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    made = StoreSettings(url=f"sqlite:///{tmp_path_factory.mktemp('columns')}/bothost.db")
    store_schema.upgrade(made)
    with (
        Store.open(made) as store,
        contextlib.closing(sqlite3.connect(store.engine.url.database, isolation_level=None)) as driver,
    ):
        driver.execute(f"CREATE TABLE sample ({', '.join(SCHEMA.names)})")
        yield store, driver


def fill(driver, values):
    driver.execute("DELETE FROM sample")
    driver.executemany(f"INSERT INTO sample VALUES ({', '.join('?' * len(SCHEMA))})", values)


@native
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=40)
@given(values=st.lists(st.tuples(*(st.none() | values for _, values in KINDS.values())), max_size=20))
def test_the_native_reader_gives_what_the_driver_gives(database, values):
    store, driver = database
    fill(driver, values)
    native, slow = (reader.read(QUERY, [], SCHEMA) for reader in (reader_of(store), DriverReader(store)))
    assert type(reader_of(store)) is SqliteReader
    assert native.schema == slow.schema
    for name in SCHEMA.names:
        assert native[name].to_pylist() == slow[name].to_pylist(), name


@native
@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("small", 128, "small holds 128, which is out of its range"),
        ("word", -(2**31) - 1, "out of its range"),
        ("word", "7", "something else than an integer"),
        ("word", 1.5, "something else than an integer"),
        ("real", "7", "something else than a number"),
        ("text", b"7", "something else than text"),
        ("blob", "7", "something else than bytes"),
        ("id", b"short", "not 16 bytes long"),
        ("actions", b"12345", "no multiple of 4 bytes"),
        ("role", 1, "something else than text"),
    ],
)
def test_values_that_do_not_belong_are_refused_by_column(database, column, value, said):
    store, driver = database
    fill(driver, [tuple(value if name == column else None for name in SCHEMA.names)])
    with pytest.raises(StoreError, match=said):
        reader_of(store).read(QUERY, [], SCHEMA)


@pytest.mark.parametrize("kind", [reader_of, DriverReader])
def test_lists_cut_short_are_refused_even_where_two_make_up_a_whole_one(database, kind):
    store, driver = database
    fill(driver, [tuple(b"12" if name == "actions" else None for name in SCHEMA.names)] * 2)
    with pytest.raises(StoreError, match="no multiple of 4 bytes"):
        kind(store).read(QUERY, [], SCHEMA)


@pytest.mark.parametrize("column", ["text", "role"])
@pytest.mark.parametrize("kind", [reader_of, DriverReader])
def test_text_that_is_no_utf8_is_refused(database, column, kind):
    store, driver = database
    fill(driver, [(None,) * len(SCHEMA)])
    driver.execute(f"UPDATE sample SET {column} = CAST(x'ff41' AS TEXT)")
    with pytest.raises(StoreError):
        kind(store).read(QUERY, [], SCHEMA)


@pytest.mark.parametrize("kind", [reader_of, DriverReader])
def test_nulls_where_none_may_be_are_refused(database, kind):
    store, driver = database
    fill(driver, [(None,) * len(SCHEMA)])
    strict = pa.schema([field.with_nullable(field.name != "real") for field in SCHEMA])
    with pytest.raises(StoreError, match="no real"):
        kind(store).read(QUERY, [], strict)


@native
def test_a_database_that_is_away_is_told(tmp_path):
    functions = sqlite_functions()
    with pytest.raises(StoreUnavailable, match="unable to open"):
        SqliteReader(str(tmp_path / "none.db"), functions)
    (tmp_path / "other.db").write_bytes(b"no database " * 100)
    with pytest.raises(StoreUnavailable, match="not a database"):
        SqliteReader(str(tmp_path / "other.db"), functions).read(
            "SELECT 1 FROM games", [], pa.schema([SCHEMA.field(0)])
        )


@native
def test_the_reader_cannot_write(database):
    store, _ = database
    with pytest.raises(StoreUnavailable, match="readonly"):
        reader_of(store).read("INSERT INTO sample (small) VALUES (1) RETURNING small", [], pa.schema([SCHEMA.field(0)]))


@native
def test_whole_rows_of_the_log(store):
    keys = list(iter_keys(store))
    ids = sorted({game_id for game_id, _ in keys})
    readers = reader_of(store), DriverReader(store)
    for read in (
        lambda reader: rows.read_decisions(reader, ids, raw=True),
        lambda reader: reader.read(hands._QUERY, ids, hands._FETCHED),
    ):
        native, slow = map(read, readers)
        assert native.num_rows >= len(keys) and native.to_pylist() == slow.to_pylist()


def test_without_the_functions_of_sqlite_an_export_has_the_same_bytes(store, tmp_path, monkeypatch):
    def run(name):
        options = ExportOptions(view_json=False, hands_per_file=11)
        query = HandQuery(closed=True)
        return export(store, query, tmp_path / name, ParquetExporter(), options, make_game=rules.game)["files"]

    first = run("native")
    monkeypatch.setattr(columns, "sqlite_functions", lambda: None)
    second = run("driver")
    names = ("file", "rows", "hands")
    assert [[f[n] for n in names] for f in first] == [[f[n] for n in names] for f in second]
    for entry in first:
        made, again = (pa.parquet.read_table(tmp_path / folder / entry["file"]) for folder in ("native", "driver"))
        assert made.equals(again)


def test_refusals_are_found_by_an_index_of_their_own(store):
    with contextlib.closing(sqlite3.connect(store.engine.url.database)) as driver:
        plan = driver.execute("EXPLAIN QUERY PLAN " + rows._REFUSALS.format(key="?"), (b"", b"")).fetchall()
    assert "COVERING INDEX ix_outcomes_rejected" in plan[0][-1]
