"""The adapter of Botzone's local AI: long polls over HTTP, many matches at once, answers as headers of the next poll.

What is particular to this lobby, and where it is dealt with:

- a poll stands until something is to do: that it stands is all that logging in can be;
- one poll at a time, and it carries every answer that is ready: the next one waits until all that were asked have
  answered;
- nothing confirms an answer: after a poll that failed (502, 504, no answer: again after five seconds) the next ones go
  without the answers that it carried, as a lobby that has them would take them for the next move; a lobby that lacks
  them tells the request again, or is told again when such a poll stood in vain (``botzone_match``);
- a request says neither its game nor the moves before it: the games' dialects know (``botzone_dialect``), and what
  was said is remembered for a fresh process;
- an illegal answer loses the match, without a word before its end.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import msgspec

from bothost import messages as m
from bothost.lobbies.base import Account, Capabilities, LobbyAdapter
from bothost.lobbies.botzone import protocol as wire
from bothost.lobbies.botzone.games import GAMES, of_wish
from bothost.lobbies.botzone.match import Match

HELLO, AGAIN, TAKEN, GATHER, START = "hello", "again", "taken", "gather", "start"
"""Timers: a poll stands long enough to be let in; the next poll; a poll that stands has taken its answers; do not wait
for the host any longer; the next match may be ordered."""
STALL = "stall:"
TAKEN_S, PROBE_S = 5.0, 10.0
IDLE_S = 1.0
"""Between polls that bring nothing new."""
FAILURES = 4
"""Polls in a row that may fail before the connection counts as lost."""
REFUSED = (400, 401, 403, 404, 410)
GARBLED = -1
"""Stands for the status of an answer that is not what the protocol says."""


class BotzoneOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[lobby.options]`` of botzone."""

    time_limit_s: float = 10.0
    """Per move: ordered with our matches, and supposed in those that people make."""
    hello_s: float = 3.0
    """A poll that stands for so long was let in: nothing else says so."""
    poll_s: float = 120.0
    """How long a poll may stand."""
    retry_s: float = 5.0
    """After a poll that failed."""
    start_every_s: float = 5.0
    """Least time between two matches that we order."""
    stall_s: float = 1800.0
    """A match of which nothing was heard for so long is given up."""


class Botzone(LobbyAdapter):
    """One user's local AI."""

    name: ClassVar[str] = "botzone"
    kit: ClassVar[str] = "bothost.testing.fake_botzone.kit:KIT"
    capabilities: ClassVar[Capabilities] = Capabilities(
        games=("doudizhu", "mahjong", "othello"),
        tables_per_connection=None,
        connections_per_identity=1,
        acks_moves=True,
        rejects_illegal="silence",
        sends_turn=True,
        sends_legal_actions=False,
        takes_composites=True,
        clock="per_move",
        resume="identity",
        resume_delivers="nothing",
        heartbeat="none",
        messages_per_second=None,
        on_rate_limit="none",
        plays_for_us=False,
        transport="long_poll",
    )
    Options: ClassVar[type[msgspec.Struct]] = BotzoneOptions

    def __init__(self, account: Account, options: Any) -> None:
        super().__init__(account, options)
        self._base = ""
        self._up = False
        """Whether we are logged in, or trying to be."""
        self._ready = False
        self._worked = False
        """Whether this secret was ever good."""
        self._count = 0
        self._poll_out = 0
        """The poll that stands; 0: none."""
        self._waiting = False
        """Whether the next poll waits for a timer."""
        self._patience = True
        """Whether the next poll waits for the host's decisions."""
        self._probing = False
        self._failures = 0
        self._matches: dict[str, Match] = {}
        self._orders: dict[int, tuple[str, Match]] = {}
        """Matches that were ordered and have no id yet, by HTTP request: (seek, match)."""
        self._seeks: dict[str, m.Wish] = {}
        """Seeks that wait: for their turn to be ordered, or for people to make a match."""
        self._may_start = True
        self._early: list[tuple[str, str]] = []
        """Requests of matches that may be ours, while an order is not answered."""
        self._left: deque[str] = deque(maxlen=256)

    def feed(self, item: m.Input) -> list[m.Output]:
        """Take one input or command; return effects and events in the order in which they must happen."""
        match item:
            case m.HttpResult():
                return self._answered(item)
            case m.Act():
                return self._act(item)
            case m.TimerFired():
                return self._timer(item.name)
            case m.Authenticate() | m.Resume():
                return self._log_on(item)
            case m.Ping():
                return [m.Alive()] if self._ready else []
            case m.Close():
                return self._down()
            case _:
                return self._command(item)

    # ---------------------------------------------------------------------------------------------------- the session

    def _log_on(self, item: m.Authenticate | m.Resume) -> list[m.Output]:
        try:
            self._base = wire.address(self.account.url, self.account.name, self.account.token)
        except ValueError as error:
            return [m.AuthFailed(str(error))]
        out = self._down()
        self._up, self._failures = True, 0
        for match, memo in self._memos(item.memo):
            if match not in self._matches and (recalled := Match.recall(match, memo)) is not None:
                self._matches[match] = recalled
        known = item.known if isinstance(item, m.Resume) else ()
        gone = [table for table in known if table not in self._matches]
        out += [m.TableEnded(table, "aborted", detail="nothing is remembered of it") for table in gone]
        return out + self._poll()

    @staticmethod
    def _memos(memo: m.Json) -> list[tuple[str, Any]]:
        matches = memo.get("matches")
        return [(k, v) for k, v in matches.items() if wire.MATCH_ID.fullmatch(k)] if isinstance(matches, dict) else []

    def _let_in(self) -> list[m.Output]:
        """A poll stands, or was answered: tell of every match that lives."""
        if self._ready:
            return []
        self._ready = True
        live = [match for match in self._matches.values() if match.seated]
        user = self._base.rsplit("/", 2)[-2]
        out: list[m.Output] = [m.CancelTimer(HELLO), m.Connected(user, bool(live), self.account.name)]
        for match in live:
            out += [*match.sit(), *match.position(self._grant_ms)]
            out.append(m.SetTimer(STALL + match.id, self.options.stall_s))
        return out

    def _down(self) -> list[m.Output]:
        """Nothing is expected any more; matches live on."""
        self._up = self._ready = self._waiting = False
        self._poll_out = 0
        for match in self._matches.values():
            if match.where == "carried":
                match.where = "unsure"
        out: list[m.Output] = [m.CancelTimer(name) for name in (HELLO, AGAIN, TAKEN, GATHER, START)]
        out += [m.CancelTimer(STALL + match) for match in self._matches]
        seeks = [*self._seeks, *(seek for seek, _ in self._orders.values())]
        self._seeks, self._orders, self._early, self._may_start = {}, {}, [], True
        return out + [m.SeekEnded(seek, "disconnected") for seek in seeks]

    @property
    def _grant_ms(self) -> float:
        return float(self.options.time_limit_s) * 1000.0

    def _call(self, verb: str, headers: tuple[tuple[str, str], ...], timeout_s: float) -> m.HttpRequest:
        self._count += 1
        headers = (("User-Agent", self.account.user_agent), *headers)
        return m.HttpRequest(self._count, "GET", f"{self._base}/{verb}", headers, b"", timeout_s)

    # ---------------------------------------------------------------------------------------------------------- polls

    def _poll(self, news: bool = False) -> list[m.Output]:
        """The next poll, with every answer that is ready; none while one stands, or while the host is to answer.

        With news, or answers to send, the matches are remembered first: a fresh process must know which answers left.
        """
        asked = [match for match in self._matches.values() if match.asked]
        if not self._up or self._poll_out or self._waiting or (asked and self._patience and self._ready):
            return [self._remember()] if news else []
        carried = [match for match in self._matches.values() if match.where == "ready"]
        unsure = any(match.where == "unsure" for match in self._matches.values())
        headers = tuple(wire.answer_header(match.id, match.text()) for match in carried)
        for match in carried:
            match.where = "carried"
        self._probing = unsure
        short = unsure or bool(asked and self._ready)
        poll = self._call("localai", headers, PROBE_S if short else self.options.poll_s)
        self._poll_out = poll.request
        out: list[m.Output] = [self._remember(), poll] if news or carried else [poll]
        if any(not match.acknowledged for match in carried):
            out.append(m.SetTimer(TAKEN, TAKEN_S))
        return out if self._ready else [*out, m.SetTimer(HELLO, self.options.hello_s)]

    def _pause(self, seconds: float) -> list[m.Output]:
        self._waiting = True
        return [m.SetTimer(AGAIN, seconds)]

    def _polled(self, item: m.HttpResult) -> list[m.Output]:
        self._poll_out = 0
        try:
            if item.status != 200:
                return self._poll_failed(item)
            polled = wire.polled(item.body)
        except wire.BadAnswer as error:
            unknown = m.Unknown(f"{error}: {item.body[:200].decode(errors='replace')}")
            return [unknown, *self._poll_failed(m.HttpResult(item.request, GARBLED, (), b""))]
        self._failures, self._worked = 0, True
        for match in self._matches.values():
            if match.where == "carried":
                match.where = "nowhere"
        out: list[m.Output] = [m.CancelTimer(TAKEN), *self._let_in(), *(m.Unknown(line) for line in polled.odd)]
        news = bool(polled.finished)
        for name, request in polled.requests:
            told, new = self._told(name, request)
            out += told
            news = news or new
        for over in polled.finished:
            out += self._finished(over)
        if self._patience and any(match.asked for match in self._matches.values()):
            return [*out, *self._poll(news), m.SetTimer(GATHER, self.options.time_limit_s + 2.0)]
        urgent = any(match.where == "ready" and match.repeats < 2 for match in self._matches.values())
        return out + (self._poll(news) if news or urgent else self._pause(IDLE_S))

    def _poll_failed(self, item: m.HttpResult) -> list[m.Output]:
        """Whether the answers that it carried were heard is open. A poll that only stood in vain is no failure."""
        vain = item.status == 504 or (item.status == 0 and b"ReadTimeout" in item.body)
        heard = vain or item.status == GARBLED or (item.status == 0 and b"Connect" not in item.body)
        for match in self._matches.values():
            if match.where == "carried":
                match.unheard(likely_taken=heard)
        out: list[m.Output] = [m.CancelTimer(TAKEN)]
        if vain:
            self._failures = 0
            out += self._let_in()
            if item.status == 0 and self._probing:  # our own patience ended: whoever wants an answer gets it again
                for match in self._matches.values():
                    match.say_again()
                return out + self._poll()
            return out + self._pause(self.options.retry_s)
        where = f"HTTP {item.status}" if item.status > 0 else item.body[:40].decode(errors="replace") or "no answer"
        if item.status in REFUSED and not self._worked:
            return [*out, *self._down(), m.AuthFailed(f"the address is refused: {where}")]
        self._failures += 1
        if self._failures >= FAILURES or not (self._ready or item.status in (502, GARBLED)):
            return [*out, *self._down(), m.Disconnected(f"polls fail: {where}", self.options.retry_s)]
        return [*out, m.CancelTimer(HELLO), *self._pause(self.options.retry_s)]

    def _timer(self, name: str) -> list[m.Output]:
        if name == HELLO and self._poll_out:
            return self._let_in()
        if name == AGAIN and self._waiting:
            self._waiting = False
            return self._poll()
        if name == TAKEN and self._poll_out:
            carried = [match for match in self._matches.values() if match.where == "carried"]
            return [output for match in carried for output in match.acknowledge()]
        if name == GATHER and self._ready:
            self._patience = False
            return self._poll()
        if name == START:
            self._may_start = True
            return self._order_next()
        if name.startswith(STALL):
            return self._stalled(name.removeprefix(STALL))
        return []

    # -------------------------------------------------------------------------------------------------------- matches

    def _told(self, name: str, request: str) -> tuple[list[m.Output], bool]:
        """A request of a match, and whether it is news."""
        if name in self._left:
            return [], False
        match = self._matches.get(name)
        if match is None and self._orders:  # it may be the one that was ordered: its id is not told yet
            new = (name, request) not in self._early
            if new:
                self._early.append((name, request))
            return [], False
        if match is None:
            match = self._matches[name] = Match(name)
        out: list[m.Output] = []
        before = (len(match.turns), len(match.inbox))
        out += match.told(request, self._grant_ms)
        if match.seated and match.seek is None and self._seeks and len(match.turns) <= 2:
            out = self._claim(match, out)
        new = before != (len(match.turns), len(match.inbox))
        return [*out, m.SetTimer(STALL + name, self.options.stall_s)] if new else out, new

    def _finished(self, over: wire.Finished) -> list[m.Output]:
        match = self._matches.pop(over.match, None)
        if match is None:
            return [] if over.match in self._left else [m.Notice(f"the end of match {over.match}, which is not ours")]
        out: list[m.Output] = [m.CancelTimer(STALL + match.id), *match.ended(over.slot, over.scores)]
        if match.seek is not None and not match.seated:
            out.append(m.SeekEnded(match.seek, "the match ended before it began"))
        return out

    def _stalled(self, name: str) -> list[m.Output]:
        match = self._matches.get(name)
        if match is None or not self._ready:
            return []
        return self._quit(match, m.TableEnded(name, "aborted", detail="nothing was heard of it for long"))

    def _quit(self, match: Match, ended: m.TableEnded) -> list[m.Output]:
        del self._matches[match.id]
        self._left.append(match.id)
        abort = self._call("abortmatch", (("X-Matchid", match.id),), 30.0)
        return [abort, m.CancelTimer(STALL + match.id), ended, *self._poll(news=True)]

    def _act(self, act: m.Act) -> list[m.Output]:
        match = self._matches.get(act.table)
        if match is None:
            return []
        out = match.act(act) + match.next_in(self._grant_ms)
        if not any(other.asked for other in self._matches.values()):
            self._patience = True
            out.append(m.CancelTimer(GATHER))
        return [*out, *self._poll(news=True)]

    def _remember(self) -> m.Remember:
        """What every match has said so far: nothing else tells a fresh process."""
        return m.Remember({"matches": {name: match.memo() for name, match in self._matches.items()}})

    # -------------------------------------------------------------------------------------------------------- seats

    def _command(self, item: m.Input) -> list[m.Output]:
        if not self._ready:
            return [m.SeekEnded(item.seek, "not connected")] if isinstance(item, m.Seek | m.Create | m.Join) else []
        match item:
            case m.Seek() | m.Create():
                return self._seek(item.seek, item.wish)
            case m.Join():
                return [m.SeekEnded(item.seek, "matches cannot be joined: order one, or wait for people to make one")]
            case m.CancelSeek():
                return self._cancel(item.seek)
            case m.ListTables():
                kinds = [kind for kind in GAMES.values() if item.game in (None, kind.game)]
                tables = [m.TableInfo(k.name, k.game, k({}).rules, {"botzone": k.name}, k.players) for k in kinds]
                return [m.Tables(tuple(tables))]
            case m.Resync() if item.table in self._matches:
                return self._matches[item.table].position(self._grant_ms)
            case m.Leave() | m.Resign() if item.table in self._matches:
                return self._quit(self._matches[item.table], m.TableEnded(item.table, "left"))
            case _:
                return []  # nobody is invited here, and matches begin by themselves

    def _seek(self, seek: str, wish: m.Wish) -> list[m.Output]:
        kind = of_wish(wish.game, wish.rules, wish.attributes.get("botzone"))
        opponents = wish.attributes.get("opponents")
        if kind is None:
            return [m.SeekEnded(seek, f"no such game here: {wish.game}")]
        if opponents is not None and (not isinstance(opponents, list) or len(opponents) != kind.players - 1):
            return [m.SeekEnded(seek, f"{kind.name} has {kind.players - 1} opponents: name their bots")]
        self._seeks[seek] = wish
        return self._order_next()

    def _cancel(self, seek: str) -> list[m.Output]:
        """A match that was ordered comes all the same; it is then a table that nobody asked for."""
        for match in [*self._matches.values(), *(match for _, match in self._orders.values())]:
            if match.seek == seek and not match.seated:
                match.seek = None
        known = self._seeks.pop(seek, None) is not None
        return [m.SeekEnded(seek, "cancelled")] if known else []

    def _order_next(self) -> list[m.Output]:
        """Order a match for the first seek that names its opponents. Others wait for matches that people make."""
        seek = next((seek for seek, wish in self._seeks.items() if wish.attributes.get("opponents")), None)
        if seek is None or not self._may_start or not self._ready:
            return []
        wish = self._seeks.pop(seek)
        kind = of_wish(wish.game, wish.rules, wish.attributes.get("botzone"))
        assert kind is not None
        wanted = wish.attributes
        players = [str(bot) for bot in wanted["opponents"]]
        slot = wanted.get("slot", self._count % kind.players)
        players.insert(slot if isinstance(slot, int) else 0, "me")
        try:
            headers = wire.run_headers(
                kind.name,
                players,
                simple=kind.game == "mahjong",
                time_limit_s=self.options.time_limit_s,
                initdata=wanted.get("initdata"),
            )
        except ValueError as error:
            return [m.SeekEnded(seek, str(error)), *self._order_next()]
        match = Match("", kind, wish.rules)
        match.seek, match.attributes = seek, {"players": players}
        call = self._call("runmatch", headers, 30.0)
        self._orders[call.request] = (seek, match)
        self._may_start = False
        return [call, m.SetTimer(START, self.options.start_every_s)]

    def _answered(self, item: m.HttpResult) -> list[m.Output]:
        if item.request == self._poll_out and self._up:
            return self._polled(item)
        order = self._orders.pop(item.request, None)
        return [] if order is None else self._ordered(item, *order)

    def _ordered(self, item: m.HttpResult, seek: str, match: Match) -> list[m.Output]:
        name = item.body[:200].decode(errors="replace").strip()
        if item.status != 200 or not wire.MATCH_ID.fullmatch(name):
            why = name if item.status else "no answer"
            ended = m.SeekEnded(seek, f"no match: HTTP {item.status} {why}".strip())
            return [*([ended] if match.seek is not None else []), *self._catch_up()]
        match.id = name
        self._matches.setdefault(name, match)
        return [self._remember(), m.SetTimer(STALL + name, self.options.stall_s), *self._catch_up()]

    def _catch_up(self) -> list[m.Output]:
        """Requests that came before the id of a match that we ordered."""
        if self._orders:
            return []
        early, self._early = self._early, []
        told = [output for name, request in early for output in self._told(name, request)[0]]
        return [*told, *self._poll(news=True)] if early else []

    def _claim(self, match: Match, out: list[m.Output]) -> list[m.Output]:
        """A match that people made fulfils a seek that waits for one."""
        for at, output in enumerate(out):
            if isinstance(output, m.Seated) and output.table == match.id:
                for seek, wish in self._seeks.items():
                    if wish.game == output.game and not wish.attributes.get("opponents"):
                        del self._seeks[seek]
                        match.seek = seek
                        out[at] = msgspec.structs.replace(output, seek=seek)
                        return out
        return out
