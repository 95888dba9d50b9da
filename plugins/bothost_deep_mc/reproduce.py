"""``bothost reproduce deep-mc``: what the regularizer and the reduction loss save of the way to a strength.

Plain deep Monte-Carlo, with either loss, and with both, from nothing, under several seeds: no imitation, no branches,
no games against the expert. The win rate against the rule player is measured along the way, in both roles of the same
deals. Minutes are the process's own CPU time, so that other work on the machine does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, ClassVar

import msgspec

from bothost import ReportProgress, Reproduced, Reproduction, ReproductionRun, ResultTable
from bothost.training import checkpoint
from bothost.training.metrics import read
from bothost_deep_mc.options import Options as TrainOptions
from bothost_deep_mc.train import Training

TARGETS = (0.3, 0.4, 0.45, 0.5, 0.6, 0.7)
"""Win rates whose samples and minutes are told."""
CLAIMED = 0.6
"""Part of plain's samples that the whole method shall need at most."""

Curve = Sequence[Mapping[str, float]]


class ExperimentOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the reproduction."""

    seeds: int = 3
    """Trainings of each kind."""
    rounds: int = 80
    """Of self-play, each of 256 hands, in each training."""
    full_rounds: int = 20000
    """Of each training of a full one."""
    expert_weight: float = 2.0
    """α_e where the regularizer takes part."""
    reduction_weight: float = 0.001
    """α_s where the reduction loss takes part."""
    training: dict[str, Any] = {}
    """Options of all trainings, in place of those of this reproduction."""

    def __post_init__(self) -> None:
        if min(self.seeds, self.rounds, self.full_rounds) < 1:
            raise ValueError("seeds and rounds must be positive")


class DeepMcReproduction(Reproduction):
    """Trains each kind under each seed, and tells how far it came after how many samples and minutes."""

    name = "deep-mc"
    Options: ClassVar[type[msgspec.Struct]] = ExperimentOptions

    options: ExperimentOptions

    def run(self, run: ReproductionRun, report: ReportProgress) -> Reproduced:
        rounds = self.options.full_rounds if run.full else self.options.rounds
        kinds = self._kinds()
        curves: dict[str, list[Curve]] = {}
        jobs = [(kind, seed) for seed in range(self.options.seeds) for kind in kinds]
        for done, (kind, seed) in enumerate(jobs):
            report(done, f"{kind}, seed {run.seed + seed}", len(jobs))
            out = run.out / f"{kind.replace(' ', '-').replace('+', 'with')}-{run.seed + seed}"
            curves.setdefault(kind, []).append(self._curve(kinds[kind], out, run.seed + seed, rounds))
        reached = {kind: _reached(found) for kind, found in curves.items()}
        plot_curves(curves, run.out / "win_rates.png")
        return Reproduced(
            figures={
                "reached": reached,
                "last": {kind: [curve[-1]["win_rate"] for curve in found] for kind, found in curves.items()},
                "samples_of_both_over_plain": _ratios(reached, "samples"),
                "minutes_of_both_over_plain": _ratios(reached, "minutes"),
                "claimed": CLAIMED,
                "rounds": rounds,
                "seeds": self.options.seeds,
            },
            tables=tuple(_table(curves, reached, unit) for unit in ("samples", "minutes")),
            plots=("win_rates.png",),
            notes=(
                f"{self.options.seeds} trainings of each kind, {rounds} rounds each, measured every fifth; minutes are "
                "CPU time of one core, without the measurements'.",
                "Mean ± standard deviation over seeds of when the win rate, averaged over three measurements, first "
                "was there; how many seeds got there where it is not all.",
            ),
        )

    def _kinds(self) -> dict[str, dict[str, float]]:
        regularizer = {"expert_weight": self.options.expert_weight}
        reduction = {"reduction_weight": self.options.reduction_weight}
        return {
            "plain": {},
            "+ regularizer": regularizer,
            "+ reduction": reduction,
            "+ both": regularizer | reduction,
        }

    def _curve(self, kind: Mapping[str, float], out: Path, seed: int, rounds: int) -> Curve:
        """Measurements of one training, which goes on where an earlier run left it."""
        nothing = dict.fromkeys(
            ("bidding_share", "imitation", "expert_share", "expert_weight", "reduction_weight"), 0.0
        )
        given: dict[str, Any] = {"iterations": rounds, "hands": 256, "minibatch": 512, "branches": 0, **nothing}
        given |= {"evaluate_every": 5, "evaluation_deals": 150, **kind}
        options = msgspec.convert(given | self.options.training, TrainOptions)
        Training(options, checkpoint.take_up(out, seed=seed)).train(lambda *_, **__: None)
        return [record for record in read(out / "metrics.jsonl") if "landlord" in record]


def _smoothed(curve: Curve) -> list[float]:
    """Each measurement's win rate averaged with the two before it."""
    rates = [record["win_rate"] for record in curve]
    return [mean(rates[max(0, i - 2) : i + 1]) for i in range(len(rates))]


def _reached(curves: Sequence[Curve]) -> dict[str, dict[str, list[float]]]:
    """By win rate in percent: samples and minutes of each training that got there."""
    out = {}
    for target in TARGETS:
        first = [next((r for r, w in zip(c, _smoothed(c), strict=True) if w >= target), None) for c in curves]
        found = [record for record in first if record is not None]
        out[f"{100 * target:.0f}"] = {
            "samples": [record["samples"] for record in found],
            "minutes": [round(record["cpu_seconds"] / 60, 3) for record in found],
        }
    return out


def _ratios(reached: Mapping[str, Any], unit: str) -> dict[str, float]:
    """What the whole method needs of what plain needs, where all trainings of both got there."""
    out = {}
    for target in reached["plain"]:
        plain, both = reached["plain"][target][unit], reached["+ both"][target][unit]
        if plain and len(plain) == len(both):
            out[target] = round(mean(both) / mean(plain), 3)
    return out


def _table(curves: Mapping[str, Sequence[Curve]], reached: Mapping[str, Any], unit: str) -> ResultTable:
    form = ",.0f" if unit == "samples" else ".2f"

    def cell(kind: str, target: str) -> str:
        found = reached[kind][target][unit]
        if not found:
            return "-"
        spread = f" ± {stdev(found):{form}}" if len(found) > 1 else ""
        some = f" ({len(found)} of {len(curves[kind])})" if len(found) < len(curves[kind]) else ""
        return f"{mean(found):{form}}{spread}{some}"

    targets = list(reached["plain"])
    rows = tuple(
        (
            kind,
            *(cell(kind, target) for target in targets),
            f"{100 * mean(c[-1]['win_rate'] for c in curves[kind]):.1f}",
        )
        for kind in curves
    )
    header = ("", *(f"{target} %" for target in targets), "last, %")
    return ResultTable(f"{unit.capitalize()} to a win rate against the rule player", header, rows)


def plot_curves(curves: Mapping[str, Sequence[Curve]], path: Path) -> None:
    """Win rates over samples and over minutes, one line a training."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 7), layout="constrained")
    panels = figure.subplots(2, 1)
    for axes, unit, scale in zip(panels, ("samples", "cpu_seconds"), (1.0, 60.0), strict=True):
        for number, (kind, found) in enumerate(curves.items()):
            for seed, curve in enumerate(found):
                x = [record[unit] / scale for record in curve]
                axes.plot(x, _smoothed(curve), color=f"C{number}", linewidth=1, label=kind if seed == 0 else None)
        axes.set_xlabel("samples" if unit == "samples" else "minutes of one core")
        axes.set_ylabel("win rate against the rule player")
        axes.grid(alpha=0.3)
    panels[0].legend(fontsize="small")
    figure.savefig(path, dpi=120)
