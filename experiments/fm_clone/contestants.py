"""The methods that ``few_games`` compares: the clone's own, networks, factorization machines and gradient boosting.

Each learns a crowd, then a player from it or from nothing, and chooses its rates and its length of training on left-out
hands.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from bothost.training.factorization import Samples
from bothost_fm_clone.alone import MACHINES, player_alone
from bothost_fm_clone.crowd import SharedOptions, crowd_of, directed
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.fit import score, softmax
from bothost_fm_clone.mixed import player_after
from bothost_fm_clone.numbers import numbers
from bothost_fm_clone.player import player_of
from bothost_fm_clone.samples import Decisions
from bothost_fm_clone.shared import SharedClone
from bothost_fm_clone.sight import Sight, sight
from experiments.fm_clone import compare

TREES = 400
"""Most trees of gradient boosting."""
Floats = npt.NDArray[np.floating]


class Shared:
    """The clone's own method, but nothing grows. ``plain``: a plain machine on the same features, without rectified
    factors and directions."""

    def __init__(self, game: str, *, plain: bool = False) -> None:
        self.name = "plain FM" + compare.WITH_AFTERSTATES if plain else "clone"
        self._own = encoding(game)
        self._options = (
            SharedOptions(rectified=0, machines=1, combinations=0, directions=0)
            if plain
            else SharedOptions(combinations=0)
        )
        self._plain = plain

    def crowd(self, some: Decisions) -> SharedClone:
        return directed(self._fresh(some, self._options, 1), some, self._options, 1)

    def player(self, some: Decisions, crowd: SharedClone | None, seed: int) -> SharedClone:
        if crowd is not None:
            return (player_of if self._plain else player_after)(crowd, some, seed)[0]
        if not self._plain:
            return player_alone(self._own, some, seed)[0]
        rest, out = compare.split(some)

        def loss(options: SharedOptions) -> float:
            return score(self._fresh(rest, options, seed).probabilities_of(out.samples), out.samples).log_loss

        plain = [msgspec.structs.replace(options, rectified=0) for options in MACHINES]
        return self._fresh(some, min(plain, key=loss), seed)

    def _fresh(self, some: Decisions, options: SharedOptions, seed: int) -> SharedClone:
        blank = SharedClone.blank(self._own, options.quadratic, options.rectified, seed)
        return crowd_of(blank, some, options, seed, fresh=True)

    def odds(self, model: SharedClone, samples: Samples) -> Floats:
        return model.probabilities_of(samples)


class Learned:
    """A method of ``compare``, with all features of the position, and of the candidates where it can use them."""

    def __init__(self, learner: compare.Learner, seen: Callable[[Samples], Samples] = lambda samples: samples) -> None:
        """``seen`` extends samples of base features where the learner does not."""
        self.name = learner.name
        self._learner, self._seen = learner, seen

    @classmethod
    def all(cls, known: Sight) -> list[Learned]:
        """A network with the candidates' features and one without, and the plain factorization machine."""
        wide = replace(encoding(known.game), features=known.positions, leaves=known.choices)
        return [
            cls(compare.network(wide, "MLP 256", (256,), afterstates=True, epochs=15, seen=known.seen)),
            cls(compare.network(wide, "MLP 256", (256,), epochs=15, seen=known.seen)),
            cls(compare.machine(wide, 32), partial(_positions, known)),
        ]

    def crowd(self, some: Decisions) -> Any:
        return self.player(some, None, 0)

    def player(self, some: Decisions, crowd: Any, seed: int) -> Any:
        return self._learner.learn(replace(some, samples=self._seen(some.samples)), crowd, seed)

    def odds(self, model: Any, samples: Samples) -> Floats:
        return self._learner.predict(model)(self._seen(samples))


def _positions(known: Sight, samples: Samples) -> Samples:
    """All features of the position, and none of the candidates."""
    return Samples.joined([replace(known.seen(part), alternatives=None) for part in samples.parts()])


class Boosted:
    """Gradient boosting (LightGBM) of a softmax over the candidates. After a crowd it adds trees to the crowd's.

    Left-out hands choose the rate and the number of trees.
    """

    name = "LightGBM"

    def __init__(self, known: Sight) -> None:
        self._sight = known

    def crowd(self, some: Decisions) -> Any:
        return self._learnt(some, None, (0.2,))

    def player(self, some: Decisions, crowd: Any, seed: int) -> Any:
        return self._learnt(some, crowd, (0.03, 0.1))

    def odds(self, model: Any, samples: Samples) -> Floats:
        matrix = _matrix(self._sight, samples)[0]
        scores = np.zeros(len(samples.legal.items)) if model is None else model.predict(matrix, raw_score=True)
        return softmax(scores, np.diff(samples.legal.offsets))

    def _learnt(self, some: Decisions, begin: Any, rates: Sequence[float]) -> Any:
        rest, out = compare.split(some)
        before = score(self.odds(begin, out.samples), out.samples).log_loss
        losses = [[before, *self._losses(rest, out, begin, rate)] for rate in rates]
        rate, losses_of_rate = min(zip(rates, losses, strict=True), key=lambda each: min(each[1]))
        trees = int(np.argmin(losses_of_rate))
        return self._train(some, begin, rate, trees) if trees else begin

    def _losses(self, rest: Decisions, out: Decisions, begin: Any, rate: float) -> list[float]:
        """The log-loss on left-out hands after each tree, until it no longer falls."""
        lightgbm = _lightgbm()
        found: dict[str, dict[str, list[float]]] = {}
        callbacks = [lightgbm.record_evaluation(found), lightgbm.early_stopping(TREES // 20, verbose=False)]
        self._train(rest, begin, rate, TREES, valid=out, callbacks=callbacks)
        return found["out"]["log_loss"]

    def _train(
        self,
        some: Decisions,
        begin: Any,
        rate: float,
        trees: int,
        *,
        valid: Decisions | None = None,
        callbacks: Sequence[Any] = (),
    ) -> Any:
        lightgbm = _lightgbm()
        options = {
            "objective": _gradients,
            "learning_rate": rate,
            "min_data_in_leaf": 10,
            "verbose": -1,
            "num_threads": 1,
            "deterministic": True,
        }
        known = self._dataset(some)
        valids = [] if valid is None else [self._dataset(valid, known)]
        names = ["out"] * len(valids)
        return lightgbm.train(
            options, known, trees, valids, names, _log_loss, init_model=begin, callbacks=list(callbacks)
        )

    def _dataset(self, some: Decisions, reference: Any = None) -> Any:
        matrix, label = _matrix(self._sight, some.samples)
        return _lightgbm().Dataset(matrix, label, reference, group=np.diff(some.samples.legal.offsets))


def _lightgbm() -> Any:
    import lightgbm  # type: ignore[import-not-found, import-untyped, unused-ignore]

    return lightgbm


def _gradients(scores: Floats, dataset: Any) -> tuple[Floats, Floats]:
    """First and second derivatives of the cross-entropy, for each candidate."""
    odds = softmax(scores, dataset.get_group())
    return odds - dataset.get_label(), np.maximum(odds * (1 - odds), 1e-6)


def _log_loss(scores: Floats, dataset: Any) -> tuple[str, float, bool]:
    chosen = softmax(scores, dataset.get_group())[dataset.get_label() > 0]
    return "log_loss", float(-np.log(np.maximum(chosen, 1e-12)).mean()), False


def _matrix(known: Sight, samples: Samples) -> tuple[Any, Any]:
    """A sparse row for each candidate of each decision, and whether it was chosen. Numbers follow the features."""
    from scipy.sparse import csr_matrix, hstack  # type: ignore[import-untyped]

    seen = known.seen(samples)
    assert seen.alternatives is not None
    position = seen.features.take(seen.legal.row_of)
    parts = [
        csr_matrix((np.ones(len(rows.items), np.float32), rows.items, rows.offsets), (len(rows), width))
        for rows, width in ((position, len(known.positions)), (seen.alternatives, len(known.choices)))
    ]
    parts.append(csr_matrix(parts[-1] @ numbers(known.game)))
    return hstack(parts, format="csr"), seen.chosen.astype(np.float32)


def contestants(game: str) -> list[Shared | Learned | Boosted]:
    """All methods; gradient boosting if LightGBM is installed (``pip install bothost[experiments]``)."""
    known = sight(game)
    methods: list[Shared | Learned | Boosted] = [
        *(Shared(game, plain=plain) for plain in (False, True)),
        *Learned.all(known),
    ]
    return [*methods, Boosted(known)] if importlib.util.find_spec("lightgbm") else methods
