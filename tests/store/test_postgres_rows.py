"""Rows of binary COPY: byte by byte what the driver makes of them, and what does not belong into a column refused."""

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import Format

from bothost.native._native import pack_rows
from bothost.store.decision_log import chunks_of
from bothost.store.models import COLUMNS
from bothost.store.postgres import types_of
from bothost.testing.sample_rows import sample_hand

TYPES = ("int2", "int4", "int8", "float8", "text", "bytea")
INTEGERS = {"int2": 16, "int4": 32, "int8": 64}


def of_type(name):
    if name in INTEGERS:
        bits = INTEGERS[name]
        return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    text = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
    return {"float8": st.floats(), "text": text, "bytea": st.binary(max_size=40)}[name]


def packed_by_the_driver(rows, types):
    """As psycopg's ``Copy.write_row`` does after ``set_types``."""
    transformer = Transformer()
    oids = [transformer.adapters.types[name].oid for name in types]
    transformer.set_dumper_types(oids, Format.BINARY)
    out = b""
    for row in rows:
        out += struct.pack(">h", len(row))
        for item in transformer.dump_sequence(row, [PyFormat.BINARY] * len(row)):
            out += b"\xff\xff\xff\xff" if item is None else struct.pack(">i", len(item)) + bytes(item)
    return out


@given(st.data(), st.lists(st.sampled_from(TYPES), min_size=1, max_size=8))
def test_any_row_is_packed_as_the_driver_packs_it(data, types):
    row = st.tuples(*(st.none() | of_type(name) for name in types))
    rows = data.draw(st.lists(row, max_size=4))
    expected = packed_by_the_driver(rows, types)
    assert pack_rows(rows, types) == expected
    assert pack_rows([list(row) for row in rows], types) == expected  # as the spool gives them


def test_the_logs_own_rows_of_every_table():
    for table, columns, rows in chunks_of(sample_hand(random.Random(3), decisions=9)):
        types = types_of(table, columns)
        assert len(types) == len(COLUMNS[table]) and set(types) <= set(TYPES)
        assert pack_rows(rows, types) == packed_by_the_driver(rows, types)


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        ("int2", 2**15, OverflowError),
        ("int4", -(2**31) - 1, OverflowError),
        ("int8", 2**63, OverflowError),
        ("int4", 1.0, TypeError),
        ("int4", "7", TypeError),
        ("float8", "7", TypeError),
        ("text", b"bytes", TypeError),
        ("text", 7, TypeError),
        ("text", "half a pair \ud800", UnicodeEncodeError),
        ("bytea", "text", TypeError),
        ("bytea", 7, TypeError),
        ("uuid", b"", ValueError),
    ],
)
def test_what_does_not_belong_into_a_column_is_refused(kind, value, error):
    with pytest.raises(error):
        pack_rows([(1, value)], ["int2", kind])


def test_rows_must_have_as_many_values_as_there_are_columns():
    with pytest.raises(ValueError, match="a row has 1 values, not 2"):
        pack_rows([(1, 2), (1,)], ["int2", "int2"])
    with pytest.raises(TypeError):
        pack_rows([7], ["int2"])
    assert pack_rows([], ["int2"]) == b""
    assert pack_rows([(bytearray(b"ab"), memoryview(b"c"))], ["bytea"] * 2)[2:] == b"\0\0\0\2ab\0\0\0\1c"
    assert pack_rows([(True,)], ["int2"])[6:] == b"\0\1"
