"""The messages between a lobby adapter, the host and a table. They are frozen and typed.

A lobby adapter (``bothost.lobbies.base``) sees three families:

- *inputs*: reports of the shell (a frame arrived, a timer fired) and *commands* (seek a table, act);
- *effects*: requests of the adapter to the shell (send a frame, set a timer);
- *events*: what happened in the lobby, in the canonical form that tables and strategies use.

Seats are 0-based. Game events are canonical text lines and actions canonical notations (``bothost.rules``). Names
of durations end with the unit. ``hand`` is the lobby's own name of one hand at a table. The names of a table and a
hand together never return, not even after a restart of the lobby: the log joins the seats of a hand by them.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Json = dict[str, Any]


class Message(msgspec.Struct, frozen=True, gc=False):
    """Base of all messages."""


# ---------------------------------------------------------------------------------------------------------- inputs


class SocketOpened(Message, frozen=True, gc=False):
    """The socket is open; frames can be sent."""

    conn: int
    """The number that ``OpenSocket`` gave this socket."""


class Frame(Message, frozen=True, gc=False):
    """The lobby sent a text or a binary frame."""

    conn: int
    data: str | bytes


class SocketClosed(Message, frozen=True, gc=False):
    """The lobby closed the socket, or the connection broke. Not sent for a socket that the adapter closed."""

    conn: int
    code: int
    """Close code; 1006 if the connection broke."""
    reason: str = ""


class SocketFailed(Message, frozen=True, gc=False):
    """The socket could not be opened. ``status`` is the HTTP status of the refused upgrade, or 0 without a response."""

    conn: int
    status: int
    reason: str = ""


class HttpResult(Message, frozen=True, gc=False):
    """Answer to an ``HttpRequest``. ``status`` 0 means that no answer arrived; then ``body`` holds the reason."""

    request: int
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class TimerFired(Message, frozen=True, gc=False):
    """A timer of ``SetTimer`` is due."""

    name: str


# -------------------------------------------------------------------------------------------------------- commands


class Wish(Message, frozen=True):
    """The table that the configuration asks for."""

    game: str
    rules: Json = {}
    """Options of the game (``bothost.rules.game(game, **rules)``)."""
    attributes: Json = {}
    """Other options of the lobby: level, room, rated, password, …"""


class Authenticate(Message, frozen=True):
    """Connect and log in. Sent once, when the account starts; reconnecting is ``Resume``."""

    memo: Json = {}
    """What the adapter stored with ``Remember`` for this account, possibly in an earlier process."""


class ListTables(Message, frozen=True):
    """Ask which tables there are, at this game if one is named; answered by ``Tables``."""

    game: str | None = None


class Seek(Message, frozen=True):
    """Ask for a seat. The lobby names the table."""

    seek: str
    """Our name for this seek. A slot is reserved for it."""
    wish: Wish


class CancelSeek(Message, frozen=True):
    """Withdraw a seek. A ``Seated`` that was on its way may still come."""

    seek: str


class Create(Message, frozen=True):
    """Open a new table. For other shells: the host sends ``Seek``."""

    seek: str
    wish: Wish


class Join(Message, frozen=True):
    """Take a seat at a given table. For other shells: the host sends ``Seek``."""

    seek: str
    table: str
    attributes: Json = {}


class Accept(Message, frozen=True):
    """Accept an ``Invitation``."""

    seek: str
    invitation: str


class Decline(Message, frozen=True):
    """Decline an ``Invitation``."""

    invitation: str


class Ready(Message, frozen=True):
    """Say that we are ready. For other shells: under a host, the adapter itself says so when it is time."""

    table: str


class Start(Message, frozen=True):
    """Start the hand at a table of ours. For other shells, as ``Ready``."""

    table: str


class Act(Message, frozen=True, gc=False):
    """Answer an ``ActionRequest``. ``actions`` holds one canonical notation unless the lobby takes composite moves."""

    table: str
    request_id: str
    actions: tuple[str, ...]


class Resign(Message, frozen=True):
    """Give up the hand. For other shells: a host never resigns."""

    table: str


class Leave(Message, frozen=True):
    """Give up the seat."""

    table: str


class Resume(Message, frozen=True):
    """Reconnect after a lost connection. Tables in ``known`` are live on our side."""

    known: tuple[str, ...]
    memo: Json = {}


class Say(Message, frozen=True):
    """Say something to the others at a table, where the lobby has chat; also just after the table has ended."""

    table: str
    text: str


class Resync(Message, frozen=True):
    """Request a new ``Snapshot``, and the ``ActionRequest`` if one is pending: our view of the table may be wrong.

    If the lobby has no other way, reconnect.
    """

    table: str


class Ping(Message, frozen=True):
    """Check that the session is alive; answered by ``Alive``."""


class Close(Message, frozen=True):
    """Log out and close; no further events are expected."""


Command = (
    Authenticate
    | ListTables
    | Seek
    | CancelSeek
    | Create
    | Join
    | Accept
    | Decline
    | Ready
    | Start
    | Act
    | Resign
    | Leave
    | Say
    | Resume
    | Resync
    | Ping
    | Close
)
Input = SocketOpened | Frame | SocketClosed | SocketFailed | HttpResult | TimerFired | Command

# --------------------------------------------------------------------------------------------------------- effects


class OpenSocket(Message, frozen=True):
    """Open a websocket. ``conn`` is the adapter's number for it, which it never uses again."""

    conn: int
    url: str
    headers: tuple[tuple[str, str], ...] = ()


class SendFrame(Message, frozen=True, gc=False):
    """Send a text (str) or a binary (bytes) frame."""

    conn: int
    data: str | bytes


class CloseSocket(Message, frozen=True):
    """Close a socket, also one that is still opening. No ``SocketClosed`` or ``SocketFailed`` follows."""

    conn: int
    code: int = 1000
    reason: str = ""


class HttpRequest(Message, frozen=True):
    """Make an HTTP call; ``HttpResult`` with the same ``request`` follows."""

    request: int
    method: Literal["GET", "POST", "PUT", "DELETE"]
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    timeout_s: float = 30.0
    """For connecting, and for each silence of the lobby. The whole call may take twice as long."""


class SetTimer(Message, frozen=True):
    """Fire once, ``after_s`` from now. It replaces a timer of the same name."""

    name: str
    after_s: float


class CancelTimer(Message, frozen=True):
    """Stop a timer, if it is set."""

    name: str


class Remember(Message, frozen=True):
    """Store durably what a new process needs to resume (a game id, a session token).

    It replaces the previous memo. {} clears it.
    """

    memo: Json


Effect = OpenSocket | SendFrame | CloseSocket | HttpRequest | SetTimer | CancelTimer | Remember

# -------------------------------------------------------------------------------------------------- session events


class Connected(Message, frozen=True):
    """We are logged in. ``resumed``: whether the lobby continues our previous session."""

    player: str
    """Our id in this lobby."""
    resumed: bool = False
    name: str = ""


class Disconnected(Message, frozen=True):
    """The session is lost; the shell backs off, then sends ``Resume``."""

    reason: str
    retry_after_s: float | None = None


class AuthFailed(Message, frozen=True):
    """The lobby refuses our credentials. The host does not retry until the operator changes them."""

    reason: str


class Superseded(Message, frozen=True):
    """Another connection of the same account replaced ours. We do not reconnect."""

    reason: str = ""


class Throttled(Message, frozen=True):
    """The lobby wants fewer frames. The host sends none for so long, at most 60 s, and then limits their rate."""

    retry_after_s: float


class Notice(Message, frozen=True):
    """A message for the operator."""

    text: str
    level: Literal["info", "warning", "error"] = "info"


class Unknown(Message, frozen=True):
    """A frame that the adapter does not understand. It is logged and never fatal."""

    raw: str


class Alive(Message, frozen=True):
    """The lobby answered."""


class Chat(Message, frozen=True):
    """Another player says something at a table of ours. The text is hostile: the host makes it safe to show."""

    table: str
    player: str
    """The lobby's id of the speaker, or the name if it gives no id."""
    text: str


# ---------------------------------------------------------------------------------------------------- table events


class TableInfo(Message, frozen=True):
    """A table in the lobby's list, or the one of an invitation."""

    table: str
    game: str
    rules: Json = {}
    attributes: Json = {}
    free_seats: int = 0


class Tables(Message, frozen=True):
    """Answer to ``ListTables``."""

    tables: tuple[TableInfo, ...]


class PlayerInfo(Message, frozen=True):
    """A player at a table."""

    player: str
    """The lobby's id of the player."""
    seat: int | None = None
    name: str = ""
    """The name to show, if it differs from the id."""
    bot: bool | None = None
    """None: the lobby does not say."""
    consents: bool = False
    """Whether this player agreed that a strategy may be trained to imitate them."""


class Invitation(Message, frozen=True):
    """The lobby offers a seat. We must accept or decline it."""

    invitation: str
    info: TableInfo
    expires_s: float | None = None
    players: tuple[PlayerInfo, ...] = ()
    """The players at the table, if the lobby reports them."""
    seek: str | None = None
    """Our seek that it answers. Its slot becomes the table's."""


class SeekEnded(Message, frozen=True):
    """A seek ended without a seat."""

    seek: str
    reason: str


class Seated(Message, frozen=True):
    """We have a seat. Also sent for every live table after a resume."""

    table: str
    game: str
    rules: Json
    seat: int | None
    """None if seats are drawn when the hand starts."""
    players: tuple[PlayerInfo, ...] = ()
    attributes: Json = {}
    seek: str | None = None


class HandStarted(Message, frozen=True):
    """A hand starts; seats may differ from the last hand's."""

    table: str
    hand: str
    seat: int
    players: tuple[PlayerInfo, ...] = ()


class Snapshot(Message, frozen=True):
    """The lobby's whole view of our seat, for ``Game.view_from_snapshot``. It replaces ours."""

    table: str
    hand: str
    seat: int
    view: Json


class Delta(Message, frozen=True, gc=False):
    """Game events of our seat. ``seq`` is the number of the first of them; a gap means that we must resync."""

    table: str
    hand: str
    seq: int
    events: tuple[str, ...]


class Presence(Message, frozen=True):
    """Another player of the current hand (between hands: of the last one) went offline or came back.

    Report it before the moves that the lobby makes for them, and again after ``Seated`` if it changed. A player who is
    offline stays offline in later hands.
    """

    table: str
    seat: int
    online: bool


class HandEnded(Message, frozen=True):
    """A hand ended."""

    table: str
    hand: str
    scores: tuple[float, ...] | None
    """One per seat; None if the hand was void."""
    reason: str = "normal"


class TableEnded(Message, frozen=True):
    """The table ended. ``aborted`` is not a result: the lobby went away, or gave up the table."""

    table: str
    reason: Literal["normal", "resigned", "timeout", "left", "aborted", "kicked"]
    scores: tuple[float, ...] | None = None
    rating: float | None = None
    detail: str = ""


# --------------------------------------------------------------------------------------------------- action events


class ActionRequest(Message, frozen=True, gc=False):
    """Our seat must act. A request id is never used twice at a table."""

    table: str
    hand: str
    request_id: str
    grant_ms: float | None
    """Time for this action from the arrival of the request; None if the lobby has no clock."""
    bank_ms: float = 0.0
    """Reserve of the clock, in addition to ``grant_ms``."""
    seq: int | None = None
    """Number of events that our seat must have seen before it answers, if the lobby sends it."""
    legal: tuple[str, ...] | None = None
    """The lobby's list of legal actions, if it sends one. It is a hint: our rules decide."""
    raw: str | bytes | None = None
    """The frame with the request. It is logged with the decision."""


class RequestWithdrawn(Message, frozen=True):
    """A request needs no answer any more, or our answer did not count: another claim overtook it."""

    table: str
    request_id: str
    reason: str = ""


class MoveAcknowledged(Message, frozen=True, gc=False):
    """The lobby took our answer to this request."""

    table: str
    request_id: str


class Rejected(Message, frozen=True):
    """The lobby refused our answer. A new ``ActionRequest`` follows. ``resync``: whether we must resync first."""

    table: str
    request_id: str
    reason: str
    resync: bool = False


class ServerActedForUs(Message, frozen=True):
    """The lobby moved for us, for example after a timeout."""

    table: str
    request_id: str | None
    action: str | None


class ServerActedFor(Message, frozen=True):
    """The lobby makes moves for a player in this hand. Report it once, before the hand ends."""

    table: str
    hand: str
    seat: int


HandEvent = Seated | HandStarted | Snapshot | Delta | Presence | HandEnded | TableEnded
ActionEvent = ActionRequest | RequestWithdrawn | MoveAcknowledged | Rejected | ServerActedForUs | ServerActedFor
TableEvent = HandEvent | ActionEvent
ConnectionEvent = Connected | Disconnected | AuthFailed | Superseded | Throttled | Notice | Unknown | Alive
SessionEvent = ConnectionEvent | Chat | Tables | Invitation | SeekEnded
Event = SessionEvent | TableEvent
Output = Effect | Event
