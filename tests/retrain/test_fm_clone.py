"""fm-clone in the loop: its champion learns on from what everybody did at the logged hands who agreed to it."""

import random

import numpy as np
import pytest

import bothost_fm_clone.player
from bothost import rules
from bothost.cli.model import promoted
from bothost.config import StoreSettings
from bothost.errors import UsageError
from bothost.plugins import Plugins
from bothost.retrain.gate import GateRefused, GateSettings, weigh
from bothost.retrain.job import Request, Tools, retrain
from bothost.store import Store, consent, schema
from bothost.store.query import HandQuery
from bothost.store.registry import Registry

from .conftest import fill, hand

TINY = {"game": "othello", "shared": {"combinations": 4, "per_round": 2, "quadratic": 4, "rectified": 8, "passes": 1}}
SILENT = lambda done, note="", total=None: None  # noqa: E731


def asked(*players, fresh=False, **options):
    query = HandQuery(players=players, closed=True, scored=True)
    return Request(strategy="fm-clone", query=query, fresh=fresh, options=options)


@pytest.fixture(scope="module")
def hands():
    strategy = Plugins.load().resolve("styled-othello", {"style": "mobile"}).make()
    rng = random.Random(3)
    return [hand(rules.game("othello"), strategy, seed, rng) for seed in range(6)]


@pytest.fixture
def tools(hands, tmp_path, monkeypatch):
    monkeypatch.setattr(bothost_fm_clone.player, "RATES", (0.002,))  # choosing takes most of the time
    settings = StoreSettings(url=f"sqlite:///{tmp_path}/bothost.db")
    schema.upgrade(settings)
    fill(settings, tmp_path, hands)
    with Store.open(settings) as store:
        consent.record(store, "home", "ada", granted=True)
        registry = Registry(store, tmp_path / "models")
        yield Tools(Plugins.load(aliases=registry.resolve), store, registry)


def clones(tools, version):
    return tools.plugins.resolve(f"fm-clone:{version}").make().clones


def test_the_champion_becomes_a_clone_of_the_player_and_plays_other_games_as_before(tools, tmp_path):
    result = retrain(tools, asked("ada", game="othello"), tmp_path / "job", SILENT)
    made = tools.registry.version("fm-clone", result["version"])
    assert tools.plugins.resolve("fm-clone:challenger").model.sha256 == result["sha256"]
    champion = tools.plugins.resolve("fm-clone")
    assert made.lineage["started_from"]["sha256"] == champion.model.sha256
    (read,) = made.lineage["log"]["read"]
    assert read["players"] == ["ada"] and read["hands"] == made.lineage["dataset"]["hands"] == 6
    assert read["moves"] >= result["figures"]["player"]["decisions"] > 50
    before, after = champion.make().clones, clones(tools, result["version"])
    assert not np.array_equal(after["othello"].parameters["factors"], before["othello"].parameters["factors"])
    # Behind the crowd's combinations are the pairs of ada's own hands.
    known = len(before["othello"].pairs)
    np.testing.assert_array_equal(after["othello"].pairs[:known], before["othello"].pairs)
    assert len(after["othello"].pairs) > known
    np.testing.assert_array_equal(after["doudizhu"].parameters["factors"], before["doudizhu"].parameters["factors"])


def test_the_gate_asks_who_predicts_held_out_hands_better(tools, tmp_path):
    made = retrain(tools, asked("ada", game="othello"), tmp_path / "job", SILENT)
    with pytest.raises(GateRefused, match=r"not shown to be better than fm-clone:v\d+: \d held-out hands"):
        promoted(tools.plugins, tools.registry, "fm-clone", "champion", GateSettings())
    consent.record(tools.store, "home", "ada", granted=False)
    with pytest.raises(UsageError, match="has not agreed"):
        promoted(tools.plugins, tools.registry, f"fm-clone:{made['version']}", "champion", GateSettings())


@pytest.mark.parametrize(("gain", "better", "worse"), [(0.1, True, False), (-0.1, False, True), (0.0, False, False)])
def test_held_out_hands_are_weighed_until_they_have_said_enough(gain, better, worse):
    gains = iter([gain, gain * 0.8] * 500)
    verdict = weigh(gains, "fm-clone:r2", "fm-clone:r1", GateSettings(deals=800))
    assert (verdict.better, verdict.p_better <= 0.05, verdict.p_worse <= 0.05) == (better, better, worse)
    assert verdict.deals < 200 if better or worse else verdict.deals == 800
    assert f"{verdict.deals} held-out hands" in str(verdict) and f"{verdict.figures['gain']:+.4f}" in str(verdict)


def test_nobody_is_learnt_from_who_did_not_agree(tools, tmp_path):
    consent.record(tools.store, "home", "ada", granted=False)
    with pytest.raises(UsageError, match="has not agreed"):
        retrain(tools, asked("ada", game="othello"), tmp_path / "job", SILENT)
    with pytest.raises(UsageError, match="of a player who consents"):
        retrain(tools, asked(fresh=True, **TINY), tmp_path / "other", SILENT)


def test_a_crowd_grows_on_from_the_champion_and_an_interrupted_job_ends_as_another(tools, tmp_path):
    first = retrain(tools, asked(fresh=True, **TINY), tmp_path / "first", SILENT)
    tools.registry.point(tools.plugins.strategies["fm-clone"], "champion", first["version"], reason="")
    more = {**TINY, "shared": {**TINY["shared"], "combinations": 8}}
    whole = retrain(tools, asked(**more), tmp_path / "whole", SILENT)

    def cut(done, note="", total=None):
        if note.startswith("round 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        retrain(tools, asked(**more), tmp_path / "cut", cut)
    assert retrain(tools, asked(**more), tmp_path / "cut", SILENT)["sha256"] == whole["sha256"]
    before, after = (clones(tools, made["version"])["othello"].pairs for made in (first, whole))
    assert len(before) == 4 and len(after) == 8
    np.testing.assert_array_equal(after[:4], before)
    assert {"before", "crowd"} <= set(whole["figures"])
