"""Expert iteration of phase-ppo: what it learns from playouts."""

import numpy as np
import pytest
import torch

from bothost import TrainingRun, rules
from bothost.rules.pairing import rule_returns
from bothost.training.metrics import read
from bothost.training.model_pool import ModelPool
from bothost_phase_ppo.encode import ACTIONS, SIZES, encode, masks
from bothost_phase_ppo.improve import Improved, ImproveOptions, losses
from bothost_phase_ppo.model import NETWORKS
from bothost_phase_ppo.train import Options, PhasePpoTrainer

SMALL = ImproveOptions(hands=4, share=0.5, deals=2, minibatch=64)


def train(out, **options):
    chosen = Options(method="improve", improve=SMALL, iterations=3, levels=(0.2, 0.4, 0.6, 0.8, 1.0), **options)
    PhasePpoTrainer(chosen).train(TrainingRun(out=out, seed=2), lambda *_: None)


def test_the_loss_has_its_minimum_at_the_first_policy_times_the_exponential_of_the_gains():
    torch.manual_seed(0)
    allowed = torch.zeros(1, ACTIONS, dtype=torch.bool)
    allowed[0, [3, 7, 20]] = True
    first = torch.full((1, ACTIONS), -1e9)
    first[0, [3, 7, 20]] = torch.tensor([0.5, 0.3, 0.2]).log()
    gains = torch.zeros(1, ACTIONS)
    gains[0, [3, 7, 20]] = torch.tensor([-1.0, 0.5, 2.0])
    batch = Improved(torch.zeros(1, SIZES[2]), allowed, gains, first, torch.tensor([0.25]))
    logits, value = torch.zeros(1, ACTIONS, requires_grad=True), torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.Adam([logits, value], lr=0.05)
    for _ in range(600):
        optimizer.zero_grad()
        losses(lambda _: (logits, value), batch, 2.0)[0].backward()
        optimizer.step()
    expected = torch.tensor([0.5, 0.3, 0.2]) * torch.exp(torch.tensor([-1.0, 0.5, 2.0]) / 2.0)
    got = logits.detach()[0, [3, 7, 20]].softmax(dim=0)
    torch.testing.assert_close(got, expected / expected.sum(), atol=2e-3, rtol=0.0)
    assert value.item() == pytest.approx(0.25, abs=1e-2)


def test_a_training_repeats_and_writes_levels(tmp_path):
    for name in ("a", "b"):
        train(tmp_path / name)
    first, second = (read(tmp_path / name / "metrics.jsonl") for name in ("a", "b"))
    assert [record["gain"] for record in first] == [record["gain"] for record in second]
    assert len(first) == 3 and all(np.isfinite(record["divergence"]) for record in first)
    assert (tmp_path / "a/weights/v6-level-5/model.safetensors").read_bytes() == (
        tmp_path / "b/weights/v6-level-5/model.safetensors"
    ).read_bytes()


def test_the_network_moves_towards_what_playouts_find_better(tmp_path):
    """Its own choices are worth more, by playouts that it has not seen."""
    game = rules.game("pairing")
    many = ImproveOptions(hands=24, share=0.7, deals=8, minibatch=256, temperature=0.3, learning_rate=3e-3, passes=6)
    options = Options(method="improve", improve=many, iterations=8)
    PhasePpoTrainer(options).train(TrainingRun(out=tmp_path / "t", seed=4), lambda *_: None)
    record = read(tmp_path / "t" / "metrics.jsonl")
    assert record[-1]["gain"] > record[0]["gain"] + 0.5
    model = NETWORKS[2]()
    pool = ModelPool(tmp_path / "t" / "pool")
    worth = {}
    for version in (pool.versions[0], pool.versions[-1]):
        pool.load(version, model)
        rng, sums = np.random.default_rng(1), []
        for seed in range(1000, 1006):
            state = game.new_state(seed)
            while not state.terminal:
                view = state.view(state.to_act[0])
                legal = view.legal()
                if len(legal) > 1:
                    with torch.no_grad():
                        logits, _ = model(torch.from_numpy(encode([view])))
                    odds = logits[0].masked_fill(~torch.from_numpy(masks([legal]))[0], -torch.inf).softmax(dim=0)[legal]
                    leads = rule_returns(view, deals=16, seed=seed).mean(axis=0)
                    sums.append(float((odds.numpy() * (leads - leads.mean())).sum()))
                state.apply(state.to_act[0], int(rng.choice(legal)))
        worth[version] = np.mean(sums)
    assert worth[pool.versions[-1]] > worth[pool.versions[0]] + 0.3


def test_options_of_improvement_are_checked():
    for wrong in ({"deals": 0}, {"share": 0.0}, {"temperature": 0.0}):
        with pytest.raises(ValueError, match=r"must be|within"):
            ImproveOptions(**wrong)
