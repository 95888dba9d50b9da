"""Another strategy's opinion of a logged hand: each decision is asked again, and the played action is compared.

A seat's view is rebuilt from the revealed deal, so people's decisions are reviewed, too. Nothing is asked that has only
one legal action.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from typing import Literal

import msgspec
import numpy as np

from bothost.errors import ANY_FAILURE, BothostError, PluginError, StoreError, UsageError
from bothost.host.process import START_S, ProcessLimits, ProcessStrategy
from bothost.host.strategy_thread import StrategyThread
from bothost.plugins import Plugins, Resolved
from bothost.rules.game import ActionArray, Game, Json, View
from bothost.store.reader import Timeline, iter_views
from bothost.store.rebuild import moves_of
from bothost.strategy import Budget, Decision, Player, Strategy, Table
from bothost.tables.fallback import checked
from bothost.web.hands import visits_of
from bothost.web.site import Site
from bothost.web.viewers import Viewer

Severity = Literal["inaccuracy", "mistake", "blunder"]
SEVERITIES: tuple[Severity, ...] = ("inaccuracy", "mistake", "blunder")
DECISION_S = 2.0
"""Most time that a reviewer may take for one decision."""
HANGS_S = START_S + 10.0
"""A strategy that takes this long to start and decide hangs."""
MOST_REASON = 2000
"""Characters of a reason that a page gets."""
AT_ONCE = 2
"""Reviews that run at the same time, each of another viewer; more wait."""

WIN_SCALE = (0.1, 0.2, 0.3)
"""Thresholds for values from -1 (lost) to 1 (won): those of Lichess."""
THRESHOLDS: dict[str, tuple[float, float, float]] = {
    "doudizhu": WIN_SCALE,
    "othello": WIN_SCALE,
    "mahjong": (2.0, 5.0, 10.0),
    "pairing": (3.0, 5.0, 8.0),
}
"""Game → value lost from which a move is an inaccuracy, a mistake, a blunder. Mahjong and pairing count points."""
LIKELIER = (0.5, 0.75, 0.95)
"""The same for reviewers without values: by how much the best action is likelier than the played one."""
OF_PROBABILITY: dict[str, tuple[float, float, float]] = {"mahjong": (0.85, 0.95, 0.99)}
"""Game → the same, where it was calibrated: reviewers of mahjong are sure of most tiles."""


class Question(msgspec.Struct, frozen=True):
    """One decision of a seat, with the view before it."""

    position: int
    """Number of the position in the replay of the hand."""
    view: View
    legal: ActionArray
    action: int
    """The played action."""


def limits_of(game: str, measure: str | None) -> tuple[float, float, float]:
    """From which loss a move is an inaccuracy, a mistake, a blunder."""
    if measure == "probability":
        return OF_PROBABILITY.get(game, LIKELIER)
    return THRESHOLDS.get(game, WIN_SCALE)


def severity(lost: float, thresholds: tuple[float, float, float]) -> Severity | None:
    """How bad a loss is; None where it is small."""
    found = None
    for name, least in zip(SEVERITIES, thresholds, strict=True):
        if lost >= least - 1e-9:
            found = name
    return found


def reviewers(plugins: Plugins, game: Game) -> list[Json]:
    """The strategies that a browser may choose for this game: all that need no options, as external programs do."""
    return [
        {"name": name, "levels": list(strategy.levels)}
        for name, strategy in sorted(plugins.strategies.items())
        if _supports(strategy, game) and not any(field.required for field in msgspec.structs.fields(strategy.Options))
    ]


def _supports(strategy: type[Strategy], game: Game) -> bool:
    try:
        return strategy.supports(game)
    except ANY_FAILURE:  # a bug in the plugin: the others can be chosen all the same
        return False


def installed(plugins: Plugins, game: Game, address: str) -> str:
    """The address, checked: a browser names installed strategies only. Raises UsageError."""
    names = [reviewer["name"] for reviewer in reviewers(plugins, game)]
    if address.partition(":")[0] not in names:
        raise UsageError(f"{address[:80]!r} does not play {game.name} here", advice=f"choose one of {', '.join(names)}")
    return address


def questions(game: Game, timeline: Timeline) -> list[Question]:
    """The decisions of all seats where the hand was revealed, else those of our seat. Raises StoreError."""
    seat = timeline.hand.game.seat
    lines = timeline.lines()
    try:
        found = [
            Question(number, move.view, move.legal, move.action)
            for number, move in enumerate(moves_of(game, seat, lines))
        ]
    except ValueError:
        found = []  # a lobby whose rules differ in a detail: our own seat's views are still exact
    if found:
        return found
    own = ((row, view.clone()) for row, view in iter_views(game, timeline) if row.role == "live")
    return [Question(number, view, view.legal(), row.action) for number, (row, view) in enumerate(own)]


def reviewed(site: Site, timeline: Timeline, address: str, seat: int | None) -> Iterator[Json]:
    """Progress and judgements, one message a decision, the last with ``over``. ``seat``: only its decisions.

    Raises BothostError where the hand or the strategy cannot be used.
    """
    record = timeline.hand.game
    game = site.game(record.game, record.rules)
    if game is None:
        raise StoreError(f"the game {record.game} is not installed here")
    address = installed(site.plugins, game, address)
    asked = [q for q in questions(game, timeline) if len(q.legal) > 1 and seat in (None, q.view.seat)]
    yield {"of": len(asked)}
    with blaming(address), contextlib.ExitStack() as opened:
        strategy = adviser(site, address)
        opened.callback(strategy.close)
        players: dict[int, Player] = {}
        for done, question in enumerate(asked, 1):
            here = question.view.seat
            if here not in players:
                table = Table(lobby=record.lobby, table=record.table, game=game, seat=here, seed=record.seed)
                players[here] = strategy.player(table)
                opened.callback(players[here].close)
            yield {"done": done, "of": len(asked), "judged": _judged(players[here], question, record.game)}
        yield {"over": True, "of": len(asked)}


def reviewing(plugins: Plugins, address: str) -> Resolved:
    """What the address of a reviewer or an adviser stands for, with the options that the strategy has for them."""
    found = plugins.resolve(address)
    more = found.strategy.review_options
    return plugins.resolve(address, more) if more else found


def adviser(site: Site, address: str) -> Strategy:
    """An instance of the strategy, in a process if that is how it runs: this process may be the host's."""
    resolved = reviewing(site.plugins, address)
    if resolved.strategy.execution != "process":
        return resolved.make()
    settings = site.settings
    limits = ProcessLimits(settings.limits.process_memory_mb << 20, settings.host.plugins_dir)
    return ProcessStrategy(resolved, limits)


@contextlib.contextmanager
def blaming(address: str) -> Iterator[None]:
    """Whatever the code of a strategy raises becomes a PluginError, which names the strategy."""
    try:
        yield
    except (BothostError, GeneratorExit):
        raise
    except BaseException as error:  # also what a panic of a Rust extension raises
        raise PluginError(address, f"{type(error).__name__}: {error}"[:300]) from error


def decision_of(player: Player, view: View, legal: ActionArray, seconds: float) -> Decision:
    """What a strategy decides within that time. Raises what its code raises, TypeError or ValueError for nonsense."""
    decision = checked(player.decide(view.clone(), legal, Budget(time.monotonic() + seconds)), legal)
    for name, shape in (("policy", legal.shape), ("values", legal.shape), ("value", ())):
        given = getattr(decision, name)
        if given is not None and (np.shape(given) != shape or not np.isfinite(given).all()):
            raise ValueError(f"Decision.{name} is not finite, or does not fit {len(legal)} legal actions")
    return decision


def _judged(player: Player, question: Question, game: str) -> Json:
    started = time.monotonic()
    decision = decision_of(player, question.view, question.legal, DECISION_S)
    elapsed_ms = 1000 * (time.monotonic() - started)
    measure, lost = value_lost(decision, question.legal, question.action)
    return {
        "position": question.position,
        "seat": question.view.seat,
        "measure": measure,
        "lost": lost,
        "severity": None if lost is None else severity(lost, limits_of(game, measure)),
        "best": question.view.notation(int(decision.action)),
        "played": question.view.notation(question.action),
        **opinion(decision, question.view, question.legal, question.action),
        "elapsed_ms": elapsed_ms,
    }


def value_lost(decision: Decision, legal: ActionArray, played: int) -> tuple[str | None, float | None]:
    """What the loss is measured in, and how much the played action is worse than the reviewer's choice."""
    weights, measure = decision.values, "value"
    if weights is None:
        weights, measure = decision.policy, "probability"
    places = np.flatnonzero(legal == played)
    if weights is None or len(weights) != len(legal) or not len(places):
        return None, None
    chosen = int(np.flatnonzero(legal == decision.action)[0])
    return measure, max(0.0, float(weights[chosen]) - float(weights[int(places[0])]))


def opinion(decision: Decision, view: View, legal: ActionArray, chosen: int | None = None) -> Json:
    """What a strategy thinks of the legal actions, the best first. ``chosen``: the action to mark; default: its own."""
    marked = int(decision.action) if chosen is None else chosen
    stats = dict(decision.stats or {})
    visits = visits_of(stats.get("candidates"))
    rows = []
    for i, action in enumerate(legal.tolist()):
        notation = view.notation(action)
        rows.append(
            {
                "action": action,
                "notation": notation,
                "probability": None if decision.policy is None else float(decision.policy[i]),
                "value": None if decision.values is None else float(decision.values[i]),
                "visits": visits.get(notation),
                "chosen": action == marked,
                "best": action == int(decision.action),
            }
        )
    rows.sort(key=lambda row: (not row["best"], -(row["probability"] or 0.0), -(row["value"] or 0.0)))
    value, reason = decision.value, stats.get("reason")
    return {
        "actions": rows,
        "value": None if value is None else float(value),
        "reason": None if reason is None else str(reason)[:MOST_REASON],
    }


class Reviews:
    """Runs reviews in threads, a few at a time."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._room = asyncio.Semaphore(AT_ONCE)

    async def run(self, viewer: Viewer, timeline: Timeline, address: str, seat: int | None) -> AsyncIterator[Json]:
        """The messages of ``reviewed``, after ``waits`` if others come first; ends early when the browser leaves."""
        if viewer.reviewing.locked() or self._room.locked():
            yield {"waits": True}
        async with viewer.reviewing, self._room:
            messages = reviewed(self._site, timeline, address, seat)
            with contextlib.closing(StrategyThread(f"strategy {address}")) as thread:
                while (message := await thread.call(address, HANGS_S, lambda: next(messages, None))) is not None:
                    yield message
