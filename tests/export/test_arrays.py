"""Arrays made from memory are those that pyarrow makes of the same values, and pandas stays out of an export."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothost.export import arrays

maybe_texts = st.lists(st.none() | st.text())
maybe_floats = st.lists(st.none() | st.floats(width=32, allow_nan=False))


def same(made: pa.Array, expected: pa.Array) -> bool:
    made.validate(full=True)
    return bool(made.equals(expected)) and made.null_count == expected.null_count


@given(maybe_texts)
def test_texts(values):
    assert same(arrays.texts(values), pa.array(values, pa.string()))


@given(maybe_floats)
def test_floats(values):
    assert same(arrays.floats(values), pa.array(values, pa.float32()))


@settings(max_examples=30)
@given(st.lists(st.none() | maybe_texts), st.lists(st.none() | maybe_floats))
def test_lists(texts, floats):
    assert same(arrays.lists(texts, arrays.texts), pa.array(texts, pa.list_(pa.string())))
    assert same(arrays.lists(floats, arrays.floats), pa.array(floats, pa.list_(pa.float32())))


@given(st.lists(st.sampled_from([True, False, None])))
def test_booleans(values):
    made = arrays.booleans(
        np.array([v is True for v in values], np.bool_), valid=np.array([v is not None for v in values], np.bool_)
    )
    assert same(made, pa.array(values, pa.bool_()))


@given(st.lists(st.binary(min_size=16, max_size=16), min_size=1), st.data())
def test_keys_as_hexadecimal_also_of_a_slice(keys, data):
    start = data.draw(st.integers(0, len(keys)))
    made = arrays.hexadecimal(pa.array(keys, pa.binary(16)).slice(start))
    assert made.to_pylist() == [key.hex() for key in keys[start:]]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.float64])
def test_numbers_there_and_back_also_of_a_slice(dtype):
    values = np.arange(9).astype(dtype)
    made = arrays.numbers(values)
    assert made.to_pylist() == values.tolist()
    assert arrays.memory(made.slice(2, 5), dtype).tolist() == values[2:7].tolist()
