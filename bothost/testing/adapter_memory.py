"""Whether a lobby adapter keeps memory with each frame or table: for the conformance kit.

A bounded memory, such as a deque of the last names, is full after the warm-up. What then grows in every round is a
leak.
"""

from __future__ import annotations

import gc
import random
import re
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bothost import messages as m

Feed = Callable[[m.Input], list[m.Output]]
"""Feeds one adapter."""
ROUNDS = 4
FRAMES = 500
"""Frames of a round, known and unknown ones. The warm-up has twice as many."""
TABLES = 4
"""Tables of a round, and of the warm-up."""
FRAME_BYTES, TABLE_BYTES = 2, 400
"""Growth per frame and per table that counts as a leak. A list of numbers takes 8 bytes a frame. The name of a table
takes less than 100, and an adapter may remember some thousands."""


def growth(feed: Callable[[int], None], each: int) -> list[int]:
    """Bytes by which memory grew in each round of ``feed(each)``."""
    grown: list[int] = []
    tracemalloc.start()
    try:
        feed(each // 2)
        before = _used()
        for _ in range(ROUNDS):
            feed(each)
            now = _used()
            grown.append(now - before)
            before = now
    finally:
        tracemalloc.stop()
    return grown


def _used() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def kept_by_frames(fed: Feed, inputs: Sequence[m.Input], rng: random.Random) -> str | None:
    """Feed unknown frames and those of a recorded hand. Returns what is wrong."""
    frames = [item for item in inputs if isinstance(item, m.Frame | m.HttpResult)]
    conn = next((item.conn for item in frames if isinstance(item, m.Frame)), 1)

    def feed(count: int) -> None:
        for number in range(count // 2):
            fed(m.Frame(conn, f'{{"type":"unknown-{rng.random()}","payload":{{"id":{number}}}}}'))
            fed(rng.choice(frames))

    feed(2 * FRAMES)
    grown = growth(feed, FRAMES)
    if min(grown) <= FRAME_BYTES * FRAMES:
        return None
    return f"{sum(grown):,} bytes more after {ROUNDS * FRAMES:,} frames"


def kept_by_tables(fed: Feed, inputs: Sequence[m.Input], table: str) -> str | None:
    """Repeat a recorded visit to a table, from the login to its end, at tables of other names. Returns what is wrong.

    That works only where frames name the table and nothing else tells the visits apart. Elsewhere nothing is found.
    """
    since = next((number for number, item in enumerate(inputs) if isinstance(item, m.Seek)), len(inputs))
    numbers = iter(range(0x1000, 0x10000))
    for item in inputs[:since]:
        fed(item)

    def visit() -> bool:
        """Whether the adapter reports a visit from its beginning to its end."""
        name = f"{table[:-4]}{next(numbers):04x}"
        seen = [out for item in inputs[since:] for out in fed(_renamed(item, table, name))]
        kinds = {type(out) for out in seen if isinstance(out, m.Seated | m.TableEnded) and out.table == name}
        return kinds == {m.Seated, m.TableEnded}

    def feed(count: int) -> None:
        for _ in range(count):
            visit()

    if len(table) < 4 or not visit() or not visit():
        return None
    feed(TABLES)
    grown = growth(feed, TABLES)
    if min(grown) <= TABLE_BYTES * TABLES:
        return None
    return f"{sum(grown):,} bytes more after {ROUNDS * TABLES} tables have ended"


def _renamed(value: Any, old: str, new: str) -> Any:
    """The same data with another name for a table, also inside of texts."""
    if isinstance(value, str):
        return re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", new, value)
    if isinstance(value, bytes):
        return _renamed(value.decode("latin-1"), old, new).encode("latin-1")
    if isinstance(value, dict):
        return {_renamed(key, old, new): _renamed(item, old, new) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_renamed(item, old, new) for item in value)
    if isinstance(value, msgspec.Struct):
        return type(value)(**{name: _renamed(getattr(value, name), old, new) for name in value.__struct_fields__})
    return value
