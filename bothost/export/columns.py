"""Queries of the log as Arrow columns.

From SQLite they come natively: rows are stepped through its C interface and never become Python objects. Where that is
hidden (``sqlite_functions``), and for other databases, the driver's tuples are transposed instead: the same columns,
several times slower.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bothost.errors import StoreError, StoreUnavailable
from bothost.native import _native
from bothost.store.sqlite_library import sqlite_functions
from bothost.store.store import Store

KEY = pa.binary(16)
"""Type of uuids."""
SYMBOL = pa.dictionary(pa.int32(), pa.string())
"""Type of text that takes few values."""
_BUSY_MS = 5000
_CACHE_KB = 32_768
"""The rows of a hand lie as far apart as its host had tables: with SQLite's 2 MB, pages are read several times."""


class ColumnReader(Protocol):
    """Reads queries as columns."""

    def read(self, query: str, keys: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
        """The result of a query, with its columns in the order of the schema.

        Where the query says ``{keys}`` the keys stand, comma-separated; or it says ``{key}`` for each of them. Raises
        StoreUnavailable while the database cannot be reached, and StoreError for values that are not of the schema's
        types.
        """


def reader_of(store: Store) -> ColumnReader:
    """The fastest reader that there is for this database."""
    file = store.engine.url.database
    if store.engine.dialect.name == "sqlite" and file is not None and (functions := sqlite_functions()) is not None:
        return SqliteReader(file, functions)
    return DriverReader(store)


class SqliteReader:
    """Through SQLite's C interface, on a connection of its own. Not for several threads at once."""

    def __init__(self, file: str, functions: dict[str, int]) -> None:
        self._file = file
        try:
            self._native = _native.SqliteReader(functions, file, _BUSY_MS)
            self._native.read(f"PRAGMA cache_size = -{_CACHE_KB}", [], [])
        except RuntimeError as error:
            raise StoreUnavailable(f"database {file}: {error}") from error

    def read(self, query: str, keys: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
        text = query.format(keys=", ".join("?" * len(keys)), key="?")
        try:
            columns = self._native.read(text, list(keys), [_kind(field.type) for field in schema])
        except ValueError as error:
            raise StoreError(f"database {self._file}: {error}") from error
        except RuntimeError as error:
            raise StoreUnavailable(f"database {self._file}: {error}") from error
        return _batch([_wrapped(*buffers, field.type) for buffers, field in zip(columns, schema, strict=True)], schema)


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "int64"
    if pa.types.is_dictionary(kind):
        return "symbol"
    if pa.types.is_list(kind):
        return "words"
    names = {KEY: "key", pa.string(): "text", pa.binary(): "bytes", pa.float64(): "float64"}
    return names.get(kind) or str(kind)


def _wrapped(
    nulls: int,
    validity: npt.NDArray[np.uint8] | None,
    offsets: npt.NDArray[np.int32] | None,
    data: npt.NDArray[np.uint8],
    symbol_offsets: npt.NDArray[np.int32] | None,
    symbols: npt.NDArray[np.uint8] | None,
    kind: pa.DataType,
) -> pa.Array:
    """The native buffers as an array, without a copy."""
    present = None if validity is None else pa.py_buffer(validity)
    if symbol_offsets is not None and symbols is not None:
        rows = len(data) // 4
        indices = pa.Array.from_buffers(pa.int32(), rows, [present, pa.py_buffer(data)], nulls)
        text = [None, pa.py_buffer(symbol_offsets), pa.py_buffer(symbols)]
        return pa.DictionaryArray.from_arrays(
            indices, pa.Array.from_buffers(pa.string(), len(symbol_offsets) - 1, text)
        )
    if offsets is None:
        rows = len(data) * 8 // kind.bit_width
        return pa.Array.from_buffers(kind, rows, [present, pa.py_buffer(data)], nulls)
    rows = len(offsets) - 1
    if pa.types.is_list(kind):
        words = pa.Array.from_buffers(kind.value_type, len(data) // 4, [None, pa.py_buffer(data)])
        return pa.Array.from_buffers(kind, rows, [present, pa.py_buffer(offsets)], nulls, children=[words])
    return pa.Array.from_buffers(kind, rows, [present, pa.py_buffer(offsets), pa.py_buffer(data)], nulls)


class DriverReader:
    """Through the database's Python driver."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, query: str, keys: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
        postgres = self._store.engine.dialect.name == "postgresql"
        mark = "%s" if postgres else "?"
        text = query.format(keys=", ".join([mark] * len(keys)), key=mark)
        with self._store.begin() as connection, contextlib.closing(connection.connection.cursor()) as cursor:
            try:  # past SQLAlchemy, whose Row objects cost twice
                cursor.execute(text, [uuid.UUID(bytes=key) for key in keys] if postgres else list(keys))
                rows = cursor.fetchall()
            except self._store.engine.dialect.loaded_dbapi.Error as error:
                raise StoreUnavailable(f"the log cannot be read: {error}") from error
        columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        try:
            return _batch([_column(c, field.type) for c, field in zip(columns, schema, strict=True)], schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError) as error:
            raise StoreError(f"the log holds what does not belong there: {error}") from error


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_list(kind):
        return _lists(values, kind)
    if pa.types.is_dictionary(kind):
        return pa.array(values, pa.string()).dictionary_encode()
    if kind == KEY:
        values = [key.bytes if isinstance(key, uuid.UUID) else key for key in values]
    return pa.array(values, kind)


def _lists(blobs: Sequence[bytes | None], kind: pa.ListType) -> pa.Array:
    """Blobs of little-endian 4-byte values as a list array; None is null. Raises ValueError for other lengths."""
    filled = [blob or b"" for blob in blobs]
    sizes = np.fromiter(map(len, filled), np.int64, len(filled))
    if (sizes % 4).any():
        raise ValueError("a list whose length is no multiple of 4 bytes")
    offsets = np.zeros(len(filled) + 1, np.int32)
    np.cumsum(sizes // 4, out=offsets[1:])
    dtype: npt.DTypeLike = "<i4" if pa.types.is_int32(kind.value_type) else "<f4"
    values = np.frombuffer(b"".join(filled), dtype)
    mask = pa.array([blob is None for blob in blobs]) if None in blobs else None
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), type=kind, mask=mask)


def _batch(arrays: list[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Raises StoreError for text that is no UTF-8, and for nulls where none may be."""
    for array, field in zip(arrays, schema, strict=True):
        if array.null_count and not field.nullable:
            raise StoreError(f"a row of the log has no {field.name}")
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        raise StoreError(f"the log holds what does not belong there: {error}") from error
    return batch
