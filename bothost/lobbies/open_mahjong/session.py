"""The session at open_mahjong: one socket, a release version, a login; and the way back into a game."""

from __future__ import annotations

import uuid
from abc import abstractmethod
from typing import Annotated
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Meta

from bothost import messages as m
from bothost.lobbies.base import Account, LobbyAdapter
from bothost.lobbies.open_mahjong import protocol as wire
from bothost.lobbies.open_mahjong.hand import Hand

HELLO, SETTLE = "hello", "settle"
"""Timers: the lobby must answer; it would have offered the way back by now."""
BEGIN, WAIT, LOOK, ECHO, NEXT = "begin", "wait", "look", "echo", "next"
"""Timers of a table: say ready or start; no game began; look for a fuller room; our move must be seen; say ready for
the next hand."""
RESYNC = "resync"
"""Timer: reconnect for a fresh snapshot."""

GAME = "mahjong"


class OpenMahjongOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of open_mahjong."""

    username: str = ""
    """Default: the account's name. The lobby registers one that it does not know, three a day and address."""
    tourist: bool = False
    """Log in as a guest, without a password: a lost connection then loses the game."""
    release_version: int = wire.RELEASE_VERSION
    room_name: str = "bots"
    """Of rooms that we open."""
    create: bool = True
    """Whether a room is opened where none fits."""
    robots: Annotated[int, Meta(ge=0, le=3)] = 0
    """The server's robots that fill a room of ours."""
    game_round: Annotated[int, Meta(ge=1, le=4)] = 1
    """Length of a match in a room that we open: rounds of four hands."""
    round_timer: Annotated[int, Meta(ge=0, le=600)] = 20
    """Its bank, in seconds."""
    step_timer: Annotated[int, Meta(ge=1, le=600)] = 5
    """Its seconds for each step, which come on top of the bank."""
    ready_after_s: float = 1.0
    """How long after taking a seat, and after a hand, we say that we are ready."""
    wait_s: float = 600.0
    """Leave a room in which no game began for so long. 0: never."""
    look_s: float = 10.0
    """Alone in a room that we opened, we look so often whether people wait in another. 0: never."""
    settle_s: float = 2.0
    """How long after a login the lobby may take to offer the way back into a game."""
    answer_timeout_s: float = 10.0
    """How long logging in and coming back may each take."""
    echo_s: float = 3.0
    """The lobby is silent about a move that it does not take: so long we wait to see it made."""


class Table(msgspec.Struct):
    """The room where we wait, then the game that is played there."""

    name: str
    room: str
    """Id of the room; empty for a game of the match queue."""
    rules: m.Json
    attributes: m.Json = {}
    users: tuple[int, ...] = ()
    """By the lobby's index, once a hand was dealt."""
    offline: frozenset[int] = frozenset()
    """Indices."""
    picture: wire.Room | None = None
    """The room, as it was last told."""
    robots_asked: int = -1
    """With so many players in the room we asked for a robot."""
    gamestate: str = ""
    hand: Hand | None = None
    step_s: int = 0
    blind: bool = False
    """Whether we lost track of the hand: nothing is said about it until the next snapshot."""
    mismatches: int = 0
    dropped: frozenset[int] = frozenset()
    """Users that were offline once in this match: the lobby took them out of the room for good."""
    returned: bool = False
    """Whether we have just come back: part of the clock is gone."""
    ask: Ask | None = None
    next_tick: int | None = None
    """The tick of the result that we have to answer with ``ready``."""


class Ask(msgspec.Struct):
    """A question of the lobby to us."""

    request: str
    tick: int
    actions: wire.Words
    grant_ms: float
    bank_ms: float
    claim: bool
    raw: str | bytes | None
    attempt: int = 0
    said: str = ""
    """Our answer; empty until there is one."""


class OpenMahjongSession(LobbyAdapter):
    """Connecting, logging in, coming back, and losing the connection."""

    options: OpenMahjongOptions

    def __init__(self, account: Account, options: OpenMahjongOptions) -> None:
        super().__init__(account, options)
        self._conn = 0
        self._stage = "closed"
        """closed → opening → login → settling [→ returning] → ready"""
        self._user = 0
        self._name = ""
        self._known: tuple[str, ...] = ()
        self._memo: m.Json = {}
        self._table: Table | None = None
        self._abandoned = False
        """Whether we gave up a game that the lobby may still keep for us."""
        self._pings = 0

    @abstractmethod
    def _session_lost(self) -> list[m.Output]:
        """What a lost connection ends."""

    def _send(self, kind: str, **body: object) -> m.SendFrame:
        return m.SendFrame(self._conn, wire.encode(kind, **body))

    # --------------------------------------------------------------------------------------------------- logging in

    def _log_in(self, command: m.Authenticate | m.Resume) -> list[m.Output]:
        self._known = command.known if isinstance(command, m.Resume) else ()
        self._memo = command.memo
        out: list[m.Output] = [] if self._stage == "closed" else [m.CloseSocket(self._conn)]
        if not self.options.tourist and not self._secret:
            return [*out, *self._end(m.AuthFailed("an account needs a password, or the option tourist = true"))]
        self._conn += 1
        self._stage = "opening"
        out.append(m.OpenSocket(self._conn, _address(self.account.url), (("User-Agent", self.account.user_agent),)))
        return [*out, m.SetTimer(HELLO, self.options.answer_timeout_s)]

    @property
    def _secret(self) -> str:
        return self.account.password or self.account.token

    def _opened(self, item: m.SocketOpened) -> list[m.Output]:
        if item.conn != self._conn or self._stage != "opening":
            return []
        self._stage = "login"
        out: list[m.Output] = [self._send("send_release_version", release_version=self.options.release_version)]
        if self.options.tourist:
            return [*out, self._send("login", is_tourist=True)]
        username = self.options.username or self.account.name
        return [*out, self._send("login", username=username, password=self._secret)]

    def _logged_in(self, frame: wire.Login) -> list[m.Output]:
        if self._stage != "login":
            return []
        if not frame.success or frame.login_info is None:
            return self._refuse(frame.message or "the lobby refuses the login")
        self._user, self._name = frame.login_info.user_id, frame.login_info.username
        self._stage = "settling"
        if self.options.tourist:
            return self._welcome(back=False)  # guests are forgotten with their connection
        return [m.SetTimer(SETTLE, self.options.settle_s)]

    def _refuse(self, reason: str) -> list[m.Output]:
        """Failures leave the socket open: we close it."""
        return [m.CloseSocket(self._conn), *self._end(m.AuthFailed(reason))]

    def _popup(self, frame: wire.Popup) -> list[m.Output]:
        text = frame.message_info.content or frame.message_info.title or frame.message
        if frame.message == "error_version":
            version = self.options.release_version
            return self._refuse(f"the lobby wants another release_version than {version}: {text}")
        if frame.message == "login_kickout":
            return [m.CloseSocket(self._conn), *self._end(m.Superseded(text))]
        if frame.message != "reconnect_ask":
            return [m.Notice(f"the lobby says: {text}")]
        if self._abandoned:
            self._abandoned = False
            return [self._send("reconnect_response", reconnect=False)]
        answer = self._send("reconnect_response", reconnect=True)
        if self._stage == "settling":
            self._stage = "returning"
            return [m.CancelTimer(SETTLE), m.SetTimer(HELLO, self.options.answer_timeout_s), answer]
        return [answer]

    def _welcome(self, *, back: bool, keep: str = "") -> list[m.Output]:
        """Logged in. Tables that the lobby does not lead us back to (``keep``) are gone."""
        self._stage = "ready"
        out: list[m.Output] = [m.CancelTimer(HELLO), m.CancelTimer(SETTLE)]
        out.append(m.Connected(str(self._user), back, self._name))
        gone = set(self._known)
        if self._table is not None:
            gone.add(self._table.name)
        gone.discard(keep)
        if self._table is not None and self._table.name != keep:
            self._table = None
        out += [m.TableEnded(name, "aborted", detail="the lobby does not know it any more") for name in sorted(gone)]
        self._known = ()
        return out

    # ----------------------------------------------------------------------------------------------------- losing it

    def _lost(self, item: m.SocketClosed | m.SocketFailed) -> list[m.Output]:
        if item.conn != self._conn or self._stage == "closed":
            return []
        if isinstance(item, m.SocketFailed):
            where = f"HTTP {item.status}" if item.status else "no connection"
            return self._end(m.Disconnected(f"{where}: {item.reason}"))
        return self._end(m.Disconnected(f"closed with {item.code}: {item.reason}"))

    def _end(self, *events: m.Output) -> list[m.Output]:
        """The connection is over; a game may live on."""
        self._stage = "closed"
        out: list[m.Output] = [m.CancelTimer(name) for name in (HELLO, SETTLE, BEGIN, WAIT, LOOK, ECHO, NEXT, RESYNC)]
        return [*out, *self._session_lost(), *events]

    def _reconnect(self, reason: str) -> list[m.Output]:
        """The only way to a fresh snapshot."""
        return [m.CloseSocket(self._conn), *self._end(m.Disconnected(reason))]

    def _late(self, name: str) -> list[m.Output]:
        """A timer of the login fired."""
        if name == HELLO and self._stage in ("opening", "login", "returning"):
            return self._reconnect("the lobby does not answer")
        if name == SETTLE and self._stage == "settling":
            return self._welcome(back=bool(self._known))
        return []

    def _ping(self) -> list[m.Output]:
        if self._stage != "ready":
            return []
        self._pings += 1
        return [self._send("ping", client_ts=self._pings)]

    def _close(self) -> list[m.Output]:
        return [] if self._stage == "closed" else [m.CloseSocket(self._conn, 1000, "bye"), *self._end()]


def _address(url: str) -> str:
    """Every connection has a name of its own: ``ws://host/game/<uuid>``."""
    parts = urlsplit(url)
    scheme = "wss" if parts.scheme in ("wss", "https") else "ws"
    path = parts.path.rstrip("/") or "/game"
    return urlunsplit((scheme, parts.netloc, f"{path}/{uuid.uuid4()}", "", ""))
