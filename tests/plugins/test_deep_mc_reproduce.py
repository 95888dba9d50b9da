"""The reproduction of deep-mc and its benchmark, at the smallest size."""

import json

import msgspec
import pytest

from bothost import ReproductionRun
from bothost.testing.bench import deepmc
from bothost_deep_mc.measure import LARGE, Monolithic
from bothost_deep_mc.model import seeded
from bothost_deep_mc.reproduce import DeepMcReproduction, ExperimentOptions, _ratios, _reached

TINY = {
    "hands": 8,
    "evaluate_every": 1,
    "evaluation_deals": 4,
    "checkpoint_every": 1,
    "sizes": {"trunk": [16], "head": [16], "bidder_trunk": [16], "bidder_head": [16]},
}


def test_the_reproduction_compares_four_kinds_and_can_be_run_again(tmp_path):
    options = ExperimentOptions(seeds=1, rounds=2, training=TINY)
    run = ReproductionRun(out=tmp_path, play=lambda *a, **k: {}, record=lambda *a, **k: None, seed=3)
    first = DeepMcReproduction(options).run(run, lambda *a, **k: None)
    assert set(first.figures["reached"]) == {"plain", "+ regularizer", "+ reduction", "+ both"}
    assert [table.header[1:7] for table in first.tables] == [("30 %", "40 %", "45 %", "50 %", "60 %", "70 %")] * 2
    assert all(len(table.rows) == 4 for table in first.tables)
    assert (tmp_path / "win_rates.png").stat().st_size > 1000
    losses = {
        kind.name: set(json.loads((kind / "metrics.jsonl").read_text().splitlines()[0]))
        for kind in tmp_path.iterdir()
        if kind.is_dir()
    }
    assert ["regularizer" in losses[f"{kind}-3"] for kind in ("plain", "with-regularizer", "with-both")] == [0, 1, 1]
    assert ["reduction" in losses[f"{kind}-3"] for kind in ("plain", "with-reduction", "with-both")] == [0, 1, 1]
    again = DeepMcReproduction(options).run(run, lambda *a, **k: None)
    assert again.figures["reached"] == first.figures["reached"]
    assert json.dumps(first.figures)


def measured(*rates):
    return [
        {"win_rate": rate, "samples": 100.0 * i, "cpu_seconds": 6.0 * i, "iteration": i}
        for i, rate in enumerate(rates, start=1)
    ]


def test_when_a_win_rate_was_reached():
    found = _reached([measured(0.1, 0.6, 0.5, 0.5, 0.5), measured(0.0, 0.2, 0.3)])
    # Averages of three: 0.1, 0.35, 0.4, 0.53, … and 0, 0.1, 0.17.
    assert found["30"] == {"samples": [200.0], "minutes": [0.2]}
    assert found["40"]["samples"] == [300.0] and found["50"]["samples"] == [400.0]
    assert found["60"] == {"samples": [], "minutes": []}


def test_ratios_are_told_where_all_trainings_got_there():
    plain = {"30": {"samples": [100.0, 300.0]}, "40": {"samples": [500.0]}, "50": {"samples": []}}
    both = {"30": {"samples": [50.0, 70.0]}, "40": {"samples": [100.0, 200.0]}, "50": {"samples": []}}
    assert _ratios({"plain": plain, "+ both": both}, "samples") == {"30": 0.3}


def test_the_benchmark_measures_speeds_and_errors():
    figures = deepmc.command(hands=8, repeats=1, large=False, held_out=600, seed=1)
    assert {"games_per_s_core", "decisions_per_s_core", "train_samples_per_s_core"} <= figures.keys()
    assert figures["decisions_per_s_core"] > figures["games_per_s_core"] > 0
    assert figures["times_douzero"] == pytest.approx(figures["games_per_s_core"] / 26.0, abs=0.01)
    assert 0 < figures["held_out_error"] < 3 and 0 < figures["held_out_error_monolithic"] < 3


def test_the_large_networks_and_their_rival_have_one_and_a_half_million_parameters():
    split = sum(p.numel() for p in seeded(LARGE, 0).of("next").parameters())
    whole = sum(p.numel() for p in Monolithic(786, split).parameters())
    assert 1.4e6 < split < 1.6e6 and abs(whole - split) < 0.01 * split


def test_options_of_the_reproduction_are_checked():
    for wrong in ({"seeds": 0}, {"rounds": 0}):
        with pytest.raises(msgspec.ValidationError, match="positive"):
            msgspec.convert(wrong, ExperimentOptions)
