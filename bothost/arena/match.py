"""Playing duplicate deals: many hands at once, decisions batched per strategy."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import msgspec

from bothost.arena.lineup import Lineup
from bothost.arena.luck import Luck
from bothost.errors import BothostError, PluginError, described, raised_at
from bothost.rules.game import Game, Json, State, View
from bothost.strategy import Budget, Decision, Player, Request, Strategy, Table, decide_all, is_async
from bothost.tables.fallback import checked
from bothost.tables.hand import valid_scores

LATE_SHARE, LATE_MS = 0.2, 5.0
"""A decision is late when it took longer than its time by more than this share and these milliseconds together."""


class HandResult(msgspec.Struct, frozen=True):
    """One hand: one deal in one lineup."""

    returns: tuple[float, ...]
    """Score per seat."""
    final: Json
    """JSON of seat 0's last view without the history: for example the landlord, or the winner and the fans."""
    decisions: tuple[int, ...]
    """Number of decisions per contestant."""
    seconds: tuple[float, ...]
    """Seconds in ``decide`` per contestant. The requests of a batch share its time."""
    illegal: tuple[int, ...]
    """Illegal actions per contestant. The first legal action was played instead."""
    failed: tuple[int, ...] = ()
    """Errors per contestant, where the match forgives them. The first legal action was played instead."""
    luck: tuple[float, ...] = ()
    """Points that luck gave each seat, where the match measures it."""
    late: tuple[int, ...] = ()
    """Decisions per contestant that took too long. Where the match forgives, the first legal action was played."""


class DealResult(msgspec.Struct, frozen=True):
    """One deal in all its lineups, in the order of ``lineups()``."""

    deal: int
    hands: tuple[HandResult, ...]

    def for_figures(self) -> DealResult:
        """The result without what no figure needs: a match of many deals holds them all."""
        hands = (
            msgspec.structs.replace(hand, final={key: hand.final[key] for key in _OF_FIGURES if key in hand.final})
            for hand in self.hands
        )
        return DealResult(self.deal, tuple(hands))


_OF_FIGURES = ("landlord",)
"""Keys of ``HandResult.final`` that figures use; a journal has them all."""


def deal_seed(seed: int, deal: int) -> int:
    """Seed of a deal. Matches with neighbouring seeds share no deals."""
    return (seed * 0x9E3779B97F4A7C15 + deal) & 0xFFFFFFFFFFFFFFFF


def final_of(view: View) -> Json:
    """Return the final view's JSON without its long parts, for the figures of a hand."""
    return {key: value for key, value in view.to_json().items() if key not in ("history", "reveal", "events")}


class ContestantError(BothostError):
    """A contestant failed, and the match does not forgive it."""

    def __init__(self, who: int, name: str, what: str, advice: str) -> None:
        super().__init__(f"{name}: {what}", advice=advice)
        self.who = who
        """Index of the contestant."""
        self.what = what

    @classmethod
    def of(cls, who: int, strategy: Strategy, error: BaseException) -> ContestantError:
        """The error that says what a contestant raised, and where."""
        if isinstance(error, BothostError):
            return cls(who, strategy.name, str(error), error.advice)
        at = raised_at(error, type(strategy).__module__) or raised_at(error)
        return cls(who, strategy.name, f"{described(error)} ({at})", "")


class HandInPlay:
    """One hand in progress. As on the host, each seat folds its own events."""

    def __init__(
        self, game: Game, deal: int, number: int, lineup: Lineup, strategies: Sequence[Strategy], seed: int
    ) -> None:
        self.deal = deal
        self.number = number
        self.lineup = lineup
        self.state: State = game.new_state(deal_seed(seed, deal))
        self.views = [game.new_view(seat) for seat in range(game.num_seats)]
        self.tables = [
            Table(
                lobby="arena",
                table=f"{deal}.{number}",
                game=game,
                seat=seat,
                seed=self.player_seed(seed, seat),
            )
            for seat in range(len(lineup))
        ]
        self.players: list[Player] = [
            _player(who, strategies[who], table) for who, table in zip(lineup, self.tables, strict=True)
        ]
        self.news: list[list[str] | None] = [[] if strategies[who].wants_events else None for who in lineup]
        """Events that the player of each seat has not received yet; None where it wants none."""
        self.decisions = [0] * len(strategies)
        self.seconds = [0.0] * len(strategies)
        self.illegal = [0] * len(strategies)
        self.failed = [0] * len(strategies)
        self.late = [0] * len(strategies)
        self.fold()

    def player_seed(self, seed: int, seat: int) -> int:
        """Seed of the player of a seat, in a match of this seed."""
        nth = 1 + self.number * len(self.views) + seat
        return deal_seed(seed, self.deal) ^ (0x5DEECE66D * nth) & (2**63 - 1)

    def fold(self) -> None:
        """Pass each seat its new events."""
        for seat, view in enumerate(self.views):
            self.receive(seat, self.state.events(seat, view.seq))

    def receive(self, seat: int, events: Sequence[str]) -> None:
        self.views[seat].observe_all(events)
        if (news := self.news[seat]) is not None:
            news.extend(events)

    def observe(self, seat: int) -> None:
        """Pass the player of a seat its new events, before it decides, as the host does (``Player.observe``)."""
        if news := self.news[seat]:
            self.players[seat].observe(news)
            self.news[seat] = []

    def requests(self, budget: Budget) -> list[tuple[int, Request]]:
        """The pending (seat, request) pairs, with all seats of a simultaneous decision."""
        return [
            (seat, Request(self.players[seat], self.views[seat], self.views[seat].legal(), budget))
            for seat in self.state.to_act
        ]

    def answer(self, seat: int, request: Request, decision: Decision, seconds: float) -> None:
        """Apply a player's decision, or the first legal action if it is illegal, ``FAILED`` or ``LATE``."""
        who = self.lineup[seat]
        self.decisions[who] += 1
        self.seconds[who] += seconds
        if decision is FAILED or decision is LATE:
            (self.failed if decision is FAILED else self.late)[who] += 1
            self.state.apply(seat, _first_legal(request))
            return
        action = int(decision.action)
        if not request.view.is_legal(action):
            self.illegal[who] += 1
            action = _first_legal(request)
        self.state.apply(seat, action)

    def end_players(self, strategies: Sequence[Strategy], *, forgive: bool) -> None:
        """End the players. Raises ContestantError for one that fails, or counts it if the match forgives."""
        for who, player in zip(self.lineup, self.players, strict=True):
            try:
                player.close()
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if not forgive:
                    raise ContestantError.of(who, strategies[who], error) from error
                self.failed[who] += 1

    def scores(self) -> tuple[float, ...]:
        """The score of each seat, at the end. Raises PluginError for a game that gives none."""
        scores = tuple(self.state.returns)
        if valid_scores(scores, len(self.views)) is None:
            name, advice = self.state.game.name, "check the game with bothost.testing.check_game"
            raise PluginError(name, f"returns is {scores}, not a finite number for each seat", advice=advice)
        return scores

    def result(self, luck: Luck | None = None) -> HandResult:
        return HandResult(
            returns=self.scores(),
            final=final_of(self.views[0]),
            decisions=tuple(self.decisions),
            seconds=tuple(self.seconds),
            illegal=tuple(self.illegal),
            failed=tuple(self.failed),
            luck=() if luck is None else luck(self.state),
            late=tuple(self.late),
        )


def _first_legal(request: Request) -> int:
    """From the view: a player may have written into ``request.legal``."""
    return int(request.view.legal()[0])


@contextmanager
def _blamed(who: int, strategy: Strategy) -> Iterator[None]:
    """Whatever the code of a strategy raises becomes a ContestantError, also a panic of a Rust extension."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ContestantError.of(who, strategy, error) from error


def _player(who: int, strategy: Strategy, table: Table) -> Player:
    with _blamed(who, strategy):
        return strategy.player(table)


FAILED = Decision(action=-1)
"""The decision of a contestant that raised an exception."""
LATE = Decision(action=-1)
"""The decision of a contestant that came too late, where the match forgives it."""


def decide(
    hands: Iterable[HandInPlay], strategies: Sequence[Strategy], ms: float = math.inf, *, forgive: bool = False
) -> None:
    """Decide once for every seat to act, with one ``decide_many`` per contestant. ``forgive``: see ``MatchSpec``."""
    budget = Budget(deadline=time.monotonic() + ms / 1000.0 if math.isfinite(ms) else math.inf)
    latest_s = ((1.0 + LATE_SHARE) * ms + LATE_MS) / 1000.0
    asked: list[list[tuple[HandInPlay, int, Request]]] = [[] for _ in strategies]
    for hand in hands:
        for seat, request in hand.requests(budget):
            asked[hand.lineup[seat]].append((hand, seat, request))
    for who, (strategy, batch) in enumerate(zip(strategies, asked, strict=True)):
        if not batch:
            continue
        with _blamed(who, strategy):
            decisions, times = _decided(strategy, batch, ms, forgive=forgive)
        for (hand, seat, request), decision, seconds in zip(batch, decisions, times, strict=True):
            if decision is not FAILED and decision is not LATE and seconds > latest_s:
                if forgive:
                    decision = LATE
                else:
                    hand.late[who] += 1
            hand.answer(seat, request, decision, seconds)
    for hand in hands:
        hand.fold()


def _decided(
    strategy: Strategy, batch: Sequence[tuple[HandInPlay, int, Request]], ms: float, *, forgive: bool
) -> tuple[list[Decision], list[float]]:
    """A contestant's decisions, and the seconds that each took."""
    if math.isfinite(ms):  # a batch shares the processor: each request gets its time from its own start
        return _decide_singly(strategy, batch, ms, forgive=forgive)
    start = time.perf_counter()
    try:
        for hand, seat, _ in batch:
            hand.observe(seat)
        decisions = _checked(decide_all(strategy, [request for _, _, request in batch]))
    except KeyboardInterrupt:
        raise
    except BaseException:
        if not forgive:
            raise
        decisions, _ = _decide_singly(strategy, batch, ms, forgive=True)  # only some of them fail
    return decisions, [(time.perf_counter() - start) / len(batch)] * len(batch)


def _checked(decisions: list[Decision]) -> list[Decision]:
    """Raise BothostError unless a host could use each of these."""
    try:
        return [checked(decision) for decision in decisions]
    except TypeError as error:
        for decision in decisions:
            is_async(decision)  # ``checked`` closed the first coroutine: for each other one Python would warn
        raise BothostError(str(error), advice="return bothost.Decision(action=int(…))") from None


def _decide_singly(
    strategy: Strategy, batch: Sequence[tuple[HandInPlay, int, Request]], ms: float, *, forgive: bool
) -> tuple[list[Decision], list[float]]:
    decisions, times = [], []
    for hand, seat, request in batch:
        start = time.perf_counter()
        try:
            hand.players[seat].prepare()
            hand.observe(seat)
            start = time.perf_counter()
            timed = msgspec.structs.replace(request, budget=Budget(deadline=time.monotonic() + ms / 1000.0))
            decisions += _checked(decide_all(strategy, [timed]))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if not forgive:
                raise
            decisions.append(LATE if isinstance(error, TimeoutError) and math.isfinite(ms) else FAILED)
        times.append(time.perf_counter() - start)
    return decisions, times


def play_deals(
    game: Game,
    strategies: Sequence[Strategy],
    seats: Sequence[Lineup],
    deals: Iterable[int],
    *,
    seed: int,
    ms: float = math.inf,
    batch: int = 64,
    forgive: bool = False,
    luck: Luck | None = None,
) -> Generator[DealResult, None, None]:
    """Play each deal in every lineup and yield results in the order in which deals finish.

    ``ms``: time limit per decision. Infinite: no clock, and decisions of up to ``batch`` deals are batched.
    ``luck``: measures the luck of each hand.
    """
    if math.isfinite(ms):
        batch = 1  # nothing is batched; and each hand may have programs of its own
    waiting = iter(deals)
    open_deals: dict[int, dict[int, HandResult]] = {}
    hands: list[HandInPlay] = []
    while True:
        for deal in islice(waiting, batch - len(open_deals)):
            open_deals[deal] = {}
            hands += [HandInPlay(game, deal, number, lineup, strategies, seed) for number, lineup in enumerate(seats)]
        if not hands:
            return
        decide(hands, strategies, ms, forgive=forgive)
        running = []
        for hand in hands:
            if not hand.state.terminal:
                running.append(hand)
                continue
            hand.end_players(strategies, forgive=forgive)
            results = open_deals[hand.deal]
            results[hand.number] = hand.result(luck)
            if len(results) == len(seats):
                del open_deals[hand.deal]
                yield DealResult(hand.deal, tuple(results[number] for number in range(len(seats))))
        hands = running
