"""A person plays against bots at the embedded lobby: games that begin and end, advisers, what is logged."""

import asyncio
import contextlib
import fcntl
import json
import os
import stat
import threading
import time
import tomllib
from unittest.mock import ANY, DEFAULT, AsyncMock, MagicMock, Mock

import pytest
from msgspec.structs import replace
from running_table import new_lobby
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from bothost import config, rules
from bothost.errors import ConfigError, ModelError, PluginError, StoreUnavailable, UsageError
from bothost.lobbies.embedded import protocol as wire
from bothost.web import hints, matches, opponents
from bothost.web.application import Web
from bothost.web.matches import LOBBY, Match
from bothost.web.opponents import bots_of, configuration
from bothost.web.play import Play
from bothost.web.seat import Seat
from bothost.web.viewers import Viewer, Viewers
from bothost_baselines.random import FirstLegal

OURS = {"Origin": "http://localhost"}
JSON = {"Content-Type": "application/json"}


def begin(client, **changes):
    wanted = {"name": "eve", "game": "othello", "opponents": ["rule-othello"]} | changes
    return client.post("/api/play", json=wanted, headers=OURS)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "robot-1"}, "is a name for bots"),
        ({"name": "<b>"}, "is no name"),
        ({"name": "a\u202eb"}, "is no name"),
        ({"game": "nim"}, "nim"),
        ({"rules": {"score": 7}}, "othello"),
        ({"opponents": []}, "takes 1 opponents"),
        ({"opponents": ["exec:touch /tmp/x"]}, "does not play"),
        ({"opponents": ["llm-player"]}, "does not play"),
        ({"opponents": ["rule-othello:level-9"]}, "level-9"),
        ({"grant_ms": -1}, "clock"),
        ({"speed": 1}, "unknown field"),
    ],
)
def test_wishes_that_cannot_be_met_are_refused_in_words(client, changes, words):
    answer = begin(client, **changes)
    assert answer.status_code in (400, 500) and words in answer.json()["error"]


def test_bothosts_own_games_are_offered_before_those_of_plugins(client):
    offered = [offer["game"] for offer in client.get("/api/play").json()["games"]]
    assert offered[:4] == ["doudizhu", "mahjong", "othello", "pairing"]


def test_a_game_belongs_to_the_session_that_began_it(client, site):
    number = begin(client).json()["id"]
    running = client.get("/api/play").json()["running"]
    assert running == {number: {"game": "othello", "started_us": ANY}}
    assert abs(running[number]["started_us"] / 1e6 - time.time()) < 60
    assert client.get(f"/api/play/{number}/turn").status_code == 200
    client.cookies.clear()
    client.get("/api/session")
    assert client.get(f"/api/play/{number}").status_code == 404
    assert client.get(f"/api/play/{number}/turn").status_code == 404
    move = {"ask": "1", "action": "d3"}
    assert client.post(f"/api/play/{number}/act", json=move, headers=OURS).status_code == 404
    assert "eve belongs to another browser" in begin(client).json()["error"]


async def test_a_page_without_a_stream_learns_whose_turn_it_is(site):
    match, pages = at_a_question(site), Play(site, Mock())
    pages.matches = Mock(of=Mock(return_value=match))
    asked = []
    for ask, ended_at in ((match.seat.ask, None), (None, None), (match.seat.ask, 1.0)):
        match.seat.ask, match.ended_at = ask, ended_at
        asked.append(json.loads((await pages.turn(MagicMock())).body))
    assert asked == [{"asked": True}, {"asked": False}, {"asked": False}]


def test_a_name_plays_one_game_at_a_time(client):
    assert begin(client).status_code == 200
    assert "eve is playing already" in begin(client).json()["error"]


def test_a_player_who_is_away_makes_room_for_others(client, monkeypatch):
    monkeypatch.setattr(matches, "MAX_MATCHES", 1)
    monkeypatch.setattr(opponents, "MIN_MOVE_MS", 0)
    number = begin(client, grant_ms=0).json()["id"]
    assert "games are being played here" in begin(client, name="bob").json()["error"]
    monkeypatch.setattr(matches, "AWAY_S", 0.0)
    assert begin(client, name="bob").status_code == 400
    assert '"ended":true' in client.get(f"/api/play/{number}").text
    assert begin(client, name="bob").status_code == 200


def test_a_visitor_leaves_places_to_others(client, monkeypatch):
    monkeypatch.setattr(matches, "running", lambda *_: contextlib.nullcontext(Mock(returncode=None)))
    answers = [begin(client, name=name) for name in ("ann", "bob", "eve")]
    assert [answer.status_code for answer in answers] == [200, 200, 400]
    assert answers[-1].json()["error"] == f"{matches.MATCHES_EACH} of your games are being played here"
    client.cookies.clear()
    client.get("/api/session")
    assert begin(client, name="dan").status_code == 200


def test_a_person_may_be_called_house(client):
    assert begin(client, name="house").status_code == 200


def test_two_ways_to_write_an_accent_are_one_name(client):
    assert begin(client, name="Jose\u0301").status_code == 200
    assert client.get("/api/play").json()["name"] == "Jos\u00e9"
    assert "Jos\u00e9 is playing already" in begin(client, name="Jos\u00e9").json()["error"]


def test_a_name_of_many_accents_holds_up_nobody(client):
    """To put 32,000 accents in order takes ten seconds, and meanwhile the server would answer no other page."""
    began = time.monotonic()
    assert "is no name" in begin(client, name="a" + "\u0301\u0316" * 15_000).json()["error"]
    assert time.monotonic() - began < 3.0


def test_a_game_that_is_refused_takes_no_name(client):
    assert begin(client, rules={"score": 7}).status_code == 400
    for bad in (b'{"name": "eve", "rules": {"deep": ' + b"[" * 5000, b'{"name": "\xe9"}'):
        assert client.post("/api/play", content=bad, headers=OURS | JSON).status_code == 400
    client.cookies.clear()
    client.get("/api/session")
    assert begin(client).status_code == 200


async def test_a_game_can_be_cancelled_in_the_instant_in_which_a_frame_comes(site, monkeypatch):
    frame = asyncio.get_running_loop().create_future()
    frames = iter([wire.encode(wire.Error("rate_limited", "wait")), None])

    class Socket:
        send = staticmethod(AsyncMock())

        @staticmethod
        async def recv():
            await frame
            return next(frames) or await asyncio.Event().wait()

    @contextlib.asynccontextmanager
    async def connect(*_, **__):
        yield Socket

    monkeypatch.setattr(matches.websockets, "connect", connect)
    seat = Seat(rules.game("othello"), "a-token", {})
    playing = asyncio.create_task(
        Match(site, Viewer(kind="operator"), seat).play("ws://nowhere", contextlib.nullcontext(), bool)
    )
    for _ in range(10):  # until it waits for the frame
        await asyncio.sleep(0)
    frame.set_result(None)
    await asyncio.sleep(0)
    playing.cancel()
    done, _ = await asyncio.wait([playing], timeout=5)
    assert done and playing.cancelled()


async def test_a_hand_is_found_when_the_database_is_back(site, logged, played, monkeypatch):
    match = Match(site, Viewer(kind="player"), Seat(rules.game("othello"), "a-token", {}))
    rows = played("othello", lambda number, legal: legal[0], started_us=time.time_ns() // 1000 + 10**6)
    rows[0].lobby, rows[0].table = LOBBY, "t1"
    logged(rows)
    reading = Mock(wraps=matches.latest_hands, side_effect=[StoreUnavailable("away"), DEFAULT])
    monkeypatch.setattr(matches, "latest_hands", reading)
    frames = [wire.Welcome(1, "eve", "a session", wire.Limits(1, 1, 1, 1)), wire.Seated("t1", "othello", {}, 0, ())]
    frames.append(wire.TableEnded("t1", "normal"))

    @contextlib.asynccontextmanager
    async def connect(*_, **__):
        yield AsyncMock(recv=AsyncMock(side_effect=map(wire.encode, frames)))

    monkeypatch.setattr(matches.websockets, "connect", connect)
    async with asyncio.timeout(10):
        await match.play("ws://nowhere", contextlib.nullcontext(Mock(returncode=None)), bool)
    assert match.review == f"{rows[0].game_id.hex()}-0"


async def test_a_game_ends_with_the_process_of_its_bots(site, monkeypatch):
    """Without a clock its player would wait for ever; with one, the lobby would play in the name of the bots."""
    welcome = wire.Welcome(1, "eve", "a session", wire.Limits(1, 1, 1, 1))
    frames = iter([welcome, wire.Seated("t1", "othello", {}, 0, ())])
    bots = Mock(returncode=None)

    async def recv():
        if (frame := next(frames, None)) is not None:
            return wire.encode(frame)
        bots.returncode = -9
        return await asyncio.Event().wait()

    @contextlib.asynccontextmanager
    async def connect(*_, **__):
        yield AsyncMock(recv=recv)

    monkeypatch.setattr(matches.websockets, "connect", connect)
    match = Match(site, Viewer(kind="player"), Seat(rules.game("othello"), "a-token", {}))
    async with asyncio.timeout(10):
        await match.play("ws://nowhere", contextlib.nullcontext(bots), bool)
    assert match.ended_at and "the opponents have gone" in match.seat.notice


async def test_the_log_says_why_the_bots_of_a_game_failed(site):
    broken = replace(site.settings, store=replace(site.settings.store, url="nonsense://"))
    with capture_logs() as logs:
        async with opponents.running(broken, "r1", "ws://nowhere", rules.game("othello"), [], {}) as process:
            await process.wait()
    (line,) = [line for line in logs if line["event"] == "the bots of a game failed"]
    assert (line["game"], line["code"]) == ("r1", process.returncode) and "nonsense" in line["stderr"]


async def test_who_leaves_a_game_that_is_over_has_not_left_it(site):
    match = Match(site, Viewer(kind="player"), Seat(rules.game("othello"), "a-token", {}))
    with pytest.raises(UsageError, match="the game is over"):
        await match.leave()
    assert not match.left


def at_a_question(site):
    seat = Seat(rules.game("othello"), "a-token", {})
    seat.view, seat.ask = seat.game.new_state(1).view(0), wire.Ask("1", 0, 0)
    return Match(site, Viewer(kind="operator"), seat)


async def test_an_adviser_that_starts_while_the_game_ends_is_closed(site, monkeypatch):
    started, may_go, closed = threading.Event(), threading.Event(), []

    class Slow(FirstLegal):
        def close(self):
            closed.append(self)

    def adviser(*_):
        started.set()
        may_go.wait(5)
        return Slow(FirstLegal.Options())

    @contextlib.asynccontextmanager
    async def connect(*_, **__):
        yield AsyncMock(recv=asyncio.Event().wait)

    monkeypatch.setattr(matches.websockets, "connect", connect)
    monkeypatch.setattr(hints, "adviser", adviser)
    match = at_a_question(site)
    playing = asyncio.create_task(match.play("ws://nowhere", contextlib.nullcontext(), bool))
    await asyncio.sleep(0)
    hint = asyncio.create_task(match.hint("random"))
    await asyncio.to_thread(started.wait, 5)
    playing.cancel()
    await asyncio.sleep(0)
    may_go.set()
    await asyncio.wait([playing, hint], timeout=5)
    assert hint.result()["actions"] and closed
    with pytest.raises(UsageError, match="over"):
        await match.hint("random")


async def test_an_adviser_in_a_process_of_its_own_advises_again_and_again(site, monkeypatch):
    monkeypatch.setattr(FirstLegal, "execution", "process")
    match = at_a_question(site)
    for _ in range(3):
        assert (await match.hint("first-legal"))["actions"]
        await asyncio.sleep(0.1)
    await asyncio.gather(*(adviser.aclose() for adviser in match.advisers.values()))


async def test_an_adviser_that_hangs_is_left_behind(site, monkeypatch):
    may_go = threading.Event()

    class Hanging(FirstLegal):
        def player(self, table):
            may_go.wait(10)
            return super().player(table)

    def adviser(_, address):
        return (Hanging if address == "first-legal" else FirstLegal)(FirstLegal.Options())

    monkeypatch.setattr(hints, "HANGS_S", 0.2)
    monkeypatch.setattr(hints, "adviser", adviser)
    match = at_a_question(site)
    with pytest.raises(PluginError, match="first-legal: it has not answered within"):
        await match.hint("first-legal")
    with pytest.raises(UsageError, match="first-legal has not answered the last question yet"):
        await match.hint("first-legal")
    monkeypatch.setattr(hints, "HANGS_S", 10.0)
    assert (await match.hint("random"))["actions"]
    may_go.set()


async def test_a_level_that_does_not_exist_gets_no_thread(site):
    match = at_a_question(site)
    for number in range(3):
        with pytest.raises(ModelError, match="no version or level"):
            await match.hint(f"random:{number}")
    assert match.advisers == {}


async def test_a_game_works_out_one_hint_at_a_time(site, monkeypatch):
    started, may_go = asyncio.Event(), asyncio.Event()

    async def hint(self, view):
        started.set()
        await may_go.wait()
        return {}

    monkeypatch.setattr(hints.Adviser, "hint", hint)
    match = at_a_question(site)
    first = asyncio.create_task(match.hint("random"))
    await started.wait()
    for address in ("random", "first-legal"):
        with pytest.raises(UsageError, match="another hint is being worked out"):
            await match.hint(address)
    may_go.set()
    assert await first == {} == await match.hint("first-legal")


def test_tokens_of_the_bots_stand_in_files_of_their_own(site, tmp_path):
    bots = bots_of(["rule-othello", "deep-mc:level-2"], "r1")
    text = configuration(site.settings, tmp_path, "ws://127.0.0.1:1/ws", rules.game("othello"), bots, {"room": "x"})
    assert not any(bot.token in text for bot in bots)
    (lobby,) = tomllib.loads(text)["lobby"]
    files = [tmp_path / account["token"]["file"] for account in lobby["account"]]
    assert [file.read_text() for file in files] == [bot.token for bot in bots]
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    settings = config.parse(text, base=tmp_path)
    assert [route.strategy for route in settings.routes] == ["rule-othello", "deep-mc:level-2"]
    assert settings.lobbies[0].accounts[0].wishes[0].attributes == {"room": "x"}


def test_a_server_removes_what_killed_ones_left_but_no_game_that_runs_and_no_unwritten_row(site):
    play = site.settings.host.data_dir / "play"
    for game in ("killed", "running", "unwritten"):
        (play / game / "spool" / "host" / "0").mkdir(parents=True)
        for name in ("config.toml", "token-1", "store-password", "host.log"):
            (play / game / name).touch()
    (play / "unwritten" / "spool" / "host" / "0" / "1.spool").touch()
    locked = os.open(play / "running", os.O_RDONLY)
    fcntl.flock(locked, fcntl.LOCK_EX)
    try:
        with TestClient(Web(site, Viewers(None, spectators=False)).application()):
            left = {str(file.relative_to(play)) for file in play.rglob("*") if file.is_file()}
    finally:
        os.close(locked)
    running = {f"running/{name}" for name in ("config.toml", "token-1", "store-password", "host.log")}
    assert left == running | {"unwritten/host.log", "unwritten/spool/host/0/1.spool"}


def test_accounts_are_admitted_and_dismissed_while_the_lobby_runs():
    core = new_lobby(seed=1).core
    core.accounts.add("eve", "a-token")
    assert core.accounts.of_token("a-token") == "eve"
    for name in ("eve", "robot-1", "with space"):
        with pytest.raises(ConfigError):
            core.accounts.add(name, "another")
    core.dismiss("eve")
    assert core.accounts.of_token("a-token") is None
    core.accounts.add("eve", "a-new-token")
