"""Who looks, and what they may see."""

import random
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from bothost import Board, rules
from bothost.config import WebSettings
from bothost.config.secret import Secret
from bothost.errors import ConfigError
from bothost.web.application import Web, cookie_of
from bothost.web.server import serving
from bothost.web.viewers import (
    ALL_LOGIN_TRIES,
    COOKIE,
    LOGIN_TRIES,
    LOGIN_WINDOW_S,
    MAX_SESSIONS,
    SESSION_S,
    Viewers,
    public_view,
)

OURS = {"Origin": "http://localhost:8770"}
LINK = "<a href=''>a link</a>"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_without_a_password_every_visitor_is_an_operator():
    begun = Viewers(None, spectators=False).visit()
    assert begun is not None and begun[1].kind == "operator"


def test_with_a_password_a_visitor_sees_nothing_before_the_login(site):
    with TestClient(Web(site, Viewers("s3cret", spectators=False)).application(), base_url=OURS["Origin"]) as client:
        assert client.get("/api/session").json()["viewer"] is None
        assert client.get("/api/hands").status_code == 401
        assert client.get("/api/tables").status_code == 401
        assert client.post("/api/login", json={"password": "wrong"}, headers=OURS).status_code == 401
        assert client.post("/api/login", json={"password": "s3cret"}, headers=OURS).json() == {"viewer": "operator"}
        assert client.get("/api/hands").json()["hands"] == []


@pytest.mark.parametrize(
    ("pages", "words"),
    [
        (WebSettings(host="0.0.0.0", port=0), "so it needs a password"),
        (WebSettings(port=0, password=Secret(None, "$PW", "$PW is not set"), hosts=("bots.example",)), "PW is not set"),
    ],
)
async def test_without_its_password_a_server_does_not_start(site, pages, words):
    """Else everybody would be an operator, also behind a proxy."""
    with pytest.raises(ConfigError, match=words):
        async with serving(site, pages):
            pass


@pytest.mark.parametrize(
    "asked", ["since=soon", "until=9999-12-31", "results=perhaps", "before=zz", "players=a&" * 101]
)
def test_a_filter_that_names_nothing_or_too_much_is_refused(client, asked):
    answer = client.get(f"/api/hands?{asked}")
    assert answer.status_code == 400 and answer.json()["error"]


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(site):
    with TestClient(Web(site, Viewers(None, spectators=False)).application(), base_url=OURS["Origin"]) as client:
        cookie = client.get("/api/session").headers["set-cookie"].lower()
    assert cookie.startswith(COOKIE) and "httponly" in cookie and "samesite=strict" in cookie


def test_servers_on_two_ports_of_a_machine_keep_their_sessions_apart(site):
    """Browsers send cookies to all ports of a host."""
    made = {port: Viewers(None, spectators=False) for port in (1, 2)}
    one, other = (
        TestClient(Web(site, viewers).application(), base_url=f"http://localhost:{port}")
        for port, viewers in made.items()
    )
    other.cookies = one.cookies
    answers = [client.get("/api/session") for client in (one, other, one, other)]
    assert ["set-cookie" in answer.headers for answer in answers] == [True, True, False, False]


def test_a_link_from_elsewhere_ends_no_session(chromium, served):
    """Behind such a link the browser does not send the cookie."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{served}/")
    page.wait_for_selector("h1")
    cookies = context.cookies()
    page.route("http://elsewhere.example/", lambda route: route.fulfill(content_type="text/html", body=LINK))
    page.goto("http://elsewhere.example/")
    page.evaluate("address => { document.links[0].href = address; }", f"{served}/api/session")
    with page.expect_navigation(url=f"{served}/api/session"):
        page.click("a")
    assert context.cookies() == cookies != []
    context.close()


@pytest.mark.parametrize(
    ("host", "name"),
    [("localhost", COOKIE), ("[::1]", COOKIE), ("[::1]:80", f"{COOKIE}_80"), ("localhost:x;=\u0661", COOKIE)],
)
def test_the_name_of_the_cookie_has_the_port_if_there_is_one(host, name):
    headers = [(b"host", host.encode("latin-1", "replace"))]
    assert cookie_of(Request({"type": "http", "headers": headers})) == name


def test_a_session_in_use_does_not_end_with_its_cookie(site):
    with TestClient(Web(site, Viewers(None, spectators=False)).application(), base_url=OURS["Origin"]) as client:
        cookie = client.get("/api/session").headers["set-cookie"]
    assert int(cookie.partition("Max-Age=")[2].partition(";")[0]) > 30 * SESSION_S


def test_passwords_cannot_be_guessed_quickly():
    clock = Clock()
    viewers = Viewers("s3cret", spectators=False, clock=clock)
    for _ in range(LOGIN_TRIES):
        assert viewers.log_in("guess") is None
    with pytest.raises(PermissionError):
        viewers.log_in("s3cret")
    clock.now += LOGIN_WINDOW_S + 1
    assert viewers.log_in("s3cret") is not None


def test_a_visitor_who_guesses_does_not_lock_the_operator_out(site):
    application = Web(site, Viewers("s3cret", spectators=True)).application()

    def log_in(address: str, password: str) -> int:
        client = TestClient(application, base_url=OURS["Origin"], client=(address, 1))
        return client.post("/api/login", json={"password": password}, headers=OURS).status_code

    assert {log_in("192.0.2.7", "guess") for _ in range(LOGIN_TRIES)} == {401}
    assert log_in("192.0.2.7", "s3cret") == 429
    assert log_in("192.0.2.8", "s3cret") == 200


def test_passwords_cannot_be_guessed_quickly_from_many_addresses():
    viewers = Viewers("s3cret", spectators=True, clock=Clock())
    for number in range(ALL_LOGIN_TRIES):
        assert viewers.log_in("guess", None, f"192.0.2.{number}") is None
    with pytest.raises(PermissionError):
        viewers.log_in("s3cret", None, "198.51.100.1")


def test_who_logs_in_while_playing_keeps_the_game_and_sees_no_other_seat_of_it():
    viewers = Viewers("s3cret", spectators=True)
    token, player = viewers.visit()
    player.kind, player.plays_at = "player", frozenset({"t1"})
    begun = viewers.log_in("s3cret", token)
    assert begun is not None and begun[1] is player and player.kind == "operator" and player.plays_at == {"t1"}
    assert begun[0] != token and viewers.of(token) is None and viewers.of(begun[0]) is player


def test_visitors_cannot_crowd_out_who_has_logged_in_or_plays():
    viewers = Viewers("swordfish", spectators=True)
    operator, player = viewers.log_in("swordfish"), viewers.visit()
    player[1].kind = "player"
    first = viewers.visit()
    for _ in range(MAX_SESSIONS):
        last = viewers.visit()
    assert viewers.of(first[0]) is None and viewers.of(last[0]) is last[1]
    assert viewers.of(operator[0]) is operator[1] and viewers.of(player[0]) is player[1]


def test_a_session_ends_when_it_is_not_used():
    clock = Clock()
    viewers = Viewers(None, spectators=False, clock=clock)
    begun = viewers.visit()
    assert begun is not None
    clock.now += SESSION_S - 1
    assert viewers.of(begun[0]) is begun[1]
    clock.now += SESSION_S + 1
    assert viewers.of(begun[0]) is None
    assert viewers.of("made-up") is None and viewers.of(None) is None


def test_a_session_lasts_as_long_as_its_game():
    """A page without a clock may stay open for days; its stream is one request."""
    clock = Clock()
    viewers = Viewers(None, spectators=False, clock=clock)
    begun = viewers.visit()
    assert begun is not None
    begun[1].plays_at = frozenset({"t1"})
    clock.now += SESSION_S + 1
    assert viewers.of(begun[0]) is begun[1]


@pytest.mark.parametrize("name", ["doudizhu", "mahjong", "othello", "pairing"])
def test_what_is_public_follows_from_what_the_next_seat_knows(name):
    """Whatever hidden cards a seat holds, what a spectator sees of its view is the same."""
    game = rules.game(name)
    compared = 0
    for seed in range(120):
        state, choose = game.new_state(seed), random.Random(seed)
        for _ in range(seed % 60):
            if state.terminal:
                break
            seat = state.to_act[0]
            state.apply(seat, int(choose.choice(state.legal(seat))))
        if state.terminal:
            continue
        for seat in range(game.num_seats):
            shown = public_view(name, state.view(seat).to_json(), {})
            for other in range(3):
                possible = state.view((seat + 1) % game.num_seats).sample_state(other).view(seat).to_json()
                assert public_view(name, possible, {}) == shown
                compared += possible != state.view(seat).to_json()
    assert compared > 100 or name == "othello"


def test_of_an_unknown_game_nothing_is_public():
    assert public_view("nim", {"heaps": [1, 2]}, {}) is None


def test_a_board_declares_what_is_public_of_its_game_and_of_no_other():
    boards = {
        "nim": Board("nim", Path(), public=lambda view: {"heaps": view["heaps"]}),
        "careless": Board("careless", Path(), public=lambda view: view["absent"]),
        "secret": Board("secret", Path()),
        "doudizhu": Board("doudizhu", Path(), public=dict),
    }
    assert public_view("nim", {"heaps": [1, 2], "own": 3, "seq": 4}, boards) == {"heaps": [1, 2]}
    assert public_view("careless", {"own": 3}, boards) is None
    assert public_view("secret", {"own": 3}, boards) is None
    assert public_view("doudizhu", {"hand": "345"}, boards) == {"hand": ""}
