"""Training in many processes of this machine: nothing that is lost on the way changes what comes out."""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from bothost import TrainingRun, rules
from bothost.errors import UsageError
from bothost.training import fleet, metrics, ppo, roles
from bothost.training.fleet import Coordinator, FleetOptions
from bothost.training.loop import TrainerLoop
from bothost.training.ppo import PpoOptions
from bothost.training.processes import LocalProcesses, WorkerDied
from bothost.training.rollout import RolloutTask
from bothost_phase_ppo.model import PhaseNet

from .left_behind import same, steady, tensors

TASK = RolloutTask(rules.game("pairing"), "features", turns=381, reward_scale=0.1)
OPTIONS = FleetOptions(
    iterations=3,
    environments=4,
    horizon=8,
    pool_every=1,
    checkpoint_every=1,
    workers=2,
    ppo=PpoOptions(minibatch=16, chunk=16, epochs=1),
    timeout_s=60.0,
)
TWO = msgspec.structs.replace(OPTIONS, trainers=2)


class Stop(Exception):
    pass


def quiet(done, note="", total=None):
    return None


def train(out: Path, options=OPTIONS, resume=False, report=quiet):
    return fleet.train(options, TASK, PhaseNet, TrainingRun(out=out, seed=7, resume=resume), 1, report)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A training that nothing happened to."""
    out = tmp_path_factory.mktemp("whole")
    assert train(out / "run", TWO).samples == 3 * 2 * 4 * 8
    return out / "run"


def test_other_processes_play_the_same_task():
    found = rules.game("pairing", preset="four-phase")
    task = RolloutTask(
        found, "features", 381, "scores", reward_scale=0.5, win_points=3.0, rule_share=0.25, skip_forced=True
    )
    again = pickle.loads(pickle.dumps(roles.Setup(task, PhaseNet, OPTIONS))).task
    assert again.game.name == "pairing" and again.game.rules == found.rules
    assert msgspec.structs.replace(again, game=found) == task


def test_a_training_leaves_what_one_in_a_single_process_leaves(whole):
    records = metrics.read(whole / "metrics.jsonl")
    assert [record["iteration"] for record in records] == [1, 2, 3]
    assert {"entropy", "mean_lead", "opponent", "rollout_bytes", "update_seconds"} <= records[0].keys()
    assert sorted(path.name for path in (whole / "pool").iterdir()) == [f"v{v:06d}.safetensors" for v in range(4)]
    assert (whole / "training.png").is_file()


def test_interrupted_and_resumed_it_equals_one_that_was_not_and_one_trainer_makes_what_two_make(whole, tmp_path):
    def stop(done, note="", total=None):
        raise Stop

    with pytest.raises(Stop):
        train(tmp_path / "a", TWO, report=stop)
    assert train(tmp_path / "a", TWO, resume=True).iteration == 3
    assert same(whole, tmp_path / "a") and steady(whole) == steady(tmp_path / "a")
    train(tmp_path / "b")
    mine, theirs = tensors(whole), tensors(tmp_path / "b")
    for name in mine:
        np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-3, atol=2e-5, err_msg=name)


def test_what_is_learnt_beside_self_play_is_shared_as_rollouts_are(tmp_path):
    given = []

    def extra(model, options, rng, samples):
        assert samples == 4 * 8 and options == OPTIONS.ppo
        given.append(int(rng.integers(2**31)))
        generator = torch.Generator().manual_seed(given[-1])
        observations = torch.rand(5, TASK.observation_size, generator=generator)
        masks = torch.ones(5, TASK.game.num_actions, dtype=torch.bool)
        with torch.inference_mode():
            chosen = ppo.masked_log_probs(model(observations)[0], masks)[:, 3]
        some = torch.rand(2, 5, generator=generator)
        return ppo.Batch(observations, masks, torch.full((5,), 3), chosen, *some)

    for out, options in ((tmp_path / "two", TWO), (tmp_path / "one", OPTIONS)):
        options = msgspec.structs.replace(options, iterations=1)
        run = TrainingRun(out=out, seed=7)
        progress = fleet.train(options, TASK, PhaseNet, run, 1, quiet, extra=extra)
        assert progress.samples == 2 * 4 * 8, "of self-play alone"
    assert given[:2] == given[2:] and len(set(given)) == 2
    mine, theirs = tensors(tmp_path / "two"), tensors(tmp_path / "one")
    for name in mine:
        np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-3, atol=2e-5, err_msg=name)


def test_killed_processes_change_nothing(whole, tmp_path):
    """A worker, a trainer and the pool, each twice."""
    setup = roles.Setup(TASK, PhaseNet, TWO, timeout_s=60.0)
    run = TrainingRun(out=tmp_path / "run", seed=7)
    with LocalProcesses() as processes:
        coordinator = Coordinator(TWO, setup, run.seed, processes)
        victims = (coordinator.workers[1], coordinator.trainers.members[1], coordinator.pool)
        killed = []

        def kill(done, note="", total=None):
            if done < 3:
                killed.extend(victim.id for victim in victims)
                for process in killed[-3:]:
                    os.kill(process, signal.SIGKILL)

        assert TrainerLoop(TWO, run, 1, coordinator, kill).train().iteration == 3
        assert len(set(killed)) == 6 and not {victim.id for victim in victims} & set(killed)
    assert same(whole, tmp_path / "run") and steady(whole) == steady(tmp_path / "run")


class Reader:
    """What ``Early`` became in another process."""

    def __init__(self, setup):
        self.setup = setup

    def read(self):
        return self.setup, None


class Early:
    """Becomes the handler of Ctrl-C when a process reads it, before its role exists."""

    timeout_s = 60.0

    def __reduce__(self):
        return signal.getsignal, (signal.SIGINT,)


def test_processes_ignore_ctrl_c_from_their_first_moment():
    with LocalProcesses() as processes:
        assert processes.start(Reader, Early()).ask("read").receive() == signal.SIG_IGN


def test_when_all_is_over_no_process_is_left():
    setup = roles.Setup(TASK, PhaseNet, OPTIONS, timeout_s=60.0)
    with LocalProcesses() as processes:
        process = processes.start(roles.RolloutWorker, setup)
        running = process.id
        os.kill(running, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(running, 0)


def test_answers_that_nobody_waited_for_are_dropped_and_errors_come_through():
    setup = roles.Setup(TASK, PhaseNet, OPTIONS, timeout_s=60.0)
    model = {name: tensor.numpy() for name, tensor in PhaseNet().state_dict().items()}
    with LocalProcesses() as processes:
        pool = processes.start(roles.Pool, setup)
        pool.ask("publish", 1, model)
        answer = pool.ask("publish", 2, model)
        assert answer.receive() == 2 and answer.fetch().keys() == model.keys()
        broken = model | {"heads.bias": np.full_like(model["heads.bias"], np.nan)}
        with pytest.raises(ValueError, match="version 3 of the model is broken at heads"):
            pool.ask("publish", 3, broken).receive()
        os.kill(pool.id, signal.SIGKILL)
        with pytest.raises(WorkerDied, match="Pool"):
            pool.ask("publish", 4, model).receive()
        pool.restart()
        assert pool.ask("publish", 4, model).receive() == 4


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"trainers": 3}, "3 trainers cannot share 2 workers"),
        ({"workers": 17}, "17 workers"),
        ({"runner": "ray", "workers": 0}, "needs workers"),
        ({"iterations": None}, "nothing limits this training"),
    ],
)
def test_what_cannot_be_is_refused_before_any_process_starts(tmp_path, wrong, told):
    with pytest.raises(UsageError, match=told):
        train(tmp_path, msgspec.structs.replace(OPTIONS, **wrong))
