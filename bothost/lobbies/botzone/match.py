"""One match at Botzone's local AI: its requests in turn, its open question, and the answer on its way.

Nothing says that an answer arrived. A poll that was answered carried it; after one that failed it is *unsure*, and so
is every answer of an earlier process. The next poll then goes without it: a lobby that lacks the answer tells the
request again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from bothost import messages as m
from bothost.lobbies.botzone import dialect as dialects
from bothost.lobbies.botzone.dialect import Dialect, Mismatch, OtherRules
from bothost.lobbies.botzone.games import GAMES, of_request
from bothost.lobbies.botzone.protocol import sayable

HAND = "1"
"""A match is one hand."""

Where = Literal["nowhere", "ready", "carried", "unsure"]


class Turn(msgspec.Struct):
    """A request as it came, and what we responded."""

    request: str
    response: Any = None
    form: dialects.Form = "json"


class Match:
    """A match, from its first request to its end. ``wish``: what we ordered it with, None for one made by people."""

    def __init__(self, match: str, kind: type[Dialect] | None = None, rules: m.Json | None = None) -> None:
        self.id = match
        self.seek: str | None = None
        self.attributes: m.Json = {}
        self.turns: list[Turn] = []
        self.asked = False
        """Whether the host owes a decision."""
        self.where: Where = "nowhere"
        """Where the answer to the last request is."""
        self.taken = False
        """Whether an unsure answer was probably heard."""
        self._resent = False
        self.inbox: list[str] = []
        """Requests that came before the host had answered an earlier one (whose answer an earlier process gave)."""
        self.seated = False
        self.acknowledged = True
        self._recalled = False
        """Whether the open question is one that an earlier process may have answered."""
        self._kind = kind
        self._rules = rules or {}
        self._dialect: Dialect | None = None
        self._broken = False
        """Whether we lost track: what is most likely to be legal is answered, so that the match goes on."""
        self.repeats = 0
        """How often the last request was told again although it was answered."""

    # ----------------------------------------------------------------------------------------------- what is told

    def told(self, text: str, grant_ms: float) -> list[m.Output]:
        """A request came."""
        last = self.turns[-1] if self.turns else None
        if self.asked:
            if last is None or text != last.request:
                self.inbox.append(text)
            self._recalled = False
            return []
        if last is not None and text == last.request and self._told_again(text):
            return []
        self.repeats = 0
        out = self.acknowledge()
        self.where, self.taken = "nowhere", False
        return out + self._fold(text, grant_ms)

    def _told_again(self, text: str) -> bool:
        """Whether a request of the same words is the same request: then the same answer is due again."""
        unheard = self.where in ("ready", "unsure") and not self.taken
        if not unheard and self._follows(text):
            return False
        self.repeats += 1
        self.where = "ready"
        return True

    def _follows(self, text: str) -> bool:
        """Whether the request may come after our last answer."""
        if self._dialect is None or self._broken:
            return True
        try:
            self._dialect.clone().take(dialects.decode(text)[0], self.turns[-1].response)
        except Mismatch:
            return False
        return True

    def _fold(self, text: str, grant_ms: float) -> list[m.Output]:
        request, form = dialects.decode(text)
        answered = self.turns[-1].response if self.turns else None
        self.turns.append(Turn(text, None, form))
        if self._broken:
            return self._blind(request)
        try:
            out = self._heard(request, answered)
        except Mismatch as error:
            self._broken = True
            notice = m.Notice(f"match {self.id} is not understood any more: {error}", "error")
            return [notice, *self._blind(request)]
        dialect = self._dialect
        assert dialect is not None
        if dialect.asked:
            return out + self._ask(grant_ms)
        if dialect.always_asked:
            self._broken = True
            return [*out, m.Notice(f"match {self.id}: asked out of turn", "error"), *self._blind(request)]
        return out + self._answer(dialect.heard())

    def _heard(self, request: Any, answered: Any) -> list[m.Output]:
        """Fold, and tell what it told. Raises Mismatch."""
        if self._dialect is None:
            kind = self._kind = self._kind or of_request(request)
            self._dialect = kind(self._rules if kind.game == "mahjong" else {})
        before = self._dialect.view
        seq = before.seq if before is not None else 0
        trial = self._dialect.clone()
        try:
            told = trial.take(request, answered)
        except OtherRules as error:
            return self._under(error.rules)
        self._dialect = trial
        if trial.view is None:
            return []
        if before is None and not told.anew:
            return [*self.sit(), self._begun(), m.Delta(self.id, HAND, 0, tuple(told.events))]
        if told.anew:
            return [*(self.sit() if before is None else []), self._snapshot()]
        return [m.Delta(self.id, HAND, seq, tuple(told.events))] if told.events else []

    def _under(self, rules: m.Json) -> list[m.Output]:
        """The match is played by other rules than it seemed: fold it anew, and open the table anew. Raises Mismatch."""
        assert self._kind is not None
        self._rules = rules
        self._dialect = self._refolded(self._kind(rules))
        ended: list[m.Output] = [m.TableEnded(self.id, "aborted", detail="played by other rules than it seemed")]
        return [*(ended if self.seated else []), *self.sit(), self._snapshot()]

    def _refolded(self, dialect: Dialect) -> Dialect:
        """All turns, folded. Raises Mismatch."""
        answered = None
        for turn in self.turns:
            dialect.take(dialects.decode(turn.request)[0], answered)
            answered = turn.response
        return dialect

    def ended(self, slot: int, scores: Sequence[float]) -> list[m.Output]:
        """The match is over. No scores: it was aborted."""
        out = self.acknowledge() if scores else []
        if not self.seated:
            return out
        dialect = self._dialect
        assert dialect is not None
        if not scores:
            return [m.HandEnded(self.id, HAND, None, "aborted"), m.TableEnded(self.id, "aborted", detail="by Botzone")]
        if dialect.view is not None and not self._broken:
            seq = dialect.view.seq
            events = dialect.ended(self.turns[-1].response if self.turns else None, scores)
            if events:
                out.append(m.Delta(self.id, HAND, seq, tuple(events)))
            if slot != dialect.seat:
                out.append(m.Notice(f"match {self.id}: our slot is {slot}, and our seat was {dialect.seat}", "warning"))
        result = tuple(scores) if len(scores) == dialect.players else None
        return [*out, m.HandEnded(self.id, HAND, result), m.TableEnded(self.id, "normal", result)]

    # ----------------------------------------------------------------------------------------------- what we say

    def _ask(self, grant_ms: float) -> list[m.Output]:
        self.asked = True
        return [self.question(grant_ms)]

    def question(self, grant_ms: float) -> m.ActionRequest:
        """The open question. Told again, it keeps its id."""
        assert self._dialect is not None and self._dialect.view is not None
        seq = self._dialect.view.seq
        raw = self.turns[-1].request
        return m.ActionRequest(self.id, HAND, self._request_id(), grant_ms, 0.0, seq, None, raw)

    def _request_id(self) -> str:
        return f"{self.id}.{len(self.turns)}"

    def act(self, act: m.Act) -> list[m.Output]:
        """The host's decision. Raises ValueError where it cannot be said."""
        if not self.asked or act.request_id != self._request_id():
            return []
        assert self._dialect is not None
        response = self._dialect.respond(act.actions)
        self.asked = False
        self.acknowledged = False
        return self._answer(response)

    def _answer(self, response: Any) -> list[m.Output]:
        self.turns[-1].response = response
        self.where, self.taken, self._resent = "unsure" if self._recalled else "ready", False, False
        self._recalled = False
        return []

    def _blind(self, request: Any) -> list[m.Output]:
        """Play on without a view."""
        dialect = self._dialect
        answered = self.turns[-2].response if len(self.turns) > 1 else None
        response = dialect.blind(request, answered) if dialect is not None else None
        # What is not understood may name a tile that nobody can say back.
        if response is not None and sayable(dialects.encode(response, self.turns[-1].form)):
            self._answer(response)
        return []

    def text(self) -> str:
        """The answer to the last request, as it is sent."""
        turn = self.turns[-1]
        return dialects.encode(turn.response, turn.form)

    def unheard(self, *, likely_taken: bool) -> None:
        """The poll that carried our answer failed."""
        self.where, self.taken = "unsure", likely_taken

    def say_again(self) -> None:
        """A poll without our answer stood in vain: say it once more, in case it is missing."""
        if self.where == "unsure":
            self.where = "nowhere" if self._resent else "ready"
            self._resent = True

    def acknowledge(self) -> list[m.Output]:
        """The lobby has heard our last decision."""
        if self.acknowledged:
            return []
        self.acknowledged = True
        return [m.MoveAcknowledged(self.id, self._request_id())]

    def next_in(self, grant_ms: float) -> list[m.Output]:
        """A request that waited for our answer to an earlier one."""
        out: list[m.Output] = []
        while self.inbox and not self.asked:
            self.taken = True  # the lobby went on: our answer was heard
            out += self.told(self.inbox.pop(0), grant_ms)
        return out

    # ----------------------------------------------------------------------------------------------- the table

    def sit(self) -> list[m.Output]:
        """We have a seat. Also said for every match that lives on after a reconnect."""
        dialect = self._dialect
        if dialect is None or dialect.view is None:
            return []
        self.seated = True
        attributes = {"botzone": dialect.name, **self.attributes}
        return [m.Seated(self.id, dialect.game, dialect.rules, dialect.seat, self._players(), attributes, self.seek)]

    def _players(self) -> tuple[m.PlayerInfo, ...]:
        players = self.attributes.get("players")
        if not isinstance(players, list):
            return ()
        return tuple(m.PlayerInfo(str(who), slot, bot=who != "me") for slot, who in enumerate(players))

    def _begun(self) -> m.HandStarted:
        assert self._dialect is not None
        return m.HandStarted(self.id, HAND, self._dialect.seat, self._players())

    def _snapshot(self) -> m.Snapshot:
        assert self._dialect is not None and self._dialect.view is not None
        view = self._dialect.view
        return m.Snapshot(self.id, HAND, view.seat, view.to_json())

    def position(self, grant_ms: float) -> list[m.Output]:
        """The position, and the question if one is open: after a reconnect, or where the host asks."""
        if self._dialect is None or self._dialect.view is None:
            return []
        out: list[m.Output] = [self._snapshot()]
        return [*out, self.question(grant_ms)] if self.asked else out

    # ----------------------------------------------------------------------------------------------- memory

    def memo(self) -> m.Json:
        """What a fresh process needs to go on."""
        turns = [[turn.request, turn.response] for turn in self.turns]
        kind = self._kind.name if self._kind is not None else ""
        sent = self.where in ("nowhere", "carried") or (self.where == "unsure" and self.taken)
        return {"game": kind, "rules": self._rules, "attributes": self.attributes, "turns": turns, "sent": sent}

    @classmethod
    def recall(cls, match: str, memo: Any) -> Match | None:
        """A match of an earlier process; None if the memo makes no sense."""
        try:
            found = cls(match, GAMES.get(memo["game"]), dict(memo["rules"]))
            found.attributes = dict(memo["attributes"])
            found.turns = [Turn(str(text), response, dialects.decode(text)[1]) for text, response in memo["turns"]]
            if found._kind is None or not found.turns:
                return found
            dialect = found._kind(found._rules if found._kind.game == "mahjong" else {})
            found._dialect = found._refolded(dialect)
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        last = found.turns[-1]
        if last.response is not None:
            found.taken = memo.get("sent", True) is not False  # memos of earlier versions do not say it
        elif found._dialect.asked:
            # The log may know what was decided; the host is asked, and then gives the same answer again.
            found.asked = found._recalled = True
        else:
            last.response = found._dialect.heard()
        found.where = "unsure"
        found.seated = found._dialect.view is not None
        return found
