"""The tables of one account, with their sessions and slots."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection

import structlog

from bothost.config import AccountSettings, LobbySettings
from bothost.errors import ANY_FAILURE
from bothost.host.chat import TableTalk
from bothost.host.connection import Connection
from bothost.host.limited_lines import LimitedLines
from bothost.host.roll_call import RollCall
from bothost.host.seeking import Seeking
from bothost.host.session_runner import SessionRunner
from bothost.lobbies.base import Capabilities, out_of_range
from bothost.messages import Act, HandStarted, Leave, Resync, Seated, Snapshot, TableEnded, TableEvent
from bothost.tables.clock import ClockPolicy
from bothost.tables.conduct import Conduct, TableKey
from bothost.tables.games import Games
from bothost.tables.hand import GaveUp
from bothost.tables.session import Session

_log = structlog.get_logger("bothost.host")

MAX_SILENCES = 3
"""After this many snapshots without an answer, leave a silent table."""

COMPLETE = frozenset({"normal", "resigned", "timeout"})
"""Ends of tables that deserve a goodbye."""


class AccountTables:
    """Opens, feeds and closes the sessions of one account."""

    def __init__(
        self,
        lobby: LobbySettings,
        settings: AccountSettings,
        capabilities: Capabilities,
        connection: Connection,
        seeking: Seeking,
        roll_call: RollCall,
        runner: SessionRunner,
        games: Games,
        seated: dict[tuple[str, str], AccountTables],
        changed: Callable[[], None],
        lines: LimitedLines,
    ) -> None:
        """``seated``: (lobby, table) → which of our accounts sits there. ``changed`` is called when a table closes."""
        self.sessions: dict[str, Session] = {}
        self.dropped = 0
        """Events about tables that are not ours."""
        self._capabilities = capabilities
        self._connection = connection
        self._seeking = seeking
        self._roll_call = roll_call
        self._slots = seeking.slots
        self._manners = seeking.manners
        self._without_people: set[str] = set()
        say = connection.feed if capabilities.chat else None
        self.talk = TableTalk(settings.name, seeking.manners, say, runner.recorder.chat)
        self._runner = runner
        self._games = games
        self._seated = seated
        self._changed = changed
        self._lines = lines
        self.reload(lobby, settings)

    def reload(self, lobby: LobbySettings, settings: AccountSettings) -> None:
        """Apply settings to tables that open from now on."""
        capabilities = self._capabilities
        self._lobby = lobby
        self._name = settings.name
        self._slots.cap = min(settings.tables, capabilities.tables_per_connection or settings.tables)
        self._conduct = Conduct(
            ClockPolicy(margin_s=lobby.margin_ms / 1000.0, min_move_s=lobby.min_move_ms / 1000.0),
            takes_composites=capabilities.takes_composites,
            acks_moves=capabilities.acks_moves,
            consents=settings.consents,
        )

    # ------------------------------------------------------------------------------------------------------- events

    def event(self, event: TableEvent, now: float) -> None:
        """Handle an event of a table."""
        session = self.sessions.get(event.table)
        if session is None:
            self.dropped += 1
            if type(event) is TableEnded:
                self._roll_call.ended(event)
            return
        try:
            outputs = session.feed(event, now)
            if outputs:
                self._runner.perform(session, outputs)
        except ANY_FAILURE:
            self.fail(session)
            return
        kind = type(event)
        if kind is HandStarted or kind is Snapshot:
            self.talk.hand_started(session, now)

    def seated(self, event: Seated, now: float) -> None:
        """Handle a seat that the lobby gave us: open a session, or leave the table."""
        table, slots = event.table, self._slots
        self._roll_call.named(table)
        session = self.sessions.get(table)
        if session is not None:
            slots.seat(table, event.seek)  # the seek is over if the lobby answers it with a table that we have
            session.feed(event, now)
            return
        asked = event.seek is not None and event.seek in slots.reserved
        new = asked or event.seek in self._seeking.cancelled
        if (self._lobby.name, table) in self._seated and not self._lobby.allow_same_table:
            self._decline(event, "another account of ours sits there", now)
            return
        if not asked and slots.used >= slots.cap and slots.reserved:
            self._seeking.cancel(next(iter(slots.reserved)))  # a table that we have takes precedence over a seek
            if table in self.sessions:  # the answer to that seated us there
                self.seated(event, now)
                return
        if not slots.seat(table, event.seek):
            self._decline(event, "no free slot", now)
            return
        try:
            if (unfit := out_of_range(event.rules) or out_of_range(event.attributes)) is not None:
                raise ValueError(f"{unfit} does not fit into 64 bits")
            game = self._games.make(event.game, event.rules)
        except ANY_FAILURE as error:
            slots.release(table)
            self._decline(event, f"game {event.game}: {error}", now)
            return
        people = self._manners.people(event.players, event.seat)
        others = len(self._without_people)
        if new and (reason := self._manners.table(event, now, without_people=others, slots=slots.cap)) is not None:
            slots.release(table)
            self._decline(event, reason, now)
            return
        self._manners.sat_down()
        if not people and event.players:
            self._without_people.add(table)
        key = TableKey(self._lobby.name, self._name, table)
        session = Session(key, event, game, self._conduct, resumed=not new)
        session.heard_at = now
        self._runner.add(session, self)
        self.sessions[table] = session
        if not new:
            self.talk.resumed(table)
        self._seated.setdefault((self._lobby.name, table), self)
        if self._seeking.stopped and new:
            self.leave_table(table, "draining")
        else:
            self._seeking.seek_more(now)

    def _decline(self, event: Seated, reason: str, now: float) -> None:
        self._lines.log(now, "warning", "seat_declined", table=event.table, reason=reason)
        if event.seek is not None:
            self._slots.cancel(event.seek)
        self._seeking.hold_off(now)
        self._connection.feed(Leave(event.table))

    def disconnected(self) -> None:
        """Give no orders to the lobby until it has logged us in again."""
        for session in self.sessions.values():
            session.disconnected()

    def absent(self, tables: Collection[str]) -> None:
        """Abort the tables that the lobby did not name after the connect. At the others no hand is played that we do
        not know, so a drain leaves those without one."""
        for table in tables:
            if (session := self.sessions.get(table)) is not None:
                reason = "the lobby did not name it after the connect"
                _log.warning("table_aborted", account=self._name, table=table, reason=reason)
                self._runner.perform(session, session.abort())
        if self._seeking.stopped:
            self.drain(at_once=False)

    def abort_all(self) -> None:
        """Abort all tables, because they are no longer ours. They count as neither won nor lost."""
        for session in list(self.sessions.values()):
            self._runner.perform(session, session.abort())

    def ask_silent(self, now: float, idle_s: float) -> None:
        """Ask for snapshots of silent tables, because their ends may have been lost. Leave those without an answer."""
        for table, session in list(self.sessions.items()):
            if now - session.heard_at < idle_s:
                continue
            session.heard_at = now
            session.silences += 1
            if session.silences > MAX_SILENCES:
                reason = "the lobby sends nothing about it"
                _log.warning("table_aborted", account=self._name, table=table, reason=reason)
                self.leave_table(table, reason)
            else:
                self.resync(table)

    # ---------------------------------------------------------------------------------------------- for the sessions

    def act(self, command: Act, sent: Callable[[], None]) -> None:
        self._connection.act(command, sent)

    def resync(self, table: str, reason: str = "") -> None:
        """Ask for a snapshot. ``reason``: what was wrong with our view, for the log."""
        if reason:
            self._lines.log(time.monotonic(), "warning", "resync", table=table, reason=reason)
        self._connection.feed(Resync(table))

    def hand_over(self, session: Session, *, aborted: bool) -> None:
        """Handle the end of a hand: leave the table if we drain or the manners require it."""
        if not aborted:
            self._seeking.succeeded()
            self._connection.progress()
        self._manners.played(session.players, session.seat)
        if session.hand is not None or session.key.table not in self.sessions:
            return
        reason = "draining" if self._seeking.stopped else self._manners.pauses()
        company = session.game.name, session.players, session.seat
        reason = reason or self._manners.company(*company, time.monotonic())
        if reason is not None:
            asyncio.get_running_loop().call_soon(self.leave_table, session.key.table, reason)

    def leave_table(self, table: str, reason: str) -> None:
        """Give up a seat."""
        if table not in self.sessions:
            return
        if not self._seeking.stopped:
            self._lines.log(time.monotonic(), "warning", "table_left", table=table, reason=reason)
            self._seeking.hold_off(time.monotonic())
        self.talk.leaves(self.sessions[table], time.monotonic())
        self._connection.feed(Leave(table))
        if (session := self.sessions.get(table)) is not None:
            self._runner.perform(session, session.abort())

    def fail(self, session: Session) -> None:
        """Leave a table because of the error that is being handled, such as one of a plugin's game. Others play on."""
        table = session.key.table
        self._lines.log(time.monotonic(), "exception", "table_failed", table=table, game=session.game.name)
        self.leave_table(table, "it failed")

    def no_strategy(self, session: Session) -> None:
        """Leave a table that no strategy can play."""
        lobby, account, table = session.key
        routed = self._runner.plans.router.choose(lobby, account, session.game.name, session.attributes) is not None
        advice = "add a route, or remove the wish"
        if routed:
            advice = "its strategy is in quarantine or unavailable: set the route's fallback"
        self._lines.log(time.monotonic(), "error", "no_strategy", table=table, game=session.game.name, advice=advice)
        self.leave_table(table, "no strategy")

    def given_up(self, event: GaveUp) -> None:
        """Log that a session stopped answering at its position."""
        self._lines.log(time.monotonic(), "error", "table_given_up", table=event.table, reason=event.reason)

    def drain(self, *, at_once: bool) -> None:
        """Leave the tables that are between two hands; ``at_once``: all tables."""
        for table, session in list(self.sessions.items()):
            if at_once or (session.hand is None and (session.trust.fresh or self._roll_call.over)):
                self.leave_table(table, "draining")

    def let_go(self) -> None:
        """Release our tables, because another host continues there."""
        for table, session in list(self.sessions.items()):
            self._runner.let_go(session)
            self.close_table(table, "let go")

    def close_table(self, table: str, reason: str) -> None:
        """Forget a table that is over, and free its slot."""
        if (session := self.sessions.pop(table, None)) is not None:
            self._runner.remove(session)
            if reason in COMPLETE:
                self.talk.leaves(session, time.monotonic())
        self.talk.forget(table)
        self._roll_call.named(table)
        self._without_people.discard(table)
        key = (self._lobby.name, table)
        if self._seated.get(key) is self:
            del self._seated[key]
        self._slots.release(table)
        self._changed()
        self._seeking.seek_more(time.monotonic())
