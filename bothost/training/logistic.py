"""Multinomial logistic regression over sparse binary features, with softmax over the legal classes.

The problem is convex: L-BFGS finds its optimum, so that nothing depends on step sizes or on the order of samples. What
is fitted is W = s·W₀ + D + U·G: a model to stay close to (W₀, 0 without one), what is of each class alone (D), and what
classes of one group share (U; G says who belongs to which group), each change with an L2 penalty of its own. The scale
s says how sure of itself W₀ may be: without it, a model that was fitted to others and is too sure of these samples
could be moderated only by changes that cost agreement. The result is one dense layer all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bothost.rules import _native
from bothost.training.factorization import FactorizationMachine, FloatArray, Samples, SparseRows


@dataclass(frozen=True)
class Linear:
    """y_r(x) = bias_r + sum of weights_ir over the features i that are set."""

    weights: FloatArray
    """float32, shape (features, classes)."""
    bias: FloatArray
    """float32, shape (classes,)."""

    @classmethod
    def zeros(cls, features: int, classes: int) -> Linear:
        """All legal classes equally likely."""
        return cls(np.zeros((features, classes), np.float32), np.zeros(classes, np.float32))

    def widened(self, features: int) -> Linear:
        """The same model of more features, whose weights are 0."""
        return Linear(np.pad(self.weights, ((0, features - len(self.weights)), (0, 0))), self.bias)

    def probabilities(self, features: SparseRows, legal: SparseRows) -> FloatArray:
        """float32, laid out as ``legal.items``: each row sums to 1."""
        rows, columns = self.weights.shape
        machine = FactorizationMachine(rows, columns, 0)
        machine.load({"weights": self.weights, "bias": self.bias})
        return machine.probabilities(features, legal)


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


def loss_and_gradient(model: Linear, samples: Samples) -> tuple[float, FloatArray, FloatArray]:
    """Sum of the cross-entropies (nats), and its gradient by weights (features, classes) and bias (classes,)."""
    features, legal = samples.features, samples.legal
    loss, weights, bias = _native.linear_loss(
        model.weights.reshape(-1),
        model.bias,
        features.offsets,
        features.items,
        legal.offsets,
        legal.items,
        samples.labels,
    )
    return loss, weights.reshape(model.weights.shape), bias


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
    """The objective over one flat array: what of D the samples can tell anything of, then U, then s - 1.

    D and U have a last row for the bias. Numbers of D that no sample uses stay at 0, and are left out of the search.
    """

    def __init__(self, samples: Samples, start: Linear, groups: npt.NDArray[np.integer] | None) -> None:
        self._samples, self._start = samples, start
        features, classes = start.weights.shape
        self._shape = features + 1, classes
        count = 0 if groups is None else int(groups.max()) + 1
        self._members = np.zeros((classes, count), np.float32)
        if groups is not None:
            self._members[np.arange(classes), groups] = 1.0
        self._used = np.flatnonzero(used(samples, features, classes))
        self._rows = np.vstack([start.weights, start.bias])

    def changes_to(self, model: Linear) -> FloatArray:
        """Flat changes that lead from the start to a model, all of them of the classes alone."""
        own = np.vstack([model.weights - self._start.weights, model.bias - self._start.bias])
        shared = np.zeros(self._shape[0] * self._members.shape[1] + 1, np.float32)
        return np.concatenate([own.reshape(-1)[self._used], shared])

    def model(self, changes: FloatArray) -> Linear:
        own, shared, scale = self._split(changes)
        change = shared @ self._members.T
        change.reshape(-1)[self._used] += own
        if scale:
            change += np.float32(scale) * self._rows
        return Linear(self._start.weights + change[:-1], self._start.bias + change[-1])

    def objective(self, changes: FloatArray, penalties: Penalties) -> tuple[float, FloatArray]:
        """Per sample, so that tolerances mean the same for many as for few."""
        own, shared, scale = self._split(changes)
        loss, by_weights, by_bias = loss_and_gradient(self.model(changes), self._samples)
        gradient = np.vstack([by_weights, by_bias])
        by_shared = gradient @ self._members + penalties.shared * shared
        by_own = gradient.reshape(-1)[self._used] + penalties.own * own
        loss += 0.5 * penalties.own * float(np.vdot(own, own))
        loss += 0.5 * penalties.shared * float(np.vdot(shared, shared))
        by_scale = 0.0
        if penalties.scale is not None:
            penalty = penalties.scale * (SURER if scale > 0 else 1.0)
            by_scale = float(np.vdot(gradient, self._rows)) + penalty * scale
            loss += 0.5 * penalty * scale**2
        count = len(self._samples)
        together: FloatArray = np.concatenate([by_own, by_shared.reshape(-1), [by_scale]], dtype=np.float32)
        together /= count
        return loss / count, together

    def _split(self, changes: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """D where it is used, U, and s - 1."""
        count = len(self._used)
        return changes[:count], changes[count:-1].reshape(self._shape[0], -1), float(changes[-1])


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
