"""What :mod:`bothost.testing.check_strategy` asks of a strategy, one function per question.

Each returns a remark, or raises :class:`Broken` with what is wrong and what to do. All calls of the strategy go
through :class:`Run`, which keeps the time and turns exceptions into findings.
"""

from __future__ import annotations

import gc
import os
import random
import statistics
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from bothost import Budget, Decision, Evaluator, Player, Request, Strategy, Table
from bothost.children import resident_bytes
from bothost.errors import BothostError, GameNotPlayed, described, raised_at
from bothost.plugins import Resolved
from bothost.rules import ActionArray, Game, View
from bothost.strategy import IS_ASYNC, MAX_STATS_BYTES, decide_all, is_async
from bothost.tables.fallback import checked
from bothost.testing.game_laws import LONGEST_HAND

QUICK_MS = 5.0
"""What ``Player.quick`` may take: processor time at the median, and by the clock at its fastest."""
TOO_LATE = 3
"""Late decisions after which the rest is not played."""
LEAK_MB = 64.0
"""Growth of the process while hands are played that counts as a leak."""
_GIVEN_UP = "a host plays a fallback move for this, and gives the strategy up soon"

_Path = list[tuple[int, int]]


class Broken(Exception):
    """A law does not hold."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class Run(msgspec.Struct):
    """Calls the strategy in hands of one game, and keeps the figures."""

    resolved: Resolved
    game: Game
    seed: int
    budget_ms: float
    hands: int = 0
    decisions: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    late: int = 0
    quick_ms: list[tuple[float, float]] = []
    """Processor time of the thread and time by the clock of each call that gave an answer."""
    call_started: float | None = None
    """Monotonic time at which the call in progress started. A watchdog reads it."""
    calling: str = ""
    given_up: bool = False
    """Set by the watchdog: a call that comes back after all is the last."""

    def call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """``function(*arguments)``; an exception is a broken law, with the line that raised it, or GameNotPlayed."""
        self.calling, self.call_started = what, time.monotonic()
        try:
            made = function(*arguments)
        except GameNotPlayed:
            raise
        except BothostError as error:  # it says what is wrong, and where
            raise Broken(f"{what}: {error}", error.advice or _GIVEN_UP) from error
        except BaseException as error:  # also what a panic of a Rust extension raises
            at = raised_at(error, self.resolved.strategy.__module__)
            raise Broken(f"{what} raised {described(error)}{f' ({at})' if at else ''}", _GIVEN_UP) from error
        finally:
            self.call_started = None
            if self.given_up:
                raise Broken(f"{what} came back too late")
        if is_async(made):
            raise Broken(f"{what} {IS_ASYNC}")
        return made

    def make(self) -> Strategy:
        strategy: Strategy = self.call("the constructor", self.resolved.make)
        return strategy

    def player(self, strategy: Strategy, seat: int, hand: int, name: str) -> Player:
        """Make a player for a seat and hand. ``name``: of the table."""
        seed = (self.seed + hand) * 16 + seat
        table = Table(lobby="check", table=name, game=self.game, seat=seat, seed=seed)
        made = self.call("player", strategy.player, table)
        if not isinstance(made, Player):
            what = f"the class {made.__name__}" if isinstance(made, type) else type(made).__name__
            raise Broken(f"player returned {what}", "return an instance of a subclass of bothost.Player")
        self.call("prepare", made.prepare)
        return made

    def decide(self, player: Player, view: View) -> Decision:
        """Ask for a decision as a host does, and check it, and that the view is as it was."""
        legal, before, references = view.legal(), view.hash(), sys.getrefcount(view)
        given = legal.copy()
        started = time.monotonic()
        budget = Budget(started + self.budget_ms / 1000.0)
        decision: Decision = self.call("decide", player.decide, view, given, budget)
        took = time.monotonic() - started
        self.decisions += 1
        self.seconds += took
        self.slowest = max(self.slowest, took)
        self.late += took * 1000.0 > self.budget_ms
        if self.late >= TOO_LATE:
            raise Broken(f"{self.late} decisions came late", "stop when budget.left_ms() runs out")
        if view.hash() != before:
            raise Broken("decide changed the view", "work on view.clone()")
        check_decision(decision, view, legal)
        if not np.array_equal(given, legal):
            raise Broken("decide changed the array of legal actions", "work on legal.copy()")
        if sys.getrefcount(view) > references and gc.collect() >= 0 and sys.getrefcount(view) > references:
            raise Broken("the view is kept after decide has returned", "keep view.clone(), or what you need of it")
        if before % 16 == 0:  # by the position, so that a hand played again asks at the same places
            self._quick(player, view, legal)
        elif before % 16 == 8 and len(legal) > 1:
            self._ask_again(player, view, legal[legal != decision.action])
        return decision

    def _ask_again(self, player: Player, view: View, left: ActionArray) -> None:
        """Ask as a host does after the lobby has refused an action: it is no longer among the legal ones."""
        budget = Budget(time.monotonic() + self.budget_ms / 1000.0)
        decision = self.call("decide", player.decide, view, left.copy(), budget)
        check_decision(decision, view, left, what="decide, asked again after a refused action,")

    def _quick(self, player: Player, view: View, legal: ActionArray) -> None:
        worked, started = time.thread_time(), time.monotonic()
        decision = self.call("quick", player.quick, view, legal.copy())
        if decision is not None:
            self.quick_ms.append(((time.thread_time() - worked) * 1000.0, (time.monotonic() - started) * 1000.0))
            check_decision(decision, view, legal, what="quick")


def check_decision(decision: Any, view: View, legal: ActionArray, *, what: str = "decide") -> None:
    """Raise Broken unless a host can use this decision, and log all of it."""
    try:
        checked(decision, what=what)
    except TypeError as error:
        raise Broken(str(error), "return bothost.Decision(action=…); see its fields in bothost/strategy.py") from error
    if type(decision.action) is not int:
        raise Broken(f"{what}: action has the type {type(decision.action).__name__}", "return action=int(…)")
    if decision.action not in legal:
        offered = ", ".join(view.notation(int(a)) for a in legal[:6]) + (", …" if len(legal) > 6 else "")
        message = f"{what} answered {decision.action} in phase {view.phase}; legal: {offered}"
        raise Broken(message, "choose from the legal array that decide receives")
    for name, shape in (("policy", legal.shape), ("values", legal.shape), ("value", ())):
        if getattr(decision, name) is not None:
            _check_numbers(getattr(decision, name), shape, f"{what}: {name}")
    if decision.policy is not None:
        policy = np.asarray(decision.policy, np.float64)
        wrong = "has negative probabilities" if (policy < 0).any() else f"sums to {policy.sum():.4f}"
        if (policy < 0).any() or abs(policy.sum() - 1.0) > 1e-3:
            raise Broken(f"{what}: the policy {wrong}", "normalise it over the legal actions")
    try:
        stats = msgspec.json.encode(decision.stats)
    except Exception as error:  # a plugin's objects may raise anything
        raise Broken(f"{what}: stats cannot be logged: {described(error)}", "put JSON values into it only") from error
    if decision.stats is not None and not stats.startswith(b"{"):
        raise Broken(f"{what}: stats is a {type(decision.stats).__name__}", "return a mapping of names to JSON values")
    if len(stats) > MAX_STATS_BYTES:
        raise Broken(f"{what}: stats has {len(stats)} bytes, the log takes {MAX_STATS_BYTES}", "put less into it")


def _check_numbers(value: Any, shape: tuple[int, ...], what: str) -> None:
    try:
        numbers = np.asarray(value, np.float64)
    except Exception as error:  # a plugin's objects may raise anything
        raise Broken(f"{what} is not numeric: {described(error)}", "return numbers, or None") from error
    if numbers.shape != shape:
        advice = "align it with legal" if shape else "return one number"
        raise Broken(f"{what} has the shape {numbers.shape}, not {shape}", advice)
    if not np.isfinite(numbers).all():
        raise Broken(f"{what} is not finite", "look for NaN in the model's output")


def play(run: Run, strategy: Strategy, hand: int) -> Iterator[tuple[Any, int, Decision]]:
    """Play a hand: the strategy in all seats of every other hand, else in one, with random moves elsewhere.

    Yields (state, seat, decision).
    """
    seed, count = run.seed + hand, run.game.num_seats
    seats = range(count) if hand % 2 == 0 else {hand // 2 % count}
    state, others = run.game.new_state(seed), random.Random(seed)
    players: dict[int, Player] = {}
    received: dict[int, int] = {}
    try:
        for _ in range(LONGEST_HAND):
            if state.terminal:
                return
            seat = others.choice(state.to_act)
            if seat not in seats:
                legal = state.legal(seat)
                state.apply(seat, int(legal[others.randrange(len(legal))]))
                continue
            if seat not in players:
                players[seat] = run.player(strategy, seat, hand, str(seed))
            if strategy.wants_events:
                events = state.events(seat, received.get(seat, 0))
                received[seat] = received.get(seat, 0) + len(events)
                run.call("observe", players[seat].observe, events)
            decision = run.decide(players[seat], state.view(seat))
            yield state, seat, decision
            state.apply(seat, decision.action)
        raise Broken(f"a hand has not ended after {LONGEST_HAND} moves", "see that the strategy makes progress")
    finally:
        for player in players.values():
            run.call("close", player.close)


def _opening(run: Run, strategy: Strategy, hand: int) -> tuple[View, Player]:
    """The view and a player of the seat that begins a hand."""
    state = run.game.new_state(run.seed + hand)
    seat = state.to_act[0]
    return state.view(seat), run.player(strategy, seat, hand, str(hand))


def _actions(run: Run, strategy: Strategy, hand: int) -> _Path:
    return [(seat, decision.action) for _, seat, decision in play(run, strategy, hand)]


def plays_legally(run: Run, hands: int) -> str:
    """Legal, well-formed decisions in all hands, without growing for ever."""
    strategy = run.make()
    resident = 0
    for hand in range(hands):
        if hand == hands // 4:
            resident = resident_bytes(os.getpid())
        for _ in play(run, strategy, hand):
            pass
        run.hands += 1
    grown = (resident_bytes(os.getpid()) - resident) / 1e6
    run.call("Strategy.close", strategy.close)
    if resident and grown > LEAK_MB:
        message = f"the process grew by {grown:.0f} MB in {hands - hands // 4} hands"
        raise Broken(message, "let go of what belongs to a hand in Player.close")
    return f"{hands} hands, {run.decisions} decisions"


def survives_resync(run: Run, hands: int) -> str:
    """A new player decides as well in the middle of a hand, on views rebuilt from bytes, JSON and a snapshot."""
    strategy = run.make()
    rebuilt = 0
    for hand in range(hands):
        pick = random.Random(run.seed + hand)
        for state, seat, _ in play(run, strategy, hand):
            if pick.random() < 0.8:
                continue
            view = state.view(seat)
            for how, again in (
                ("bytes", run.game.view_from_bytes(view.to_bytes())),
                ("JSON", run.game.view_from_json(view.to_json())),
                ("a snapshot", run.game.view_from_snapshot(view.to_json())),
            ):
                if not np.array_equal(again.legal(), view.legal()):
                    raise Broken(
                        f"a view rebuilt from {how} has other legal actions", f"a fault of the game {run.game.name}"
                    )
                player = run.player(strategy, seat, hand, "again")
                try:
                    run.decide(player, again)
                except Broken as broken:
                    advice = "after a reconnect a player starts in the middle of a hand: take all from the view"
                    raise Broken(f"on a view rebuilt from {how}: {broken}", advice) from broken
                run.call("close", player.close)
                rebuilt += 1
    run.call("Strategy.close", strategy.close)
    return f"{rebuilt} views"


def is_deterministic(run: Run, hands: int) -> str:
    """Equal seeds and events give equal decisions, in another instance and whatever the global generators do."""
    if not run.resolved.strategy.deterministic:
        return "not claimed"
    first, second = run.make(), run.make()
    for hand in range(hands):
        random.seed(hand)
        np.random.seed(hand)
        expected = _actions(run, first, hand)
        random.seed(hand + 1_000_003)
        np.random.seed(hand + 1_000_003)
        actual = _actions(run, second, hand)
        if expected != actual:
            at = next((i for i, (a, b) in enumerate(zip(expected, actual, strict=False)) if a != b), len(actual))
            message = f"the same hand ({run.seed + hand}) went another way at decision {at + 1}"
            advice = "draw from a generator seeded by table.seed, not from clocks or global generators; "
            raise Broken(message, advice + "or declare deterministic = False")
    run.call("Strategy.close", first.close)
    run.call("Strategy.close", second.close)
    return f"{hands} hands twice"


def keeps_tables_apart(run: Run, hands: int) -> str:
    """Hands that are played interleaved go as they go one after another: players share no state."""
    if not run.resolved.strategy.deterministic:
        return "not claimed"
    alone, together = run.make(), run.make()
    expected = [_actions(run, alone, hand) for hand in range(hands)]
    actual: list[_Path] = [[] for _ in range(hands)]
    live = {hand: play(run, together, hand) for hand in range(hands)}
    while live:
        for hand in list(live):
            step = next(live[hand], None)
            if step is None:
                del live[hand]
            else:
                actual[hand].append((step[1], step[2].action))
    run.call("Strategy.close", alone.close)
    run.call("Strategy.close", together.close)
    if expected != actual:
        message = "a hand goes another way when other tables are played at the same time"
        raise Broken(message, "keep what belongs to a table in its player, not in the strategy")
    return f"{hands} hands at once"


def batches(run: Run, hands: int) -> str:
    """``decide_many`` gives one good decision per request."""
    strategy = run.make()
    requests: list[Request] = []
    for hand in range(hands):
        view, player = _opening(run, strategy, hand)
        budget = Budget(time.monotonic() + run.budget_ms / 1000.0 * hands)
        requests.append(Request(player, view, view.legal(), budget))
    decisions = run.call("decide_many", decide_all, strategy, requests)
    for request, decision in zip(requests, decisions, strict=True):
        check_decision(decision, request.view, request.legal, what="decide_many")
        run.call("close", request.player.close)
    run.call("Strategy.close", strategy.close)
    return f"{len(requests)} requests"


def evaluates(run: Run, hands: int) -> str:
    """An evaluator values every legal action, within [-1, 1], whatever other actions it is asked about."""
    strategy = run.make()
    if not isinstance(strategy, Evaluator):
        return "no evaluator"
    views = []
    for hand in range(hands):
        state, pick = run.game.new_state(run.seed + hand), random.Random(run.seed + hand)
        for _ in range(LONGEST_HAND):
            if state.terminal:
                break
            seat = pick.choice(state.to_act)
            if pick.random() < 0.2:
                views.append(state.view(seat))
            state.apply(seat, int(pick.choice(state.legal(seat).tolist())))
    legal = [view.legal() for view in views]
    together = run.call("action_values", _action_values, strategy, views, legal)
    if len(together) != len(views):
        message = f"action_values returned {len(together)} arrays for {len(views)} views"
        raise Broken(message, "return one array per view, in order")
    for view, actions, found in zip(views, legal, together, strict=True):
        if found.shape != actions.shape:
            message = f"action_values gave {found.shape} values for {len(actions)} legal actions"
            raise Broken(message, "align them with legal")
        if not (np.abs(found) <= 1.0).all():
            raise Broken("action_values gave values outside [-1, 1]", "clip them, and look for NaN")
        alone = run.call("action_values", _action_values, strategy, [view], [actions])
        if not np.allclose(alone[0], found, atol=1e-4):
            message = "the values of a view hang on what they are asked about with"
            raise Broken(message, "let the rows of a batch not see each other")
    run.call("Strategy.close", strategy.close)
    return f"{len(views)} views"


def _action_values(strategy: Evaluator, views: list[View], legal: list[ActionArray]) -> list[npt.NDArray[np.float64]]:
    values = strategy.action_values(views, legal)
    return [np.asarray(values[nth], np.float64) for nth in range(len(values))]


def lets_go(run: Run, hands: int) -> str:
    """Players can be collected once they are closed."""
    strategy = run.make()
    references = []
    for hand in range(hands):
        view, player = _opening(run, strategy, hand)
        run.decide(player, view)
        run.call("close", player.close)
        references.append(weakref.ref(player))
    del player
    gc.collect()
    alive = sum(reference() is not None for reference in references)
    run.call("Strategy.close", strategy.close)
    if alive > 1:  # one may linger in the frame of a strategy's own loop
        raise Broken(f"{alive} of {hands} closed players are still held", "drop them in Player.close")
    return f"{hands} players"


def in_budget(run: Run) -> str:
    if run.late:
        message = f"{run.late} of {run.decisions} decisions came late; the slowest took {run.slowest * 1000:.0f} ms"
        raise Broken(f"{message} of {run.budget_ms:.0f} ms", "stop when budget.left_ms() runs out")
    mean = run.seconds / run.decisions * 1000.0 if run.decisions else 0.0
    return f"mean {mean:.3f} ms, slowest {run.slowest * 1000:.1f} ms of {run.budget_ms:.0f} ms"


def quick_is_quick(run: Run) -> str:
    if not run.quick_ms:
        return "there is none"
    # On a busy machine a call that works 2 ms may last 10. A call that sleeps lasts long each time.
    took = max(statistics.median(worked for worked, _ in run.quick_ms), min(lasted for _, lasted in run.quick_ms))
    if took > QUICK_MS:
        raise Broken(f"quick takes {took:.1f} ms", "it is asked when time is up: answer without search")
    return f"{took:.3f} ms"


def prints_nothing(written: int) -> str:
    if written:
        raise Broken(f"{written} characters were printed to stdout", "use logging, or Decision.stats")
    return ""


def options_schema(strategy: type[Strategy]) -> str:
    """Frozen, strict about keys, and usable without any option."""
    options = strategy.Options
    config = options.__struct_config__
    if not config.frozen:
        raise Broken(f"{options.__name__} can be changed", "class Options(msgspec.Struct, frozen=True, …)")
    if not config.forbid_unknown_fields:
        message = f"{options.__name__} accepts unknown keys"
        raise Broken(message, "class Options(msgspec.Struct, forbid_unknown_fields=True, …)")
    info: Any = msgspec.inspect.type_info(options)
    required = [field.encode_name for field in info.fields if field.required]
    return f"required: {', '.join(required)}" if required else f"with defaults: {len(info.fields)}"
