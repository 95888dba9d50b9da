"""Arrow arrays from memory and from plain values.

``pyarrow.array``, and ``numpy.asarray`` of an array, import pandas where it is installed: as much time as exporting a
hundred thousand decisions, and tens of megabytes. These do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

T = TypeVar("T")


def numbers(values: npt.NDArray[Any], kind: pa.DataType | None = None) -> pa.Array:
    """An array over the memory of ``values``, shape (n,), of their type or one of the same width."""
    made = pa.from_numpy_dtype(values.dtype) if kind is None else kind
    return pa.Array.from_buffers(made, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))], 0)


def memory(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values of an array of fixed width, read-only; what stands for nulls is anything."""
    size = np.dtype(dtype).itemsize
    return np.frombuffer(array.buffers()[1], dtype, len(array) * _width(array) // size, array.offset * _width(array))


def booleans(values: npt.NDArray[np.bool_], *, valid: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Of shape (n,); null where not ``valid``."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [_bits(valid), _bits(values)])


def texts(values: Sequence[str | None]) -> pa.Array:
    """Strings; None is null."""
    data = [b"" if value is None else value.encode() for value in values]
    return pa.Array.from_buffers(
        pa.string(), len(data), [_present(values), _offsets(data), pa.py_buffer(b"".join(data))]
    )


def floats(values: Sequence[float | None]) -> pa.Array:
    """Of 32 bits; None is null."""
    data = np.array([0.0 if value is None else value for value in values], np.float32)
    return pa.Array.from_buffers(pa.float32(), len(data), [_present(values), pa.py_buffer(data)])


def lists(rows: Sequence[Sequence[T] | None], make: Callable[[Sequence[T]], pa.Array]) -> pa.Array:
    """Lists of what ``make`` makes of the values of all rows; None is null."""
    filled: list[Sequence[T]] = [() if row is None else row for row in rows]
    values = make([value for row in filled for value in row])
    buffers = [_present(rows), _offsets(filled)]
    return pa.Array.from_buffers(pa.list_(values.type), len(filled), buffers, children=[values])


def hexadecimal(keys: pa.Array) -> pa.Array:
    """16-byte keys as text, in one go."""
    text = memory(keys, np.uint8).data.hex().encode()
    offsets = np.arange(len(keys) + 1, dtype=np.int32) * 32
    return pa.StringArray.from_buffers(len(keys), pa.py_buffer(offsets), pa.py_buffer(text))


def _width(array: pa.Array) -> int:
    return int(array.type.bit_width) // 8


def _bits(values: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    return None if values is None else pa.py_buffer(np.packbits(values, bitorder="little"))


def _present(values: Sequence[Any]) -> pa.Buffer | None:
    return _bits(np.array([value is not None for value in values], np.bool_)) if None in values else None


def _offsets(values: Sequence[Sequence[Any] | bytes]) -> pa.Buffer:
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, values), np.int32, len(values)), out=ends[1:])
    return pa.py_buffer(ends)
