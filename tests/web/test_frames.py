"""Every byte that each kind of viewer receives of a live table, compared with what that viewer may know.

A person plays a hand against bots over HTTP. Meanwhile a spectator, an operator and the person watch the table. After
the hand its log tells the truth: each frame must be exactly the view of one seat, or what is public of it.
"""

import json
import threading
import time

import httpx
import pytest

from bothost.config import Secret, WebSettings
from bothost.host.recorder import EVENTS
from bothost.store.query import players_of
from bothost.store.reader import join_events
from bothost.web import live, opponents
from bothost.web.drawn import drawn
from bothost.web.hands import timeline_of
from bothost.web.viewers import public_view

BOTS = {"othello": "rule-othello", "doudizhu": "rule-doudizhu", "pairing": "rule-pairing", "mahjong": "rule-mahjong"}
FRAME_KEYS = {
    *("name", "game", "lobby", "table", "account", "strategy", "players", "started_us", "moved_us", "last", "ends_us"),
    *("seat", "names", "view", "left_ms", "chat"),
}
PLAY_KEYS = {
    *("state", "game", "table", "seat", "names", "view", "views", "legal", "ask", "left_ms", "scores", "notice", "id"),
    *("review", "left", "ended", "chat", "acted", "clonable"),
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(opponents, "MIN_MOVE_MS", 0)
    monkeypatch.setattr(live, "PERIOD_S", 0.05)


@pytest.fixture
def web_settings():
    """A server with a password, where spectators may watch and play."""
    return WebSettings(port=0, password=Secret("s3cret", "test"), spectators=True)


class Browser:
    """One session; keeps every frame of the streams that it reads."""

    def __init__(self, address, password=None):
        self.client = httpx.Client(base_url=address, headers={"Origin": address}, timeout=60, trust_env=False)
        self.client.get("/api/session")
        if password is not None:
            assert self.client.post("/api/login", json={"password": password}).status_code == 200
        self.frames = []
        self._threads = []

    def follow(self, path, on_frame=lambda frame: None):
        thread = threading.Thread(target=self._read, args=(path, on_frame))
        thread.start()
        self._threads.append(thread)

    def _read(self, path, on_frame):
        with self.client.stream("GET", path) as answer:
            assert answer.status_code == 200
            for text in answer.iter_lines():
                if text.startswith("data: "):
                    self.frames.append(json.loads(text[6:]))
                    on_frame(self.frames[-1])

    def join(self):
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()
        self.client.close()


def table_of(browser, lobby_table):
    """The name of a live hand at a table, once the log has it."""
    while True:
        with browser.client.stream("GET", "/api/tables") as answer:
            for text in answer.iter_lines():
                tables = json.loads(text[6:])["tables"] if text.startswith("data: ") else []
                if found := [table["name"] for table in tables if table["table"] == lobby_table]:
                    return found[0]


def truth(site, name):
    """The log of one of the bots, by its name in the browser, and the views of all seats after each move."""
    timeline = timeline_of(site, name)
    record = timeline.hand.game
    game = site.game(record.game, record.rules)
    view = game.new_view(record.seat)
    view.observe_all(join_events([(stretch.seq, stretch.events) for stretch in timeline.events]))
    deal, actions = view.record()
    state = game.state_from_deal(deal)
    positions = [[sent(drawn(state.view(seat))) for seat in range(game.num_seats)]]
    for seat, action in actions:
        state.apply(seat, action)
        positions.append([sent(drawn(state.view(seat))) for seat in range(game.num_seats)])
    return timeline, positions


def sent(view):
    """A view as a browser reads it."""
    return json.loads(json.dumps(view))


@pytest.mark.parametrize("game", BOTS)
def test_no_frame_of_a_live_table_holds_more_than_its_viewer_may_know(served, site, game):
    person, spectator, operator = Browser(served), Browser(served), Browser(served, "s3cret")
    seats = {"othello": 2, "doudizhu": 3, "pairing": 2, "mahjong": 4}[game]
    wanted = {"name": "eve", "game": game, "opponents": [BOTS[game]] * (seats - 1), "grant_ms": 0}
    begun = person.client.post("/api/play", json=wanted)
    assert begun.status_code == 200, begun.text
    number = begun.json()["id"]
    answered, playing, watching = set(), threading.Event(), {}

    def play(frame):
        if frame["view"] is not None:
            playing.set()
        if frame["ask"] is None or frame["ask"] in answered:
            return
        answered.add(frame["ask"])
        deadline = time.monotonic() + 30  # all who watch see the table before the first move and after it
        while not (watching and all(browser.frames for browser in watching.values())) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        action = frame["legal"][len(answered) % len(frame["legal"])]["notation"]
        person.client.post(f"/api/play/{number}/act", json={"ask": frame["ask"], "action": action})

    person.follow(f"/api/play/{number}", play)
    assert playing.wait(60)
    name = table_of(spectator, person.frames[-1]["table"])
    watching |= {"person": Browser(served), "spectator": spectator, "operator": operator}
    watching["person"].client.cookies = person.client.cookies
    for browser in watching.values():
        browser.follow(f"/api/tables/{name}")
    assert spectator.client.get(f"/api/hands/{name}").status_code == 404
    assert spectator.client.get(f"/api/hands/{name}/review?with={BOTS[game]}").status_code == 404
    assert spectator.client.get(f"/api/play/{number}").status_code == 404
    assert operator.client.get(f"/api/play/{number}").status_code == 404
    for browser in (person, *watching.values()):
        browser.join()
    timeline, positions = truth(site, name)
    check_tables(game, timeline, site.game(game, timeline.hand.game.rules), watching)
    check_person(timeline, positions, person)


def check_tables(game, timeline, made, watching):
    """The log may hold a part of what came with one move, so a view may stand after any event of the bot's seat."""
    view = made.new_view(timeline.hand.game.seat)
    known, public = [sent(drawn(view))], [sent(public_view(game, view.to_json(), {}))]
    for event in join_events([(stretch.seq, stretch.events) for stretch in timeline.events]):
        view.observe(event)
        known.append(sent(drawn(view)))
        public.append(sent(public_view(game, view.to_json(), {})))
    least = 2 if len(known) > 2 * EVENTS else 1  # the events of a short hand reach the log at its end
    for viewer, browser in watching.items():
        frames = [frame for frame in browser.frames if not frame.get("over")]
        assert len(frames) >= least, viewer
        for frame in frames:
            assert set(frame) == FRAME_KEYS
            assert frame["view"] in (known if viewer == "operator" else public), (viewer, frame["view"])
            assert frame["last"] is None or json.dumps(frame["last"]["notation"].split(":")[-1]) in json.dumps(public)


def check_person(timeline, positions, person):
    seat = next(player["seat"] for player in players_of(timeline.hand.game.players) if player["player"] == "eve")
    own = [views[seat] for views in positions]
    shown = [frame for frame in person.frames if frame["view"] is not None]
    assert len(shown) >= 2
    for frame in person.frames:
        assert set(frame) == PLAY_KEYS
    assert shown[-1]["views"] is not None
    for frame in shown:
        if frame["views"] is not None:  # the deal is revealed
            assert frame["scores"] is not None
            assert frame["views"] == {str(other): whole for other, whole in enumerate(positions[-1])}
        assert frame["seat"] == seat and frame["view"] in own
