"""Queries as Arrow columns: what the database holds, and nothing that does not belong."""

import contextlib
import sqlite3

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bothost.config import StoreSettings
from bothost.errors import StoreError, StoreUnavailable
from bothost.export.columns import KEY, SYMBOL, read_columns
from bothost.store import Store
from bothost.store import schema as store_schema

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


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=40)
@given(values=st.lists(st.tuples(*(st.none() | values for _, values in KINDS.values())), max_size=20))
def test_every_value_comes_back(database, values):
    store, driver = database
    fill(driver, values)
    batch = read_columns(store, QUERY, [], SCHEMA)
    assert batch.schema == SCHEMA
    for number, (name, (kind, _)) in enumerate(KINDS.items()):
        assert [_raw(kind, value) for value in batch[name].to_pylist()] == [row[number] for row in values], name


def _raw(kind, value):
    """As the database holds it."""
    if value is None or not (pa.types.is_list(kind) or pa.types.is_timestamp(kind)):
        return value
    if pa.types.is_timestamp(kind):
        return pa.scalar(value, kind).cast(pa.int64()).as_py()
    return pa.array(value, kind.value_type).to_numpy().tobytes()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("small", 128),
        ("word", -(2**31) - 1),
        ("word", "7"),
        ("word", 1.5),
        ("real", "7"),
        ("text", b"7"),
        ("blob", "7"),
        ("id", b"short"),
        ("actions", b"12345"),
        ("role", 1),
    ],
)
def test_values_that_do_not_belong_are_refused(database, column, value):
    store, driver = database
    fill(driver, [tuple(value if name == column else None for name in SCHEMA.names)])
    with pytest.raises(StoreError):
        read_columns(store, QUERY, [], SCHEMA)


def test_lists_cut_short_are_refused_even_where_two_make_up_a_whole_one(database):
    store, driver = database
    fill(driver, [tuple(b"12" if name == "actions" else None for name in SCHEMA.names)] * 2)
    with pytest.raises(StoreError, match="not a multiple of 4 bytes"):
        read_columns(store, QUERY, [], SCHEMA)


@pytest.mark.parametrize("column", ["text", "role"])
def test_text_that_is_no_utf8_is_refused(database, column):
    store, driver = database
    fill(driver, [(None,) * len(SCHEMA)])
    driver.execute(f"UPDATE sample SET {column} = CAST(x'ff41' AS TEXT)")
    with pytest.raises(StoreError):
        read_columns(store, QUERY, [], SCHEMA)


def test_nulls_where_none_may_be_are_refused(database):
    store, driver = database
    fill(driver, [(None,) * len(SCHEMA)])
    strict = pa.schema([field.with_nullable(field.name != "real") for field in SCHEMA])
    with pytest.raises(StoreError, match="no real"):
        read_columns(store, QUERY, [], strict)


def test_a_query_that_the_database_refuses_is_an_outage(database):
    with pytest.raises(StoreUnavailable, match="no such table"):
        read_columns(database[0], "SELECT 1 FROM missing", [], pa.schema([SCHEMA.field(0)]))
