"""The frames of the embedded lobby: one JSON object per websocket text message. Its ``type`` names its struct.

``docs/reference/lobby-protocol.md`` is the specification. Both sides (the server in ``bothost.lobby_server``, the
adapter in ``bothost.lobbies.embedded``) read and write frames with these structs only. Within one protocol version a
server may add fields and frame types, so clients ignore unknown ones. A server refuses unknown fields, so that a
misspelt field is an error and not a silent default.

Durations are whole milliseconds. Seats are 0-based. Table ids are unique over restarts of a server.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec

from bothost.lobbies.frames import NOT_JSON

VERSION = 1
T = TypeVar("T")
Json = dict[str, Any]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Scalar = bool | Int64 | float | str | None
Attributes = dict[str, Scalar]

# Close codes of our own (the websocket registry leaves 4000 to 4999 to applications).
CLOSE_PROTOCOL = 4400
"""The first frame was not a valid ``hello`` of a version that the server speaks."""
CLOSE_AUTH = 4401
"""No account has this token."""
CLOSE_TIMEOUT = 4408
"""No ``hello`` came in time."""
CLOSE_SUPERSEDED = 4409
"""Another connection of the same account took over."""
CLOSE_RATE = 4429
"""The client kept sending after it was asked to slow down."""
CLOSE_FULL = 4503
"""The server has no room for another connection."""

HandEndReason = Literal["normal", "resigned", "void"]
TableEndReason = Literal["normal", "left", "aborted", "kicked"]
ServerActedReason = Literal["timeout", "rejects"]
ErrorCode = Literal[
    "bad_json",
    "bad_message",
    "bad_version",
    "bad_token",
    "hello_expected",
    "hello_repeated",
    "rate_limited",
    "unknown_game",
    "bad_rules",
    "bad_attributes",
    "unknown_table",
    "unknown_seek",
    "unknown_invitation",
    "seek_exists",
    "table_full",
    "forbidden",
    "limit",
    "not_playing",
    "chat_limited",
    "internal",
]


class Body(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base class of the structs inside frames."""


class Known(Body, frozen=True):
    """How many events a client received at a table before it lost the connection."""

    hand: str = ""
    seq: int = 0
    """Events of the hand that it received."""


class Ask(Body, frozen=True, gc=False):
    """A seat must act. Time runs from the moment of sending: first the grant, then the bank."""

    id: str
    grant_ms: Int64 | None = None
    """Absent: there is no clock."""
    bank_ms: Int64 = 0


class PlayerInfo(Body, frozen=True):
    player: str
    seat: int
    online: bool = True
    robot: bool = False


class TableInfo(Body, frozen=True):
    table: str
    game: str
    rules: Json = {}
    attributes: Attributes = {}
    seats: int = 0
    free: int = 0
    """0: the table is playing."""
    locked: bool = False
    """A password is needed to join."""


class Limits(Body, frozen=True):
    frame_bytes: int
    messages_per_s: float
    """Messages a second. Answers to pending asks do not count."""
    burst: int
    tables: int
    """Most tables and seeks of one account at the same time."""


# ----------------------------------------------------------------------------------------------------- client → server


class ClientFrame(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag=str.lower, forbid_unknown_fields=True
):
    """Base class of a client's frames. The tag is the lower-case name of the class."""


class Hello(ClientFrame, frozen=True):
    v: int
    token: str
    agent: str = ""
    """Name and version of the client; the server logs it."""
    session: str = ""
    """The session from an earlier ``welcome``."""
    known: dict[str, Known] = {}
    """Tables that the client believes to be open."""


class List(ClientFrame, frozen=True):
    game: str | None = None


class Seek(ClientFrame, frozen=True):
    """Take a seat at any waiting table with these attributes, or open one and wait."""

    seek: str
    game: str
    rules: Json = {}
    attributes: Attributes = {}


class Cancel(ClientFrame, frozen=True):
    seek: str


class Create(ClientFrame, frozen=True):
    """Open a table and wait at it. Attribute ``private`` keeps it out of lists and seeks."""

    seek: str
    game: str
    rules: Json = {}
    attributes: Attributes = {}
    password: str = ""


class Join(ClientFrame, frozen=True):
    seek: str
    table: str
    password: str = ""


class Accept(ClientFrame, frozen=True):
    invitation: str


class Decline(ClientFrame, frozen=True):
    invitation: str


class Act(ClientFrame, frozen=True, gc=False):
    table: str
    id: str
    action: str


class Resign(ClientFrame, frozen=True):
    """Let the server play the rest of this hand."""

    table: str


class Leave(ClientFrame, frozen=True):
    table: str


class Say(ClientFrame, frozen=True):
    """Say something to the other players of a table, which may have just ended."""

    table: str
    text: str


class Sync(ClientFrame, frozen=True):
    """Ask for a snapshot, and for the missed events since ``seq`` of ``hand``, if that is given."""

    table: str
    hand: str = ""
    seq: int = 0


class Ping(ClientFrame, frozen=True):
    pass


ClientMessage = (
    Hello | List | Seek | Cancel | Create | Join | Accept | Decline | Act | Resign | Leave | Say | Sync | Ping
)

# ----------------------------------------------------------------------------------------------------- server → client


def _tag(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


class ServerFrame(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag=_tag):
    """Base class of a server's frames. The tag is the class's name in snake case."""


class Welcome(ServerFrame, frozen=True):
    v: int
    player: str
    session: str
    limits: Limits
    resumed: bool = False
    """Whether the session in ``hello`` is still this account's session."""


class Pong(ServerFrame, frozen=True):
    pass


class Superseded(ServerFrame, frozen=True):
    reason: str = ""


class Error(ServerFrame, frozen=True):
    """The frame was refused and changed nothing. ``field`` is the JSON path of what was wrong with it."""

    code: ErrorCode
    message: str
    field: str = ""
    seek: str = ""
    table: str = ""
    retry_ms: Int64 = 0


class Tables(ServerFrame, frozen=True):
    tables: tuple[TableInfo, ...]


class Waiting(ServerFrame, frozen=True):
    """A seek waits at this table."""

    seek: str
    table: str
    seats: int
    taken: int


class SeekEnded(ServerFrame, frozen=True):
    seek: str
    reason: str


class Invitation(ServerFrame, frozen=True):
    invitation: str
    seek: str
    info: TableInfo
    expires_ms: Int64
    players: tuple[str, ...] = ()
    """All invited players, including us."""


class Seated(ServerFrame, frozen=True):
    """The seats are drawn. After a reconnect, this is the first frame of a table."""

    table: str
    game: str
    rules: Json
    seat: int
    players: tuple[PlayerInfo, ...]
    attributes: Attributes = {}
    seek: str = ""


class HandStarted(ServerFrame, frozen=True):
    table: str
    hand: str
    seat: int
    players: tuple[PlayerInfo, ...]


class Events(ServerFrame, frozen=True, gc=False):
    """New events as this seat may see them. ``seq`` is the number of the first. Most frames are of this type."""

    table: str
    hand: str
    seq: Count
    events: tuple[str, ...]
    done: str | None = None
    """The ask that the client answered, if its answer is among these events."""
    ask: Ask | None = None


class Snapshot(ServerFrame, frozen=True):
    table: str
    hand: str
    seat: int
    seq: Count
    """Number of events that ``view`` includes."""
    view: Json
    ask: Ask | None = None


class Rejected(ServerFrame, frozen=True):
    table: str
    id: str
    reason: Literal["illegal", "stale"]
    message: str
    ask: Ask | None = None
    """The same ask with a new id and the remaining time. Absent if the reason is ``stale``."""


class Withdrawn(ServerFrame, frozen=True):
    table: str
    id: str
    reason: str


class ServerActed(ServerFrame, frozen=True):
    """The server moved for this seat. The move's events follow."""

    table: str
    id: str
    action: str
    reason: ServerActedReason


class Resigned(ServerFrame, frozen=True):
    """Another player lets the server play the rest of the hand."""

    table: str
    hand: str
    seat: int


class Presence(ServerFrame, frozen=True):
    table: str
    player: str
    seat: int
    online: bool


class Chat(ServerFrame, frozen=True):
    """Another player says something: one line of printable text."""

    table: str
    player: str
    text: str


class HandEnded(ServerFrame, frozen=True):
    table: str
    hand: str
    scores: tuple[float, ...] | None
    """One score per seat of this hand; null if the hand was void."""
    reason: HandEndReason = "normal"
    played_for: tuple[int, ...] = ()
    """Seats for which the server made moves. Sent only at the end, because until then the other players must not
    know who did not answer."""


class TableEnded(ServerFrame, frozen=True):
    table: str
    reason: TableEndReason
    scores: tuple[float, ...] | None = None
    """For each seat of the last hand, its player's sum of scores over all hands."""
    detail: str = ""


ServerMessage = (
    Welcome
    | Pong
    | Superseded
    | Error
    | Tables
    | Waiting
    | SeekEnded
    | Invitation
    | Seated
    | HandStarted
    | Events
    | Snapshot
    | Rejected
    | Withdrawn
    | ServerActed
    | Resigned
    | Presence
    | Chat
    | HandEnded
    | TableEnded
)

# --------------------------------------------------------------------------------------------------------------- codec

_encoder = msgspec.json.Encoder()
_client_decoder: msgspec.json.Decoder[ClientMessage] = msgspec.json.Decoder(ClientMessage)
_server_decoder: msgspec.json.Decoder[ServerMessage] = msgspec.json.Decoder(ServerMessage)

encode = _encoder.encode
"""Encode any frame as UTF-8 JSON."""


class Subject(msgspec.Struct):
    """The seek and the table of an invalid frame, as far as they can be read."""

    seek: str = ""
    table: str = ""


_subject_decoder = msgspec.json.Decoder(Subject)


def subject_of(data: str | bytes) -> Subject:
    """What ``data`` is about, for the error frame that answers it."""
    try:
        return _subject_decoder.decode(data)
    except NOT_JSON:
        return Subject()


def decode_client(data: str | bytes) -> ClientMessage:
    """Decode a client's frame. Raises :class:`BadFrame`."""
    return _decode(_client_decoder, data)


def decode_server(data: str | bytes) -> ServerMessage:
    """Decode a server's frame. Raises :class:`BadFrame`."""
    return _decode(_server_decoder, data)


def _decode(decoder: msgspec.json.Decoder[T], data: str | bytes) -> T:
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise BadFrame("bad_message", *_place(str(error))) from None
    except NOT_JSON as error:
        text = "nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"[:300]
        raise BadFrame("bad_json", text) from None


class BadFrame(ValueError):
    """An invalid frame. ``field`` is the JSON path of the problem (``$.table``), or empty."""

    def __init__(self, code: Literal["bad_json", "bad_message"], message: str, field: str = "") -> None:
        super().__init__(message)
        self.code: Literal["bad_json", "bad_message"] = code
        self.field = field


def _place(message: str) -> tuple[str, str]:
    """Split msgspec's message ("problem - at `$.path`", or "… field `name`") into the problem and the field's path."""
    what, _, where = message.partition(" - at `")
    path = where.rstrip("`") or "$"
    if what.startswith(("Object missing required field `", "Object contains unknown field `")):
        path += "." + what.split("`")[1]
    return what[:300], path[:100]
