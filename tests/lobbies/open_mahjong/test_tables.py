"""Four adapters of open_mahjong at the fake lobby in one thread, without sockets and with a clock of their own: many
hands of random play, full of claims and kongs, in which every view folds without a gap."""

import collections
import heapq
import itertools
import json
import random
from types import SimpleNamespace

import pytest

from bothost import messages as m
from bothost import rules
from bothost.lobbies.base import Account
from bothost.lobbies.open_mahjong import OpenMahjong, OpenMahjongOptions
from bothost.testing.fake_open_mahjong import FakeOpenMahjong, Line, Traps

GAME = rules.game("mahjong", preset="open-mahjong")
OPTIONS = {"ready_after_s": 0.5, "settle_s": 0.5, "look_s": 3.0}
EVERYTHING = Traps(drop_every=61, ignore=0.02, repeat=0.05, noise=0.02)


class Clock:
    """What happens, in its order."""

    def __init__(self):
        self.now, self.order, self.heap = 0.0, itertools.count(), []

    def later(self, after_s, function, *args):
        handle = SimpleNamespace(dead=False)
        handle.cancel = lambda: setattr(handle, "dead", True)
        heapq.heappush(self.heap, (self.now + after_s, next(self.order), handle, function, args))
        return handle

    def step(self):
        self.now, _, handle, function, args = heapq.heappop(self.heap)
        if not handle.dead:
            function(*args)


class Lobby(FakeOpenMahjong):
    def __init__(self, clock, traps, seed):
        super().__init__(traps, seed=seed)
        self.clock = clock

    def later(self, after_s, function, *args):
        return self.clock.later(after_s, function, *args)


class MemoryLine(Line):
    """A connection without a socket."""

    def __init__(self, client, conn):
        super().__init__(None)
        self.client, self.conn = client, conn

    def send(self, text):
        self.client.soon(m.Frame(self.conn, text))

    def abort(self):
        self.client.soon(m.SocketClosed(self.conn, 1006))


class Client:
    """A player's adapter, and a host that decides at random."""

    def __init__(self, lobby, name, rng):
        self.lobby, self.name, self.rng = lobby, name, rng
        self.adapter = OpenMahjong(Account(name=name, url="ws://x", password="p"), OpenMahjongOptions(**OPTIONS))
        self.view, self.memo, self.timers, self.tables, self.lines = None, {}, {}, set(), {}
        self.refused, self.events = [], collections.Counter()
        self.notices, self.moves = collections.Counter(), collections.Counter()
        self.feed(m.Authenticate())

    def feed(self, item):
        for output in self.adapter.feed(item):
            self.perform(output)

    def soon(self, item):
        self.lobby.clock.later(0.0, self.feed, item)

    def perform(self, output):
        self.events[type(output).__name__] += 1
        match output:
            case m.OpenSocket():
                self.lines[output.conn] = MemoryLine(self, output.conn)
                self.soon(m.SocketOpened(output.conn))
            case m.SendFrame():
                self.lobby.clock.later(0.001, self.lobby.received, self.lines[output.conn], output.data)
            case m.CloseSocket():
                self.lobby.disconnected(self.lines[output.conn])
            case m.SetTimer():
                self.perform(m.CancelTimer(output.name))
                handle = self.lobby.clock.later(output.after_s, self.feed, m.TimerFired(output.name))
                self.timers[output.name] = handle
            case m.CancelTimer():
                if output.name in self.timers:
                    self.timers.pop(output.name).cancel()
            case m.Remember():
                self.memo = json.loads(json.dumps(output.memo))
            case m.Disconnected():
                self.lobby.clock.later(0.05, self.feed, m.Resume(tuple(self.tables), self.memo))
            case m.Connected() | m.SeekEnded() | m.TableEnded():
                self.tables.discard(getattr(output, "table", ""))
                if not self.tables:
                    self.lobby.clock.later(1.0 + self.rng.random(), self.seek)
            case m.Notice() if output.level != "info":
                self.notices[output.text.split(": ")[-1]] += 1
            case _:
                self.table_event(output)

    def seek(self):
        if not self.tables:
            self.feed(m.Seek(f"s{self.rng.random()}", m.Wish("mahjong")))

    def table_event(self, output):
        match output:
            case m.Seated():
                self.tables.add(output.table)
            case m.HandStarted():
                self.view = GAME.new_view(output.seat)
            case m.Snapshot():
                self.view = GAME.view_from_snapshot(output.view)
            case m.Delta():
                assert output.seq == self.view.seq
                self.view.observe_all(output.events)
            case m.Rejected():
                self.refused.append(self.last)
            case m.ActionRequest():
                self.decide(output)

    def decide(self, request):
        assert self.view.asked and request.seq == self.view.seq and request.raw is not None
        if "." not in request.request_id.removeprefix(request.hand + "."):
            self.refused = []
        ours = [GAME.notation(int(action)) for action in self.view.legal()]
        both = [action for action in ours if action in request.legal and action not in self.refused]
        assert set(request.legal) - {"hu"} <= set(ours), "the lobby offers what our rules do not know"
        bold = [action for action in both if action.split(":")[0] not in ("play", "pass")]
        self.last = self.rng.choice(bold if bold and self.rng.random() < 0.8 else both)
        self.moves[self.last.split(":")[0]] += 1
        self.soon(m.Act(request.table, request.request_id, (self.last,)))


def play(matches, seed, traps=None):
    clock, rng = Clock(), random.Random(seed)
    lobby = Lobby(clock, traps, seed)
    for name in ("ada", "bob", "cyd", "dan"):
        lobby.add(name, "p")
    clients = [Client(lobby, name, rng) for name in ("ada", "bob", "cyd", "dan")]
    for _ in range(60_000 * matches):
        if lobby.matches >= matches:
            break
        clock.step()
    assert lobby.matches >= matches, "the tables stand still"
    return lobby, clients


def sums(clients):
    events, moves, notices = (
        sum((getattr(client, what) for client in clients), collections.Counter())
        for what in ("events", "moves", "notices")
    )
    return events, moves, notices


def test_many_hands_fold_without_a_snapshot():
    lobby, clients = play(4, seed=1)
    events, moves, notices = sums(clients)
    assert notices.keys() <= {"房间不存在", "玩家不在房间中"}, "rooms that ended before we left them"
    assert events["Snapshot"] == 0 and events["Rejected"] == 0 and events["ServerActedForUs"] == 0
    assert {"chi", "peng", "play"} <= moves.keys()
    assert lobby.silences == {}


@pytest.mark.parametrize("seed", [2, 3])
def test_many_hands_with_every_trap_on(seed):
    every_trap_was_survived(*play(4, seed, EVERYTHING))


@pytest.mark.long
def test_a_thousand_hands_with_every_trap_on():
    every_trap_was_survived(*play(250, 4, EVERYTHING))


def every_trap_was_survived(lobby, clients):
    events, _, notices = sums(clients)
    assert not any("no question" in text or "taking" in text for text in notices)
    assert set(lobby.struck) == {"drop", "ignore", "repeat", "noise"}
    assert events["Snapshot"] >= lobby.struck.count("drop") / 2
    assert lobby.repeated == [] and lobby.deleted == 0
    assert len(lobby.silences) <= lobby.struck.count("ignore")
