"""The protocol of othello-platform: JSON text frames ``{type, payload, ts}`` and a few REST answers.

Everything that comes in is checked and typed here, and functions build everything that goes out. Ids are numbers in
most messages and strings in some, so we convert them to strings. Unknown fields are ignored.
"""

from __future__ import annotations

import contextlib
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from bothost.lobbies.frames import NOT_JSON, BadFrame

Color = Literal["BLACK", "WHITE"]
COLORS: tuple[Color, Color] = ("BLACK", "WHITE")
"""By seat."""
Id = Annotated[str, Meta(max_length=100)]
Board = Annotated[tuple[Annotated[int, Meta(ge=0, le=2)], ...], Meta(min_length=64, max_length=64)]
"""Index y * 8 + x; 0 empty, 1 black, 2 white."""
Coordinate = Annotated[int, Meta(ge=0, le=7)]


class Body(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Base class of payloads."""


class Pos(Body, frozen=True, gc=False):
    x: Coordinate
    y: Coordinate


class AuthOk(Body, frozen=True, gc=False):
    user_id: Id
    username: str = ""


class Pong(Body, frozen=True, gc=False):
    pass


class Players(Body, frozen=True, gc=False, kw_only=True):
    """Who plays black and white, as far as it is known. The lobby's own player has no id."""

    black_id: Id | None = None
    white_id: Id | None = None
    black_name: str | None = None
    white_name: str | None = None

    @property
    def ids(self) -> tuple[Id | None, Id | None]:
        """By seat."""
        return self.black_id, self.white_id


class RoomState(Players, frozen=True, gc=False):
    """Who sits in a room. Sent after every change, and also after the game."""

    room_id: Id
    game_id: str | None = None
    status: str = "waiting"
    black_ready: bool = False
    white_ready: bool = False
    owner_id: Id | None = None


class GameStart(Players, frozen=True, gc=False):
    game_id: str
    turn: Color
    board: Board
    remaining_ms: float | None = None


class Moved(Body, frozen=True, gc=False):
    """A disc was placed. ``next_turn`` is None at the end, and the same colour if the other side must pass."""

    game_id: str
    color: Color
    pos: Pos
    board: Board
    next_turn: Color | None = None
    remaining_ms: float | None = None


class GameOver(Body, frozen=True, gc=False):
    game_id: str
    result: str | None = None
    end_reason: str = "normal"


class SyncMove(Body, frozen=True, gc=False):
    color: Color
    pos: Pos | None = None
    is_pass: bool = False


class StateSync(Players, frozen=True, gc=False):
    """The answer to ``reconnect``: the position, and the moves since the number in our message."""

    game_id: str
    board: Board
    turn: Color | None = None
    remaining_ms: float | None = None
    status: str = "playing"
    moves: tuple[SyncMove, ...] = ()


class MatchTimeout(Body, frozen=True, gc=False):
    pass


class Chatter(Body, frozen=True, gc=False):
    """A message that we do not need: passes and matches, which the next turn or room shows, and texts for people."""


class ServerShutdown(Body, frozen=True, gc=False):
    pass


class Error(Body, frozen=True, gc=False):
    """An error. It names neither the game nor the message that caused it."""

    code: str
    msg: str = ""


_TYPES: dict[str, type[Body]] = {
    "auth_ok": AuthOk,
    "pong": Pong,
    "room_state": RoomState,
    "game_start": GameStart,
    "move": Moved,
    "game_over": GameOver,
    "state_sync": StateSync,
    "match_queued": Chatter,
    "match_found": Chatter,
    "match_timeout": MatchTimeout,
    "match_left": Chatter,
    "pass": Chatter,
    "server_shutdown": ServerShutdown,
    "error": Error,
}


class _Envelope(msgspec.Struct, gc=False):
    type: str
    payload: msgspec.Raw = msgspec.Raw(b"{}")


_envelope = msgspec.json.Decoder(_Envelope)
_raw = msgspec.json.Decoder()


def decode(data: str | bytes) -> Body:
    """Decode a frame of the lobby. Raises BadFrame."""
    try:
        envelope = _envelope.decode(data)
        kind = _TYPES.get(envelope.type)
        if kind is None:
            raise BadFrame(f"unknown type {envelope.type[:40]!r}")
        return _typed(_raw.decode(envelope.payload), kind)
    except NOT_JSON as error:
        raise BadFrame(str(error)) from None


T = TypeVar("T")
_IDS = ("userId", "roomId", "blackId", "whiteId", "ownerId", "gameId", "id")


def _typed(fields: Any, kind: type[T]) -> T:
    """Convert a decoded object to ``kind``; numeric ids become strings. Raises ValidationError."""
    if not isinstance(fields, dict):
        raise msgspec.ValidationError("the payload is not an object")
    for name in _IDS:
        value = fields.get(name)
        if type(value) is int:
            fields[name] = str(value)
    return msgspec.convert(fields, kind)


# --------------------------------------------------------------------------------------------------------------- REST


class Login(Body, frozen=True, gc=False):
    """The answer to login, register and refresh."""

    token: Annotated[str, Meta(min_length=1, max_length=4096)]
    refresh_token: str | None = None

    def __repr__(self) -> str:
        return "Login(…)"


class Room(Body, frozen=True, gc=False):
    id: Id
    name: str = ""
    mode: str = "human_vs_human"
    ai_level: int | None = None
    status: str = "waiting"
    has_password: bool = False


def login(body: bytes) -> Login:
    """Decode the answer to a login. Raises BadFrame, which does not quote the body."""
    try:
        return _typed(_raw.decode(body), Login)
    except NOT_JSON:
        raise BadFrame("the answer to the login has no valid token") from None


def room(body: bytes) -> Room:
    """Decode a created room. Raises BadFrame."""
    try:
        return _typed(_raw.decode(body), Room)
    except NOT_JSON as error:
        raise BadFrame(str(error)) from None


def room_list(body: bytes) -> list[Room]:
    """Decode a list of rooms. Invalid rooms are left out. Raises BadFrame."""
    try:
        items = _raw.decode(body)["items"]
        rooms = []
        for item in items:
            with contextlib.suppress(msgspec.ValidationError):
                rooms.append(_typed(item, Room))
        return rooms
    except (*NOT_JSON, KeyError, TypeError) as error:
        raise BadFrame(str(error)) from None


def problem(body: bytes) -> str:
    """The error message of a refused REST call; empty if there is none."""
    try:
        error = _raw.decode(body)["error"]
        return f"{error['code']}: {error['msg']}"[:200]
    except (*NOT_JSON, KeyError, TypeError):
        return ""


# ----------------------------------------------------------------------------------------------------------- outbound


def encode(kind: str, **payload: Any) -> str:
    """Encode a frame for the lobby."""
    return msgspec.json.encode({"type": kind, "payload": payload}).decode()


def number(room_id: Id) -> int | str:
    """A room id as the lobby expects it: a number, if it is one."""
    return int(room_id) if room_id.isascii() and room_id.isdigit() else room_id


def move(game_id: str, seq: int, seat: int, notation: str) -> str:
    """Encode a move. ``notation``: a1 … h8. The lobby ignores ``seq``."""
    pos = {"x": ord(notation[0]) - ord("a"), "y": int(notation[1]) - 1}
    return encode("move", gameId=game_id, seq=seq, color=COLORS[seat], pos=pos)
