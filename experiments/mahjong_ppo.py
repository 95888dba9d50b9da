"""``bothost reproduce mahjong-ppo``: standard PPO, and the gain of each of the source's additions on equal budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np

from bothost import ReportProgress, Reproduced, Reproduction, ReproductionRun, ResultTable
from bothost.training import checkpoint
from bothost.training.loop import check_options
from bothost.training.metrics import read
from bothost_mahjong_ppo.train import MahjongPpoTrainer, train

VARIANTS: dict[str, dict[str, Any]] = {
    "(a) standard PPO, plain features": {"look_ahead": False, "oracle": False, "adaptive": False},
    "(b) + look-ahead": {"look_ahead": True, "oracle": False, "adaptive": False},
    "(c) + hidden features dropped late": {"look_ahead": True, "oracle": True, "adaptive": False},
    "(d) + adaptive coefficients": {"look_ahead": True, "oracle": True, "adaptive": True},
}
TRAINING: dict[str, Any] = {
    "learning_rate": 1e-3,
    "first_stage": 0,
    "least_score": 1e6,
    "steering": {"entropy_target": 0.6, "entropy_rate": 1e-4},
}
"""All runs play against three random players to the end: a run that met stronger ones sooner would score less. With the
trainer's own rate the weight of the entropy is 0 after six updates, because entropy is still high then."""
LAST = 0.2
"""Last share of the updates, over which the final score is averaged."""
TARGETS = (2.0, 5.0, 10.0, 20.0)
"""Scores for which the hands to reach them are reported."""
WINDOW = 10
"""Updates over which the score is averaged for it."""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the reproduction."""

    seeds: int = 3
    iterations: int = 120
    """Updates of each training."""
    hands: int = 64
    """Hands of each update."""
    full_seeds: int = 5
    full_iterations: int = 2000
    full_hands: int = 512
    training: dict[str, Any] = {}
    """Options of the trainer for all variants; they replace the experiment's own."""

    def __post_init__(self) -> None:
        for name in ("seeds", "iterations", "hands", "full_seeds", "full_iterations", "full_hands"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")


class MahjongPpoReproduction(Reproduction):
    """Trains every variant with every seed and draws the curves of the mean reward of a hand."""

    name = "mahjong-ppo"
    Options: ClassVar[type[msgspec.Struct]] = Options

    def run(self, run: ReproductionRun, report: ReportProgress) -> Reproduced:
        settled: Options = self.options
        seeds = settled.full_seeds if run.full else settled.seeds
        size = {
            "iterations": settled.full_iterations if run.full else settled.iterations,
            "hands": settled.full_hands if run.full else settled.hands,
        }
        curves: dict[str, np.ndarray] = {}
        for number, (name, change) in enumerate(VARIANTS.items()):
            rows = []
            for seed in range(run.seed, run.seed + seeds):
                report(number * seeds + seed - run.seed, f"{name}, seed {seed}", len(VARIANTS) * seeds)
                given = {**TRAINING, **size, **settled.training, **change}
                rows.append(_curve(run, f"{name[1]}-{seed}", given, seed))
            curves[name] = np.array(rows)
        plot_curves(curves, size["hands"], run.out / "curves.png")
        figures: dict[str, dict[str, Any]] = {
            name: {
                "final_score": _mean_spread(final_scores(curve)),
                "mean_score": _mean_spread(curve.mean(axis=1)),
                "hands_to": {f"{target:g}": hands_to(curve, target, size["hands"]) for target in TARGETS},
            }
            for name, curve in curves.items()
        }
        return Reproduced(
            figures={**figures, **size, "seeds": seeds},
            tables=(_scores(figures), _speeds(figures, seeds, size["iterations"] * size["hands"])),
            plots=("curves.png",),
            notes=(
                f"{seeds} seeds; every variant with the same hyper-parameters and the same number of hands.",
                "Pure runs, nothing imitated, in the first stage of the curriculum to the end."
                if not settled.training
                else f"All variants with {msgspec.json.encode(settled.training).decode()}.",
            ),
        )


def _curve(run: ReproductionRun, folder: str, size: Mapping[str, Any], seed: int) -> list[float]:
    """Mean score a hand of each update of one training, which continues an earlier run's. Raises ConfigError for wrong
    options."""
    options, out = check_options(MahjongPpoTrainer, size), run.out / folder
    training = checkpoint.take_up(out, seed=seed, command=run.command)
    train(options, training, lambda *_args, **_more: None)
    return [record["mean_score"] for record in read(out / "metrics.jsonl")]


def final_scores(curves: np.ndarray) -> np.ndarray:
    """Mean score over the last fifth of the updates, of curves (seeds, updates): (seeds,)."""
    last = max(1, round(LAST * curves.shape[1]))
    return np.asarray(curves[:, -last:].mean(axis=1))


def smoothed(curves: np.ndarray) -> np.ndarray:
    """The mean of each update and up to ``WINDOW - 1`` before it, of curves (seeds, updates): the same shape."""
    sums = np.cumsum(curves, axis=1)
    before = np.zeros_like(sums)
    before[:, WINDOW:] = sums[:, :-WINDOW]
    return np.asarray((sums - before) / np.minimum(np.arange(1, curves.shape[1] + 1), WINDOW))


def hands_to(curves: np.ndarray, score: float, hands: int) -> list[int]:
    """Hands until the mean over a whole window first reached the score, for each curve (seeds, updates) that did. An
    update has ``hands`` hands."""
    whole = smoothed(curves)[:, WINDOW - 1 :] >= score
    return [(int(row.argmax()) + WINDOW) * hands for row in whole if row.any()]


def plot_curves(curves: Mapping[str, np.ndarray], hands: int, path: Path) -> None:
    """Means over the seeds, with their range."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, curve in curves.items():
        played, scores = hands * np.arange(1, curve.shape[1] + 1), smoothed(curve)
        (line,) = axes.plot(played, scores.mean(axis=0), linewidth=1.5, label=name)
        axes.fill_between(played, scores.min(axis=0), scores.max(axis=0), alpha=0.15, color=line.get_color())
    axes.set_xlabel("hands")
    axes.set_ylabel(f"points a hand, mean of {WINDOW} updates")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def _mean_spread(values: np.ndarray) -> dict[str, float]:
    return {"mean": float(values.mean()), "sd": float(values.std(ddof=1)) if len(values) > 1 else 0.0}


def _scores(figures: Mapping[str, Mapping[str, Any]]) -> ResultTable:
    def cells(of: Mapping[str, Any]) -> Sequence[str]:
        return [f"{of[key]['mean']:+.2f} ± {of[key]['sd']:.2f}" for key in ("mean_score", "final_score")]

    rows = tuple((name, *cells(of)) for name, of in figures.items())
    return ResultTable("Score a hand in training, mean ± sd over seeds", ("", "all updates", "last fifth"), rows)


def _speeds(figures: Mapping[str, Mapping[str, Any]], seeds: int, hands: int) -> ResultTable:
    def cell(found: Sequence[int]) -> str:
        if not found:
            return f"> {hands:,}"
        spread = f" ± {np.std(found, ddof=1):,.0f}" if len(found) > 1 else ""
        some = f" ({len(found)} of {seeds})" if len(found) < seeds else ""
        return f"{np.mean(found):,.0f}{spread}{some}"

    rows = tuple((name, *map(cell, of["hands_to"].values())) for name, of in figures.items())
    header = ("", *(f"{target:g} points" for target in TARGETS))
    title = f"Hands until a score, over {WINDOW} updates, was first reached, mean ± sd over the seeds that came there"
    return ResultTable(title, header, rows)
