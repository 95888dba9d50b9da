"""Train a shared clone: a crowd of many players, then one player.

**Crowd.** First features grow: pairs are scored by the losses of ablated machines, and the best become features
(``SharedGrowth``). Then a new machine learns the crowd's decisions by AdaGrad. Each player of the crowd has its own row
of factors. Some samples leave it out, so that the machine also predicts unknown players.

**Directions.** The machine is fitted to each player of the crowd. The principal components of the differences are the
directions in which players differ (``directions``).

**Player.** First the player's coordinates on these directions are found. They are few numbers. If the crowd has no
directions, the player's own row of factors is learned instead. Then all parameters are trained, with a pull towards
what was found. The learning rate is chosen on held-out hands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt
import safetensors.numpy
from msgspec import Meta

from bothost.training.conditional import UNKNOWN, ConditionalMachine, extended
from bothost.training.factorization import FloatArray, IntArray, Samples
from bothost_fm_clone.combinations import base_features
from bothost_fm_clone.directions import Directions, Tangent, differences
from bothost_fm_clone.fit import folds_of_hands, per_decision
from bothost_fm_clone.grow import PAIRS, Files, Growing, Round, digest_of, fresh_pairs, uses_of
from bothost_fm_clone.samples import Decisions
from bothost_fm_clone.shared import VERSION, SharedClone

ROW_PASSES, ROW_RATE, ROW_DECAY = 10, 0.1, 0.003
"""Settings for learning a player's row."""
PASSES, DECAY = 8, 1e-3
"""Settings for training all parameters on a player."""
BATCH = 8
RATES = (0.0, 0.0005, 0.001, 0.002, 0.004, 0.008)
"""Candidate learning rates for that. Held-out hands choose one; 0: only the row."""
DIFFERENCE_RATE, LEAST = 0.004, 100
"""Learning rate, and least number of decisions, for the difference of a crowd's player."""
KNOWN = 0.7
"""Share of the crowd's samples that name the player."""
SURPLUS = 4
"""Number of best pairs to consider per wanted combination, because some equal existing features."""
PARAMETERS = "machine.safetensors"
"""File of a checkpoint."""

Size = Annotated[int, Meta(ge=0, le=1024)]


class SharedOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the machine that all moves share."""

    quadratic: Size = 32
    """Factors of pairs, Rendle's k."""
    rectified: Size = 64
    """Factors whose sums are rectified (clipped at 0)."""
    passes: Annotated[int, Meta(ge=1)] = 5
    """Passes over the crowd's decisions after the last combination was added."""
    rate: Annotated[float, Meta(gt=0, le=1)] = 0.05
    """Learning rate of AdaGrad; it falls to 0 over the passes."""
    decay: Annotated[float, Meta(ge=0, le=1)] = 1e-5
    """L2 per use of a feature."""
    combinations: Annotated[int, Meta(ge=0, le=10_000)] = 120
    """Most combinations to grow."""
    per_round: Annotated[int, Meta(ge=1)] = 20
    """m, the combinations that a round adds."""
    directions: Size = 32
    """Most directions in which the crowd's players differ."""


def crowd_of(
    start: SharedClone,
    learnt: Decisions,
    options: SharedOptions,
    seed: int,
    *,
    fresh: bool,
    on_pass: Callable[[int, float], None] = lambda done, loss: None,
) -> SharedClone:
    """The clone of everybody in these decisions. ``fresh``: ``start`` is not trained, so nothing pulls towards it."""
    names, number = np.unique(learnt.players.astype(str), return_inverse=True)
    width = start.shape.width
    machine = ConditionalMachine(replace(start.shape, players=len(names)))
    machine.load(_with_last_rows(_planted(start, seed) if fresh else start.parameters, width, 1, len(names)))
    if not fresh:
        machine.anchor()
    rate, decay = (options.rate, options.decay) if fresh else (options.rate / 5, DECAY)
    seen = start.seen(learnt.samples, np.random.default_rng(seed))
    for epoch in range(options.passes):
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(len(learnt))
        # With a single player, a row would take over what the machine must know without it.
        known = rng.random(len(learnt)) < (KNOWN if len(names) > 1 else 0.0)
        who = np.where(known, number, UNKNOWN).astype(np.int32)
        falling = rate * (1 - epoch / options.passes)
        if epoch and len(start.symmetries) > 1:
            del seen  # may be gigabytes
            seen = start.seen(learnt.samples, rng)
        loss = machine.train(seen, order, players=who, rate=falling, decay=decay, batch=BATCH)
        on_pass(epoch + 1, loss)
    return replace(start, parameters=_with_last_rows(machine.parameters(), width, len(names), 1))


class SharedGrowth(Growing):
    """Combinations that grow for a shared machine."""

    version = VERSION
    counted = "combinations"

    def __init__(self, start: SharedClone, samples: Samples, options: SharedOptions, seed: int) -> None:
        """``samples``: of base features."""
        self.clone = start
        """With the combinations so far. The parameters of the newest are 0, except for small factors."""
        self.limit = options.combinations
        self._samples, self._options, self._seed = samples, options, seed

    def __len__(self) -> int:
        return len(self.clone.pairs)

    def round(self) -> Round:
        """Train for a pass, score all pairs of features by ablation, and add the best as combinations."""
        clone, options = self.clone, self._options
        self.rounds += 1
        seen = clone.seen(self._samples)
        machine = ConditionalMachine(replace(clone.shape, embedded=None))  # in growing, combinations have factors
        machine.load(clone.parameters)
        order = np.random.default_rng([self._seed, self.rounds]).permutation(len(seen))
        machine.train(seen, order, rate=options.rate, decay=options.decay, batch=BATCH)
        found = machine.pair_losses(seen)
        room = min(options.per_round, self.limit - len(self))
        best = np.argsort(-found.smallest, kind="stable")[: SURPLUS * room]
        ranked = np.column_stack([found.first[best], found.second[best]]).astype(np.int32)
        chosen = self._new(seen, ranked, room)
        self.clone = replace(
            clone,
            pairs=np.concatenate([clone.pairs, ranked[chosen]]),
            parameters=_widened(machine, len(chosen), self._seed + self.rounds),
        )
        return Round(self.rounds, found.base, [(first, second) for first, second in ranked[chosen].tolist()])

    def _new(self, seen: Samples, ranked: IntArray, room: int) -> list[int]:
        """The first ``room`` pairs that equal no existing feature: the same base features, or set in the same samples.

        Returns their indices in ``ranked``.
        """
        known, pairs = self.clone.sight, self.clone.pairs
        positions, choices = len(known.positions), len(known.choices) + len(pairs)
        sets = [base_features(n, pairs, positions + len(known.choices)) for n in range(positions + choices)]
        there = {*sets}
        tried = extended(seen, ranked, positions, choices)
        uses = [digest_of(rows) for rows in uses_of(tried, choices + len(ranked))]
        digests = {*uses[:choices]}
        chosen: list[int] = []
        for n, (first, second) in enumerate(ranked.tolist()):
            made, digest = sets[first] | sets[second], uses[choices + n]
            if len(chosen) < room and made not in there and digest not in digests:
                chosen.append(n)
                there.add(made)
                digests.add(digest)
        return chosen

    def files(self) -> Files:
        return {PAIRS: {"pairs": self.clone.pairs}, PARAMETERS: {**self.clone.parameters}}

    def restore(self, place: Path, rounds: int) -> None:
        pairs = np.concatenate([self.clone.pairs, fresh_pairs(place, self.clone.pairs)])
        self.clone = replace(self.clone, pairs=pairs, parameters=safetensors.numpy.load_file(place / PARAMETERS))
        self.clone.machine()  # raises ValueError if the sizes are wrong
        self.rounds = rounds


def directed(crowd: SharedClone, learnt: Decisions, options: SharedOptions, seed: int) -> SharedClone:
    """The crowd's clone with the directions in which the players of these decisions differ."""
    seen, players = crowd.seen(learnt.samples), learnt.players.astype(str)
    names, counts = np.unique(players, return_counts=True)
    fitted = []
    for name in names[counts >= LEAST]:
        own = seen.take(np.flatnonzero(players == name))
        fitted.append(_trained(_with_own_row(crowd, own, seed), own, DIFFERENCE_RATE, seed).parameters)
    found = Directions.of(differences(crowd.parameters, fitted), options.directions) if fitted else None
    return replace(crowd, directions=found)


def player_of(crowd: SharedClone, learnt: Decisions, seed: int) -> tuple[SharedClone, dict[str, float]]:
    """The clone of the player of these decisions, and ``PlayerFit.rate``."""
    if not len(learnt):
        return replace(crowd, directions=None), {"rate": 0.0}
    player = PlayerFit(crowd, crowd.sight.of(learnt), seed)
    chosen = player.rate()
    return player.clone(chosen["rate"]), chosen


class PlayerFit:
    """Fits the crowd's clone to a player's decisions."""

    def __init__(self, crowd: SharedClone, learnt: Decisions, seed: int) -> None:
        """``learnt``: with the features of the crowd's sight."""
        self._crowd, self._learnt, self._seed = crowd, learnt, seed
        self._seen = crowd.combined(learnt.samples)
        self._tangent: Tangent | None = None
        if crowd.directions is not None:
            self._tangent = Tangent.of(crowd.machine(), crowd.directions, self._seen)

    def clone(self, rate: float, kept: npt.NDArray[np.bool_] | None = None) -> SharedClone:
        """The clone of these decisions, or of those that are kept, at a learning rate."""
        rows = np.arange(len(self._learnt)) if kept is None else np.flatnonzero(kept)
        own = self._seen.take(rows)
        return _trained(self._start(own, rows), own, rate, self._seed)

    def rate(self) -> dict[str, float]:
        """The learning rate that is best for left-out hands, and its log-loss on them; 0 if none can be left out.

        Rates are tried from the smallest on until one is worse than the one before.
        """
        folds = [_Fold(self._seen, out) for out in folds_of_hands(self._learnt)]
        starts = [self._start(fold.own, fold.rows) for fold in folds]
        tried: list[float] = []
        for rate in RATES if folds else ():
            clones = [_trained(start, fold.own, rate, self._seed) for start, fold in zip(starts, folds, strict=True)]
            tried.append(float(np.concatenate(list(map(_Fold.losses, folds, clones))).mean()))
            if tried[-1] > min(tried):
                break
        if not tried:
            return {"rate": RATES[0]}
        return {"rate": RATES[int(np.argmin(tried))], "log_loss": round(min(tried), 4)}

    def _start(self, own: Samples, rows: npt.NDArray[np.integer]) -> SharedClone:
        """Where training of all parameters starts."""
        crowd = self._crowd
        if self._tangent is None or crowd.directions is None:
            return _with_own_row(crowd, own, self._seed)
        coordinates = self._tangent.most_probable(self._seen, rows)
        return replace(crowd, parameters=crowd.directions.at(crowd.parameters, coordinates), directions=None)


class _Fold:
    """Decisions to learn from, and those that are left out."""

    def __init__(self, seen: Samples, out: npt.NDArray[np.bool_]) -> None:
        self.rows = np.flatnonzero(~out)
        self.own, self._out = seen.take(self.rows), seen.take(np.flatnonzero(out))

    def losses(self, clone: SharedClone) -> npt.NDArray[np.float64]:
        """Log-loss of a clone on each left-out decision, without symmetries."""
        odds = clone.machine().probabilities(self._out, np.zeros(len(self._out), np.int32))
        return per_decision(odds, self._out)[1]


def _with_own_row(crowd: SharedClone, own: Samples, seed: int) -> SharedClone:
    """The clone with the row of the player of these samples."""
    machine = crowd.machine()
    machine.anchor()
    me = np.zeros(len(own), np.int32)
    for epoch in range(ROW_PASSES):
        order = np.random.default_rng([seed, epoch]).permutation(len(own))
        falling = ROW_RATE * (1 - epoch / ROW_PASSES)
        machine.train(own, order, players=me, rate=falling, decay=ROW_DECAY, batch=BATCH, players_only=True)
    return replace(crowd, parameters=machine.parameters(), directions=None)


def _trained(start: SharedClone, own: Samples, rate: float, seed: int) -> SharedClone:
    """The clone with all parameters trained on these samples at this rate; 0: as it is."""
    if not rate:
        return start
    machine = start.machine()
    machine.anchor()
    me = np.zeros(len(own), np.int32)
    for epoch in range(PASSES):
        order = np.random.default_rng([seed, ROW_PASSES + epoch]).permutation(len(own))
        machine.train(own, order, players=me, rate=rate * (1 - epoch / PASSES), decay=DECAY, batch=BATCH)
    return replace(start, parameters=machine.parameters())


def _planted(grown: SharedClone, seed: int) -> dict[str, FloatArray]:
    """Initial parameters for a clone's combinations, which have a weight, and factors of 0."""
    made = SharedClone.blank(grown.encoding, grown.quadratic, grown.rectified, seed, grown.revision).parameters
    more = len(grown.pairs)
    weights = np.concatenate([made["weights"], np.zeros(more, np.float32)])
    return {**_with_last_rows(made, grown.shape.width, 1, more + 1), "weights": weights}


def _with_last_rows(parameters: Mapping[str, FloatArray], width: int, rows: int, now: int) -> dict[str, FloatArray]:
    """Parameters with ``now`` rows of zeros instead of the last ``rows`` rows of factors."""
    factors = parameters["factors"]
    kept = factors[: len(factors) - rows * width]
    return {**parameters, "factors": np.concatenate([kept, np.zeros(now * width, np.float32)])}


def _widened(machine: ConditionalMachine, more: int, seed: int) -> dict[str, FloatArray]:
    """Parameters with ``more`` new features of candidates, whose initial parameters are small."""
    parameters, width = machine.parameters(), machine.shape.width
    fresh = np.random.default_rng(seed).normal(0.0, 0.01, more * width).astype(np.float32)
    factors = parameters["factors"]
    return {
        **parameters,
        "weights": np.concatenate([parameters["weights"], np.zeros(more, np.float32)]),
        "factors": np.concatenate([factors[:-width], fresh, factors[-width:]]),
    }
