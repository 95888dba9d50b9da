"""The base class of lobby adapters: sans-IO translators between a lobby's protocol and :mod:`bothost.messages`.

An adapter has no socket and no clock, and never awaits. The shell (``bothost.host``) feeds it inputs and performs the
effects that it returns, in order. One adapter instance serves one account.

Every adapter keeps these rules:

- If the lobby has no request ids, the adapter makes them. An id is never used twice at a table.
- Frames are hostile. For a frame that it does not understand, ``feed`` returns ``Unknown``. An exception is a bug.
- After ``Connected(resumed=True)``, every table that is still open gets a ``Seated`` and a ``Snapshot``. Nothing is
  decided at a table before its snapshot and its clock are fresh.
- ``view["seq"]`` of a ``Snapshot`` is the number of events that it includes. It never decreases within a hand.

:func:`checked` checks the types of what an adapter returns. The host calls it, so a bug in an adapter ends that
adapter's connection and not the host.
"""

from __future__ import annotations

import types
from abc import ABC, abstractmethod
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from bothost.messages import Input, Output, Snapshot
from bothost.strategy import NoOptions

Seconds = Annotated[float, msgspec.Meta(ge=0)]
PositiveSeconds = Annotated[float, msgspec.Meta(gt=0)]
"""Durations in an adapter's options."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a lobby can do. Tests check each value against a fake of the lobby."""

    games: tuple[str, ...]
    """Names of the games that it plays; ``("*",)``: any."""
    tables_per_connection: int | None = None
    """None: the lobby sets no limit."""
    connections_per_identity: int = 1
    """Connections that an account may have at once. The database has as many leases for it."""
    acks_moves: bool
    """Whether the adapter sends ``MoveAcknowledged``. Otherwise the echo of our move in a ``Delta`` counts as one."""
    rejects_illegal: Literal["error", "silence", "resend"]
    """What the lobby does with an illegal move: report an error, nothing, or ask the same again."""
    sends_turn: bool
    """Whether the lobby says who must act. Otherwise the adapter follows the rules."""
    sends_legal_actions: bool = False
    """Whether requests list the legal actions (``ActionRequest.legal``)."""
    takes_composites: bool = False
    """Whether one answer holds all actions of a move: ``Act.actions`` may then have several."""
    clock: Literal["none", "per_move", "bank_and_step"]
    """``per_move``: requests have ``grant_ms``; ``bank_and_step``: also ``bank_ms``."""
    resume: Literal["none", "identity", "token", "game_id"]
    """What brings a lost connection back to its tables: the login alone, or with a token or the id of the game. The
    adapter stores the last two with ``Remember``."""
    resume_delivers: Literal["nothing", "snapshot", "log", "delta"]
    """What the lobby then sends: the position, the whole history, or the events that were missed."""
    heartbeat: Literal["none", "app", "protocol"] = "none"
    """How the host checks that a session is alive: ``app`` by ``Ping``, otherwise by websocket pings."""
    messages_per_second: float | None = None
    """The lobby's limit. The host sends at most half as many. None: no limit is known."""
    on_rate_limit: Literal["close", "error", "drop", "none"] = "none"
    """What the lobby does above its limit."""
    plays_for_us: bool = False
    """Whether the lobby moves for a player who does not answer in time."""
    transport: Literal["websocket", "long_poll"] = "websocket"
    needs_secret: bool = True
    """Whether a login needs a token or a password. Some lobbies only ask for a name."""
    chat: bool = False
    """Whether players at a table can talk: the adapter takes ``Say`` and reports ``Chat``."""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What an adapter needs to log in. Secrets are already resolved, and ``repr`` leaves them out."""

    name: str
    url: str
    token: str = ""
    password: str = ""
    user_agent: str = "bothost"

    def __repr__(self) -> str:
        return f"Account(name={self.name!r}, url={self.url!r}, …)"


class LobbyAdapter(ABC):
    """Base class of adapters; register with the hook ``bothost_lobbies``."""

    name: ClassVar[str]
    """What ``adapter`` in config.toml names; unique among the plugins."""
    capabilities: ClassVar[Capabilities]
    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    """Schema of ``[lobby.options]`` in config.toml."""
    Attributes: ClassVar[type[msgspec.Struct] | None] = None
    """Schema of ``attributes`` of a wish; None: they are not checked. Other attributes are errors if the schema has
    ``forbid_unknown_fields=True``, otherwise labels."""
    login_registers: ClassVar[bool] = False
    """Whether a login with an unknown name always registers an account."""
    kit: ClassVar[str] = ""
    """``module:name`` of the :class:`bothost.testing.check_lobby.LobbyKit` for ``bothost plugin check --lobby``."""

    def __init__(self, account: Account, options: Any) -> None:
        self.account = account
        self.options = options

    @abstractmethod
    def feed(self, item: Input) -> list[Output]:
        """Process one input or command. Returns effects and events in the order in which they must happen.

        An exception is a bug: the host logs ``adapter_failed`` and ends the connection.
        """


class AdapterFault(TypeError):
    """An adapter returned something other than a list of effects and events."""


def checked(outputs: object) -> list[Output]:
    """Check the types of what ``LobbyAdapter.feed`` returned, and return it. Raises AdapterFault."""
    if type(outputs) is not list:
        raise AdapterFault(f"feed returned {type(outputs).__name__}, not a list of effects and events")
    for output in outputs:
        kind = type(output)
        if kind not in _OUTPUTS:
            raise AdapterFault(f"feed returned a list with {kind.__name__}, which is neither an effect nor an event")
        for value, (name, allowed, member, words) in zip(msgspec.structs.astuple(output), _OUTPUTS[kind], strict=True):
            if type(value) not in allowed:
                found = type(value).__name__
                raise AdapterFault(f"{kind.__name__}.{name} is {found}, not {_names(allowed)}")
            if words and value not in words:
                raise AdapterFault(f"{kind.__name__}.{name} is {value!r}, not {' or '.join(words)}")
            if member is not None and type(value) is tuple:
                for item in value:
                    if type(item) not in member:
                        found = type(item).__name__
                        raise AdapterFault(f"{kind.__name__}.{name} has a member {found}, not {_names(member)}")
        if kind is Snapshot and (type(output.view.get("seq")) is not int or output.view["seq"] < 0):
            raise AdapterFault("Snapshot.view needs the key seq: the number of events of this hand that it includes")
    return outputs


_Allowed = frozenset[type]


def _fields(kind: type) -> list[tuple[str, _Allowed, _Allowed | None, tuple[str, ...]]]:
    """For each field its name, its types, the types of its members if it is a tuple, and the words that it takes."""
    rows: list[tuple[str, _Allowed, _Allowed | None, tuple[str, ...]]] = []
    for name, hint in get_type_hints(kind).items():
        tuples = [get_args(part) for part in _parts(hint) if get_origin(part) is tuple]
        member = _allowed(tuples[0][0]) if tuples and tuples[0][1:] == (Ellipsis,) else None
        rows.append((name, _allowed(hint), member, get_args(hint) if get_origin(hint) is Literal else ()))
    return rows


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


_OUTPUTS = {kind: _fields(kind) for kind in get_args(Output)}


def out_of_range(value: Any) -> int | None:
    """Return the first integer in nested plain data that does not fit into 64 signed bits, or None."""
    if isinstance(value, int):
        return None if -(2**63) <= value < 2**63 else value
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return None
    return next((found for item in value if (found := out_of_range(item)) is not None), None)
