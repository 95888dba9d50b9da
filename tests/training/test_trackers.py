"""Trackers: which are used, what they get, and that a broken one does not stop a training."""

from __future__ import annotations

import os
import types

import pytest
import structlog

from bothost.cli import main
from bothost.errors import UsageError
from bothost.training import trackers
from bothost.training.metrics import Metrics, read


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch):
    monkeypatch.delenv(trackers.VARIABLE, raising=False)
    yield
    os.environ.pop(trackers.VARIABLE, None)


@pytest.fixture
def wandb(monkeypatch):
    """A stand-in with the calls of the real package that are used."""
    calls = []
    run = types.SimpleNamespace(
        log=lambda figures, step: calls.append((step, figures)), finish=lambda: calls.append("finished")
    )

    def init(**options):
        calls.append(options)
        return run

    module = types.ModuleType("wandb")
    module.init = init
    monkeypatch.setitem(__import__("sys").modules, "wandb", module)
    return calls


def test_wandb_gets_every_iteration_and_a_resumed_training_continues_its_run(tmp_path, wandb, monkeypatch):
    monkeypatch.setenv(trackers.VARIABLE, "wandb")
    for after in (0, 1):
        with Metrics(tmp_path, after=after) as metrics:
            metrics.write(after + 1, {"loss": 0.5})
    first, one, finished, again, two, _ = wandb
    assert (one, two, finished) == ((1, {"loss": 0.5}), (2, {"loss": 0.5}), "finished")
    assert first["id"] == again["id"]
    assert first["dir"] == str(tmp_path)
    assert len(read(tmp_path / "metrics.jsonl")) == 2


def test_a_tracker_that_fails_is_dropped_and_the_training_continues(tmp_path, wandb, monkeypatch):
    monkeypatch.setenv(trackers.VARIABLE, "wandb")

    def lost(figures, step):
        raise ConnectionError("no network")

    with structlog.testing.capture_logs() as logs, Metrics(tmp_path) as metrics:
        import wandb as module

        module.init().log = lost
        for iteration in (1, 2, 3):
            metrics.write(iteration, {"loss": 0.5})
    assert [entry["error"] for entry in logs if entry["event"] == "tracker_failed"] == ["ConnectionError: no network"]
    assert len(read(tmp_path / "metrics.jsonl")) == 3


def test_tensorboard_is_the_default_and_an_empty_list_means_nothing(tmp_path):
    pytest.importorskip("tensorboard")
    with Metrics(tmp_path / "default") as metrics:
        metrics.write(1, {"loss": 0.5})
    assert list((tmp_path / "default" / "tensorboard").iterdir())
    trackers.choose(())
    with Metrics(tmp_path / "none") as metrics:
        metrics.write(1, {"loss": 0.5})
    assert {path.name for path in (tmp_path / "none").iterdir()} == {"metrics.jsonl"}


def test_a_tracker_that_is_not_installed_is_named_before_the_training(monkeypatch):
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="mlflow is not installed") as caught:
        trackers.choose(("mlflow",))
    assert "bothost[trackers]" in caught.value.advice


def test_the_configuration_chooses_and_lint_knows_the_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.toml").write_text('[training]\ntrackers = ["tensorbord"]\n')
    assert main(["config", "lint"]) == 78
    assert "tensorboard" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.filterwarnings("default")
def test_wandb_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv(trackers.VARIABLE, "wandb")
    with structlog.testing.capture_logs() as logs, Metrics(tmp_path) as metrics:
        metrics.write(1, {"loss": 0.5})
    assert not logs
    assert list((tmp_path / "wandb").glob("offline-run-*"))


@pytest.mark.long
@pytest.mark.filterwarnings("default")  # those inside MLflow are not ours
def test_mlflow_offline(tmp_path, monkeypatch):
    tracking = pytest.importorskip("mlflow.tracking")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv(trackers.VARIABLE, "mlflow")
    with structlog.testing.capture_logs() as logs:
        for after in (0, 1):
            with Metrics(tmp_path, after=after) as metrics:
                metrics.write(after + 1, {"loss": 0.5})
    assert not logs
    client = tracking.MlflowClient(f"sqlite:///{tmp_path}/mlruns.db")
    experiment = client.get_experiment_by_name("bothost")
    (run,) = client.search_runs([experiment.experiment_id])
    assert [metric.step for metric in client.get_metric_history(run.info.run_id, "loss")] == [1, 2]
