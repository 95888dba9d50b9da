"""The protocols of games in Python.

Native games (``bothost/native``) and plugins' games in plain Python satisfy the same protocols.
``native/games/core/game.h`` states the contract and its law. All integers are Python ints; seats count from 0.

An *event* is one line of text, ``kind seat args…``, in the game's notation: ``play 0 333K``. An *action* is an index
into the game's fixed action space; its *notation* is one printable word without spaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Json = dict[str, Any]
FloatArray = npt.NDArray[np.float32]
ActionArray = npt.NDArray[np.int32]
Rows = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]
"""Rows of indices (offsets, items): row n is ``items[offsets[n]:offsets[n + 1]]``."""


def fnv1a(data: bytes) -> int:
    """Signed 64-bit FNV-1a (Fowler, Noll, Vo), for ``View.hash``."""
    h = 0xCBF29CE484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) % 2**64
    return h - 2**64 if h >= 2**63 else h


class Block(Protocol):
    """One named encoder tensor, float32, C order."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]:
        """Of one view, or of one action; a batch has another axis in front."""

    @property
    def version(self) -> int:
        """Raised when any value changes for any position."""

    @property
    def of(self) -> Literal["view", "action", "oracle"]:
        """What it describes: a view, one of its actions, or what the seat does not know (for training only)."""

    @property
    def doc(self) -> str:
        """The meaning of each cell."""


@runtime_checkable
class View(Protocol):
    """What one seat may know. It is mutable, so ``clone`` it before you share it."""

    @property
    def game(self) -> Game: ...
    @property
    def seat(self) -> int: ...
    @property
    def seq(self) -> int:
        """Number of events that this seat has received."""

    @property
    def asked(self) -> bool:
        """Whether this seat must decide now."""

    @property
    def to_act(self) -> int | None:
        """The seat whose turn it publicly is; None if there is none (claims, the end)."""

    @property
    def terminal(self) -> bool:
        """Whether the hand is over."""

    @property
    def phase(self) -> str:
        """The game's word for what is decided now, such as ``play`` or ``bid``."""

    def legal(self) -> ActionArray:
        """Legal actions of this seat, ascending, int32; empty unless asked."""

    def is_legal(self, action: int) -> bool:
        """Whether ``legal`` holds the action. False for one that does not exist."""

    def observe(self, event: str) -> None:
        """Fold one event. If it raises ValueError, the view is unchanged."""

    def observe_all(self, events: Sequence[str]) -> None:
        """Fold several events. If it raises ValueError, the events before the bad one are folded."""

    def apply(self, action: int) -> None:
        """Fold the events that an action of this seat certainly causes, for lobbies with composite moves.

        A claim is folded as if no other seat beats it, so apply it to a clone. Raises ValueError if it is not legal.
        """

    def notation(self, action: int) -> str:
        """The word of an action. Raises ValueError if there is no such action."""

    def parse(self, text: str) -> int:
        """Action id of a notation. Raises ValueError."""

    def sample_state(self, seed: int) -> State:
        """A full state consistent with this view, uniform over the deals that the view allows."""

    def record(self) -> tuple[Json, list[tuple[int, int]]] | None:
        """The whole hand as arguments of ``Game.replay``, once the deal is revealed at its end; None before."""

    def encode(self, block: str, out: FloatArray | None = None) -> FloatArray:
        """Write a view block into ``out``, or into a new array, and return it: float32, the block's shape.

        Raises ValueError for a name that is no view block and for an ``out`` of another shape, TypeError for an ``out``
        that is not float32 in C order.
        """

    def encode_actions(self, block: str, actions: ActionArray, out: FloatArray | None = None) -> FloatArray:
        """Write an action block, shape (len(actions), *shape). ``actions``: int32. Raises as ``encode`` does."""

    def to_bytes(self) -> bytes:
        """Versioned bytes, canonical: equal views have equal bytes."""

    def to_json(self) -> Json:
        """What the seat knows, with ``format``, the version; for people, logs and programs."""

    def hash(self) -> int:
        """Signed 64-bit FNV-1a of ``to_bytes()``."""

    def clone(self) -> View: ...


class State(Protocol):
    """The full state of one hand. Do not use ``isinstance``: before Python 3.12 it evaluates ``returns``."""

    @property
    def game(self) -> Game: ...
    @property
    def to_act(self) -> tuple[int, ...]:
        """All seats that may act now, ascending; empty when terminal."""

    @property
    def terminal(self) -> bool: ...
    @property
    def returns(self) -> tuple[float, ...]:
        """Score of the hand per seat. Raises ValueError before the end."""

    @property
    def deal(self) -> Json:
        """All that chance decided, for ``Game.state_from_deal``."""

    def legal(self, seat: int) -> ActionArray:
        """Legal actions of a seat, ascending, int32; empty if it may not act. Raises ValueError for no seat."""

    def apply(self, seat: int, action: int) -> None:
        """Apply an action. Raises ValueError if it is illegal; the state is then unchanged."""

    def events(self, seat: int, since: int = 0) -> list[str]:
        """The events that the seat received, from number ``since`` on, including the deal."""

    @property
    def actions(self) -> list[tuple[int, int]]:
        """Every (seat, action) so far, in order. With ``deal`` it is the whole hand (``Game.replay``)."""

    def view(self, seat: int) -> View:
        """What the seat may know now. Raises ValueError for no seat."""

    def clone(self) -> State: ...


@runtime_checkable
class Game(Protocol):
    """A game with fixed rules. :func:`bothost.rules.game` makes it."""

    @property
    def name(self) -> str: ...
    @property
    def rules(self) -> Json:
        """Every option with its value; ``game(name, **rules)`` returns an equal game."""

    @property
    def num_seats(self) -> int: ...
    @property
    def num_actions(self) -> int: ...
    @property
    def format_version(self) -> int:
        """Version of view bytes and view JSON."""

    @property
    def blocks(self) -> Mapping[str, Block]:
        """Its encoder blocks by name."""

    def new_state(self, seed: int) -> State:
        """A new hand. Equal seeds give equal deals."""

    def state_from_deal(self, deal: Json) -> State:
        """A new hand with this deal. Raises ValueError for a deal that is none of this game."""

    def new_view(self, seat: int) -> View:
        """A seat's view before its first event."""

    def view_from_bytes(self, data: bytes) -> View:
        """Inverse of ``View.to_bytes``. Raises ValueError on anything else."""

    def view_from_json(self, data: Json) -> View:
        """Inverse of ``View.to_json``. Raises ValueError on anything else."""

    def view_from_snapshot(self, data: Json) -> View:
        """A view from a lobby's snapshot after a reconnect. Absent fields are unknown. Raises ValueError."""

    def replay(self, deal: Json, actions: Sequence[tuple[int, int]]) -> State:
        """The state after these actions. Raises ValueError if one is illegal."""

    def notation(self, action: int) -> str:
        """The word of an action, in no particular position. Raises ValueError if there is no such action."""

    def parse(self, text: str) -> int:
        """Inverse of ``notation``. Raises ValueError."""


class VecEnv(Protocol):
    """Steps ``n`` hands at once and releases the GIL. A finished hand restarts with the next deal of its stream.

    Each environment asks one seat at a time. Simultaneous decisions are asked one after another, and no seat sees the
    decisions of others. All arrays share the environment's memory, which the next ``step`` overwrites.
    """

    @property
    def game(self) -> Game: ...
    @property
    def n(self) -> int: ...
    @property
    def seat(self) -> npt.NDArray[np.int8]:
        """Shape (n,): the seat that each environment asks."""

    @property
    def legal_offsets(self) -> npt.NDArray[np.int64]:
        """Shape (n + 1,): environment i may do ``legal_ids[legal_offsets[i]:legal_offsets[i + 1]]``."""

    @property
    def legal_ids(self) -> ActionArray:
        """The legal actions of all environments, int32, one after another."""

    @property
    def returns(self) -> npt.NDArray[np.float32]:
        """Shape (n, seats): the score of the hand that ended in the last step, else 0."""

    @property
    def done(self) -> npt.NDArray[np.bool_]:
        """Shape (n,): whether a hand ended in the last step. The next hand is already dealt."""

    def step(self, actions: ActionArray) -> None:
        """Apply one action per environment. -1 leaves an environment unchanged, with ``done`` False.

        Raises ValueError if one is illegal. All environments are then unchanged.
        """

    def encode(self, block: str, out: FloatArray, rows: npt.NDArray[np.int64] | None = None) -> None:
        """Write the view block of every asked seat into ``out``, shape (n, *shape).

        ``rows``, here and below: indices of environments, in order; None: all. Raises ValueError for another block or
        shape, or for an index out of range.
        """

    def encode_actions(self, block: str, out: FloatArray, rows: npt.NDArray[np.int64] | None = None) -> None:
        """Write the action block of every legal action (of ``rows``), shape (len(legal_ids), *shape)."""

    def encode_oracle(self, block: str, out: FloatArray, rows: npt.NDArray[np.int64] | None = None) -> None:
        """Write what every asked seat does not know, shape (n, *shape). For critics in training alone."""

    def legal_mask(self, out: npt.NDArray[np.bool_]) -> None:
        """Write the dense mask (n, num_actions). Raises ValueError for games of more than 512 actions."""

    def deal(self, index: int) -> Json:
        """The current deal of environment ``index``, for ``Game.state_from_deal``."""

    def rule_actions(self, indices: npt.NDArray[np.int64]) -> ActionArray:
        """The actions of the game's own rule player in the environments ``indices`` (k,), int32 (k,).

        Raises ValueError if the game has no rule player (``pairing`` has one), or for an index out of range.
        """
