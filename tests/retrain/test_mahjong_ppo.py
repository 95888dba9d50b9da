"""mahjong-ppo learns from logged hands: what they are to it, and the challenger that comes of them."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from bothost import LoggedStep, TrainingRun, Trajectory, rules
from bothost.config import StoreSettings
from bothost.errors import UsageError
from bothost.plugins import Plugins, weights
from bothost.retrain.job import Request, Tools, retrain
from bothost.store import Store, schema
from bothost.store.query import HandQuery
from bothost.store.registry import Registry
from bothost.training.metrics import read
from bothost.training.offpolicy import LoggedHands, behaviour
from bothost.training.ppo import PpoOptions
from bothost_mahjong_ppo.decide import MahjongPpo
from bothost_mahjong_ppo.encode import ORDER_START, PACKED, PACKED_STATE, PROSPECT, REWARD_SCALE, ROWS, encode
from bothost_mahjong_ppo.logged import MahjongHands
from bothost_mahjong_ppo.model import OBSERVATION, MahjongNet
from bothost_mahjong_ppo.options import Options
from bothost_mahjong_ppo.train import MahjongPpoTrainer

from .conftest import fill, hand

GAME = rules.game("mahjong")
QUERY = HandQuery(strategies=("mahjong-ppo",), closed=True, scored=True)
TINY = {"iterations": 2, "hands": 2, "checkpoint_every": 1, "pool_every": 1, "ppo": {"epochs": 1, "minibatch": 64}}
SILENT = lambda done, note="", total=None: None  # noqa: E731


def asked(**options):
    return Request(strategy="mahjong-ppo", query=QUERY, options={**TINY, **options}, command="bothost retrain")


@pytest.fixture(scope="module")
def hands():
    strategy = Plugins.load().resolve("mahjong-ppo", {"temperature": 1.0}).make()
    rng = random.Random(2)
    return [hand(GAME, strategy, seed, rng) for seed in range(8)]


@pytest.fixture
def tools(hands, tmp_path):
    settings = StoreSettings(url=f"sqlite:///{tmp_path}/bothost.db")
    schema.upgrade(settings)
    fill(settings, tmp_path, hands)
    with Store.open(settings) as store:
        registry = Registry(store, tmp_path / "models")
        yield Tools(Plugins.load(aliases=registry.resolve), store, registry)


def trajectory(rows):
    """One hand of the log, as a dataset gives it."""
    steps = []
    for row in (row for row in rows if type(row).__name__ == "DecisionRecord"):
        legal, policy = np.frombuffer(row.legal, "<i4"), np.frombuffer(row.policy, "<f4")
        view, stats = GAME.view_from_bytes(row.view), json.loads(row.stats)
        steps.append(LoggedStep(view, legal, row.action, policy, stats, True, row.model_sha256))
    return Trajectory(GAME, rows[0].game_id.hex(), rows[0].seat, tuple(json.loads(rows[-1].scores)), tuple(steps))


def test_a_logged_hand_is_a_trajectory_that_ends_with_its_score(hands):
    played = trajectory(hands[1])
    encoded = MahjongHands()(played)
    assert encoded.observations.shape == (len(played.steps), OBSERVATION)
    assert encoded.rewards[-1] == pytest.approx(REWARD_SCALE * played.scores[played.seat])
    assert not encoded.rewards[:-1].any() and not encoded.observations[:, PACKED_STATE + PACKED :].any()
    states, prospects = encode([s.view for s in played.steps], [s.legal for s in played.steps])
    np.testing.assert_array_equal(encoded.observations[:, :ORDER_START], states[:, :ORDER_START])
    rest = encoded.observations[:, PACKED_STATE : PACKED_STATE + PACKED]
    for step, packed, of in zip(played.steps, rest, prospects, strict=True):
        n = len(step.legal)
        rows, actions = packed[: ROWS * PROSPECT].reshape(ROWS, PROSPECT), packed[ROWS * PROSPECT :]
        np.testing.assert_array_equal(rows[:n], of[step.legal])
        np.testing.assert_array_equal(actions[:n], step.legal + 1)
        assert not rows[n:].any() and not actions[n:].any()
    other = Trajectory(rules.game("othello"), "0", 0, (1.0, -1.0), played.steps)
    assert MahjongHands()(other) is None


def test_the_model_that_drew_the_actions_finds_them_as_likely_as_they_were_logged(hands, tmp_path):
    """Behaviour probabilities, the encoding and the shipped parameters fit: all weights of V-trace are about 1."""
    logged = LoggedHands.encoded(tmp_path / "a", MahjongHands(), [trajectory(rows) for rows in hands[:3]])
    net = MahjongNet()
    model = weights.find(MahjongPpo, "champion")
    net.begin_with(Path(model.path) / "model.safetensors")
    batch = logged.batch(net, PpoOptions(), np.random.default_rng(0), 30)
    drawn = [behaviour(step) for rows in hands[:3] for step in trajectory(rows).steps]
    assert min(drawn) < -0.01
    with torch.no_grad():
        everything = logged.batch_of(net, PpoOptions(), np.arange(3))
    np.testing.assert_allclose(everything.log_probs.numpy(), drawn, atol=0.02)
    assert batch.samples >= 30 and batch.masks.gather(1, batch.actions[:, None]).all()


def test_the_challenger_comes_from_the_champion_the_log_and_fresh_hands(tools, hands, tmp_path):
    result = retrain(tools, asked(), tmp_path / "job", SILENT)
    made = tools.registry.version("mahjong-ppo", result["version"])
    champion = weights.find(MahjongPpo, "champion")
    assert made.lineage["started_from"]["sha256"] == champion.sha256
    figures = made.lineage["figures"]
    assert 0 < figures["logged_decisions"] <= result["rows"] and figures["stage"] == 4
    assert set(figures["evaluation"]["value_error_on_val"]) == {"before", "after"}
    player = tools.plugins.resolve("mahjong-ppo:challenger").make()
    assert player.session.model.sha256 == result["sha256"] != champion.sha256
    records = read(tmp_path / "job" / "training" / "metrics.jsonl")
    assert [record["hidden_share"] for record in records] == [0.0, 0.0]


def test_a_network_of_another_encoding_is_not_trained_as_if_it_were_of_this_one(tmp_path):
    trainer, run = MahjongPpoTrainer(Options()), TrainingRun(out=tmp_path / "training", seed=0)
    with pytest.raises(UsageError, match=r"v4-level-4 sees version 1 .* version 3"):
        trainer.retrain(run, [], weights.find(MahjongPpo, "level-4"), SILENT)
    assert not run.out.exists()


def test_a_retraining_begins_with_no_other_version_than_the_champion(tools, tmp_path):
    with pytest.raises(UsageError, match="starts with the champion"):
        retrain(tools, asked(start="v10"), tmp_path / "job", SILENT)


def test_a_retraining_that_was_interrupted_ends_as_one_that_was_not(tools, tmp_path):
    class Stop(Exception):
        pass

    def stop(done, note="", total=None):
        if total == 2 and done == 1 and "samples" in note:
            raise Stop

    whole = retrain(tools, asked(), tmp_path / "whole", SILENT)
    with pytest.raises(Stop):
        retrain(tools, asked(), tmp_path / "parts", stop)
    parts = retrain(tools, asked(), tmp_path / "parts", SILENT)
    assert parts["sha256"] == whole["sha256"]
