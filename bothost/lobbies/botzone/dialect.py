"""How Botzone's games are spoken: a match's requests and our responses, folded into a canonical view.

Botzone talks to a player in turns: a *request* of the game's judge, a *response* of ours. Nothing echoes a response;
that the next request comes says that it was taken. A ``Dialect`` folds both. The lobby adapter (``botzone``) and the
program dialect (``botzone_program``) use the same ones.

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
from bothost.rules.game import Game, Json, View

Form = Literal["json", "quoted", "plain"]


class Mismatch(ValueError):
    """What the judge says is not understood, or does not follow from what it said before."""


class OtherRules(Mismatch):
    """What the judge says follows from what it said before under other rules."""

    def __init__(self, reason: str, rules: Json) -> None:
        super().__init__(reason)
        self.rules = rules


class Folded(msgspec.Struct, frozen=True):
    """What a request says."""

    events: list[str]
    anew: bool = False
    """Whether the view was made anew from a position: its events are not all known."""


class Dialect(ABC):
    """One seat's match. What is kept beside the view is never changed in place, so that ``clone`` is cheap."""

    name: ClassVar[str]
    """Botzone's name of the game."""
    game: ClassVar[str]
    """Ours."""
    players: ClassVar[int]
    always_asked: ClassVar[bool] = True
    """Whether every request wants a move of us; otherwise most only want an acknowledgement."""

    def __init__(self, rules: Json) -> None:
        self.rules = rules
        self.view: View | None = None
        """None until the judge has said enough."""

    @property
    def asked(self) -> bool:
        """Whether a decision is wanted."""
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
        """The response that says these actions. Raises ValueError where it cannot be said."""

    @abstractmethod
    def blind(self, request: Any, answered: Any = None) -> Any:
        """A response without a view: the one most likely to be legal, or None.

        ``answered`` is our response to the request before this one.
        """

    def acknowledgement(self) -> Any:
        """The response to a request that wants no decision."""
        return "PASS"

    def ended(self, answered: Any, scores: Sequence[float]) -> list[str]:
        """The last events of a match that is over, as far as they are certain."""
        try:
            return self._own(answered)
        except ValueError:
            return []

    # ----------------------------------------------------------------------------------------------- for subclasses

    @abstractmethod
    def _own(self, answered: Any) -> list[str]:
        """Our own last answer as events, folded. Raises ValueError."""

    def _begin(self, seat: int) -> Game:
        game = rules.game(self.game, **self.rules)
        self.view = game.new_view(seat)
        return game

    def _observe(self, *lines: str) -> list[str]:
        """Fold events. Raises Mismatch."""
        if self.view is None:
            raise Mismatch("we missed the beginning of the match")
        for line in lines:
            try:
                self.view.observe(line)
            except ValueError as error:
                raise Mismatch(f"{line}: {error}") from None
        return list(lines)

    def _first_accepted(self, lines: Sequence[str]) -> list[str]:
        """Fold the first of these events that the rules accept. Raises Mismatch."""
        refusal = Mismatch("no such play")
        for line in lines:
            try:
                return self._observe(line)
            except Mismatch as error:
                refusal = error
        raise refusal


# -------------------------------------------------------------------------------------------------------- wire forms


def decode(text: str) -> tuple[Any, Form]:
    """A request as the judge meant it (an object, or a line of text), and the form in which it came."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text.strip(), "plain"
    if isinstance(value, str):
        inner, form = decode(value)
        return inner, "quoted" if form != "json" else "json"
    return (value, "json") if isinstance(value, dict) else (text.strip(), "plain")


def encode(response: Any, form: Form) -> str:
    """A response as one line of ASCII, in the form of its request."""
    if isinstance(response, dict) and form != "json":
        response = " ".join(str(value) for value in response.values())
    if isinstance(response, str):
        return msgspec.json.encode(response).decode() if form == "quoted" else response
    return msgspec.json.encode(response).decode()
