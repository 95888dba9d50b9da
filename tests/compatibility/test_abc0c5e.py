"""Databases, exports, models and configurations that an earlier version made still work."""

import json
import shutil
import tarfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bothost import Budget, Request, Table, config, rules
from bothost.cli import main
from bothost.errors import SchemaOutdated
from bothost.export import forget as export_forget
from bothost.plugins import Plugins
from bothost.retrain import forget as retrain_forget
from bothost.retrain.dataset import Dataset
from bothost.retrain.players import Players
from bothost.retrain.replay import Replayer
from bothost.store import Store, consent, schema
from bothost.store.query import HandQuery
from bothost.store.reader import iter_hands, iter_timelines
from bothost.store.registry import Registry

ARCHIVE = Path(__file__).parent / "abc0c5e.tar.xz"
HANDS, DECISIONS = 10, 307
SECRETS = {
    "BOTHOST_LOBBY_TOKENS": "ada:aaaaaaa,bob:bbbbbbb",
    "BOTHOST_HOME_ADA_TOKEN": "aaaaaaa",
    "BOTHOST_HOME_BOB_TOKEN": "bbbbbbb",
    "BOTHOST_BOTZONE_TOKEN": "ccccccc",
}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("abc0c5e")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def old(unpacked, tmp_path, monkeypatch):
    """A copy of the old files, with the secrets that its configuration names."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return shutil.copytree(unpacked, tmp_path / "old")


@pytest.fixture
def store(old):
    settings = config.load(old / "config.toml").store
    schema.upgrade(settings)
    with Store.open(settings) as opened:
        yield opened


@pytest.fixture
def registry(store, old):
    return Registry(store, old / "var" / "models")


def exported(folder):
    return pq.read_table(folder / "data").to_pylist()


def test_the_configuration_is_valid_and_means_the_same(old):
    where = ["-c", str(old / "config.toml")]
    assert main(["db", "upgrade", *where]) == main(["config", "lint", *where]) == 0
    settings = config.load(old / "config.toml")
    assert settings.host.name == "old" and settings.host.lease_s == 15
    assert [lobby.adapter for lobby in settings.lobbies] == ["embedded", "botzone"]
    assert [account.consents for account in settings.lobbies[0].accounts] == [True, True]
    assert [route.strategy for route in settings.routes] == ["random", "styled-othello", "rule-doudizhu", "random"]
    assert settings.lobby_server.port == 18765 and settings.metrics.port == 9464
    assert settings.store.url == f"sqlite:///{old}/var/bothost.db"


def test_the_database_is_refused_or_current_and_then_migrated_without_loss(old):
    settings = config.load(old / "config.toml").store
    try:
        schema.check_database(settings)
    except SchemaOutdated as error:
        assert "bothost db upgrade" in error.advice
    schema.upgrade(settings)
    assert schema.differences(settings) == []
    with Store.open(settings) as store:
        timelines = list(iter_timelines(store, iter_hands(store)))
        assert len(timelines) == HANDS and all(timeline.hand.scores for timeline in timelines)
        assert sum(len(timeline.decisions) for timeline in timelines) == DECISIONS
        assert all(timeline.events and timeline.outcomes for timeline in timelines)
        assert consent.recorded(store)["home", "bob"].granted


def test_every_decision_is_replayed_as_it_was_made(store, registry):
    replayer = Replayer(Plugins.load(aliases=registry.resolve), registry, {"styled-othello": {"style": "mobile"}})
    found = [item for timeline in iter_timelines(store, iter_hands(store)) for item in replayer.hand(timeline)]
    replayer.close()
    assert len(found) == DECISIONS and all(item.view_exact for item in found)
    assert [item for item in found if not item.exact] == []
    assert {item.strategy for item in found} == {"random", "styled-othello", "fm-clone"}


def test_the_registry_and_its_model_are_read_and_the_model_decides(registry):
    (version,) = registry.versions("fm-clone")
    assert version.version == "tiny" and registry.pointers("fm-clone")["fm-clone", "challenger"].version == "tiny"
    resolved = Plugins.load(aliases=registry.resolve).resolve("fm-clone:tiny")
    assert resolved.model.sha256 == version.sha256
    strategy, game = resolved.make(), rules.game("othello")
    view = game.new_state(1).view(0)
    player = strategy.player(Table(lobby="l", table="t", game=game, seat=0, seed=1))
    (decision,) = strategy.decide_many([Request(player, view, view.legal(), Budget(float("inf")))])
    assert decision.action in view.legal() and decision.model_sha256 == version.sha256


def test_an_export_of_the_old_database_holds_what_its_old_export_holds(old, store):
    command = [
        "export",
        "-c",
        str(old / "config.toml"),
        "--out",
        str(old / "new"),
        "--rllib",
        "--raw",
        "--no-view-json",
    ]
    assert main(command) == 0
    before = exported(old / "parquet")
    assert [{name: row[name] for name in before[0]} for row in exported(old / "new")] == before
    info, before = (json.loads((old / name / "meta" / "info.json").read_text()) for name in ("new", "parquet"))
    assert (info["rows"], info["hands"], info["splits"]) == (before["rows"], before["hands"], before["splits"])


@pytest.mark.parametrize("name", ["parquet", "jsonl"])
def test_a_hand_can_be_removed_from_an_old_export(old, name):
    game_id = bytes.fromhex(exported(old / "parquet")[0]["game_id"])
    rows = sum(row["game_id"] == game_id.hex() for row in exported(old / "parquet"))
    assert export_forget.forget(old / name, [game_id]) == rows > 0
    assert export_forget.forget(old / name, [game_id]) == 0


def test_a_hand_can_be_removed_from_the_dataset_of_an_old_retraining(old):
    job = old / "var" / "retrain" / "one"
    game_id = bytes.fromhex(exported(job / "dataset")[0]["game_id"])
    assert retrain_forget.forget(job, [game_id]) > 0
    assert game_id.hex() not in {row["game_id"] for row in exported(job / "dataset")}


def test_a_strategy_can_still_learn_from_old_exports(old):
    for folder in ("parquet", "var/retrain/one/dataset"):
        trajectories = list(Dataset(old / folder, "fm-clone").trajectories("train"))
        assert trajectories and all(trajectory.steps for trajectory in trajectories)


def test_players_who_consented_are_still_found_with_their_moves(store):
    players = Players(store, HandQuery(closed=True))
    assert set(players.players("othello")) == {"ada", "bob"}
    moves = list(players.moves("othello", ["bob"]))
    assert len(moves) > 100 and {move.player for move in moves} == {"bob"}
