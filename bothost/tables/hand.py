"""One hand at one of our seats, its decisions, and the outputs of a session."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from bothost.messages import ActionRequest, PlayerInfo
from bothost.rules.game import ActionArray, View
from bothost.strategy import Decision
from bothost.tables.actor import Actor
from bothost.tables.clock import NEVER, Window
from bothost.tables.conduct import TableKey

Json = dict[str, Any]
DecidedBy = Literal["strategy", "quick", "fallback", "first-legal"]
OutcomeKind = Literal["sent", "acknowledged", "rejected", "withdrawn", "superseded", "server_acted"]


class Logged(msgspec.Struct, frozen=True):
    """A move that an earlier process decided, with all its decisions in order."""

    request_id: str
    seq: int
    attempt: int
    decision_ids: tuple[bytes, ...]
    actions: tuple[str, ...]
    rejected: bool = False


def consenting(players: tuple[PlayerInfo, ...], account: str, seat: int) -> tuple[PlayerInfo, ...]:
    """``players`` with consent for the player at our seat. If the lobby did not name that player, add one."""
    if all(player.seat != seat for player in players):
        return (*players, PlayerInfo(account, seat, consents=True))
    return tuple(
        msgspec.structs.replace(player, consents=True) if player.seat == seat else player for player in players
    )


def valid_scores(scores: tuple[float, ...] | None, seats: int) -> tuple[float, ...] | None:
    """The scores if they are one finite number per seat, otherwise None. Readers of the log rely on that."""
    return scores if scores is not None and len(scores) == seats and all(map(math.isfinite, scores)) else None


class Job(msgspec.Struct, eq=False):
    """A decision to make. A worker only reads it, and returns it to the session with the result."""

    hand: Hand
    request_id: str
    view: View
    """It does not change while a worker may read it."""
    legal: ActionArray
    window: Window
    seq: int
    """Number of events that our seat had received when the lobby asked."""
    attempt: int
    substep: int = 0
    link: int = 0
    """The link that is asked, an index into ``bothost.tables.fallback.CHAIN``. Not 0: the strategy failed."""
    ticket: int = 0
    """Number of the hand-over to a worker. Results of earlier hand-overs are ignored."""
    reason: str | None = None
    """Why the strategy's own decision is not used."""
    why: Mapping[str, str | None] = {}
    """The ``error`` that the strategy raised, where (``at``), and what to do (``advice``)."""
    decided_by: DecidedBy = "strategy"
    decision: Decision | None = None
    elapsed_s: float = 0.0
    id: bytes = b""
    """The id of the log's row, once it is logged."""

    def admits(self, action: int, num_actions: int) -> bool:
        """Whether the action answers this job and is still legal. The view may have changed since."""
        action = int(action)  # it may be numpy's
        if not 0 <= action < num_actions or not self.view.is_legal(action):
            return False
        hand = self.hand
        if self.substep == 0 and hand.view is not self.view and not hand.view.is_legal(action):
            return False
        return not hand.rejected or action not in hand.rejected


class Hand(msgspec.Struct, eq=False):
    """One hand: what our seat has seen, who plays it, and the open request."""

    key: TableKey
    name: str
    seat: int
    players: tuple[PlayerInfo, ...]
    view: View
    actor: Actor = None  # type: ignore[assignment]
    """Who plays our seat. The shell sets it when it opens the hand."""
    away: frozenset[int] = frozenset()
    """Seats whose players were away at some time, or for which the lobby moved, as far as it reports."""
    lent: bool = False
    """Whether a worker may be reading ``view``. If so, clone it before changing it."""
    game_id: bytes = b""
    """Empty until the shell has opened the hand."""
    news: deque[str] | None = None
    """Events that the player has not received yet; None if its strategy does not want events."""
    job: Job | None = None
    steps: list[Job] = []
    """The decided steps of a composite move, before the open one."""
    held: tuple[ActionRequest, float] | None = None
    """A request that waits until the view can be trusted, and its arrival."""
    answer: Answer | None = None
    """The last answer. It is sent again if the same request is pending after a reconnect."""
    answered: set[str] = set()
    """Requests that were answered on this connection."""
    raw: str | bytes | None = None
    attempt: int = 0
    """Number of the next decision at ``attempt_seq``: the key of its row."""
    attempt_seq: int = -1
    rejected: list[int] = []
    """Actions that the lobby refused at ``attempt_seq``."""
    resyncs: int = 0
    """Snapshots that we asked for since the last sent decision."""
    given_up: bool = False
    failed: bool = False
    """Whether it had a fallback or a refused move."""
    logged: Sequence[Logged] = ()
    """Moves that an earlier process decided; none once we were asked at the position of one."""
    unlogged: list[str] = []
    """Events that were not given to the log yet."""
    unlogged_seq: int = 0
    """Number of the first of them."""
    events_logged_us: int = 0
    """When events were last given to the log, or the hand was opened, in microseconds since 1970."""
    due_at: float = NEVER
    wake_at: float = NEVER

    def own_view(self) -> View:
        """The view for changes: a clone if a worker may be reading it."""
        if self.lent:
            self.view = self.view.clone()
            self.lent = False
        return self.view

    def drop_job(self) -> None:
        """Close the open request. Its worker's result is ignored."""
        if self.job is not None:
            self.job.ticket += 1
            self.job = None
            self.steps = []
            self.due_at = NEVER

    def open_actions(self, seq: int) -> ActionArray:
        """The legal actions at this position, except those that the lobby refused here."""
        if self.attempt_seq != seq:
            self.attempt_seq, self.attempt, self.given_up = seq, 0, False
            if self.rejected:
                self.rejected = []
        legal = self.view.legal()
        return legal[~np.isin(legal, self.rejected)] if self.rejected else legal

    def answer_again(self, request_id: str, seq: int, epoch: int, parse: Callable[[str], int]) -> Answer | None:
        """The answer that we already gave to this request before a reconnect or a crash; None if there is none.

        Also records which moves of an earlier process the lobby refused. ``epoch``: the session's present one.
        """
        answer = self.answer
        if answer is not None and answer.seq == seq and (answer.request_id == request_id or answer.sent_in != epoch):
            answer.request_id = request_id
            return answer
        moves = [move for move in self.logged if move.seq == seq]
        if not moves:
            return None
        last = max(moves, key=lambda move: move.attempt)
        self.attempt_seq, self.attempt = seq, last.attempt + 1
        self.rejected = [parse(move.actions[0]) for move in moves if move.rejected]
        self.logged = ()
        if last.rejected:
            return None
        again = Answer(self, request_id, seq, last.attempt, last.actions, ())
        again.ids, again.state = last.decision_ids, "logged"
        self.answer = again
        return again

    def echoed(self, events: Sequence[str]) -> Answer | None:
        """Our answer, if these events echo it. Some lobbies send no other acknowledgement."""
        answer, seat = self.answer, str(self.seat)
        if answer is None or answer.sent_in < 0 or self.due_at == NEVER or self.job is not None:
            return None
        if not any(event.split(" ", 2)[1:2] == [seat] for event in events):
            return None
        self.due_at = NEVER
        return answer

    def refuse(self, answer: Answer, action: int) -> None:
        """Record that the lobby refused our answer, so that the action is not tried again at this position."""
        self.close_answer()
        if self.job is not None and self.job.seq != answer.seq:
            return  # the lobby asks at another position by now
        if self.attempt_seq != answer.seq:
            self.attempt_seq, self.attempt, self.rejected = answer.seq, answer.attempt + 1, []
        self.rejected.append(action)

    def close_answer(self) -> None:
        """Wait no longer for a sign that our answer arrived. A request that is open keeps its deadline."""
        if self.answer is not None:  # the lobby may ask under the same name again
            self.answered.discard(self.answer.request_id)
        self.answer = None
        if self.job is None:
            self.due_at = NEVER

    def take_events(self) -> tuple[int, list[str]]:
        """Take the events that were not given to the log yet: the number of the first, and the lines."""
        seq, events = self.unlogged_seq, self.unlogged
        self.unlogged_seq += len(events)
        self.unlogged = []
        return seq, events


class Answer(msgspec.Struct, eq=False):
    """A decided move. The shell logs it, asks ``Requests.may_send``, and sends it. Several steps are a composite."""

    hand: Hand
    request_id: str
    seq: int
    attempt: int
    actions: tuple[str, ...]
    steps: Sequence[Job]
    """The decisions to log. Dropped once the answer is sent."""
    state: Literal["new", "logging", "logged"] = "new"
    ids: tuple[bytes, ...] = ()
    """Row ids of its decisions."""
    not_before: float = 0.0
    sent_in: int = -1
    """The session's epoch in which it was sent; -1: not yet."""


class HandOpening(msgspec.Struct, frozen=True):
    """A hand begins. The shell sets ``actor`` and ``game_id``, then calls ``Session.opened``."""

    hand: Hand
    lookup: bool
    """Whether the hand may be in the log from an earlier process, so that the shell must look it up."""


class HandClosed(msgspec.Struct, frozen=True):
    """The hand is over for us, and is released after this."""

    hand: Hand
    reason: str
    scores: tuple[float, ...] | None

    @property
    def score(self) -> float | None:
        """That of our seat; None if there is none."""
        scores, seat = self.scores or (), self.hand.seat
        return scores[seat] if 0 <= seat < len(scores) else None


class SnapshotTaken(msgspec.Struct, frozen=True):
    """A lobby's snapshot replaced our view. Events continue from its ``seq``."""

    hand: Hand
    seq: int
    view: Json
    before: tuple[int, list[str]]
    """Earlier events that were not given to the log yet: the number of the first, and the lines."""


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What happened to a move."""

    answer: Answer
    kind: OutcomeKind
    detail: str | None = None


class Late(msgspec.Struct, frozen=True):
    """The strategy did not answer in time. Its worker may hang."""

    job: Job
    ticket: int


class NeedSnapshot(msgspec.Struct, frozen=True):
    """Our view of the table may be wrong. Nothing is decided there until a snapshot comes."""

    table: str
    reason: str


class GaveUp(msgspec.Struct, frozen=True):
    """We cannot resolve a disagreement with the lobby at this position. We do not answer; its clock decides."""

    table: str
    reason: str


class Closed(msgspec.Struct, frozen=True):
    """The table is over for us."""

    table: str
    reason: str


Output = Job | Answer | HandOpening | HandClosed | SnapshotTaken | Outcome | Late | NeedSnapshot | GaveUp | Closed
