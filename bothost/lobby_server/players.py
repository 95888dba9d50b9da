"""The players that a lobby knows: accounts that have logged in since it started."""

from __future__ import annotations

import msgspec

from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.accounts import Accounts
from bothost.lobby_server.connections import Connection, Connections
from bothost.lobby_server.table import ServerTable
from bothost.tables.clock import TokenBucket


class ServerPlayer(msgspec.Struct):
    """A player, with its connection and its tables."""

    name: str
    session: str
    conn: Connection | None = None
    tables: dict[str, ServerTable] = {}
    bucket: TokenBucket | None = None
    """Limits the messages of the player over all connections; None: never connected."""
    chat: TokenBucket | None = None
    """Limits the chat messages of the player; None: has not said anything yet."""

    def may_chat(self, now: float, burst: int, per_minute: float) -> bool:
        """Whether the player may say something now. If so, it counts as said."""
        if self.chat is None:
            self.chat = TokenBucket(per_minute / 60.0, burst, now)
        return self.chat.take(now)


class Players:
    """All players, by name. Tables and the waiting list send their frames through this class."""

    def __init__(self, connections: Connections, accounts: Accounts) -> None:
        self.by_name: dict[str, ServerPlayer] = {}
        self._connections = connections
        self._accounts = accounts

    def send(self, player: str, frame: wire.ServerFrame) -> None:
        """Send to the player's connection, if there is one."""
        connection = self.by_name[player].conn
        if connection is not None:
            self._connections.send(connection, frame)

    def online(self, player: str) -> bool:
        known = self.by_name.get(player)
        return known is not None and known.conn is not None

    def num_tables(self, player: str) -> int:
        """How many tables a player sits at."""
        return len(self.by_name[player].tables)

    def table_over(self, player: str, table: str) -> None:
        """A table is over. The player may have left it, and be forgotten."""
        if (known := self.by_name.get(player)) is not None:
            known.tables.pop(table, None)
            self.forget(player)

    def forget(self, player: str) -> None:
        """Drop a player whose account was removed, if neither connected nor seated. Otherwise this comes later."""
        known = self.by_name.get(player)
        if known is not None and player not in self._accounts and known.conn is None and not known.tables:
            del self.by_name[player]
