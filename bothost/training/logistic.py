"""Multinomial logistic regression over sparse binary features, with softmax over the legal classes.

The problem is convex: L-BFGS finds its optimum, so the result does not depend on step sizes or the order of samples.
The fitted weights are W = s·W₀ + D + U·G. W₀ is a prior model (0 without one), D is the change of each class, U is the
change that the classes of a group share, and G assigns classes to groups. Each change has its own L2 penalty. The
scale s can reduce the confidence of W₀: otherwise a prior that is overconfident on these samples could be moderated
only by changes that reduce accuracy. The result is one dense layer.

A legal class may have its own features in a sample (a conditional logit, McFadden 1974). Their weights change by a part
that all classes share and a part that the classes of a group share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bothost.native import _native
from bothost.training.factorization import FloatArray, IntArray, OffsetArray, Samples, SparseRows


@dataclass(frozen=True)
class Linear:
    """y_r(x) = bias_r + sum of weights_ir + sum of alternatives_mr, over set features i and features m of class r."""

    weights: FloatArray
    """float32, shape (features, classes)."""
    bias: FloatArray
    """float32, shape (classes,)."""
    alternatives: FloatArray = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    """float32, shape (features of a class, classes); empty: such features are ignored."""

    @classmethod
    def zeros(cls, features: int, classes: int, alternatives: int = 0) -> Linear:
        """Make a model in which all legal classes are equally likely."""
        shape = (features, classes), classes, (alternatives, classes)
        return cls(*(np.zeros(each, np.float32) for each in shape))

    def widened(self, features: int, alternatives: int) -> Linear:
        """Return the model with at least this many features and class features. New weights are 0."""
        out = Linear.zeros(max(features, len(self.weights)), len(self.bias), max(alternatives, len(self.alternatives)))
        out.weights[: len(self.weights)] = self.weights
        if len(self.alternatives):
            out.alternatives[: len(self.alternatives)] = self.alternatives
        return Linear(out.weights, self.bias, out.alternatives)

    def probabilities(
        self, features: SparseRows, legal: SparseRows, alternatives: SparseRows | None = None
    ) -> FloatArray:
        """float32, laid out as ``legal.items``: each row sums to 1."""
        return _native.linear_probabilities(*self._flat, features.arrays, legal.arrays, _own(alternatives))

    @property
    def _flat(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.weights.reshape(-1), self.bias, self.alternatives.reshape(-1)


def _own(alternatives: SparseRows | None) -> tuple[OffsetArray, IntArray]:
    return (np.zeros(1, np.int64), np.zeros(0, np.int32)) if alternatives is None else alternatives.arrays


@dataclass(frozen=True)
class Penalties:
    """L2 penalties: half of each times a squared norm, added to the sum of the samples' cross-entropies."""

    own: float = 10.0
    """On the changes of each class."""
    shared: float = 10.0
    """On the changes that the classes of a group share."""
    scale: float | None = None
    """On how far the scale of the prior model is below 1; None: the scale is 1. A scale above 1 is penalized much more,
    because samples that the prior was fitted to would raise it without need."""
    common: float = 10.0
    """On the changes of class features that all classes share."""


def loss_and_gradient(model: Linear, samples: Samples) -> tuple[float, Linear]:
    """Return the sum of the cross-entropies (nats), and its gradient with respect to the model."""
    rows = samples.features.arrays, samples.legal.arrays, _own(samples.alternatives)
    loss, weights, bias, own = _native.linear_loss(*model._flat, *rows, samples.labels)
    return loss, Linear(weights.reshape(model.weights.shape), bias, own.reshape(model.alternatives.shape))


def fit(
    samples: Samples,
    start: Linear,
    penalties: Penalties,
    groups: npt.NDArray[np.integer] | None = None,
    *,
    iterations: int = 100,
    tolerance: float = 1e-5,
) -> Linear:
    """Fit a model to the samples, with ``start`` as the prior.

    ``groups`` (classes,): the group of each class, from 0 (None: no groups). The search ends after ``iterations``, or
    when no element of the gradient per sample exceeds ``tolerance``.
    """
    return next(fits(samples, start, [penalties], groups, iterations=iterations, tolerance=tolerance))


def fits(
    samples: Samples,
    start: Linear,
    penalties: Iterable[Penalties],
    groups: npt.NDArray[np.integer] | None = None,
    *,
    iterations: int = 100,
    tolerance: float = 1e-5,
) -> Iterator[Linear]:
    """Call ``fit`` with each penalty. Each search begins where the previous one ended."""
    problem = _Problem(samples, start, groups)
    changes = problem.none
    for each in penalties:
        if len(samples):
            changes = _searched(problem, each, changes, iterations, tolerance)
        yield problem.model(changes)


def _searched(
    problem: _Problem, penalties: Penalties, changes: FloatArray, iterations: int, tolerance: float
) -> FloatArray:
    import torch  # here, because hosts use Linear and must not load torch

    found = torch.from_numpy(changes.copy()).requires_grad_()
    optimizer = torch.optim.LBFGS(
        [found],
        max_iter=iterations,
        tolerance_grad=tolerance,
        tolerance_change=1e-9,
        history_size=8,
        line_search_fn="strong_wolfe",
    )

    def closure() -> float:
        value, gradient = problem.objective(found.detach().numpy(), penalties)
        found.grad = torch.from_numpy(gradient)
        return value

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    reached: FloatArray = found.detach().numpy()
    return reached


DENSE = 20_000
"""With this many samples or more, all weights are fitted, whether a sample uses them or not."""


SURER = 1000.0
"""Factor of the penalty on a scale above 1, compared with one below."""


class _Problem:
    """The objective over one flat array of changes.

    The array holds the used weights of D, then U, then the changes of class features that all classes share, then those
    that groups share, then s - 1. D and U have a last row for the bias. Weights of D that no sample uses stay at 0.
    """

    def __init__(self, samples: Samples, start: Linear, groups: npt.NDArray[np.integer] | None) -> None:
        self._samples, self._start = samples, start
        features, classes = start.weights.shape
        count = 0 if groups is None else int(groups.max()) + 1
        self._members = np.zeros((classes, count), np.float32)
        if groups is not None:
            self._members[np.arange(classes), groups] = 1.0
        self._used = np.flatnonzero(used(samples, features, classes))
        self._rows = np.vstack([start.weights, start.bias])
        own = len(start.alternatives)
        self._own = start.alternatives.reshape(own, classes)
        self._shapes = (len(self._used),), (features + 1, count), (own, 1), (own, count)

    @property
    def none(self) -> FloatArray:
        """No changes."""
        return np.zeros(sum(map(math.prod, self._shapes)) + 1, np.float32)

    def model(self, changes: FloatArray) -> Linear:
        own, shared, all_, group, scale = self._split(changes)
        change = shared @ self._members.T
        change.reshape(-1)[self._used] += own
        alternatives = self._own + all_ + group @ self._members.T
        if scale:
            change += np.float32(scale) * self._rows
            alternatives += np.float32(scale) * self._own
        return Linear(self._start.weights + change[:-1], self._start.bias + change[-1], alternatives)

    def objective(self, changes: FloatArray, penalties: Penalties) -> tuple[float, FloatArray]:
        """Return the objective and its gradient per sample, so that tolerances do not depend on their number."""
        own, shared, all_, group, scale = self._split(changes)
        loss, by = loss_and_gradient(self.model(changes), self._samples)
        gradient, by_own = np.vstack([by.weights, by.bias]), by.alternatives.reshape(self._own.shape)
        parts = [
            (own, gradient.reshape(-1)[self._used], penalties.own),
            (shared, gradient @ self._members, penalties.shared),
            (all_, by_own.sum(axis=1, keepdims=True), penalties.common),
            (group, by_own @ self._members, penalties.own),
        ]
        flat = []
        for values, by_values, penalty in parts:
            loss += 0.5 * penalty * float(np.vdot(values, values))
            flat.append((by_values + penalty * values).reshape(-1))
        by_scale = 0.0
        if penalties.scale is not None:
            penalty = penalties.scale * (SURER if scale > 0 else 1.0)
            by_scale = float(np.vdot(gradient, self._rows)) + penalty * scale
            by_scale += float(np.vdot(by_own, self._own))
            loss += 0.5 * penalty * scale**2
        count = len(self._samples)
        together: FloatArray = np.concatenate([*flat, [by_scale]], dtype=np.float32)
        together /= count
        return loss / count, together

    def _split(self, changes: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]:
        """Split into the used part of D, U, the two parts of class features, and s - 1."""
        ends = np.cumsum([math.prod(shape) for shape in self._shapes])
        parts = np.split(changes, ends)
        own, shared, all_, group = (part.reshape(shape) for part, shape in zip(parts, self._shapes, strict=False))
        return own, shared, all_, group, float(changes[-1])


def used(samples: Samples, features: int, classes: int) -> npt.NDArray[np.bool_]:
    """Return which weights any sample uses, shape (features + 1, classes), with the bias in the last row.

    With ``DENSE`` samples or more, return all.
    """
    if len(samples) >= DENSE:
        return np.ones((features + 1, classes), np.bool_)
    counts = np.zeros((features + 1, classes), np.float32)
    for start in range(0, len(samples), 1000):
        part = samples.take(np.arange(start, min(start + 1000, len(samples))))
        set_, legal = part.features.dense(features + 1), part.legal.dense(classes)
        set_[:, -1] = 1.0
        counts += set_.T @ legal
    return counts > 0
