"""Queries of the log as Arrow columns: the driver's tuples, transposed and given to Arrow column by column."""

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
"""Type of text that takes few values."""


class ColumnReader:
    """Reads queries as columns, through the driver of the database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, query: str, keys: Sequence[bytes], schema: pa.Schema) -> pa.RecordBatch:
        """The result of a query, with its columns in the order of the schema.

        Where the query says ``{keys}`` the keys stand, comma-separated; ``{key}`` stands for one of them. Raises
        StoreUnavailable while the database cannot be reached, and StoreError for values of other types than the
        schema's.
        """
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


def key_bytes(keys: pa.Array) -> npt.NDArray[np.uint8]:
    """Keys as an array of shape (n, 16), read-only."""
    return np.frombuffer(keys.buffers()[1], np.uint8, len(keys) * 16, keys.offset * 16).reshape(-1, 16)


def hexadecimal(keys: pa.Array) -> pa.Array:
    """Keys as text."""
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
    """Values of this type. Raises ArrowInvalid for others, which ``pa.array`` would bend: 1.5 to 1, bytes to text."""
    found = pa.array(values)
    if not pa.types.is_null(found.type) and _family(found.type) not in (_family(kind), *_WIDER.get(_family(kind), ())):
        raise pa.ArrowInvalid(f"{found.type} where {kind} is expected")
    return found.cast(kind)


_WIDER = {"number": ("integer",)}
"""Kind of values → kinds that it holds as well."""


def _family(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "number"
    return "text" if pa.types.is_string(kind) else "bytes" if pa.types.is_binary(kind) or kind == KEY else str(kind)


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
