"""What follows from the rest of a game, for games in plain Python: derive the game and its view from these classes.

What they do not have is the game's own. See ``Game`` and ``View`` for the contract.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bothost.rules.game import ActionArray, FloatArray, Game, Json, State, View, fnv1a


def require(condition: bool, message: str) -> None:
    """Raise ValueError unless the condition holds."""
    if not condition:
        raise ValueError(message)


def whole(value: Any, low: int, high: int) -> int:
    """The integer within low and high that this is. Raises ValueError for anything else."""
    require(isinstance(value, int | np.integer) and not isinstance(value, bool), f"{value!r} is not an integer")
    require(low <= value <= high, f"{value} is not within {low} .. {high}")
    return int(value)


@dataclass(frozen=True)
class PlainBlock:
    """A ``Block``."""

    name: str
    shape: tuple[int, ...]
    doc: str
    version: int = 1
    of: Literal["view", "action", "oracle"] = "view"


class PlainGame:
    """Hands replay by their actions, and views are the snapshots that they themselves give, as JSON or in bytes."""

    def replay(self: Game, deal: Json, actions: Sequence[tuple[int, int]]) -> State:
        state = self.state_from_deal(deal)
        for seat, action in actions:
            state.apply(seat, action)
        return state

    def view_from_json(self: Game, data: Json) -> View:
        view = self.view_from_snapshot(data)
        require(view.to_json() == data, "this is not a view as to_json gives it")
        return view

    def view_from_bytes(self: Game, data: bytes) -> View:
        require(data[:1] == bytes([self.format_version]), "bytes of another format")
        try:
            view = self.view_from_json(json.loads(data[1:]))
            same = view.to_bytes() == data
        except RecursionError:
            same = False
        require(same, "these are not bytes of a view")
        return view


class PlainView:
    """One seat is asked at a time. Notations do not depend on the position, and there are no action blocks."""

    @property
    def asked(self: View) -> bool:
        return self.to_act == self.seat

    def is_legal(self: View, action: int) -> bool:
        return action in self.legal()

    def observe_all(self: View, events: Sequence[str]) -> None:
        for event in events:
            self.observe(event)

    def notation(self: View, action: int) -> str:
        return self.game.notation(action)

    def parse(self: View, text: str) -> int:
        return self.game.parse(text)

    def encode_actions(self: View, block: str, actions: ActionArray, out: FloatArray | None = None) -> FloatArray:
        raise ValueError(f"{self.game.name} has no action blocks")

    def to_bytes(self: View) -> bytes:
        """The version, then the JSON."""
        return bytes([self.game.format_version]) + json.dumps(self.to_json()).encode()

    def hash(self: View) -> int:
        return fnv1a(self.to_bytes())
