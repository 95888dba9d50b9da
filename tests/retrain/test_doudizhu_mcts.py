"""doudizhu-mcts in the loop: a logged search comes out again by its seed and iterations; its network learns from
returns."""

import contextlib
import json
import random
import shutil

import numpy as np
import pytest

from bothost import rules
from bothost.config import StoreSettings
from bothost.errors import UsageError
from bothost.plugins import Plugins
from bothost.retrain.dataset import Dataset
from bothost.retrain.job import Request, Tools, retrain
from bothost.retrain.replay import Replayer
from bothost.store import DecisionRecord, Store, schema
from bothost.store.query import HandQuery
from bothost.store.reader import iter_hands, iter_timelines
from bothost.store.registry import Registry
from bothost_doudizhu_mcts import records
from bothost_doudizhu_mcts.logged import write

from .conftest import fill, hand

SEARCHES = {"iterations": 40, "belief": 20, "cnn": "off"}
QUERY = HandQuery(strategies=("doudizhu-mcts",), closed=True, scored=True)
TINY = {"epochs": 1.0, "positions": 16, "held_out": 0.3, "checkpoint_every": 1000}
SILENT = lambda done, note="", total=None: None  # noqa: E731


def asked(*, seed=0, fresh=False, **options):
    return Request(strategy="doudizhu-mcts", query=QUERY, seed=seed, fresh=fresh, options={**TINY, **options})


@pytest.fixture(scope="module")
def hands():
    strategy = Plugins.load().resolve("doudizhu-mcts", SEARCHES).make()
    # The names of the games, by which deals are held out, must not hang on how long others are.
    return [hand(rules.game("doudizhu"), strategy, seed, random.Random(seed)) for seed in range(9)]


@contextlib.contextmanager
def opened(folder):
    """The tools of a database in a folder."""
    with Store.open(StoreSettings(url=f"sqlite:///{folder}/bothost.db")) as store:
        registry = Registry(store, folder / "models")
        yield Tools(Plugins.load(aliases=registry.resolve), store, registry)


@pytest.fixture(scope="module")
def logged(hands, tmp_path_factory):
    """A folder with a database of the hands."""
    folder = tmp_path_factory.mktemp("logged")
    settings = StoreSettings(url=f"sqlite:///{folder}/bothost.db")
    schema.upgrade(settings)
    fill(settings, folder, hands)
    return folder


@pytest.fixture(scope="module")
def retrained(logged, tmp_path_factory):
    """A copy of it in which a network was made of the hands; and what came of that. The job is in ``job``."""
    folder = tmp_path_factory.mktemp("retrained") / "data"
    shutil.copytree(logged, folder)
    with opened(folder) as tools:
        return folder, retrain(tools, asked(fresh=True), folder / "job", SILENT)


@pytest.fixture
def tools(logged, tmp_path):
    shutil.copytree(logged, tmp_path, dirs_exist_ok=True)
    with opened(tmp_path) as made:
        yield made


@pytest.fixture
def after_one(retrained, tmp_path):
    """The tools after a first retraining, and its result."""
    folder, result = retrained
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    with opened(tmp_path) as made:
        yield made, result


def replayed(tools, options):
    replayer = Replayer(tools.plugins, tools.registry, {"doudizhu-mcts": options})
    timelines = list(iter_timelines(tools.store, iter_hands(tools.store)))
    found = [item for timeline in timelines for item in replayer.hand(timeline)]
    replayer.close()
    return found


def test_a_search_comes_out_as_it_was_logged(tools, hands):
    found = replayed(tools, SEARCHES)
    logged = [row for rows in hands for row in rows if isinstance(row, DecisionRecord)]
    assert len(found) == len(logged)
    assert all(item.exact for item in found), [(item.notation, item.differences) for item in found if not item.exact]
    searched = [row for row in logged if json.loads(row.stats)["iterations"] > 0]
    assert len(searched) > 30
    assert any(json.loads(row.stats)["reused_visits"] > 0 for row in searched)  # trees went along through the hands


def test_the_logged_iterations_count_not_those_of_the_options(tools):
    assert all(item.exact for item in replayed(tools, {**SEARCHES, "iterations": 3}))


def test_another_search_does_not_come_out(tools):
    found = replayed(tools, {**SEARCHES, "exploration": 3.0, "noise": 0.9})
    assert all(item.view_exact for item in found)
    assert sum(not item.exact for item in found) > len(found) / 4


def test_the_network_learns_from_logged_searches_and_becomes_the_challenger(after_one, hands, tmp_path):
    tools, result = after_one
    made = tools.registry.version("doudizhu-mcts", result["version"])
    assert made.lineage["dataset"]["rows"] == result["rows"] > 0
    assert tools.plugins.resolve("doudizhu-mcts:challenger").model.sha256 == result["sha256"]
    player = tools.plugins.resolve("doudizhu-mcts:challenger", {"cnn": "only"}).make()
    assert player.network.model.sha256 == result["sha256"]

    found = records.load(write(Dataset(tmp_path / "job" / "dataset", "doudizhu-mcts"), tmp_path / "records"))
    assert [made["command"] for made in found.made_by] == ["logged games"]
    manifest = json.loads((tmp_path / "job/dataset/meta/info.json").read_text())
    assert 0 < len(found) <= manifest["rows"] - manifest["splits"].get("test", 0)
    logged = {(row.game_id.hex(), row.view): row for rows in hands for row in rows if isinstance(row, DecisionRecord)}
    scores = {rows[0].game_id.hex(): (rows[0].seat, json.loads(rows[-1].scores)) for rows in hands}
    searched = 0
    for position, deal in enumerate(found.deals):
        seat, score = scores[deal]
        part = slice(found.offsets[position], found.offsets[position + 1])
        row = logged[deal, found.views[position]]
        stats = json.loads(row.stats)
        assert found.view(position).seat == seat
        if stats["iterations"] == 0:  # what was not searched learns from the result
            assert found.visits[part].tolist() == [1] and found.values[part] == np.sign(score[seat])
            continue
        searched += 1
        legal, values = np.frombuffer(row.legal, "<i4"), np.frombuffer(row.action_values, "<f4")
        assert found.visits[part].sum() == stats["iterations"] + stats["reused_visits"]
        of_action = dict(zip(legal.tolist(), values.tolist(), strict=True))
        got = dict(zip(found.actions[part].tolist(), found.values[part].tolist(), strict=True))
        assert got == {action: of_action[action] for action in got} and row.action in got
    assert searched > 20


def test_it_goes_on_from_the_champion(after_one, tmp_path):
    tools, first = after_one
    tools.registry.point(tools.plugins.strategies["doudizhu-mcts"], "champion", first["version"], reason="")
    still = {**TINY, "learning_rate": 1e-12, "weight_decay": 0.0}
    second = retrain(
        tools, Request(strategy="doudizhu-mcts", query=QUERY, options=still, seed=7), tmp_path / "b", SILENT
    )
    one, other = (
        tools.plugins.resolve(f"doudizhu-mcts:{made['version']}", {"cnn": "only"}).make().network
        for made in (first, second)
    )
    view = next(v for v in _play_views(tools) if len(v.legal()) > 1)
    assert one.model.sha256 != other.model.sha256
    assert np.allclose(one.values(view, view.legal()), other.values(view, view.legal()), atol=1e-4)


def _play_views(tools):
    game = rules.game("doudizhu")
    for timeline in iter_timelines(tools.store, iter_hands(tools.store)):
        for decision in timeline.decisions:
            view = game.view_from_bytes(decision.view)
            if view.phase == "play":
                yield view


def test_records_are_not_given_by_hand(tools, tmp_path):
    with pytest.raises(UsageError, match="its own records"):
        retrain(tools, asked(fresh=True, records="elsewhere"), tmp_path / "job", SILENT)


def test_a_teacher_is_listened_to(after_one, tmp_path):
    tools, plain = after_one
    taught = retrain(tools, asked(fresh=True, teacher="deep-mc:level-1", rehearsed=16), tmp_path / "taught", SILENT)
    teacher = tools.plugins.resolve("deep-mc:level-1").model
    assert tools.registry.version("doudizhu-mcts", taught["version"]).lineage["figures"]["teacher"] == teacher.label
    assert taught["sha256"] != plain["sha256"]
