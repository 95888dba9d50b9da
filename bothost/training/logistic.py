"""Multinomial logistic regression over sparse binary features, with softmax over the legal classes.

The problem is convex: L-BFGS finds its optimum, so that nothing depends on step sizes or on the order of samples. What
is fitted is W = s·W₀ + D + U·G: a model to stay close to (W₀, 0 without one), what is of each class alone (D), and what
classes of one group share (U; G says who belongs to which group), each change with an L2 penalty of its own. The scale
s says how sure of itself W₀ may be: without it, a model that was fitted to others and is too sure of these samples
could be moderated only by changes that cost agreement. The result is one dense layer all the same.

A legal class may have features of its own in a sample (a conditional logit, McFadden 1974). Their weights change by a
part that all classes share, and by one that classes of a group do.
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
    """y_r(x) = bias_r + sum of weights_ir over the features i that are set + sum of alternatives_mr over the features m
    of class r itself."""

    weights: FloatArray
    """float32, shape (features, classes)."""
    bias: FloatArray
    """float32, shape (classes,)."""
    alternatives: FloatArray = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    """float32, shape (features of a class, classes); none: such features are left out."""

    @classmethod
    def zeros(cls, features: int, classes: int, alternatives: int = 0) -> Linear:
        """All legal classes equally likely."""
        shape = (features, classes), classes, (alternatives, classes)
        return cls(*(np.zeros(each, np.float32) for each in shape))

    def widened(self, features: int, alternatives: int) -> Linear:
        """The same model of at least so many features, and of the classes' own; the weights of new ones are 0."""
        out = Linear.zeros(max(features, len(self.weights)), len(self.bias), max(alternatives, len(self.alternatives)))
        out.weights[: len(self.weights)] = self.weights
        if len(self.alternatives):
            out.alternatives[: len(self.alternatives)] = self.alternatives
        return Linear(out.weights, self.bias, out.alternatives)

    def probabilities(
        self, features: SparseRows, legal: SparseRows, alternatives: SparseRows | None = None
    ) -> FloatArray:
        """float32, laid out as ``legal.items``: each row sums to 1."""
        return _native.linear_probabilities(
            *self._flat, features.offsets, features.items, legal.offsets, legal.items, *_own(alternatives)
        )

    @property
    def _flat(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.weights.reshape(-1), self.bias, self.alternatives.reshape(-1)


def _own(alternatives: SparseRows | None) -> tuple[OffsetArray, IntArray]:
    if alternatives is None:
        return np.zeros(1, np.int64), np.zeros(0, np.int32)
    return alternatives.offsets, alternatives.items


@dataclass(frozen=True)
class Penalties:
    """L2: half of these times the squared norm, beside the sum of the samples' cross-entropies."""

    own: float = 10.0
    """On what is of each class alone."""
    shared: float = 10.0
    """On what classes of a group share."""
    scale: float | None = None
    """On how far the scale of the model to stay close to is below 1; None: it is 1. Above it is not let, but for
    rounding: samples that the model was fitted to would raise it without need."""
    common: float = 10.0
    """On what all classes share of the weights of their own features."""


def loss_and_gradient(model: Linear, samples: Samples) -> tuple[float, Linear]:
    """Sum of the cross-entropies (nats), and its gradient by the model."""
    features, legal = samples.features, samples.legal
    loss, weights, bias, own = _native.linear_loss(
        *model._flat,
        features.offsets,
        features.items,
        legal.offsets,
        legal.items,
        *_own(samples.alternatives),
        samples.labels,
    )
    return loss, Linear(weights.reshape(model.weights.shape), bias, own.reshape(model.alternatives.shape))


def fit(
    samples: Samples,
    start: Linear,
    penalties: Penalties,
    groups: npt.NDArray[np.integer] | None = None,
    *,
    begin: Linear | None = None,
    iterations: int = 100,
    tolerance: float = 1e-5,
) -> Linear:
    """The model that the samples ask for, close to ``start``.

    ``groups`` (classes,): of each class its group, 0 … (None: nothing is shared). ``begin``: where to begin the search;
    the result does not depend on it. It ends after ``iterations``, or when no number of the gradient per sample is
    larger than ``tolerance``.
    """
    return next(fits(samples, start, [penalties], groups, begin=begin, iterations=iterations, tolerance=tolerance))


def fits(
    samples: Samples,
    start: Linear,
    penalties: Iterable[Penalties],
    groups: npt.NDArray[np.integer] | None = None,
    *,
    begin: Linear | None = None,
    iterations: int = 100,
    tolerance: float = 1e-5,
) -> Iterator[Linear]:
    """``fit`` by one penalty after the other, each search beginning where the one before has ended."""
    problem = _Problem(samples, start, groups)
    changes = problem.changes_to(begin if begin is not None and len(samples) else start)
    for each in penalties:
        if len(samples):
            changes = _searched(problem, each, changes, iterations, tolerance)
        yield problem.model(changes)


def _searched(
    problem: _Problem, penalties: Penalties, changes: FloatArray, iterations: int, tolerance: float
) -> FloatArray:
    import torch  # here: live play has a Linear, and hosts should not load torch for it

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
"""Samples from which on every number of the model is searched for, used or not."""


SURER = 1000.0
"""By how much a scale above 1 is penalized more than one below."""


class _Problem:
    """The objective over one flat array: what of D the samples can tell anything of, then U, then what all classes
    share of the weights of their own features, then what classes of a group do, then s - 1.

    D and U have a last row for the bias. Numbers of D that no sample uses stay at 0, and are left out of the search.
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

    def changes_to(self, model: Linear) -> FloatArray:
        """Flat changes that lead from the start to a model, all of them of the classes alone; those of the weights of
        the classes' own features are begun anew."""
        own = np.vstack([model.weights - self._start.weights, model.bias - self._start.bias])
        others = sum(math.prod(shape) for shape in self._shapes[1:])
        return np.concatenate([own.reshape(-1)[self._used], np.zeros(others + 1, np.float32)])

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
        """Per sample, so that tolerances mean the same for many as for few."""
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
        """D where it is used, U, the two parts of the weights of the classes' own features, and s - 1."""
        ends = np.cumsum([math.prod(shape) for shape in self._shapes])
        parts = np.split(changes, ends)
        own, shared, all_, group = (part.reshape(shape) for part, shape in zip(parts, self._shapes, strict=False))
        return own, shared, all_, group, float(changes[-1])


def used(samples: Samples, features: int, classes: int) -> npt.NDArray[np.bool_]:
    """Shape (features + 1, classes): which weights some sample uses, the bias in the last row.

    All of them where there are many samples.
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
