"""``bothost reproduce mahjong-ppo``: standard PPO, and what each of the source's additions brings, on equal budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np

from bothost import ReportProgress, Reproduced, Reproduction, ReproductionRun, ResultTable
from bothost.training import checkpoint
from bothost.training.metrics import read
from bothost_mahjong_ppo.train import Options as TrainOptions
from bothost_mahjong_ppo.train import Training

VARIANTS: dict[str, dict[str, Any]] = {
    "(a) standard PPO, plain features": {"look_ahead": False, "oracle": False, "adaptive": False},
    "(b) + look-ahead": {"look_ahead": True, "oracle": False, "adaptive": False},
    "(c) + hidden features dropped late": {"look_ahead": True, "oracle": True, "adaptive": False},
    "(d) + adaptive coefficients": {"look_ahead": True, "oracle": True, "adaptive": True},
}
LAST = 0.2
"""Part of the updates, from the end, over which the final score is taken."""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the reproduction."""

    seeds: int = 2
    iterations: int = 40
    """Updates of each training."""
    hands: int = 64
    """Hands of each update."""
    full_seeds: int = 5
    full_iterations: int = 2000
    full_hands: int = 512
    training: dict[str, Any] = {}
    """Options of the trainer, in place of what the size of the reproduction says; the same for all variants."""


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
                rows.append(_curve(run, f"{name[1]}-{seed}", {**size, **settled.training, **change}, seed))
            curves[name] = np.array(rows)
        plot_curves(curves, run.out / "curves.png")
        figures = {
            name: {"final_score": _mean_spread(final_scores(curve)), "mean_score": _mean_spread(curve.mean(axis=1))}
            for name, curve in curves.items()
        }
        return Reproduced(
            figures={**figures, **size, "seeds": seeds},
            tables=(_table(figures),),
            plots=("curves.png",),
            notes=(
                f"{seeds} seeds; every variant with the same hyper-parameters and the same number of hands.",
                "The opponents follow the curriculum, so that a score is against whom the variant has come to meet.",
            ),
        )


def _curve(run: ReproductionRun, folder: str, size: Mapping[str, Any], seed: int) -> list[float]:
    """Mean score a hand, update by update, of one training, which goes on where an earlier run left it."""
    out = run.out / folder
    training = checkpoint.take_up(out, seed=seed, command=run.command)
    Training(msgspec.convert(size, TrainOptions), training).go_on(lambda *_args, **_more: None)
    return [record["mean_score"] for record in read(out / "metrics.jsonl")]


def final_scores(curves: np.ndarray) -> np.ndarray:
    """Mean score over the last fifth of the updates, of curves (seeds, updates): (seeds,)."""
    last = max(1, round(LAST * curves.shape[1]))
    return np.asarray(curves[:, -last:].mean(axis=1))


def plot_curves(curves: Mapping[str, np.ndarray], path: Path) -> None:
    """Means over the seeds, with their range."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, curve in curves.items():
        updates = np.arange(1, curve.shape[1] + 1)
        (line,) = axes.plot(updates, curve.mean(axis=0), linewidth=1, label=name)
        axes.fill_between(updates, curve.min(axis=0), curve.max(axis=0), alpha=0.15, color=line.get_color())
    axes.set_xlabel("update")
    axes.set_ylabel("mean score a hand")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def _mean_spread(values: np.ndarray) -> dict[str, float]:
    return {"mean": float(values.mean()), "sd": float(values.std())}


def _table(figures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> ResultTable:
    def cells(of: Mapping[str, Mapping[str, float]]) -> Sequence[str]:
        return [f"{of[key]['mean']:+.2f} ± {of[key]['sd']:.2f}" for key in ("mean_score", "final_score")]

    rows = tuple((name, *cells(of)) for name, of in figures.items())
    return ResultTable("Score a hand in training, mean ± sd over seeds", ("", "all updates", "last fifth"), rows)
