"""Frames of websockets natively, against websockets' own serialiser."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from bothost.native._native import websocket_frame, websocket_texts

MOST = 1 << 17
texts = st.one_of(st.text(max_size=40), st.sampled_from(["x" * 125, "ü" * 63, "y" * 65_535, "z" * 65_536]))


def framed(text):
    return Frame(Opcode.TEXT, text.encode()).serialize(mask=False)


@given(st.lists(texts, max_size=6), st.integers(0, 1 << 20))
def test_whole_messages_are_taken_and_what_is_cut_off_is_left(messages, cut):
    data = b"".join(map(framed, messages))
    data = data[: cut % (len(data) + 1)]
    taken, at = websocket_texts(data, MOST)
    assert taken == messages[: len(taken)]
    assert at == sum(len(framed(text)) for text in taken)
    if at < len(data):
        start, end = websocket_frame(data, at, MOST)
        assert at <= start and end > len(data), "a whole message was left"


@given(st.binary(max_size=200), st.integers(0, 300))
@example(b"\x81\x7f" + b"\xff" * 8, MOST)
@example(b"\x81\x7f" + bytes(8), 0)
def test_bytes_of_any_kind_are_texts_or_left_alone(data, most):
    taken, at = websocket_texts(data, most)
    assert 0 <= at <= len(data)
    assert all(len(text.encode()) <= most for text in taken)
    for place in range(len(data)):
        found = websocket_frame(data, place, most)
        assert found is None or (place <= found[0] <= found[1] and (found[1] > len(data) or found[0] >= place + 2))


@pytest.mark.parametrize(
    "other",
    [
        Frame(Opcode.BINARY, b"{}").serialize(mask=False),
        Frame(Opcode.PING, b"").serialize(mask=False),
        Frame(Opcode.TEXT, b"begun", fin=False).serialize(mask=False),
        Frame(Opcode.TEXT, b"masked").serialize(mask=True),
        Frame(Opcode.TEXT, b"\xff").serialize(mask=False),
        framed("x" * (MOST + 1)),
    ],
    ids=["binary", "control", "fragment", "masked", "not UTF-8", "too long"],
)
def test_every_other_frame_stops_it(other):
    assert websocket_texts(framed("good") + other + framed("behind"), MOST) == (["good"], len(framed("good")))


def test_the_end_of_a_frame_is_told_before_it_has_come():
    data = framed("y" * 70_000)
    assert websocket_frame(data[:10], 0, MOST) == (10, len(data))
    assert websocket_frame(data[:9], 0, MOST) == (0, 10)
    assert websocket_frame(data, 0, 69_999) is None
    with pytest.raises(ValueError, match="no frame begins there"):
        websocket_frame(data, len(data), MOST)
