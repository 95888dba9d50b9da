"""The comparison of decision phases with composite actions: its budgets, its intervals, and that it goes on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import msgspec
import pytest

from bothost import ReproductionRun
from bothost.errors import ConfigError
from bothost.training import loop
from experiments.phase_ppo import decomposition
from experiments.phase_ppo.decomposition import (
    SAME_HANDS,
    SAME_TIME,
    DecompositionOptions,
    Meeting,
    Pair,
    plot_meetings,
)
from experiments.phase_ppo.duel import Duel
from experiments.phase_ppo.reproduce import Options, PhasePpoReproduction

TINY = DecompositionOptions(seeds=1, cpu_minutes=0.002, deals=2, environments=4)


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """No curves of every training, and one match instead of four."""
    monkeypatch.setattr(loop, "plot", lambda *_: None)
    monkeypatch.setattr(decomposition, "PARTS", (1.0,))


def reproduction_run(out: Path) -> ReproductionRun:
    def unasked(*_, **__):
        raise AssertionError("the comparison plays by itself")

    return ReproductionRun(out=out, play=unasked, record=unasked, seed=5)


@pytest.mark.parametrize("network", ["candidates", "source"])
def test_both_kinds_are_trained_on_equal_budgets_and_a_second_run_trains_nothing(tmp_path, network):
    tiny = msgspec.structs.replace(TINY, network=network)
    reproduction = PhasePpoReproduction(Options(parts=("decomposition",), decomposition=tiny))
    made = reproduction.run(reproduction_run(tmp_path), lambda *_, **__: None)
    found = made.figures["decomposition"]
    assert set(found) == {SAME_TIME, SAME_HANDS}
    matches = [match for seeds in found.values() for seed in seeds for meeting in seed for match in meeting.values()]
    assert len(matches) == 6 and all(0 <= match["wins"] <= 1 for match in matches)
    assert made.plots == ("decomposition.png",) and (tmp_path / "decomposition.png").stat().st_size > 1000
    assert [len(table.rows) for table in made.tables] == [3, 3] and json.dumps(made.figures)
    folders = {path.name for path in (tmp_path / "decomposition").iterdir()}
    assert folders == {f"{name}-5" for name in ("phases", "flat", "phases-as-many-updates")}
    updates = made.figures["updates"]
    pair = Pair(tiny, tmp_path / "decomposition", seed=5)
    assert pair.train("flat", "flat", minutes=tiny.cpu_minutes) == updates["flat"][0]


def test_updates_of_both_kinds_take_equally_many_steps_and_one_killed_early_begins_anew(tmp_path):
    pair = Pair(TINY, tmp_path, seed=1)
    (tmp_path / "flat-1" / "pool").mkdir(parents=True)  # before the first checkpoint
    assert pair.train("flat", "flat", iterations=2) == pair.train("phases", "phases", iterations=2) == 2
    records = {
        kind: json.loads((tmp_path / f"{kind}-1" / "metrics.jsonl").read_text().splitlines()[-1])
        for kind in ("flat", "phases")
    }
    for name, kind in decomposition.kinds(TINY.environments, TINY.version).items():
        assert kind.task.skip_forced and TINY.environments * kind.horizon == 8 * kind.minibatch
        assert 20 <= records[name]["gradient_steps"] <= 24  # of three epochs; a large KL divergence ends an update
    assert records["flat"]["samples"] == records["phases"]["samples"] / 2
    assert pair.train("flat", "flat", iterations=3) == 3


@pytest.mark.parametrize("wrong", [{"epochz": 1}, {"ppo": {"epochs": 0}}])
def test_wrong_options_of_the_training_are_named(tmp_path, wrong):
    reproduction = PhasePpoReproduction(Options(parts=("levels",), training=wrong))
    with pytest.raises(ConfigError, match=r"options\.(epochz|ppo\.epochs)"):
        reproduction.run(reproduction_run(tmp_path), lambda *_, **__: None)


def test_one_seed_is_shown_without_an_interval(tmp_path):
    one = [[Meeting(*[Duel(0.5, 0.1, 1.0, 2.0)] * 3)]]
    plot_meetings({SAME_TIME: one, SAME_HANDS: one}, tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size > 1000


@pytest.mark.parametrize(
    "wrong", [{"seeds": 0}, {"cpu_minutes": 0.0}, {"cpu_minutes": math.nan}, {"deals": 1}, {"environments": 1}]
)
def test_a_comparison_of_nothing_is_refused(wrong):
    with pytest.raises(msgspec.ValidationError, match=r"must be|at least"):
        msgspec.convert(wrong, DecompositionOptions)
