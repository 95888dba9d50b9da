"""Grows features: finds important combinations with factorization machines, in rounds.

A round trains a machine on all features and ablates the terms of each pair (``pair_losses``: three ablated models,
exact). The m pairs with the largest smallest loss become combinations. A combination that equals an existing feature
is skipped: one of the same base features, or one that is set in the same samples. ``Growth`` is the method
``per-class``; ``crowd`` has the one of a shared machine.

A round depends only on the seed, its number and the previous round, and a checkpoint follows each round. So a resumed
growing gives the same features as an uninterrupted one.
"""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
import numpy.typing as npt
import safetensors.numpy
import torch
from msgspec import Meta

from bothost import ReportProgress, TrainingRun
from bothost.training import checkpoint
from bothost.training.factorization import FactorizationMachine, FloatArray, IntArray, Samples, SparseRows
from bothost.training.metrics import FILE, Metrics, read_until
from bothost_fm_clone.combinations import Combinations
from bothost_fm_clone.encode import VERSION

FM, PAIRS = "fm.safetensors", "pairs.safetensors"
Files = dict[str, dict[str, npt.NDArray[Any]]]
"""Tensors of a checkpoint, by file and name."""


class GrowOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the growing."""

    limit: Annotated[int, Meta(ge=1, le=65_536)] = 1500
    """Most features in total."""
    per_round: Annotated[int, Meta(ge=1)] = 10
    """m, the combinations that a round adds."""
    factors: Annotated[int, Meta(ge=1, le=1024)] = 16
    """k, the factors of the machine."""
    shared: bool = False
    """False: factors per class, as in the source. True: all classes share factors, with a weight per class and factor.
    With few games this finds worse features, with a crowd equally good ones (docs/research/fm-clone.md)."""
    reading: Literal["nested", "separate"] = "nested"
    """Which three ablated models: see ``FactorizationMachine.pair_losses``."""
    warm: bool = True
    """Whether a round's machine starts with the parameters of the previous round."""
    first_epochs: Annotated[int, Meta(ge=1)] = 2
    """Epochs for a machine with fresh parameters."""
    epochs: Annotated[int, Meta(ge=1)] = 1
    """Epochs for a machine that starts with the previous parameters."""
    rate: Annotated[float, Meta(gt=0)] = 0.1
    """Learning rate of AdaGrad."""
    factor_decay: Annotated[float, Meta(ge=0)] = 1e-3
    """L2 of the factors."""
    weight_decay: Annotated[float, Meta(ge=0)] = 1e-4
    """L2 of the weights."""
    deviation: Annotated[float, Meta(ge=0)] = 0.05
    """Standard deviation of the initial factors."""


@dataclass(frozen=True)
class Round:
    """The result of a round."""

    number: int
    """From 1 on."""
    loss: float
    """Mean cross-entropy of its machine over the samples, nats."""
    pairs: list[tuple[int, int]]
    """Combinations that the round added."""


class Growing(ABC):
    """Features that grow in rounds."""

    version: ClassVar[int]
    """Encoder version."""
    counted: ClassVar[str]
    """What ``len`` counts, as metrics name it."""
    limit: int
    """Growing ends at this length."""
    rounds: int = 0
    """Rounds done."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def round(self) -> Round:
        """Train a machine, score all pairs and add the best. A round that adds nothing is the last."""

    @abstractmethod
    def files(self) -> Files:
        """What a checkpoint keeps."""

    @abstractmethod
    def restore(self, place: Path, rounds: int) -> None:
        """Restore a checkpoint after so many rounds. Errors as of ``checkpoint.readable``."""


def grow(growing: Growing, run: TrainingRun, options: Mapping[str, Any], report: ReportProgress) -> None:
    """Run rounds until the limit, until nothing is added, or until the time is over.

    Metrics and a checkpoint in ``run.out`` follow each round. Resumes from the last checkpoint there.
    """
    progress = checkpoint.reached(run.out, seed=run.seed, encoder_version=growing.version)
    sizes: list[float] = [len(growing)]
    if (last := checkpoint.latest(run.out)) is not None:
        with checkpoint.readable(last):
            growing.restore(last, progress.iteration)
        sizes += [record[growing.counted] for record in read_until(run.out / FILE, progress.iteration)]
    ended = sizes[-2:] == [sizes[-1]] * 2
    progress.options = dict(options)
    before, began = progress.seconds, time.monotonic()
    with Metrics(run.out, after=progress.iteration, tensorboard=False) as metrics:
        while (
            not ended and len(growing) < growing.limit and (run.minutes is None or progress.seconds < 60 * run.minutes)
        ):
            done = growing.round()
            progress.iteration, progress.seconds = done.number, before + time.monotonic() - began
            figures = {growing.counted: len(growing), "loss": done.loss, "seconds": round(progress.seconds, 2)}
            metrics.write(done.number, figures)
            report(len(growing), f"round {done.number}: loss {done.loss:.4f}", growing.limit)
            files = growing.files().items()
            tensors = {file: {name: torch.from_numpy(found) for name, found in own.items()} for file, own in files}
            checkpoint.write(run.out, progress, tensors)
            ended = not done.pairs


class Growth(Growing):
    """Features that grow on samples of base features."""

    version = VERSION
    counted = "features"

    def __init__(self, samples: Samples, begin: Combinations, classes: int, options: GrowOptions, seed: int) -> None:
        """``samples``: of base features only. ``begin``: combinations to start from, whether set in samples or not."""
        base = begin.base
        self.combinations = Combinations(base)
        self.limit = options.limit
        self._samples, self._classes, self._options, self._seed = samples, classes, options, seed
        self.machine: FactorizationMachine | None = None
        """The machine of the last round."""
        self._uses = uses_of(samples.features, base)
        self._seen = {digest_of(uses) for uses in self._uses}
        for first, second in begin.pairs.tolist():
            self._make(first, second, self._together(first, second))
        self._add(len(begin.pairs))

    def __len__(self) -> int:
        return len(self.combinations)

    def round(self) -> Round:
        options = self._options
        self.rounds += 1
        machine = self._next_machine()
        for epoch in range(options.epochs if options.warm and self.rounds > 1 else options.first_epochs):
            order = np.random.default_rng([self._seed, self.rounds, epoch]).permutation(len(self._samples))
            machine.train(
                self._samples,
                order,
                rate=options.rate,
                factor_decay=options.factor_decay,
                weight_decay=options.weight_decay,
            )
        self.machine = machine
        found = machine.pair_losses(self._samples, options.reading)
        room = min(options.per_round, self.limit - len(self))
        chosen: list[tuple[int, int]] = []
        for place in np.argsort(-found.smallest, kind="stable"):
            if len(chosen) == room:
                break
            pair = int(found.first[place]), int(found.second[place])
            if self._take(pair):
                chosen.append(pair)
        self._add(len(chosen))
        return Round(self.rounds, found.base, chosen)

    def _next_machine(self) -> FactorizationMachine:
        """A machine of all features. With ``warm`` it begins with the parameters of the previous one."""
        options, before = self._options, self.machine
        machine = FactorizationMachine(
            len(self.combinations),
            self._classes,
            options.factors,
            shared=options.shared,
            seed=self._seed * 1_000_003 + self.rounds,
            deviation=options.deviation,
        )
        if before is not None and options.warm:
            machine.load(widened(before.parameters(), machine.parameters()))
        return machine

    def _take(self, pair: tuple[int, int]) -> bool:
        """Make a combination of a pair. Returns False if an equal feature exists."""
        first, second = pair
        made = self.combinations.made_of
        if made[first] | made[second] in made:
            return False
        uses = self._together(first, second)
        if not len(uses) or digest_of(uses) in self._seen:
            return False
        self._make(first, second, uses)
        return True

    def _together(self, first: int, second: int) -> IntArray:
        """The samples that set both features."""
        return np.intersect1d(self._uses[first], self._uses[second], assume_unique=True)

    def _make(self, first: int, second: int, uses: IntArray) -> None:
        self._seen.add(digest_of(uses))
        self._uses.append(uses)
        self.combinations = self.combinations.with_pairs([(first, second)])

    def _add(self, count: int) -> None:
        """Append the newest combinations, which have the highest numbers, to the samples' rows."""
        samples = self._samples
        total = len(self.combinations)
        fresh = self._uses[total - count :]
        row = np.concatenate([samples.features.row_of, *fresh])
        item = np.concatenate(
            [samples.features.items, *(np.full(len(uses), total - count + n) for n, uses in enumerate(fresh))]
        )
        self._samples = Samples(SparseRows.of_items(len(samples), row, item), samples.legal, samples.labels)

    def files(self) -> Files:
        files: Files = {PAIRS: {"pairs": self.combinations.pairs}}
        if self.machine is not None and self._options.warm:
            files[FM] = {**self.machine.parameters()}
        return files

    def restore(self, place: Path, rounds: int) -> None:
        fresh = fresh_pairs(place, self.combinations.pairs)
        if not all(self._take((int(first), int(second))) for first, second in fresh):
            raise ValueError("its combinations are not of these samples")
        self._add(len(fresh))
        self.rounds = rounds
        if self._options.warm:
            # The machine was trained before the newest combinations were added.
            self.machine = self._saved_machine(safetensors.numpy.load_file(place / FM))

    def _saved_machine(self, parameters: dict[str, FloatArray]) -> FactorizationMachine:
        features = len(parameters["weights"]) // self._classes
        machine = FactorizationMachine(features, self._classes, self._options.factors, shared=self._options.shared)
        machine.load(parameters)
        return machine


def widened(old: dict[str, FloatArray], new: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Parameters of a larger machine. Its first features get the parameters of the smaller one."""
    out = {}
    for name, values in new.items():
        out[name] = values.copy()
        out[name][: len(old[name])] = old[name]
    return out


def fresh_pairs(place: Path, begin: IntArray) -> IntArray:
    """The pairs that a growing has added to ``begin`` until this checkpoint."""
    pairs: IntArray = safetensors.numpy.load_file(place / PAIRS)["pairs"]
    if not np.array_equal(pairs[: len(begin)], begin):
        raise ValueError("it was started with other combinations")
    return pairs[len(begin) :]


def uses_of(rows: SparseRows, features: int) -> list[IntArray]:
    """For each feature the rows that set it, ascending."""
    row = rows.row_of.astype(np.int32)
    order = np.argsort(rows.items, kind="stable")
    counts = np.bincount(rows.items, minlength=features)
    return np.split(row[order], np.cumsum(counts)[:-1])


def digest_of(uses: IntArray) -> bytes:
    """Equal for equal rows."""
    return hashlib.blake2b(uses.astype(np.int32).tobytes(), digest_size=16).digest()
