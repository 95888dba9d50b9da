"""The open request at an open_mahjong table, until it is acknowledged or refused."""

from __future__ import annotations

import msgspec

from bothost import messages as m
from bothost.lobbies.open_mahjong import moves
from bothost.lobbies.open_mahjong import protocol as wire
from bothost.lobbies.open_mahjong.hand import HandTracker
from bothost.lobbies.open_mahjong.options import ECHO
from bothost.lobbies.open_mahjong.session import Session

MOST_ATTEMPTS = 8
"""After this many refused answers to one request, the lobby's clock decides."""


class Ask(msgspec.Struct):
    """A request of the lobby for an action."""

    request: str
    tick: int
    actions: wire.Words
    grant_ms: float
    bank_ms: float
    claim: bool
    raw: str | bytes | None
    attempt: int = 0
    answer: str = ""
    """Our answer; empty until there is one."""
    repeated: bool = False
    """Whether the host gets it late, so that part of the time has passed. How much is not known: assume half."""


class Asking:
    """Keeps the open request; there is at most one. The lobby does not report that it refuses an answer."""

    def __init__(self, session: Session, echo_s: float, table: str, gamestate: str) -> None:
        self.open: Ask | None = None
        self._session = session
        self._echo_s = echo_s
        self._table = table
        self._gamestate = gamestate

    def request(self, hand: HandTracker) -> list[m.Output]:
        """The open request for the host; nothing if it was answered."""
        ask = self.open
        if ask is None or ask.answer or hand.view is None or not hand.view.asked:
            return []
        legal = tuple(moves.legal(hand.picture, ask.actions))
        grant_ms = ask.grant_ms * (0.5 if ask.repeated else 1.0)
        request = m.ActionRequest(
            self._table, hand.name, ask.request, grant_ms, ask.bank_ms, hand.view.seq, legal, ask.raw
        )
        return [request]

    def act(self, act: m.Act, hand: HandTracker) -> list[m.Output]:
        ask = self.open
        if ask is None or ask.answer or act.request_id != ask.request:
            return []
        (action,) = act.actions
        try:
            frame = moves.frame_of(hand.picture, action, ask.actions, self._gamestate, ask.tick)
        except ValueError as error:
            return self._reject(ask, hand, str(error))
        ask.answer = action
        sent = self._session.send_text(frame)
        if ask.claim:
            hand.answer = action
            return [sent]  # the others may think longer than we did
        return [sent, m.SetTimer(ECHO, self._echo_s)]

    def not_seen(self, hand: HandTracker) -> list[m.Output]:
        """No echo of our move came in time, so the lobby refused it."""
        ask = self.open
        if ask is None or not ask.answer:
            return []
        spent = self._echo_s * 1000.0
        ask.bank_ms = max(ask.bank_ms - max(spent - ask.grant_ms, 0.0), 0.0)
        ask.grant_ms = max(ask.grant_ms - spent, 0.0)
        return self._reject(ask, hand, f"the lobby did not echo the move within {self._echo_s:g} s")

    def _reject(self, ask: Ask, hand: HandTracker, reason: str) -> list[m.Output]:
        """Ask the host for another action, up to ``MOST_ATTEMPTS`` times."""
        out: list[m.Output] = [m.Rejected(self._table, ask.request, reason)]
        ask.attempt += 1
        ask.answer = hand.answer = ""
        if ask.attempt >= MOST_ATTEMPTS or hand.view is None:
            self.open = None
            return out
        ask.request = f"{hand.name}.{ask.tick}.{ask.attempt}"
        return out + self.request(hand)

    def resolve(self, action: wire.Action, done: str, *, counted: bool) -> list[m.Output]:
        """Close the request, because something happened at the table.

        ``done``: our own move, if it was one. ``counted``: whether our answer to the open discard counted.
        """
        ask, self.open = self.open, None
        if ask is None:
            return []
        out: list[m.Output] = [m.CancelTimer(ECHO)]
        if counted or (ask.answer and ask.answer == done and not action.is_timeout_action):
            return [*out, m.MoveAcknowledged(self._table, ask.request)]
        if ask.claim and not done and any(kind.startswith(("chi", "peng", "gang")) for kind in action.action_list):
            return [*out, m.RequestWithdrawn(self._table, ask.request, "another claim went first")]
        return [*out, m.ServerActedForUs(self._table, ask.request, done or "pass")]

    def hand_ended(self, *, we_won: bool, other_won: bool) -> list[m.Output]:
        ask, self.open = self.open, None
        if ask is None:
            return []
        if ask.answer and (we_won or (ask.claim and ask.answer == "pass")):
            return [m.MoveAcknowledged(self._table, ask.request)]
        if not ask.answer and not (ask.claim and other_won):
            return [m.ServerActedForUs(self._table, ask.request, "pass" if ask.claim else None)]
        return [m.RequestWithdrawn(self._table, ask.request, "the hand ended without our move")]

    def withdraw(self, reason: str) -> list[m.Output]:
        ask, self.open = self.open, None
        return [] if ask is None else [m.RequestWithdrawn(self._table, ask.request, reason)]
