"""The adapter of Botzone's local AI: long polls over HTTP, many matches at once, answers as headers of the next poll.

What is special about this lobby, and where it is handled:

- A poll stays open until there is news. One poll at a time carries all answers (``polls``).
- The lobby does not confirm answers (``delivery``).
- A request names neither its game nor the moves before it (``dialect``, ``transcript``). A new process continues from
  the memo.
- An illegal answer loses the match. Only the end of the match shows it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from bothost import messages as m
from bothost.lobbies.base import Account, Capabilities, LobbyAdapter
from bothost.lobbies.botzone import protocol as wire
from bothost.lobbies.botzone.games import GAMES
from bothost.lobbies.botzone.match import Match
from bothost.lobbies.botzone.options import AGAIN, GATHER, HELLO, STALL, START, TAKEN, BotzoneAttributes, BotzoneOptions
from bothost.lobbies.botzone.orders import Orders
from bothost.lobbies.botzone.polls import GARBLED, Polls

IDLE_S = 1.0
"""Seconds between polls that bring nothing new."""
MAX_REQUESTS = 1000
"""Leave a match after more requests than this. The longest game has a third of them."""
MAX_UNSEATED = 64
"""Most matches whose requests are not understood, and which may never end. Further ones are ignored."""


class Botzone(LobbyAdapter):
    """One user's local AI."""

    name = "botzone"
    kit = "bothost.testing.kits:BOTZONE"
    capabilities = Capabilities(
        games=("doudizhu", "mahjong", "othello"),
        acks_moves=True,
        rejects_illegal="silence",
        sends_turn=True,
        takes_composites=True,
        clock="per_move",
        resume="identity",
        resume_delivers="nothing",
        transport="long_poll",
    )
    Options = BotzoneOptions
    Attributes = BotzoneAttributes

    options: BotzoneOptions

    def __init__(self, account: Account, options: BotzoneOptions) -> None:
        super().__init__(account, options)
        self._matches: dict[str, Match] = {}
        self._polls = Polls(account, options, self._matches)
        self._orders = Orders(self._polls, options, self._matches)
        self._over: deque[str] = deque(maxlen=256)
        """Matches that ended or that we left. Later messages about them are ignored."""

    def feed(self, item: m.Input) -> list[m.Output]:
        match item:
            case m.HttpResult() if item.request == self._polls.standing and self._polls.up:
                return self._polled(item)
            case m.HttpResult():
                return self._ordered(item)
            case m.Act():
                return self._act(item)
            case m.TimerFired():
                return self._timer(item.name)
            case m.Authenticate() | m.Resume():
                return self._log_in(item)
            case m.Ping():
                return [m.Alive()] if self._polls.ready else []
            case m.Close():
                return self._down()
            case _:
                return self._command(item)

    # ---------------------------------------------------------------------------------------------------- the session

    def _log_in(self, item: m.Authenticate | m.Resume) -> list[m.Output]:
        out = self._down()
        try:
            self._polls.begin()
        except ValueError as error:
            return [m.AuthFailed(str(error))]
        memos = item.memo.get("matches")
        for name, memo in memos.items() if isinstance(memos, dict) else ():
            if name in self._matches or not wire.MATCH_ID.fullmatch(name):
                continue
            if (recalled := Match.recall(name, memo, self._grant_ms)) is not None:
                self._matches[name] = recalled
        known = item.known if isinstance(item, m.Resume) else ()
        gone = [table for table in known if table not in self._matches]
        out += [m.TableEnded(table, "aborted", detail="the memo has no record of this match") for table in gone]
        return out + self._polls.next()

    @property
    def _grant_ms(self) -> float:
        return self.options.time_limit_s * 1000.0

    def _connected(self) -> list[m.Output]:
        """A poll stays open, or was answered, so we are logged in: report every live match."""
        if self._polls.ready:
            return []
        self._polls.ready = True
        live = [match for match in self._matches.values() if match.seated]
        out: list[m.Output] = [m.CancelTimer(HELLO), m.Connected(self._polls.user, bool(live), self.account.name)]
        for match in live:
            out += [*match.sit(), *match.position()]
        return [*out, *(m.SetTimer(STALL + name, self.options.stall_s) for name in self._matches)]

    def _down(self) -> list[m.Output]:
        """The connection is lost. Matches continue."""
        out = self._polls.end()
        return [*out, *(m.CancelTimer(STALL + match) for match in self._matches), *self._orders.end()]

    # ---------------------------------------------------------------------------------------------------------- polls

    def _polled(self, item: m.HttpResult) -> list[m.Output]:
        self._polls.standing = 0
        if item.status != 200:
            return self._poll_failed(item)
        try:
            polled = wire.polled(item.body)
        except wire.BadAnswer as error:
            unknown = m.Unknown(f"{error}: {item.body[:200].decode(errors='replace')}")
            return [unknown, *self._poll_failed(m.HttpResult(item.request, GARBLED, (), b""))]
        self._polls.succeeded()
        out: list[m.Output] = [m.CancelTimer(TAKEN), *self._connected(), *(m.Unknown(line) for line in polled.odd)]
        news = any(over.match in self._matches for over in polled.finished)
        for name, request in polled.requests:
            events = self._request(name, request)
            out += events or []
            news = news or events is not None
        for over in polled.finished:
            out += self._finished(over)
        if self._polls.patient and self._polls.asked:
            return [*out, *self._polls.next(news=news), m.SetTimer(GATHER, self.options.time_limit_s + 2.0)]
        urgent = any(match.delivery.urgent for match in self._matches.values())
        return out + (self._polls.next(news=news) if news or urgent else self._polls.pause(IDLE_S))

    def _poll_failed(self, item: m.HttpResult) -> list[m.Output]:
        out: list[m.Output] = [m.CancelTimer(TAKEN)]
        where = f"HTTP {item.status}" if item.status > 0 else item.body[:200].decode(errors="replace") or "no answer"
        match self._polls.failed(item):
            case "stood":
                return [*out, *self._connected(), *self._polls.pause(self.options.retry_s)]
            case "probed":
                return [*out, *self._connected(), *self._polls.next()]
            case "refused":
                return [*out, *self._down(), m.AuthFailed(f"the lobby refuses the token's address: {where}")]
            case "lost":
                return [*out, *self._down(), m.Disconnected(f"polls fail: {where}", self.options.retry_s)]
            case "retry":
                return [*out, m.CancelTimer(HELLO), *self._polls.pause(self.options.retry_s)]

    def _timer(self, name: str) -> list[m.Output]:
        polls = self._polls
        if name == HELLO and polls.standing:
            return self._connected()
        if name == AGAIN and polls.waiting:
            polls.waiting = False
            return polls.next()
        if name == TAKEN and polls.standing:
            carried = [match for match in self._matches.values() if match.delivery.where == "carried"]
            return [output for match in carried for output in match.acknowledge()]
        if name == GATHER and polls.ready:
            polls.patient = False
            return polls.next()
        if name == START:
            return self._orders.may_order()
        match = self._matches.get(name.removeprefix(STALL))
        if name.startswith(STALL) and match is not None and polls.ready:
            return self._quit(
                match, m.TableEnded(match.id, "aborted", detail=f"no message for {self.options.stall_s:g} s")
            )
        return []

    # -------------------------------------------------------------------------------------------------------- matches

    def _request(self, name: str, request: str) -> list[m.Output] | None:
        """Handle a request of a match. Returns None if it brings nothing new."""
        match = self._matches.get(name)
        if name in self._over or (match is None and self._orders.hold(name, request)):
            return None
        if match is None:
            if sum(not each.seated for each in self._matches.values()) >= MAX_UNSEATED:
                return None
            match = self._matches[name] = Match(name, self._grant_ms)
        before = match.received
        out = match.request(request)
        if match.received > MAX_REQUESTS:
            ended = m.TableEnded(name, "aborted", detail=f"more than {MAX_REQUESTS} requests")
            return self._quit(match, ended)
        if match.seated and match.seek is None and match.received <= 2:
            out = self._orders.claim(match, out)
        return [*out, m.SetTimer(STALL + name, self.options.stall_s)] if match.received > before else out or None

    def _finished(self, over: wire.Finished) -> list[m.Output]:
        match = self._matches.pop(over.match, None)
        if match is None:
            text = f"the lobby reports the end of match {over.match}, which is not ours"
            return [] if over.match in self._over else [m.Notice(text)]
        self._over.append(over.match)
        out: list[m.Output] = [m.CancelTimer(STALL + match.id), *match.ended(over.slot, over.scores)]
        if match.seek is not None and not match.seated:
            out.append(m.SeekEnded(match.seek, "the match ended before it started"))
        return out

    def _quit(self, match: Match, ended: m.TableEnded) -> list[m.Output]:
        del self._matches[match.id]
        self._over.append(match.id)
        abort = self._polls.call("abortmatch", (("X-Matchid", match.id),), 30.0)
        return [abort, m.CancelTimer(STALL + match.id), ended, *self._polls.next(news=True)]

    def _act(self, act: m.Act) -> list[m.Output]:
        match = self._matches.get(act.table)
        if match is None:
            return []
        out = match.act(act)
        if not self._polls.asked:
            self._polls.patient = True
            out.append(m.CancelTimer(GATHER))
        return [*out, *self._polls.next(news=True)]

    def _ordered(self, item: m.HttpResult) -> list[m.Output]:
        """Handle the answer to an order, and the requests that came before it."""
        match, out = self._orders.answered(item)
        if match is not None:
            self._matches.setdefault(match.id, match)
            out += [self._polls.remember(), m.SetTimer(STALL + match.id, self.options.stall_s)]
        early = self._orders.held()
        for name, request in early:
            out += self._request(name, request) or []
        return [*out, *self._polls.next(news=True)] if early else out

    # -------------------------------------------------------------------------------------------------------- commands

    def _command(self, item: m.Input) -> list[m.Output]:
        if not self._polls.ready:
            return [m.SeekEnded(item.seek, "not connected")] if isinstance(item, m.Seek | m.Create | m.Join) else []
        table: Any = self._matches.get(getattr(item, "table", ""))
        match item:
            case m.Seek() | m.Create():
                return self._orders.seek(item.seek, item.wish)
            case m.Join():
                return [m.SeekEnded(item.seek, "this lobby has no open matches to join: seek or create one")]
            case m.CancelSeek():
                return self._orders.cancel(item.seek)
            case m.ListTables():
                kinds = [kind for kind in GAMES.values() if item.game in (None, kind.game)]
                tables = [m.TableInfo(k.name, k.game, k({}).rules, {"botzone": k.name}, k.players) for k in kinds]
                return [m.Tables(tuple(tables))]
            case m.Resync() if table is not None:
                return list(table.position())
            case m.Leave() | m.Resign() if table is not None:
                return self._quit(table, m.TableEnded(item.table, "left"))
            case _:
                return []  # there are no invitations, and matches begin by themselves
