"""The directions in which players differ: they are found, kept in a file, and place a player among others."""

import numpy as np
import pytest
import safetensors.numpy

from bothost import ModelError
from bothost.training.conditional import ConditionalMachine, Shape
from bothost.training.factorization import Samples, SparseRows
from bothost_fm_clone.directions import Directions, Tangent, differences, flat, unflat
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.shared import VERSION, SharedClone, load
from bothost_fm_clone.sight import REVISION

SHAPE = Shape(positions=6, choices=10, classes=4, players=1, quadratic=3, rectified=4)


def random_parameters(seed, deviation=0.5):
    rng = np.random.default_rng(seed)
    blank = ConditionalMachine(SHAPE).parameters()
    return {name: rng.normal(0, deviation, len(values)).astype(np.float32) for name, values in blank.items()}


def decided(machine, count, seed):
    """Decisions among four candidates, drawn by a machine's probabilities."""
    rng = np.random.default_rng(seed)
    features = SparseRows.of([np.flatnonzero(rng.random(6) < 0.5).astype(np.int32) for _ in range(count)])
    own = SparseRows.of([np.flatnonzero(rng.random(10) < 0.4).astype(np.int32) for _ in range(4 * count)])
    legal = SparseRows.of([np.arange(4, dtype=np.int32)] * count)
    samples = Samples(features, legal, np.zeros(count, np.int32), own)
    odds = machine.probabilities(samples, np.zeros(count, np.int32)).reshape(-1, 4).astype(np.float64)
    labels = np.array([rng.choice(4, p=row / row.sum()) for row in odds], np.int32)
    return Samples(features, legal, labels, own)


def two_directions():
    """What sixty players differ in, and the directions that are found from these players."""
    begin, axes = random_parameters(1), np.stack([flat(random_parameters(seed, 0.3)) for seed in (2, 3)])
    axes[1] *= 0.5
    places = np.random.default_rng(4).normal(size=(60, 2))
    players = [unflat(flat(begin) + place @ axes.astype(np.float64), begin) for place in places]
    found = Directions.of(differences(begin, players).astype(np.float32), 2)
    assert found is not None
    return begin, axes, found


def test_directions_span_what_players_differ_in_by_their_standard_deviations():
    begin, axes, found = two_directions()
    spanned = np.stack([flat(found.at(begin, step)) - flat(begin) for step in np.eye(2)])
    for axis in axes:
        best, *_ = np.linalg.lstsq(spanned.T, axis, rcond=None)
        assert np.linalg.norm(axis - best @ spanned) < 0.03 * np.linalg.norm(axis)
    lengths = np.linalg.norm(spanned, axis=1)
    assert lengths == pytest.approx(np.linalg.norm(axes, axis=1), rel=0.25)
    assert abs(spanned[0] @ spanned[1]) < 0.03 * lengths[0] * lengths[1]


def test_a_player_is_found_by_their_decisions():
    begin, _, found = two_directions()
    machine = ConditionalMachine(SHAPE)
    truth = np.array([1.5, -1.0])
    machine.load(found.at(begin, truth))
    samples = decided(machine, 3000, 5)
    machine.load(begin)
    tangent = Tangent.of(machine, found, samples)
    np.testing.assert_array_equal(machine.parameters()["factors"], begin["factors"])
    rows = np.arange(3000)
    assert tangent.most_probable(samples, rows) == pytest.approx(truth, abs=0.4)
    # The prior holds: without decisions of note, a player is the crowd.
    few = tangent.most_probable(samples, rows[:3])
    assert np.abs(few).max() < np.abs(truth).max()


def test_the_coordinates_are_the_most_probable_ones():
    begin, _, found = two_directions()
    machine = ConditionalMachine(SHAPE)
    machine.load(begin)
    samples = decided(machine, 200, 6)
    tangent = Tangent.of(machine, found, samples)
    at = tangent.most_probable(samples, np.arange(200))
    offsets, labels = samples.legal.offsets, samples.labels

    def loss(place):
        scores = (tangent.scores + tangent.slopes @ place).reshape(-1, 4)
        own = scores[np.arange(200), labels]
        return float((np.log(np.exp(scores).sum(axis=1)) - own).sum() + place @ place / 2)

    assert len(offsets) == 201
    for step in (*np.eye(2), *-np.eye(2)):
        assert loss(at) < loss(at + 0.1 * step)


def test_too_few_players_have_no_directions():
    assert Directions.of(np.ones((3, 5), np.float32), 8) is None
    some = np.random.default_rng(1).normal(size=(9, 5)).astype(np.float32)
    found = Directions.of(some, 8)
    assert found is not None and len(found) == 2


def small_crowd():
    blank = SharedClone.blank(encoding("othello"), 2, 3, 1)
    some = np.random.default_rng(1).normal(size=(8, sum(map(len, blank.parameters.values())))).astype(np.float32)
    return SharedClone(blank.encoding, blank.pairs, blank.parameters, 2, 3, Directions.of(some, 2))


def test_a_crowd_comes_back_from_its_file_with_its_directions(tmp_path):
    crowd = small_crowd()
    crowd.save(tmp_path / "othello.safetensors")
    again = load(tmp_path / "othello.safetensors", "othello").directions
    np.testing.assert_array_equal(again.codes, crowd.directions.codes)
    np.testing.assert_array_equal(again.scales, crowd.directions.scales)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bias": np.zeros((3, 1), np.float16)}, "not all rows of finite numbers"),
        ({"directions": np.zeros((2, 7), np.int8)}, "not those of its parameters"),
        ({"scales": np.full(2, np.nan, np.float32)}, "scales of its directions"),
        ({"scales": np.zeros(5, np.float32)}, "scales of its directions"),
    ],
)
def test_damaged_directions_are_refused(tmp_path, change, words):
    path = tmp_path / "othello.safetensors"
    small_crowd().save(path)
    safetensors.numpy.save_file(
        {**safetensors.numpy.load_file(path), **change},
        path,
        {"game": "othello", "encoder_version": str(VERSION), "features": str(REVISION)},
    )
    with pytest.raises(ModelError, match=words):
        load(path, "othello")
