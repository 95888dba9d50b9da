"""One seat at one table, over all hands: folds the lobby's events into the view, asks for decisions, answers once.

A session takes table events and returns what the shell must do (``bothost.tables.hand``), in order. Its ``requests``
take the results of workers. These promises hold for any messages of the lobby:

- Nothing is decided on a view that may be wrong. After a gap, an impossible event or a lost connection, a snapshot
  must come first.
- A request is answered once. The answer to a request that was superseded or withdrawn is dropped.
- A pending request that comes again after a reconnect or a crash gets the same answer again.
- Only actions that are legal in our view are sent, and none that the lobby refused at this position.
- There is an answer before the deadline, by the chain in ``bothost.tables.fallback``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bothost import messages as m
from bothost.rules.game import Game
from bothost.tables.attendance import Attendance
from bothost.tables.clock import NEVER
from bothost.tables.conduct import Conduct, TableKey
from bothost.tables.hand import (
    Closed,
    GaveUp,
    Hand,
    HandClosed,
    HandOpening,
    Logged,
    Outcome,
    Output,
    SnapshotTaken,
    consenting,
    valid_scores,
)
from bothost.tables.requests import RequestNews, Requests
from bothost.tables.trust import Trust


class Session:
    """One seat at one table. ``resumed``: the lobby named the table after a connect, so it is not new."""

    def __init__(self, key: TableKey, seated: m.Seated, game: Game, conduct: Conduct, *, resumed: bool = False) -> None:
        self.key = key
        self.game = game
        self.conduct = conduct
        self.seat = seated.seat
        """Our seat among ``players``; None: unknown."""
        self.players: tuple[m.PlayerInfo, ...] = seated.players
        self.attendance = Attendance()
        self.attributes = seated.attributes
        self.hand: Hand | None = None
        self.over: str | None = None
        """The hand that the lobby ended last on this connection."""
        self.trust = Trust(key.table, resumed=resumed)
        self.requests = Requests(game, conduct, self.trust)
        self.heard_at = 0.0
        """When the last event of this table arrived."""
        self.silences = 0
        """Number of snapshots that we asked for since, without an answer."""

    # ------------------------------------------------------------------------------------------------ table events

    def feed(self, event: m.TableEvent, now: float) -> list[Output]:
        """Handle one event of this table. ``now`` is its arrival, monotonic seconds."""
        out: list[Output] = []
        self.heard_at = now
        self.silences = 0
        _HANDLERS[type(event)](self, event, now, out)
        return out

    def _seated(self, event: m.Seated, now: float, out: list[Output]) -> None:
        if event.players or event.seat is not None:
            self.seat = event.seat
        self.players, self.attributes = event.players or self.players, event.attributes

    def _hand_started(self, event: m.HandStarted, now: float, out: list[Output]) -> None:
        if self.hand is not None and self.hand.name == event.hand:
            return  # repeated by a resume
        self._close_hand(out, "aborted", None)
        self.trust.fresh = self._open_hand(event.hand, event.seat, event.players, out)

    def _snapshot(self, event: m.Snapshot, now: float, out: list[Output]) -> None:
        hand = self.hand
        if hand is None and event.hand == self.over:
            return  # we asked for it before the hand ended
        if hand is None or hand.name != event.hand or hand.seat != event.seat:
            self._close_hand(out, "aborted", None)
            if not self._open_hand(event.hand, event.seat, self.players, out):
                return
            hand = self.hand
            assert hand is not None
        try:
            view = self.game.view_from_snapshot(event.view)
            if view.seat != event.seat:
                raise ValueError(f"the snapshot is of seat {view.seat}, but ours is {event.seat}")
        except ValueError as error:
            self.trust.distrust(hand, f"snapshot: {error}", out)
            return
        if view.to_bytes() != hand.view.to_bytes():  # the log needs no row for a position that it has
            out.append(SnapshotTaken(hand, view.seq, event.view, hand.take_events()))
            hand.unlogged_seq = view.seq
        hand.drop_job()
        if hand.answer is not None and hand.answer.seq != view.seq:
            self.requests.drop_unsent(hand, out)
        hand.view, hand.lent = view, False
        self.trust.fresh = True
        self.requests.start_held(hand, out)

    def _delta(self, event: m.Delta, now: float, out: list[Output]) -> None:
        hand = self.hand
        if hand is None or hand.name != event.hand:
            self._unknown_hand(event.hand, out)
            return
        if not self.trust.fresh:
            return  # the snapshot that we wait for includes it
        view = hand.view
        seen = view.seq
        events: Sequence[str] = event.events
        if event.seq != seen:
            if event.seq > seen or event.seq < 0:
                self.trust.distrust(hand, f"events start at {event.seq}, but we received {seen}", out)
                return
            events = events[seen - event.seq :]
        if hand.lent:
            view = hand.own_view()
        try:
            view.observe_all(events)
        except ValueError as error:
            hand.unlogged.extend(events[: view.seq - seen])
            self.trust.distrust(hand, f"event: {error}", out)
            return
        hand.unlogged.extend(events)
        if hand.news is not None:
            hand.news.extend(events)
        if not self.conduct.acks_moves and (answer := hand.echoed(events)) is not None:
            out.append(Outcome(answer, "acknowledged"))
        if not view.asked:
            hand.drop_job()
            self.requests.drop_unsent(hand, out)
        if hand.held is not None:
            self.requests.start_held(hand, out)

    def _hand_ended(self, event: m.HandEnded, now: float, out: list[Output]) -> None:
        if self.hand is not None and self.hand.name == event.hand:
            self.over = event.hand
            self._close_hand(out, event.reason, event.scores)

    def _table_ended(self, event: m.TableEnded, now: float, out: list[Output]) -> None:
        self._close_hand(out, event.reason, None if event.reason == "aborted" else event.scores)
        out.append(Closed(self.key.table, event.reason))

    def _attends(self, event: m.Presence | m.ServerActedFor, now: float, out: list[Output]) -> None:
        if 0 <= event.seat < self.game.num_seats:  # the log's reader accepts no other seats
            self.attendance.receive(event, self.hand, self.players)

    def _action_request(self, event: m.ActionRequest, now: float, out: list[Output]) -> None:
        hand = self.hand
        if hand is None or hand.name != event.hand:
            self._unknown_hand(event.hand, out)
        else:
            self.requests.receive(hand, event, now, out)

    def _request_news(self, event: RequestNews, now: float, out: list[Output]) -> None:
        if self.hand is not None:
            self.requests.settle(self.hand, event, out)

    # ------------------------------------------------------------------------------------------------------- hands

    def opened(self, hand: Hand, logged: Sequence[Logged] = ()) -> list[Output]:
        """The shell has opened the hand and set ``game_id`` and ``actor``. ``logged``: its moves in the log."""
        out: list[Output] = []
        if hand is self.hand:
            hand.logged = logged
            if self.trust.fresh:
                self.requests.start_held(hand, out)
        return out

    def disconnected(self) -> None:
        """The connection is lost. Nothing is decided until a new snapshot and a new request arrive."""
        self.trust.epoch += 1
        self.trust.fresh = False
        self.over = None
        if self.hand is not None:
            self.hand.drop_job()
            self.hand.held = None
            self.hand.due_at = NEVER
            self.hand.answered.clear()

    def abort(self) -> list[Output]:
        """Close the table because the lobby or the host gave it up. The hand counts as aborted."""
        out: list[Output] = []
        self._close_hand(out, "aborted", None)
        out.append(Closed(self.key.table, "aborted"))
        return out

    def _open_hand(self, name: str, seat: int, players: tuple[m.PlayerInfo, ...], out: list[Output]) -> bool:
        try:
            view = self.game.new_view(seat)
        except ValueError as error:
            out.append(GaveUp(self.key.table, f"hand {name}: {error}"))
            return False
        self.seat, self.players = seat, players or self.players
        seated = self.players
        if self.conduct.consents:
            seated = consenting(seated, self.key.account, seat)
        self.hand = Hand(self.key, name, seat, seated, view)
        self.hand.away = self.attendance.away_from(seated, self.game.num_seats)
        out.append(HandOpening(self.hand, self.trust.lookup))
        self.trust.lookup = False
        return True

    def _close_hand(self, out: list[Output], reason: str, scores: tuple[float, ...] | None) -> None:
        hand = self.hand
        if hand is None:
            return
        hand.drop_job()
        self.hand = hand.answer = hand.held = None
        hand.due_at = NEVER
        out.append(HandClosed(hand, reason, valid_scores(scores, self.game.num_seats)))

    def _unknown_hand(self, name: str, out: list[Output]) -> None:
        """Handle an event of a hand that is over, or whose beginning we missed."""
        if self.trust.fresh and self.hand is None and not self.trust.lookup:
            return  # a late event of a hand that is over
        self.trust.fresh = False
        if self.hand is not None:
            self.trust.distrust(self.hand, f"event of another hand, {name}", out)


_HANDLERS: dict[type, Callable[[Session, Any, float, list[Output]], None]] = {
    m.Seated: Session._seated,
    m.HandStarted: Session._hand_started,
    m.Snapshot: Session._snapshot,
    m.Delta: Session._delta,
    m.Presence: Session._attends,
    m.HandEnded: Session._hand_ended,
    m.TableEnded: Session._table_ended,
    m.ActionRequest: Session._action_request,
    m.RequestWithdrawn: Session._request_news,
    m.MoveAcknowledged: Session._request_news,
    m.Rejected: Session._request_news,
    m.ServerActedForUs: Session._request_news,
    m.ServerActedFor: Session._attends,
}
