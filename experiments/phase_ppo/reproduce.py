"""``bothost reproduce phase-ppo``: whether each of five levels is stronger than the one before it, and the gain of
decision phases over one flat space of composite actions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec

from bothost import Contestant, ReportProgress, Reproduced, Reproduction, ReproductionRun, ResultTable
from bothost.training import checkpoint
from bothost.training.loop import check_options
from bothost_phase_ppo.decide import PhasePpo
from bothost_phase_ppo.train import PhasePpoTrainer
from experiments.phase_ppo.decomposition import DecompositionOptions, compare

RULE_PLAYER = "rule-pairing"
LEVELS = PhasePpo.levels
SOURCE_WORKERS, SOURCE_TRAINERS = 70 * 45, 8

Figures = Mapping[str, Any]


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the reproduction."""

    parts: tuple[Literal["levels", "decomposition"], ...] = ("levels", "decomposition")
    """Which experiments to run."""
    shipped: bool = False
    """Measure the shipped levels without training."""
    minutes: float = 10.0
    """Minutes of training."""
    deals: int = 200
    """Deals of a match; each is played with the seats both ways round."""
    full_minutes: float = 1440.0
    """Minutes of training with --full; the source does not report its own."""
    full_deals: int = 2000
    """Deals of a match with --full."""
    training: dict[str, Any] = {}
    """Options of the trainer; they replace those of the size."""
    decomposition: DecompositionOptions = DecompositionOptions()
    """Options of the comparison of phases and composite actions."""


class PhasePpoReproduction(Reproduction):
    """Trains the levels, or loads trained ones, and plays each against every other and the rule player. Then trains
    with phases and without."""

    name = "phase-ppo"
    Options: ClassVar[type[msgspec.Struct]] = Options

    def run(self, run: ReproductionRun, report: ReportProgress) -> Reproduced:
        settled: Options = self.options
        made = []
        if "levels" in settled.parts:
            made.append(self._levels(run, report))
        if "decomposition" in settled.parts:
            made.append(compare(settled.decomposition, run, report))
        return Reproduced(
            figures={name: value for part in made for name, value in part.figures.items()},
            tables=tuple(table for part in made for table in part.tables),
            plots=tuple(plot for part in made for plot in part.plots),
            notes=tuple(note for part in made for note in part.notes),
        )

    def _levels(self, run: ReproductionRun, report: ReportProgress) -> Reproduced:
        settled: Options = self.options
        weights = None if settled.shipped else self._trained(run, report)
        deals = settled.full_deals if run.full else settled.deals
        levels = {level: Contestant(f"phase-ppo:{level}", weights=weights) for level in LEVELS}
        pairs = [(strong, weak) for weak, strong in itertools.combinations(LEVELS, 2)]
        matches: dict[str, Figures] = {}
        for done, (mine, theirs) in enumerate([*pairs, *((level, RULE_PLAYER) for level in LEVELS)]):
            report(done, f"{mine} against {theirs}", len(pairs) + len(LEVELS))
            other = levels.get(theirs, Contestant(RULE_PLAYER))
            matches[f"{mine} over {theirs}"] = run.play("pairing", [levels[mine], other], deals=deals, seed=run.seed)
        plot_levels(matches, run.out / "levels.png")
        neighbours = [matches[f"{strong} over {weak}"] for weak, strong in itertools.pairwise(LEVELS)]
        plots = ("levels.png",) if settled.shipped else ("levels.png", "training/training.png")
        return Reproduced(
            figures={
                "win_rate": {name: {"wp": figures["wp"], "ci95": figures["ci95"]} for name, figures in matches.items()},
                "strictly_ordered": all(figures["ci95"][0] > 0.5 for figures in neighbours),
                "level_5_over_rule_player": matches[f"level-5 over {RULE_PLAYER}"]["wp"],
                "deals": deals,
            },
            tables=(_table(matches),),
            plots=plots,
            notes=(
                f"{deals} deals a match, each played with the seats both ways round; 95 % intervals over deals.",
                "The levels are those of the package." if settled.shipped else f"Trained by: {_trained_by(run)}.",
            ),
        )

    def _trained(self, run: ReproductionRun, report: ReportProgress) -> Path:
        """Folder of the levels. They are trained unless an earlier run did it."""
        out = run.out / "training"
        if (out / "weights" / "manifest.json").is_file():
            return out / "weights"
        size: dict[str, Any] = {"workers": run.workers} if run.workers > 1 else {}
        if run.full:
            size = {"runner": "ray", "workers": SOURCE_WORKERS, "trainers": SOURCE_TRAINERS, "device": "cuda"}
            size |= {"environments": 8, "ppo": {"minibatch": 65536}}
        options = check_options(PhasePpoTrainer, {**size, **self.options.training})
        minutes = self.options.full_minutes if run.full else self.options.minutes
        training = checkpoint.take_up(out, seed=run.seed, minutes=minutes, command=run.command)
        PhasePpoTrainer(options).train(training, report)
        return out / "weights"


def plot_levels(matches: Mapping[str, Figures], path: Path) -> None:
    """Win rates over the level below and over the rule player, with their intervals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    below = {strong: f"{strong} over {weak}" for weak, strong in itertools.pairwise(LEVELS)}
    against_rules = {level: f"{level} over {RULE_PLAYER}" for level in LEVELS}
    for names, label, shift in ((below, "the level below", -0.05), (against_rules, "the rule player", 0.05)):
        found = [matches[name] for name in names.values()]
        half = [figures["wp"] - figures["ci95"][0] for figures in found]
        places = [LEVELS.index(level) + 1 + shift for level in names]
        axes.errorbar(places, [figures["wp"] for figures in found], half, fmt="o", capsize=3, label=f"over {label}")
    axes.axhline(0.5, color="grey", linewidth=1)
    axes.set_xticks(range(1, len(LEVELS) + 1))
    axes.set_xlabel("level")
    axes.set_ylabel("win rate, draws half")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def _table(matches: Mapping[str, Figures]) -> ResultTable:
    """Win rate of the row over the column."""
    columns = (*LEVELS[:-1], RULE_PLAYER)

    def cell(row: str, column: str) -> str:
        figures = matches.get(f"{row} over {column}")
        return "" if figures is None else f"{figures['wp']:.3f} ± {figures['wp'] - figures['ci95'][0]:.3f}"

    rows = tuple((row, *(cell(row, column) for column in columns)) for row in LEVELS)
    return ResultTable("Win rate of the row over the column, 95 %", ("", *columns), rows)


def _trained_by(run: ReproductionRun) -> str:
    lineage = json.loads((run.out / "training" / "weights" / "lineage.json").read_text())
    return f"{lineage['updates']} updates, {lineage['samples']:,} samples, {lineage['minutes']} minutes"
