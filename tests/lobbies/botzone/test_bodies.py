"""What Botzone's polls say: read patiently, and hostile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothost import messages as m
from bothost.lobbies.botzone import protocol as wire

from .bench import BLACK, A, B, Line


def test_bodies_are_read_patiently():
    polled = wire.polled(b"2 2\r\n" + f"{A}\r\n0 1 2\r\nbad id!\r\nx\r\n{B} 1 2 2 0\r\n{B} x".encode())
    assert polled.requests == ((A, "0 1 2"),)
    assert polled.finished == (wire.Finished(B, 1, (2.0, 0.0)),)
    assert polled.odd == ("bad id! x", f"{B} x")
    assert wire.polled(b"3 1\n").requests == ()


@pytest.mark.parametrize("scores", ["nan 0", "inf 0", "1e10 0", "0", "x 0"])
def test_scores_that_are_none_are_odd(scores):
    polled = wire.polled(f"0 1\n{B} 1 2 {scores}".encode())
    assert not polled.finished and polled.odd == (f"{B} 1 2 {scores}",)


@pytest.mark.parametrize("body", [b"", b"<html>", b"1", b"-1 0", b"9999999 0", b"\xff\xfe"])
def test_bodies_that_are_none(body):
    with pytest.raises(wire.BadAnswer):
        wire.polled(body)


def test_an_answer_that_cannot_be_a_header_is_refused():
    for text in ("a\nX-Evil: 1", "牌"):
        with pytest.raises(ValueError, match="ASCII"):
            wire.answer_header(A, text)


REQUESTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from([BLACK, "0 1 2", "2 W3", "3 0 DRAW", "[]", "null", '"0 1 2"', '{"own":[1],"bid":[]}', "-1 -1"]),
)


@given(st.lists(st.tuples(st.sampled_from([A, B, "x", ""]), REQUESTS), max_size=6), st.binary(max_size=30))
def test_whatever_comes_feed_returns(requests, tail):
    line = Line()
    for pair in requests:
        lines = "\n".join(["1 1", *pair, "?"]).encode() + tail
        line.do(m.HttpResult(line.poll.request, 200, (), lines))
        for event in list(line.events):
            if isinstance(event, m.ActionRequest):
                line.do(m.Resync(event.table))
        if "again" in line.timers:
            line.fire("again")
