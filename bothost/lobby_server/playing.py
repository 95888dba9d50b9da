"""The tables where hands are played: opens them, wakes them, forgets them. An error costs one table, not the lobby."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial

import structlog

from bothost.lobbies.embedded import protocol as wire
from bothost.lobbies.frames import MAX_CHAT, plain_text
from bothost.lobby_server.players import Players, ServerPlayer
from bothost.lobby_server.settings import ServerSettings
from bothost.lobby_server.table import ServerTable
from bothost.lobby_server.timers import Timers

log = structlog.get_logger("bothost.lobby_server")


class PlayingTables:
    """All playing tables of a lobby, and the results of the last that ended."""

    def __init__(self, settings: ServerSettings, players: Players, timers: Timers) -> None:
        self.by_name: dict[str, ServerTable] = {}
        self.ended: OrderedDict[str, ServerTable] = OrderedDict()
        """The last tables that ended: a player who returns can still get the result."""
        self.hands_played = 0
        self._settings = settings
        self._players = players
        self._timers = timers

    def open(self, table: ServerTable, now: float) -> None:
        """The seats are drawn: deal the first hand."""
        self.by_name[table.name] = table
        for member in table.members:
            if not member.robot:
                self._players.by_name[member.player].tables[table.name] = table
        log.debug(
            "table started",
            table=table.name,
            game=table.rules.game.name,
            players=[member.player for member in table.members],
            attributes=table.rules.attributes,
        )
        self.run(table, partial(table.open, now))

    def tick(self, name: str, now: float) -> None:
        table = self.by_name.get(name)
        if table is not None:
            self.run(table, partial(table.tick, now))

    def run(self, table: ServerTable, do: Callable[[], None]) -> None:
        """Do something at a table, then set its timer. An error in a game aborts the table."""
        hands = table.hands_played
        try:
            do()
        except Exception:
            log.exception("table failed", table=table.name, game=table.rules.game.name)
            table.abort("internal error of the server")
        self.hands_played += table.hands_played - hands
        if table.ended is None:
            self._timers.set(f"table {table.name}", table.wake_at())
        elif table.name in self.by_name:
            self._forget(table, table.ended)

    def _forget(self, table: ServerTable, ended: wire.TableEnded) -> None:
        del self.by_name[table.name]
        self._timers.cancel(f"table {table.name}")
        for member in table.members:
            if not member.robot:
                self._players.table_over(member.player, table.name)
        self.ended[table.name] = table
        if len(self.ended) > self._settings.remembered:
            self.ended.popitem(last=False)
        log.debug("table ended", table=table.name, reason=ended.reason, hands=table.hands_played, detail=ended.detail)

    def chat(self, player: ServerPlayer, message: wire.Say, now: float) -> wire.Error | None:
        """Pass on what a player says to the people of a table that plays or has lately ended. Returns why not."""
        settings, where = self._settings, message.table[:100]
        table = player.tables.get(message.table) or self.ended.get(message.table)
        if table is None or not table.sat(player.name):
            return wire.Error("unknown_table", "you do not sit at this table", "$.table", table=where)
        if not player.may_chat(now, settings.chat_burst, settings.chat_per_minute):
            limit = f"at most {settings.chat_per_minute:g} chat messages a minute; this one was dropped"
            return wire.Error("chat_limited", limit, "$.text", table=where)
        text = plain_text(message.text)
        if not text or len(message.text) > MAX_CHAT:
            return wire.Error("bad_message", f"a text has 1 to {MAX_CHAT} characters", "$.text", table=where)
        for member in table.members:
            there = not (member.robot or member.left) and self._players.online(member.player)
            if there and member.player != player.name:
                self._players.send(member.player, wire.Chat(table.name, player.name, text))
        return None

    def send_end(self, player: str, table_id: str, known: wire.Known) -> None:
        """The client believes that this table is alive: send its end, as far as the lobby remembers it."""
        table = self.ended.get(table_id)
        if table is not None and table.ended is not None and table.sat(player):
            table.catch_up(player, known)
            self._players.send(player, table.ended)
        else:
            detail = "this server has no such table; it may have been restarted"
            self._players.send(player, wire.TableEnded(table_id[:100], "aborted", None, detail))

    def infos(self, game: str | None) -> Iterator[wire.TableInfo]:
        """The public tables of a game, or of all games."""
        for table in self.by_name.values():
            rules = table.rules
            if game in (None, rules.game.name) and not rules.attributes.get("private"):
                seats = rules.game.num_seats
                yield wire.TableInfo(table.name, rules.game.name, rules.game.rules, rules.attributes, seats)
