"""The live view of ``bothost demo``: tables with their last moves, and scores by game and strategy.

Everything is read from the log.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
import sqlalchemy as sa

from bothost.cli.output import counted, printable
from bothost.cli.output import table as aligned
from bothost.messages import Json
from bothost.store.models import decisions
from bothost.store.query import HandQuery, first_id
from bothost.store.reader import Key, LoggedHand, iter_hands
from bothost.tables.router import Router
from bothost.training.statistics import mean_ci95
from bothost.web.hands import seat_names

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from bothost.config import RouteSettings
    from bothost.plugins import Plugins
    from bothost.store import Store

WINDOW_US = 300_000_000
"""How far back a refresh looks for hands. The last one reads all."""
MOVES = 8
"""Number of last moves kept per table."""
TABLES = 12
"""Most tables shown."""
SCORES = ("GAME", "STRATEGY", "HANDS", "MEAN SCORE", "95 % INTERVAL")
"""Header of the scores."""


class LiveTable(msgspec.Struct):
    """A hand that is being played. Several of our accounts may sit at it."""

    game: str
    names: list[str]
    moves: deque[str]
    started_us: int


class Board:
    """Live tables and scores of the hands that started since ``since_us``."""

    def __init__(self, store: Store, routes: Sequence[RouteSettings], plugins: Plugins, *, since_us: int) -> None:
        self._store = store
        self._router = Router(routes, plugins.strategies.__contains__)
        self._since_us = since_us
        self._counted: set[Key] = set()
        self._seen = first_id(since_us)
        """Id of the newest decision that was read."""
        self._results: dict[tuple[str, str], list[float]] = {}
        """(game, strategy) → the scores of its hands."""
        self._finished: set[tuple[str, str, str]] = set()
        self.tables: dict[tuple[str, str, str], LiveTable] = {}

    @property
    def finished(self) -> int:
        """Number of hands that ended with a score. Several seats of ours at one hand count once."""
        return len(self._finished)

    def read(self, *, everything: bool = False) -> None:
        """Read new rows of the log."""
        recent_us = time.time_ns() // 1000 - WINDOW_US
        since_us = self._since_us if everything else max(self._since_us, recent_us)
        hands = list(iter_hands(self._store, HandQuery(since_us=since_us)))
        for hand in hands:
            if hand.end is not None and hand.key not in self._counted:
                self._count(hand)
        live = {hand.key: _place(hand) for hand in hands if hand.end is None}
        for hand in hands:
            if hand.end is None and _place(hand) not in self.tables:
                names = list(map(printable, seat_names(hand, None)))
                self.tables[_place(hand)] = LiveTable(hand.game.game, names, deque(maxlen=MOVES), hand.game.started_us)
        self.tables = {place: self.tables[place] for place in dict.fromkeys(live.values())}
        self._read_moves(live)

    def _count(self, hand: LoggedHand) -> None:
        self._counted.add(hand.key)
        score, game = hand.score, hand.game
        if score is None:
            return
        self._finished.add(_place(hand))
        choice = self._router.choose(game.lobby, game.account, game.game, json.loads(game.attributes))
        address = game.strategy if choice is None or not choice.strategy.startswith(game.strategy) else choice.strategy
        self._results.setdefault((game.game, address), []).append(score)

    def _read_moves(self, live: dict[Key, tuple[str, str, str]]) -> None:
        d = decisions.c
        statement = sa.select(d.id, d.game_id, d.seat, d.notation).where(d.id > self._seen, d.role == "live")
        with self._store.begin() as connection:
            for number, game_id, seat, notation in connection.execute(statement.order_by(d.id)):
                self._seen = number
                if (place := live.get((game_id, seat))) is not None:
                    table = self.tables[place]
                    name = table.names[seat] if seat < len(table.names) else f"seat {seat}"
                    table.moves.append(f"{name} {notation}")

    def scores(self) -> list[Json]:
        """By game and strategy, the best first: hands, mean score and its 95 % interval, where it is known."""
        found: list[Json] = []
        for (game, strategy), scores in self._results.items():
            mean, ci95 = mean_ci95(scores)
            played: Json = {"game": game, "strategy": strategy, "hands": len(scores)}
            found.append({**played, "mean_score": mean, "ci95": ci95 and list(ci95)})
        return sorted(found, key=lambda item: (item["game"], -item["mean_score"]))


def _place(hand: LoggedHand) -> tuple[str, str, str]:
    return hand.game.lobby, hand.game.table, hand.game.hand


def score_rows(scores: Sequence[Json]) -> list[tuple[str, ...]]:
    """Rows of a table for people: game, strategy, hands, mean score, 95 % interval."""
    return [
        (
            item["game"],
            item["strategy"],
            str(item["hands"]),
            f"{item['mean_score']:+.2f}",
            "" if item["ci95"] is None else f"{item['ci95'][0]:+.2f} to {item['ci95'][1]:+.2f}",
        )
        for item in scores
    ]


def one_line(board: Board, status: Json, rate: float) -> str:
    """A host's status in one line."""
    fallbacks = sum(status["fallbacks"].values())
    return (
        f"{counted(status['tables'], 'table')}, {counted(status['decisions'], 'decision')} "
        f"({rate:.0f}/s), {counted(board.finished, 'finished hand')}, {counted(fallbacks, 'fallback')}"
    )


@contextmanager
def live_view() -> Iterator[Callable[[Board, Json, float, str | None], None]]:
    """Open a view on the terminal. Yields a function that redraws it."""
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=4, transient=True) as live:
        yield lambda board, status, rate, pages: live.update(render(board, status, rate, pages))


def render(board: Board, status: Json, rate: float, pages: str | None) -> RenderableType:
    """Tables with their last moves, scores, and what is wrong with an account."""
    from rich.console import Group
    from rich.text import Text

    head = Text(one_line(board, status, rate), style="bold")
    if status["draining"]:
        head.append("  finishing open hands; Ctrl-C again stops at once", style="yellow")
    problems = [
        Text(printable(f"{account['lobby']}/{account['account']}: {account['problem']}"), style="red")
        for account in status["accounts"]
        if not account["connected"] and account["problem"]
    ]
    scores = aligned(score_rows(board.scores()), SCORES)
    foot = "Ctrl-C ends the demo" if pages is None else f"In the browser: {pages}   Ctrl-C ends the demo"
    return Group(
        head, *problems, Text(), _tables(board), Text(), Text(scores, no_wrap=True), Text(), Text(foot, style="dim")
    )


def _tables(board: Board) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("game", "players", "last moves", box=None, header_style="dim", expand=True)
    for column, ratio in zip(table.columns, (None, 3, 5), strict=True):  # the game is never cut
        column.ratio, column.no_wrap, column.overflow = ratio, True, "ellipsis"
    shown = sorted(board.tables.values(), key=lambda one: (one.game, one.started_us))
    for one in shown[:TABLES]:
        # The newest move first: what does not fit is old.
        moves = Text("  ").join(Text(printable(move)) for move in reversed(one.moves))
        table.add_row(Text(one.game), Text(", ".join(one.names)), moves)
    if len(shown) > TABLES:
        table.add_row(Text(f"{len(shown) - TABLES} more", style="dim"), "", "")
    return table
