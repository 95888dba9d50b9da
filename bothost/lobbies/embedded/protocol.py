"""The frames of the embedded lobby: one JSON object per websocket text message, its ``type`` names its struct.

``docs/reference/lobby-protocol.md`` is the specification. Both sides (the server in ``bothost.lobby_server``, the
adapter in ``bothost.lobbies.embedded``) read and write frames with these structs only. Within one protocol version a
server may add fields and frame types, so clients ignore what they do not know; a server refuses fields
that it does not know, so that a misspelt one is an error and not a silent default.

Durations are whole milliseconds. Seats are 0-based. Table ids are unique over restarts of a server.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

VERSION = 1
Json = dict[str, Any]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
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
    """Base of what frames contain."""


class Known(Body, frozen=True):
    """How far a client got at a table before it lost the connection."""

    hand: str = ""
    seq: int = 0
    """Events of the hand that it holds."""


class Ask(Body, frozen=True, gc=False):
    """A seat must act. Time runs from the moment of sending: first the grant, then the bank."""

    id: str
    grant_ms: int | None = None
    """Absent: there is no clock."""
    bank_ms: int = 0


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
    """Of messages other than answers to pending asks, which are not counted."""
    burst: int
    tables: int
    """Tables and seeks of one account at once."""


# ----------------------------------------------------------------------------------------------------- client → server


class ClientFrame(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag=str.lower, forbid_unknown_fields=True
):
    """Base of what a client says. The tag is the lower-case name of the class."""


class Hello(ClientFrame, frozen=True):
    v: int
    token: str
    agent: str = ""
    """Name and version of the client; the server logs it."""
    session: str = ""
    """The session that an earlier ``welcome`` named."""
    known: dict[str, Known] = {}
    """Tables that the client holds for alive."""


class List(ClientFrame, frozen=True):
    game: str | None = None


class Seek(ClientFrame, frozen=True):
    """Take a seat at any waiting table that meets every attribute stated here, or open one and wait."""

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
    """Give the rest of this hand to the server's own play."""

    table: str


class Leave(ClientFrame, frozen=True):
    table: str


class Say(ClientFrame, frozen=True):
    """Say something to the other players of a table, which may have just ended."""

    table: str
    text: str


class Sync(ClientFrame, frozen=True):
    """Ask for a snapshot, and for what the client missed since event ``seq`` of ``hand``, if it names one."""

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
    """Base of what a server says. The tag is the name of the class in lower case, its words joined by ``_``."""


class Welcome(ServerFrame, frozen=True):
    v: int
    player: str
    session: str
    limits: Limits
    resumed: bool = False
    """Whether the session that ``hello`` named is still this account's session."""


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
    retry_ms: int = 0


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
    expires_ms: int
    players: tuple[str, ...] = ()
    """Who is invited, we among them."""


class Seated(ServerFrame, frozen=True):
    """Seats are drawn. Also sent, first of all frames of the table, when a connection resumes."""

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
    """What happened as this seat may see it; ``seq`` is the number of the first event. The one hot frame."""

    table: str
    hand: str
    seq: int
    events: tuple[str, ...]
    done: str | None = None
    """The ask that the client answered: its answer is among these events."""
    ask: Ask | None = None


class Snapshot(ServerFrame, frozen=True):
    table: str
    hand: str
    seat: int
    seq: int
    """Events that ``view`` has folded."""
    view: Json
    ask: Ask | None = None


class Rejected(ServerFrame, frozen=True):
    table: str
    id: str
    reason: Literal["illegal", "stale"]
    message: str
    ask: Ask | None = None
    """The same question under a new id, with the time that is left. Absent when ``stale``."""


class Withdrawn(ServerFrame, frozen=True):
    table: str
    id: str
    reason: str


class ServerActed(ServerFrame, frozen=True):
    """The server moved for this seat; the events of the move follow."""

    table: str
    id: str
    action: str
    reason: ServerActedReason


class Resigned(ServerFrame, frozen=True):
    """Another player gave the rest of the hand to the server."""

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
    """Per seat of this hand; null when the hand was void."""
    reason: HandEndReason = "normal"
    played_for: tuple[int, ...] = ()
    """Seats at which the server made moves in a player's place. Sent only at the end: until then the other
    players must not know who did not answer."""


class TableEnded(ServerFrame, frozen=True):
    table: str
    reason: TableEndReason
    scores: tuple[float, ...] | None = None
    """Sum over all hands of the player at each seat of the last hand."""
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
"""Any frame as UTF-8 JSON."""


class Subject(msgspec.Struct):
    """The seek and table of a frame that cannot be decoded, as far as they can be found."""

    seek: str = ""
    table: str = ""


_subject_decoder = msgspec.json.Decoder(Subject)


def subject_of(data: str | bytes) -> Subject:
    """For the error frame that answers ``data``."""
    try:
        return _subject_decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return Subject()


def decode_client(data: str | bytes) -> ClientMessage:
    """A client's frame. Raises :class:`BadFrame`, whatever ``data`` is."""
    try:
        return _client_decoder.decode(data)
    except msgspec.ValidationError as error:
        raise BadFrame("bad_message", *_place(str(error))) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadFrame("bad_json", _say(error)) from None


def decode_server(data: str | bytes) -> ServerMessage:
    """A server's frame. Raises :class:`BadFrame`, whatever ``data`` is."""
    try:
        return _server_decoder.decode(data)
    except msgspec.ValidationError as error:
        raise BadFrame("bad_message", *_place(str(error))) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadFrame("bad_json", _say(error)) from None


class BadFrame(ValueError):
    """A frame that is no message of this protocol. ``field`` is a JSON path (``$.table``), or empty."""

    def __init__(self, code: Literal["bad_json", "bad_message"], message: str, field: str = "") -> None:
        super().__init__(message)
        self.code: Literal["bad_json", "bad_message"] = code
        self.field = field


def _place(message: str) -> tuple[str, str]:
    """msgspec says "what is wrong - at `$.path`", or "… field `name`" of the object there: part the two."""
    what, _, where = message.partition(" - at `")
    path = where.rstrip("`") or "$"
    if what.startswith(("Object missing required field `", "Object contains unknown field `")):
        path += "." + what.split("`")[1]
    return what[:300], path[:100]


def _say(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"[:300]
