"""Let strategies play without a lobby, and log their hands as a host does.

Each hand is logged from one seat, in turn. Its player is one of our accounts; the other players are logged like
players of a lobby. The host's recorder makes the rows.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import random
import signal
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from bothost.arena.lineup import Lineup
from bothost.arena.match import HandInPlay, decide
from bothost.config import StoreSettings
from bothost.errors import BothostError, StoreError, UsageError
from bothost.host.recorder import Recorder, new_id
from bothost.messages import PlayerInfo
from bothost.plugins import Resolved
from bothost.rules.game import Game
from bothost.store.decision_log import DecisionLog
from bothost.store.forget import delete_hands
from bothost.store.leases import JobLease
from bothost.store.models import games
from bothost.store.query import HandQuery
from bothost.store.reader import iter_hands
from bothost.store.store import Store
from bothost.strategy import Decision, Request, Strategy
from bothost.tables.actor import Actor, Loaded, Plan
from bothost.tables.clock import ClockPolicy, window
from bothost.tables.conduct import TableKey
from bothost.tables.hand import Answer, Hand, HandClosed, Job

LOBBY = "generated"
LOCK = "generate.id"
"""File beside the spool that is locked meanwhile."""
BATCH = 64
"""Hands played at once."""

Progress = Callable[[int, int], None]


class Population:
    """The players by name, and the hands that a seed determines."""

    def __init__(self, game: Game, players: Mapping[str, Resolved], seed: int) -> None:
        """Raises UsageError without players, or if a strategy does not play the game."""
        if not players:
            raise UsageError("there are no players", advice="name players, as in ada=styled-doudizhu")
        for name, player in players.items():
            if not player.strategy.supports(game):
                raise UsageError(f"{name}: {player.address} does not play {game.name} under these rules")
        self.game = game
        self.names = tuple(players)
        self.loaded = [Loaded(player) for player in players.values()]
        self.seed = seed
        identity = [game.name, game.rules, seed, [[name, *self._identity(one)] for name, one in players.items()]]
        text = json.dumps(identity, sort_keys=True, default=str)
        self.table = hashlib.sha256(text.encode()).hexdigest()[:16]
        """The lobby's name of the table. It differs for other players, versions of strategies, rules or seeds."""

    @staticmethod
    def _identity(player: Resolved) -> tuple[str, str, str, str | None]:
        model = player.model.sha256 if player.model is not None else None
        return player.address, player.strategy.version, repr(player.options), model

    def lineup(self, number: int) -> Lineup:
        """The players by seat. All play equally often, and none has two seats if there are enough players."""
        draw = random.Random(f"{self.seed} {number}")
        among = range(len(self.names))
        seats = self.game.num_seats
        if len(self.names) >= seats:
            return tuple(draw.sample(among, seats))
        first = number % len(self.names)  # others have the surplus seats in each hand
        return tuple(draw.sample(list(itertools.islice(itertools.cycle(among), first, first + seats)), seats))


class _LoggedHand(HandInPlay):
    """A hand that is logged from one seat."""

    def __init__(
        self,
        population: Population,
        strategies: Sequence[Strategy],
        number: int,
        recorder: Recorder,
        consents: bool,
    ) -> None:
        game, lineup = population.game, population.lineup(number)
        self.seat = number % game.num_seats
        names = [population.names[who] for who in lineup]
        infos = tuple(PlayerInfo(name, seat, name, True, consents) for seat, name in enumerate(names))
        key = TableKey(LOBBY, names[self.seat], population.table)
        self.log = Hand(key, str(number), self.seat, infos, game.new_view(self.seat))
        self.log.game_id = new_id()
        self.log.actor = Actor(Plan(population.loaded[lineup[self.seat]], None, None))
        self.recorder = recorder
        super().__init__(game, number, 0, lineup, strategies, population.seed)
        self.log.actor.table = self.tables[self.seat]
        recorder.hand_opened(self.log, {})

    def player_seed(self, seed: int, seat: int) -> int:
        return super().player_seed(seed, seat) & (2**63 - 1)  # the range of the log's column

    def receive(self, seat: int, events: Sequence[str]) -> None:
        super().receive(seat, events)
        if seat == self.seat:
            self.log.unlogged += events

    def answer(self, seat: int, request: Request, decision: Decision, seconds: float) -> None:
        if seat == self.seat:
            view, legal = request.view, request.view.legal()  # a player may have written into ``request.legal``
            job = Job(self.log, f"{self.deal}-{view.seq}", view, legal, _UNTIMED, view.seq, 0)
            job.decision, job.elapsed_s = decision, seconds
            if not view.is_legal(int(decision.action)):
                job.decision = Decision(action=int(legal[0]))
                job.decided_by, job.reason = "first-legal", "illegal"
            action = view.notation(int(job.decision.action))
            self.recorder.answer(Answer(self.log, job.request_id, view.seq, 0, (action,), (job,)))
        super().answer(seat, request, decision, seconds)

    def close(self) -> None:
        """Log the end of the hand."""
        for player in self.players:
            player.close()
        self.recorder.hand_closed(HandClosed(self.log, "normal", self.scores()))


_UNTIMED = window(ClockPolicy(), 0.0, None)


def generate(
    settings: StoreSettings,
    spool: Path,
    population: Population,
    hands: int,
    *,
    consents: bool = True,
    progress: Progress = lambda done, total: None,
) -> int:
    """Play and log the hands 0 … ``hands`` - 1 that are not in the log yet. Returns their number.

    ``consents``: whether the players agree to be imitated. Unfinished hands of an interrupted call are deleted and
    played again. Raises LeaseHeld while another process logs these hands, and the errors of ``DecisionLog.open``.
    Call it in the main thread: SIGTERM ends it with SystemExit.
    """
    lock = spool.with_name(LOCK)
    with (
        Store.open(settings) as store,
        JobLease(store, f"generate {population.table}", lock=lock) as lease,
        _without_unfinished(store, population.table),
        closing(DecisionLog.open(settings, LOBBY, spool)) as log,  # moves rows from the spool into the database
    ):
        done = _logged(store, population.table)
        todo = [number for number in range(hands) if number not in done]

        def report(ended: int) -> None:
            lease.check()
            progress(hands - len(todo) + ended, hands)

        async def play() -> None:
            with _cancelled_by_sigterm():
                await _play(log, population, todo, consents, report)

        asyncio.run(play())
    if log.stats.rejected:
        raise StoreError(f"the database refused {log.stats.rejected} rows", advice="see rejected.log in the spool")
    return len(todo)


def _logged(store: Store, table: str) -> set[int]:
    """Numbers of the hands in the log. Hands that did not end are deleted."""
    ended: set[int] = set()
    cut: list[bytes] = []
    for hand in iter_hands(store, HandQuery(lobbies=(LOBBY,)), where=(games.c.table == table,)):
        if hand.end is not None:
            ended.add(int(hand.game.hand))
        else:
            cut.append(hand.game.game_id)
    delete_hands(store, cut)
    return ended


@contextmanager
def _without_unfinished(store: Store, table: str) -> Iterator[None]:
    """If the block fails, delete the hands that did not end: lists would show them as live."""
    try:
        yield
    except BaseException:
        with suppress(BothostError):  # then the next call deletes them
            _logged(store, table)
        raise


@contextmanager
def _cancelled_by_sigterm() -> Iterator[None]:
    """SIGTERM cancels the task, as Ctrl-C does. It ends with SystemExit, with the code that a shell reports."""
    loop, task, received = asyncio.get_running_loop(), asyncio.current_task(), False
    assert task is not None

    def cancel() -> None:
        nonlocal received
        received = task.cancel()

    loop.add_signal_handler(signal.SIGTERM, cancel)
    try:
        yield
    except asyncio.CancelledError:
        if received:
            raise SystemExit(128 + signal.SIGTERM) from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _play(
    log: DecisionLog,
    population: Population,
    numbers: Collection[int],
    consents: bool,
    progress: Callable[[int], None],
) -> None:
    recorder = Recorder(log, host=LOBBY, config_hash=population.table, before_send=False)
    strategies = [loaded.resolved.make() for loaded in population.loaded]
    waiting: Iterator[int] = iter(numbers)
    running: list[_LoggedHand] = []
    ended = 0
    try:
        while True:
            for number in itertools.islice(waiting, BATCH - len(running)):
                running.append(_LoggedHand(population, strategies, number, recorder, consents))
            if not running:
                break
            decide(running, strategies)
            for hand in running:
                if hand.state.terminal:
                    hand.close()
                    ended += 1
            running = [hand for hand in running if not hand.state.terminal]
            progress(ended)
            await asyncio.sleep(0)  # rows are written by the event loop
            await log.room()
    finally:
        recorder.batches.close()
        for strategy in strategies:
            strategy.close()
