"""The methods that a clone is compared with: plain factorization machines, logistic regression and networks.

Every method sees the same base features and legal classes, and may be trained on the crowd first. Each chooses its
penalties and its length of training on left-out hands of the same player; results are measured on other hands. The
source has no afterstates. So there is the clone's method without them, and logistic regression and a network with them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from bothost.training.factorization import FactorizationMachine, FloatArray, Samples
from bothost.training.logistic import Linear
from bothost_fm_clone.combinations import Combinations
from bothost_fm_clone.encode import Encoding
from bothost_fm_clone.fit import CROWD_PENALTIES, PLAYER_PENALTIES, TUNED_ON, adapt, score
from bothost_fm_clone.grow import GrowOptions, Growth
from bothost_fm_clone.samples import Decisions

Tuned = TypeVar("Tuned")
Predict = Callable[[Samples], FloatArray]
"""Probabilities of samples of base features, laid out as ``Samples.legal.items``."""
LEFT_OUT = 0.2
"""Share of the hands that chooses penalties and the length of a training."""
MACHINE_TUNED = ((0.02, 1e-3), (0.05, 1e-2), (0.1, 1e-3))
"""Candidates (rate of AdaGrad, L2) for the plain machine."""
BATCHES = 16, 256
"""Least and most samples of a network's step; between them a fortieth of all: few samples ask for as many steps."""
WITH_AFTERSTATES = " + afterstates"
LEAF_WIDTH = 64
"""Hidden units for an afterstate in a network."""
PATIENCE = 3
"""Epochs without gain on left-out hands, after which a training of a network or a plain machine ends."""


@dataclass(frozen=True)
class Learner:
    """A method. ``learn(decisions, begin, seed)`` returns a model, to start from or to predict by."""

    name: str
    learn: Callable[[Decisions, Any, int], Any]
    """``begin``: what ``learn`` returned for the crowd, None: nothing."""
    predict: Callable[[Any], Predict]


def grown(
    encoding: Encoding,
    options: GrowOptions,
    most: int,
    *,
    afterstates: bool = True,
    known: dict[bytes, Combinations] | None = None,
) -> Learner:
    """Features that grow, and one linear layer. A model that starts from a crowd keeps the crowd's features.

    ``afterstates``: the layer also sees the afterstate of each class; False: as in the source. ``known``: features
    grown on earlier samples, shared by methods that differ in the layer only.
    """
    grown_on = {} if known is None else known
    leaves = len(encoding.leaves) if afterstates else 0

    def learn(decisions: Decisions, begin: tuple[Combinations, Linear] | None, seed: int) -> Any:
        if begin is None:
            some = decisions.where(np.arange(len(decisions)) < most)
            key = _digest(some.samples, seed)
            if key not in grown_on:
                grown_on[key] = grow_on(some.samples, encoding, options, seed)
            combinations = grown_on[key]
            start = Linear.zeros(len(combinations), len(encoding.classes), leaves)
        else:
            combinations, start = begin
        seen = replace(decisions.samples, features=combinations.extend(decisions.samples.features))
        penalties = CROWD_PENALTIES if begin is None and len(decisions) > most / 2 else PLAYER_PENALTIES
        return combinations, adapt(replace(decisions, samples=seen), start, encoding.groups, penalties)[0]

    def predict(learnt: tuple[Combinations, Linear]) -> Predict:
        combinations, linear = learnt
        return lambda samples: linear.probabilities(
            combinations.extend(samples.features), samples.legal, samples.alternatives
        )

    return Learner("grown FM + linear" if afterstates else "the same without afterstates", learn, predict)


def _digest(samples: Samples, seed: int) -> bytes:
    parts = samples.features.offsets, samples.features.items, samples.legal.items, samples.labels
    digest = hashlib.blake2b(str(seed).encode())
    for part in parts:
        digest.update(part.tobytes())
    return digest.digest()


def grow_on(samples: Samples, encoding: Encoding, options: GrowOptions, seed: int) -> Combinations:
    """Features that grow on these samples, until the limit."""
    growth = Growth(samples, Combinations(len(encoding.features)), len(encoding.classes), options, seed)
    while len(growth) < growth.limit and growth.round().pairs:
        pass
    return growth.combinations


def logistic(encoding: Encoding, *, afterstates: bool = False) -> Learner:
    """Multinomial logistic regression on the base features, with the clone's own last step.

    ``afterstates``: on those, too. It is what the clone is if nothing grows.
    """
    leaves = len(encoding.leaves) if afterstates else 0

    def learn(decisions: Decisions, begin: Linear | None, seed: int) -> Linear:
        start = begin or Linear.zeros(len(encoding.features), len(encoding.classes), leaves)
        penalties = PLAYER_PENALTIES if len(decisions) < 20_000 else CROWD_PENALTIES
        return adapt(decisions, start, encoding.groups, penalties)[0]

    def predict(learnt: Linear) -> Predict:
        return lambda samples: learnt.probabilities(samples.features, samples.legal, samples.alternatives)

    return Learner("logistic regression" + WITH_AFTERSTATES * afterstates, learn, predict)


def machine(encoding: Encoding, factors: int, epochs: int = 8) -> Learner:
    """A factorization machine with shared factors on the base features: combinations of two features only."""

    def train(decisions: Decisions, begin: Any, tuned: tuple[float, float], seed: int) -> Iterator[Any]:
        rate, decay = tuned
        made = FactorizationMachine(
            len(encoding.features), len(encoding.classes), factors, shared=True, seed=seed, deviation=0.05
        )
        if begin is not None:
            made.load({name: values for name, values in begin.items() if not name.endswith("_squares")})
        for epoch in range(epochs):
            order = np.random.default_rng([seed, epoch]).permutation(len(decisions))
            made.train(decisions.samples, order, rate=rate, factor_decay=decay, weight_decay=decay)
            yield made.parameters()

    def learn(decisions: Decisions, begin: Any, seed: int) -> Any:
        return _tuned(lambda some, tuned: train(some, begin, tuned, seed), predict, decisions, MACHINE_TUNED)

    def predict(learnt: Any) -> Predict:
        made = FactorizationMachine(len(encoding.features), len(encoding.classes), factors, shared=True)
        made.load(learnt)
        return lambda samples: made.probabilities(samples.features, samples.legal)

    return Learner("plain FM", learn, predict)


class Network(nn.Module):
    """Base features (samples, features), 0 or 1 → logits of the classes, by hidden layers with ReLU.

    ``leaves``: number of features of an afterstate; 0: none. With them a second hidden layer adds to each legal class
    a term for its afterstate and the position together.
    """

    def __init__(self, features: int, hidden: Sequence[int], classes: int, leaves: int = 0) -> None:
        super().__init__()
        self.first = nn.Linear(features, hidden[0])
        nn.init.normal_(self.first.weight, 0.0, 0.1)
        layers: list[nn.Module] = [nn.ReLU()]
        for width, after in zip(hidden, [*hidden[1:], classes], strict=True):
            layers += [nn.Linear(width, after), nn.ReLU()]
        self.rest = nn.Sequential(*layers[:-1])
        self.leaf: nn.EmbeddingBag | None = None
        if leaves:
            self.leaf = nn.EmbeddingBag(leaves, LEAF_WIDTH, mode="sum", include_last_offset=True)
            nn.init.normal_(self.leaf.weight, 0.0, 0.1)
            self.position = nn.Linear(hidden[0], LEAF_WIDTH)
            self.said = nn.Linear(LEAF_WIDTH, 1, bias=False)

    def forward(self, samples: Samples) -> Tensor:
        """Shape (samples, classes), very negative where a class is not legal."""
        seen = self.first(torch.from_numpy(samples.features.dense(self.first.in_features)))
        logits: Tensor = self.rest(seen)
        legal = samples.legal.dense(logits.shape[1])
        own = samples.alternatives
        if self.leaf is not None and own is not None:
            row = torch.from_numpy(samples.legal.row_of)
            bags = self.leaf(torch.from_numpy(own.items), torch.from_numpy(own.offsets.astype(np.int32)))
            said = self.said((bags + self.position(seen.relu())[row]).relu()).squeeze(1)
            logits = logits.index_put((row, torch.from_numpy(samples.legal.items).long()), said, accumulate=True)
        return logits.masked_fill(torch.from_numpy(legal == 0), -1e9)


def network(
    encoding: Encoding,
    name: str,
    hidden: Sequence[int],
    penalties: Sequence[tuple[float, float]] = ((0.0, 1e-2), (1e-5, 1e-2), (1e-4, 1e-1)),
    epochs: int = 40,
    *,
    afterstates: bool = False,
    seen: Callable[[Samples], Samples] = lambda samples: samples,
) -> Learner:
    """A network with (L1 of the first layer, decoupled L2) chosen among ``penalties``, and stopped in time.

    ``seen`` gives the samples of a batch the features of ``encoding``: all samples with them may not fit in memory.
    """

    def made() -> Network:
        leaves = len(encoding.leaves) if afterstates else 0
        return Network(len(encoding.features), hidden, len(encoding.classes), leaves)

    def train(decisions: Decisions, begin: Any, penalty: tuple[float, float], seed: int) -> Iterator[Any]:
        torch.manual_seed(seed)
        net = made()
        if begin is not None:
            net.load_state_dict(begin)
        rate = 1e-3 if begin is None else 3e-4
        optimizer = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=penalty[1], fused=True)
        for epoch in range(epochs):
            _epoch(net, optimizer, decisions.samples, seen, penalty[0], np.random.default_rng([seed, epoch]))
            yield {key: value.clone() for key, value in net.state_dict().items()}

    def learn(decisions: Decisions, begin: Any, seed: int) -> Any:
        return _tuned(lambda some, penalty: train(some, begin, penalty, seed), predict, decisions, penalties)

    def predict(learnt: Any) -> Predict:
        net = made()
        net.load_state_dict(learnt)
        return lambda samples: _network_probabilities(net, samples, seen)

    return Learner(name + WITH_AFTERSTATES * afterstates, learn, predict)


def _tuned(
    train: Callable[[Decisions, Tuned], Iterator[Any]],
    predict: Callable[[Any], Predict],
    decisions: Decisions,
    candidates: Sequence[Tuned],
) -> Any:
    """The model of the best candidate, trained for the number of epochs that is best on left-out hands.

    ``train`` yields the model after each epoch. If there are many decisions, candidates are tried on the first ones,
    and left-out decisions stay out. If there are few, the final model learns from all of them.
    """
    rest, out = split(decisions)
    some = rest.where(np.arange(len(rest)) < TUNED_ON)
    stopped = [(*_stopped(train(some, candidate), predict, out), candidate) for candidate in candidates]
    _, epochs, _, best = min(stopped, key=lambda found: found[0])
    if len(some) < len(rest):
        return _stopped(train(rest, best), predict, out)[2]
    return next(islice(train(decisions, best), epochs - 1, None))


def _stopped(train: Iterator[Any], predict: Callable[[Any], Predict], out: Decisions) -> tuple[float, int, Any]:
    """The least log-loss on left-out decisions, with its number of epochs and its model."""
    best: tuple[float, int, Any] = (np.inf, 1, None)
    for epoch, learnt in enumerate(train, 1):
        loss = score(predict(learnt)(out.samples), out.samples).log_loss
        if best[2] is None or loss < best[0]:
            best = loss, epoch, learnt
        elif epoch - best[1] == PATIENCE:
            break
    return best


def _epoch(
    net: Network,
    optimizer: torch.optim.Optimizer,
    samples: Samples,
    seen: Callable[[Samples], Samples],
    l1: float,
    rng: np.random.Generator,
) -> None:
    batch = int(np.clip(len(samples) // 40, *BATCHES))
    for rows in np.array_split(rng.permutation(len(samples)), max(1, len(samples) // batch)):
        part = seen(samples.take(rows))
        logits = net(part)
        loss = nn.functional.cross_entropy(logits, torch.from_numpy(part.labels.astype(np.int64)))
        if l1:
            loss = loss + l1 * net.first.weight.abs().sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


@torch.inference_mode()
def _network_probabilities(net: Network, samples: Samples, seen: Callable[[Samples], Samples]) -> FloatArray:
    parts = []
    for rows in np.array_split(np.arange(len(samples)), max(1, len(samples) // 1024)):
        part = seen(samples.take(rows))
        odds = net(part).softmax(dim=1).numpy()
        parts.append(odds[part.legal.row_of, part.legal.items])
    return np.concatenate(parts)


def split(decisions: Decisions) -> tuple[Decisions, Decisions]:
    """The hands to learn from, and the hands to choose by."""
    out = decisions.parts < LEFT_OUT
    if not out.any() or out.all():
        out = decisions.hands == decisions.hands[0]
    return decisions.where(~out), decisions.where(out)
