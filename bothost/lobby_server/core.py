"""The lobby without its sockets: frames and times go in, frames to send and sockets to close come out.

The shell (:mod:`bothost.lobby_server.server`) numbers its connections. It calls ``opened``, ``received``, ``closed``
and ``tick`` with the monotonic time. After each call it performs what ``take()`` returns, in order, and arranges for
the next ``tick`` at ``wake_at()``.
"""

from __future__ import annotations

import hmac
import random
import secrets
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain, islice

import structlog

from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.accounts import Accounts
from bothost.lobby_server.connections import Close, Connection, Connections, Output, Send
from bothost.lobby_server.matching import WaitingList
from bothost.lobby_server.players import Players, ServerPlayer
from bothost.lobby_server.playing import PlayingTables
from bothost.lobby_server.settings import ServerSettings
from bothost.lobby_server.table import ServerTable
from bothost.lobby_server.timers import Timers
from bothost.lobby_server.waiting import BadWish, GameShelf, IdSource
from bothost.tables.clock import TokenBucket

__all__ = ["Close", "Lobby", "Send"]

log = structlog.get_logger("bothost.lobby_server")

BAD_TOKENS_PER_MINUTE = 20.0
"""Most lines about wrong tokens in the log: strangers cause them."""


class Lobby:
    """The whole state of a lobby. Not thread-safe; bounded by ``settings``."""

    def __init__(
        self,
        settings: ServerSettings,
        games: Iterable[str],
        *,
        rng: random.Random | None = None,
        boot: str | None = None,
    ) -> None:
        """``rng`` (deals, seats, robots; default: the system's) and ``boot`` (prefix of ids) make tests repeatable."""
        self.settings = settings
        self.accounts = Accounts(settings.tokens)
        self.timers = Timers()
        self.frames_in = 0
        self._bad_tokens = TokenBucket(BAD_TOKENS_PER_MINUTE / 60.0, BAD_TOKENS_PER_MINUTE, 0.0)
        self._ids = IdSource(rng or random.SystemRandom(), boot or secrets.token_hex(3))
        self._connections = Connections(settings, self.timers)
        self._players = Players(self._connections, self.accounts)
        self.playing = PlayingTables(settings, self._players, self.timers)
        self.connections: Mapping[int, Connection] = self._connections.by_number
        self.players: Mapping[str, ServerPlayer] = self._players.by_name
        self.tables: Mapping[str, ServerTable] = self.playing.by_name
        self.waiting = WaitingList(settings, GameShelf(games), self._ids, self._players, self.playing, self.timers)

    def dismiss(self, name: str) -> None:
        """Remove an account: its token opens no connection any more. Its tables continue."""
        self.accounts.remove(name)
        self._players.forget(name)

    # --------------------------------------------------------------------------------------------- called by the shell

    def take(self) -> list[Output]:
        """Return the outputs since the last call, in order."""
        return self._connections.take()

    def wake_at(self) -> float | None:
        """When to call ``tick``; None: no timer is set."""
        return self.timers.wake_at()

    def opened(self, conn: int, now: float, address: str = "") -> None:
        """A socket was accepted."""
        self._connections.opened(conn, now, address)

    def closed(self, conn: int, now: float) -> None:
        """A socket is gone, closed by either side."""
        connection = self._connections.closed(conn)
        player = self.players.get(connection.player or "") if connection is not None else None
        if player is None or player.conn is not connection:
            return
        player.conn = None
        log.info("player left", player=player.name, conn=conn, tables=len(player.tables))
        self.waiting.forget_player(player.name, now)
        for table in player.tables.values():
            table.presence(player.name, False)
        self._players.forget(player.name)

    def cut(self, conn: int) -> None:
        """The shell cuts a connection that does not read."""
        self._connections.cut(conn)

    def received(self, conn: int, data: str | bytes, now: float) -> None:
        """A frame arrived. Nothing that a client sends raises: an ``error`` frame says what is wrong with it."""
        connection = self.connections.get(conn)
        if connection is None or connection.closing:
            return
        self.frames_in += 1
        try:
            message = wire.decode_client(data)
        except wire.BadFrame as error:
            about = wire.subject_of(data)
            refusal = wire.Error(error.code, str(error), error.field, about.seek[:100], about.table[:100])
            self._connections.refuse(connection, refusal, now)
            return
        try:
            if connection.player is None:
                self._first(connection, message, now)
            elif type(message) is wire.Act:
                self._act(connection, self.players[connection.player], message, now)
            elif self._connections.admit(connection, now, getattr(message, "seek", "")):
                self._dispatch(connection, self.players[connection.player], message, now)
        except Exception:
            log.exception("a message failed", player=connection.player, message=type(message).__name__)
            self._connections.send(connection, wire.Error("internal", "internal error of the server; it was logged"))

    def tick(self, now: float) -> None:
        """Time has passed."""
        for key in self.timers.due(now):
            kind, _, name = key.partition(" ")
            if kind == "table":
                self.playing.tick(name, now)
            elif kind == "waiting":
                self.waiting.tick(name, now)
            elif kind == "hello":
                self._connections.hello_timed_out(int(name))

    # ------------------------------------------------------------------------------------------------------- hello

    def _first(self, connection: Connection, message: wire.ClientMessage, now: float) -> None:
        most = self.settings.tables_per_account
        if not isinstance(message, wire.Hello):
            error = wire.Error("hello_expected", "the first frame is `hello`", "$.type")
        elif message.v != wire.VERSION:
            error = wire.Error("bad_version", f"this server speaks version {wire.VERSION}", "$.v")
        elif len(message.known) > most:
            error = wire.Error("limit", f"at most {most} tables", "$.known")
        elif (name := self.accounts.of_token(message.token)) is None:
            if self._bad_tokens.take(now):
                log.warning("bad token", conn=connection.number, agent=message.agent[:80])
            self._connections.send(connection, wire.Error("bad_token", "no account has this token", "$.token"))
            self._connections.close(connection, wire.CLOSE_AUTH, "bad token")
            return
        else:
            self._welcome(connection, name, message, now)
            return
        self._connections.refuse(connection, error, now)

    def _welcome(self, connection: Connection, name: str, hello: wire.Hello, now: float) -> None:
        player = self.players.get(name)
        if player is None:
            player = self._players.by_name[name] = ServerPlayer(name, self._ids.session())
        returns = player.conn is None
        if player.conn is not None:
            self._supersede(player, player.conn, now)
        player.conn = connection
        self._connections.log_in(connection, name)
        connection.bucket = player.bucket = player.bucket or connection.bucket
        resumed = hmac.compare_digest(hello.session.encode("utf-8", "surrogatepass"), player.session.encode())
        log.info("hello", player=name, conn=connection.number, resumed=resumed, agent=hello.agent[:80])
        s = self.settings
        limits = wire.Limits(s.frame_bytes, s.messages_per_s, s.burst, s.tables_per_account)
        self._connections.send(connection, wire.Welcome(wire.VERSION, name, player.session, limits, resumed))
        for table_id, known in hello.known.items():
            if table_id not in player.tables:
                self.playing.send_end(name, table_id, known)
        for table in list(player.tables.values()):
            self.playing.run(table, partial(table.resume, name, hello.known.get(table.name), now))
            if returns:
                table.presence(name, True)

    def _supersede(self, player: ServerPlayer, old: Connection, now: float) -> None:
        player.conn = None
        log.info("superseded", player=player.name, conn=old.number)
        self._connections.send(old, wire.Superseded("another connection of this account took over"))
        self._connections.close(old, wire.CLOSE_SUPERSEDED, "superseded")
        self.waiting.forget_player(player.name, now)

    # ----------------------------------------------------------------------------------------------------- messages

    def _dispatch(self, connection: Connection, player: ServerPlayer, message: wire.ClientMessage, now: float) -> None:
        say = partial(self._connections.send, connection)
        try:
            match message:
                case wire.Ping():
                    say(wire.Pong())
                case wire.Seek() | wire.Create() | wire.Join():
                    self.waiting.ask(player.name, message, now)
                case wire.Cancel():
                    self.waiting.cancel(player.name, message.seek, now)
                case wire.Accept() | wire.Decline():
                    self.waiting.answer(player.name, message.invitation, isinstance(message, wire.Accept), now)
                case wire.List():
                    say(wire.Tables(tuple(self.table_infos(message.game))))
                case wire.Sync() | wire.Resign() | wire.Leave():
                    self._table_message(player, message, now)
                case wire.Say():
                    if (refusal := self.playing.chat(player, message, now)) is not None:
                        say(refusal)
                case wire.Hello():
                    say(wire.Error("hello_repeated", "this connection has sent `hello` already", "$.type"))
                case wire.Act():
                    raise AssertionError("acts are handled before")
        except BadWish as error:
            say(wire.Error(error.code, str(error), error.field, seek=getattr(message, "seek", "")[:100]))

    def _table_message(self, player: ServerPlayer, message: wire.Sync | wire.Resign | wire.Leave, now: float) -> None:
        table = player.tables.get(message.table)
        if table is None:
            self._no_table(player.name, message.table)
        elif isinstance(message, wire.Sync):
            known = wire.Known(message.hand, message.seq)
            self.playing.run(table, partial(table.sync, player.name, known, now))
        elif isinstance(message, wire.Leave):
            del player.tables[table.name]
            self.playing.run(table, partial(table.leave, player.name, now))
        else:
            self.playing.run(table, partial(table.resign, player.name, now))

    def _no_table(self, player: str, table: str) -> None:
        error = wire.Error("unknown_table", "you do not sit at this table", "$.table", table=table[:100])
        self._players.send(player, error)

    def _act(self, connection: Connection, player: ServerPlayer, message: wire.Act, now: float) -> None:
        """An answer to a pending question is free; every other act counts against the client's rate."""
        table, name = player.tables.get(message.table), player.name
        pending = table is not None and table.is_asked(name, message.id)
        if not pending and not self._connections.admit(connection, now):
            return
        if table is None:
            self._no_table(name, message.table)
        else:
            self.playing.run(table, partial(table.act, name, message.id, message.action, now))

    def table_infos(self, game: str | None = None, most: int = 200) -> list[wire.TableInfo]:
        """Waiting public tables first, then playing ones; at most ``most``."""
        waiting = (table.info() for table in self.waiting.public() if game in (None, table.rules.game.name))
        return list(islice(chain(waiting, self.playing.infos(game)), most))
