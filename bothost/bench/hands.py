"""``bothost bench hands``: response times of the browser's list of hands, for every filter.

The database holds made-up hands of a year: their rows in ``games``, ``game_ends`` and ``decisions``, which is all that
the list reads. ``bothost web`` serves it. Each filter is asked page after page until the first page of hands is full or
the log is searched to its beginning, as a browser asks.
"""

from __future__ import annotations

import contextlib
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import httpx
import msgspec
import typer

from bothost.bench.browsers import serving
from bothost.config import StoreSettings
from bothost.store import DecisionRecord, GameEndRecord, GameRecord, schema
from bothost.store.decision_log import make_sink
from bothost.store.models import COLUMNS
from bothost.testing.postgres import temporary_postgres
from bothost.testing.sample_rows import sample_hand, uuid7

PER_HAND = 12
TEMPLATES = 500
"""Different hands. Their rows are written again and again under new ids."""
AT_ONCE = 1000
"""Hands of one transaction."""
YEAR_US = 365 * 86_400_000_000
GAMES = ("doudizhu", "doudizhu", "mahjong", "othello")
STRATEGIES = ("rule-doudizhu", "deep-mc", "doudizhu-mcts")
RARE = 0.001
"""Share of templates with a fallback: one hand in a thousand decisions or so has one."""

FILTERS: dict[str, dict[str, str]] = {
    "everything": {},
    "a game": {"games": "othello"},
    "a strategy": {"strategies": "deep-mc"},
    "a player": {"players": "guest-7"},
    "won": {"results": "won"},
    "with fallbacks": {"fallbacks": "1"},
    "a day": {"since": "2025-06-01", "until": "2025-06-01"},
    "a game and a result that never occurs": {"games": "othello", "results": "drawn"},
    "a game that was never played": {"games": "chess"},
    "a strategy that never played": {"strategies": "nobody"},
    "a player who never played": {"players": "nobody"},
    "a result that never occurs": {"results": "drawn"},
    "fallbacks of a player who never played": {"fallbacks": "1", "players": "nobody"},
    "all filters, never met": {
        "games": "othello",
        "strategies": "deep-mc",
        "players": "guest-7",
        "results": "drawn",
        "fallbacks": "1",
        "since": "2025-01-01",
        "until": "2025-12-31",
    },
}


def command(
    decisions: Annotated[int, typer.Option(min=1, help="Approximate number of logged decisions.")] = 10_000_000,
    postgresql: Annotated[bool, typer.Option(help="In a PostgreSQL of its own instead of SQLite.")] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Times that each filter is asked.")] = 3,
    folder: Annotated[Path | None, typer.Option(help="Where the files are made; default: a temporary folder.")] = None,
) -> dict[str, Any]:
    """Measure: per filter the slowest single answer, how many answers, and all of them together."""
    with tempfile.TemporaryDirectory(dir=folder) as made, contextlib.ExitStack() as stack:
        url = stack.enter_context(temporary_postgres()) if postgresql else f"sqlite:///{made}/bothost.db"
        settings = StoreSettings(url=url)
        schema.upgrade(settings)
        begin = time.perf_counter()
        hands = fill(settings, decisions // PER_HAND)
        filling_s = time.perf_counter() - begin
        with (
            serving(Path(made), url) as address,
            httpx.Client(base_url=address, timeout=60.0, trust_env=False) as client,
        ):
            client.get("/api/session").raise_for_status()
            asked = {name: ask(client, filters, repeats) for name, filters in FILTERS.items()}
            asked["everything, from the middle"] = ask(client, {}, repeats, before=_middle())
        size = 0 if postgresql else os.path.getsize(f"{made}/bothost.db")
    return {
        "database": "PostgreSQL" if postgresql else "SQLite",
        "hands": hands,
        "decisions": hands * PER_HAND,
        "database_mb": size // 10**6 or None,
        "filling_s": round(filling_s),
        "slowest_answer_ms": max(figures["slowest_answer_ms"] for figures in asked.values()),
        "filters": asked,
    }


START_US = 1_735_689_600_000_000
"""2025-01-01, UTC."""


def _middle() -> str:
    return f"{((START_US + YEAR_US // 2) // 1000).to_bytes(6, 'big').hex()}{'0' * 20}-0"


def fill(settings: StoreSettings, hands: int) -> int:
    """Write the hands, the oldest first, spread over a year. Returns how many."""
    rng = random.Random(1)
    templates = [_template(rng) for _ in range(TEMPLATES)]
    sink = make_sink(settings)
    try:
        for at in range(0, hands, AT_ONCE):
            rows: tuple[list[Sequence[Any]], ...] = ([], [], [])
            for number in range(at, min(hands, at + AT_ONCE)):
                _copy(rng, rng.choice(templates), START_US + number * YEAR_US // hands, rows)
            names = ("games", "game_ends", "decisions")
            sink.write([(name, COLUMNS[name], some) for name, some in zip(names, rows, strict=True)], wait_ms=60_000)
    finally:
        sink.close()
    return hands


_Template = tuple[tuple[Any, ...], tuple[Any, ...], list[tuple[Any, ...]]]


def _template(rng: random.Random) -> _Template:
    """The rows of one hand: its start, its end, its decisions."""
    rows = sample_hand(rng, decisions=PER_HAND)
    (game,) = (row for row in rows if isinstance(row, GameRecord))
    (end,) = (row for row in rows if isinstance(row, GameEndRecord))
    made = [row for row in rows if isinstance(row, DecisionRecord)]
    game.game, game.strategy = rng.choice(GAMES), rng.choice(STRATEGIES)
    end.scores = rng.choice(("[2.0,-1.0,-1.0]", "[-2.0,1.0,1.0]"))
    for decision in made:
        decision.game, decision.strategy = game.game, game.strategy
        decision.fallback = "late" if rng.random() < RARE else None
    return msgspec.structs.astuple(game), msgspec.structs.astuple(end), [msgspec.structs.astuple(row) for row in made]


def _copy(rng: random.Random, template: _Template, at_us: int, rows: tuple[list[Sequence[Any]], ...]) -> None:
    """Append a hand to the rows of the three tables, under new ids and at another time."""
    game, end, made = template
    ms = at_us // 1000
    game_id = uuid7(ms, rng)
    rows[0].append((game_id, *game[1:-1], at_us))
    rows[1].append((game_id, *end[1:4], at_us + 60_000_000, *end[5:]))
    rows[2].extend((uuid7(ms, rng), game_id, *decision[2:-1], at_us) for decision in made)


def ask(client: httpx.Client, filters: dict[str, str], repeats: int, before: str | None = None) -> dict[str, Any]:
    """Ask for one page of hands, in as many answers as it takes. The medians of the repeats."""
    runs = [[(1000 * s, n) for s, n in _answers(client, filters, before)] for _ in range(repeats)]
    return {
        "hands": sum(count for _, count in runs[0]),
        "answers": round(statistics.median(len(run) for run in runs)),
        "first_answer_ms": round(statistics.median(run[0][0] for run in runs)),
        "slowest_answer_ms": round(statistics.median(max(ms for ms, _ in run) for run in runs)),
        "all_ms": round(statistics.median(sum(ms for ms, _ in run) for run in runs)),
    }


def _answers(client: httpx.Client, filters: dict[str, str], before: str | None) -> Iterator[tuple[float, int]]:
    """Seconds and hands of each answer until the page is full or the log is searched."""
    while True:
        begin = time.perf_counter()
        answer = client.get("/api/hands", params=filters if before is None else {**filters, "before": before})
        taken = time.perf_counter() - begin
        found = answer.raise_for_status().json()
        yield taken, len(found["hands"])
        before = found["next"]
        if found["full"] or before is None:
            return
