"""Base class for the protocols of Botzone's games: folds a match's requests and our responses into a canonical view.

Botzone and a player take turns: a *request* of the game's judge, then a *response* of the player. The judge does not
echo responses; the next request implies that the response was accepted. A ``Dialect`` folds both. The lobby adapter
and the ``exec`` strategy (``program``) use the same dialects.

A request is written in one of three forms: as JSON, as a JSON string that holds a line of text, or as the line itself
("simple IO"). The response is written in the form of its request.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import msgspec

from bothost import rules
from bothost.lobbies.frames import NOT_JSON
from bothost.lobbies.frames import Mismatch as Mismatch
from bothost.rules.game import Game, Json, View

Form = Literal["json", "quoted", "plain"]


class OtherRules(Mismatch):
    """A request contradicts earlier ones under the present rules, but not under ``rules``."""

    def __init__(self, reason: str, rules: Json) -> None:
        super().__init__(reason)
        self.rules = rules


class Folded(msgspec.Struct, frozen=True):
    """What a request reports."""

    events: list[str]
    anew: bool = False
    """Whether the view was rebuilt from a position, so that earlier events are unknown."""


class Dialect(ABC):
    """One seat's match. Attributes other than the view are never changed in place, so ``clone`` is cheap."""

    name: ClassVar[str]
    """Botzone's name for the game."""
    game: ClassVar[str]
    """bothost's name for the game."""
    players: ClassVar[int]
    always_asked: ClassVar[bool] = True
    """Whether every request asks for a move. Otherwise most requests only need an acknowledgement."""

    def __init__(self, rules: Json) -> None:
        self.rules = rules
        self.view: View | None = None
        """None until enough requests have arrived to make it."""

    @property
    def asked(self) -> bool:
        """Whether the last request asks for a decision."""
        return self.view is not None and self.view.asked

    @property
    def seat(self) -> int:
        assert self.view is not None
        return self.view.seat

    def clone(self) -> Self:
        twin = copy.copy(self)
        if self.view is not None:
            twin.view = self.view.clone()
        return twin

    @abstractmethod
    def take(self, request: Any, answered: Any) -> Folded:
        """Fold a request; ``answered`` is what we responded to the one before. Raises Mismatch."""

    @abstractmethod
    def respond(self, actions: Sequence[str]) -> Any:
        """The response that makes these actions. Raises ValueError if the protocol cannot express them."""

    @abstractmethod
    def blind(self, request: Any, answered: Any = None) -> Any:
        """The response that is most likely legal when there is no view, or None.

        ``answered`` is our response to the request before this one.
        """

    def acknowledgement(self) -> Any:
        """The response to a request that asks for no decision."""
        return "PASS"

    def ended(self, answered: Any, scores: Sequence[float]) -> list[str]:
        """The last events of a finished match, as far as they are certain."""
        try:
            return self._own(answered)
        except ValueError:
            return []

    # ----------------------------------------------------------------------------------------------- for subclasses

    @abstractmethod
    def _own(self, answered: Any) -> list[str]:
        """Fold our own last answer, and return its events. Raises ValueError."""

    def _begin(self, seat: int) -> Game:
        game = rules.game(self.game, **self.rules)
        self.view = game.new_view(seat)
        return game

    def _observe(self, *lines: str) -> list[str]:
        """Fold events. Raises Mismatch."""
        if self.view is None:
            raise Mismatch("the beginning of the match is missing")
        for line in lines:
            try:
                self.view.observe(line)
            except ValueError as error:
                raise Mismatch(f"{line}: {error}") from None
        return list(lines)


# -------------------------------------------------------------------------------------------------------- wire forms


def decode(text: str) -> tuple[Any, Form]:
    """Decode a request to an object or a line of text. Also returns the form in which it came."""
    try:
        value = msgspec.json.decode(text)
    except NOT_JSON:
        return text.strip(), "plain"
    if isinstance(value, str):
        inner, form = decode(value)
        return inner, "quoted" if form != "json" else "json"
    return (value, "json") if isinstance(value, dict) else (text.strip(), "plain")


def encode(response: Any, form: Form) -> str:
    """Encode a response as one line of ASCII, in the form of its request."""
    if isinstance(response, dict) and form != "json":
        response = " ".join(str(value) for value in response.values())
    if isinstance(response, str):
        return msgspec.json.encode(response).decode() if form == "quoted" else response
    return msgspec.json.encode(response).decode()
