"""The factorization machine that all actions share: scores, steps, ablations and conjunctions by slow oracles."""

import numpy as np
import pytest

from bothost.training.conditional import ConditionalMachine, Shape, extended
from bothost.training.factorization import Samples, SparseRows

SHAPE = Shape(positions=6, choices=5, classes=4, players=2, quadratic=3, rectified=4)


def drawn(count=40, seed=0):
    """Random decisions; each has a feature of the position, and each candidate one of its own."""
    rng = np.random.default_rng(seed)

    def row(width):
        return np.union1d(np.flatnonzero(rng.random(width) < 0.4), [rng.integers(width)]).astype(np.int32)

    legal = [np.sort(rng.choice(4, rng.integers(2, 5), replace=False)).astype(np.int32) for _ in range(count)]
    labels = np.array([rng.choice(each) for each in legal], np.int32)
    own = SparseRows.of([row(5) for each in legal for _ in each])
    return Samples(SparseRows.of([row(6) for _ in range(count)]), SparseRows.of(legal), labels, own)


def trained(samples, shape=SHAPE, **options):
    machine = ConditionalMachine(shape, seed=1, deviation=0.5)
    machine.train(samples, players=players(samples), **options)
    return machine


def players(samples):
    return (np.arange(len(samples)) % 3 - 1).astype(np.int32)


def scores(parameters, shape, position, candidate, player, *, drop=(), weights=()):
    """The definition, term by term; ``drop``: pairs to leave out, ``weights``: candidates' features without weight."""
    rows = parameters["factors"].reshape(-1, shape.width).astype(np.float64)
    begin, k = shape.positions, shape.quadratic
    context = [*position, *([] if player < 0 else [begin + shape.choices + player])]
    own = [begin + j for j in candidate]
    total = sum(float(parameters["weights"][j]) for j in candidate if begin + j not in weights)
    for n, j in enumerate(own):
        for i in [*context, *own[:n]]:
            total += 0.0 if (i, j) in drop else float(rows[i, :k] @ rows[j, :k])
    sums = rows[[*context, *own], k:].sum(axis=0)
    return total + float(np.maximum(0.0, parameters["bias"] + sums) @ parameters["readout"])


def losses(machine, samples, **without):
    parameters, who = machine.parameters(), players(samples)
    out, at = [], 0
    for s in range(len(samples)):
        legal = samples.legal[s]
        found = np.array(
            [
                scores(parameters, machine.shape, samples.features[s], samples.alternatives[at + q], who[s], **without)
                for q in range(len(legal))
            ]
        )
        at += len(legal)
        out.append(np.log(np.exp(found).sum()) - found[list(legal).index(samples.labels[s])])
    return np.array(out)


def test_probabilities_are_the_softmax_of_the_definition():
    samples = drawn()
    machine = trained(samples)
    odds = machine.probabilities(samples, players(samples))
    chosen = odds[np.flatnonzero(samples.legal.items == np.repeat(samples.labels, np.diff(samples.legal.offsets)))]
    np.testing.assert_allclose(-np.log(chosen), losses(machine, samples), atol=1e-5)


@pytest.mark.parametrize("name", ["weights", "factors", "bias", "readout"])
def test_a_step_follows_the_gradient_of_the_loss(name):
    """With AdaGrad's first step every number moves by the rate, against the sign of its gradient."""
    samples = drawn(12)
    machine = ConditionalMachine(SHAPE, seed=1, deviation=0.5)
    before = machine.parameters()
    machine.train(samples, players=players(samples), rate=1e-4, batch=len(samples))
    moved = machine.parameters()[name] - before[name]
    slopes = []
    for index in range(len(moved)):
        sides = []
        for step in (1e-2, -1e-2):
            changed = {key: values.copy() for key, values in before.items()}
            changed[name][index] += step
            machine.load(changed)
            sides.append(losses(machine, samples).sum())
        slopes.append((sides[0] - sides[1]) / 2e-2)
    clear = np.abs(slopes) > 0.05
    assert clear.sum() > len(slopes) / 3
    np.testing.assert_allclose(moved[clear], -1e-4 * np.sign(np.array(slopes)[clear]), rtol=0.02)


def test_pair_losses_are_those_of_ablated_machines():
    samples = drawn()
    machine = trained(samples)
    found = machine.pair_losses(samples, players(samples))
    assert found.base == pytest.approx(losses(machine, samples).mean(), abs=1e-5)
    assert len(found.first) > 30
    for i, j, smallest in zip(found.first.tolist(), found.second.tolist(), found.smallest, strict=True):
        ablated = [{}, {"weights": {j}}] + ([{"weights": {i}}] if i >= SHAPE.positions else [])
        brute = min(losses(machine, samples, drop={(i, j)}, **each).mean() for each in ablated)
        assert smallest == pytest.approx(brute, abs=2e-5)


def test_conjunctions_hold_where_both_parts_do_and_may_be_of_conjunctions():
    samples = drawn()
    pairs = np.array([[0, 7], [6, 8], [2, 11]], np.int32)
    more = extended(samples, pairs, 6, 5)
    row = 0
    for s in range(len(samples)):
        known = set(samples.features[s].tolist())
        for _ in samples.legal[s]:
            own = {6 + j for j in samples.alternatives[row].tolist()}
            made = {11} if {0, 7} <= known | own else set()
            made |= {12} if {6, 8} <= own else set()
            made |= {13} if {2, 11} <= known | made else set()
            assert more[row].tolist() == sorted(n - 6 for n in own | made)
            row += 1


@pytest.mark.parametrize("pair", [[0, 1], [7, 6], [3, 11], [-1, 6], [6, 6]])
def test_what_is_no_conjunction_of_a_candidate_is_refused(pair):
    with pytest.raises(ValueError, match="combination"):
        extended(drawn(3), np.array([pair], np.int32), 6, 5)


def test_features_without_factors_have_a_weight_only():
    samples = drawn()
    shape = Shape(6, 5, 4, 2, 3, 4, embedded=3)
    machine = ConditionalMachine(shape, seed=1, deviation=0.5)
    parameters = machine.parameters()
    rows = parameters["factors"].reshape(-1, shape.width)
    rows[6 + 3 : 6 + 5] = 0
    machine.load(parameters)
    machine.train(samples, players=players(samples))
    after = machine.parameters()
    assert not after["factors"].reshape(-1, shape.width)[9:11].any()
    assert after["weights"][3:].all()
    odds = machine.probabilities(samples, players(samples))
    chosen = odds[np.flatnonzero(samples.legal.items == np.repeat(samples.labels, np.diff(samples.legal.offsets)))]
    np.testing.assert_allclose(-np.log(chosen), losses(machine, samples), atol=1e-5)


def test_only_rows_of_players_move_where_only_they_are_learned():
    samples = drawn()
    machine = trained(samples)
    before = machine.parameters()
    machine.train(samples, players=players(samples), players_only=True)
    after = machine.parameters()
    for name in ("weights", "bias", "readout"):
        np.testing.assert_array_equal(after[name], before[name])
    changed = (after["factors"] != before["factors"]).reshape(-1, SHAPE.width).any(axis=1)
    assert changed.tolist() == [False] * 11 + [True, True]


def test_decay_pulls_towards_the_anchor():
    samples = drawn()

    def away(decay):
        machine = trained(samples)
        machine.anchor()
        before = machine.parameters()["factors"]
        for _ in range(20):
            machine.train(samples, players=players(samples), rate=0.05, decay=decay)
        return np.linalg.norm(machine.parameters()["factors"] - before)

    assert away(10.0) < away(0.1) < away(0.0)


def test_equal_seeds_and_orders_give_equal_parameters():
    one, other = (trained(drawn()).parameters() for _ in range(2))
    for name, values in one.items():
        np.testing.assert_array_equal(values, other[name])


def test_bad_input_is_refused():
    samples = drawn(5)
    machine = ConditionalMachine(SHAPE)
    with pytest.raises(ValueError, match="player is out of range"):
        machine.probabilities(samples, np.full(5, 2, np.int32))
    with pytest.raises(ValueError, match="differ in length"):
        machine.probabilities(Samples(samples.features, samples.legal, samples.labels, SparseRows.of([[0]])))
    with pytest.raises(ValueError, match="order"):
        machine.train(samples, np.array([5], np.int64))
    with pytest.raises(ValueError, match="numbers"):
        machine.load({"weights": np.zeros(4, np.float32)})
    for choices in (0, 2**17 + 1):
        with pytest.raises(ValueError, match="choices"):
            ConditionalMachine(Shape(6, choices, 4))


def test_as_many_combinations_fit_as_a_file_may_have():
    samples = Samples(
        SparseRows.of([[0]]), SparseRows.of([[0, 1]]), np.zeros(1, np.int32), SparseRows.of([[0], [0, 100_900]])
    )
    machine = ConditionalMachine(Shape(6, 101_000, 4, embedded=1000))
    parameters = machine.parameters()
    parameters["weights"][100_900] = 1.0
    machine.load(parameters)
    odds = machine.probabilities(samples)
    assert odds[1] / odds[0] == pytest.approx(np.e, rel=1e-5)
