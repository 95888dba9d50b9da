"""Hostile input: whatever arrives, the lobby stands, answers in its protocol, and the others play on."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_lobby import MemoryLobby

from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.core import Send

NAMES = ("ada", "bob", "cyd")
TEXTS = st.sampled_from(["", "s", "t-1", "t-2", "r1", "r2", "r3", "claims", "chess", "pass", "0", "1", "5", "x" * 200])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))
FIELDS = st.sampled_from(
    [
        *("v", "token", "session", "known", "seek", "game", "rules", "attributes", "password", "table"),
        *("invitation", "id", "action", "hand", "seq", "hands", "level", "private", "robots", "accept"),
    ]
)
TYPES = st.sampled_from(
    [*("hello", "list", "seek", "cancel", "create", "join", "accept", "decline"), *("act", "resign", "leave", "sync")]
)
NEAR_FRAMES = st.builds(lambda kind, rest: {**rest, "type": kind}, TYPES, st.dictionaries(FIELDS, JSON, max_size=5))
FRAMES = st.one_of(
    st.binary(max_size=40),
    NEAR_FRAMES.map(wire.encode),
    st.builds(wire.Seek, TEXTS, st.just("claims"), st.just({}), st.dictionaries(TEXTS, SCALARS, max_size=3)).map(
        wire.encode
    ),
    st.builds(wire.Act, TEXTS, TEXTS, TEXTS).map(wire.encode),
    st.builds(wire.Leave, TEXTS).map(wire.encode),
    st.builds(wire.Sync, TEXTS, TEXTS, st.integers()).map(wire.encode),
)


def new_core(**options):
    core = MemoryLobby({name: f"token-of-{name}" for name in NAMES}, burst=10**9, **options).core
    for conn, name in enumerate(NAMES, start=1):
        core.opened(conn, 0.0)
        core.received(conn, wire.encode(wire.Hello(1, f"token-of-{name}")), 0.0)
    core.take()
    return core


def check(core, capsys=None):
    """Everything that the lobby says is a frame of its protocol, and none is an internal error."""
    for output in core.take():
        if isinstance(output, Send):
            frame = wire.decode_server(output.data)
            assert not (isinstance(frame, wire.Error) and frame.code == "internal")
            assert not (isinstance(frame, wire.TableEnded) and "internal" in frame.detail)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), FRAMES, st.floats(0, 20)), max_size=60))
def test_no_sequence_of_frames_breaks_the_lobby(steps):
    core, now = new_core(robots_after_s=15.0, accept_s=10.0, tables=20), 0.0
    for conn, data, pause in steps:
        if conn > 3:
            core.closed(conn - 3, now)
            core.opened(conn - 3, now)
            core.received(conn - 3, wire.encode(wire.Hello(1, f"token-of-{NAMES[conn - 4]}")), now)
        core.received(min(conn, 3), data, now)
        check(core)
        now += pause
        core.tick(now)
        check(core)
    assert len(core.tables) + len(core.waiting.tables) <= 20
    for conn in (1, 2, 3):
        core.closed(conn, now)
    core.tick(now + 10**6)
    core.tick(now + 2 * 10**6)
    waiting = core.waiting
    assert not (core.tables or waiting.tables or waiting._open or waiting._seeks or waiting._invitations)
    assert len(core.timers) == 0


def mutants(rng, count):
    """Frames that are almost right: valid ones with bytes changed, cut, doubled."""
    valid = [
        wire.encode(frame)
        for frame in (
            wire.Seek("s", "claims", {"seats": 3}, {"level": 3, "hands": 2}),
            wire.Create("c", "claims", {}, {"private": True}, "pw"),
            wire.Join("j", "t-1", "pw"),
            wire.Act("t-1", "r1", "5"),
            wire.Sync("t-1", "1", 3),
            wire.Leave("t-1"),
            wire.Resign("t-1"),
            wire.List("claims"),
            wire.Cancel("s"),
            wire.Hello(1, "x", "agent", "s", {"t-1": wire.Known("1", 3)}),
        )
    ]
    for _ in range(count):
        data = bytearray(rng.choice(valid))
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(data) + 1)
            match rng.randrange(4):
                case 0:
                    data[at : at + 1] = bytes([rng.randrange(256)])
                case 1:
                    del data[at : at + rng.randrange(5)]
                case 2:
                    data[at:at] = rng.choice([b'"', b"{", b"}", b"null", b"1e999", b"-1", b"\\ud800", b"\x00"])
                case 3:
                    data[at:at] = data[max(0, at - 10) : at]
        yield bytes(data)


def fuzz(count, seed):
    rng, core = random.Random(seed), new_core(robots_after_s=1.0, tables=50, tables_per_account=20)
    now = 0.0
    for data in mutants(rng, count):
        core.received(rng.randrange(1, 4), data, now)
        check(core)
        now += rng.random() * 0.05
        core.tick(now)
        check(core)
        assert len(core.tables) + len(core.waiting.tables) <= 50 and len(core.timers) < 1000
    for conn in (1, 2, 3):
        core.received(conn, wire.encode(wire.Ping()), now)
        assert wire.encode(wire.Pong()) in [o.data for o in core.take() if isinstance(o, Send)]


def test_frames_that_are_almost_right():
    fuzz(20_000, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_many_frames_that_are_almost_right(seed):
    fuzz(1_000_000, seed=seed)
