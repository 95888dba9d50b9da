import errno
import json
import os
import resource
import shutil
import signal
from pathlib import Path

import msgspec
import numpy as np
import pytest
import safetensors.torch
import torch

from bothost import Model, ModelError, TrainingRun, rules
from bothost.errors import UsageError
from bothost.training import checkpoint, loop, metrics, model_pool, ppo
from bothost.training.model_pool import ModelPool
from bothost.training.ppo import PpoOptions
from bothost.training.publish import lineage_of
from bothost.training.rollout import RolloutTask, SelfPlayOptions
from bothost_phase_ppo.train import SelfPlayPpo, train

from .left_behind import same, steady

TASK = RolloutTask(rules.game("pairing"), "features", turns=381, reward_scale=0.1)
OPTIONS = SelfPlayOptions(
    iterations=4, environments=8, horizon=16, pool_every=1, checkpoint_every=2, ppo=PpoOptions(minibatch=64, chunk=32)
)


class Net(torch.nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = torch.nn.Linear(384, width)
        self.heads = torch.nn.Linear(width, 59)

    def forward(self, x):
        out = self.heads(self.body(x).relu())
        return out[:, :58], out[:, 58]


def run(out: Path, options=OPTIONS, resume=False, seed=7, report=lambda done, note="", total=None: None, start=None):
    torch.manual_seed(123 if resume else 5)  # whatever happened before in the process must not matter
    return train(options, TASK, Net, TrainingRun(out=out, seed=seed, resume=resume, start=start), report)


class Stop(Exception):
    pass


def stop_at(iteration):
    def report(done, note="", total=None):
        if done == iteration:
            raise Stop

    return report


@pytest.mark.parametrize("killed_after", [2, 3])
def test_a_training_that_was_interrupted_and_resumed_equals_one_that_was_not(tmp_path, killed_after):
    run(tmp_path / "whole")
    with pytest.raises(Stop):
        run(tmp_path / "parts", report=stop_at(killed_after))
    progress = run(tmp_path / "parts", resume=True)
    assert progress.iteration == 4 and progress.samples == 4 * 8 * 16
    assert same(tmp_path / "whole", tmp_path / "parts")
    assert steady(tmp_path / "whole") == steady(tmp_path / "parts")
    assert ModelPool(tmp_path / "parts" / "pool").versions == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("steps", [OPTIONS.ppo, PpoOptions(minibatch=128, epochs=1, chunk=32)], ids=["many", "one"])
def test_a_training_that_diverges_ends_and_leaves_only_sound_models(tmp_path, steps):
    """After one step the parameters are huge, but still numbers."""
    wild = msgspec.structs.replace(OPTIONS, learning_rate=1e30, checkpoint_every=1, ppo=steps)
    with pytest.raises(ModelError, match="diverged in iteration 1: its parameters"):
        run(tmp_path, wild)
    for file in tmp_path.rglob("*.safetensors"):
        assert all((tensor.abs() < 1e6).all() for tensor in safetensors.torch.load_file(file).values()), file
    assert checkpoint.latest(tmp_path) is not None


def test_a_loss_that_is_no_number_ends_the_training_before_it_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(ppo, "explained_variance", lambda *_: float("nan"))
    with pytest.raises(ModelError, match="diverged in iteration 1: its figures"):
        run(tmp_path)
    assert (tmp_path / "metrics.jsonl").read_text() == ""


def test_a_warm_start_that_diverges_is_told(tmp_path):
    class Broken(SelfPlayPpo):
        def warm_start(self, report):
            torch.nn.init.constant_(next(self.model.parameters()), float("nan"))
            return {}

    learner = Broken(OPTIONS, TASK, Net, seed=7)
    with pytest.raises(ModelError, match="diverged in iteration 0"):
        loop.TrainerLoop(OPTIONS, TrainingRun(out=tmp_path / "new", seed=7), 1, learner, lambda *_: None)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_training_leaves_metrics_a_plot_and_the_last_two_checkpoints(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "plot", metrics.plot)
    seen = []
    run(tmp_path, report=lambda done, note="", total=None: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    records = metrics.read(tmp_path / "metrics.jsonl")
    assert [record["iteration"] for record in records] == [1, 2, 3, 4]
    assert {"entropy", "approx_kl", "mean_lead", "samples", "rollout_steps_per_s", "opponent"} <= records[0].keys()
    assert (tmp_path / "training.png").read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in sorted(tmp_path.glob("checkpoint-*"))] == ["checkpoint-000002", "checkpoint-000004"]
    assert not list(tmp_path.rglob("*.pt")) and not list(tmp_path.rglob("*.pkl"))


def test_training_goes_on_beyond_its_first_end_with_more_iterations(tmp_path):
    run(tmp_path)
    longer = msgspec.structs.replace(OPTIONS, iterations=5)
    assert run(tmp_path, longer, resume=True).iteration == 5


def test_what_cannot_be_begun_or_resumed_is_refused_with_the_fix(tmp_path):
    with pytest.raises(UsageError, match="no checkpoint"):
        run(tmp_path / "none", resume=True)
    (tmp_path / "killed" / "pool").mkdir(parents=True)  # before its first checkpoint
    with pytest.raises(UsageError, match="no checkpoint") as refused:
        run(tmp_path / "killed", resume=True)
    assert refused.value.advice.startswith("empty it or name another folder")
    with pytest.raises(UsageError, match="nothing limits this training"):
        run(tmp_path / "endless", msgspec.structs.replace(OPTIONS, iterations=None))
    short = msgspec.structs.replace(OPTIONS, iterations=1)
    run(tmp_path / "a", short)
    with pytest.raises(UsageError, match="not empty"):
        run(tmp_path / "a", short)
    with pytest.raises(UsageError, match="started with seed 7"):
        run(tmp_path / "a", OPTIONS, resume=True, seed=8)
    wider = TrainingRun(out=tmp_path / "a", seed=7, resume=True)
    with pytest.raises(ModelError, match="is of another network than these options make") as refused:
        train(OPTIONS, TASK, lambda: Net(32), wider, lambda *_: None)
    assert "remove" not in refused.value.advice, "earlier checkpoints fit no better"
    state = checkpoint.latest(tmp_path / "a") / checkpoint.STATE
    good = state.read_text()
    state.write_text(json.dumps(json.loads(good) | {"encoder_version": 2}))
    with pytest.raises(ModelError, match="encoder version 2, this is 1"):
        run(tmp_path / "a", OPTIONS, resume=True)
    state.write_text("{")
    with pytest.raises(ModelError, match="cannot be read"):
        run(tmp_path / "a", OPTIONS, resume=True)


def test_a_training_resumes_from_where_it_began(tmp_path):
    """Its network and its learning rate may be those of a version to begin with, and its lineage names that."""
    version, other = (Model("phase-ppo", name, name * 64, None) for name in "ab")
    begun, fresh, once = tmp_path / "begun", tmp_path / "fresh", msgspec.structs.replace(OPTIONS, iterations=1)
    run(begun, once, start=version)
    run(fresh, once)
    with pytest.raises(UsageError, match="started with phase-ppo:a") as caught:
        run(begun, once, resume=True)
    assert caught.value.advice == "resume it with the option start=a"
    with pytest.raises(UsageError, match="started with fresh parameters"):
        run(fresh, once, resume=True, start=version)
    progress = run(begun, once, resume=True, start=other)  # the version may be gone, and nothing is read of it
    resumed = TrainingRun(out=begun, seed=7, resume=True, start=other)
    assert lineage_of(resumed, progress, 1, {})["start"] == version.label
    old = begun / "checkpoint-000001" / "state.json"
    old.write_text(json.dumps({k: v for k, v in json.loads(old.read_text()).items() if k != "start"}))
    assert run(begun, once, resume=True).start is None  # of an earlier release


def test_a_damaged_opponent_is_named(tmp_path):
    with pytest.raises(Stop):
        run(tmp_path, report=stop_at(2))
    for file in (tmp_path / "pool").iterdir():
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ModelError, match=r"v00000.\.safetensors cannot be used here"):
        run(tmp_path, resume=True)


def test_a_training_without_its_pool_says_so(tmp_path):
    run(tmp_path, msgspec.structs.replace(OPTIONS, iterations=1))
    shutil.rmtree(tmp_path / "pool")
    with pytest.raises(ModelError, match="pool has no version"):
        run(tmp_path, resume=True)


def test_an_unfinished_checkpoint_is_passed_over(tmp_path):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    checkpoint.save(tmp_path, checkpoint.Progress(iteration=3), model, optimizer)
    (tmp_path / ".checkpoint-000009.1").mkdir()
    (tmp_path / "checkpoint-000009").mkdir()
    assert checkpoint.latest(tmp_path).name == "checkpoint-000003"


def test_a_full_disk_is_an_error_of_the_disk_and_leaves_nothing_once_there_is_room(tmp_path):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    checkpoint.save(tmp_path, checkpoint.Progress(iteration=3), model, optimizer)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limit[1]))
    try:
        with pytest.raises(OSError, match=r"model.safetensors cannot be written"):
            checkpoint.save(tmp_path, checkpoint.Progress(iteration=4), model, optimizer)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, handler)
    assert checkpoint.latest(tmp_path).name == "checkpoint-000003"
    checkpoint.save(tmp_path, checkpoint.Progress(iteration=4), model, optimizer)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-000003", "checkpoint-000004"]


def test_the_newest_checkpoint_is_that_of_most_iterations_however_long_its_number(tmp_path):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    for iteration in (999_998, 999_999, 1_000_000):
        checkpoint.save(tmp_path, checkpoint.Progress(iteration=iteration), model, optimizer)
    assert checkpoint.latest(tmp_path).name == "checkpoint-1000000"
    assert (tmp_path / "checkpoint-999999").exists() and not (tmp_path / "checkpoint-999998").exists()


def test_the_pool_draws_the_newest_as_often_as_asked_and_the_others_equally(tmp_path):
    pool = ModelPool(tmp_path)
    for version in range(4):
        pool.add(version, Net())
    rng = np.random.default_rng(0)
    shares = np.bincount([pool.draw(rng, 0.4) for _ in range(4000)]) / 4000
    assert shares == pytest.approx([0.15, 0.15, 0.15, 0.55], abs=0.03)
    pool.forget_after(1)
    assert pool.versions == [0, 1]


@pytest.mark.parametrize("name", ["vfoo.safetensors", "v1.safetensors", "v-00001.safetensors"])
def test_other_files_in_the_pool_are_no_versions(tmp_path, name):
    pool = ModelPool(tmp_path)
    pool.add(0, Net())
    pool.add(1_000_000, Net())
    (tmp_path / name).touch()
    assert pool.versions == [0, 1_000_000]


@pytest.mark.parametrize("field", ["iteration", "samples", "seconds"])
def test_a_checkpoint_of_negative_progress_is_refused(tmp_path, field):
    model = Net()
    saved = checkpoint.save(tmp_path, checkpoint.Progress(), model, torch.optim.Adam(model.parameters()))
    state = saved / checkpoint.STATE
    state.write_text(json.dumps(json.loads(state.read_text()) | {field: -1}))
    with pytest.raises(ModelError, match="cannot be read"):
        checkpoint.load(saved, model, torch.optim.Adam(model.parameters()))


@pytest.mark.parametrize("change", [{"0.exp_avg": torch.zeros(3)}, {"9.exp_avg": torch.zeros(16)}])
def test_an_optimizer_of_other_parameters_is_refused(tmp_path, change):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    sum(parameter.sum() for parameter in model.parameters()).backward()
    optimizer.step()
    saved = checkpoint.save(tmp_path, checkpoint.Progress(), model, optimizer)
    checkpoint.load(saved, model, torch.optim.Adam(model.parameters()))
    checkpoint.save_tensors(checkpoint.optimizer_tensors(optimizer) | change, saved / checkpoint.OPTIMIZER)
    with pytest.raises(ModelError, match="its optimizer is of other parameters") as refused:
        checkpoint.load(saved, model, torch.optim.Adam(model.parameters()))
    assert "remove this checkpoint" in refused.value.advice


def test_metrics_end_where_a_damaged_disk_left_no_text(tmp_path):
    file = tmp_path / "metrics.jsonl"
    file.write_bytes(b'{"iteration": 1}\n{"iteration": 2, "lo\xff\xfe": 1}\n{"iteration": 3}\n')
    assert metrics.read(file) == [{"iteration": 1}]
    with pytest.raises(ModelError, match="has no record of update 3"):
        metrics.read_until(file, 3)


def test_what_a_full_disk_left_of_a_version_is_gone_with_the_next_attempt(tmp_path, monkeypatch):
    def full(tensors, file):
        file.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    pool = ModelPool(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(model_pool, "save_tensors", full)
        patch.setattr(os, "getpid", lambda: 1)  # the next attempt is another process
        pool.add(1, Net())
    pool.add(1, Net())
    assert [path.name for path in tmp_path.iterdir()] == ["v000001.safetensors"]


def test_levels_are_the_versions_after_so_many_samples(tmp_path):
    run(tmp_path)
    version, progress = loop.version_at(tmp_path, 3 * 8 * 16)
    assert version == 3 and progress.samples == 3 * 8 * 16
    assert loop.version_at(tmp_path, 0.0)[0] == 0
    assert loop.version_at(tmp_path, 1e9)[0] == 4
    assert loop.version_at(tmp_path, progress.seconds, "seconds")[0] == 3


def test_a_training_is_taken_up_where_it_was_left_and_begun_where_no_checkpoint_is(tmp_path):
    begun = checkpoint.take_up(tmp_path / "run", seed=7, minutes=2.0, command="x")
    assert begun == TrainingRun(out=tmp_path / "run", seed=7, minutes=2.0, command="x")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.jsonl").write_text("{}")  # killed before the first checkpoint
    assert not checkpoint.take_up(tmp_path / "run", seed=7).resume
    checkpoint.check_empty(tmp_path / "run")
    run(tmp_path / "run", msgspec.structs.replace(OPTIONS, iterations=1))
    kept = sorted(tmp_path.rglob("*"))
    assert checkpoint.take_up(tmp_path / "run", seed=7).resume and sorted(tmp_path.rglob("*")) == kept


@pytest.mark.parametrize(
    "wrong", [{"iterations": 0}, {"pool_every": 0}, {"checkpoint_every": 0}, {"horizon": 0}, {"newest_share": 1.5}]
)
def test_options_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        msgspec.convert(wrong, SelfPlayOptions)


def test_a_training_that_was_killed_before_its_first_update_resumes_from_its_start(tmp_path):
    """The warm start is in the first checkpoint and is not repeated."""
    run(tmp_path / "whole")
    learner = Counting(OPTIONS, TASK, Net, 7)
    loop.TrainerLoop(OPTIONS, TrainingRun(out=tmp_path / "parts", seed=7), 1, learner, lambda *_: None)
    assert learner.warm_starts == 1
    again = Counting(OPTIONS, TASK, Net, 7)
    resumed = TrainingRun(out=tmp_path / "parts", seed=7, resume=True)
    progress = loop.TrainerLoop(OPTIONS, resumed, 1, again, lambda *_: None).train()
    assert again.warm_starts == 0 and progress.options["warm"] == 1
    assert same(tmp_path / "whole", tmp_path / "parts")


def test_evaluations_do_not_count_as_training_time(tmp_path):
    """Every collect, update and evaluation takes one second of a clock that stands still otherwise."""
    clock = Ticking()
    learner = Timed(OPTIONS, TASK, Net, 7, clock)
    made = loop.TrainerLoop(OPTIONS, TrainingRun(out=tmp_path, seed=7), 1, learner, lambda *_: None, clock=clock)
    assert made.train().seconds == 4 * 2
    assert learner.last == [False, False, False, True]


class Counting(SelfPlayPpo):
    warm_starts = 0

    def warm_start(self, report):
        self.warm_starts += 1
        return {"warm": 1}


class Ticking:
    now = 0.0

    def __call__(self):
        return self.now


class Timed(SelfPlayPpo):
    def __init__(self, options, task, build, seed, ticking):
        super().__init__(options, task, build, seed)
        self.ticking, self.last = ticking, []

    def collect(self, iteration):
        self.ticking.now += 1.0
        return super().collect(iteration)

    def update(self, iteration, collected):
        self.ticking.now += 1.0
        return super().update(iteration, collected)

    def evaluate(self, iteration, *, last):
        self.ticking.now += 1.0
        self.last.append(last)
        return {"evaluated": 1.0}
