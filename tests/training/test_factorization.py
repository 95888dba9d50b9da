"""Factorization machines against slow and obvious arithmetic."""

import itertools

import numpy as np
import pytest

from bothost.training.factorization import FactorizationMachine, Samples, SparseRows

FEATURES, CLASSES, FACTORS = 13, 11, 5


def samples(count, seed, features=FEATURES, classes=CLASSES):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, min(8, features), count)
    legal = [np.sort(rng.choice(classes, rng.integers(1, classes), replace=False)) for _ in range(count)]
    return Samples(
        SparseRows.of(np.sort(rng.choice(features, size, replace=False)) for size in sizes),
        SparseRows.of(legal),
        np.array([rng.choice(row) for row in legal], np.int32),
    )


def machine(shared, factors=FACTORS):
    """With parameters large enough for every term to matter."""
    made = FactorizationMachine(FEATURES, CLASSES, factors, shared=shared, seed=3, deviation=0.5)
    rng = np.random.default_rng(5)
    own = made.parameters()
    made.load({name: rng.normal(0, 0.5, len(own[name])) for name in ("bias", "weights", "mixing")})
    return made


class Oracle:
    """The formula, written out in float64."""

    def __init__(self, fm):
        parameters = {name: values.astype(np.float64) for name, values in fm.parameters().items()}
        self.bias = parameters["bias"]
        self.weights = parameters["weights"].reshape(FEATURES, CLASSES)
        factors = parameters["factors"].reshape(FEATURES, -1, fm.factors)  # (T, 1 or R, k)
        mixing = parameters["mixing"].reshape(CLASSES, fm.factors) if fm.shared else np.ones((CLASSES, fm.factors))
        self.pair = np.einsum(
            "irf,jrf,rf->ijr", *(np.broadcast_to(factors, (FEATURES, CLASSES, fm.factors)),) * 2, mixing
        )

    def scores(self, features, drop_pair=None, drop_weight=None):
        y = self.bias.copy()
        for i in features:
            y += self.weights[i] if i != drop_weight else 0
        for i, j in itertools.combinations(features, 2):
            y += self.pair[i, j] if (i, j) != drop_pair else 0
        return y

    def loss(self, data, **drop):
        total = 0.0
        for s in range(len(data)):
            legal = data.legal[s]
            y = self.scores(data.features[s].tolist(), **drop)
            total += np.log(np.exp(y[legal]).sum()) - y[data.labels[s]]
        return total / len(data)


@pytest.mark.parametrize("shared", [False, True])
def test_probabilities_are_the_formulas_over_the_legal_classes(shared):
    fm, data = machine(shared), samples(60, 1)
    oracle = Oracle(fm)
    rows = SparseRows(data.legal.offsets, fm.probabilities(data.features, data.legal))
    for s in range(len(data)):
        weights = np.exp(oracle.scores(data.features[s].tolist())[data.legal[s]])
        np.testing.assert_allclose(rows[s], weights / weights.sum(), rtol=2e-5)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("reading", ["pair", "nested", "separate"])
@pytest.mark.parametrize("sure", [1.0, 80.0])
def test_losses_without_a_pair_are_those_of_the_ablated_models(shared, reading, sure):
    """Also of a machine so sure that most classes have no probability left that 32 bits can tell."""
    fm, data = machine(shared), samples(80, 2)
    fm.load({"bias": sure * fm.parameters()["bias"]})
    oracle = Oracle(fm)
    found = fm.pair_losses(data, reading)
    assert found.base == pytest.approx(oracle.loss(data), rel=1e-5)
    together = {pair for s in range(len(data)) for pair in itertools.combinations(data.features[s].tolist(), 2)}
    assert set(zip(found.first.tolist(), found.second.tolist(), strict=True)) == together
    for n, (i, j) in enumerate(zip(found.first.tolist(), found.second.tolist(), strict=True)):
        ablated = [{"drop_pair": (i, j)}]
        if reading == "nested":
            ablated += [{"drop_pair": (i, j), "drop_weight": i}, {"drop_pair": (i, j), "drop_weight": j}]
        elif reading == "separate":
            ablated += [{"drop_weight": i}, {"drop_weight": j}]
        expected = [oracle.loss(data, **drop) for drop in ablated]
        np.testing.assert_allclose([model[n] for model in found.losses], expected, rtol=1e-5)
        assert found.smallest[n] == pytest.approx(min(expected), rel=1e-5)


@pytest.mark.parametrize("features", [5, 97, 300])
def test_pair_losses_do_not_depend_on_where_a_feature_lies(features):
    """Tiles and blocks of features meet without gaps: the same features, spread out, have the same losses."""
    data = samples(50, 4, features=5)
    small = FactorizationMachine(5, CLASSES, FACTORS, seed=1, deviation=0.6)
    place = np.sort(np.random.default_rng(2).choice(features, 5, replace=False))
    large = FactorizationMachine(features, CLASSES, FACTORS, seed=1)
    factors = np.zeros((features, CLASSES * FACTORS), np.float32)
    factors[place] = small.parameters()["factors"].reshape(5, -1)
    large.load({"factors": factors})
    spread = Samples(
        SparseRows(data.features.offsets, place[data.features.items].astype(np.int32)), data.legal, data.labels
    )
    near, far = small.pair_losses(data), large.pair_losses(spread)
    np.testing.assert_array_equal(place[near.first], far.first)
    np.testing.assert_allclose(near.smallest, far.smallest, rtol=1e-6)


@pytest.mark.parametrize(("shared", "factors"), [(False, FACTORS), (True, FACTORS), (False, 0)])
def test_a_step_follows_the_gradient(shared, factors):
    """From fresh accumulators a step of AdaGrad is rate * sign for single weights: compare with finite differences."""
    fm, data = machine(shared, factors), samples(1, 9)
    oracle = Oracle(fm) if factors else None
    before = fm.parameters()
    fm.train(data, rate=1e-3, factor_decay=0.0)
    after = fm.parameters()
    rows = SparseRows(data.legal.offsets, machine(shared, factors).probabilities(data.features, data.legal))
    gradient = np.zeros(CLASSES)
    gradient[data.legal[0]] = rows[0]
    gradient[data.labels[0]] -= 1
    moved = np.flatnonzero(np.abs(gradient) > 1e-6)
    np.testing.assert_allclose((after["bias"] - before["bias"])[moved], -1e-3 * np.sign(gradient[moved]), rtol=1e-2)
    if oracle is None or shared:
        assert oracle is None or not np.array_equal(before["factors"], after["factors"])
        return
    i = int(data.features[0][0])
    r = int(moved[0])
    factors_of = before["factors"].reshape(FEATURES, CLASSES, FACTORS)
    others = sum(factors_of[j, r] for j in data.features[0].tolist() if j != i)
    wanted = gradient[r] * others
    step = (after["factors"] - before["factors"]).reshape(FEATURES, CLASSES, FACTORS)[i, r]
    np.testing.assert_allclose(step / np.linalg.norm(step), -wanted / np.linalg.norm(wanted), atol=1e-2)


@pytest.mark.parametrize("shared", [False, True])
def test_training_learns_a_combination_that_no_single_feature_tells(shared):
    """Exclusive or of two features: no weights can tell, factors do."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (600, 2))
    data = Samples(
        SparseRows.of([[2 * 0 + int(a), 2 + int(b)] for a, b in bits]),
        SparseRows.of([[0, 1]] * 600),
        (bits[:, 0] ^ bits[:, 1]).astype(np.int32),
    )
    losses = {}
    for factors in (0, 4):
        fm = FactorizationMachine(4, 2, factors, shared=shared and factors > 0, seed=1, deviation=0.3)
        for epoch in range(20):
            losses[factors] = fm.train(data, np.random.default_rng(epoch).permutation(600))
    assert losses[0] > 0.65
    assert losses[4] < 0.1


def test_equal_seeds_and_orders_give_equal_bits_and_parameters_resume():
    data = samples(50, 6)
    first, second = (FactorizationMachine(FEATURES, CLASSES, FACTORS, seed=8) for _ in range(2))
    first.train(data)
    second.train(data)
    resumed = FactorizationMachine(FEATURES, CLASSES, FACTORS, seed=99)
    resumed.load(first.parameters())
    second.train(data)
    resumed.train(data)
    for name, values in second.parameters().items():
        np.testing.assert_array_equal(values, resumed.parameters()[name])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": np.array([4, 4], np.int32)}, "not legal"),
        ({"labels": np.array([1], np.int32)}, "length"),
        ({"features": SparseRows.of([[1, 0], [2]])}, "ascend"),
        ({"features": SparseRows.of([[1, 13], [2]])}, "too large"),
        ({"features": SparseRows(np.array([0, 1, 9]), np.array([1, 2], np.int32))}, "last offset"),
        ({"features": SparseRows(np.array([0, 5, 2]), np.array([1, 2], np.int32))}, "ascend"),
        ({"legal": SparseRows.of([[0, 1], [-1]])}, "negative"),
    ],
)
def test_bad_samples_are_refused(change, words):
    good = {
        "features": SparseRows.of([[1], [2]]),
        "legal": SparseRows.of([[0, 1], [1, 2]]),
        "labels": np.array([1, 2], np.int32),
    }
    fm = FactorizationMachine(FEATURES, CLASSES, FACTORS)
    fm.train(Samples(**good))
    with pytest.raises(ValueError, match=words):
        fm.train(Samples(**{**good, **change}))
    with pytest.raises(ValueError, match=words):
        fm.pair_losses(Samples(**{**good, **change}))


@pytest.mark.parametrize("index", [-1, 60])
def test_a_wrong_order_is_refused_before_the_first_step(index):
    fm, data = machine(False), samples(60, 1)
    before = fm.parameters()
    with pytest.raises(ValueError, match="order"):
        fm.train(data, np.array([0, 1, index]))
    assert all(np.array_equal(values, before[name]) for name, values in fm.parameters().items())


def test_a_parameter_of_the_wrong_size_is_refused():
    with pytest.raises(ValueError, match="are needed"):
        FactorizationMachine(3, 2, 1).load({"bias": np.zeros(3, np.float32)})
