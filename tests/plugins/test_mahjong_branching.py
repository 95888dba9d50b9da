"""mahjong-ppo: uncertain decisions that branch, and the training that learns from them."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
import safetensors.torch
import torch

from bothost import TrainingRun, rules
from bothost.errors import UsageError
from bothost.plugins import weights
from bothost.training.loop import Iteration
from bothost.training.metrics import read
from bothost.training.model_pool import ModelPool
from bothost_mahjong_ppo.decide import MahjongPpo
from bothost_mahjong_ppo.encode import REWARD_SCALE
from bothost_mahjong_ppo.learn import MahjongLearner
from bothost_mahjong_ppo.model import MahjongNet
from bothost_mahjong_ppo.options import Options
from bothost_mahjong_ppo.selfplay import CURRICULUM, Opponents
from bothost_mahjong_ppo.train import MahjongPpoTrainer
from bothost_mahjong_ppo.vine import BranchOptions, candidates, play_branching

GAME = rules.game("mahjong")
TINY = {
    "iterations": 2,
    "hands": 2,
    "first_stage": 2,
    "checkpoint_every": 1,
    "pool_every": 1,
    "ppo": {"epochs": 1, "minibatch": 64},
    "branches": {"candidates": 3, "continuation": "rule", "share": 0.5},
}


def test_only_likely_actions_are_tried_best_first():
    options = BranchOptions(candidates=3, least_probability=0.1)
    assert candidates(np.array([0.2, 0.0, 0.5, 0.05, 0.25]), options).tolist() == [2, 4, 0]
    assert candidates(np.array([0.02, 0.0, 0.95, 0.03]), options).tolist() == [2]
    every = BranchOptions(candidates=3, least_probability=0.0)
    assert candidates(np.array([0.4, 0.0, 0.6, 0.0]), every).tolist() == [2, 0], "others are illegal"
    with pytest.raises(ValueError, match="candidates"):
        BranchOptions(candidates=1)
    with pytest.raises(ValueError, match="share"):
        msgspec.convert({"share": 0.0}, BranchOptions)


@pytest.mark.parametrize("seats", [CURRICULUM[2], CURRICULUM[-1]])
def test_branches_of_a_decision_are_compared_with_their_own_mean(seats):
    torch.manual_seed(1)
    net, options = MahjongNet(), BranchOptions(candidates=3, share=0.3)
    hands = play_branching(GAME, net, Opponents(seats), 2, 7, options, share=0.5)
    batch = hands.batch
    assert len(hands.scores) == 2 * (1 + seats.count("self"))
    assert 0 < batch.samples < hands.decisions
    tried = batch.weights > 0
    assert int(tried.sum()) == hands.branches and bool((tried.sum(dim=1) >= 2).all())
    assert bool((batch.masks.gather(1, batch.actions) | ~tried).all())
    probabilities = batch.log_probs.exp().gather(1, batch.actions)
    torch.testing.assert_close(torch.where(tried, probabilities, 0.0), batch.weights)
    torch.testing.assert_close((batch.weights * batch.advantages).sum(dim=1), torch.zeros(batch.samples))
    scores = torch.where(tried, (batch.advantages + batch.returns[:, None]) / REWARD_SCALE, 0.0)
    torch.testing.assert_close(scores, scores.round(), atol=1e-3, rtol=0)
    again = play_branching(GAME, net, Opponents(seats), 2, 7, options, share=0.5)
    assert all(torch.equal(one, other) for one, other in zip(batch, again.batch, strict=True))
    assert (hands.scores == again.scores).all()


def test_branches_that_a_critic_values_vary_less():
    torch.manual_seed(1)
    net, ends = MahjongNet(), BranchOptions(candidates=2, share=0.1, least_probability=0.001, continuation="rule")
    valued = msgspec.structs.replace(ends, draws=1)
    one, other = (play_branching(GAME, net, Opponents(CURRICULUM[2]), 2, 7, of).batch for of in (ends, valued))
    assert torch.equal(one.actions, other.actions) and torch.equal(one.weights, other.weights)
    spreads = [float((batch.weights * batch.advantages.square()).sum()) for batch in (one, other)]
    assert 0.0 < spreads[1] < 0.5 * spreads[0]
    with pytest.raises(ValueError, match="draws"):
        msgspec.convert({"draws": -1}, BranchOptions)


def test_a_training_from_a_shipped_version_changes_the_layers_that_it_may(tmp_path):
    champion = Path(weights.find(MahjongPpo, "champion").path) / "model.safetensors"
    branches = {**TINY["branches"], "draws": 1}
    given = {**TINY, "trunk": False, "policy_layer": False, "branches": branches}
    learner = MahjongLearner(msgspec.convert(given, Options), 1)
    learner.load_start(champion)
    before = safetensors.torch.load_file(champion)
    assert all(torch.equal(learner.model.state_dict()[name], value) for name, value in before.items())
    learner.iterate(Iteration(1, 0.0, np.random.default_rng(0), ModelPool(tmp_path)))
    changed = {name for name, value in before.items() if not torch.equal(learner.model.state_dict()[name], value)}
    assert {name.split(".")[0] for name in changed} == {
        "prospect_first", "prospect_context", "prospect_second", "prospect_value", "value"
    }  # fmt: skip


@pytest.mark.parametrize("branches", [{}, TINY["branches"]])
def test_bfloat16_changes_the_gradients_little(branches, tmp_path):
    champion = Path(weights.find(MahjongPpo, "champion").path) / "model.safetensors"
    gradients = []
    for bf16 in (False, True):
        ppo = {**TINY["ppo"], "minibatch": 10_000, "bf16": bf16}
        learner = MahjongLearner(msgspec.convert({**TINY, "branches": branches, "ppo": ppo}, Options), 1)
        learner.load_start(champion)
        learner.iterate(Iteration(1, 0.0, np.random.default_rng(0), ModelPool(tmp_path)))
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in learner.model.parameters()]))
    exact, rounded = gradients
    assert rounded.dtype == torch.float32 and not torch.equal(exact, rounded)
    assert float((exact - rounded).norm()) < 0.2 * float(exact.norm())


def test_a_policy_that_is_certain_has_nothing_to_learn_from():
    net = MahjongNet()
    with torch.no_grad():
        net.policy.bias.copy_(100.0 * torch.arange(193))
    with pytest.raises(UsageError, match="no decision branched"):
        play_branching(GAME, net, Opponents(CURRICULUM[2]), 1, 7, BranchOptions(candidates=2))


def test_a_training_with_branches_resumes_as_one_that_never_stopped(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    trainer = MahjongPpoTrainer(msgspec.convert(TINY, Options))
    made = trainer.train(TrainingRun(out=whole, seed=1), lambda *_: None)

    class Stop(Exception):
        pass

    def stop(done, note="", total=None):
        if done == 1:
            raise Stop

    with pytest.raises(Stop):
        trainer.train(TrainingRun(out=parts, seed=1), stop)
    trainer.train(TrainingRun(out=parts, seed=1, resume=True), lambda *_: None)
    one, two = (
        safetensors.torch.load_file(sorted(out.glob("checkpoint-*"))[-1] / "model.safetensors")
        for out in (whole, parts)
    )
    assert all(torch.equal(one[name], two[name]) for name in one)
    records = read(whole / "metrics.jsonl")
    lineage = json.loads((whole / "weights" / "lineage.json").read_text())
    for name in ("decisions", "branches"):
        assert made[name] == lineage[name] == sum(record[name] for record in records) > 0
    assert made["samples"] < made["decisions"]
