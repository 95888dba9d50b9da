"""``bothost retrain --watch``: whenever there are enough new decisions, and not again for the same."""

import json
import shutil

import msgspec
import pytest

from bothost.cli import hand_query, main
from bothost.cli import retrain as command
from bothost.cli.retrain import once
from bothost.errors import ModelError, StoreUnavailable, UsageError
from bothost.retrain import job
from bothost.store.leases import JobLease
from bothost.store.query import HandQuery


class Enough(Exception):
    pass


@pytest.fixture
def request_():
    from bothost.retrain.job import Request

    options = {"iterations": 1, "environments": 4, "horizon": 8, "ppo": {"epochs": 1}}
    query = HandQuery(strategies=("phase-ppo",), closed=True, scored=True)
    return Request(strategy="phase-ppo", query=query, options=options)


def watch(tools, request, folder, monkeypatch, looks, after=100, on_sleep=lambda n: None, error=None):
    """Look so many times; returns the promotions that were tried. ``error``: what the first one raises."""
    slept, promotions = [], []

    def sleep(seconds):
        slept.append(seconds)
        on_sleep(len(slept))
        if len(slept) == looks:
            raise Enough

    monkeypatch.setattr(command.time, "sleep", sleep)

    def promote():
        promotions.append(tools.registry.versions()[-1].version)
        if error is not None and len(promotions) == 1:
            raise error
        return {"promoted": False, "reason": "refused"}

    with pytest.raises(Enough):
        command.watch_log(tools, lambda: request, folder, after, None, promote)
    return promotions


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
def test_it_retrains_once_for_the_same_decisions(tools, request_, tmp_path, monkeypatch, capsys):
    assert watch(tools, request_, tmp_path / "jobs", monkeypatch, looks=3) == ["r1"]
    assert len(list((tmp_path / "jobs").iterdir())) == 1
    assert "refused" in capsys.readouterr().out


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("error", "tries"), [(StoreUnavailable("away"), 2), (UsageError("a bug in the trainer"), 1)])
def test_a_job_that_was_killed_continues_at_once(tools, request_, tmp_path, monkeypatch, error, tries):
    """It has taken the new decisions for itself: a watch that starts again must not wait for as many others."""
    folder = tmp_path / "jobs"
    asked = []

    def killed(*_):
        asked.append(error)
        raise KeyboardInterrupt if len(asked) == 1 else error

    monkeypatch.setattr(job, "learn", killed)
    monkeypatch.setattr(job, "last_checkpoint", lambda _: "checkpoint-1")
    with pytest.raises(KeyboardInterrupt):
        once(tools, request_, command.job_folder(folder, request_))
    assert job.new_decisions(tools.store, request_)[0] == 0
    assert watch(tools, request_, folder, monkeypatch, looks=2) == []
    assert len(asked) == 1 + tries and len([*folder.iterdir()]) == 1
    monkeypatch.undo()
    assert watch(tools, request_, folder, monkeypatch, looks=2) == ["r1"]
    assert len([*folder.iterdir()]) == 1 and (next(folder.iterdir()) / "result.json").exists()


def test_a_job_whose_training_fails_does_not_keep_new_decisions_waiting(tools, request_, tmp_path, monkeypatch):
    """It would fail again, whenever there are enough new decisions."""
    first, learned = tmp_path / "phase-ppo-20200101-000000", []

    def diverging(_plugins, _store, task, _report):
        learned.append(task.folder)
        raise ModelError("the training diverged")

    monkeypatch.setattr(job, "learn", diverging)
    with pytest.raises(ModelError):
        once(tools, request_, first)
    monkeypatch.setattr(job, "new_decisions", lambda store, request: (1000, 0))
    assert watch(tools, request_, tmp_path, monkeypatch, looks=2) == []
    assert learned[:2] == [first, first] and learned[2] != first and len(learned) == 3


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("error", "tries"), [(Enough(), 2), (StoreUnavailable("away"), 2), (UsageError("it is the champion"), 1)]
)
def test_a_promotion_that_was_interrupted_is_tried_again(tools, request_, tmp_path, monkeypatch, error, tries):
    """``Enough`` here: killed during the match, and started again."""
    folder = tmp_path / "jobs"
    tried = watch(tools, request_, folder, monkeypatch, looks=2, error=error)
    tried += watch(tools, request_, folder, monkeypatch, looks=2)
    assert tried == ["r1"] * tries and len([*folder.iterdir()]) == 1


def test_without_promote_nothing_is_left_of_an_interrupted_promotion(tools, request_, tmp_path):
    def killed():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        once(tools, request_, tmp_path / "phase-ppo-1", killed)
    assert job.interrupted(tmp_path, request_) is None
    assert job.interrupted(tmp_path, request_, promotes=True) == tmp_path / "phase-ppo-1"


def test_an_age_counts_from_each_job_anew(tmp_path, migrated_file, monkeypatch, capsys):
    """A watch runs for months: the last 7 days are not those before it began."""
    (tmp_path / "config.toml").write_text(f'[store]\nurl = "sqlite:///{migrated_file}"\n')
    since = []
    monkeypatch.setattr(hand_query.time, "time", lambda: (10 + len(since)) * 86_400.0)
    monkeypatch.setattr("bothost.retrain.job.new_decisions", lambda store, request: (1, 0))

    def once(_tools, request, *_rest):
        since.append(request.query.since_us // 86_400_000_000)
        return {"strategy": "phase-ppo", "version": "r1", "rows": 1, "figures": {}}

    def sleep(_seconds):
        if len(since) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "once", once)
    monkeypatch.setattr(command.time, "sleep", sleep)
    words = ["--watch", "--after", "1", "--since", "7d", "--json", "--config", str(tmp_path / "config.toml")]
    assert main(["retrain", "phase-ppo", *words]) == 130
    assert since[1] == since[0] + 1
    first, _ = json.JSONDecoder().raw_decode(capsys.readouterr().out)
    assert first["version"] == "r1"


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
def test_the_folders_of_old_jobs_do_not_fill_the_disk(tools, request_, tmp_path, monkeypatch):
    """Each holds a copy of the log: night after night they would fill the disk, and a full disk stops play."""
    finished, failed, own, odd = (tmp_path / f"phase-ppo-2020010{day}-000000" for day in (1, 2, 3, 4))
    once(tools, request_, finished)
    shutil.copytree(finished, failed)
    (failed / "result.json").unlink()
    once(tools, msgspec.structs.replace(request_, seed=7), own)  # by hand, for something else
    (odd / "dataset").mkdir(parents=True)  # of nobody knows what
    recent = [tmp_path / f"phase-ppo-2020011{day}-000000" for day in (1, 2)]
    for folder in recent:
        shutil.copytree(finished, folder)
    monkeypatch.setattr(job, "new_decisions", lambda store, request: (1000, 0))
    monkeypatch.setattr(job, "interrupted", lambda folder, request, promotes: None)
    watch(tools, request_, tmp_path, monkeypatch, looks=1)
    kept = {path for path in tmp_path.glob("phase-ppo-*") if path not in {own, odd, *recent}}
    assert own.exists() and odd.exists() and all(path.exists() for path in recent)
    assert len(kept) == 1 and kept.isdisjoint({finished, failed}) and (kept.pop() / "result.json").exists()


@pytest.mark.parametrize("any_settings", ["sqlite"], indirect=True)
def test_a_job_that_continues_is_not_removed_as_an_old_one(tools, request_, tmp_path, monkeypatch):
    first, *later = (tmp_path / f"phase-ppo-2020010{day}-000000" for day in (1, 2, 3, 4, 5))
    once(tools, request_, first)
    for folder in later:
        shutil.copytree(first, folder)
    (first / "result.json").unlink()
    watch(tools, request_, tmp_path, monkeypatch, looks=1)
    assert sorted(tmp_path.glob("phase-ppo-*")) == [first, *later[-2:]] and (first / "result.json").exists()


def test_a_full_disk_does_not_end_the_watch(tools, request_, tmp_path, monkeypatch, capsys):
    (tmp_path / "jobs").write_text("no folder")  # every job fails as on a disk that is full
    assert watch(tools, request_, tmp_path / "jobs", monkeypatch, looks=2) == []
    assert capsys.readouterr().err.count("warning") == 2


def test_too_few_decisions_wait(tools, request_, tmp_path, monkeypatch):
    assert watch(tools, request_, tmp_path / "jobs", monkeypatch, looks=2, after=10**6) == []
    assert not (tmp_path / "jobs").exists()


def test_while_another_host_is_at_it_nothing_is_done_and_after_it_nothing_again(tools, request_, tmp_path, monkeypatch):
    """The other host's job takes the decisions that both wait for."""
    other = JobLease(tools.store, "retrain")
    other.__enter__()

    def on_sleep(number):
        if number == 1:
            other.__exit__()
            result = once(tools, request_, tmp_path / "other")
            assert json.loads((tmp_path / "other" / "result.json").read_text()) == result

    assert watch(tools, request_, tmp_path / "jobs", monkeypatch, looks=3, on_sleep=on_sleep) == []
    assert [v.version for v in tools.registry.versions()] == ["r1"]
