"""Logistic regression over legal classes against finite differences, torch's autograd and its own laws."""

import itertools

import numpy as np
import pytest
import torch

from bothost.training import logistic
from bothost.training.factorization import Samples, SparseRows
from bothost.training.logistic import Linear, Penalties, fit, fits, loss_and_gradient, used

FEATURES, CLASSES, OWN = 9, 6, 4


def drawn(count, seed, own=0):
    """Samples whose labels follow a linear model, and that model; with ``own`` features of the classes themselves."""
    rng = np.random.default_rng(seed)
    shapes = (FEATURES, CLASSES), CLASSES, (own, CLASSES)
    model = Linear(*(rng.normal(0, 1, shape).astype(np.float32) for shape in shapes))
    features = SparseRows.of(np.flatnonzero(rng.random(FEATURES) < 0.4) for _ in range(count))
    legal = SparseRows.of(
        np.sort(rng.choice(CLASSES, rng.integers(1, CLASSES + 1), replace=False)) for _ in range(count)
    )
    alternatives = SparseRows.of(np.flatnonzero(rng.random(own) < 0.5) for _ in legal.items) if own else None
    odds = SparseRows(legal.offsets, model.probabilities(features, legal, alternatives))
    labels = [rng.choice(legal[s], p=odds[s].astype(float) / odds[s].sum(dtype=float)) for s in range(count)]
    return Samples(features, legal, np.array(labels, np.int32), alternatives), model


def dense_loss(weights, bias, own, data):
    """The formula in torch, with autograd."""
    total = torch.zeros((), dtype=torch.float64)
    for s in range(len(data)):
        scores = bias + weights[data.features[s].tolist()].sum(0)
        legal = data.legal[s].tolist()
        for at, r in zip(data.legal.places(np.array([s])), legal, strict=True):
            if data.alternatives is not None:
                scores = scores + own[data.alternatives[at].tolist(), r].sum() * (torch.arange(CLASSES) == r)
        total = total + torch.logsumexp(scores[legal], 0) - scores[int(data.labels[s])]
    return total


@pytest.mark.parametrize("own", [0, OWN])
def test_loss_and_gradient_are_those_of_autograd(own):
    data, model = drawn(40, 1, own)
    tensors = [
        torch.tensor(values, dtype=torch.float64, requires_grad=True)
        for values in (model.weights, model.bias, model.alternatives)
    ]
    expected = dense_loss(*tensors, data)
    expected.backward()
    loss, by = loss_and_gradient(model, data)
    assert loss == pytest.approx(float(expected.detach()), rel=1e-6)
    for found, tensor in zip((by.weights, by.bias, by.alternatives), tensors, strict=True):
        if tensor.numel():
            np.testing.assert_allclose(found, tensor.grad.numpy(), atol=1e-5)


def test_features_of_the_classes_are_learnt_and_shared_by_all_of_them():
    """The truth weighs them alike for all classes; class 5 is legal in no sample that is learnt from."""
    data, truth = drawn(3000, 3, OWN)
    rows = np.array([s for s in range(3000) if 5 not in data.legal[s] and len(data.legal[s]) > 1])
    truth = Linear(0 * truth.weights, 0 * truth.bias, np.repeat(truth.alternatives[:, :1], CLASSES, axis=1))
    odds = truth.probabilities(data.features, data.legal, data.alternatives)
    best = [data.legal[s][np.argmax(odds[data.legal.places(np.array([s]))])] for s in range(3000)]
    data = Samples(data.features, data.legal, np.array(best, np.int32), data.alternatives)
    found = fit(data.take(rows), Linear.zeros(FEATURES, CLASSES, OWN), Penalties(10.0, 1.0), np.arange(CLASSES) // 3)
    fresh = found.probabilities(data.features, data.legal, data.alternatives)
    hits = [np.argmax(part) == np.argmax(true) for part, true in zip(
        np.split(fresh, data.legal.offsets[1:-1]), np.split(odds, data.legal.offsets[1:-1]), strict=True)]  # fmt: skip
    assert np.mean(hits) > 0.93
    blind = fit(data.take(rows), Linear.zeros(FEATURES, CLASSES), Penalties(10.0, 1.0), np.arange(CLASSES) // 3)
    assert loss_and_gradient(found, data)[0] < 0.4 * loss_and_gradient(blind, data)[0]


def test_a_widened_model_is_the_same_model():
    data, model = drawn(20, 4, OWN)
    wider = model.widened(FEATURES + 2, OWN + 3)
    assert wider.weights.shape == (FEATURES + 2, CLASSES) and wider.alternatives.shape == (OWN + 3, CLASSES)
    assert loss_and_gradient(wider, data)[0] == loss_and_gradient(model, data)[0]


@pytest.mark.parametrize("groups", [None, np.array([0, 0, 1, 1, 2, 2])])
def test_at_the_optimum_the_gradient_vanishes_wherever_the_search_begins(groups):
    data, _ = drawn(200, 2)
    start = Linear.zeros(FEATURES, CLASSES)
    penalties = Penalties(own=3.0, shared=0.5)
    found = fit(data, start, penalties, groups, tolerance=1e-7)
    _, again = fits(data, start, [Penalties(own=0.1, shared=0.1), penalties], groups, tolerance=1e-7)
    np.testing.assert_allclose(found.weights, again.weights, atol=2e-3)
    if groups is None:
        by = loss_and_gradient(found, data)[1]
        np.testing.assert_allclose(by.weights, -3.0 * found.weights, atol=2e-2)
        np.testing.assert_allclose(by.bias, -3.0 * found.bias, atol=2e-2)


def test_it_learns_what_the_samples_follow():
    data, truth = drawn(4000, 3)
    fresh, _ = drawn(1000, 3)
    found = fit(data, Linear.zeros(FEATURES, CLASSES), Penalties(0.1, 0.1))
    ratio = loss_and_gradient(found, fresh)[0] / loss_and_gradient(truth, fresh)[0]
    assert ratio < 1.04


def test_few_samples_move_a_model_little_and_none_leave_it():
    few, start = drawn(5, 4)
    near, far = (fit(few, start, Penalties(own, own)) for own in (1000.0, 0.01))
    moved = [np.abs(model.weights - start.weights).max() for model in (near, far)]
    assert 0 < moved[0] < 0.02 < moved[1]
    np.testing.assert_array_equal(fit(few.take(np.arange(0)), start, Penalties()).weights, start.weights)


def test_a_model_that_is_too_sure_is_moderated_and_agrees_as_before():
    data, truth = drawn(2000, 8)
    sure = Linear(3.0 * truth.weights, 3.0 * truth.bias)
    held = fit(data, sure, Penalties(1e5, 1e5))
    found = fit(data, sure, Penalties(1e5, 1e5, scale=1.0))
    scale = float(np.vdot(found.weights, sure.weights) / np.vdot(sure.weights, sure.weights))
    assert scale == pytest.approx(1 / 3, abs=0.05)
    np.testing.assert_allclose(found.weights, scale * sure.weights, atol=0.02)
    before, after = (model.probabilities(data.features, data.legal) for model in (sure, found))
    starts = data.legal.offsets
    same = [np.argmax(before[a:b]) == np.argmax(after[a:b]) for a, b in itertools.pairwise(starts)]
    assert np.mean(same) > 0.99
    assert loss_and_gradient(found, data)[0] < 0.95 * loss_and_gradient(held, data)[0]


def test_one_penalty_after_the_other_gives_what_each_gives_alone():
    data, start = drawn(80, 9)
    penalties = [Penalties(own, own, 10.0) for own in (100.0, 10.0, 1.0)]
    for each, found in zip(penalties, fits(data, start, penalties, np.array([0, 0, 1, 1, 2, 2])), strict=True):
        alone = fit(data, start, each, np.array([0, 0, 1, 1, 2, 2]))
        np.testing.assert_allclose(found.weights, alone.weights, atol=2e-2)
    assert [model.bias.tolist() for model in fits(data.take(np.arange(0)), start, penalties)] == 3 * [
        start.bias.tolist()
    ]


def test_classes_of_a_group_learn_from_each_other():
    """Feature 0 speaks for classes 1 and 2 alike, but class 2 is never seen with it."""
    row, legal = [0], [0, 1]
    data = Samples(SparseRows.of([row] * 20), SparseRows.of([legal] * 20), np.ones(20, np.int32))
    start = Linear.zeros(1, 3)
    alone = fit(data, start, Penalties(1.0, 1.0))
    shared = fit(data, start, Penalties(1.0, 1.0), np.array([0, 1, 1]))
    assert alone.weights[0, 2] == 0.0
    assert shared.weights[0, 2] > 0.2


def test_weights_that_no_sample_uses_are_left_out_and_nothing_else_changes(monkeypatch):
    data, start = drawn(30, 6)
    sparse = fit(data, start, Penalties(1.0, 1.0), tolerance=1e-7)
    mask = used(data, FEATURES, CLASSES)
    expected = {(i, r) for s in range(30) for i in [*data.features[s].tolist(), FEATURES] for r in data.legal[s]}
    assert set(zip(*np.nonzero(mask), strict=True)) == expected
    np.testing.assert_array_equal(sparse.weights[~mask[:-1]], start.weights[~mask[:-1]])
    monkeypatch.setattr(logistic, "DENSE", 1)
    np.testing.assert_allclose(fit(data, start, Penalties(1.0, 1.0), tolerance=1e-7).weights, sparse.weights, atol=1e-3)


def test_bad_sizes_are_refused():
    data, model = drawn(3, 5)
    with pytest.raises(ValueError, match="too large"):
        loss_and_gradient(Linear(model.weights[:2], model.bias), data)
    with pytest.raises(ValueError, match="for each feature"):
        loss_and_gradient(Linear(model.weights, model.bias[:4]), data)
    data, model = drawn(3, 5, OWN)
    with pytest.raises(ValueError, match="differ in length"):
        model.probabilities(data.features, data.legal)
    with pytest.raises(ValueError, match="too large"):
        loss_and_gradient(Linear(model.weights, model.bias, model.alternatives[:1]), data)
