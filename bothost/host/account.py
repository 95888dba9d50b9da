"""One account at one lobby: its connection, its seeks and its tables."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import structlog

from bothost import messages as m
from bothost.config import AccountSettings, LobbySettings
from bothost.host.account_tables import AccountTables
from bothost.host.connection import Connection
from bothost.host.limited_lines import lobby_lines
from bothost.host.lost_hands import LostHands
from bothost.host.manners import Manners
from bothost.host.reconnect import ConnectionSettings
from bothost.host.roll_call import RollCall
from bothost.host.seeking import Seeking
from bothost.host.session_runner import SessionRunner
from bothost.lobbies.base import LobbyAdapter
from bothost.tables.games import Games
from bothost.tables.slots import Capacity, Slots

_log = structlog.get_logger("bothost.host")


class Timeouts(msgspec.Struct, frozen=True):
    """How long to wait for a lobby, in seconds."""

    seek_s: float = 60.0
    """A seek that finds no table in this time is cancelled, and the next wish is tried."""
    settle_s: float = 0.3
    """After a resume, wait this long for the lobby to name our tables before seeking others."""
    confirm_s: float = 10.0
    """Tables that the lobby has not named this long after connecting are aborted."""
    idle_s: float = 90.0
    """After this long without an event of a table, ask for a snapshot, because the end may have been lost. After three
    snapshots without an answer the table is aborted."""


class Place:
    """Which of an account's allowed connections is ours. Each connection has its own lease and memo."""

    def __init__(self, lobby: str, account: str, places: int) -> None:
        self._key = lobby, account
        self._places = places
        self._number = 1
        self.memo: m.Json = {}
        """What the adapter asked to remember."""
        self.waiting = ""
        """The host that holds the lease. We do not connect until it releases it."""
        self.problem = ""
        """Why the database does not give us the lease, if that is the reason."""

    @property
    def first(self) -> bool:
        return self._number == 1

    @property
    def lease(self) -> tuple[str, str]:
        """The lease's key: lobby and account, with the place's number after a ``#``, which no name contains."""
        lobby, account = self._key
        return lobby, account if self.first else f"{account}#{self._number}"

    def next(self) -> bool:
        """Try the next place, because another host holds ours. Returns False if that is the first again."""
        self._number = self._number % self._places + 1
        return not self.first


class AccountHost(Protocol):
    """The host, as its accounts use it."""

    capacity: Capacity
    games: Games
    runner: SessionRunner
    lost_hands: LostHands
    seated: dict[tuple[str, str], AccountTables]

    def busy(self) -> bool: ...
    def account_changed(self) -> None: ...
    def account_connected(self, account: Account) -> None: ...
    def contested(self, account: Account) -> None: ...
    def remember(self, account: Account, memo: m.Json) -> None: ...


class Account:
    """Runs one account until it is drained, refused or superseded."""

    def __init__(
        self,
        host: AccountHost,
        lobby: LobbySettings,
        settings: AccountSettings,
        adapter: LobbyAdapter,
        connection_settings: ConnectionSettings,
        timeouts: Timeouts,
        manners: Manners,
    ) -> None:
        self.lobby = lobby
        self.name = settings.name
        self.place = Place(lobby.name, settings.name, adapter.capabilities.connections_per_identity)
        self.refused: m.AuthFailed | None = None
        self.superseded = False
        self.contested = False
        """Whether we are superseded, and the leases have not shown yet whether by another host."""
        self.ever_connected = False
        self.last_problem = ""
        """Why there is no connection, as the lobby or the system reports it."""
        self._host = host
        self._timeouts = timeouts
        self._moved = False
        """Whether another host has the account. An account that waits for its lease replaces this one."""
        self._lines = lobby_lines(lobby.name, settings.name)
        self.slots = Slots(0, host.capacity)
        self.connection = Connection(adapter, self, connection_settings)
        self.seeking = Seeking(settings, self.slots, self.connection, host.busy, timeouts.seek_s, manners, self._lines)
        alone = adapter.capabilities.connections_per_identity == 1
        self.roll_call = RollCall((lobby.name, settings.name), host.lost_hands if alone else None, timeouts.confirm_s)
        self.tables = AccountTables(
            lobby,
            settings,
            adapter.capabilities,
            self.connection,
            self.seeking,
            self.roll_call,
            host.runner,
            host.games,
            host.seated,
            host.account_changed,
            self._lines,
        )
        self._handlers = self._by_type()

    def reload(self, lobby: LobbySettings, settings: AccountSettings) -> None:
        """Apply settings to tables that open from now on."""
        self.lobby = lobby
        self.seeking.settings = settings
        self.tables.reload(lobby, settings)

    # ------------------------------------------------------------------------------------------------------- events

    def _by_type(self) -> dict[type, Callable[[Any, float], None]]:
        return {
            m.Seated: self.tables.seated,
            m.SeekEnded: self.seeking.ended,
            m.Invitation: self.seeking.invited,
            m.Connected: self._connected,
            m.Disconnected: lambda event, now: self._lost(event.reason),
            m.AuthFailed: self._auth_failed,
            m.Superseded: self._was_superseded,
            m.Notice: lambda event, now: self._lines.log(now, event.level, "lobby_notice", text=event.text),
            m.Unknown: lambda event, now: self._lines.log(
                now, "warning", "frame_not_understood", frame=event.raw[:200]
            ),
            m.Chat: self.tables.talk.heard,
            **dict.fromkeys((m.Throttled, m.Alive, m.Tables), lambda event, now: None),
        }

    def event(self, event: m.Event, now: float) -> None:
        """Handle an event from the adapter."""
        self._handlers.get(type(event), self.tables.event)(event, now)

    def _connected(self, event: m.Connected, now: float) -> None:
        self.ever_connected = True
        self.last_problem = ""
        _log.info("connected", lobby=self.lobby.name, account=self.name, resumed=event.resumed)
        self.seeking.forget()  # seeks of the last connection
        self.roll_call.begin(self.tables.sessions, self.tables.absent)
        self._host.account_connected(self)
        wait = self._timeouts.settle_s if event.resumed else 0.0
        self.seeking.wait_until(now + wait)
        asyncio.get_running_loop().call_later(wait, lambda: self.seeking.seek_more(time.monotonic()))

    def _lost(self, problem: str) -> None:
        self.last_problem = problem
        self.roll_call.stop()
        self.tables.disconnected()
        self.seeking.forget()
        self._host.account_changed()

    def _auth_failed(self, event: m.AuthFailed, now: float) -> None:
        final = self.connection.ended
        _log.error("login_refused", lobby=self.lobby.name, account=self.name, reason=event.reason, final=final)
        self._lost(f"login refused: {event.reason}")
        if final:
            self.refused = event
            self.roll_call.leave_lost_hands()
            self.tables.abort_all()

    def _was_superseded(self, event: m.Superseded, now: float) -> None:
        self.superseded = self.contested = True
        reason = event.reason or "another connection of this account took over"
        _log.error("superseded", lobby=self.lobby.name, account=self.name, reason=reason)
        self._lost(reason)
        self._host.contested(self)

    def give_up(self) -> None:
        """End the account, because a client that is no host of ours took our place."""
        self.contested = False
        self.tables.abort_all()
        self._host.account_changed()

    # --------------------------------------------------------------------------------------------------- life cycle

    def start(self, memo: m.Json) -> None:
        """Connect. ``memo``: what the last process of this account remembered."""
        self.place.memo = memo
        self.connection.start()

    def tick(self, now: float) -> None:
        """Expire seeks and ask for more tables. Called about once a second."""
        self.seeking.expire(now)
        if self.connection.connected:
            self.tables.ask_silent(now, self._timeouts.idle_s)
        self.seeking.seek_more(now)

    def drain(self) -> None:
        """Take no new tables, and leave each table when its hand is over."""
        if not self.seeking.stopped:
            self.seeking.stop()
            self.tables.drain(at_once=False)

    def let_go(self, reason: str) -> None:
        """Disconnect because another host has the account. Its tables and hands stay open."""
        self._moved = self.seeking.stopped = True
        self.connection.close()
        self._lost(reason)
        self.roll_call.leave_lost_hands()
        self.tables.let_go()

    def close(self) -> None:
        """Disconnect, decide nothing any more, and end no table."""
        self.roll_call.stop()
        self.connection.close()
        self.tables.disconnected()  # a move that is decided now could not be sent
        self._lines.report()

    @property
    def finished(self) -> bool:
        """Whether the account is done."""
        if self._moved or (self.contested and not self.seeking.stopped):
            return False
        return self.connection.ended or (self.seeking.stopped and not self.tables.sessions)

    # --------------------------------------------------------------------------------------------- for the connection

    def known_tables(self) -> tuple[str, ...]:
        return tuple(self.tables.sessions)

    def memo(self) -> m.Json:
        return self.place.memo

    def remember(self, memo: m.Json) -> None:
        self.place.memo = memo
        self._host.remember(self, memo)

    @property
    def problem(self) -> str:
        """Why there is no connection; empty if there is one, or the reason is unknown."""
        if self.place.waiting:
            return f"{self.place.waiting} holds its lease"
        return self.last_problem or self.place.problem
