"""One match at Botzone's local AI: its table, its open request, and the delivery of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bothost import messages as m
from bothost.lobbies.botzone import dialect as dialects
from bothost.lobbies.botzone.delivery import Delivery
from bothost.lobbies.botzone.dialect import Dialect, Mismatch
from bothost.lobbies.botzone.protocol import fits_header
from bothost.lobbies.botzone.transcript import Transcript, Turn

HAND = "1"
"""A match is one hand."""


class Match:
    """A match, from its first request to its end. ``kind`` and ``rules``: set if we ordered the match."""

    def __init__(
        self, match: str, grant_ms: float, kind: type[Dialect] | None = None, rules: m.Json | None = None
    ) -> None:
        self.id = match
        self.seek: str | None = None
        self.attributes: m.Json = {}
        self.transcript = Transcript(kind, rules)
        self.delivery = Delivery()
        self.asked = False
        """Whether the host owes a decision."""
        self.seated = False
        self._grant_ms = grant_ms
        self._next = ""
        """The request that came before the host answered the last one, which an earlier process answered. The lobby
        repeats it until it has our answer."""
        self._recalled = False
        """Whether an earlier process may have answered the open request."""

    @property
    def received(self) -> int:
        """The number of requests so far."""
        return len(self.transcript.turns) + bool(self._next)

    # ----------------------------------------------------------------------------------------------------- requests

    def request(self, text: str) -> list[m.Output]:
        """Handle a request."""
        last = self.transcript.last
        if self.asked:
            if last is None or text != last.text:
                self._next = text
            self._recalled = False
            return []
        if last is not None and text == last.text and self._is_repeated():
            self.delivery.repeated()
            return []
        out = self.acknowledge()
        self.delivery.next_request()
        self.transcript.turns.append(Turn.read(text))
        if self.transcript.broken:
            return self._answer_blind()
        try:
            out += self._fold()
        except Mismatch as error:
            return [*out, *self._lose_track(f"sent a request that does not fit: {error}")]
        dialect = self.transcript.dialect
        assert dialect is not None
        if dialect.asked:
            self.asked = True
            return [*out, self._question()]
        if dialect.always_asked:
            return [*out, *self._lose_track("asks us although it is not our turn")]
        return out + self._answer(dialect.acknowledgement())

    def _is_repeated(self) -> bool:
        """Whether a request with the same text is a repetition. Then the lobby lacks our answer."""
        delivery = self.delivery
        not_sent = delivery.where in ("ready", "unsure") and not delivery.taken
        return not_sent or not self.transcript.follows_itself()

    def _fold(self) -> list[m.Output]:
        """Fold the last request, and return its events. Raises Mismatch."""
        before = self.transcript.view
        seq = before.seq if before is not None else 0
        folded = self.transcript.fold()
        if folded is None:
            ended: list[m.Output] = [
                m.TableEnded(self.id, "aborted", detail="the match has other rules than its first requests showed")
            ]
            return [*(ended if self.seated else []), *self.sit(), self._snapshot()]
        if self.transcript.view is None:
            return []
        if folded.anew:
            return [*(self.sit() if before is None else []), self._snapshot()]
        delta = [m.Delta(self.id, HAND, seq, tuple(folded.events))]
        if before is None:
            return [*self.sit(), m.HandStarted(self.id, HAND, self._dialect.seat, _players(self.attributes)), *delta]
        return [*delta] if folded.events else []

    def _lose_track(self, why: str) -> list[m.Output]:
        self.transcript.broken = True
        return [m.Notice(f"match {self.id} {why}", "error"), *self._answer_blind()]

    def ended(self, slot: int, scores: Sequence[float]) -> list[m.Output]:
        """Handle the end of the match. Without scores it was aborted."""
        out = self.acknowledge() if scores else []
        if not self.seated:
            return out
        dialect = self._dialect
        if not scores:
            return [m.HandEnded(self.id, HAND, None, "aborted"), m.TableEnded(self.id, "aborted", detail="by Botzone")]
        if dialect.view is not None and not self.transcript.broken:
            seq, last = dialect.view.seq, self.transcript.last
            events = dialect.ended(last.response if last is not None else None, scores)
            if events:
                out.append(m.Delta(self.id, HAND, seq, tuple(events)))
            if slot != dialect.seat:
                out.append(m.Notice(f"match {self.id}: our slot is {slot}, and our seat was {dialect.seat}", "warning"))
        result = tuple(scores) if len(scores) == dialect.players else None
        return [*out, m.HandEnded(self.id, HAND, result), m.TableEnded(self.id, "normal", result)]

    # ------------------------------------------------------------------------------------------------------ answers

    def act(self, act: m.Act) -> list[m.Output]:
        """Take the host's decision, then the request that waited for it. Raises ValueError if it cannot be sent."""
        if self.asked and act.request_id == self._request_id():
            response = self._dialect.respond(act.actions)
            self.asked = self.delivery.acknowledged = False
            self._answer(response)
        out: list[m.Output] = []
        if self._next and not self.asked:
            self.delivery.taken = True  # the lobby sent another request
            text, self._next = self._next, ""
            out += self.request(text)
        return out

    def _answer(self, response: Any) -> list[m.Output]:
        self.transcript.turns[-1].response = response
        self.delivery.answer(unsure=self._recalled)
        self._recalled = False
        return []

    def _answer_blind(self) -> list[m.Output]:
        """Continue without a view."""
        response = self.transcript.respond_blind()
        # The response repeats text of the request, which may not be printable ASCII.
        if response is not None and fits_header(dialects.encode(response, self.transcript.turns[-1].form)):
            self._answer(response)
        return []

    def acknowledge(self) -> list[m.Output]:
        """Report once that the lobby has our last decision."""
        if self.delivery.acknowledged:
            return []
        self.delivery.acknowledged = True
        return [m.MoveAcknowledged(self.id, self._request_id())]

    # ---------------------------------------------------------------------------------------------------- the table

    @property
    def _dialect(self) -> Dialect:
        assert self.transcript.dialect is not None
        return self.transcript.dialect

    def sit(self) -> list[m.Output]:
        """Report our seat, when the match begins and after a reconnect."""
        if self.transcript.view is None:
            return []
        self.seated = True
        dialect = self._dialect
        attributes = {"botzone": dialect.name, **self.attributes}
        return [
            m.Seated(
                self.id, dialect.game, dialect.rules, dialect.seat, _players(self.attributes), attributes, self.seek
            )
        ]

    def position(self) -> list[m.Output]:
        """Report the position, and the request if one is open. Part of its time has passed."""
        if self.transcript.view is None:
            return []
        return [self._snapshot(), *([self._question(0.5)] if self.asked else [])]

    def _snapshot(self) -> m.Snapshot:
        view = self.transcript.view
        assert view is not None
        return m.Snapshot(self.id, HAND, view.seat, view.to_json())

    def _question(self, part: float = 1.0) -> m.ActionRequest:
        """The open request, with this part of its time. It keeps its id when it is repeated."""
        view = self.transcript.view
        assert view is not None
        raw = self.transcript.turns[-1].text
        return m.ActionRequest(self.id, HAND, self._request_id(), part * self._grant_ms, 0.0, view.seq, None, raw)

    def _request_id(self) -> str:
        return f"{self.id}.{len(self.transcript.turns)}"

    # ------------------------------------------------------------------------------------------------------- memory

    def memo(self) -> m.Json:
        """What a new process needs to continue."""
        return {**self.transcript.memo(), "attributes": self.attributes, "sent": self.delivery.sent}

    @classmethod
    def recall(cls, match: str, memo: Any, grant_ms: float) -> Match | None:
        """Restore a match of an earlier process; None if the memo is invalid."""
        found = cls(match, grant_ms)
        try:
            found.attributes = dict(memo["attributes"])
            found.transcript = Transcript.recall(memo)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        dialect, last = found.transcript.dialect, found.transcript.last
        if dialect is None or last is None:
            return found
        if last.response is not None:
            found.delivery.taken = memo.get("sent", True) is not False  # memos of earlier versions lack it
        elif dialect.asked:
            # The log may have the decision. The host is asked, and then gives the same answer again.
            found.asked = found._recalled = True
        else:
            last.response = dialect.acknowledgement()
        found.delivery.where = "unsure"
        found.seated = dialect.view is not None
        return found


def _players(attributes: m.Json) -> tuple[m.PlayerInfo, ...]:
    """The players of a match that we ordered."""
    players = attributes.get("players")
    if not isinstance(players, list):
        return ()
    return tuple(m.PlayerInfo(str(who), slot, bot=who != "me") for slot, who in enumerate(players))
