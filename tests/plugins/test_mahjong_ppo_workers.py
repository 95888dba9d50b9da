"""mahjong-ppo in several processes: they learn as one, and what dies on the way changes nothing."""

import os
import signal

import msgspec
import numpy as np
import pytest
import safetensors.torch
import torch

from bothost import TrainingRun, rules
from bothost.training import distributed
from bothost.training.loop import Iteration, TrainerLoop
from bothost.training.metrics import FILE, read
from bothost.training.model_pool import ModelPool
from bothost.training.ppo import PpoOptions
from bothost.training.processes import LocalProcesses
from bothost_mahjong_ppo.encode import VERSION
from bothost_mahjong_ppo.learn import MahjongLearner
from bothost_mahjong_ppo.options import Options
from bothost_mahjong_ppo.selfplay import CURRICULUM, Opponents, play
from bothost_mahjong_ppo.vine import BranchOptions
from bothost_mahjong_ppo.workers import SharedLearner

SHARED = Options(
    workers=2,
    iterations=3,
    first_stage=3,
    hands=4,
    checkpoint_every=1,
    pool_every=1,
    ppo=PpoOptions(epochs=1, minibatch=64),
)


def checkpoint(out):
    return safetensors.torch.load_file(sorted(out.glob("checkpoint-*"))[-1] / "model.safetensors")


def test_processes_learn_as_one_and_a_lost_one_changes_nothing(tmp_path):
    def train(out, kill=False, resume=False, stop=0):
        run = TrainingRun(out=out, seed=5, resume=resume)
        with LocalProcesses() as processes:
            learner = SharedLearner(SHARED, run.seed, processes)

            def report(done, note="", total=None):
                if kill and done == 1:
                    os.kill(learner.trainers.members[1].id, signal.SIGKILL)
                if done == stop:
                    raise InterruptedError

            TrainerLoop(SHARED, run, VERSION, learner, report).train()

    train(tmp_path / "whole")
    records = read(tmp_path / "whole" / FILE)
    assert [record["stage"] for record in records] == [3.0] * 3
    assert records[0]["samples"] > 2 * 4 * 5, "eight hands"
    with pytest.raises(InterruptedError):
        train(tmp_path / "lost", kill=True, stop=2)
    train(tmp_path / "lost", resume=True)
    mine, theirs = checkpoint(tmp_path / "whole"), checkpoint(tmp_path / "lost")
    assert all(torch.equal(mine[key], theirs[key]) for key in mine)
    assert [of["mean_score"] for of in read(tmp_path / "lost" / FILE)] == [of["mean_score"] for of in records]


def test_two_processes_make_the_update_of_their_hands_together(tmp_path):
    """As one process that has the hands of both."""
    shared = msgspec.structs.replace(SHARED, first_stage=0, adaptive=False)
    pool = ModelPool(tmp_path / "pool")
    with LocalProcesses() as processes:
        learner = SharedLearner(shared, 5, processes)
        alone = MahjongLearner(shared, 5)
        orders, played = [], []
        for worker in range(2):
            rng = np.random.default_rng([5, 1, worker])
            seed, order_seed = int(rng.integers(2**62)), int(rng.integers(2**63))
            hands = play(rules.game("mahjong"), alone.model, Opponents(CURRICULUM[0]), 4, seed, shared.ppo, share=1.0)
            played.append(hands.batch)
            orders.append(torch.Generator().manual_seed(order_seed))
        alone.set_rate(0.0)
        distributed.update(alone.model, alone.optimizer, played, shared.ppo, orders, distributed.Group())
        learner.iterate(Iteration(1, 0.0, np.random.default_rng(0), pool))
    for (name, mine), theirs in zip(alone.model.named_parameters(), learner.model.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=2e-5, msg=name)


def test_options_that_processes_cannot_share_are_refused():
    with pytest.raises(ValueError, match="leave out branches"):
        msgspec.structs.replace(SHARED, branches=BranchOptions(candidates=2))
    with pytest.raises(ValueError, match="at least 65"):
        msgspec.structs.replace(SHARED, workers=65)
