"""Hostile inputs for adapters: mutations of recorded frames. Used by the adapters' conformance kit."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from bothost import messages as m

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2**63, 2**64, -(2**70), 10**400, 1.5, 1e308, "", "1", "x" * 5000, "9" * 5000, "\x00",
    "\ud83d\ude00", [], [0] * 300, [[]], {}, {"": None}, {"type": "error"},
)  # fmt: skip
GARBAGE: tuple[str | bytes, ...] = (
    "", " ", "null", "[]", "{}", "0", '""', "{", "[" * 100_000, '{"type":1}', '{"type":"nobody-says-this"}',
    '{"type":"pong","payload":' + "[" * 100_000, "[0,{}]", "[9999,{}]", "[1,2,3]", b"\xff\xfe", b"\x00" * 64,
)  # fmt: skip


def inputs(recorded: Sequence[m.Input], rng: random.Random) -> Iterator[m.Frame | m.HttpResult]:
    """Yield garbage, and recorded inputs that are changed in one place, for ever."""
    real = [item for item in recorded if isinstance(item, m.Frame | m.HttpResult)]
    while True:
        item = rng.choice(real)
        if isinstance(item, m.Frame):
            yield m.Frame(item.conn, mutated(item.data, rng))
        else:
            body = mutated(item.body, rng)
            status = rng.choice((item.status, item.status, 0, 204, 404, 500))
            raw = body if isinstance(body, bytes) else body.encode(errors="replace")
            yield m.HttpResult(item.request, status, item.headers, raw)


def mutated(data: str | bytes, rng: random.Random) -> str | bytes:
    """A frame that is changed in one place, truncated, or replaced by garbage."""
    chance = rng.random()
    if chance < 0.1:
        return rng.choice(GARBAGE)
    if chance < 0.25:
        cut = rng.randrange(len(data) + 1)
        return data[:cut]
    try:
        tree = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return _other_lines(data, rng)
    places = list(_places(tree))
    if not places:
        return rng.choice(GARBAGE)
    parent, key = rng.choice(places)
    if isinstance(parent, dict) and rng.random() < 0.2:
        del parent[key]
    else:
        parent[key] = rng.choice(VALUES)
    try:
        text = msgspec.json.encode(tree)
    except (msgspec.EncodeError, OverflowError, UnicodeError):
        text = b'{"type":"too-large"}'
    return text if isinstance(data, bytes) else text.decode()


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    members = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in list(members):
        yield tree, key
        yield from _places(value)


def _other_lines(data: str | bytes, rng: random.Random) -> str | bytes:
    """Replace a line, for protocols of text lines."""
    text = data if isinstance(data, str) else data.decode(errors="replace")
    lines = text.split("\n")
    lines[rng.randrange(len(lines))] = rng.choice(("", "-1", "999999999999999999999", "x y z", "{}"))
    changed = "\n".join(lines)
    return changed if isinstance(data, str) else changed.encode()
