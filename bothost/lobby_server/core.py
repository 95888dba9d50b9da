"""The lobby without its sockets: frames and times go in, frames to send and sockets to close come out.

The shell (:mod:`bothost.lobby_server.server`) numbers its connections and calls ``opened``, ``received``, ``closed``
and ``tick`` with the monotonic time; after each call it performs what ``take()`` returns, in order, and sees to it that
``tick`` is called again at ``wake_at()``.
"""

from __future__ import annotations

import hashlib
import hmac
import random
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import partial

import msgspec
import structlog

from bothost.errors import ConfigError
from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.matching import WaitingList
from bothost.lobby_server.settings import ServerSettings, check_accounts
from bothost.lobby_server.table import ServerTable
from bothost.lobby_server.timers import Timers
from bothost.lobby_server.waiting import BadWish, GameShelf
from bothost.rules.game import Game

log = structlog.get_logger("bothost.lobby_server")


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send this text frame (UTF-8) on a connection."""

    conn: int
    data: bytes


class Close(msgspec.Struct, frozen=True, gc=False):
    """Close a connection, after what was sent before."""

    conn: int
    code: int
    reason: str


Output = Send | Close


class Connection(msgspec.Struct):
    """A socket. ``player`` is set once it said hello."""

    number: int
    bucket: float
    filled: float
    player: str | None = None
    closing: bool = False
    refused: int = 0


class ServerPlayer(msgspec.Struct):
    """An account that has been here since the server started."""

    name: str
    session: str
    conn: Connection | None = None
    tables: dict[str, ServerTable] = {}


class Lobby:
    """All state of a lobby. Not thread-safe; bounded by ``settings``."""

    def __init__(
        self,
        settings: ServerSettings,
        make_game: Callable[..., Game],
        games: Iterable[str],
        *,
        rng: random.Random | None = None,
        boot: str | None = None,
    ) -> None:
        """``rng`` (deals, seats, robots; default: the system's) and ``boot`` (prefix of ids) make tests repeatable."""
        self.settings = settings
        self.rng = rng or random.SystemRandom()
        self.boot = boot or secrets.token_hex(3)
        self.players: dict[str, ServerPlayer] = {}
        self.connections: dict[int, Connection] = {}
        self.tables: dict[str, ServerTable] = {}
        self.timers = Timers()
        self.waiting = WaitingList(self, settings, GameShelf(make_game, games))
        self.frames_in = 0
        self.hands_played = 0
        self._digests = {name: hashlib.sha256(token.encode()).digest() for name, token in settings.tokens.items()}
        self.remembered: OrderedDict[str, tuple[ServerTable, wire.TableEnded]] = OrderedDict()
        self._strangers: dict[int, str] = {}
        """Connections without a hello, oldest first, with their addresses."""
        self._out: list[Output] = []
        self._ids = 0

    # -------------------------------------------------------------------------------------------------------- accounts

    def admit(self, name: str, token: str) -> None:
        """Open an account while the lobby runs. Raises ConfigError for a name or token that cannot be one's."""
        if name in self._digests:
            raise ConfigError(f"there is an account {name!r} already", key="lobby_server.tokens")
        check_accounts({name: token})
        self._digests[name] = hashlib.sha256(token.encode()).digest()

    def dismiss(self, name: str) -> None:
        """Close an account: its token opens no connection any more. Tables at which it sits go on."""
        self._digests.pop(name, None)
        player = self.players.get(name)
        if player is not None and player.conn is None and not player.tables:
            del self.players[name]

    # --------------------------------------------------------------------------------------------- called by the shell

    def take(self) -> list[Output]:
        """What is to be done since the last call, in order."""
        out, self._out = self._out, []
        return out

    def wake_at(self) -> float | None:
        """When to call ``tick``; None: nothing waits."""
        return self.timers.wake_at()

    def opened(self, conn: int, now: float, address: str = "") -> None:
        """A socket was accepted."""
        connection = Connection(conn, float(self.settings.burst), now)
        self.connections[conn] = connection
        if len(self.connections) > self.settings.connections:
            self._close(connection, wire.CLOSE_FULL, "too many connections")
            return
        self._strangers[conn] = address
        self.timers.set(f"hello {conn}", now + self.settings.hello_s)
        self._evict_stranger(address)

    def _evict_stranger(self, address: str) -> None:
        """Silent connections must not keep the accounts out: the oldest makes room."""
        same = [conn for conn, of in self._strangers.items() if of == address]
        if len(same) > self.settings.strangers_per_address:
            oldest = same[0]
        elif len(self._strangers) > self.settings.strangers:
            oldest = next(iter(self._strangers))
        else:
            return
        del self._strangers[oldest]
        self.timers.cancel(f"hello {oldest}")
        self._close(self.connections[oldest], wire.CLOSE_FULL, "too many connections without a hello")

    def closed(self, conn: int, now: float) -> None:
        """A socket is gone, whoever closed it."""
        connection = self.connections.pop(conn, None)
        self._strangers.pop(conn, None)
        self.timers.cancel(f"hello {conn}")
        player = self.players.get(connection.player or "") if connection is not None else None
        if player is None or player.conn is not connection:
            return
        player.conn = None
        log.info("player left", player=player.name, conn=conn, tables=len(player.tables))
        self.waiting.forget_player(player.name, now)
        for table in player.tables.values():
            table.presence(player.name, False)

    def received(self, conn: int, data: str | bytes, now: float) -> None:
        """A frame came. Whatever it is, the lobby stands; what is wrong with it is said in an ``error`` frame."""
        connection = self.connections.get(conn)
        if connection is None or connection.closing:
            return
        self.frames_in += 1
        try:
            message = wire.decode_client(data)
        except wire.BadFrame as error:
            about = wire.subject_of(data)
            refusal = wire.Error(error.code, str(error), error.field, about.seek[:100], about.table[:100])
            self._refuse(connection, refusal, now)
            return
        try:
            if connection.player is None:
                self._first(connection, message, now)
            elif type(message) is wire.Act:
                self._act(connection, connection.player, message, now)
            elif self._admit(connection, now, getattr(message, "seek", "")):
                self._dispatch(connection, self.players[connection.player], message, now)
        except Exception:
            log.exception("a message failed", player=connection.player, message=type(message).__name__)
            self._say(connection, wire.Error("internal", "internal error of the server; it was logged"))

    def tick(self, now: float) -> None:
        """Time has passed."""
        for key in self.timers.due(now):
            kind, _, name = key.partition(" ")
            if kind == "table":
                table = self.tables.get(name)
                if table is not None:
                    self._at_table(table, now, partial(table.tick, now))
            elif kind == "waiting":
                self.waiting.tick(name, now)
            elif kind == "hello":
                connection = self.connections.get(int(name))
                if connection is not None and connection.player is None:
                    self._close(connection, wire.CLOSE_TIMEOUT, "no hello")

    def slow(self, conn: int) -> None:
        """The shell cuts a connection because it does not read: a close frame would not reach it."""
        connection = self.connections.get(conn)
        if connection is not None and not connection.closing:
            log.warning("slow client is disconnected", player=connection.player, conn=conn)
            connection.closing = True

    # ------------------------------------------------------------------------------- the audience of tables (Audience)

    def send(self, player: str, frame: wire.ServerFrame) -> None:
        """To the player's connection, if there is one."""
        connection = self.players[player].conn
        if connection is not None:
            self._out.append(Send(connection.number, wire.encode(frame)))

    def online(self, player: str) -> bool:
        known = self.players.get(player)
        return known is not None and known.conn is not None

    # --------------------------------------------------------------------------------------- used by the waiting list

    def tables_of(self, player: str) -> int:
        """How many tables a player sits at."""
        return len(self.players[player].tables)

    def new_id(self, *, secret: bool = False) -> str:
        """An id that no other table or invitation has, over restarts. ``secret``: nor can anybody guess it."""
        self._ids += 1
        return f"{self.boot}-{self._ids}" + (f"-{self.rng.getrandbits(96):024x}" if secret else "")

    def seed(self) -> int:
        return self.rng.getrandbits(63)

    def open_table(self, table: ServerTable, now: float) -> None:
        """Seats are drawn: play."""
        self.tables[table.name] = table
        for member in table.members:
            if not member.robot:
                self.players[member.player].tables[table.name] = table
        log.debug(
            "table started",
            table=table.name,
            game=table.rules.game_name,
            players=[m.player for m in table.members],
            attributes=table.rules.attributes,
        )
        self._at_table(table, now, partial(table.open, now))

    # ------------------------------------------------------------------------------------------------------- hello

    def _first(self, connection: Connection, message: wire.ClientMessage, now: float) -> None:
        if not isinstance(message, wire.Hello):
            self._refuse(connection, wire.Error("hello_expected", "the first frame is `hello`", "$.type"), now)
        elif message.v != wire.VERSION:
            text = f"this server speaks version {wire.VERSION}"
            self._refuse(connection, wire.Error("bad_version", text, "$.v"), now)
        elif len(message.known) > self.settings.tables_per_account:
            text = f"at most {self.settings.tables_per_account} tables"
            self._refuse(connection, wire.Error("limit", text, "$.known"), now)
        elif (name := self.account_of(message.token)) is None:
            log.warning("bad token", conn=connection.number, agent=message.agent[:80])
            self._say(connection, wire.Error("bad_token", "no account has this token", "$.token"))
            self._close(connection, wire.CLOSE_AUTH, "bad token")
        else:
            self._welcome(connection, name, message, now)

    def account_of(self, token: str) -> str | None:
        """The account of a token, in a time that tells nothing about the tokens."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        found = None
        for name, known in self._digests.items():
            if hmac.compare_digest(digest, known):
                found = name
        return found

    def _welcome(self, connection: Connection, name: str, hello: wire.Hello, now: float) -> None:
        self.timers.cancel(f"hello {connection.number}")
        player = self.players.get(name)
        if player is None:
            player = self.players[name] = ServerPlayer(name, f"{self.boot}-{self.rng.getrandbits(64):016x}")
        returns = player.conn is None
        if player.conn is not None:
            self._supersede(player, now)
        connection.player, player.conn = name, connection
        self._strangers.pop(connection.number, None)
        resumed = hmac.compare_digest(hello.session.encode("utf-8", "surrogatepass"), player.session.encode())
        log.info("hello", player=name, conn=connection.number, resumed=resumed, agent=hello.agent[:80])
        s = self.settings
        limits = wire.Limits(s.frame_bytes, s.messages_per_s, s.burst, s.tables_per_account)
        self._say(connection, wire.Welcome(wire.VERSION, name, player.session, limits, resumed))
        for table_id, known in hello.known.items():
            if table_id not in player.tables:
                self._tell_end(player, table_id, known)
        for table in list(player.tables.values()):
            self._at_table(table, now, partial(table.resume, name, hello.known.get(table.name), now))
            if returns:
                table.presence(name, True)

    def _supersede(self, player: ServerPlayer, now: float) -> None:
        old, player.conn = player.conn, None
        assert old is not None
        log.info("superseded", player=player.name, conn=old.number)
        self._say(old, wire.Superseded("another connection of this account took over"))
        self._close(old, wire.CLOSE_SUPERSEDED, "superseded")
        self.waiting.forget_player(player.name, now)

    def _tell_end(self, player: ServerPlayer, table_id: str, known: wire.Known) -> None:
        """A table that the client holds for alive is not: say how it ended, if that is still known."""
        table, ended = self.remembered.get(table_id, (None, None))
        if table is not None and ended is not None and table.sat(player.name):
            table.catch_up(player.name, known)
            self.send(player.name, ended)
        else:
            detail = "this server has no such table; it may have been restarted"
            self.send(player.name, wire.TableEnded(table_id[:100], "aborted", None, detail))

    # ----------------------------------------------------------------------------------------------------- messages

    def _dispatch(self, connection: Connection, player: ServerPlayer, message: wire.ClientMessage, now: float) -> None:
        try:
            match message:
                case wire.Ping():
                    self._say(connection, wire.Pong())
                case wire.Seek() | wire.Create() | wire.Join():
                    self.waiting.ask(player.name, message, now)
                case wire.Cancel():
                    self.waiting.cancel(player.name, message.seek, now)
                case wire.Accept() | wire.Decline():
                    accepts = isinstance(message, wire.Accept)
                    self.waiting.answer(player.name, message.invitation, accepts, now)
                case wire.List():
                    self._say(connection, wire.Tables(tuple(self.table_infos(message.game))))
                case wire.Sync() | wire.Resign() | wire.Leave():
                    self._table_message(player, message, now)
                case wire.Hello():
                    self._say(connection, wire.Error("hello_repeated", "this connection has said hello", "$.type"))
                case wire.Act():
                    raise AssertionError("acts are handled before")
        except BadWish as error:
            seek = getattr(message, "seek", "")
            self._say(connection, wire.Error(error.code, str(error), error.field, seek=seek[:100]))

    def _table_message(self, player: ServerPlayer, message: wire.Sync | wire.Resign | wire.Leave, now: float) -> None:
        table = player.tables.get(message.table)
        if table is None:
            self._no_table(player.name, message.table)
        elif isinstance(message, wire.Sync):
            known = wire.Known(message.hand, message.seq)
            self._at_table(table, now, partial(table.sync, player.name, known, now))
        elif isinstance(message, wire.Leave):
            del player.tables[table.name]
            self._at_table(table, now, partial(table.leave, player.name, now))
        else:
            self._at_table(table, now, partial(self._resign, table, player.name, now))

    def _resign(self, table: ServerTable, player: str, now: float) -> None:
        if not table.resign(player, now):
            self.send(player, wire.Error("not_playing", "no hand is being played", "$.table", table=table.name))

    def _no_table(self, player: str, table: str) -> None:
        self.send(player, wire.Error("unknown_table", "you do not sit at this table", "$.table", table=table[:100]))

    def _act(self, connection: Connection, name: str, message: wire.Act, now: float) -> None:
        """An answer to a pending ask is free; every other act counts against the client's rate."""
        table = self.players[name].tables.get(message.table)
        if (table is None or not table.answers(name, message.id)) and not self._admit(connection, now):
            return
        if table is None:
            self._no_table(name, message.table)
        else:
            self._at_table(table, now, partial(table.act, name, message.id, message.action, now))

    def _at_table(self, table: ServerTable, now: float, do: Callable[[], None]) -> None:
        """Run something at a table: a bug in a game costs that table, not the lobby; then see when it wants to wake."""
        hands = table.hands_played
        try:
            do()
        except Exception:
            log.exception("table failed", table=table.name, game=table.rules.game_name)
            table.abort("internal error of the server")
        self.hands_played += table.hands_played - hands
        if table.ended is None:
            self.timers.set(f"table {table.name}", table.wake_at())
        elif table.name in self.tables:
            self._forget(table, table.ended)

    def _forget(self, table: ServerTable, ended: wire.TableEnded) -> None:
        del self.tables[table.name]
        self.timers.cancel(f"table {table.name}")
        for member in table.members:
            if not member.robot:
                self.players[member.player].tables.pop(table.name, None)
        self.remembered[table.name] = (table, ended)
        if len(self.remembered) > self.settings.remembered:
            self.remembered.popitem(last=False)
        log.debug("table ended", table=table.name, reason=ended.reason, hands=table.hands_played, detail=ended.detail)

    # --------------------------------------------------------------------------------------------- lists and limits

    def table_infos(self, game: str | None = None, most: int = 200) -> list[wire.TableInfo]:
        """Waiting public tables first, then playing ones; at most ``most``."""
        infos = [w.info() for w in self.waiting.public() if game in (None, w.rules.game_name)][:most]
        for table in self.tables.values():
            if len(infos) >= most:
                break
            rules = table.rules
            if game in (None, rules.game_name) and not rules.attributes.get("private"):
                seats = rules.game.num_seats
                infos.append(wire.TableInfo(table.name, rules.game_name, rules.game.rules, rules.attributes, seats))
        return infos

    def _admit(self, connection: Connection, now: float, seek: str = "") -> bool:
        """Take a token from the connection's bucket. When it is empty say so, for every seek that is not heard, and at
        last close."""
        s = self.settings
        connection.bucket = min(float(s.burst), connection.bucket + (now - connection.filled) * s.messages_per_s)
        connection.filled = now
        if connection.bucket >= 1.0:
            connection.bucket -= 1.0
            connection.refused = 0
            return True
        connection.refused += 1
        retry = int(1000.0 / s.messages_per_s) + 1
        if (connection.refused == 1 or seek) and connection.refused <= s.burst:
            text = f"at most {s.messages_per_s:g} messages a second; this one was dropped"
            self._say(connection, wire.Error("rate_limited", text, seek=seek[:100], retry_ms=retry))
        elif connection.refused > s.burst:
            log.warning("rate limited", player=connection.player, conn=connection.number)
            self._close(connection, wire.CLOSE_RATE, "too many messages")
        return False

    def _refuse(self, connection: Connection, error: wire.Error, now: float) -> None:
        """An invalid frame: fatal before hello, an error frame after it, at the price of a message."""
        if connection.player is None:
            self._say(connection, error)
            self._close(connection, wire.CLOSE_PROTOCOL, error.message[:100])
        elif self._admit(connection, now):
            self._say(connection, error)

    def _say(self, connection: Connection, frame: wire.ServerFrame) -> None:
        self._out.append(Send(connection.number, wire.encode(frame)))

    def _close(self, connection: Connection, code: int, reason: str) -> None:
        connection.closing = True
        self._out.append(Close(connection.number, code, reason))
