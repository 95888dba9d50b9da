"""Read queries of the log as Arrow columns: transpose the driver's tuples, and convert column by column."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bothost.errors import StoreError, StoreUnavailable
from bothost.store.store import Store

KEY = pa.binary(16)
"""Type of uuids."""
SYMBOL = pa.dictionary(pa.int32(), pa.string())
"""Type of text with few distinct values."""


def read_columns(store: Store, query: str, keys: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
    """Run a query through the driver of the database, and return its columns in the order of the schema.

    In the query, ``{keys}`` is replaced by placeholders for all keys, and ``{key}`` by one placeholder. Raises
    StoreUnavailable while the database cannot be reached, and StoreError for values that do not fit the schema.
    """
    postgres = store.engine.dialect.name == "postgresql"
    mark = "%s" if postgres else "?"
    text = query.format(keys=", ".join([mark] * len(keys)), key=mark)
    with store.begin() as connection, contextlib.closing(connection.connection.cursor()) as cursor:
        try:  # not through SQLAlchemy, whose Row objects take twice as long
            cursor.execute(text, [uuid.UUID(bytes=key) for key in keys] if postgres else list(keys))
            rows = cursor.fetchall()
        except store.engine.dialect.loaded_dbapi.Error as error:
            raise StoreUnavailable(f"the log cannot be read: {error}") from error
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    try:
        return _batch([_column(c, field.type) for c, field in zip(columns, schema, strict=True)], schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError) as error:
        raise StoreError(f"the log holds a value of the wrong type: {error}") from error


def key_bytes(keys: pa.Array) -> npt.NDArray[np.uint8]:
    """Return keys as a read-only uint8 array of shape (n, 16)."""
    return np.frombuffer(keys.buffers()[1], np.uint8, len(keys) * 16, keys.offset * 16).reshape(-1, 16)


def hexadecimal(keys: pa.Array) -> pa.Array:
    """Return keys as hexadecimal text."""
    text = pa.py_buffer(key_bytes(keys).data.hex().encode())
    return pa.StringArray.from_buffers(len(keys), pa.py_buffer(np.arange(len(keys) + 1, dtype=np.int32) * 32), text)


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_list(kind):
        return _lists(values, kind)
    if pa.types.is_dictionary(kind):
        return _typed(values, pa.string()).dictionary_encode()
    if kind == KEY:
        values = [key.bytes if isinstance(key, uuid.UUID) else key for key in values]
    return _typed(values, kind)


def _typed(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Make an array. Raises ArrowInvalid for other types, which ``pa.array`` would convert (1.5 → 1, bytes → text)."""
    found = pa.array(values)
    if not pa.types.is_null(found.type) and _family(found.type) not in (_family(kind), *_WIDER.get(_family(kind), ())):
        raise pa.ArrowInvalid(f"{found.type} where {kind} is expected")
    return found.cast(kind)


_WIDER = {"number": ("integer",)}
"""Kind of column → other kinds of values that it accepts."""


def _family(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "number"
    return "text" if pa.types.is_string(kind) else "bytes" if pa.types.is_binary(kind) or kind == KEY else str(kind)


def _lists(blobs: Sequence[bytes | None], kind: pa.ListType) -> pa.Array:
    """Make a list array from blobs of little-endian 4-byte values; None is null. Raises ValueError for bad lengths."""
    filled = [blob or b"" for blob in blobs]
    sizes = np.fromiter(map(len, filled), np.int64, len(filled))
    if (sizes % 4).any():
        raise ValueError("the length of a list is not a multiple of 4 bytes")
    offsets = np.zeros(len(filled) + 1, np.int32)
    np.cumsum(sizes // 4, out=offsets[1:])
    dtype: npt.DTypeLike = "<i4" if pa.types.is_int32(kind.value_type) else "<f4"
    values = np.frombuffer(b"".join(filled), dtype)
    mask = pa.array([blob is None for blob in blobs]) if None in blobs else None
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), type=kind, mask=mask)


def _batch(arrays: list[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Make a record batch. Raises StoreError for text that is not UTF-8, and for nulls in required columns."""
    for array, field in zip(arrays, schema, strict=True):
        if array.null_count and not field.nullable:
            raise StoreError(f"a row of the log has no {field.name}")
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid as error:
        raise StoreError(f"the log holds a value of the wrong type: {error}") from error
    return batch
