"""Hostile lobbies: recorded sessions, with frames that are missing, doubled, early, torn or forged. No adapter raises,
asks for what was not offered, or grows."""

import json
import random
import sys
from collections import deque
from pathlib import Path
from typing import get_args

import pytest
from memory_lobby import MemoryLobby, RandomClient

from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.botzone import Botzone
from bothost.lobbies.embedded import EmbeddedLobby
from bothost.lobbies.mailgyc import MailgycLobby
from bothost.lobbies.open_mahjong import OpenMahjong
from bothost.lobbies.othello_platform import OthelloPlatform
from bothost.testing.fake_botzone.judges import JUDGES, read, written

TRANSCRIPTS = Path(__file__).parent / "transcripts"
ACCOUNT = Account(name="ada", url="ws://lobby.example:1/ws", token="planted-token", password="planted-word")
BOTZONE = Account(name="ada", url="https://botzone.example", token="https://botzone.example/api/5f/planted/localai")
WISHES = {
    "botzone": m.Wish("othello"),
    "embedded": m.Wish("claims"),
    "mailgyc": m.Wish("doudizhu"),
    "open_mahjong": m.Wish("mahjong"),
    "othello_platform": m.Wish("othello", {}, {"mode": "match"}),
}
MOVES = {"botzone": "pass", "embedded": "pass", "mailgyc": "pass", "open_mahjong": "pass", "othello_platform": "d3"}
JUNK = (
    "",
    "{",
    "null",
    "[1006,{}]",
    '{"type":"fireworks"}',
    "\x00",
    "[" * 3000,
    '"' + "x" * 5000,
    b"\xff\xfe",
    "1e999",
)
SCRAPS = ("null", "-1", "1e999", "9" * 30, '"', "{}", "[]", "\\ud800", "true", ",", "\x00", "0")
OUTPUTS = get_args(m.Output)
MOST_BYTES = 2_000_000


def sessions_of(name):
    """Recorded sessions of a lobby, each the number of an account and the frames that it received."""
    if name == "embedded":
        lobby = MemoryLobby({"ada": "a", "bob": "b"}, robots_after_s=0.0)
        clients = [RandomClient(lobby.shell(player)) for player in ("ada", "bob")]
        for client in clients:
            client.start(WISHES[name])
        for _ in range(6):
            lobby.sleep(1.0)
            clients[0].shell.drop()
            clients[0].resume()
        return [(0, [text for way, text in client.shell.frames if way == "in"]) for client in clients]
    if name == "botzone":
        return [(1, list(Match(game, seed).polls())) for game in JUDGES for seed in range(4)]
    found = []
    for path in sorted(TRANSCRIPTS.glob(f"{name.removesuffix('_platform')}_*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for conn in sorted({line["conn"] for line in lines}):
            frames = [line["data"] for line in lines if line["conn"] == conn and line["dir"] == "in"]
            logins = [line["data"].get("body") for line in lines if line["conn"] == conn and line["dir"] == "http"]
            users = [user for body in logins if (user := user_of(body)) is not None]
            if frames:
                user = users[0] if users else 1
                found.append((user, [data if isinstance(data, str) else json.dumps(data) for data in frames]))
    return found


class Match:
    """A match at Botzone between its judge and an adapter, which moves at random."""

    def __init__(self, game, seed):
        rng = random.Random(seed)
        self.judge = JUDGES[game](seed % JUDGES[game].players, seed, rng)
        self.id, self.rng = f"{rng.getrandbits(96):024x}", rng
        self.adapter, self.poll, self.timers = Botzone(BOTZONE, Botzone.Options()), None, []

    def feed(self, item):
        for output in self.adapter.feed(item):
            match output:
                case m.HttpRequest():
                    self.poll = output
                case m.SetTimer():
                    self.timers.append(output.name)
                case m.ActionRequest():
                    state = self.judge.state
                    words = map(state.game.notation, state.legal(self.judge.me).tolist())
                    word = self.rng.choice([w for w in words if not w.startswith(("chi", "peng"))])  # those take two
                    self.feed(m.Act(output.table, output.request_id, (word,)))

    def polls(self):
        """What its polls brought."""
        self.feed(m.Authenticate({}))
        while self.judge.request is not None:
            body = f"1 0\n{self.id}\n{written(self.judge.request, False)}"
            yield body
            self.feed(m.HttpResult(self.poll.request, 200, (), body.encode()))
            while not (said := dict(self.poll.headers).get(f"X-Match-{self.id}")):
                self.feed(m.TimerFired(self.timers.pop(0)))
            self.judge.answer(read(said, self.judge.request, False))
        scores = " ".join(f"{score:g}" for score in self.judge.scores)
        yield f"0 1\n{self.id} {self.judge.me} {len(self.judge.scores)} {scores}"


def user_of(body):
    if not isinstance(body, dict):
        return None
    return body.get("uid") or body.get("userId") or (body.get("user") or {}).get("id")


def http_answer(name, rng, user):
    if rng.random() < 0.02:
        return rng.choice([0, 200, 401, 429, 500]), (), rng.choice([b"", b"{}", b"[]", b"\xff", b'{"token":7}'])
    body = {
        "uid": user,
        "name": "ada",
        "room": -1,
        "rooms": [],
        "token": "t",
        "refreshToken": "r",
        "user": {"id": user},
    }
    if name == "othello_platform":
        body["items"] = []
    return 200, (("set-cookie", 'userinfo="planted"; Path=/'),), json.dumps(body).encode()


class Shell:
    """Does what an adapter asks for, at once, and loses the connection now and then."""

    def __init__(self, adapter, rng, user):
        self.adapter, self.rng, self.user = adapter, rng, user
        self.inputs = deque([m.Authenticate({})])
        self.conn, self.memo, self.timers, self.tables, self.poll = 0, {}, {}, set(), None
        self.asked, self.ended = 0, False

    def run(self):
        for _ in range(50):
            if not self.inputs:
                return
            for output in self.adapter.feed(self.inputs.popleft()):
                self.perform(output)

    def hear(self, data):
        if self.adapter.name != "botzone":
            self.inputs.append(m.Frame(self.conn, data))
        elif self.poll is None:
            self.disturb()
        else:
            body = data if isinstance(data, bytes) else data.encode(errors="replace")
            self.inputs.append(m.HttpResult(self.poll, 200, (), body))
            self.poll = None
        self.run()

    def perform(self, output):
        assert isinstance(output, OUTPUTS)
        match output:
            case m.OpenSocket():
                self.conn = output.conn
                self.inputs.append(m.SocketOpened(output.conn))
            case m.CloseSocket():
                self.inputs.append(m.SocketClosed(output.conn, 1000))
            case m.HttpRequest() if output.url.endswith("/localai"):
                self.poll = output.request  # it stands until the next session's frame answers it
            case m.HttpRequest():
                self.inputs.append(m.HttpResult(output.request, *http_answer(self.adapter.name, self.rng, self.user)))
            case m.SetTimer():
                self.timers[output.name] = output.after_s
            case m.CancelTimer():
                self.timers.pop(output.name, None)
            case m.Remember():
                self.memo = json.loads(json.dumps(output.memo))
            case m.Connected():
                self.inputs.append(m.Seek("seek-0", WISHES[self.adapter.name]))
            case m.Disconnected():
                self.inputs.append(m.Resume(tuple(self.tables), self.memo))
            case m.AuthFailed() | m.Superseded():
                self.ended = True
            case m.Seated():
                self.tables.add(output.table)
            case m.TableEnded():
                self.tables.discard(output.table)
            case m.ActionRequest():
                self.asked += 1
                if self.rng.random() < 0.5:
                    self.inputs.append(m.Act(output.table, output.request_id, (MOVES[self.adapter.name],)))

    def disturb(self):
        match self.rng.randrange(4):
            case 0:
                self.inputs.append(m.SocketClosed(self.conn, 1006))
            case 1 if self.timers:
                name = self.rng.choice(sorted(self.timers))
                del self.timers[name]
                self.inputs.append(m.TimerFired(name))
            case 2:
                self.inputs.append(m.Resync(next(iter(self.tables), "1")))
            case _ if self.tables:
                self.inputs.append(m.Leave(self.rng.choice(sorted(self.tables))))
        self.run()


def torn(rng, text):
    """Almost the frame that it was."""
    data = bytearray(text.encode())
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(4):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del data[at : at + rng.randrange(6)]
            case 2:
                data[at:at] = rng.choice(SCRAPS).encode()
            case 3:
                data[at:at] = data[max(0, at - 20) : at]
    return data.decode(errors="replace") if rng.random() < 0.9 else bytes(data)


def forged(rng, text):
    """A well-formed frame with other values in it."""

    def change(value, chance=0.15):
        if isinstance(value, dict):
            return {key: change(inner) for key, inner in value.items() if rng.random() > 0.03}
        if isinstance(value, list):
            return [change(inner) for inner in value] * (2 if rng.random() < 0.02 else 1)
        if rng.random() > chance:
            return value
        other = [None, True, -1, 0, 1, 2, 3, 54, 64, 10**18, 1.5, "", "1", "x" * 300, [], {}, [0] * 64]
        return value + rng.choice((-1, 1)) if type(value) is int and rng.random() < 0.5 else rng.choice(other)

    try:
        return json.dumps(change(json.loads(text)))
    except ValueError:
        return text


def size_of(thing, seen):
    """Bytes of Python objects that are reached from an object, roughly."""
    if id(thing) in seen or isinstance(thing, type) or callable(thing):
        return 0
    seen.add(id(thing))
    inner = []
    if isinstance(thing, dict):
        inner = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        inner = list(thing)
    else:
        names = getattr(thing, "__struct_fields__", None) or getattr(type(thing), "__slots__", ())
        inner = [getattr(thing, name, None) for name in names] + list(getattr(thing, "__dict__", {}).values())
    return sys.getsizeof(thing) + sum(size_of(part, seen) for part in inner)


def fuzz(adapter_class, count, seed):
    """Feed so many frames; returns how many questions came."""
    rng, name = random.Random(seed), adapter_class.name
    account = BOTZONE if name == "botzone" else ACCOUNT
    sessions, asked, heard = sessions_of(name), 0, 0
    shell = Shell(adapter_class(account, adapter_class.Options()), rng, sessions[0][0])
    shell.run()
    while heard < count:
        user, frames = rng.choice(sessions)
        if shell.ended or rng.random() < 0.3:  # all others go on with an adapter that has seen much
            asked += shell.asked
            shell = Shell(adapter_class(account, adapter_class.Options()), rng, user)
            shell.run()
        for text in frames:
            match rng.random():
                case luck if luck < 0.70:
                    shell.hear(text)
                case luck if luck < 0.78:
                    shell.hear(torn(rng, text))
                case luck if luck < 0.88:
                    shell.hear(forged(rng, text))
                case luck if luck < 0.92:
                    shell.hear(text)
                    shell.hear(text)
                case luck if luck < 0.95:
                    shell.hear(rng.choice(rng.choice(sessions)[1]))
                case luck if luck < 0.96:
                    shell.hear(rng.choice(JUNK))
                case luck if luck < 0.97:
                    shell.disturb()
            heard += 1
        if heard % 1000 < 50:
            assert size_of(shell.adapter, set()) < MOST_BYTES
            assert len(shell.timers) < 50
    return asked + shell.asked


ADAPTERS = [Botzone, EmbeddedLobby, MailgycLobby, OpenMahjong, OthelloPlatform]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_ten_thousand_hostile_frames_break_no_adapter(adapter):
    assert fuzz(adapter, 10_000, seed=1) > 20, "sessions got as far as their questions"


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_a_million_hostile_frames_break_no_adapter(adapter):
    assert fuzz(adapter, 1_000_000, seed=2) > 1000
