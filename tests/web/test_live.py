"""Live tables: what each kind of viewer receives, frame by frame."""

import asyncio
import contextlib
import json
import threading
import time

import httpx
import pytest
from browsing import now_us
from structlog.testing import capture_logs

from bothost import rules
from bothost.config import Secret, WebSettings
from bothost.errors import StoreError, StoreUnavailable
from bothost.store.reader import LoggedHand
from bothost.store.records import DecisionRecord, GameEndRecord, SnapshotRecord
from bothost.testing.hosting import until
from bothost.web import application, jobs, matches, server
from bothost.web.drawn import drawn
from bothost.web.hands import name_of, seat_names
from bothost.web.live import Live, line, listed, seen
from bothost.web.server import serving
from bothost.web.stream import DATABASE_AWAY, SCREENS, stream
from bothost.web.viewers import Viewer, public_view


@pytest.mark.parametrize(
    ("viewer", "knows"),
    [
        (Viewer(kind="operator"), True),
        (Viewer(kind="operator", plays_at=frozenset({"the table"})), False),
        (Viewer(kind="spectator"), False),
        (Viewer(kind="player", player="eve"), False),
    ],
    ids=["operator", "operator who plays there", "spectator", "player"],
)
def test_no_frame_holds_a_card_that_its_viewer_may_not_see(site, logged, played, viewer, knows):
    rows = played("doudizhu", lambda number, legal: legal[number % len(legal)], started_us=now_us())
    rows[0].table = "the table"
    logged(rows[:1])
    live, frames = Live(site), []
    for row in rows[1:-1]:
        logged([row])
        live.read()
        (hand,) = live.hands.values()
        if hand.view is None or hand.view.terminal:
            break  # at the end all hands are shown
        own = hand.view.to_json()["hand"]
        frames.append((own, json.dumps([seen(hand, viewer), line(hand, knows_seat=knows)])))
    assert len(frames) > 10
    for own, frame in frames:
        assert (f'"hand": "{own}"' in frame) is knows
        assert knows or len(own) < 3 or own not in frame


class Ticking:
    """A host's control socket as ``Live`` asks it: the tables with an open decision."""

    def __init__(self):
        self.tables = []

    def __call__(self, data_dir, command, timeout_s):
        assert command == "tables"
        return {"tables": self.tables}


def test_a_table_shows_what_is_left_of_the_open_decision(site, logged, played, monkeypatch):
    rows = played("othello", lambda number, legal: legal[0], started_us=now_us())
    logged(rows[:2])
    host, live = Ticking(), Live(site)
    monkeypatch.setattr("bothost.web.live.ask", host)
    assert live.read() and live.lines[0]["ends_us"] is None
    record = rows[0]
    host.tables = [[record.lobby, record.account, record.table, 4000], [record.lobby, "other", record.table, 9]]
    before = time.time()
    assert live.read()
    (hand,) = live.hands.values()
    assert seen(hand, Viewer(kind="spectator"))["left_ms"] == 4000
    assert before + 3.999 < live.lines[0]["ends_us"] / 1e6 < time.time() + 4.001
    host.tables = [[record.lobby, record.account, record.table, 3500]]
    assert not live.read(), "the browser counts down by itself"
    host.tables = []
    assert live.read() and live.lines[0]["ends_us"] is None


PLAYER_THERE = Viewer(kind="operator", plays_at=frozenset({"the table"}))


@pytest.mark.parametrize("viewer", [Viewer(kind="spectator"), PLAYER_THERE], ids=["spectator", "player"])
def test_nobody_sees_that_a_seat_could_claim_a_discard(site, logged, played, monkeypatch, viewer):
    """At mahjong only who can claim is asked. The log has the events so far when a seat decides, a pass included."""
    rows = played("mahjong", lambda _, legal: legal[0], seed=3, started_us=now_us())
    rows[0].table = "the table"
    logged(rows[:1])
    host, live, frames = Ticking(), Live(site), {}
    monkeypatch.setattr("bothost.web.live.ask", host)
    live.read()
    (hand,) = live.hands.values()
    for events, decision in zip(rows[1:-2:2], rows[2:-2:2], strict=True):
        before = [seen(hand, viewer), listed(live, viewer)]
        host.tables = [[rows[0].lobby, rows[0].account, "the table", 4000]]
        live.read()
        host.tables = []
        assert [seen(hand, viewer), listed(live, viewer)] == before
        logged([events, decision])
        live.read()
        after = [seen(hand, viewer), listed(live, viewer)]
        frames.setdefault(hand.view.phase, []).append(after != before)
        assert seen(hand, Viewer(kind="operator"))["view"] == drawn(hand.view)
    assert frames["claims"] and not any(frames["claims"])
    assert all(frames["turn"])


@pytest.mark.parametrize("game", ["doudizhu", "othello", "mahjong", "pairing"])
def test_the_last_move_in_the_list_is_public(site, logged, played, game):
    rows = played(game, lambda number, legal: legal[number % len(legal)], started_us=now_us(), seed=5)
    logged(rows[:-1])
    live = Live(site)
    assert live.read()
    (hand,) = live.hands.values()
    public = public_view(game, hand.view.to_json(), {})
    last = live.lines[0]["last"]
    assert (
        last is None if game == "pairing" else json.dumps(last["notation"].removeprefix("play:")) in json.dumps(public)
    )


@pytest.mark.parametrize(
    ("players", "names"),
    [
        ([{"seat": 1, "player": "bob"}, {"seat": 2, "player": "c-7", "name": "cyd"}], ["seat 0", "bob", "cyd"]),
        ([{"seat": 10**9, "player": "bob"}, {"seat": [0]}, {"player": "cyd"}], []),
    ],
)
def test_a_list_names_every_player_that_is_known(played, players, names):
    (made, *_) = played("doudizhu", lambda number, legal: legal[0])
    made.players = json.dumps(players)
    assert seat_names(LoggedHand(made, None), None) == names


@pytest.mark.parametrize(("scores", "score"), [("[2, -1, -1]", -1.0), ("[2]", None), (None, None)])
def test_the_score_of_a_hand_is_that_of_our_seat(played, scores, score):
    (made, *_) = played("doudizhu", lambda number, legal: legal[0])
    made.seat = 1
    end = GameEndRecord(game_id=made.game_id, seat=1, reason="normal", scores=scores, ended_us=0)
    assert LoggedHand(made, end).score == score and LoggedHand(made, None).score is None


def test_new_hands_and_ends_are_noticed_between_scans(site, logged, played, monkeypatch):
    """Most readings look at new hands and known ones only."""
    live, hands = (
        Live(site),
        [played("othello", lambda n, legal: legal[0], seed=k, started_us=now_us()) for k in range(3)],
    )
    logged(hands[0][:-1])
    assert live.read() and len(live.hands) == 1
    logged(hands[1][:-1], hands[2][:3])
    assert live.read() and len(live.hands) == 3
    logged(hands[0][-1:], hands[2][3:])
    assert live.read() and [name_of(hand.hand) for hand in live.hands.values()] == [f"{hands[1][0].game_id.hex()}-0"]
    monkeypatch.setattr("bothost.web.live.SCAN_S", 0.0)
    assert not live.read() and len(live.hands) == 1


def test_a_table_goes_on_after_its_host_missed_events(site, logged, played):
    """Then the lobby sent a snapshot, and the events go on from there."""
    rows = played("othello", lambda n, legal: legal[0], started_us=now_us())
    missed, decision, later = rows[3:6]
    view = rules.game("othello").view_from_bytes(decision.view)
    logged(rows[:3], [SnapshotRecord(missed.game_id, 0, view.seq, json.dumps({"seq": view.seq, **view.to_json()}), 0)])
    live = Live(site)
    live.read()
    logged([later])
    live.read()
    (hand,) = live.hands.values()
    assert hand.view is not None and hand.view.seq == view.seq + len(later.events.split("\n"))
    logged([rows[9]])  # without a snapshot
    before = hand.version
    live.read()
    assert hand.view is None and hand.version > before


def test_new_tables_are_found_after_the_clock_was_set_back(site, logged, played, monkeypatch):
    monkeypatch.setattr("bothost.web.live.SCAN_S", 0.0)
    live, now = Live(site), time.time()
    before, after = (
        played("othello", lambda n, legal: legal[0], started_us=int(1e6 * at)) for at in (now - 1, now - 3600)
    )
    logged(before[:3])
    assert live.read()
    monkeypatch.setattr(time, "time", lambda: now - 3600)
    logged(after[:3])
    assert live.read() and len(live.hands) == 2


async def test_a_server_that_stops_ends_the_streams_of_open_pages(site, caplog):
    async with httpx.AsyncClient(trust_env=False, timeout=60) as browser:
        async with serving(site, WebSettings(port=0)) as address:
            await browser.get(f"{address}api/session")
            answer = await browser.send(browser.build_request("GET", f"{address}api/tables"), stream=True)
            assert "content-encoding" not in answer.headers  # a compressed message would wait for others
            lines = answer.aiter_lines()
            assert (await anext(lines)).startswith("data: ")
        assert caplog.messages == []
        with pytest.raises(httpx.RemoteProtocolError):
            [line async for line in lines]


async def test_watchers_leave_room_for_players_and_operators(site, monkeypatch):
    monkeypatch.setattr(application, "WATCHERS", 2)
    monkeypatch.setattr(matches, "SCREENS", 1)
    settings = WebSettings(port=0, password=Secret("s3cret", "test"), spectators=True)

    async def opened(path):
        answer = await browser.send(browser.build_request("GET", path), stream=True)
        return answer, answer.status_code

    async with (
        serving(site, settings) as address,
        httpx.AsyncClient(base_url=address, trust_env=False, timeout=60) as browser,
    ):
        browser.headers["Origin"] = address.rstrip("/")
        await browser.get("/api/session")
        watching = [await opened("/api/tables") for _ in range(2)]
        assert [status for _, status in watching] == [200, 200]
        refused, status = await opened("/api/tables")
        assert status == 429 and b"too many people are watching" in await refused.aread()
        wanted = {"name": "eve", "game": "othello", "opponents": ["rule-othello"]}
        game = f"/api/play/{(await browser.post('/api/play', json=wanted)).json()['id']}"
        _, status = await opened(game)
        assert status == 200
        refused, status = await opened(game)
        assert status == 429 and b"too many tabs" in await refused.aread()
        await watching[0][0].aclose()
        async with asyncio.timeout(60):
            while (await opened("/api/tables"))[1] != 200:
                pass
        await browser.post("/api/login", json={"password": "s3cret"})
        assert [(await opened("/api/tables"))[1] for _ in range(3)] == [200, 200, 200]


async def test_one_visitor_leaves_places_to_watchers_from_elsewhere(site, monkeypatch):
    monkeypatch.setattr(application, "WATCHERS", 4)
    settings = WebSettings(port=0, password=Secret("s3cret", "test"), spectators=True)
    async with (
        serving(site, settings) as address,
        httpx.AsyncClient(base_url=address, trust_env=False, timeout=60) as browser,
    ):
        await browser.get("/api/session")

        async def watch(visitor):
            asks = browser.build_request("GET", "/api/tables", headers={"X-Forwarded-For": visitor})
            return await browser.send(asks, stream=True)

        streams = [await watch(visitor) for visitor in [*3 * ["203.0.113.5"], *3 * ["203.0.113.6"]]]
        assert [each.status_code for each in streams] == [200, 200, 429, 200, 200, 429]
        await streams[0].aclose()
        async with asyncio.timeout(60):
            while (await watch("203.0.113.5")).status_code != 200:
                pass


async def test_visitors_who_read_hands_leave_threads_to_operators(site, monkeypatch):
    """A few hundred requests of one visitor took all threads for a minute."""
    now, most, may_go = 0, 0, threading.Event()

    def listed(site, query, before):
        nonlocal now, most
        if query.games:
            now, most = now + 1, max(most, now + 1)
            may_go.wait(60)
            now -= 1
        return {"hands": []}

    monkeypatch.setattr(application.hands, "listed", listed)
    monkeypatch.setattr(application, "WAITING", 6)
    settings = WebSettings(port=0, password=Secret("s3cret", "test"), spectators=True)
    async with serving(site, settings) as address, contextlib.AsyncExitStack() as stack:

        async def visitor():
            browser = httpx.AsyncClient(base_url=address, trust_env=False, timeout=60, headers={"Origin": address[:-1]})
            await (await stack.enter_async_context(browser)).get("/api/session")
            return browser

        first, second, operator = [await visitor() for _ in range(3)]
        await operator.post("/api/login", json={"password": "s3cret"})
        browsers = [first] * 3 + [second] * 4
        asked = [asyncio.create_task(browser.get("/api/hands?games=othello")) for browser in browsers]
        await until(lambda: now >= 2)
        assert (await operator.get("/api/hands")).status_code == 200
        await asyncio.wait(asked, timeout=20, return_when=asyncio.FIRST_COMPLETED)
        assert [answer.result().status_code for answer in asked if answer.done()] == [429]
        may_go.set()
        assert sorted(answer.status_code for answer in await asyncio.gather(*asked)) == [200] * 6 + [429] and most == 2


def test_streams_take_no_more_than_three_quarters_of_the_connections():
    streams = application.WATCHERS + SCREENS * (matches.MAX_MATCHES + jobs.AT_ONCE)
    assert streams <= 0.75 * server.CONNECTIONS


def test_a_table_that_its_game_does_not_understand_hides_no_other(site, logged, played):
    """Such as one of a plugin's other version, or at a seat that the game does not have."""
    strange, fine = (played("othello", lambda n, legal: legal[0], seed, now_us())[:-1] for seed in (1, 2))
    strange[0].seat = 7
    logged(strange[:1], fine)
    live = Live(site)
    assert live.read()
    assert sorted(hand.view is not None for hand in live.hands.values()) == [False, True]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (StoreUnavailable("the database is away"), True),
        (OSError("no usable temporary folder"), True),
        (KeyError("a bug"), False),
    ],
)
async def test_live_tables_come_back_with_what_they_are_read_from(site, logged, played, monkeypatch, error, expected):
    monkeypatch.setattr("bothost.web.live.PERIOD_S", 0.01)
    live, begin, failed = Live(site), site.store.begin, asyncio.Event()

    def away(**_):
        failed.set()
        raise error

    reading = asyncio.create_task(live.run())
    try:
        versions = live.watch()
        await anext(versions)
        monkeypatch.setattr(site.store, "begin", away)
        async with asyncio.timeout(20):
            with capture_logs() as logs:
                for _ in range(2):
                    await failed.wait()
                    failed.clear()
            assert [(line["error"], line["exc_info"]) for line in logs] == [(str(error), not expected)]
            monkeypatch.setattr(site.store, "begin", begin)
            logged(played("othello", lambda n, legal: legal[0], started_us=now_us())[:-1])
            await anext(versions)
        assert len(live.hands) == 1
    finally:
        reading.cancel()


async def test_a_stream_says_whether_it_is_worth_trying_again():
    async def failing(error):
        yield {"fine": True}
        raise error

    for error, passes in ((StoreUnavailable("away"), True), (StoreError("broken"), False)):
        lines = [line async for line in stream(failing(error)).body_iterator]
        said = DATABASE_AWAY if passes else "broken"
        told = {"error": said, "advice": error.advice, "passes": passes}
        assert [json.loads(line.removeprefix(b"data: ")) for line in lines] == [{"fine": True}, told]


def test_a_table_says_when_its_last_move_was(site, logged, played):
    rows = played("othello", lambda number, legal: legal[0], started_us=now_us())
    logged(rows[:-1])
    live = Live(site)
    assert live.read() and not live.read()
    (hand,) = live.hands.values()
    assert line(hand, knows_seat=True)["moved_us"] > rows[0].started_us
    logged(rows[-1:])
    assert live.read() and not live.hands


def test_a_table_that_was_silent_before_somebody_watched_says_for_how_long(site, logged, played):
    """Else each visitor would see every table as one with a move just now."""
    rows = played("othello", lambda number, legal: legal[0], started_us=now_us() - 1_200_000_000)
    logged(rows[:-1])
    live = Live(site)
    assert live.read()
    last_us = max(row.at_us for row in rows if isinstance(row, DecisionRecord))
    (hand,) = live.hands.values()
    for knows_seat in (True, False):
        assert line(hand, knows_seat=knows_seat)["moved_us"] == pytest.approx(last_us, abs=2)
    assert last_us < now_us() - 600_000_000
