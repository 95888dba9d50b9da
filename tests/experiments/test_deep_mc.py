"""The reproduction of deep-mc and its benchmark, at the smallest size."""

import json

import msgspec
import numpy as np
import pytest

from bothost import ReproductionRun, TrainingRun
from bothost.bench import deepmc
from bothost.errors import ConfigError, UsageError
from bothost.plugins import Plugins
from bothost.training import loop
from bothost_deep_mc import train
from bothost_deep_mc.encode import FEATURES, NOW
from bothost_deep_mc.measure import LARGE
from bothost_deep_mc.model import seeded
from experiments.deep_mc.reproduce import DeepMcReproduction, ExperimentOptions, Log, first_reached, ratios, table_of
from experiments.deep_mc.split_network import Monolithic, SplitNetworkComparison, SplitNetworkOptions

TINY = {
    "hands": 8,
    "evaluate_every": 1,
    "evaluation_deals": 4,
    "checkpoint_every": 1,
    "sizes": {"trunk": [16], "head": [16], "bidder_trunk": [16], "bidder_head": [16]},
}
QUICK = {"seeds": 1, "rounds": 2, "training": TINY, "logged_hands": 4}


def reproduce(out, seed=3, **options):
    run = ReproductionRun(out=out, play=lambda *a, **k: {}, record=lambda *a, **k: None, seed=seed)
    experiment = msgspec.convert(QUICK | options, ExperimentOptions)
    return DeepMcReproduction(experiment).run(run, lambda *a, **k: None)


def records(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def parameters(folder):
    return (folder / "checkpoint-000002" / "model.safetensors").read_bytes()


@pytest.fixture(autouse=True, scope="module")
def without_plots_of_trainings():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "plot", lambda *_: None)
        yield


@pytest.fixture(scope="module")
def by_expert(tmp_path_factory):
    """Folder and outcome of a reproduction with either expert."""
    folders = {expert: tmp_path_factory.mktemp(expert) for expert in ("logged", "rule")}
    return {expert: (out, reproduce(out, expert=expert)) for expert, out in folders.items()}


@pytest.mark.parametrize("expert", ["logged", "rule"])
def test_the_reproduction_compares_four_kinds_and_can_be_run_again(by_expert, expert):
    out, first = by_expert[expert]
    assert set(first.figures["reached"]) == {"plain", "+ regularizer", "+ reduction", "+ both"}
    targets = ("40 %", "45 %", "50 %", "55 %", "60 %", "70 %")
    assert [table.header[1:7] for table in first.tables] == [targets] * 2
    assert all(len(table.rows) == 4 for table in first.tables)
    assert (out / "win_rates.png").stat().st_size > 1000
    of = "_of_lessons" if expert == "logged" else ""
    losses = {kind.name: set(records(kind)[0]) for kind in out.iterdir() if kind.is_dir()}
    kinds = ("plain-3", "with-regularizer-3", "with-reduction-3", "with-both-3")
    assert [f"regularizer{of}" in losses[kind] for kind in kinds] == [False, True, False, True]
    assert ["reduction" in losses[kind] for kind in kinds] == [False, False, True, True]
    again = reproduce(out, expert=expert)
    assert again.figures["reached"] == first.figures["reached"]
    assert json.dumps(first.figures)


def test_only_the_kinds_with_the_regularizer_know_of_the_expert(by_expert):
    logged, rule = (out for out, _ in by_expert.values())
    for kind, same in (("plain-3", True), ("with-reduction-3", True), ("with-regularizer-3", False)):
        assert (parameters(logged / kind) == parameters(rule / kind)) == same


def test_logged_decisions_count_as_samples(tmp_path):
    options = msgspec.convert(TINY | {"iterations": 1, "expert": "logged"}, train.Options)
    hands = Log(ExperimentOptions(logged_hands=4)).hands(1, options)
    learnt = {}
    for name, more in (("self-play", None), ("both", train.some_of(hands, options))):
        run = TrainingRun(out=tmp_path / name, seed=1)
        learnt[name] = train.train(options, run, lambda *_: None, extra=more).samples
    asked = round(options.logged_share * TINY["hands"] * train.DECISIONS_PER_HAND)
    assert abs(learnt["both"] - learnt["self-play"] - asked) <= 3  # roles are rounded by themselves


def test_the_player_of_the_logged_hands_is_named(by_expert):
    found = by_expert["logged"][1]
    champion = Plugins.load().resolve("deep-mc:champion").model.version
    assert found.figures["player"] == champion
    assert found.figures["logged_hands"] == 4 and found.figures["logged_decisions"][0] > 40
    assert any(champion in note for note in found.notes)
    assert "player" not in by_expert["rule"][1].figures


def test_the_players_games_are_those_of_its_seed():
    options = msgspec.convert(TINY, train.Options)
    log = Log(ExperimentOptions(logged_hands=6))
    first, other, again = (log.hands(seed, options) for seed in (1, 2, 1))
    assert set(first) == {"landlord", "next", "previous"} and log.figures()["logged_decisions"][0] > 60
    for role, part in first.items():
        assert all(np.array_equal(*both) for both in zip(part, again[role], strict=True))
        assert part.positions.shape[1] == NOW and part.moves.shape[1:] == (2 + options.play.others, FEATURES)
        assert np.array_equal(part.moves[:, 0], part.moves[:, 1])  # the expert's move is the one it played
    assert any(len(part.returns) != len(other[role].returns) for role, part in first.items())


@pytest.mark.parametrize("other", [{"rounds": 3}, {"logged_hands": 5}, {"regularizer": {"parity": 0.6}}])
def test_one_folder_holds_one_experiment(by_expert, other):
    for out in (by_expert["logged"][0], by_expert["rule"][0]):
        with pytest.raises(UsageError, match=f"another .*{next(iter(other))}"):
            reproduce(out, **other)


@pytest.mark.parametrize("text", ["", "[]", '{"seeds": '])
def test_a_folder_whose_experiment_cannot_be_read_is_not_gone_on_with(tmp_path, text):
    (tmp_path / "experiment.json").write_text(text)
    with pytest.raises(UsageError, match=r"experiment\.json cannot be read"):
        reproduce(tmp_path, expert="rule")


def test_more_seeds_go_into_the_same_folder(tmp_path):
    tiny = {"training": TINY | {"evaluate_every": 9}, "rounds": 1, "expert": "rule"}
    first = reproduce(tmp_path, **tiny)
    both = reproduce(tmp_path, seeds=2, **tiny)
    assert all(
        len(rates) == 2 and rates[:1] == first.figures["last"][kind] for kind, rates in both.figures["last"].items()
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"player": "v0"}, "ships no version 'v0'"),
        ({"training": {"handz": 1}}, "handz"),
        ({"regularizer": {"expert_margin": -1}}, "expert_margin"),
    ],
)
def test_options_that_are_none_are_told(tmp_path, wrong, message):
    with pytest.raises((UsageError, ConfigError), match=message):
        reproduce(tmp_path, **wrong)
    assert not any(tmp_path.iterdir())


def measured(*rates):
    return [
        {"win_rate": rate, "samples": 100.0 * i, "cpu_seconds": 6.0 * i, "iteration": i}
        for i, rate in enumerate(rates, start=1)
    ]


def test_when_a_win_rate_was_reached():
    found = first_reached([measured(0.1, 0.6, 0.5, 0.5, 0.5), measured(0.0, 0.2, 0.3)])
    # Averages of three: 0.1, 0.35, 0.4, 0.53, … and 0, 0.1, 0.17.
    assert found["40"] == {"samples": [300.0], "minutes": [0.3]}
    assert found["45"]["samples"] == found["50"]["samples"] == [400.0]
    assert found["60"] == {"samples": [], "minutes": []}


def test_a_win_rate_that_none_reached_is_reported_by_how_far_they_came():
    curves = {"plain": [measured(0.1, 0.2, 0.3), measured(0.1, 0.2)], "+ both": [measured(0.6, 0.6), measured(0.1)]}
    reached = {kind: first_reached(found) for kind, found in curves.items()}
    rows = [row[3] for unit in ("samples", "minutes") for row in table_of(curves, reached, unit).rows]
    assert rows == ["> 200", "100 (1 of 2)", "> 0.20", "0.10 (1 of 2)"]


def test_ratios_are_reported_where_all_trainings_got_there():
    plain = {"30": {"samples": [100.0, 300.0]}, "40": {"samples": [500.0]}, "50": {"samples": []}}
    both = {"30": {"samples": [50.0, 70.0]}, "40": {"samples": [100.0, 200.0]}, "50": {"samples": []}}
    assert ratios({"plain": plain, "+ both": both}, "+ both", "samples") == {"30": 0.3}


def test_the_benchmark_measures_speeds():
    figures = deepmc.command(hands=8, repeats=1, large=False, seed=1)
    assert {"games_per_s_core", "decisions_per_s_core", "train_samples_per_s_core"} <= figures.keys()
    assert figures["decisions_per_s_core"] > figures["games_per_s_core"] > 0
    assert figures["times_douzero"] == pytest.approx(figures["games_per_s_core"] / 26.0, abs=0.01)


def test_the_split_network_is_compared_with_a_monolithic_one(tmp_path):
    run = ReproductionRun(out=tmp_path, play=lambda *a, **k: {}, record=lambda *a, **k: None, seed=1)
    made = SplitNetworkComparison(SplitNetworkOptions(decisions=6000)).run(run, lambda *a, **k: None)
    figures = made.figures
    assert figures["held_out_decisions"] >= 1500
    # Both have learnt something: they beat the best constant.
    assert 0 < figures["held_out_error"] < figures["held_out_error_constant"]
    assert 0 < figures["held_out_error_monolithic"] < figures["held_out_error_constant"]
    assert [row[0] for row in made.tables[0].rows] == ["split", "monolithic", "constant"]


def test_the_large_networks_and_their_rival_have_one_and_a_half_million_parameters():
    split = sum(p.numel() for p in seeded(LARGE, 0).of("next").parameters())
    whole = sum(p.numel() for p in Monolithic(786, split).parameters())
    assert 1.4e6 < split < 1.6e6 and abs(whole - split) < 0.01 * split


def test_options_of_the_reproduction_are_checked():
    for wrong in ({"seeds": 0}, {"rounds": 0}, {"logged_hands": 0}):
        with pytest.raises(msgspec.ValidationError, match="positive"):
            msgspec.convert(wrong, ExperimentOptions)
    with pytest.raises(msgspec.ValidationError, match="by expert="):
        msgspec.convert({"regularizer": {"expert": "search"}}, ExperimentOptions)
