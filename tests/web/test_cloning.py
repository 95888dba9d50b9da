"""Clone me: a person's hands become a bot that they can play against."""

import functools
import json
import random
import unicodedata
from urllib.parse import quote

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.testclient import TestClient

from bothost import rules
from bothost.cli.options import alias_resolver
from bothost.errors import UsageError
from bothost.plugins import Plugins
from bothost.store import consent
from bothost.store.registry import Registry
from bothost.strategy import Budget, Table
from bothost.web import cloning, opponents
from bothost.web.application import Web
from bothost.web.cloning import NEEDED, hands_of
from bothost.web.matches import LOBBY
from bothost.web.players import COOKIE, Browser, Names
from bothost.web.viewers import Viewers

OURS = {"Origin": "http://localhost"}


@functools.cache
def rule_player():
    return Plugins.load().resolve("rule-othello").make()


@functools.cache
def hand_of(played, seed, name):
    """All rows of a hand of Othello at which somebody plays white as rule-othello does, against random moves."""
    game = rules.game("othello")
    rng, state = random.Random(seed), game.new_state(seed)
    player = rule_player().player(Table(lobby=LOBBY, table="t", game=game, seat=1, seed=seed))

    def choose(number, legal):
        action = rng.choice(legal)
        if state.to_act[0] == 1:
            action = int(player.decide(state.view(1), state.legal(1), Budget(1e12)).action)
        state.apply(state.to_act[0], action)
        return action

    rows = played("othello", choose, seed=seed)
    rows[0].lobby = LOBBY
    rows[0].players = json.dumps([{"seat": 0, "player": "bot"}, {"seat": 1, "player": name}])
    return rows


@pytest.fixture
def hands(logged, played):
    """Logs hands of Othello at which eve plays."""

    def log(count, name="eve"):
        logged(*(hand_of(played, seed, name) for seed in range(count)))

    return log


@pytest.fixture
def eve(site):
    """The browser to which the name eve belongs."""
    return Names(site.store).claim(Browser(), "eve", trusted=True)


def cookie(browser):
    return f"{browser.key}.{quote(browser.name)}"


@pytest.fixture
def client_of_eve(client, eve):
    client.cookies.set(COOKIE, cookie(eve))
    client.get("/api/session")
    return client


def test_who_played_too_little_or_did_not_agree_is_not_cloned(client_of_eve, hands, site):
    client = client_of_eve
    hands(NEEDED - 1)
    assert client.get("/api/clone").json()["hands"] == {"doudizhu": 0, "othello": NEEDED - 1, "mahjong": 0}
    answer = client.post("/api/clone", json={"game": "othello"}, headers=OURS)
    assert answer.status_code == 400 and "play 1 more" in answer.json()["advice"]
    assert client.post("/api/clone", json={"game": "mahjong"}, headers=OURS).status_code == 400
    assert (LOBBY, "eve") not in consent.recorded(site.store)


def test_a_hand_counts_once_however_many_bots_played_it(site, logged, played):
    seats = [hand_of(played, seed, "eve") for seed in (1, 2, 3)]
    first, (second, *rows), third = seats
    same = msgspec.structs.replace(second, table=first[0].table, hand=first[0].hand, started_us=first[0].started_us)
    logged(first, [same, *rows], third)
    assert hands_of(site, "eve")["othello"] == 2


def test_a_person_takes_their_consent_back(page, served, site, eve):
    Names(site.store).agree("eve")
    page.context.add_cookies([{"name": COOKIE, "value": cookie(eve), "url": served}])
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{served}/clone")
    page.get_by_role("button", name="take back my consent").click()
    page.get_by_label("A strategy may be trained").wait_for()
    assert not consent.recorded(site.store)[LOBBY, "eve"].granted


@pytest.mark.parametrize("said", ["", "eve", ".eve", "a-guess.eve", "a-guess.eve.eve"])
def test_nobody_is_cloned_by_somebody_else(client, eve, hands, site, said):
    """A name that is typed, or that a cookie claims without its key, is not the visitor's."""
    hands(NEEDED)
    client.cookies.set(COOKIE, said)
    client.get("/api/session")
    assert client.get("/api/clone").json() == {"player": None}
    for path, asked in (("/api/clone", {"game": "othello", "consents": True}), ("/api/clone/revoke", {})):
        assert client.post(path, json=asked, headers=OURS).status_code == 403
    play = {"name": "eve", "game": "othello", "opponents": ["rule-othello"], "consents": True}
    refused = client.post("/api/play", json=play, headers=OURS)
    assert refused.status_code == 400 and "belongs to another browser" in refused.json()["error"]
    assert client.get("/api/clone").json() == {"player": None}
    assert consent.recorded(site.store) == {}


def test_visitors_leave_a_place_for_the_commands_of_operators(site, logged, played, held_jobs):
    asked = {"game": "othello"}
    with TestClient(Web(site, Viewers("s3cret", spectators=True)).application(), base_url=OURS["Origin"]) as client:
        for first, name, problem in ((0, "eve", None), (100, "ann", "1 command is running")):
            logged(*(hand_of(played, seed, name) for seed in range(first, first + NEEDED)))
            client.cookies.clear()
            client.cookies.set(COOKIE, cookie(Names(site.store).claim(Browser(), name, trusted=True)))
            client.get("/api/session")
            answer = client.post("/api/clone", json=asked, headers=OURS)
            assert (answer.status_code, answer.json().get("error")) == (400 if problem else 200, problem)
        assert client.post("/api/login", json={"password": "s3cret"}, headers=OURS).status_code == 200
        assert client.post("/api/clone", json=asked, headers=OURS).status_code == 200
        held_jobs({})


def test_a_name_stays_with_its_browser_after_a_restart(client_of_eve):
    assert client_of_eve.get("/api/clone").json()["player"] == "eve"
    assert client_of_eve.get("/api/play").json()["name"] == "eve"


def test_visitors_do_not_get_names_that_played_before_names_had_owners(site, hands):
    hands(1)
    names = Names(site.store)
    with pytest.raises(UsageError, match="another browser"):
        names.claim(Browser(), "eve", trusted=False)
    mine = names.claim(names.claim(Browser(), "ann", trusted=False), "bob", trusted=False)
    assert names.proven(mine) == "bob" and names.proven(Browser(mine.key, "ann")) == "ann"
    assert names.proven(names.claim(Browser(), "eve", trusted=True)) == "eve"
    for taken in ("ann", "eve"):
        with pytest.raises(UsageError, match="another browser"):
            names.claim(Browser(), taken, trusted=True)


@pytest.mark.parametrize("name", ["eve", "小明", "José", "Зоя", "नेहा", "דנה", "김민수", "9.b_c-d"])
def test_names_of_any_language_are_kept_by_browser_and_database(client, site, name):
    browser = Names(site.store).claim(Browser(), unicodedata.normalize("NFC", name), trusted=True)
    answer = Response()
    browser.remember(Request({"type": "http", "scheme": "http", "headers": [], "path": "/", "server": None}), answer)
    client.cookies.set(COOKIE, answer.headers["set-cookie"].partition(";")[0].partition("=")[2])
    client.get("/api/session")
    assert client.get("/api/play").json()["name"] == name


@pytest.mark.parametrize(
    "name",
    [
        *("<b>", "", "x" * 33, "明" * 33, "two words", "a/b", "..", "-x"),
        *(
            "Jose\u0301",
            "\u0301a",
            "a\u202eb",
            "a\u200bb",
            "a\u200db",
            "a\u00adb",
            "a\u3164",
            "a\ufe0f",
            "a\x00",
            "a\ud800",
        ),
    ],
)
def test_a_name_has_letters_and_digits_that_everybody_sees(site, name):
    with pytest.raises(UsageError, match="is no name"):
        Names(site.store).claim(Browser(), name, trusted=True)


@pytest.mark.parametrize("name", ["robot-1", "rule-othello-0a1b2c3d-1"])
def test_a_name_that_the_lobby_gives_to_bots_is_refused_as_such(site, name):
    with pytest.raises(UsageError, match="is a name for bots"):
        Names(site.store).claim(Browser(), name, trusted=True)


def test_a_clone_with_tempo_needs_to_know_how_long_moves_took(page, served, site, hands, eve):
    """The made-up hands do not say it: the page shows what is missing, and the training leaves nothing behind."""
    hands(NEEDED)
    page.context.add_cookies([{"name": COOKIE, "value": cookie(eve), "url": served}])
    page.goto(f"{served}/clone")
    page.get_by_label("A strategy may be trained").check()
    page.get_by_label("It also takes as long").check()
    page.get_by_role("button", name="train a clone").click()
    page.wait_for_selector("text=the log knows how long 0 moves of eve took", timeout=250_000)
    problem = page.get_by_role("alert").inner_text()
    assert "or clear “It also takes as long for its moves as I do.”" in problem and "option" not in problem
    assert not list((site.settings.host.data_dir / "jobs").iterdir())


def test_a_training_is_followed_after_a_reload(page, served, hands, eve, held_jobs):
    hands(NEEDED)
    page.context.add_cookies([{"name": COOKIE, "value": cookie(eve), "url": served}])
    asked = []
    page.on("request", lambda request: asked.append(request.url) if request.method == "POST" else None)
    page.goto(f"{served}/clone")
    page.get_by_label("A strategy may be trained").check()
    train = page.get_by_role("button", name="train a clone")
    for press in (train.dblclick, page.reload):
        press()
        page.get_by_role("progressbar", name="clone eve").wait_for()
        assert train.is_disabled()
    assert asked == [f"{served}/api/clone"], "a second click asks for no second training"
    held_jobs({"version": "eve-1"})
    page.wait_for_selector(".notice:has-text('eve-1')")
    train.and_(page.locator(":enabled")).wait_for()
    page.reload()
    page.wait_for_selector(".notice:has-text('eve-1')")


def test_a_clone_is_trained_measured_and_seated_in_the_browser(page, served, site, hands, monkeypatch):
    monkeypatch.setattr(cloning, "NEEDED", 8)  # learning from more hands takes longer and shows nothing else
    hands(8, "小明")
    ming = Names(site.store).claim(Browser(), "小明", trusted=True)
    site.plugins.aliases = alias_resolver(site.settings)
    page.context.add_cookies([{"name": COOKIE, "value": cookie(ming), "url": served}])
    page.goto(f"{served}/clone")
    page.wait_for_selector("text=hands played: 8")
    train = page.get_by_role("button", name="train a clone")
    assert train.is_disabled()
    page.get_by_label("A strategy may be trained").check()
    train.click()
    page.wait_for_selector("text=your clones", timeout=250_000)
    assert consent.recorded(site.store)[LOBBY, "小明"].granted
    (made,) = Registry(site.store, site.settings.host.data_dir / "models").versions("fm-clone")
    training = made.lineage["training"]
    assert made.version.startswith("clone-1-") and training["players"] == ["小明"]
    curve = training["curve"]
    assert [point["hands"] for point in curve[:-1]] == [0, 5]
    assert curve[-1]["held_out_top1"] > 0.3
    page.wait_for_selector(".curve canvas")
    assert not list((site.settings.host.data_dir / "jobs").iterdir())
    page.get_by_role("link", name="play against it").click()
    page.wait_for_selector("select[name='opponent.0']")
    assert page.locator("select[name='opponent.0']").input_value() == f"fm-clone:{made.version}"
    monkeypatch.setattr(opponents, "MIN_MOVE_MS", 0)
    page.get_by_label("your name").fill("小明")
    page.get_by_role("button", name="start").click()
    page.wait_for_selector(".turn-note:has-text('Your turn.')", timeout=60_000)
    assert f"fm-clone ({made.version})" in page.locator(".othello-score").inner_text()
