"""Train the shared clone of a crowd: many players.

**Features.** Pairs are scored by the losses of ablated machines, and the best become features (``SharedGrowth``).

**Machines.** A machine learns the crowd's decisions by AdaGrad. Each player of the crowd has its own row of factors.
Some samples leave it out, so that the machine also predicts unknown players. With few decisions several small machines
learn, each from other initial factors and in another order. Their mean errs less than one machine of their size. It is
one machine again: each has its part of the factors.

**Directions.** The clone is fitted to each player of the crowd. The principal components of the differences are the
directions in which players differ (``directions``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import safetensors.numpy
from msgspec import Meta

from bothost.training.conditional import UNKNOWN, ConditionalMachine, extended
from bothost.training.factorization import FloatArray, IntArray, Samples
from bothost_fm_clone.combinations import base_features
from bothost_fm_clone.directions import Directions, differences
from bothost_fm_clone.grow import PAIRS, Files, Growing, Round, digest_of, fresh_pairs, uses_of
from bothost_fm_clone.player import BATCH, DECAY, trained, with_own_row
from bothost_fm_clone.samples import Decisions
from bothost_fm_clone.shared import VERSION, SharedClone

DIFFERENCE_RATE, LEAST = 0.004, 100
"""Learning rate, and least number of decisions, for the difference of a crowd's player."""
MACHINES, MANY = 4, 250_000
"""Default number of machines of a crowd with fewer decisions. With more, one large machine predicts as well or better
(docs/research/fm-clone.md)."""
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
    machines: Annotated[int, Meta(ge=1, le=64)] | None = None
    """Machines that learn a new crowd, each with its part of the factors. The clone is their mean. None: four of fewer
    than 250,000 decisions, otherwise one."""
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
    """The clone of everybody in these decisions. ``fresh``: ``start`` is not trained, so nothing pulls towards it, and
    several machines may learn. Otherwise its machine learns on.
    """
    names, number = np.unique(learnt.players.astype(str), return_inverse=True)
    count = options.machines or (MACHINES if len(learnt) < MANY else 1)
    starts = [_planted(start, seed, n, count) for n in range(count)] if fresh else [start]
    machines = [_with_players(one, len(names)) for one in starts]
    if not fresh:
        machines[0].anchor()
    rate, decay = (options.rate, options.decay) if fresh else (options.rate / 5, DECAY)
    # With a single player, a row would take over what the machine must know without it.
    known_share = KNOWN if len(names) > 1 else 0.0
    seen = start.seen(learnt.samples, np.random.default_rng(seed))
    for epoch in range(options.passes):
        falling, losses = rate * (1 - epoch / options.passes), []
        for n, machine in enumerate(machines):
            rng = np.random.default_rng([seed + n, epoch])
            order = rng.permutation(len(learnt))
            who = np.where(rng.random(len(learnt)) < known_share, number, UNKNOWN).astype(np.int32)
            if not n and epoch and len(start.symmetries) > 1:
                del seen  # may be gigabytes
                seen = start.seen(learnt.samples, rng)
            losses.append(machine.train(seen, order, players=who, rate=falling, decay=decay, batch=BATCH))
        on_pass(epoch + 1, float(np.mean(losses)))
    made = [
        replace(one, parameters=_with_last_rows(machine.parameters(), one.shape.width, len(names), 1))
        for one, machine in zip(starts, machines, strict=True)
    ]
    return mean_of(made)


def mean_of(clones: Sequence[SharedClone]) -> SharedClone:
    """A clone whose scores are the means of those of these clones, which have the same features.

    Its machine has the factors of all of theirs.
    """
    if len(clones) == 1:
        return clones[0]
    count, own = len(clones), [clone.parameters for clone in clones]
    rows = [clone.parameters["factors"].reshape(clone.shape.rows, clone.shape.width) for clone in clones]
    # Scores have products of two quadratic factors.
    parts = [part[:, : clone.quadratic] / math.sqrt(count) for part, clone in zip(rows, clones, strict=True)]
    parts += [part[:, clone.quadratic :] for part, clone in zip(rows, clones, strict=True)]
    made = {
        "weights": np.mean([each["weights"] for each in own], axis=0),
        "factors": np.concatenate(parts, axis=1).ravel(),
        "bias": np.concatenate([each["bias"] for each in own]),
        "readout": np.concatenate([each["readout"] for each in own]) / count,
    }
    return replace(
        clones[0],
        parameters={name: values.astype(np.float32) for name, values in made.items()},
        quadratic=sum(clone.quadratic for clone in clones),
        rectified=sum(clone.rectified for clone in clones),
    )


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
        fitted.append(trained(with_own_row(crowd, own, seed), own, DIFFERENCE_RATE, seed).parameters)
    found = Directions.of(differences(crowd.parameters, fitted), options.directions) if fitted else None
    return replace(crowd, directions=found)


def _planted(grown: SharedClone, seed: int, n: int, machines: int) -> SharedClone:
    """The nth untrained machine of a clone, with its part of the factors. Combinations have factors of 0."""
    sizes = grown.quadratic, grown.rectified
    quadratic, rectified = ((n + 1) * size // machines - n * size // machines for size in sizes)
    made = SharedClone.blank(grown.encoding, quadratic, rectified, seed + n, grown.revision)
    more, old = len(grown.pairs), made.parameters
    parameters = {
        **_with_last_rows(old, made.shape.width, 1, more + 1),
        "weights": np.concatenate([old["weights"], np.zeros(more, np.float32)]),
    }
    return replace(grown, parameters=parameters, quadratic=quadratic, rectified=rectified)


def _with_players(clone: SharedClone, players: int) -> ConditionalMachine:
    """The clone's machine with a row for each of so many players."""
    machine = ConditionalMachine(replace(clone.shape, players=players))
    machine.load(_with_last_rows(clone.parameters, clone.shape.width, 1, players))
    return machine


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
