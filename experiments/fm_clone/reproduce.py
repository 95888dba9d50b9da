"""``bothost reproduce fm-clone``: how many games of a player a clone needs, compared with other methods.

Rule players with styles play at the host's own tables, and their games are logged. Some players are the crowd. The
others, whom the crowd never met, are cloned by every method from 50, 200, 1,000 … of their games, with and without the
crowd first. Agreement and log-loss are measured on unseen hands, on decisions with a choice.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np

from bothost import Contestant, ReportProgress, Reproduced, Reproduction, ReproductionRun, ResultTable
from bothost.errors import UsageError
from bothost.training.statistics import mean_half95
from bothost_fm_clone.combinations import Combinations
from bothost_fm_clone.encode import Encoding, encoding
from bothost_fm_clone.fit import per_decision, score
from bothost_fm_clone.grow import GrowOptions
from bothost_fm_clone.samples import Decisions, decisions
from experiments.fm_clone import compare
from experiments.fm_clone.compare import Learner

TESTED = 0.75
"""Hands whose hash is above this are the test set."""
STYLED = {"doudizhu": "styled-doudizhu", "othello": "styled-othello"}
VARIED = {"othello": {"temperature": 0.5}}
"""Options of all styled players of a game. Othello has one first position: two deterministic players would repeat one
game, and the test set would equal the training set."""
CROWD = {
    "doudizhu": ("steady", "bold", "cautious", "hoarder", "pairs-first", "long-first", "helper", "flashy", "novice"),
    "othello": ("steady", "greedy", "corners-first", "quiet", "novice"),
}
"""Styles of the crowd."""
CLONED = {
    "doudizhu": ("blocker", "loner", "bomber", "short-first"),
    "othello": ("edges-first", "mobile", "careless", "deep"),
}
"""Styles of the players to clone, none of which is in the crowd."""


class ExperimentOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the reproduction; None: the default of the size."""

    game: Literal["doudizhu", "othello"] = "doudizhu"
    sizes: tuple[int, ...] | None = None
    """Games of the player; None: 50 and 200, with --full 50, 200, 1,000 and 5,000."""
    seeds: int | None = None
    """Number of seeds, which draw a player's hands and the learning; None: 1, with --full 3."""
    crowd_hands: int | None = None
    """Hands of the crowd; None: 600, with --full 8,000."""
    targets: int | None = None
    """Players to clone; None: 2, with --full 4."""
    methods: tuple[str, ...] | None = None
    """Names of the methods; None: all."""
    grow: GrowOptions | None = None
    """How features grow; None: at most 200 features, with --full as ``train`` does."""
    minutes: float | None = None
    """Minutes of this run for measurements. The tables leave out what is not measured yet, for all methods alike. The
    same command continues. None: until all is measured."""
    players: dict[str, dict[str, Any]] = {}
    """Options of styled players to clone, by name; none: the presets."""
    crowd: dict[str, dict[str, Any]] = {}
    """Options of styled players of the crowd, by name; none: the presets."""


@dataclass(frozen=True)
class Size:
    """The size of a reproduction."""

    sizes: tuple[int, ...]
    seeds: int
    crowd_hands: int
    targets: int
    grow: GrowOptions

    @property
    def hands(self) -> int:
        """Hands of each player to clone, including the test set."""
        return math.ceil(1.03 * max(self.sizes) / TESTED) + 40


class FmCloneReproduction(Reproduction):
    """Writes every measurement to ``cells.jsonl`` at once, so that a killed run continues."""

    name = "fm-clone"
    Options: ClassVar[type[msgspec.Struct]] = ExperimentOptions

    options: ExperimentOptions

    def run(self, run: ReproductionRun, report: ReportProgress) -> Reproduced:
        own, size = encoding(self.options.game), self._size(run)
        study = Study(own, size, run, self.options, report)
        methods = [each for each in study.methods if self.options.methods in (None, ()) or each.name in self._named]
        if not methods:
            known = ", ".join(each.name for each in study.methods)
            raise UsageError("no method has one of these names", advice=f"there are: {known}")
        cells = comparable(study.cells(methods), 2 * len(methods))
        if not cells:
            raise UsageError("nothing was measured in this time", advice="give more --option minutes=…")
        sizes = [games for games in size.sizes if any(cell["games"] == games for cell in cells)]
        matrix = study.matrix(methods[0], max(sizes))
        plot(cells, sizes, run.out / "agreement.png")
        return Reproduced(
            figures={"cells": cells, "matrix": matrix, "size": _as_json(size)},
            tables=(
                _table(f"Agreement (top-1, %) at {own.game}", cells, sizes, "top1", 100.0, 1),
                _table("Log-loss (nats)", cells, sizes, "log_loss", 1.0, 3),
                *_difference_tables(cells, methods, sizes),
                _matrix_table(matrix, max(sizes)),
            ),
            plots=("agreement.png",),
            notes=(
                f"Means of measurements with ± 95 % (Student's t): {_counted(cells, sizes)}; "
                "the matrix: 95 % intervals over hands.",
                f"The crowd: {size.crowd_hands} hands of players that are not cloned. "
                "Forced moves and bids are left out.",
                "The players are programs with styles, not people.",
                "What a move leads to is seen by the clone and by what says so; all else is seen by every method.",
            ),
        )

    @property
    def _named(self) -> set[str]:
        return set(self.options.methods or ())

    def _size(self, run: ReproductionRun) -> Size:
        options, base = self.options, len(encoding(self.options.game).features)
        othello = options.game == "othello"
        full = GrowOptions(limit=2000, per_round=5, factors=32) if othello else GrowOptions()
        quick = GrowOptions(limit=base + 200, per_round=20, factors=16)
        return Size(
            sizes=options.sizes or ((50, 200, 1000, 5000) if run.full else (50, 200)),
            seeds=options.seeds or (3 if run.full else 1),
            crowd_hands=options.crowd_hands or (8000 if run.full else 600),
            targets=len(options.players) or options.targets or (4 if run.full else 2),
            grow=options.grow or (full if run.full else quick),
        )


class Study:
    """Data, methods and measurements."""

    def __init__(
        self, own: Encoding, size: Size, run: ReproductionRun, options: ExperimentOptions, report: ReportProgress
    ) -> None:
        self._own, self._size, self._run, self._options, self._report = own, size, run, options, report
        self._kept = run.out / "cells.jsonl"
        self._crowd_learnt: dict[str, Any] = {}
        minutes = options.minutes
        self._until = math.inf if minutes is None else time.monotonic() + 60 * minutes

    @cached_property
    def methods(self) -> list[Learner]:
        """The clone's own method first."""
        most = 60_000 if self._run.full else 8_000
        known: dict[bytes, Combinations] = {}
        return [
            compare.grown(self._own, self._size.grow, most, known=known),
            compare.grown(self._own, self._size.grow, most, afterstates=False, known=known),
            compare.machine(self._own, self._size.grow.factors),
            compare.logistic(self._own),
            compare.logistic(self._own, afterstates=True),
            compare.network(self._own, "MLP 256", (256,)),
            compare.network(self._own, "MLP 256", (256,), afterstates=True),
            compare.network(self._own, "network 4 x 256", (256, 256, 256, 256)),
        ]

    @cached_property
    def crowd(self) -> Decisions:
        """Decisions of the players who are not cloned."""
        named = self._options.crowd or {style: self._options_of(style) for style in CROWD[self._own.game]}
        return self._recorded(named, self._size.crowd_hands, "crowd")

    @cached_property
    def players(self) -> dict[str, Decisions]:
        """All decisions of each player to clone, at common tables."""
        presets = {style: self._options_of(style) for style in CLONED[self._own.game][: self._size.targets]}
        named = self._options.players or presets
        if len(named) < self._size.targets:
            raise UsageError(
                f"there are {len(named)} players to clone, not {self._size.targets}", advice="--option players=…"
            )
        seats = 3 if self._own.game == "doudizhu" else 2
        hands = math.ceil(self._size.hands * max(1.0, len(named) / seats))
        everybody = self._recorded(named, hands, "players")
        return {name: everybody.where(everybody.players == name) for name in named}

    def cells(self, methods: Sequence[Learner]) -> list[dict[str, Any]]:
        """Yield a measurement for each method, size, player and seed, with and without the crowd, while time allows."""
        made = {_key(cell): cell for cell in self._read()}
        plan = list(self._plan(methods))
        out = []
        for done, (method, crowd, size, player, seed) in enumerate(plan):
            key = (method.name, crowd, size, player, seed)
            if key not in made:
                if time.monotonic() > self._until:
                    continue
                self._report(done, f"{method.name}, {size} games of {player}", len(plan))
                made[key] = self._measure(method, crowd, size, player, seed)
                with self._kept.open("a") as file:
                    file.write(json.dumps(made[key]) + "\n")
            out.append(made[key])
        return out

    def matrix(self, method: Learner, size: int) -> dict[str, dict[str, dict[str, float]]]:
        """Agreement of each player's clone, after the crowd and that many games, with every player."""
        clones = {name: method.predict(self._learnt(method, True, size, name, 0)) for name in self.players}
        out: dict[str, dict[str, dict[str, float]]] = {}
        for clone, predict in clones.items():
            out[clone] = {}
            for name, made in self.players.items():
                tested = made.where(made.parts >= TESTED)
                hits, losses = per_decision(predict(tested.samples), tested.samples)
                out[clone][name] = {"top1": float(hits.mean()), "log_loss": float(losses.mean())}
                out[clone][name]["top1_ci95"] = 1.96 * clustered(hits.astype(np.float64), tested.hands)
        return out

    def _plan(self, methods: Sequence[Learner]) -> Iterator[tuple[Learner, bool, int, str, int]]:
        for seed in range(self._size.seeds):
            for player in self.players:
                for size in self._size.sizes:
                    for method in methods:
                        for crowd in (True, False):
                            yield method, crowd, size, player, seed

    def _measure(self, method: Learner, crowd: bool, size: int, player: str, seed: int) -> dict[str, Any]:
        learnt = self._learnt(method, crowd, size, player, seed)
        made = self.players[player]
        tested = made.where(made.parts >= TESTED)
        found = score(method.predict(learnt)(tested.samples), tested.samples)
        return {
            "method": method.name,
            "crowd": crowd,
            "games": size,
            "player": player,
            "seed": seed,
            **asdict(found),
        }

    def _learnt(self, method: Learner, crowd: bool, size: int, player: str, seed: int) -> Any:
        begin = None
        if crowd:
            if method.name not in self._crowd_learnt:
                self._report(0, f"{method.name}: the crowd")
                self._crowd_learnt[method.name] = method.learn(self.crowd, None, 0)
            begin = self._crowd_learnt[method.name]
        return method.learn(self._some(player, size, seed), begin, seed)

    def _some(self, player: str, size: int, seed: int) -> Decisions:
        """That many of a player's hands, drawn by the seed."""
        made = self.players[player]
        open_ = np.unique(made.hands[made.parts < TESTED])
        if len(open_) < size:
            raise UsageError(f"{player} has {len(open_)} hands to learn from, not {size}", advice="ask for fewer games")
        drawn = np.random.default_rng([self._run.seed, seed, size]).choice(open_, size, replace=False)
        return made.where(np.isin(made.hands, drawn))

    def _options_of(self, style: str) -> dict[str, Any]:
        return {"style": style, **VARIED.get(self._own.game, {})}

    def _recorded(self, named: Mapping[str, Mapping[str, Any]], hands: int, what: str) -> Decisions:
        self._report(0, f"games of the {what}")
        styled = {name: Contestant(STYLED[self._own.game], options) for name, options in named.items()}
        seed = 2 * self._run.seed + (what == "players")
        log = self._run.record(self._own.game, styled, hands=hands, seed=seed, report=self._report)
        return decisions(log.moves(self._own.game, list(named)), self._own)

    def _read(self) -> Iterator[dict[str, Any]]:
        if not self._kept.exists():
            return
        for line in self._kept.read_text().splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:  # cut short when the run was killed
                return


def clustered(values: np.ndarray[Any, np.dtype[np.float64]], clusters: np.ndarray[Any, np.dtype[np.int64]]) -> float:
    """Standard error of a mean over decisions, clustered by hand: decisions of one hand are dependent."""
    _, place = np.unique(clusters, return_inverse=True)
    sums = np.bincount(place, values - values.mean())
    return float(np.sqrt(np.square(sums).sum()) / len(values))


def comparable(cells: Sequence[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The cells of the games, players and seeds that have all ``count`` methods."""
    groups: dict[tuple[int, str, int], list[dict[str, Any]]] = {}
    for cell in cells:
        groups.setdefault((cell["games"], cell["player"], cell["seed"]), []).append(cell)
    return [cell for group in groups.values() if len(group) == count for cell in group]


def differences(cells: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """How much more the method ``name`` agrees than another method, on the same games of the same player.

    Differences between players cancel, so intervals are narrower than those of means.
    """
    own = {_key(cell)[1:]: cell["top1"] for cell in cells if cell["method"] == name}
    return [
        {**cell, "top1": own[_key(cell)[1:]] - cell["top1"]}
        for cell in cells
        if cell["method"] != name and _key(cell)[1:] in own
    ]


def _difference_tables(
    cells: Sequence[dict[str, Any]], methods: Sequence[Learner], sizes: Sequence[int]
) -> list[ResultTable]:
    if len(methods) < 2:
        return []
    title = f"Agreement of {methods[0].name} less that of each, on the same games (points)"
    return [_table(title, differences(cells, methods[0].name), sizes, "top1", 100.0, 1)]


def _counted(cells: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> str:
    """Number of measurements behind the means of each size."""
    found = []
    for size in sizes:
        drawn = {(cell["player"], cell["seed"]) for cell in cells if cell["games"] == size}
        found.append(f"{len(drawn)} of {len({player for player, _ in drawn})} players at {size:,} games")
    return ", ".join(found)


def _key(cell: Mapping[str, Any]) -> tuple[str, bool, int, str, int]:
    return cell["method"], cell["crowd"], cell["games"], cell["player"], cell["seed"]


def _as_json(size: Size) -> dict[str, Any]:
    return {"crowd_hands": size.crowd_hands, "targets": size.targets, "grow": msgspec.to_builtins(size.grow)}


def _means(cells: Sequence[Mapping[str, Any]], figure: str) -> dict[tuple[str, bool, int], tuple[float, float]]:
    """(method, crowd, games) → mean and half of its 95 % interval."""
    values: dict[tuple[str, bool, int], list[float]] = {}
    for cell in cells:
        values.setdefault((cell["method"], cell["crowd"], cell["games"]), []).append(cell[figure])
    return {key: mean_half95(found) for key, found in values.items()}


def _table(
    title: str, cells: Sequence[Mapping[str, Any]], sizes: Sequence[int], figure: str, scale: float, digits: int
) -> ResultTable:
    means = _means(cells, figure)
    rows = []
    for method, crowd in dict.fromkeys((method, crowd) for method, crowd, _ in means):
        found = [means[method, crowd, size] for size in sizes]
        shown = [_interval(scale * mean, scale * half, digits) for mean, half in found]
        rows.append((method, "crowd first" if crowd else "alone", *shown))
    return ResultTable(title, ("method", "", *(f"{size:,} games" for size in sizes)), tuple(rows))


def _interval(mean: float, half: float, digits: int) -> str:
    return f"{mean:.{digits}f}" + ("" if math.isnan(half) else f" ± {half:.{digits}f}")


def _matrix_table(matrix: Mapping[str, Mapping[str, Mapping[str, float]]], games: int) -> ResultTable:
    rows = tuple(
        (clone, *(f"{100 * cell['top1']:.1f} ± {100 * cell['top1_ci95']:.1f}" for cell in row.values()))
        for clone, row in matrix.items()
    )
    title = f"Agreement (top-1, %) of the row's clone, by {games:,} games, with the column's player"
    return ResultTable(title, ("", *matrix), rows)


def plot(cells: Sequence[Mapping[str, Any]], sizes: Sequence[int], path: Path) -> None:
    """Agreement and log-loss over games, a line per method; dashed without the crowd."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 8), layout="constrained")
    for axes, what in zip(figure.subplots(2, 1, sharex=True), ("top1", "log_loss"), strict=True):
        means = _means(cells, what)
        names = list(dict.fromkeys(method for method, _, _ in means))
        for method, crowd in dict.fromkeys((method, crowd) for method, crowd, _ in means):
            found = [means[method, crowd, size] for size in sizes]
            colour = f"C{names.index(method)}"
            label = method if crowd else None
            axes.errorbar(
                sizes,
                [mean for mean, _ in found],
                [half for _, half in found],
                color=colour,
                linestyle="-" if crowd else "--",
                marker=".",
                capsize=2,
                label=label,
            )
        axes.set_ylabel(what.replace("_", "-").replace("top1", "top-1 agreement"))
        axes.grid(alpha=0.3)
        axes.set_xscale("log")
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axes.minorticks_off()
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=2,
        fontsize="small",
        title="dashed: without the crowd",
    )
    figure.axes[1].set_xlabel("games of the player")
    figure.savefig(path, dpi=120)
