"""``bothost reproduce fm-clone``: from games that are played and logged to tables and plots."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bothost import Budget, Table, cli
from bothost.plugins import Plugins
from bothost.training.factorization import Samples, SparseRows
from bothost_fm_clone.encode import Encoding, encoding
from bothost_fm_clone.fit import score
from bothost_fm_clone.grow import GrowOptions
from bothost_fm_clone.numbers import numbers_of
from bothost_fm_clone.penalties import ALONE, families
from bothost_fm_clone.samples import Decisions, decisions
from bothost_fm_clone.sight import Sight, sight
from experiments.fm_clone import compare, penalties
from experiments.fm_clone.ceiling import agreement
from experiments.fm_clone.contestants import contestants
from experiments.fm_clone.reproduce import clustered, comparable, differences
from experiments.fm_clone.styles import StyledGames, random_styles, trained_styles

SMALL = [
    "game=othello",
    "sizes=[3]",
    "crowd_hands=4",
    "targets=2",
    'methods=["logistic regression"]',
    "grow.limit=194",
    "grow.per_round=2",
    "grow.factors=2",
]


def test_a_small_reproduction_measures_every_method_with_and_without_the_crowd(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("CROWD_PENALTIES", "PLAYER_PENALTIES"):  # choosing takes most of the time
        monkeypatch.setattr(compare, name, (30.0,))
    (tmp_path / "config.toml").write_text("")
    words = [word for option in SMALL for word in ("--option", option)]
    assert cli.main(["reproduce", "fm-clone", "--out", "here", "--json", *words]) == 0
    record = json.loads(capsys.readouterr().out)
    cells = record["figures"]["cells"]
    assert {(cell["method"], cell["crowd"], cell["games"]) for cell in cells} == {
        ("logistic regression", crowd, 3) for crowd in (True, False)
    }
    assert all(0 <= cell["top1"] <= 1 and 0 < cell["log_loss"] < 30 and cell["decisions"] > 20 for cell in cells)
    matrix = record["figures"]["matrix"]
    assert list(matrix) == [*matrix[next(iter(matrix))]] and len(matrix) == 2
    assert (tmp_path / "here" / "agreement.png").stat().st_size > 1000
    text = Path("here/results.md").read_text()
    assert "crowd first" in text and "Agreement of" not in text and "programs with styles" in text
    kept = Path("here/cells.jsonl").read_bytes()
    assert cli.main(["reproduce", "fm-clone", "--out", "here", *words]) == 0
    assert Path("here/cells.jsonl").read_bytes() == kept
    code = cli.main(["reproduce", "fm-clone", "--out", "here", *words[:8], "--option", 'methods=["none"]'])
    assert code != 0 and "grown FM + linear" in capsys.readouterr().err


def test_only_what_every_method_was_measured_on_is_compared():
    cells = [
        {"method": method, "crowd": True, "games": 50, "player": player, "seed": 0}
        for player, methods in (("ada", "xy"), ("bob", "x"), ("cyd", "xy"))
        for method in methods
    ]
    assert [(cell["player"], cell["method"]) for cell in comparable(cells, 2)] == [
        ("ada", "x"), ("ada", "y"), ("cyd", "x"), ("cyd", "y"),
    ]  # fmt: skip


def test_methods_are_compared_on_the_same_games_of_the_same_player():
    tops = {("own", "ada"): 0.9, ("own", "bob"): 0.5, ("x", "ada"): 0.7, ("x", "bob"): 0.25, ("x", "cyd"): 0.4}
    cells = [
        {"method": method, "crowd": False, "games": 50, "player": player, "seed": 0, "top1": top1}
        for (method, player), top1 in tops.items()
    ]
    found = differences(cells, "own")
    assert [(cell["player"], cell["top1"]) for cell in found] == [("ada", pytest.approx(0.2)), ("bob", 0.25)]


def toy(count, seed):
    """Decisions among three classes that three of eight features tell, in hands of ten."""
    rng = np.random.default_rng(seed)
    bits = rng.random((count, 8)) < 0.5
    labels = np.where(bits[:, 0] & bits[:, 1] & bits[:, 2], 2, bits[:, 3]).astype(np.int32)
    samples = Samples(SparseRows.of(np.flatnonzero(row) for row in bits), SparseRows.of([[0, 1, 2]] * count), labels)
    hands = np.arange(count) // 10
    parts = np.random.default_rng(seed).random(hands.max() + 1)[hands]
    return Decisions(samples, hands, parts, np.zeros(count, bool), np.full(count, "ada", object))


TOY = Encoding("toy", tuple("abcdefgh"), tuple("xyz"), np.array([0, 0, 1], np.int32), np.arange(3, dtype=np.int32), ())
LEARNERS = [
    compare.grown(TOY, GrowOptions(limit=16, per_round=4, factors=4, first_epochs=4), 5000),
    compare.machine(TOY, 4, epochs=3),
    compare.logistic(TOY),
    compare.network(TOY, "MLP", (16,), penalties=((1e-5, 1e-3),), epochs=5),
    compare.network(TOY, "deep", (16, 16), penalties=((1e-5, 1e-3),), epochs=5),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
def test_every_method_learns_and_goes_on_from_what_it_learnt(learner):
    tested = toy(400, 9)
    crowd = learner.learn(toy(600, 1), None, 0)
    alone, begun = learner.learn(toy(60, 2), None, 0), learner.learn(toy(60, 2), crowd, 0)
    shown = [score(learner.predict(learnt)(tested.samples), tested.samples) for learnt in (alone, begun)]
    assert shown[1].top1 > 0.85 and shown[1].log_loss < shown[0].log_loss
    again = score(learner.predict(learner.learn(toy(60, 2), crowd, 0))(tested.samples), tested.samples)
    assert again == shown[1]


def told_by_afterstates(count, seed):
    """As above, but what is done is the class whose afterstate alone has the first of four features."""
    some, rng = toy(count, seed), np.random.default_rng([seed, 1])
    labels = rng.integers(0, 3, count).astype(np.int32)
    leaves = SparseRows.of(
        np.flatnonzero([label == row, *(rng.random(3) < 0.5)]) for label in labels for row in range(3)
    )
    return replace(some, samples=Samples(some.samples.features, some.samples.legal, labels, leaves))


@pytest.mark.parametrize(
    ("method", "options"),
    [(compare.logistic, ()), (compare.network, ("MLP", (16,), ((0.0, 1e-3),), 8))],
    ids=["logistic regression", "network"],
)
def test_afterstates_are_seen_by_the_methods_that_say_so(method, options):
    encoding = replace(TOY, leaves=tuple("jklm"))
    learnt_on, tested = told_by_afterstates(300, 3), told_by_afterstates(200, 4).samples
    for afterstates in (True, False):
        learner = method(encoding, *options, afterstates=afterstates)
        assert learner.name.endswith(" + afterstates") == afterstates
        crowd = learner.learn(learnt_on, None, 0)
        shown = score(learner.predict(learner.learn(learnt_on.first_hands(6), crowd, 0))(tested), tested)
        assert (shown.top1 > 0.95) == afterstates and (shown.top1 < 0.5) != afterstates


def test_decisions_of_one_hand_count_as_one_for_the_error():
    values = np.repeat([0.0, 1.0, 1.0, 0.0, 1.0, 0.0], 20)
    alone = clustered(values, np.arange(120))
    together = clustered(values, np.repeat(np.arange(6), 20))
    assert together == pytest.approx(alone * np.sqrt(20))
    assert alone == pytest.approx(values.std() / np.sqrt(120))


@pytest.mark.parametrize(("number", "afterstates"), [(0, True), (1, False)])
def test_a_network_learns_the_same_from_features_of_a_batch_as_from_those_of_all(number, afterstates, monkeypatch):
    own, known = encoding("othello"), sight("othello")
    some = decisions(StyledGames("othello", random_styles("othello", 4, 7), 4, 1).moves("othello"), own)
    wide, network = replace(own, features=known.positions, leaves=known.choices), compare.network
    monkeypatch.setattr(compare, "network", lambda *words, epochs, **named: network(*words, epochs=2, **named))
    at_once = network(wide, "MLP", (256,), afterstates=afterstates, epochs=2)
    everything = known.seen(some.samples)
    expected = at_once.learn(replace(some, samples=everything), None, 0)
    seen, sizes = Sight.seen, []

    def counted(self, samples):
        sizes.append(len(samples))
        return seen(self, samples)

    monkeypatch.setattr(Sight, "seen", counted)
    method = contestants("othello")[2 + number]
    learnt = method.crowd(some)
    assert max(sizes) < len(some) / 2
    assert all(torch.equal(learnt[name], values) for name, values in expected.items())
    assert np.array_equal(method.odds(learnt, some.samples), at_once.predict(expected)(everything))


def test_the_plain_machine_learns_the_same_without_the_candidates_features():
    own, known = encoding("othello"), sight("othello")
    some = decisions(StyledGames("othello", random_styles("othello", 4, 7), 4, 1).moves("othello"), own)
    wide = replace(own, features=known.positions, leaves=known.choices)
    expected = compare.machine(wide, 32).learn(replace(some, samples=known.seen(some.samples)), None, 0)
    learnt = contestants("othello")[4].crowd(some)
    assert all(np.array_equal(learnt[name], values) for name, values in expected.items())


def test_families_with_large_weights_are_held_back_least():
    names, known = families("othello"), sight("othello")
    first = len(known.positions)
    corner, replies = known.choices.index("plays on a corner"), len(names) - len(numbers_of("othello"))
    rng = np.random.default_rng(0)
    weights = [{(first + corner,): rng.normal(), (replies,): 3 * rng.normal()} for _ in range(30)]
    table = penalties.factors("othello", weights)
    held = {name: table.first[ALONE] * factor for name, factor in table.last.items()}
    assert min(held, key=held.get) == names[replies]
    assert sorted(held, key=held.get)[1] == names[first + corner]
    assert set(table.first) == {*names, ALONE} and set(table.last) == set(names[first:])


def test_trained_players_of_mahjong_follow_their_policy_and_their_habits():
    strategy = Plugins.load().resolve("mahjong-ppo").make()
    plain = {"trained": True, "temperature": 0.0}
    styles = {"plain": plain, "never": plain | {"claims": -9.0}}
    claims = {"plain": 0, "never": 0}
    for move in StyledGames("mahjong", styles, 2, 1).moves("mahjong"):
        player = strategy.player(Table(lobby="styles", table="1", game=move.game, seat=move.seat, seed=1))
        if move.player == "plain":
            assert move.action == player.decide(move.view, move.legal, Budget(math.inf)).action
        claims[move.player] += move.game.notation(move.action).startswith(("chi:", "peng:", "gang:"))
    assert claims["plain"] > 0 == claims["never"]
    names = trained_styles(40, 3)
    assert names == trained_styles(40, 3) != trained_styles(40, 4)
    assert {options["temperature"] for options in names.values()} == {0.0, 0.3, 0.6, 1.0}


def test_players_without_chance_always_do_what_they_are_most_likely_to_do():
    styles = {"sure": {"temperature": 0.0}, "moody": {"temperature": 20.0}}
    found = agreement(StyledGames("othello", styles, 8, 6))
    assert found["sure"] == 1.0 and 0.05 < found["moody"] < 0.6
