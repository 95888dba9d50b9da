"""The decisions of all logged players who agreed to be imitated. Implements ``bothost.PlayerLog``.

The events of a hand end with the reveal of hidden information. Replaying the hand from it gives the view of each seat
at each decision. At our own seat the rebuilt views must equal the logged ones byte by byte, or the hand is excluded and
counted. Other seats have no such check. The moves of a player in a hand are excluded if the lobby reported the player
as away.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from shlex import quote
from typing import Any

import msgspec
import numpy as np
import structlog

from bothost.config import nearest
from bothost.errors import StoreError, UsageError
from bothost.export.options import ExportOptions
from bothost.retrain.tempo import thinking_ms
from bothost.rules.game import Game
from bothost.store.consent import Consent, Sitter, recorded, sitters
from bothost.store.logged_games import GameCache
from bothost.store.query import HandQuery
from bothost.store.reader import LoggedHand, Timeline, iter_hands, iter_timelines, together
from bothost.store.rebuild import Move, moves_of
from bothost.store.records import DecisionRecord
from bothost.store.store import Store
from bothost.strategy import PlayerMove

MOST_IDS = 1000
"""Most ids of players among which the nearest to an unknown one is looked for."""

_log = structlog.get_logger("bothost.retrain")
Json = dict[str, Any]


class Players:
    """Reads the log for as long as the store is open."""

    def __init__(self, store: Store, query: HandQuery | None = None) -> None:
        """``query``: conditions on hands, except game and players; default: all hands."""
        self.store = store
        self._query = msgspec.structs.replace(query or HandQuery(), closed=True, players=())
        self.games = GameCache()
        self._passes: dict[tuple[str, tuple[str, ...], str | None], Json] = {}

    def players(self, game: str) -> dict[str, int]:
        """See :class:`bothost.PlayerLog`."""
        records = recorded(self.store)
        counted: Counter[str] = Counter()
        for ours in together(self._hands(game)):
            seats, away = _seats(ours)
            for hand in ours:
                for sitter in sitters(hand.game, records):
                    unseen = hand.game.seat == min(seats) and sitter.seat not in seats | away
                    if sitter.consents and (sitter.seat == hand.game.seat or unseen):
                        counted[sitter.names[0]] += 1
        return dict(counted.most_common())

    def moves(self, game: str, players: Collection[str] = (), *, split: str | None = None) -> Iterator[PlayerMove]:
        """See :class:`bothost.PlayerLog`."""
        wanted = frozenset(players)
        records = recorded(self.store)
        for player in sorted(wanted):
            self._require(game, player, records)
        found = _Pass(self, wanted, records)
        key = game, tuple(sorted(wanted)), split
        try:
            yield from found.run(self._hands(game), split)
        finally:
            self._passes[key] = {"game": game, "players": list(key[1]), "split": split, **found.report()}

    def thinking_ms(self, game: str, players: Collection[str]) -> Iterator[float]:
        """See :class:`bothost.PlayerLog`."""
        words = recorded(self.store)
        for player in sorted(players):
            self._require(game, player, words)
        return thinking_ms(self.store, msgspec.structs.replace(self._query, games=(game,)), players)

    def lineage(self) -> Json:
        """See :class:`bothost.PlayerLog`."""
        return {"query": msgspec.to_builtins(self._query), "read": list(self._passes.values())}

    def _hands(self, game: str) -> Iterator[LoggedHand]:
        return iter_hands(self.store, msgspec.structs.replace(self._query, games=(game,)))

    def _require(self, game: str, player: str, records: Mapping[tuple[str, str], Consent]) -> None:
        """Raise UsageError unless the player has a logged hand and agreed."""
        lobby: str | None = None
        ids: set[str] = set()
        shown: set[str] = set()
        for hand in self._hands(game):
            for sitter in sitters(hand.game, records):
                if player in sitter.names:
                    if sitter.consents:
                        return
                    lobby = hand.game.lobby
                elif sitter.shown == player:
                    shown.add(sitter.names[0])
                elif lobby is None and len(ids) < MOST_IDS:
                    ids.add(sitter.names[0])
        if lobby is not None:
            advice = f"once they have: bothost games consent {quote(player)} --lobby {quote(lobby)}"
            raise UsageError(f"{player} has not agreed to be imitated", advice=advice)
        if not (ids or shown):
            raise UsageError(
                f"no closed hand of {game} in the log matches the query",
                advice="list hands with bothost games list; change --since, --until or --lobby",
            )
        advice = f"use the lobby's id: {', '.join(sorted(shown)[:3])}" if shown else nearest(player, sorted(ids))
        raise UsageError(f"no closed hand of {game} has a player {player!r}", advice=advice)


class _Pass:
    """One pass through the log."""

    def __init__(self, log: Players, wanted: frozenset[str], records: Mapping[tuple[str, str], Consent]) -> None:
        self._log = log
        self._wanted = wanted
        self._records = records
        self._split = ExportOptions().split_of
        self._left_out: Counter[str] = Counter()
        self._hands = self._moves = 0
        self._digest = hashlib.sha256()
        self._whole = False

    def run(self, hands: Iterator[LoggedHand], split: str | None) -> Iterator[PlayerMove]:
        chosen: deque[tuple[dict[int, Sitter], set[int], frozenset[int], str]] = deque()

        def asked() -> Iterator[LoggedHand]:
            for ours in together(hands):
                own, away = _seats(ours)
                part = self._split(ours[0].game.lobby, ours[0].game.table, ours[0].game.hand)
                done: set[int] = set()
                for hand in ours:
                    seats = {s.seat: s for s in self._sitters(hand) if s.seat not in own - {hand.game.seat}}
                    if seats and split in (None, part):
                        chosen.append((seats, done, away, part))
                        yield hand

        for timeline in iter_timelines(self._log.store, asked()):
            yield from self._hand(timeline, *chosen.popleft())
        self._whole = True

    def report(self) -> Json:
        """What was read, and what was left out and why."""
        return {
            "hands": self._hands,
            "moves": self._moves,
            "left_out": {why: count for why, count in sorted(self._left_out.items()) if count},
            "sha256": self._digest.hexdigest(),
            "to_the_end": self._whole,
        }

    def _sitters(self, hand: LoggedHand) -> Iterator[Sitter]:
        for sitter in sitters(hand.game, self._records):
            if sitter.consents and (not self._wanted or self._wanted & set(sitter.names)):
                yield sitter

    def _hand(
        self, timeline: Timeline, seats: dict[int, Sitter], done: set[int], away: Collection[int], split: str
    ) -> Iterator[PlayerMove]:
        """The moves of these seats, except those that are ``done``: another row of ours at the hand had them."""
        hand = timeline.hand
        seats = {seat: sitter for seat, sitter in seats.items() if seat not in done}
        game = self._log.games.get(hand.game.game, hand.game.rules)
        if not seats or game is None:
            self._left_out["hands seen twice" if game is not None else "hands of a game that is not known here"] += 1
            return
        try:
            moves = _checked(game, timeline, seats, away)
        except _LeftOut as error:
            self._left_out[error.why] += 1
            if error.detail:
                _log.warning("hand_left_out", game_id=hand.game.game_id.hex(), reason=error.detail)
            return
        self._left_out.update(why for _, why in moves if why)
        done.update(seats)
        scores = None if hand.scores is None else tuple(hand.scores)
        game_id, started = hand.game.game_id.hex(), hand.game.started_us
        chosen = [move for move, why in moves if not why]
        self._digest.update(f"{game_id} {[(move.seat, move.action) for move in chosen]}\n".encode())
        self._hands += 1
        self._moves += len(chosen)
        for move in chosen:
            sitter = seats[move.seat]
            name = next((name for name in sitter.names if name in self._wanted), sitter.names[0])
            yield PlayerMove(game, game_id, split, name, move.seat, move.view, move.legal, move.action, started, scores)


class _LeftOut(Exception):
    """A hand that cannot be used."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.detail = detail


def _checked(game: Game, timeline: Timeline, seats: Collection[int], away: Collection[int]) -> list[tuple[Move, str]]:
    """Return the moves of these seats, each with the reason to exclude it, or "". Raises _LeftOut."""
    own = timeline.hand.game.seat
    try:
        moves = list(moves_of(game, own, timeline.lines(), of={own, *seats}))
    except StoreError as error:
        raise _LeftOut("hands with a gap in their events", "" if timeline.snapshots else str(error)) from None
    except ValueError as error:
        raise _LeftOut("hands that their game does not understand", str(error)) from None
    if not moves:
        raise _LeftOut("hands that were not revealed")
    chose = _chosen(game, timeline, [move for move in moves if move.seat == own])
    checked = []
    for move in moves:
        if move.seat == own:
            why = "" if next(chose) else "moves that the player did not choose"
        else:
            why = "moves of players who were away" if move.seat in away else ""
        checked.append((move, why))
    return [(move, why) for move, why in checked if move.seat in seats]


def _chosen(game: Game, timeline: Timeline, moves: list[Move]) -> Iterator[bool]:
    """For each move of our own seat, whether its player chose it. Raises _LeftOut if the log contradicts the moves."""
    rejected = {
        id for id, outcomes in timeline.outcomes.items() if any(outcome.kind == "rejected" for outcome in outcomes)
    }
    live = {(row.seq, row.substep): row for row in timeline.decisions if row.role == "live" and row.id not in rejected}
    # Without logged decisions, only the lobby can report that the player was away.
    unquestioned = not live and timeline.hand.game.seat not in timeline.hand.away
    start, step = -1, 0
    for move in moves:
        # The steps of a composite move are logged with the event number at its beginning.
        start, step = (move.view.seq, 0) if (move.view.seq, 0) in live else (start, step + 1)
        decision = live.get((start, step))
        if decision is None:
            yield unquestioned
            continue
        _check(game, timeline, move, decision)
        yield decision.fallback is None and decision.action == move.action


def _check(game: Game, timeline: Timeline, move: Move, decision: DecisionRecord) -> None:
    """Raise _LeftOut if the rebuilt view differs from the logged one."""
    if decision.view == move.view.to_bytes():
        return
    where = f"the view logged at event {decision.seq} does not follow from the events"
    snapshots = any(s.seq <= decision.seq and s.at_us <= decision.at_us for s in timeline.snapshots)
    if not snapshots and timeline.hand.game.format_version == game.format_version:
        raise _LeftOut("hands whose views are not those that were logged", where)
    # A snapshot may hold less than the events, and an older format differs. Then compare the legal actions.
    if not set(np.frombuffer(decision.legal, "<i4").tolist()) <= set(move.legal.tolist()):
        raise _LeftOut("hands whose views are not those that were logged", where)


def _seats(ours: list[LoggedHand]) -> tuple[frozenset[int], frozenset[int]]:
    """Our seats at a hand, and the seats that any of them saw away."""
    return frozenset(hand.game.seat for hand in ours), frozenset().union(*(hand.away for hand in ours))
