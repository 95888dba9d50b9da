"""Clone me: a person's hands become a bot that they can play against."""

import json
import random

import pytest
from starlette.testclient import TestClient

from bothost import rules
from bothost.cli.registry import resolver
from bothost.store import consent
from bothost.store.registry import Registry
from bothost.strategy import Budget, Table
from bothost.web import opponents
from bothost.web.application import Web
from bothost.web.cloning import NEEDED
from bothost.web.matches import LOBBY
from bothost.web.viewers import Viewer, Viewers

OURS = {"Origin": "http://localhost"}


@pytest.fixture
def hands(site, logged, played):
    """Logs hands of Othello at which eve plays white as rule-othello does, against random moves."""

    def log(count):
        game = rules.game("othello")
        strategy = site.plugins.resolve("rule-othello").make()
        made = []
        for seed in range(count):
            rng, state = random.Random(seed), game.new_state(seed)
            player = strategy.player(Table(lobby=LOBBY, table="t", game=game, seat=1, seed=seed))

            def choose(number, legal, rng=rng, state=state, player=player):
                action = rng.choice(legal)
                if state.to_act[0] == 1:
                    action = int(player.decide(state.view(1), state.legal(1), Budget(1e12)).action)
                state.apply(state.to_act[0], action)
                return action

            rows = played("othello", choose, seed=seed)
            rows[0].lobby = LOBBY
            rows[0].players = json.dumps([{"seat": 0, "player": "bot"}, {"seat": 1, "player": "eve"}])
            made.append(rows)
        logged(*made)

    return log


@pytest.fixture
def viewers():
    return Viewers(None, spectators=False)


@pytest.fixture
def client(site, viewers):
    with TestClient(Web(site, viewers).application(), base_url=OURS["Origin"]) as made:
        made.get("/api/session")
        (viewer,) = viewers._sessions.values()
        viewer.player = "eve"
        yield made


def test_who_played_too_little_or_did_not_agree_is_not_cloned(client, hands, site):
    hands(NEEDED - 1)
    assert client.get("/api/clone").json()["hands"] == {"doudizhu": 0, "othello": NEEDED - 1, "mahjong": 0}
    answer = client.post("/api/clone", json={"game": "othello"}, headers=OURS)
    assert answer.status_code == 400 and "play 1 more" in answer.json()["advice"]
    assert client.post("/api/clone", json={"game": "mahjong"}, headers=OURS).status_code == 400
    assert (LOBBY, "eve") not in consent.recorded(site.store)


def test_nobody_is_cloned_by_somebody_else(client, viewers, hands):
    hands(NEEDED)
    (viewer,) = viewers._sessions.values()
    assert isinstance(viewer, Viewer)
    viewer.player = None
    assert client.get("/api/clone").json() == {"player": None}
    assert client.post("/api/clone", json={"game": "othello", "consents": True}, headers=OURS).status_code == 403


def test_a_clone_is_trained_measured_and_seated_in_the_browser(page, served, site, hands, monkeypatch):
    hands(NEEDED + 10)
    site.plugins.aliases = resolver(site.settings)
    begun = Viewers._begin

    def as_eve(self, kind):
        token, viewer = begun(self, kind)
        viewer.player = "eve"
        return token, viewer

    monkeypatch.setattr(Viewers, "_begin", as_eve)
    page.goto(f"{served}/clone")
    page.wait_for_selector("text=hands played: 30")
    train = page.get_by_role("button", name="train a clone")
    assert train.is_disabled()
    page.get_by_label("A strategy may be trained").check()
    train.click()
    page.wait_for_selector("text=your clones", timeout=180_000)
    assert consent.recorded(site.store)[LOBBY, "eve"].granted
    (made,) = Registry(site.store, site.settings.host.data_dir / "models").versions("fm-clone")
    training = made.lineage["training"]
    assert made.version.startswith("eve-1-") and training["players"] == ["eve"]
    curve = training["curve"]
    assert [point["hands"] for point in curve[:-1]] == [0, 5, 10, 20]
    assert curve[-1]["held_out_top1"] > 0.3
    assert page.locator(".curve canvas").count() == 1
    assert not list((site.settings.host.data_dir / "clones").iterdir())
    page.get_by_role("link", name="play against it").click()
    page.wait_for_selector("select[name='opponent.0']")
    assert page.locator("select[name='opponent.0']").input_value() == f"fm-clone:{made.version}"
    monkeypatch.setattr(opponents, "MIN_MOVE_MS", 0)
    page.get_by_label("your name").fill("eve")
    page.get_by_role("button", name="start").click()
    page.wait_for_selector(".turn-note:has-text('Your turn.')", timeout=60_000)
    assert f"fm-clone.{made.version}" in page.locator(".othello-score").inner_text()
