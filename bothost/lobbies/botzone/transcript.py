"""Records the requests and responses of one match. Its game's dialect folds them into a view."""

from __future__ import annotations

from typing import Any

import msgspec

from bothost import messages as m
from bothost.lobbies.botzone import dialect as dialects
from bothost.lobbies.botzone.dialect import Dialect, Folded, Mismatch, OtherRules
from bothost.lobbies.botzone.games import GAMES, of_request
from bothost.rules.game import View


class Turn(msgspec.Struct):
    """A request and our response."""

    text: str
    """The request as it came."""
    request: Any
    response: Any = None
    form: dialects.Form = "json"

    @classmethod
    def read(cls, text: str, response: Any = None) -> Turn:
        request, form = dialects.decode(text)
        return cls(text, request, response, form)


class Transcript:
    """A match so far. ``kind``: its game; None: recognise it from the first request."""

    def __init__(self, kind: type[Dialect] | None = None, rules: m.Json | None = None) -> None:
        self.turns: list[Turn] = []
        self.dialect: Dialect | None = None
        self.broken = False
        """Whether a request did not fit. The rest of the match is then played without a view."""
        self.kind = kind
        self.rules = rules or {}

    @property
    def view(self) -> View | None:
        return self.dialect.view if self.dialect is not None else None

    @property
    def last(self) -> Turn | None:
        return self.turns[-1] if self.turns else None

    @property
    def answered(self) -> Any:
        """Our response to the request before the last one."""
        return self.turns[-2].response if len(self.turns) > 1 else None

    def text(self) -> str:
        """The response to the last request, as it is sent."""
        turn = self.turns[-1]
        return dialects.encode(turn.response, turn.form)

    def follows_itself(self) -> bool:
        """Whether the last request, if it comes again, can follow our response to it."""
        if self.dialect is None or self.broken:
            return True
        try:
            self.dialect.clone().take(self.turns[-1].request, self.turns[-1].response)
        except Mismatch:
            return False
        return True

    def fold(self) -> Folded | None:
        """Fold the last request. Returns None if the match has other rules than assumed and was folded again.

        Raises Mismatch.
        """
        request = self.turns[-1].request
        if self.dialect is None:
            self.kind = self.kind or of_request(request)
            self.dialect = self._new_dialect(self.kind)
        trial = self.dialect.clone()
        try:
            folded = trial.take(request, self.answered)
        except OtherRules as error:
            assert self.kind is not None
            self.rules = error.rules
            self.dialect = self._fold_all(self.kind(error.rules))
            return None
        self.dialect = trial
        return folded

    def _new_dialect(self, kind: type[Dialect]) -> Dialect:
        return kind(self.rules if kind.game == "mahjong" else {})

    def _fold_all(self, dialect: Dialect) -> Dialect:
        answered = None
        for turn in self.turns:
            dialect.take(turn.request, answered)
            answered = turn.response
        return dialect

    def respond_blind(self) -> Any:
        """The response that is most likely legal without a view; None if there is none."""
        return self.dialect.blind(self.turns[-1].request, self.answered) if self.dialect is not None else None

    # ----------------------------------------------------------------------------------------------------- memory

    def memo(self) -> m.Json:
        """What a new process needs to continue."""
        turns = [[turn.text, turn.response] for turn in self.turns]
        return {"game": self.kind.name if self.kind is not None else "", "rules": self.rules, "turns": turns}

    @classmethod
    def recall(cls, memo: m.Json) -> Transcript:
        """Restore a memo. Raises KeyError, TypeError, ValueError or AttributeError if it is invalid."""
        found = cls(GAMES.get(memo["game"]), dict(memo["rules"]))
        found.turns = [Turn.read(text, response) for text, response in memo["turns"]]
        if found.kind is not None and found.turns:
            found.dialect = found._fold_all(found._new_dialect(found.kind))
        return found
