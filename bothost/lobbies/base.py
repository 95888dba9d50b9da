"""What a lobby adapter is: a sans-IO translator between one lobby's dialect and :mod:`bothost.messages`.

An adapter holds no socket, reads no clock and awaits nothing. The shell (``bothost.host``) feeds it inputs and
performs the effects that it returns, in order. One adapter instance serves one account.

Rules that every adapter keeps:

- A request id is made here where the lobby has none, and is never used twice at a table.
- Frames are hostile: whatever arrives, ``feed`` returns (with ``Unknown`` for what it does not understand). It raises
  only for a bug.
- ``Connected(resumed=True)`` is followed by a ``Seated`` and a ``Snapshot`` for every table that still lives; nothing
  is decided at a table before its snapshot, and its clock, are fresh.
- A ``Snapshot`` says how many events it has folded (``view["seq"]``); the numbers of a hand never decrease.

:func:`checked` proves the types of what an adapter returns. The host calls it: a bug of an adapter ends the adapter's
connection, not the host.
"""

from __future__ import annotations

import operator
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from bothost.messages import Input, Output, Snapshot


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a lobby can do, each tested against a faithful fake of it."""

    games: tuple[str, ...]
    tables_per_connection: int | None
    """None: no limit of its own."""
    connections_per_identity: int
    acks_moves: bool
    rejects_illegal: Literal["error", "silence", "resend"]
    sends_turn: bool
    sends_legal_actions: bool
    takes_composites: bool
    clock: Literal["none", "per_move", "bank_and_step"]
    resume: Literal["none", "identity", "token", "game_id"]
    resume_delivers: Literal["nothing", "snapshot", "log", "delta"]
    heartbeat: Literal["none", "app", "protocol"]
    messages_per_second: float | None
    """The lobby's limit; the host keeps to half of it."""
    on_rate_limit: Literal["close", "error", "drop", "none"]
    plays_for_us: bool
    transport: Literal["websocket", "long_poll"] = "websocket"
    needs_secret: bool = True
    """Whether logging in takes a token or a password; some lobbies ask for nothing but a name."""
    chat: bool = False
    """Whether players at a table can talk: the adapter takes ``Say`` and reports ``Chat``."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter needs to log in. Secrets are resolved before they come here, and never printed."""

    name: str
    url: str
    token: str = ""
    password: str = ""
    user_agent: str = "bothost"

    def __repr__(self) -> str:
        return f"Account(name={self.name!r}, url={self.url!r}, …)"


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of an adapter that has none."""


class LobbyAdapter(ABC):
    """Base class of adapters; register with the hook ``bothost_lobbies``."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    """Schema of ``[lobby.options]`` in config.toml."""
    login_registers: ClassVar[bool] = False
    """Whether logging in with an unknown name makes an account, whatever the options say."""
    kit: ClassVar[str] = ""
    """``module:name`` of the :class:`bothost.testing.check_lobby.LobbyKit` for ``bothost plugin check --lobby``."""

    def __init__(self, account: Account, options: Any) -> None:
        self.account = account
        self.options = options

    @abstractmethod
    def feed(self, item: Input) -> list[Output]:
        """Take one input or command; return effects and events in the order in which they must happen."""


class AdapterFault(TypeError):
    """An adapter returned something that is no list of effects and events."""


def checked(outputs: object) -> list[Output]:
    """What ``LobbyAdapter.feed`` returned, after a check of every type. Raises AdapterFault."""
    if type(outputs) is not list:
        raise AdapterFault(f"feed returned {type(outputs).__name__}, not a list of effects and events")
    for output in outputs:
        kind = type(output)
        if kind not in _OUTPUTS:
            raise AdapterFault(f"feed returned a list with {kind.__name__}, which is neither an effect nor an event")
        values, fields = _OUTPUTS[kind]
        for value, (name, allowed, member) in zip(values(output), fields, strict=True):
            if type(value) not in allowed:
                found = type(value).__name__
                raise AdapterFault(f"{kind.__name__}.{name} is {found}, not {_names(allowed)}")
            if member is not None and type(value) is tuple:
                for item in value:
                    if type(item) not in member:
                        found = type(item).__name__
                        raise AdapterFault(f"{kind.__name__}.{name} has a member {found}, not {_names(member)}")
        if kind is Snapshot and (type(output.view.get("seq")) is not int or output.view["seq"] < 0):
            raise AdapterFault("Snapshot.view has no key seq: the number of events of this hand that it has folded")
    return outputs


_Allowed = frozenset[type]


def _fields(kind: type) -> tuple[Callable[[object], tuple[object, ...]], list[tuple[str, _Allowed, _Allowed | None]]]:
    """A getter of all values; then name, allowed types, and those of a tuple's members, of each field."""
    rows: list[tuple[str, _Allowed, _Allowed | None]] = []
    for name, hint in get_type_hints(kind).items():
        allowed = _allowed(hint)
        tuples = [get_args(part) for part in (_parts(hint)) if get_origin(part) is tuple]
        member = _allowed(tuples[0][0]) if tuples and tuples[0][1:] == (Ellipsis,) else None
        rows.append((name, allowed, member))
    if len(rows) < 2:  # attrgetter makes no tuple of one value
        return (lambda output: tuple(getattr(output, name) for name, _, _ in rows)), rows
    return operator.attrgetter(*(name for name, _, _ in rows)), rows


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _allowed(hint: Any) -> _Allowed:
    found: set[type] = set()
    for part in _parts(hint):
        origin = get_origin(part)
        if origin is Literal:
            found |= {type(value) for value in get_args(part)}
        elif part is float:
            found |= {float, int}
        else:
            found.add(origin or part)
    return frozenset(found)


def _names(allowed: _Allowed) -> str:
    return " or ".join(sorted(kind.__name__ for kind in allowed))


_OUTPUTS: dict[type, Any] = {kind: _fields(kind) for kind in get_args(Output)}


def out_of_range(value: Any) -> int | None:
    """The first integer in plain data that does not fit into 64 bits, signed; None where all do."""
    if isinstance(value, int):
        return None if -(2**63) <= value < 2**63 else value
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return None
    return next((found for item in value if (found := out_of_range(item)) is not None), None)
