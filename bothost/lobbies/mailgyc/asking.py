"""The open request at a mailgyc table, until it is acknowledged or refused.

The lobby sends no requests, so the rules decide when it is our turn. Its errors name no request, so at most one is
open at a time.
"""

from __future__ import annotations

from bothost import messages as m
from bothost.lobbies.mailgyc.hand import MailgycHand
from bothost.lobbies.mailgyc.session import Session


class Asking:
    """Keeps the open request; there is at most one."""

    def __init__(self, session: Session, table: str, level: int) -> None:
        self.grant_ms: float | None = None
        self._session = session
        self._table = table
        self._level = level
        self._request = ""
        """The request that waits for an answer or for the answer's echo."""
        self._acted = False
        self._refused = (0, 0)
        """(events, answers): the number of answers that the lobby refused after this many events."""

    def reset(self) -> None:
        """Drop the request, because the hand ended or the connection was lost."""
        self._request, self._acted = "", False

    def remember(self, hand: MailgycHand) -> m.Remember:
        return m.Remember({"table": self._table, "level": self._level, **hand.memo()})

    def forget(self) -> m.Remember:
        """Remember that no hand is played."""
        return m.Remember({"table": self._table, "level": self._level, "hand": "", "view": None})

    def ask(self, hand: MailgycHand, raw: str | bytes | None) -> list[m.Output]:
        """Ask the host if it is our turn."""
        if not hand.view.asked or self._request:
            return []
        seq = hand.view.seq
        tries = self._refused[1] if self._refused[0] == seq else 0
        self._request = f"{hand.name}.{seq}.{tries}"
        request = m.ActionRequest(self._table, hand.name, self._request, self.grant_ms, 0.0, seq, None, raw)
        return [self.remember(hand), request]

    def act(self, act: m.Act, hand: MailgycHand) -> list[m.Output]:
        if act.request_id != self._request or self._acted:
            return []
        (action,) = act.actions
        try:
            frame = hand.frame_of(action)
        except ValueError as error:
            return self._reject(hand, str(error), resync=False)
        self._acted = True
        return [self._session.send_text(frame)]

    def moved(self) -> list[m.Output]:
        """Our seat moved: acknowledge our answer, or withdraw the request if we gave none."""
        request, acted = self._request, self._acted
        self.reset()
        if not request:
            return []
        if acted:
            return [m.MoveAcknowledged(self._table, request)]
        return [m.RequestWithdrawn(self._table, request, "our seat moved without us")]

    def refused(self, reason: str, hand: MailgycHand) -> list[m.Output] | None:
        """The lobby refuses something. Returns None if no move of ours waits for its echo."""
        if not self._acted:
            return None
        only_the_move = "comply" in reason or "small" in reason
        return self._reject(hand, reason, resync=not only_the_move)

    def _reject(self, hand: MailgycHand, reason: str, *, resync: bool) -> list[m.Output]:
        request, seq = self._request, hand.view.seq
        self.reset()
        self._refused = (seq, self._refused[1] + 1 if self._refused[0] == seq else 1)
        rejected = m.Rejected(self._table, request, reason, resync)
        return [rejected] if resync else [rejected, *self.ask(hand, None)]
