"""Multinomial logistic regression over sparse binary features, with softmax over the legal classes.

The problem is convex: L-BFGS finds its optimum, so that nothing depends on step sizes or on the order of samples. What
is fitted is W = W₀ + D + U·G: a model to stay close to (W₀, 0 without one), what is of each class alone (D), and what
classes of one group share (U; G says who belongs to which group), each change with an L2 penalty of its own. The result
is one dense layer all the same.
"""

from __future__ import annotations

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
    if not len(samples):
        return start
    import torch  # here: live play has a Linear, and hosts should not load torch for it

    problem = _Problem(samples, start, penalties, groups)
    found = torch.from_numpy(problem.changes_to(begin or start)).requires_grad_()
    optimizer = torch.optim.LBFGS(
        [found],
        max_iter=iterations,
        tolerance_grad=tolerance,
        tolerance_change=1e-9,
        history_size=8,
        line_search_fn="strong_wolfe",
    )

    def closure() -> float:
        value, gradient = problem.objective(found.detach().numpy())
        found.grad = torch.from_numpy(gradient)
        return value

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return problem.model(found.detach().numpy())


DENSE = 20_000
"""Samples from which on every number of the model is searched for, used or not."""


class _Problem:
    """The objective over one flat array: what of D the samples can tell anything of, then U.

    Both have a last row for the bias. Numbers of D that no sample uses stay at 0, and are left out of the search.
    """

    def __init__(
        self, samples: Samples, start: Linear, penalties: Penalties, groups: npt.NDArray[np.integer] | None
    ) -> None:
        self._samples, self._start, self._penalties = samples, start, penalties
        features, classes = start.weights.shape
        self._shape = features + 1, classes
        count = 0 if groups is None else int(groups.max()) + 1
        self._members = np.zeros((classes, count), np.float32)
        if groups is not None:
            self._members[np.arange(classes), groups] = 1.0
        self._used = np.flatnonzero(used(samples, features, classes))

    def changes_to(self, model: Linear) -> FloatArray:
        """Flat changes that lead from the start to a model, all of them of the classes alone."""
        own = np.vstack([model.weights - self._start.weights, model.bias - self._start.bias])
        shared = np.zeros(self._shape[0] * self._members.shape[1], np.float32)
        return np.concatenate([own.reshape(-1)[self._used], shared])

    def model(self, changes: FloatArray) -> Linear:
        own, shared = self._split(changes)
        change = shared @ self._members.T
        change.reshape(-1)[self._used] += own
        return Linear(self._start.weights + change[:-1], self._start.bias + change[-1])

    def objective(self, changes: FloatArray) -> tuple[float, FloatArray]:
        """Per sample, so that tolerances mean the same for many as for few."""
        own, shared = self._split(changes)
        loss, by_weights, by_bias = loss_and_gradient(self.model(changes), self._samples)
        gradient = np.vstack([by_weights, by_bias])
        by_shared = gradient @ self._members + self._penalties.shared * shared
        by_own = gradient.reshape(-1)[self._used] + self._penalties.own * own
        loss += 0.5 * self._penalties.own * float(np.vdot(own, own))
        loss += 0.5 * self._penalties.shared * float(np.vdot(shared, shared))
        count = len(self._samples)
        together: FloatArray = np.concatenate([by_own, by_shared.reshape(-1)], dtype=np.float32)
        together /= count
        return loss / count, together

    def _split(self, changes: FloatArray) -> tuple[FloatArray, FloatArray]:
        count = len(self._used)
        return changes[:count], changes[count:].reshape(self._shape[0], self._members.shape[1])


def used(samples: Samples, features: int, classes: int) -> npt.NDArray[np.bool_]:
    """Shape (features + 1, classes): which weights some sample uses, the bias in the last row.

    All of them where there are many samples.
    """
    if len(samples) >= DENSE:
        return np.ones((features + 1, classes), np.bool_)
    counts = np.zeros((features + 1, classes), np.float32)
    for start in range(0, len(samples), 1000):
        part = samples.take(np.arange(start, min(start + 1000, len(samples))))
        set_, legal = _dense(part.features, features + 1), _dense(part.legal, classes)
        set_[:, -1] = 1.0
        counts += set_.T @ legal
    return counts > 0


def _dense(rows: SparseRows, width: int) -> FloatArray:
    out = np.zeros((len(rows), width), np.float32)
    out[np.repeat(np.arange(len(rows)), np.diff(rows.offsets)), rows.items] = 1.0
    return out
