"""Retraining in another process: what is lost goes on from its checkpoint, and what cannot work is said."""

import pickle
import socket
import sys
from contextlib import nullcontext

import pytest

from bothost.errors import ConfigError, PluginError, StrategyNotFound, UsageError
from bothost.retrain import on_ray
from bothost.retrain.forget import forget
from bothost.retrain.job import Request, retrain
from bothost.retrain.on_ray import Trainee, learn_on_ray, until_learnt
from bothost.retrain.task import TRAINING, RetrainTask, learn
from bothost.store.query import HandQuery
from bothost.training.processes import ATTEMPTS, WorkerDied
from bothost.training.ray_cluster import connect
from bothost_phase_ppo.decide import PhasePpo

pytestmark = pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)

SILENT = lambda done, note="", total=None: None  # noqa: E731
REQUEST = Request(
    strategy="phase-ppo",
    query=HandQuery(strategies=("phase-ppo",), closed=True, scored=True),
    options={
        "iterations": 3,
        "environments": 4,
        "horizon": 8,
        "checkpoint_every": 1,
        "pool_every": 1,
        "ppo": {"epochs": 1, "minibatch": 32},
    },
)


class Dying:
    """Does a task in this process, and is lost after so many updates of its own."""

    def __init__(self, tools, task, updates):
        self.tools, self.task, self.updates = tools, task, updates
        self.progress = (0, "", None)
        self.stopped = False

    def look(self, seconds):
        def report(done, note="", total=None):
            self.progress = done, note, total
            if "samples" in note:
                self.updates -= 1
                if self.updates < 0:
                    raise WorkerDied("killed")

        return learn(self.tools.plugins, lambda: nullcontext(self.tools.store), self.task, report)

    def stop(self):
        self.stopped = True


def test_a_lost_training_goes_on_to_the_same_model_from_the_champion_that_it_began_with(tools, tmp_path):
    whole = retrain(tools, REQUEST, tmp_path / "whole", SILENT)
    begun = []

    def in_pieces(task, report):
        def start():
            begun.append(Dying(tools, task, 1))
            return begun[-1]

        return until_learnt(start, task, report)

    def killed(task, report):
        Dying(tools, task, 0).look(1.0)

    with pytest.raises(WorkerDied):  # the whole job is lost, and somebody else is champion when it is resumed
        retrain(tools, REQUEST, tmp_path / "pieces", SILENT, killed)
    before = tools.plugins.resolve("phase-ppo").model.sha256
    tools.registry.point(PhasePpo, "champion", "level-1", reason="")
    assert tools.plugins.resolve("phase-ppo").model.sha256 != before
    pieces = retrain(tools, REQUEST, tmp_path / "pieces", SILENT, in_pieces)
    assert pieces["sha256"] == whole["sha256"]
    assert len(begun) == 2 and all(running.stopped for running in begun)
    lineage = tools.registry.version("phase-ppo", pieces["version"]).lineage
    assert lineage["started_from"]["sha256"] == before
    encoded = tmp_path / "pieces" / "encoded"
    assert not encoded.exists()  # it would fill the disk, job by job
    encoded.mkdir()
    assert forget(tmp_path / "pieces", []) == 0 and encoded.is_dir()
    somebody = [bytes.fromhex(found.game_id) for found in _hands(tools, tmp_path / "pieces")][:1]
    assert forget(tmp_path / "pieces", somebody) > 0
    assert not encoded.exists() and (tmp_path / "pieces" / "start").is_dir()


def _hands(tools, job):
    from bothost.retrain.dataset import Dataset

    return Dataset(job / "dataset", "phase-ppo").trajectories("train")


class Hopeless:
    """Is lost at once, after leaving a checkpoint if asked to."""

    progress = (0, "", None)
    stopped = 0

    def __init__(self, folder, checkpoint=None):
        self.folder, self.checkpoint = folder, checkpoint

    def look(self, seconds):
        if self.checkpoint is not None:
            place = self.folder / TRAINING / f"checkpoint-{self.checkpoint:06d}"
            place.mkdir(parents=True)
            (place / "state.json").write_text("{}")
        raise WorkerDied("gone")

    def stop(self):
        Hopeless.stopped += 1


@pytest.mark.parametrize("checkpoints", [0, 7])
def test_a_training_that_never_comes_farther_is_given_up(tmp_path, checkpoints, any_settings):
    task = RetrainTask(request=REQUEST, folder=tmp_path, dataset_sha256="", start=None)
    begun = iter(Hopeless(tmp_path, n if n < checkpoints else None) for n in range(100))
    Hopeless.stopped = 0
    with pytest.raises(WorkerDied):
        until_learnt(lambda: next(begun), task, SILENT)
    assert Hopeless.stopped == ATTEMPTS + max(0, checkpoints - 1)


def test_a_watcher_that_ends_the_job_stops_the_training(tmp_path, any_settings, monkeypatch):
    class Endless(Dying):
        def look(self, seconds):
            self.progress = 3, "update", 9
            return None

    def report(done, note="", total=None):
        assert (done, note, total) == (3, "update", 9)
        raise KeyboardInterrupt

    running = Endless(None, None, 0)
    with pytest.raises(KeyboardInterrupt):
        until_learnt(
            lambda: running, RetrainTask(request=REQUEST, folder=tmp_path, dataset_sha256="", start=None), report
        )
    assert running.stopped and on_ray.LOOK_S > 0


def test_a_node_without_the_folder_or_with_another_dataset_says_so(tools, tmp_path, monkeypatch):
    monkeypatch.setattr(on_ray, "node_name", lambda: "node 10.0.0.7")
    config = tmp_path / "config.toml"
    config.write_text("")
    elsewhere_ = RetrainTask(request=REQUEST, folder=tmp_path / "nowhere", dataset_sha256="0", start=None)
    with pytest.raises(UsageError, match=r"node 10\.0\.0\.7 does not see .*nowhere") as caught:
        Trainee().learn(config, elsewhere_)
    assert "storage" in caught.value.advice

    def stop(task, report):
        other = RetrainTask(request=task.request, folder=task.folder, dataset_sha256="0" * 64, start=None)
        return learn(tools.plugins, lambda: nullcontext(tools.store), other, report)

    with pytest.raises(UsageError, match="not the dataset"):
        retrain(tools, REQUEST, tmp_path / "job", SILENT, stop)


def test_without_ray_or_a_cluster_it_is_said_at_once(tmp_path, any_settings, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UsageError, match=f"Ray cannot be reached at 127.0.0.1:{port}") as caught:
        connect(f"127.0.0.1:{port}", cores=1, device="cpu")
    assert "ray start --head" in caught.value.advice
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match="needs ray") as caught:
        task = RetrainTask(request=REQUEST, folder=tmp_path, dataset_sha256="", start=None)
        learn_on_ray("auto", tmp_path, 1, task, SILENT)
    assert "bothost[ray]" in caught.value.advice


@pytest.mark.parametrize(
    "error",
    [
        UsageError("no", advice="do"),
        StrategyNotFound("phase", advice="do"),
        PluginError("x", "broke", advice="do"),
        ConfigError("bad", file="config.toml", line=3, key="store.url", value=7, advice="do"),
    ],
)
def test_errors_arrive_in_another_process_as_they_were(error, any_settings):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)
