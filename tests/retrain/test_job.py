"""``bothost retrain``: a challenger from the log, once, resumed exactly."""

import json
import time

import msgspec
import pytest
import safetensors.numpy

from bothost import ModelError, Trainer
from bothost.cli.retrain import due
from bothost.errors import ConfigError, StoreError, UsageError
from bothost.plugins import Plugins, weights
from bothost.retrain import job
from bothost.retrain.dataset import Dataset
from bothost.retrain.forget import forget
from bothost.retrain.job import Request, new_decisions, retrain
from bothost.retrain.task import trainer_of
from bothost.store import schema
from bothost.store.forget import delete_hands
from bothost.store.leases import JobLease, LeaseHeld
from bothost.store.query import HandQuery
from bothost.testing.hosting import RandomStrategy, module
from bothost_phase_ppo.decide import PhasePpo

SET = weights.manifest(PhasePpo).aliases["champion"].rpartition("-")[0]
"""What the versions of the package are called, but for their number."""

SILENT = lambda done, note="", total=None: None  # noqa: E731
QUERY = HandQuery(strategies=("phase-ppo",), closed=True, scored=True)
TINY = {
    "iterations": 1,
    "environments": 8,
    "horizon": 16,
    "checkpoint_every": 1,
    "pool_every": 1,
    "ppo": {"epochs": 1, "minibatch": 64},
}


on_sqlite = pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("any_settings", ["postgresql"], indirect=True)


def asked(**more):
    return Request(strategy="phase-ppo", query=QUERY, options={**TINY, **more}, command="bothost retrain phase-ppo")


def test_the_dataset_is_every_decision_of_the_log_in_order(tools, hands, tmp_path):
    dataset = Dataset.make(tools.store, QUERY, tmp_path / "dataset", "phase-ppo")
    found = [t for split in ("train", "val", "test") for t in dataset.trajectories(split)]
    logged = {rows[0].game_id.hex(): [r for r in rows if type(r).__name__ == "DecisionRecord"] for rows in hands}
    assert {t.game_id for t in found} == set(logged) and len(found) == len(hands)
    for trajectory in found:
        rows = logged[trajectory.game_id]
        assert [s.view.to_bytes() for s in trajectory.steps] == [r.view for r in rows]
        assert [s.action for s in trajectory.steps] == [r.action for r in rows]
        assert all(s.own and s.policy.tobytes() == r.policy for s, r in zip(trajectory.steps, rows, strict=True))
    assert dataset.manifest["rows"] == sum(map(len, logged.values()))


def test_statistics_that_are_no_object_are_none(tools, tmp_path):
    """A plugin may log anything."""
    with tools.store.begin(writes=True) as connection:
        connection.exec_driver_sql("UPDATE decisions SET stats = '[1]'")
    dataset = Dataset.make(tools.store, QUERY, tmp_path / "dataset", "phase-ppo")
    assert {len(step.stats) for hand in dataset.trajectories() for step in hand.steps} == {0}


def test_a_damaged_dataset_is_named(tools, tmp_path):
    dataset = Dataset.make(tools.store, QUERY, tmp_path / "dataset", "phase-ppo")
    part = tmp_path / "dataset" / "data" / "part-00000.parquet"
    for damage in (lambda: part.write_bytes(part.read_bytes()[:-100]), part.unlink):
        damage()
        with pytest.raises(StoreError, match=r"part-00000\.parquet cannot be read") as caught:
            list(dataset.trajectories())
        assert "remove the dataset's folder" in caught.value.advice
    (tmp_path / "dataset" / "meta" / "info.json").write_text("[1]")
    with pytest.raises(StoreError, match=r"info\.json cannot be read"):
        Dataset(tmp_path / "dataset", "phase-ppo")


def test_a_challenger_comes_with_its_lineage(tools, tmp_path):
    before, _ = new_decisions(tools.store, asked())
    result = retrain(tools, asked(), tmp_path / "job", SILENT)
    assert before > 200 and result["rows"] == before and result["version"] == "r1"
    made = tools.registry.version("phase-ppo", "r1")
    champion = weights.find(tools.plugins.strategies["phase-ppo"], "champion")
    assert made.lineage["started_from"] == {"version": f"{SET}-5", "sha256": champion.sha256}
    dataset = made.lineage["dataset"]
    assert dataset["rows"] == before and dataset["query"]["strategies"] == ["phase-ppo"]
    assert dataset["manifest_sha256"] == Dataset(tmp_path / "job/dataset", "phase-ppo").sha256
    assert set(made.lineage["figures"]["evaluation"]["value_error_on_val"]) == {"before", "after"}
    assert tools.plugins.resolve("phase-ppo:challenger").model.sha256 == made.sha256 != champion.sha256
    assert made.files["play.json"] == champion.files["play.json"]  # what is compared then are networks
    assert new_decisions(tools.store, asked())[0] == 0  # nothing new since
    imitation = Request(strategy="fm-clone", query=HandQuery(closed=True, scored=True))
    assert new_decisions(tools.store, imitation) == (before, 0), "who imitates learns from hands of any strategy"
    assert retrain(tools, asked(), tmp_path / "job", SILENT) == json.loads((tmp_path / "job/result.json").read_text())
    with pytest.raises(UsageError, match="holds another retraining"):
        retrain(tools, asked(iterations=2), tmp_path / "job", SILENT)
    assert [v.version for v in tools.registry.versions()] == ["r1"]


class Killed(Exception):
    pass


@on_sqlite
def test_a_job_that_is_killed_goes_on_to_the_very_same_model(tools, tmp_path):
    request = asked(iterations=3)
    whole = retrain(tools, request, tmp_path / "whole", SILENT)
    for moment in (("dataset", 0), ("samples", 0), ("samples", 0)):
        seen = []

        def report(done, note="", total=None, moment=moment, seen=seen):
            seen.append(note)
            if moment[0] in note and sum(moment[0] in n for n in seen) > moment[1]:
                raise Killed

        with pytest.raises(Killed):
            retrain(tools, request, tmp_path / "cut", report)
        assert not (tmp_path / "cut/result.json").exists()
        assert job.interrupted(tmp_path, request) is None  # only under the strategy's name
    again = retrain(tools, request, tmp_path / "cut", SILENT)
    assert again["sha256"] == whole["sha256"] and again["version"] == whole["version"]


def interrupted_dataset(tools, out, request=None):
    """Begin a job, and kill it before the first row of its dataset."""

    def report(done, note="", total=None):
        raise Killed

    with pytest.raises(Killed):
        retrain(tools, request or asked(), out, report)


@on_postgresql
def test_a_job_whose_hands_were_deleted_meanwhile_begins_its_dataset_again(tools, hands, tmp_path):
    interrupted_dataset(tools, tmp_path / "job")
    delete_hands(tools.store, [hands[0][0].game_id])
    left, _ = new_decisions(tools.store, asked())
    assert retrain(tools, asked(), tmp_path / "job", SILENT)["rows"] == left


@on_sqlite
def test_a_job_that_another_release_began_begins_its_dataset_again(tools, tmp_path):
    interrupted_dataset(tools, tmp_path / "job")
    plan = tmp_path / "job/dataset/meta/plan.json"
    plan.write_text(plan.read_text().replace(f'"schema": "{schema.REVISIONS[-1]}"', '"schema": "0001"'))
    retrain(tools, asked(), tmp_path / "job", SILENT)


@on_sqlite
def test_a_job_continues_with_the_new_time_limit(tools, tmp_path):
    limited = msgspec.structs.replace(asked(iterations=None), minutes=1000.0)

    def report(done, note="", total=None):
        if "samples" in note:
            raise Killed

    with pytest.raises(Killed):
        retrain(tools, limited, tmp_path / "job", report)
    shorter = msgspec.structs.replace(limited, minutes=0.01)
    assert retrain(tools, shorter, tmp_path / "job", SILENT)["version"] == "r1"


@on_sqlite
def test_a_job_that_cannot_be_read_does_not_keep_others_from_starting(tools, tmp_path):
    interrupted_dataset(tools, tmp_path / "phase-ppo-1")
    (tmp_path / "phase-ppo-2").mkdir()
    (tmp_path / "phase-ppo-2/request.json").write_text("")
    assert job.interrupted(tmp_path, asked()) == tmp_path / "phase-ppo-1"


def test_a_job_of_other_hands_is_not_continued(tools, tmp_path):
    """Else "retrain fm-clone --player bob" would end as a clone of ada."""
    week = msgspec.structs.replace(asked(), query=msgspec.structs.replace(QUERY, since_us=1))
    interrupted_dataset(tools, tmp_path / "phase-ppo-1", week)
    later, other, all_of_it = (
        msgspec.structs.replace(week, query=msgspec.structs.replace(week.query, **more))
        for more in ({"since_us": 2}, {"players": ("bob",)}, {"since_us": None})
    )
    assert job.interrupted(tmp_path, later) == tmp_path / "phase-ppo-1"
    for request in (other, all_of_it):
        assert job.interrupted(tmp_path, request) is None
        with pytest.raises(UsageError, match="another retraining"):
            retrain(tools, request, tmp_path / "phase-ppo-1", SILENT)


def test_a_job_forgets_the_name_of_a_player(tools, hands, tmp_path):
    def killed(*_):
        raise KeyboardInterrupt

    request = msgspec.structs.replace(asked(), query=msgspec.structs.replace(QUERY, players=("ada",)))
    folder = tmp_path / "phase-ppo-1"
    with pytest.raises(KeyboardInterrupt):
        retrain(tools, request, folder, SILENT, killed)
    assert job.interrupted(tmp_path, request) == folder
    assert forget(folder, [rows[0].game_id for rows in hands], ["ada"]) > 0
    assert not [path for path in folder.rglob("*") if path.is_file() and b'"ada"' in path.read_bytes()]
    assert job.interrupted(tmp_path, request) is None


def test_one_job_at_a_time_on_one_database(tools, tmp_path):
    with JobLease(tools.store, job.LEASE), pytest.raises(LeaseHeld) as caught:
        retrain(tools, asked(), tmp_path / "job", SILENT)
    assert "is doing this job" in str(caught.value)
    with JobLease(tools.store, job.LEASE) as lease:
        lease.check()


def test_a_lease_that_was_lost_stops_the_job(tools):
    with JobLease(tools.store, "x", ttl_s=0.4) as lease:
        with tools.store.begin() as connection:
            connection.exec_driver_sql("UPDATE leases SET holder = 'another' WHERE account = 'x'")
        end = time.monotonic() + 60
        with pytest.raises(LeaseHeld, match="lost"):
            while time.monotonic() < end:  # until the lease is renewed in vain
                lease.check()
                time.sleep(0.02)


def test_what_cannot_be_done_is_said(tools, tmp_path):
    nothing = Request(strategy="phase-ppo", query=HandQuery(lobbies=("elsewhere",), strategies=("phase-ppo",)))
    with pytest.raises(UsageError, match="no logged decision of phase-ppo") as caught:
        retrain(tools, nothing, tmp_path / "job", SILENT)
    assert "bothost demo --game pairing" in caught.value.advice
    assert not (tmp_path / "job").exists()
    with pytest.raises(UsageError, match="does not learn"):
        retrain(tools, Request(strategy="random", query=QUERY), tmp_path / "job", SILENT)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/x").write_text("")
    with pytest.raises(UsageError, match="is not empty"):
        retrain(tools, asked(), tmp_path / "full", SILENT)


@on_sqlite
def test_wrong_options_leave_no_job_behind(tools, tmp_path):
    with pytest.raises(ConfigError, match="preset"):
        retrain(tools, asked(preset="nope"), tmp_path / "job", SILENT)
    assert not (tmp_path / "job").exists()


def test_a_player_without_hands_is_named(tools, tmp_path):
    nobody = Request(strategy="fm-clone", query=HandQuery(players=("nobody",), closed=True, scored=True))
    with pytest.raises(UsageError, match="no logged decision in a scored hand of nobody"):
        retrain(tools, nobody, tmp_path / "job", SILENT)


def test_of_the_strategies_with_a_trainer_those_that_learn_from_logged_hands_are_named():
    class FromLog(Trainer):
        def retrain(self, run, games, start, report):
            return {}

    def missing():
        raise ModuleNotFoundError(name="torch")

    made = {
        "self-play": lambda: Trainer,
        "from-log": lambda: FromLog,
        "stages": lambda: {"first": Trainer, "second": FromLog, "third": Trainer},
        "own-stages": lambda: {"first": Trainer},
        "not-installed": missing,
    }
    strategies = [
        type(name, (RandomStrategy,), {"name": name, "trainer": classmethod(lambda cls, of=of: of())})
        for name, of in made.items()
    ]
    plugins = Plugins.load(entry_points=False, modules=[module("given", RandomStrategy, *strategies)])
    assert trainer_of(plugins, "from-log") is trainer_of(plugins, "stages") is FromLog
    for name in ("self-play", "own-stages", "test-random"):
        with pytest.raises(UsageError, match=f"{name} does not learn from logged hands") as caught:
            trainer_of(plugins, name)
        assert caught.value.advice == "strategies that do: from-log, not-installed, stages"


def test_a_job_that_has_too_little_to_learn_from_does_not_keep_its_dataset(tools, tmp_path):
    """Else the same command would fail again, whatever was played since."""
    everything = Dataset.make(tools.store, QUERY, tmp_path / "all", "phase-ppo")
    held_out = [hand.game_id for split in ("val", "test") for hand in everything.trajectories(split)]
    query = msgspec.structs.replace(QUERY, game_id=held_out[0])
    with pytest.raises(UsageError, match="no scored hand"):
        retrain(tools, msgspec.structs.replace(asked(), query=query), tmp_path / "job", SILENT)
    assert not (tmp_path / "job").exists()


@on_sqlite
def test_a_model_that_its_strategy_refuses_is_not_registered(tools, tmp_path, monkeypatch):
    trainer = job.trainer_of(tools.plugins, "phase-ppo")
    honest = trainer.retrain

    def broken(self, run, games, start, report):
        figures = honest(self, run, games, start, report)
        path = run.out / "weights" / "v1" / "model.safetensors"
        tensors = safetensors.numpy.load_file(path)
        safetensors.numpy.save_file({"other": next(iter(tensors.values()))}, path)
        return figures

    monkeypatch.setattr(trainer, "retrain", broken)
    with pytest.raises(ModelError, match="sha256"):
        retrain(tools, asked(), tmp_path / "job", SILENT)
    assert tools.registry.versions() == []


def test_the_time_of_the_day_comes_once_a_day():
    day = 86_400
    at = 3 * 60 + 30
    early, late = 100 * day + 3 * 3600, 100 * day + 4 * 3600
    assert due(0, None, early)
    assert not due(0, at, early) and due(0, at, late)
    assert not due((late - 600) * 1_000_000, at, late)
    assert due((late - day) * 1_000_000, at, late)
