"""Training on a Ray cluster of two nodes on this machine's loopback gives the same bits as local processes.

``tests/retrain/test_on_ray.py`` has the short test, which shares its cluster with a retraining.
"""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path

import pytest
import safetensors.torch
import torch

from bothost.training import checkpoint

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")

SCRIPT = textwrap.dedent(
    """
    import os, signal, sys, warnings
    from pathlib import Path
    import msgspec, ray
    from ray.cluster_utils import Cluster
    from bothost import TrainingRun, rules
    from bothost.training import fleet, roles
    from bothost.training.fleet import Coordinator, FleetOptions
    from bothost.training.loop import TrainerLoop
    from bothost.training.ppo import PpoOptions
    from bothost.training.ray_cluster import LOOPBACK
    from bothost.training.ray_processes import RayProcesses
    from bothost.training.rollout import RolloutTask
    from bothost_phase_ppo.model import PhaseNet

    TASK = RolloutTask(rules.game("pairing"), "features", turns=381, reward_scale=0.1)
    OPTIONS = FleetOptions(
        iterations=2, environments=4, horizon=8, pool_every=1, checkpoint_every=1, workers=2, trainers=2,
        ppo=PpoOptions(minibatch=16, chunk=16, epochs=1), timeout_s=120.0,
    )

    def two_nodes():
        head = {"num_cpus": 2, "node_ip_address": LOOPBACK, "include_dashboard": False, "object_store_memory": 2**27}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        other = cluster.add_node(num_cpus=3, node_ip_address=LOOPBACK, object_store_memory=2**27)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        return cluster, other

    def train(out, at_update=lambda coordinator, update: None, options=OPTIONS):
        setup = roles.Setup(TASK, PhaseNet, options, timeout_s=options.timeout_s)
        with RayProcesses(None, cores=options.workers + options.trainers, device="cpu") as processes:
            coordinator = Coordinator(options, setup, 7, processes)
            report = lambda done, *_: at_update(coordinator, done)
            loop = TrainerLoop(options, TrainingRun(out=Path(out), seed=7), 1, coordinator, report)
            assert loop.train().iteration == 2

    def kill(process):
        os.kill(process.id, signal.SIGKILL)
    """
)


def assert_same(one: Path, other: Path) -> None:
    for name in (checkpoint.MODEL, checkpoint.OPTIMIZER):
        mine, theirs = (safetensors.torch.load_file(checkpoint.latest(out) / name) for out in (one, other))
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[key], theirs[key]) for key in mine)


@pytest.mark.long
def test_killed_processes_change_nothing(tmp_path, run_ray_script):
    """A worker, one of two trainers and the pool."""
    run_ray_script(
        SCRIPT,
        """
        if __name__ == "__main__":
            cluster, _ = two_nodes()

            def at_update(coordinator, update):
                if update == 1:
                    for process in (coordinator.workers[1], coordinator.trainers.members[1], coordinator.pool):
                        kill(process)

            train("cluster", at_update)
            ray.shutdown()
            cluster.shutdown()
            fleet.train(OPTIONS, TASK, PhaseNet, TrainingRun(out=Path("local"), seed=7), 1, lambda *_: None)
        """,
    )
    assert_same(tmp_path / "cluster", tmp_path / "local")


@pytest.mark.long
def test_a_lost_node_changes_nothing(tmp_path, run_ray_script):
    run_ray_script(
        SCRIPT,
        """
        if __name__ == "__main__":
            cluster, other = two_nodes()

            def at_update(coordinator, update):
                if update == 1:
                    cluster.add_node(num_cpus=3, node_ip_address=LOOPBACK, object_store_memory=2**27)
                    cluster.remove_node(other, allow_graceful=False)

            train("cluster", at_update)
            ray.shutdown()
            cluster.shutdown()
            fleet.train(OPTIONS, TASK, PhaseNet, TrainingRun(out=Path("local"), seed=7), 1, lambda *_: None)
        """,
    )
    assert_same(tmp_path / "cluster", tmp_path / "local")


@pytest.mark.long
def test_without_an_address_ray_is_started_here_and_stopped(tmp_path, run_ray_script):
    run_ray_script(
        SCRIPT,
        """
        if __name__ == "__main__":
            options = msgspec.structs.replace(OPTIONS, runner="ray", trainers=1)
            fleet.train(options, TASK, PhaseNet, TrainingRun(out=Path("ray"), seed=7), 1, lambda *_: None)
            assert not ray.is_initialized()
        """,
    )


@pytest.mark.long
def test_actors_report_to_the_trackers_of_the_coordinator(run_ray_script, monkeypatch):
    """A worker process of a cluster does not inherit the environment of who connects."""
    monkeypatch.delenv("BOTHOST_TRACKERS", raising=False)
    run_ray_script(
        SCRIPT,
        """
        from bothost.training.ray_cluster import connect

        if __name__ == "__main__":
            head = {"num_cpus": 1, "node_ip_address": LOOPBACK, "include_dashboard": False}
            cluster = Cluster(initialize_head=True, head_node_args=head | {"object_store_memory": 2**27})
            os.environ["BOTHOST_TRACKERS"] = "mlflow"
            assert connect(cluster.address, cores=1, device="cpu")
            found = ray.get(ray.remote(lambda: os.environ.get("BOTHOST_TRACKERS")).remote(), timeout=60)
            assert found == "mlflow", found
            ray.shutdown()
            cluster.shutdown()
        """,
    )
