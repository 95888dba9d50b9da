"""Train a shared clone: a crowd of many players, then one player.

**Crowd.** First features grow: pairs are scored by the losses of ablated machines, and the best become features
(``grow_shared``). Then a new machine learns the crowd's decisions by AdaGrad. Each player of the crowd has its own row
of factors. Some samples leave it out, so that the machine also predicts unknown players.

**Directions.** The machine is fitted to each player of the crowd. The principal components of the differences are the
directions in which players differ (``directions``).

**Player.** First the player's coordinates on these directions are found. They are few numbers. If the crowd has no
directions, the player's own row of factors is learned instead. Then all parameters are trained, with a pull towards
what was found. The learning rate is chosen on held-out hands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt
import safetensors.numpy
import torch
from msgspec import Meta

from bothost import ModelError
from bothost.training import checkpoint
from bothost.training.conditional import UNKNOWN, ConditionalMachine, extended
from bothost.training.factorization import FloatArray, Samples, SparseRows
from bothost_fm_clone.combinations import base_features
from bothost_fm_clone.directions import Directions, Tangent, differences
from bothost_fm_clone.fit import folds_of_hands, per_decision
from bothost_fm_clone.grow import digest_of, uses_of
from bothost_fm_clone.samples import Decisions
from bothost_fm_clone.shared import VERSION, SharedClone, shape_of

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


@dataclass(frozen=True)
class Grown:
    """The result of a round of growing."""

    number: int
    """From 1 on."""
    loss: float
    """Mean cross-entropy of its machine over the samples, nats."""
    clone: SharedClone
    """With the combinations that the round added. Their parameters are 0, except for small factors."""
    added: int


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
    seen = start.seen(learnt.samples)
    machine = _with_players(_planted(start, seed) if fresh else start, len(names), seed)
    if not fresh:
        machine.anchor()
    rate, decay = (options.rate, options.decay) if fresh else (options.rate / 5, DECAY)
    for epoch in range(options.passes):
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(len(learnt))
        # With a single player, a row would take over what the machine must know without it.
        known = rng.random(len(learnt)) < (KNOWN if len(names) > 1 else 0.0)
        who = np.where(known, number, UNKNOWN).astype(np.int32)
        falling = rate * (1 - epoch / options.passes)
        loss = machine.train(seen, order, players=who, rate=falling, decay=decay, batch=BATCH)
        on_pass(epoch + 1, loss)
    return replace(
        start, parameters=_with_row(machine.parameters(), len(names), np.zeros(start.shape.width, np.float32))
    )


def grow_shared(clone: SharedClone, samples: Samples, options: SharedOptions, seed: int, number: int) -> Grown:
    """One round: train for a pass, score all pairs of features by ablation, and add the best as combinations."""
    seen = clone.seen(samples)
    machine = ConditionalMachine(replace(clone.shape, embedded=None))  # in growing, combinations have factors
    machine.load(clone.parameters)
    order = np.random.default_rng([seed, number]).permutation(len(samples))
    machine.train(seen, order, rate=options.rate, decay=options.decay, batch=BATCH)
    found = machine.pair_losses(seen)
    room = min(options.per_round, options.combinations - len(clone.pairs))
    known = clone.sight
    order = np.argsort(-found.smallest, kind="stable")[: SURPLUS * room]
    ranked = np.column_stack([found.first[order], found.second[order]]).astype(np.int32)
    # Skip pairs that equal an existing feature: the same base features, or set in the same samples.
    sets = [
        base_features(n, clone.pairs, len(known.positions) + len(known.choices))
        for n in range(machine.shape.positions + machine.shape.choices)
    ]
    there = {*sets}
    tried = extended(seen, ranked, len(known.positions), machine.shape.choices)
    uses = [digest_of(rows) for rows in uses_of(tried, machine.shape.choices + len(ranked))]
    digests = {*uses[: machine.shape.choices]}
    chosen: list[int] = []
    for n, (first, second) in enumerate(ranked.tolist()):
        made = sets[first] | sets[second]
        digest = uses[machine.shape.choices + n]
        if len(chosen) < room and made not in there and digest not in digests:
            chosen.append(n)
            there.add(made)
            digests.add(digest)
    pairs = np.concatenate([clone.pairs, ranked[chosen]])
    wider = replace(clone, pairs=pairs, parameters=_widened(machine, len(chosen), seed + number))
    return Grown(number, found.base, wider, len(chosen))


PAIRS, PARAMETERS = "pairs.safetensors", "machine.safetensors"


def grow_all(
    start: SharedClone,
    samples: Samples,
    options: SharedOptions,
    seed: int,
    folder: Path,
    on_round: Callable[[Grown, float], bool],
) -> SharedClone:
    """Run rounds of growing until the limit, or until ``on_round`` (the round, total seconds) returns False.

    A checkpoint in ``folder`` follows each round; it resumes from the last one and gives the same combinations as an
    uninterrupted run.
    """
    progress, last = checkpoint.reached(folder, seed=seed, encoder_version=VERSION), checkpoint.latest(folder)
    clone = start if last is None else _restored(start, last)
    progress.options = msgspec.to_builtins(options)
    before, began = progress.seconds, time.monotonic()
    while len(clone.pairs) < options.combinations:
        done = grow_shared(clone, samples, options, seed, progress.iteration + 1)
        clone = done.clone
        progress.iteration += 1
        progress.seconds = before + time.monotonic() - began
        go_on = on_round(done, progress.seconds)
        tensors = {PAIRS: {"pairs": torch.from_numpy(clone.pairs)}}
        tensors[PARAMETERS] = {name: torch.from_numpy(values) for name, values in clone.parameters.items()}
        checkpoint.write(folder, progress, tensors)
        if not done.added or not go_on:
            break
    return clone


def _restored(start: SharedClone, place: Path) -> SharedClone:
    try:
        pairs = safetensors.numpy.load_file(place / PAIRS)["pairs"]
        if not np.array_equal(pairs[: len(start.pairs)], start.pairs):
            raise ValueError("it was started with other combinations")
        clone = replace(start, pairs=pairs, parameters=safetensors.numpy.load_file(place / PARAMETERS))
        clone.machine()
    except (OSError, safetensors.SafetensorError, KeyError, ValueError) as error:
        advice = "train into another folder, or remove this checkpoint to resume from the previous one"
        raise ModelError(f"checkpoint {place} cannot be read: {error}", advice=advice) from error
    return clone


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
    """The clone of the player of these decisions, and the chosen rate with its held-out log-loss."""
    if not len(learnt):
        return replace(crowd, directions=None), {"rate": 0.0, "log_loss": 0.0}
    near = _Near(crowd, crowd.seen(learnt.samples), seed)
    best = RATES[0], 0.0
    if len(RATES) > 1 and (parts := _folds(learnt)):
        losses = np.concatenate([near.losses(out, RATES) for out in parts], axis=1).mean(axis=1)
        best = RATES[int(np.argmin(losses))], float(losses.min())
    clone = near.fitted(np.arange(len(learnt)), best[0])
    return clone, {"rate": best[0], "log_loss": round(best[1], 4)}


class _Near:
    """Fits the crowd's clone to a player's decisions."""

    def __init__(self, crowd: SharedClone, seen: Samples, seed: int) -> None:
        self._crowd, self._seen, self._seed = crowd, seen, seed
        self._tangent: Tangent | None = None
        if crowd.directions is not None:
            self._tangent = Tangent.of(crowd.machine(), crowd.directions, seen)

    def fitted(self, rows: npt.NDArray[np.integer], rate: float) -> SharedClone:
        """The clone of these decisions."""
        own = self._seen.take(rows)
        return self._moved(self._start(own, rows), own, rate)

    def losses(self, out: npt.NDArray[np.bool_], rates: Sequence[float]) -> npt.NDArray[np.float64]:
        """Log-loss on each left-out decision after training on the others, shape (rates, decisions)."""
        rows = np.flatnonzero(~out)
        own, rest = self._seen.take(rows), self._seen.take(np.flatnonzero(out))
        start = self._start(own, rows)
        found = []
        for rate in rates:
            odds = self._moved(start, own, rate).machine().probabilities(rest, np.zeros(len(rest), np.int32))
            found.append(per_decision(SparseRows(rest.legal.offsets, odds), rest)[1])  # type: ignore[arg-type]
        return np.stack(found)

    def _start(self, own: Samples, rows: npt.NDArray[np.integer]) -> SharedClone:
        """Where training of all parameters starts."""
        crowd = self._crowd
        if self._tangent is None or crowd.directions is None:
            return _with_own_row(crowd, own, self._seed)
        coordinates = self._tangent.most_probable(self._seen, rows)
        return replace(crowd, parameters=crowd.directions.at(crowd.parameters, coordinates), directions=None)

    def _moved(self, start: SharedClone, own: Samples, rate: float) -> SharedClone:
        return _trained(start, own, rate, self._seed) if rate else start


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
    """The clone with all parameters trained on these samples."""
    machine = start.machine()
    machine.anchor()
    me = np.zeros(len(own), np.int32)
    for epoch in range(PASSES):
        order = np.random.default_rng([seed, ROW_PASSES + epoch]).permutation(len(own))
        machine.train(own, order, players=me, rate=rate * (1 - epoch / PASSES), decay=DECAY, batch=BATCH)
    return replace(start, parameters=machine.parameters())


def _folds(learnt: Decisions) -> list[npt.NDArray[np.bool_]]:
    """Masks of held-out decisions, one for each fold that is neither empty nor all."""
    return [part for part in folds_of_hands(learnt) if part.any() and not part.all()]


def _with_players(clone: SharedClone, players: int, seed: int) -> ConditionalMachine:
    """A machine with the clone's parameters, and rows of zeros for ``players`` players."""
    shape = shape_of(clone.sight, len(clone.pairs), clone.quadratic, clone.rectified, players)
    made = ConditionalMachine(shape, seed=seed)
    rows = clone.parameters["factors"][: -shape.width]
    factors = np.concatenate([rows, np.zeros(players * shape.width, np.float32)])
    made.load({**clone.parameters, "factors": factors})
    return made


def _planted(grown: SharedClone, seed: int) -> SharedClone:
    """A clone with the same combinations and initial parameters. Combinations have a weight, and factors of 0."""
    made = SharedClone.blank(grown.encoding, grown.quadratic, grown.rectified, seed)
    more, width = len(grown.pairs), grown.shape.width
    weights, factors = made.parameters["weights"], made.parameters["factors"]
    return replace(
        grown,
        parameters={
            **made.parameters,
            "weights": np.concatenate([weights, np.zeros(more, np.float32)]),
            "factors": np.concatenate([factors[:-width], np.zeros((more + 1) * width, np.float32)]),
        },
    )


def _with_row(parameters: dict[str, FloatArray], players: int, row: FloatArray) -> dict[str, FloatArray]:
    """Parameters with one player's row instead of those of ``players``."""
    factors = parameters["factors"]
    return {**parameters, "factors": np.concatenate([factors[: len(factors) - players * len(row)], row])}


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
