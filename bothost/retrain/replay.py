"""Replay logged decisions: with the same model, bit for bit, or with another model, for comparison.

The view is rebuilt by folding the logged events of the seat. Its bytes, hash and encoder blocks are compared with the
logged view. Then the strategy, with the logged model and seed, decides every position of the hand in order, so that
players with state have the same state.

Views, encodings and outputs of ONNX Runtime are equal bit for bit on one type of CPU. A search is repeated exactly if
it ran in one thread with an iteration limit, or if its player can repeat it from its logged statistics
(``Player.replay``). A time-limited search may differ, and the result says so.
"""

from __future__ import annotations

import heapq
import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import numpy as np

from bothost.errors import BothostError, ModelError, PluginError, StoreError, UsageError
from bothost.plugins import Plugins, Resolved, evaluators_of, require, settle, weights
from bothost.plugins.address import EXEC
from bothost.rules.game import ActionArray, Game, View
from bothost.store.logged_games import GameCache
from bothost.store.reader import Timeline, iter_views
from bothost.store.records import IMPORTED, DecisionRecord
from bothost.store.registry import Registry
from bothost.strategy import Budget, Decision, Model, Strategy, Table
from bothost.tables.fallback import checked

Json = dict[str, Any]


class ReplayedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A decision: the logged one, or the replayed one."""

    action: int
    notation: str
    policy: tuple[float, ...] | None
    values: tuple[float, ...] | None
    value: float | None
    reasons: Any = None
    """``stats["reasons"]`` of the decision, if there are any."""


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """One replayed decision."""

    id: str
    game_id: str
    seat: int
    seq: int
    substep: int
    attempt: int
    phase: str
    strategy: str
    model_sha256: str | None
    fallback: str | None
    legal: tuple[int, ...]
    logged: ReplayedDecision
    again: ReplayedDecision | None
    """None: not replayed; ``note`` says why."""
    view_exact: bool
    """Whether folding the events gave exactly the logged view, hash and encodings."""
    differences: tuple[str, ...]
    """Names of the fields that differ from the logged ones."""
    distance: float | None
    """Total variation distance of the two policies; without policies, 1 if the actions differ, else 0."""
    note: str = ""

    @property
    def exact(self) -> bool:
        return self.view_exact and self.again is not None and not self.differences


_COPIED = ("seat", "seq", "substep", "attempt", "phase", "strategy", "model_sha256", "fallback")
"""Fields of ``Replayed`` that are those of the logged row."""


class Replayer:
    """Replays logged decisions. Makes each strategy once per model."""

    def __init__(
        self,
        plugins: Plugins,
        registry: Registry | None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """``options``: strategy → its options, which the log does not hold."""
        self._plugins = plugins
        self._registry = registry
        self._options = options or {}
        self._games = GameCache()
        self._made: dict[tuple[str, str | None], Strategy] = {}

    def close(self) -> None:
        for strategy in self._made.values():
            strategy.close()

    def hand(self, timeline: Timeline, other: str | None = None) -> Iterator[Replayed]:
        """Replay the live decisions of a hand. ``other``: address of the model to use instead of the logged one.

        Raises BothostError if a strategy or its model is not available.
        """
        record = timeline.hand.game
        game = self._games.get(record.game, record.rules)
        if game is None:
            advice = "install its plugin: see bothost plugin list"
            raise StoreError(f"the game {record.game} of this hand cannot be loaded", advice=advice)
        live = [decision for decision in timeline.decisions if decision.role == "live"]
        part = Timeline(timeline.hand, live, timeline.events, timeline.snapshots, timeline.outcomes)
        attributes = json.loads(record.attributes)
        table = Table(
            lobby=record.lobby,
            table=record.table,
            game=game,
            seat=record.seat,
            seed=record.seed,
            level=attributes.pop("strategy_level", None),
            attributes=attributes,
        )
        players: dict[tuple[str, str | None], _Seated] = {}
        for row, view, folded in _views(game, part):
            name = other if other is not None else row.strategy
            sha256 = row.model_sha256 if other is None else None
            note = "" if other is not None else self._not_asked(row)
            legal = _without_refused(view.legal(), row, part)
            again = None
            if not note:
                strategy = self._strategy(name, sha256)
                if not strategy.supports(game):
                    raise UsageError(f"{name} does not play {game.name}", advice="see bothost plugin list")
                player = players.get((name, sha256))
                if player is None:
                    player = players[name, sha256] = _Seated(strategy, table, part)
                again = player.asked(view, legal, row)
            yield _compared(game, row, view, legal, folded, again, other is not None, note)
        for player in players.values():
            player.close()

    def disagreements(
        self, timelines: Iterable[Timeline], other: str, most: int, progress: Callable[[int], None]
    ) -> tuple[Json, list[Replayed]]:
        """Find where ``other`` differs most from the logged decisions. Returns figures and the ``most`` farthest.

        Hands of games that it does not play, or that are not installed, are skipped.
        """
        strategy = self._strategy(other, None)  # an unknown model is an error even if the log is empty
        farthest: list[tuple[float, int, Replayed]] = []
        asked = same = 0
        total = 0.0
        for count, timeline in enumerate(timelines, 1):
            record = timeline.hand.game
            game = self._games.get(record.game, record.rules)
            for found in self.hand(timeline, other) if game is not None and strategy.supports(game) else ():
                if found.again is None or found.distance is None or found.fallback is not None:
                    continue
                asked += 1
                same += found.again.action == found.logged.action
                total += found.distance
                if found.distance > 0.0:
                    heapq.heappush(farthest, (found.distance, asked, found))
                if len(farthest) > most:
                    heapq.heappop(farthest)
            progress(count)
        figures = {
            "decisions": asked,
            "same_action": same / asked if asked else None,
            "mean_distance": total / asked if asked else None,
        }
        return figures, [found for _, _, found in sorted(farthest, key=lambda item: (-item[0], item[1]))]

    def _not_asked(self, row: DecisionRecord) -> str:
        """Why the strategy of this row is not asked again; empty if it is."""
        if row.strategy == IMPORTED:
            return "imported: use --model to see what one of your strategies would have done"
        if row.fallback is not None:
            return f"a fallback ({row.fallback}): use --model to see what its strategy would have done"
        name, _, _ = row.strategy.partition(":")
        if name == EXEC:  # a command that stands in the log all the same was planted there
            return "of a program, whose command is not logged: use --model exec:COMMAND"
        strategy = self._plugins.strategies.get(name)
        if strategy is not None and not strategy.deterministic:
            return f"{row.strategy} may decide differently each time: use --model {row.strategy} to ask it again"
        return ""

    def _strategy(self, name: str, sha256: str | None) -> Strategy:
        """Make the strategy with the model of this sha256; None: with the model that the address names."""
        made = self._made.get((name, sha256))
        if made is None:
            options = self._options.get(name.partition(":")[0], {})
            if sha256 is None:
                resolved = self._plugins.resolve(name, options)
            else:
                cls = require(self._plugins, self._plugins.strategies, "strategy", name)
                model = self._model(cls, sha256)
                settled = settle(cls, model, options)
                evaluators = evaluators_of(self._plugins, cls, settled)
                resolved = Resolved(name, cls, settled, model, evaluators=evaluators)
            made = self._made[name, sha256] = resolved.make()
        return made

    def _model(self, strategy: type[Strategy], sha256: str) -> Model:
        if self._registry is not None and (known := self._registry.of_sha256(sha256)) is not None:
            return self._registry.model(known)
        if (packaged := weights.of_sha256(strategy, sha256)) is not None:
            return packaged
        raise ModelError(
            f"the model {sha256[:12]} of {strategy.name} is neither in the registry nor in the package",
            advice="import it with bothost model import, or use another one with --model NAME:VERSION",
        )


def _views(game: Game, timeline: Timeline) -> Iterator[tuple[DecisionRecord, View, View | None]]:
    """Yield (row, logged view, view folded from the events); the last is None after a gap in the log."""
    folded = _folded(game, timeline)
    for row in timeline.decisions:
        try:
            view = game.view_from_bytes(row.view)
        except ValueError as error:
            raise StoreError(f"the view of decision {row.id.hex()} cannot be decoded: {error}") from error
        yield row, view, next(folded, None)


def _folded(game: Game, timeline: Timeline) -> Iterator[View]:
    with suppress(StoreError, ValueError):  # a gap: no later view can be folded
        for _, view in iter_views(game, timeline):
            yield view


def _events(timeline: Timeline) -> Iterator[tuple[int, str]]:
    """The events of the seat by number. After a gap in the log some are missing."""
    for stretch in timeline.events:
        yield from enumerate(stretch.events.split("\n") if stretch.events else (), stretch.seq)


def _without_refused(legal: ActionArray, row: DecisionRecord, timeline: Timeline) -> ActionArray:
    """The actions that a player was given: a lobby had refused the others at this position."""
    if not row.attempt or row.substep:
        return legal
    refused = [
        earlier.action
        for earlier in timeline.decisions
        if (earlier.seq, earlier.substep) == (row.seq, 0)
        and earlier.attempt < row.attempt
        and any(outcome.kind == "rejected" for outcome in timeline.outcomes.get(earlier.id, ()))
    ]
    return legal[~np.isin(legal, refused)]


def _stats(row: DecisionRecord) -> Json:
    stats = {} if row.stats is None else json.loads(row.stats)
    return stats if isinstance(stats, dict) else {}


class _Seated:
    """A player that decides the positions of a logged hand again."""

    def __init__(self, strategy: Strategy, table: Table, timeline: Timeline) -> None:
        self._strategy = strategy
        with _blamed(strategy):
            self._player = strategy.player(table)
        self._news = deque(_events(timeline) if strategy.wants_events else ())

    def asked(self, view: View, legal: ActionArray, row: DecisionRecord) -> ReplayedDecision:
        """Decide as for this row. Raises PluginError for whatever the strategy raises."""
        with _blamed(self._strategy):
            news = []
            while self._news and self._news[0][0] < row.seq:
                news.append(self._news.popleft()[1])
            if news:
                self._player.observe(news)
            decision = checked(self._decided(view, legal, row))
            action = int(decision.action)
            return ReplayedDecision(
                action=action,
                notation=view.notation(action) if view.is_legal(action) else str(action),
                policy=_floats(decision.policy),
                values=_floats(decision.values),
                value=None if decision.value is None else float(decision.value),
                reasons=decision.stats.get("reasons") if isinstance(decision.stats, Mapping) else None,
            )

    def _decided(self, view: View, legal: ActionArray, row: DecisionRecord) -> Decision:
        stats = _stats(row)
        decision = self._player.replay(view.clone(), legal, stats) if stats else None
        if decision is not None:
            return decision
        grant = math.inf if row.budget_ms is None else row.budget_ms / 1000.0
        return self._player.decide(view.clone(), legal, Budget(time.monotonic() + grant))

    def close(self) -> None:
        with _blamed(self._strategy):
            self._player.close()


@contextmanager
def _blamed(strategy: Strategy) -> Iterator[None]:
    """Whatever the code of a strategy raises becomes a PluginError, which names the strategy."""
    try:
        yield
    except (BothostError, KeyboardInterrupt):
        raise
    except BaseException as error:  # also what a panic of a Rust extension raises
        raise PluginError(strategy.name, f"{type(error).__name__}: {error}") from error


def _compared(
    game: Game,
    row: DecisionRecord,
    view: View,
    legal: ActionArray,
    folded: View | None,
    again: ReplayedDecision | None,
    other: bool,
    note: str,
) -> Replayed:
    logged = ReplayedDecision(
        action=row.action,
        notation=row.notation,
        policy=_floats(None if row.policy is None else np.frombuffer(row.policy, "<f4")),
        values=_floats(None if row.action_values is None else np.frombuffer(row.action_values, "<f4")),
        value=row.value,
        reasons=_stats(row).get("reasons"),
    )
    exact = folded is not None and folded.to_bytes() == row.view and folded.hash() == row.state_hash
    exact = exact and folded is not None and _same_encodings(game, view, folded)
    names = ("action", "policy", "values", "value")
    differences = () if again is None else tuple(n for n in names if getattr(again, n) != getattr(logged, n))
    return Replayed(
        id=row.id.hex(),
        game_id=row.game_id.hex(),
        **{name: getattr(row, name) for name in _COPIED},
        legal=tuple(np.frombuffer(row.legal, "<i4").tolist()),
        logged=logged,
        again=again,
        view_exact=exact and legal.astype("<i4").tobytes() == row.legal,
        differences=differences,
        distance=None if again is None else _distance(logged, again),
        note=note,
    )


def _same_encodings(game: Game, one: View, other: View) -> bool:
    """Whether all blocks that encode a view are equal, bit for bit."""
    names = [name for name, block in game.blocks.items() if block.of == "view"]
    return all(one.encode(name).tobytes() == other.encode(name).tobytes() for name in names)


def _distance(logged: ReplayedDecision, again: ReplayedDecision) -> float:
    if logged.policy is None or again.policy is None or len(logged.policy) != len(again.policy):
        return float(logged.action != again.action)
    return float(np.abs(np.subtract(logged.policy, again.policy)).sum() / 2)


def _floats(values: Any) -> tuple[float, ...] | None:
    """Convert to float32 precision, as in the log."""
    return None if values is None else tuple(np.asarray(values, "<f4").astype(float).tolist())
