"""One account at one lobby: its connection, its seats, and the sessions at its tables."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import structlog

from bothost.config import AccountSettings, LobbySettings
from bothost.errors import ANY_FAILURE
from bothost.host.connection import Connection, ConnectionSettings
from bothost.host.limits import Backoff
from bothost.host.lost_hands import LostHands
from bothost.host.recorder import now_us
from bothost.host.session_runner import SessionRunner
from bothost.lobbies.base import LobbyAdapter
from bothost.messages import (
    Accept,
    Act,
    AuthFailed,
    CancelSeek,
    Connected,
    Decline,
    Disconnected,
    Event,
    Invitation,
    Json,
    Leave,
    Notice,
    Resync,
    Seated,
    Seek,
    SeekEnded,
    Superseded,
    TableEnded,
    Unknown,
    Wish,
    out_of_range,
)
from bothost.rules.game import Game
from bothost.tables.clock import ClockPolicy
from bothost.tables.conduct import Conduct, TableKey
from bothost.tables.session import Session
from bothost.tables.slots import Capacity, Slots

_log = structlog.get_logger("bothost.host")


MAX_ENDED = 1000
"""Ends of unknown tables to remember until lost hands are closed."""


class Timeouts(msgspec.Struct, frozen=True):
    """How long a lobby may take to say what is expected of it. Seconds."""

    seek_s: float = 60.0
    """A seek that found no table after so long is cancelled; the next wish has its turn."""
    settle_s: float = 0.3
    """After resuming the lobby may name our tables for so long before we ask for others."""
    confirm_s: float = 10.0
    """Tables that the lobby did not name so long after connecting are aborted."""
    idle_s: float = 90.0
    """A table that was silent for so long is asked for a snapshot: its end may have been lost. After three without an
    answer it is aborted."""


class HostContext(Protocol):
    """What accounts share: the host."""

    runner: SessionRunner
    lost_hands: LostHands
    capacity: Capacity
    seated: dict[tuple[str, str], Account]
    """(lobby, table) → the account that sits there."""

    def make_game(self, name: str, rules: Json) -> Game: ...
    def remember(self, account: Account, memo: Json) -> None: ...
    def account_changed(self, account: Account) -> None: ...
    @property
    def busy(self) -> bool:
        """Whether no further table should be taken: the log is far behind, or strategies are still starting."""
        ...


class Account:
    """Runs one account until it is drained, refused or superseded."""

    def __init__(
        self,
        context: HostContext,
        lobby: LobbySettings,
        settings: AccountSettings,
        adapter: LobbyAdapter,
        memo: Json,
        connection_settings: ConnectionSettings,
        timeouts: Timeouts,
    ) -> None:
        self.lobby = lobby
        self.settings = settings
        self.name = settings.name
        self.sessions: dict[str, Session] = {}
        self.draining = False
        self.refused: AuthFailed | None = None
        self.superseded = False
        self.waiting = ""
        """The host that holds this account's lease; until it lets go there is no connection."""
        self.ever_connected = False
        self.last_problem = ""
        """Why there is no connection, in the lobby's or the system's words."""
        self.dropped = 0
        """Events about tables that are not ours."""
        self._context = context
        self._runner = context.runner
        self.place = 1
        """Which of the connections that the lobby allows this account is ours. Each is a session of its own."""
        self._memo = memo
        self._timeouts = timeouts
        self._capabilities = adapter.capabilities
        self.slots = Slots(0, context.capacity)
        self.reload(lobby, settings)
        self._loop = asyncio.get_running_loop()
        self._turn = 0
        self._seek_at = 0.0
        self._backoff = Backoff(0.2, 30.0)
        self._unconfirmed: set[str] = set()
        self._began_us = now_us()
        self._ended: dict[str, TableEnded] = {}
        """Ends of tables that we do not know: an earlier process may have sat there."""
        self._closed_lost = False
        self._confirm: asyncio.TimerHandle | None = None
        self.connection = Connection(adapter, self, connection_settings)
        self._handlers: dict[type, Callable[[Any, float], None]] = {
            Seated: self._seated,
            Connected: self._connected,
            Disconnected: self._disconnected,
            AuthFailed: self._auth_failed,
            Superseded: self._was_superseded,
            SeekEnded: self._seek_ended,
            Invitation: self._invited,
            Notice: self._notice,
            Unknown: lambda event, now: _log.warning("frame_not_understood", account=self.name, frame=event.raw[:200]),
        }

    @property
    def key(self) -> tuple[str, str]:
        """Lobby and name."""
        return self.lobby.name, self.name

    @property
    def lease(self) -> tuple[str, str]:
        """What our lease is on: lobby and name, and the place where the lobby allows several (no name has a ``#``)."""
        return self.lobby.name, self.name if self.place == 1 else f"{self.name}#{self.place}"

    def next_place(self) -> bool:
        """Another host holds our place: try the next. False when it is the first again."""
        self.place = self.place % self._capabilities.connections_per_identity + 1
        return self.place > 1

    def reload(self, lobby: LobbySettings, settings: AccountSettings) -> None:
        """Take up settings, for tables that open from now on."""
        capabilities = self._capabilities
        cap = settings.tables
        if capabilities.tables_per_connection is not None:
            cap = min(cap, capabilities.tables_per_connection)
        self.lobby = lobby
        self.settings = settings
        self.slots.cap = cap
        self.conduct = Conduct(
            ClockPolicy(margin_s=lobby.margin_ms / 1000.0, min_move_s=lobby.min_move_ms / 1000.0),
            takes_composites=capabilities.takes_composites,
            acks_moves=capabilities.acks_moves,
            consents=settings.consents,
        )

    # ------------------------------------------------------------------------------------------------------- events

    def event(self, event: Event, now: float) -> None:
        """An event from the adapter."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event, now)
            return
        session = self.sessions.get(getattr(event, "table", ""))
        if session is None:
            self.dropped += 1
            if type(event) is TableEnded and len(self._ended) < MAX_ENDED and not self._closed_lost:
                self._ended[event.table] = event
            return
        outputs = session.feed(event, now)  # type: ignore[arg-type]
        if outputs:
            self._runner.perform(session, outputs)

    def _seated(self, event: Seated, now: float) -> None:
        self._unconfirmed.discard(event.table)
        session = self.sessions.get(event.table)
        if session is not None:
            self.slots.seat(event.table, event.seek)  # a seek that is answered with a table that we have is over
            session.feed(event, now)
            return
        asked = event.seek is not None and event.seek in self.slots.reserved
        other = self._context.seated.get((self.lobby.name, event.table))
        if other is not None and not self.lobby.allow_same_table:
            self._decline_seat(event, "another account of ours sits there")
            return
        if not asked and self.slots.used >= self.slots.cap and self.slots.reserved:
            self._cancel(next(iter(self.slots.reserved)))  # a table that we have goes before one that we want
        if not self.slots.seat(event.table, event.seek):
            self._decline_seat(event, "no free slot")
            return
        if (unfit := out_of_range(event.rules) or out_of_range(event.attributes)) is not None:
            self.slots.release(event.table)
            self._decline_seat(event, f"{unfit} does not fit into 64 bits")
            return
        try:
            game = self._context.make_game(event.game, event.rules)
        except ANY_FAILURE as error:
            self.slots.release(event.table)
            self._decline_seat(event, f"game {event.game}: {error}")
            return
        key = TableKey(self.lobby.name, self.name, event.table)
        session = Session(key, event, game, self.conduct, resumed=not asked)
        session.heard_at = now
        self._runner.add(session, self)
        self.sessions[event.table] = session
        self._context.seated.setdefault((self.lobby.name, event.table), self)
        if self.draining and asked:
            self.leave_table(event.table, "draining")
        else:
            self.seek_more(now)

    def _decline_seat(self, event: Seated, reason: str) -> None:
        _log.warning("seat_declined", account=self.name, table=event.table, reason=reason)
        if event.seek is not None:
            self.slots.cancel(event.seek)
        self._hold_off(time.monotonic())
        self.connection.feed(Leave(event.table))

    def _hold_off(self, now: float) -> None:
        """A table came to nothing: ask for none for a while. Many that do so at once count as one attempt."""
        if now >= self._seek_at:
            self._seek_at = now + self._backoff.next(0.1)

    def _connected(self, event: Connected, now: float) -> None:
        self.ever_connected = True
        self.last_problem = ""
        _log.info("connected", lobby=self.lobby.name, account=self.name, resumed=event.resumed)
        self._unconfirmed = set(self.sessions)
        self.slots.reconcile(self.sessions)
        self._stop_confirm()
        self._confirm = self._loop.call_later(self._timeouts.confirm_s, self._abort_unconfirmed)
        self._context.account_changed(self)
        wait = self._timeouts.settle_s if event.resumed else 0.0
        self._seek_at = max(self._seek_at, now + wait)
        self._loop.call_later(wait, lambda: self.seek_more(time.monotonic()))

    def _abort_unconfirmed(self) -> None:
        self._confirm = None
        for table in list(self._unconfirmed):
            if (session := self.sessions.get(table)) is not None:
                _log.warning(
                    "table_aborted", account=self.name, table=table, reason="the lobby does not know it any more"
                )
                self._runner.perform(session, session.abort())
        self._unconfirmed.clear()
        if not self._closed_lost and self._capabilities.connections_per_identity == 1:
            self._closed_lost = True
            ended, self._ended = self._ended, {}
            self._context.lost_hands.close(self.key, self._began_us, self._is_played, ended)

    def _is_played(self, table: str, hand: str) -> bool:
        """Whether a hand of an earlier process goes on, as far as we know."""
        session = self.sessions.get(table)
        return session is not None and (session.hand is None or session.hand.name == hand)

    def _stop_confirm(self) -> None:
        if self._confirm is not None:
            self._confirm.cancel()
            self._confirm = None

    def _disconnected(self, event: Disconnected, now: float) -> None:
        self.last_problem = event.reason
        self._lost()

    def _lost(self) -> None:
        self._stop_confirm()
        for session in self.sessions.values():
            session.disconnected()
        for seek in self.slots.reserved:
            self.slots.cancel(seek)
        self._context.account_changed(self)

    def _auth_failed(self, event: AuthFailed, now: float) -> None:
        self.last_problem = f"login refused: {event.reason}"
        final = self.connection.ended
        _log.error("login_refused", lobby=self.lobby.name, account=self.name, reason=event.reason, final=final)
        if final:
            self.refused = event
            self._end()
        else:
            self._lost()

    def _was_superseded(self, event: Superseded, now: float) -> None:
        self.superseded = True
        self.last_problem = event.reason or "another connection of this account took over"
        _log.error("superseded", lobby=self.lobby.name, account=self.name, reason=self.last_problem)
        self._end()

    def _end(self) -> None:
        """The tables are not ours any more: they are neither won nor lost."""
        self._lost()
        for session in list(self.sessions.values()):
            self._runner.perform(session, session.abort())

    def _notice(self, event: Notice, now: float) -> None:
        getattr(_log, event.level)("lobby_notice", lobby=self.lobby.name, account=self.name, text=event.text)

    # -------------------------------------------------------------------------------------------------------- seats

    def tick(self, now: float) -> None:
        """Once a second or so: expire seeks, ask for more tables."""
        for seek in self.slots.expire(now):
            self.connection.feed(CancelSeek(seek))
        if self.connection.connected:
            self._ask_silent_tables(now)
        self.seek_more(now)

    def _ask_silent_tables(self, now: float) -> None:
        for table, session in list(self.sessions.items()):
            if now - session.heard_at < self._timeouts.idle_s:
                continue
            session.heard_at = now
            session.silences += 1
            if session.silences > 3:
                _log.warning("table_aborted", account=self.name, table=table, reason="the lobby is silent about it")
                self.leave_table(table, "the lobby is silent about it")
            else:
                self.connection.feed(Resync(table))

    def _cancel(self, seek: str) -> None:
        self.slots.cancel(seek)
        self.connection.feed(CancelSeek(seek))

    def seek_more(self, now: float) -> None:
        """Ask for tables, by the wishes in turn, up to the slots."""
        wishes = self.settings.wishes
        if not wishes or self.draining or not self.connection.connected or now < self._seek_at or self._context.busy:
            return
        while self.slots.used < self.slots.cap and self.connection.connected:
            seek = f"{self.name}-{os.urandom(6).hex()}"
            if not self.slots.reserve(seek, now + self._timeouts.seek_s):
                return
            wish = wishes[self._turn % len(wishes)]
            self._turn += 1
            self.connection.feed(Seek(seek, Wish(wish.game, wish.rules, wish.attributes)))
            if seek not in self.slots.reserved and self.slots.used == 0:
                return

    def _seek_ended(self, event: SeekEnded, now: float) -> None:
        if self.slots.cancel(event.seek):
            if self.connection.connected:
                _log.info("seek_ended", account=self.name, reason=event.reason)
            self._hold_off(now)

    def _invited(self, event: Invitation, now: float) -> None:
        """Reserve a slot before accepting: an acceptance cannot be taken back."""
        seek = f"{self.name}-{os.urandom(6).hex()}"
        wanted = any(wish.game == event.info.game for wish in self.settings.wishes)
        if (
            self.draining
            or not wanted
            or not self.slots.reserve(seek, now + (event.expires_s or self._timeouts.seek_s))
        ):
            self.connection.feed(Decline(event.invitation))
        else:
            self.connection.feed(Accept(seek, event.invitation))

    # ------------------------------------------------------------------------------------------- what tables ask for

    def act(self, command: Act) -> None:
        self.connection.feed(command)

    def resync(self, table: str) -> None:
        self.connection.feed(Resync(table))

    def hand_over(self, session: Session) -> None:
        """A hand ended at a table of ours."""
        self._backoff.reset()
        self.connection.progress()
        if self.draining and session.hand is None and session.key.table in self.sessions:
            self._loop.call_soon(self.leave_table, session.key.table, "draining")

    def leave_table(self, table: str, reason: str) -> None:
        """Give a seat up, and the table with it."""
        session = self.sessions.get(table)
        if session is None:
            return
        if not self.draining:
            _log.warning("table_left", account=self.name, table=table, reason=reason)
            self._hold_off(time.monotonic())
        self.connection.feed(Leave(table))
        if table in self.sessions:
            if session.hand is not None and not session.hand.game_id:
                session.hand = None  # it never began for us
            self._runner.perform(session, session.abort())

    def close_table(self, table: str, reason: str) -> None:
        """The table is over: forget it, free its slot."""
        if (session := self.sessions.pop(table, None)) is not None:
            self._runner.remove(session)
        self._unconfirmed.discard(table)
        key = (self.lobby.name, table)
        if self._context.seated.get(key) is self:
            del self._context.seated[key]
        self.slots.release(table)
        self._context.account_changed(self)
        self.seek_more(time.monotonic())

    # --------------------------------------------------------------------------------------------------- life cycle

    def start(self, memo: Json | None = None) -> None:
        """Connect; with what an earlier host at our place remembered, where that is not the first."""
        self._memo = self._memo if memo is None else memo
        self.connection.start()

    def let_go(self, reason: str) -> None:
        """Another host has the account: disconnect, and leave its tables and their hands as they are."""
        self.draining = True  # nothing more is asked for
        self.last_problem = reason
        self.connection.close()
        self._lost()
        for table, session in list(self.sessions.items()):
            if session.hand is not None and session.hand.game_id:
                self._runner.let_go(session.hand)
            self.close_table(table, reason)

    def drain(self) -> None:
        """No new tables; leave each when its hand is over."""
        if self.draining:
            return
        self.draining = True
        for seek in self.slots.reserved:
            self._cancel(seek)
        for table, session in list(self.sessions.items()):
            if session.hand is None and session.fresh:
                self.leave_table(table, "draining")

    def hand_back(self) -> None:
        """Leave all tables, whatever their state."""
        for table in list(self.sessions):
            self.leave_table(table, "draining")

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen here."""
        return self.connection.ended or (self.draining and not self.sessions)

    # ----------------------------------------------------------------------------------------- for the connection

    def known_tables(self) -> tuple[str, ...]:
        return tuple(self.sessions)

    def memo(self) -> Json:
        return self._memo

    def remember(self, memo: Json) -> None:
        self._memo = memo
        self._context.remember(self, memo)

    @property
    def problem(self) -> str:
        """Why there is no connection, "" where that is not known, or there is one."""
        return f"{self.waiting} holds its lease" if self.waiting else self.last_problem

    def status(self) -> Json:
        """For ``bothost status``."""
        return {
            "lobby": self.lobby.name,
            "account": self.name,
            "connected": self.connection.connected,
            "problem": self.problem,
            "reconnects": self.connection.reconnects,
            "tables": len(self.sessions),
            "seeks": len(self.slots.reserved),
            "slots": self.slots.cap,
            "draining": self.draining,
        }
