"""What a game looks like from Python.

Native games (``bothost/native``) and games that a plugin writes in plain Python satisfy the same protocols; the
contract itself, with its law, stands in ``native/games/core/game.h``. All integers are Python ints, all seats 0-based.

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


class Block(Protocol):
    """One named encoder tensor, float32, C order."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def version(self) -> int: ...
    @property
    def of(self) -> Literal["view", "action", "oracle"]: ...
    @property
    def doc(self) -> str: ...


@runtime_checkable
class View(Protocol):
    """What one seat may know. Mutable; ``clone`` before sharing."""

    @property
    def game(self) -> Game: ...
    @property
    def seat(self) -> int: ...
    @property
    def seq(self) -> int:
        """Number of events that this seat has received."""
        ...

    @property
    def asked(self) -> bool:
        """Whether a decision of this seat is awaited."""
        ...

    @property
    def to_act(self) -> int | None:
        """The one seat whose public turn it is, None where there is none (claims, the end)."""
        ...

    @property
    def terminal(self) -> bool: ...
    @property
    def phase(self) -> str: ...

    def legal(self) -> ActionArray:
        """Legal actions of this seat, ascending, int32; empty unless asked."""
        ...

    def is_legal(self, action: int) -> bool: ...
    def observe(self, event: str) -> None:
        """Fold one event. Raises ValueError, and then changes nothing."""
        ...

    def observe_all(self, events: Sequence[str]) -> None:
        """Fold several events; on ValueError those before the bad one are folded."""
        ...

    def apply(self, action: int) -> None:
        """Fold the events that our own action is certain to cause (for lobbies that only take composite moves).

        A claim that others may still beat is folded as if it went through: apply it to a clone.
        """
        ...

    def notation(self, action: int) -> str: ...
    def parse(self, text: str) -> int:
        """Action id of a notation. Raises ValueError."""
        ...

    def sample_state(self, seed: int) -> State:
        """A full state consistent with this view, uniform over the deals that the view allows."""
        ...

    def record(self) -> tuple[Json, list[tuple[int, int]]] | None:
        """The whole hand as ``Game.replay`` takes it, once the reveal at its end was observed; None before."""
        ...

    def encode(self, block: str, out: FloatArray | None = None) -> FloatArray:
        """Write a view block into ``out`` (made when absent) and return it."""
        ...

    def encode_actions(self, block: str, actions: ActionArray, out: FloatArray | None = None) -> FloatArray:
        """Write an action block, shape (len(actions), *shape)."""
        ...

    def to_bytes(self) -> bytes:
        """Versioned bytes, canonical: equal views have equal bytes."""
        ...

    def to_json(self) -> Json: ...
    def hash(self) -> int:
        """Signed 64-bit FNV-1a of ``to_bytes()``."""
        ...

    def clone(self) -> View: ...


class State(Protocol):
    """The full truth of one hand. (Not for ``isinstance``: before Python 3.12 that would evaluate ``returns``.)"""

    @property
    def game(self) -> Game: ...
    @property
    def to_act(self) -> tuple[int, ...]:
        """All seats that may act now, ascending; empty when terminal."""
        ...

    @property
    def terminal(self) -> bool: ...
    @property
    def returns(self) -> tuple[float, ...]:
        """Score of the hand per seat. Raises ValueError before the end."""
        ...

    @property
    def deal(self) -> Json: ...
    def legal(self, seat: int) -> ActionArray: ...
    def apply(self, seat: int, action: int) -> None:
        """Raises ValueError when illegal, and then changes nothing."""
        ...

    def events(self, seat: int, since: int = 0) -> list[str]:
        """The events that the seat received, from number ``since`` on, the deal's among them."""
        ...

    @property
    def actions(self) -> list[tuple[int, int]]:
        """Every (seat, action) applied so far, in order: with ``deal`` it is the whole hand (``Game.replay``)."""
        ...

    def view(self, seat: int) -> View: ...
    def clone(self) -> State: ...


@runtime_checkable
class Game(Protocol):
    """A game with its rules settled. Obtained from :func:`bothost.rules.game`."""

    @property
    def name(self) -> str: ...
    @property
    def rules(self) -> Json:
        """Every option with its value; ``game(name, **rules)`` gives this game back."""
        ...

    @property
    def num_seats(self) -> int: ...
    @property
    def num_actions(self) -> int: ...
    @property
    def format_version(self) -> int:
        """Version of view bytes and view JSON."""
        ...

    @property
    def blocks(self) -> Mapping[str, Block]: ...
    def new_state(self, seed: int) -> State: ...
    def state_from_deal(self, deal: Json) -> State: ...
    def new_view(self, seat: int) -> View:
        """A seat's view before its first event."""
        ...

    def view_from_bytes(self, data: bytes) -> View:
        """Inverse of ``View.to_bytes``. Raises ValueError on anything else."""
        ...

    def view_from_json(self, data: Json) -> View: ...
    def view_from_snapshot(self, data: Json) -> View:
        """A view from what a lobby tells after a reconnect; what is absent is unknown."""
        ...

    def replay(self, deal: Json, actions: Sequence[tuple[int, int]]) -> State:
        """The state that these actions lead to. Raises ValueError."""
        ...

    def notation(self, action: int) -> str: ...
    def parse(self, text: str) -> int: ...


class VecEnv(Protocol):
    """``n`` hands stepped at once with the GIL released; a finished hand restarts with the next deal of its stream.

    One (hand, seat) is asked per environment at a time; simultaneous decisions are asked one after another, each
    without sight of the others. All arrays are views of memory that the environment owns and the next ``step``
    overwrites.
    """

    @property
    def game(self) -> Game: ...
    @property
    def n(self) -> int: ...
    @property
    def seat(self) -> npt.NDArray[np.int8]:
        """Shape (n,): the seat that each environment asks."""
        ...

    @property
    def legal_offsets(self) -> npt.NDArray[np.int64]:
        """Shape (n + 1,): environment i may do ``legal_ids[legal_offsets[i]:legal_offsets[i + 1]]``."""
        ...

    @property
    def legal_ids(self) -> ActionArray: ...
    @property
    def returns(self) -> npt.NDArray[np.float32]:
        """Shape (n, seats): the score of the hand that ended in the last step, else 0."""
        ...

    @property
    def done(self) -> npt.NDArray[np.bool_]:
        """Shape (n,): whether a hand ended in the last step (the next deal already stands)."""
        ...

    def step(self, actions: ActionArray) -> None:
        """Apply one action per environment; -1 leaves an environment as it stands, and not ``done``.

        Raises ValueError, and then changes nothing, when one is illegal.
        """
        ...

    def encode(self, block: str, out: FloatArray, rows: npt.NDArray[np.int64] | None = None) -> None:
        """View block of every asked seat into ``out``, shape (n, *shape).

        ``rows``, here and below: only of these environments, in this order; None: of all.
        """
        ...

    def encode_actions(self, block: str, out: FloatArray, rows: npt.NDArray[np.int64] | None = None) -> None:
        """Action block of every legal action, shape (len(legal_ids), *shape), of ``rows`` only theirs."""
        ...

    def encode_oracle(self, block: str, out: FloatArray, rows: npt.NDArray[np.int64] | None = None) -> None:
        """Oracle block of every asked seat into ``out``, shape (n, *shape): for trainers alone."""
        ...

    def legal_mask(self, out: npt.NDArray[np.bool_]) -> None:
        """Dense mask (n, num_actions); only for games of at most 512 actions."""
        ...

    def deal(self, index: int) -> Json:
        """The deal that environment ``index`` plays now, as ``Game.state_from_deal`` takes it."""
        ...

    def rule_actions(self, indices: npt.NDArray[np.int64]) -> ActionArray:
        """What the game's own rule player would do in the environments ``indices`` (k,), int32 (k,).

        Raises ValueError where the game has none (``pairing`` has), or where an index is not of an environment.
        """
        ...
