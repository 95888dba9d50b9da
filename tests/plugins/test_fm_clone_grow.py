"""fm-clone's features: combinations in topological order, and how they grow."""

from contextlib import suppress

import numpy as np
import pytest
from safetensors.numpy import load_file

from bothost import TrainingRun
from bothost.errors import UsageError
from bothost.training import checkpoint
from bothost.training.factorization import FactorizationMachine, Samples, SparseRows
from bothost_fm_clone.combinations import Combinations, base_features
from bothost_fm_clone.encode import VERSION
from bothost_fm_clone.grow import Growing, GrowOptions, Growth, Round, grow

# Combinations.


def test_combinations_are_evaluated_in_topological_order():
    graph = Combinations(5, np.array([[0, 1], [2, 5], [5, 6]], np.int32))
    assert graph.evaluate(np.array([0, 1, 2], np.int32)).tolist() == [0, 1, 2, 5, 6, 7]
    assert graph.evaluate(np.array([0, 1, 3], np.int32)).tolist() == [0, 1, 3, 5]
    assert graph.names(7, "abcde") == ["a", "b", "c"]
    rng = np.random.default_rng(0)
    rows = [np.flatnonzero(rng.random(5) < 0.6).astype(np.int32) for _ in range(300)]
    together = graph.extend(SparseRows.of(rows))
    for row, base in enumerate(rows):
        assert together[row].tolist() == graph.evaluate(base).tolist()


def test_base_features_are_found_in_a_graph_with_countless_paths():
    pairs = np.array([[n, n + 1] for n in range(500)], np.int32)
    assert base_features(501, pairs, 2) == {0, 1}


@pytest.mark.parametrize("pairs", [[[0, 5]], [[1, 0]], [[2, 2]], [[-1, 2]], [[0, 9]]])
def test_what_is_no_graph_is_refused(pairs):
    with pytest.raises(ValueError, match="combination"):
        Combinations(5, np.array(pairs, np.int32))


# Growing.


def conjunction_samples(count=1500, seed=0):
    """Of 8 features three together decide: what no pair tells."""
    rng = np.random.default_rng(seed)
    bits = rng.random((count, 8)) < 0.6
    labels = (bits[:, 0] & bits[:, 1] & bits[:, 2]).astype(np.int32)
    return Samples(SparseRows.of(np.flatnonzero(row) for row in bits), SparseRows.of([[0, 1]] * count), labels)


def brute_force_pairs(machine, samples, count):
    """The best pairs by the definition: every loss computed from the formula in float64."""
    parameters = {name: values.astype(np.float64) for name, values in machine.parameters().items()}
    features, classes = machine.features, machine.classes
    weights = parameters["weights"].reshape(features, classes)
    factors = parameters["factors"].reshape(features, -1)
    mixing = parameters["mixing"].reshape(classes, -1)
    x = np.zeros((len(samples), features))
    for s in range(len(samples)):
        x[s, samples.features[s]] = 1
    terms = np.einsum("if,jf,rf->ijr", factors, factors, mixing)
    upper = np.triu(np.ones((features, features)), 1)
    scores = parameters["bias"] + x @ weights + np.einsum("si,sj,ij,ijr->sr", x, x, upper, terms, optimize=True)

    def loss(y):
        return np.mean(np.logaddexp.reduce(y, axis=1) - y[np.arange(len(y)), samples.labels])

    found = []
    for i in range(features):
        for j in range(i + 1, features):
            both = (x[:, i] * x[:, j])[:, None]
            if not both.any():
                continue
            cut = scores - both * terms[i, j]
            least = min(loss(cut), loss(cut - x[:, [i]] * weights[i]), loss(cut - x[:, [j]] * weights[j]))
            found.append((-least, (i, j)))
    return [pair for _, pair in sorted(found)[:count]]


def test_a_round_chooses_the_pairs_that_brute_force_chooses():
    samples = conjunction_samples(400)
    growth = Growth(
        samples, Combinations(8), 2, GrowOptions(limit=12, per_round=4, factors=3, first_epochs=3, shared=True), seed=5
    )
    done = growth.round()
    assert done.pairs == brute_force_pairs(growth.machine, samples, 4)


def test_growing_finds_the_combination_of_three_that_a_machine_cannot_tell():
    samples = conjunction_samples()
    options = GrowOptions(limit=14, per_round=2, factors=4, first_epochs=10, epochs=3, deviation=0.2)
    growth = Growth(samples, Combinations(8), 2, options, seed=1)
    while len(growth) < growth.limit and growth.round().pairs:
        pass
    assert frozenset({0, 1, 2}) in growth.combinations.made_of


def test_no_feature_is_made_twice_and_none_is_set_where_another_is():
    rng = np.random.default_rng(2)
    rows = [np.flatnonzero(row) for row in rng.random((200, 5)) < 0.5]
    rows = [np.concatenate([row, [5]]) if 4 in row else row for row in rows]  # 5 is set just where 4 is
    samples = Samples(SparseRows.of(rows), SparseRows.of([[0, 1, 2]] * 200), rng.integers(0, 3, 200).astype(np.int32))
    growth = Growth(samples, Combinations(6), 3, GrowOptions(limit=500, per_round=7, factors=2), seed=0)
    while growth.round().pairs:
        pass
    made = growth.combinations.made_of
    assert len(set(made)) == len(made)
    grown = growth.combinations.extend(samples.features)
    columns = [tuple(s for s in range(200) if n in set(grown[s].tolist())) for n in range(6, len(made))]
    assert len(set(columns)) == len(columns) and all(columns)


@pytest.mark.parametrize("warm", [True, False])
def test_growing_that_was_interrupted_goes_on_to_the_same_features(tmp_path, warm):
    samples = conjunction_samples(300)
    options = GrowOptions(limit=17, per_round=2, factors=3, warm=warm)

    def run(folder, rounds):
        def report(done, note, total):
            if note.startswith(f"round {rounds}:"):
                raise KeyboardInterrupt

        growth = Growth(samples, Combinations(8), 2, options, seed=4)
        with suppress(KeyboardInterrupt):
            grow(growth, TrainingRun(out=folder, seed=4), {}, report)
        return growth.combinations.pairs

    whole = run(tmp_path / "whole", 99)
    run(tmp_path / "cut", 2)
    assert len(run(tmp_path / "cut", 4)) < len(whole)
    np.testing.assert_array_equal(run(tmp_path / "cut", 99), whole)
    with pytest.raises(UsageError, match="started with seed"):
        checkpoint.read(checkpoint.latest(tmp_path / "cut"), seed=5, encoder_version=VERSION)


class Dry(Growing):
    """Adds a feature in the first round and in the third."""

    version, counted, limit = 1, "features", 9

    def __init__(self):
        self.added = []

    def __len__(self):
        return 5 + sum(self.added)

    def round(self):
        self.rounds += 1
        self.added.append(self.rounds % 2)
        return Round(self.rounds, 0.0, [(0, 1)] * self.added[-1])

    def files(self):
        return {"added.safetensors": {"added": np.array(self.added)}}

    def restore(self, place, rounds):
        self.added, self.rounds = load_file(place / "added.safetensors")["added"].tolist(), rounds


def test_growing_that_ended_is_over_when_it_is_resumed(tmp_path):
    """A training may be killed between its last round and its model."""
    for _ in range(2):
        growing = Dry()
        grow(growing, TrainingRun(out=tmp_path), {}, lambda *told: None)
        assert growing.added == [1, 0]


def test_growing_whose_time_is_over_goes_no_further_when_it_is_resumed(tmp_path):
    def run():
        growth = Growth(conjunction_samples(300), Combinations(8), 2, GrowOptions(limit=17, per_round=2), seed=4)
        grow(growth, TrainingRun(out=tmp_path, seed=4, minutes=1e-9), {}, lambda *told: None)
        return growth.combinations.pairs

    first = run()
    assert len(first) == 2
    np.testing.assert_array_equal(run(), first)


def test_a_machine_with_shared_factors_grows_too():
    growth = Growth(
        conjunction_samples(200),
        Combinations(8),
        2,
        GrowOptions(limit=12, per_round=2, factors=3, shared=True),
        seed=1,
    )
    assert len(growth.round().pairs) == 2 and isinstance(growth.machine, FactorizationMachine)
