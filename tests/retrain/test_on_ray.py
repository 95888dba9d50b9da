"""Trainings on Ray give the same models as on this machine, although their processes are killed on the way."""

import importlib.util
import json
import random

import pytest

from bothost import rules
from bothost.plugins import Plugins
from bothost.store import Store, consent

from ..training.test_ray_processes import SCRIPT as FLEET
from ..training.test_ray_processes import assert_same
from .conftest import fill, hand

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")

SCRIPT = """
    import threading, time
    from pathlib import Path
    import psutil
    from ray.cluster_utils import Cluster
    from bothost.cli import main

    def retrain(name, out, options, *words):
        given = [word for option in options for word in ("--option", option)]
        assert main(["retrain", name, "--out", out, *given, *words, "--json"]) == 0

    def is_the_training(process):
        return any(word.startswith("ray::Trainee") for word in process.info["cmdline"] or ())

    def kill_the_training(out):
        while (found := next(filter(is_the_training, psutil.process_iter(["cmdline"])), None)) is None:
            time.sleep(0.05)
        while not list(Path(out).glob("training/checkpoint-*[1-9]/state.json")):
            time.sleep(0.005)
        found.kill()
        Path("killed").touch()

    def on_a_cluster(cpus=2):
        head = {"num_cpus": cpus, "node_ip_address": "127.0.0.1", "include_dashboard": False}
        return Cluster(initialize_head=True, head_node_args=head | {"object_store_memory": 2**27})
    """
TINY = {
    "deep-mc": [
        "iterations=3",
        "checkpoint_every=1",
        "hands=24",
        "minibatch=128",
        "evaluation_deals=8",
        "sizes.trunk=[32,16]",
        "sizes.head=[16,16]",
        "sizes.bidder_trunk=[16]",
        "sizes.bidder_head=[16]",
    ],
    "fm-clone": ["game=othello"],
    "doudizhu-mcts": ["epochs=1.0", "positions=16", "held_out=0.3", "checkpoint_every=20"],
    "mahjong-ppo": ["iterations=2", "hands=2", "checkpoint_every=1", "ppo.epochs=1", "ppo.minibatch=64"],
}


@pytest.fixture
def log(settings, tmp_path):
    """A log of some hands, and the configuration of its database."""
    (tmp_path / "config.toml").write_text('[host]\ndata_dir = "var"\n[store]\nurl = "sqlite:///bothost.db"\n')
    plugins = Plugins.load()

    def played(address, game, count, **options):
        strategy = plugins.resolve(address, options).make()
        fill(settings, tmp_path, [hand(rules.game(game), strategy, s, random.Random(s)) for s in range(count)])
        with Store.open(settings) as store:
            consent.record(store, "home", "ada", granted=True)

    return played


def model(folder):
    return json.loads((folder / "result.json").read_text())["sha256"]


@pytest.mark.timeout(600)
def test_trainings_that_are_killed_on_a_cluster_end_as_those_of_this_machine(log, tmp_path, run_ray_script):
    """A worker of phase-ppo is killed, and the whole retraining of deep-mc."""
    log("deep-mc:level-1", "doudizhu", 6)
    run_ray_script(
        FLEET,
        SCRIPT,
        f"""
        if __name__ == "__main__":
            def at_update(coordinator, update):
                if update == 1:
                    kill(coordinator.workers[0])

            one = msgspec.structs.replace(OPTIONS, workers=1, trainers=1)
            options = {TINY["deep-mc"]!r}
            cluster = on_a_cluster(cpus=3)
            ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
            train("cluster-fleet", at_update, one)
            killing = threading.Thread(target=kill_the_training, args=("cluster",))
            killing.start()
            retrain("deep-mc", "cluster", options, "--fresh", "--ray", cluster.address)
            killing.join()
            ray.shutdown()
            cluster.shutdown()
            fleet.train(one, TASK, PhaseNet, TrainingRun(out=Path("fleet"), seed=7), 1, lambda *_: None)
            retrain("deep-mc", "here", options, "--fresh")
        """,
    )
    assert_same(tmp_path / "cluster-fleet", tmp_path / "fleet")
    assert (tmp_path / "killed").exists()
    assert model(tmp_path / "cluster") == model(tmp_path / "here")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_killed_training_with_a_worker_ends_as_one_of_this_machine(log, tmp_path, run_ray_script):
    """The training is an actor, and so is its worker. On this machine the worker is a process."""
    log("deep-mc:level-1", "doudizhu", 6)
    run_ray_script(
        SCRIPT,
        f"""
        if __name__ == "__main__":
            options = {[*TINY["deep-mc"], "workers=1"]!r}
            cluster = on_a_cluster()
            killing = threading.Thread(target=kill_the_training, args=("cluster",))
            killing.start()
            retrain("deep-mc", "cluster", [*options, "runner=ray"], "--fresh", "--ray", cluster.address)
            killing.join()
            cluster.shutdown()
            retrain("deep-mc", "here", options, "--fresh")
        """,
    )
    assert (tmp_path / "killed").exists()
    assert model(tmp_path / "cluster") == model(tmp_path / "here")


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "address", "game", "hands", "words"),
    [
        ("fm-clone", "styled-othello", "othello", 6, ["--player", "ada"]),
        ("doudizhu-mcts", "doudizhu-mcts", "doudizhu", 9, ["--fresh"]),
        ("mahjong-ppo", "mahjong-ppo", "mahjong", 6, []),
    ],
)
def test_every_other_training_is_one_task_of_a_cluster(
    log, tmp_path, run_ray_script, name, address, game, hands, words
):
    log(address, game, hands, **({"iterations": 20, "belief": 20, "cnn": "off"} if name == "doudizhu-mcts" else {}))
    run_ray_script(
        SCRIPT,
        f"""
        if __name__ == "__main__":
            retrain({name!r}, "ray", {TINY[name]!r}, *{words!r}, "--ray", "local")
            retrain({name!r}, "here", {TINY[name]!r}, *{words!r})
        """,
    )
    assert model(tmp_path / "ray") == model(tmp_path / "here")
