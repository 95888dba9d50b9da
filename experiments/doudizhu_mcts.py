"""The source's experiment: win rates as landlord and as peasants against a player of the RHCP kind, by search alone,
by the network alone, and by both; and, beyond it, how strength grows with time.

The source played 500 games a role, without bidding. Here deals are played twice, each side once in each role, so that
500 deals are 500 games a role of every contestant, on the same cards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np

from bothost import Contestant, Reproduced, Reproduction, ReproductionRun, ResultTable
from bothost.strategy import ReportProgress
from bothost.training.statistics import mean_ci95

NAME = "doudizhu-mcts"
SOURCE = {"landlord_wp": 0.656, "peasant_wp": 0.57, "wp": 0.613}
"""What the source reports of network and search."""
CLOCK_MS = 1500.0
"""The clock of the ladder's matches in time: more than any of its steps."""


class ExperimentOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the reproduction."""

    opponent: str = "rhcp-doudizhu"
    """The opponent of the source's table."""
    deals: int | None = None
    """Deals of each match of the table; None: 500 in full, else 20."""
    ladder: Literal["iterations", "time"] = "iterations"
    """What grows from step to step: iterations, which a busy machine does not change, or milliseconds by the clock."""
    ladder_against: Literal["opponent", "before"] = "opponent"
    """The opponent of a step: the table's opponent on the same deals, or the step before."""
    ladder_deals: int | None = None
    """Deals of each step; None: 200 in full, else 10."""
    iterations: tuple[int, ...] = (400, 1200, 5000, 25000)
    """The ladder's steps: about what 20, 50, 200 and 1,000 ms of processor time are, in the mean of the moves that are
    searched."""
    times_ms: tuple[float, ...] = (20.0, 50.0, 200.0, 1000.0)
    """The ladder's steps by the clock."""
    models: bool = True
    """Play the network's rows too, where there is one."""

    def __post_init__(self) -> None:
        if any(deals is not None and deals < 1 for deals in (self.deals, self.ladder_deals)):
            raise ValueError("deals must be positive")


class DoudizhuReproduction(Reproduction):
    """``bothost reproduce doudizhu-mcts``."""

    name = NAME
    Options: ClassVar[type[msgspec.Struct]] = ExperimentOptions

    options: ExperimentOptions

    def run(self, run: ReproductionRun, report: ReportProgress) -> Reproduced:
        deals = self.options.deals or (500 if run.full else 20)
        ladder_deals = self.options.ladder_deals or (200 if run.full else 10)
        table = self._against_opponent(run, deals, report)
        ladder = self._ladder(run, ladder_deals, report)
        _plot(table, run.out / "win_rates.png")
        return Reproduced(
            figures={"against_opponent": {row: parts[-1] for row, parts in table.items()}, "ladder": ladder},
            tables=(
                ResultTable(
                    f"Against {self.options.opponent}, {deals} deals in both roles",
                    ("contestant", "landlord", "peasants", "over all (95 %)", "ms a move"),
                    (
                        *(_row(name, parts[-1]) for name, parts in table.items()),
                        ("the source: network and search", *(f"{SOURCE[key]:.3f}" for key in SOURCE), "-"),
                    ),
                ),
                self._ladder_table(ladder, ladder_deals),
            ),
            plots=("win_rates.png",),
            notes=(
                "Every deal is played twice, with roles exchanged; intervals are over deals.",
                "Search alone and search with the network are limited by iterations, which a busy machine does not "
                "change; ms a move are by the clock, and are."
                if self.options.ladder == "iterations"
                else "The ladder is by the clock: other work on the machine takes from every step.",
            ),
        )

    def _contestants(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The rows of the table: name and options."""
        if self.options.models:
            yield "network and search", {"cnn": "on"}
            yield "network alone", {"cnn": "only"}
        yield "search alone, rule playouts", {"cnn": "off"}
        yield "search alone, random playouts", {"cnn": "off", "playout": "random", "others": "tree", "belief": 0}
        yield "search by deep-mc's values", {"cnn": "off", "evaluator": "deep-mc"}

    def _against_opponent(
        self, run: ReproductionRun, deals: int, report: ReportProgress
    ) -> dict[str, list[dict[str, Any]]]:
        """Figures of every contestant after a fifth of the deals, two, …, all."""
        rows: dict[str, list[dict[str, Any]]] = {}
        for number, (name, options) in enumerate(self._contestants()):
            rows[name] = []
            for part in _parts(deals):
                report(number, f"{name}: {part} deals")
                sides = (Contestant(NAME, options), Contestant(self.options.opponent))
                rows[name].append(run.play("doudizhu", sides, deals=part, seed=run.seed))
        return rows

    def _ladder(self, run: ReproductionRun, deals: int, report: ReportProgress) -> list[dict[str, Any]]:
        """Figures of every step; ``gain`` over the step before, in the same deals, with ``gain_ci95``."""
        by_time = self.options.ladder == "time"
        steps: Sequence[float] = self.options.times_ms if by_time else self.options.iterations
        sides = [Contestant(NAME, {"max_ms" if by_time else "iterations": step}) for step in steps]
        ms = CLOCK_MS if by_time else None
        seed = run.seed + 1
        out: list[dict[str, Any]] = []
        if self.options.ladder_against == "before":
            for (less, weaker), (more, stronger) in pairwise(zip(steps, sides, strict=True)):
                report(0, f"{more:g} against {less:g}")
                played = run.play("doudizhu", (stronger, weaker), deals=deals, seed=seed, ms=ms)
                out.append({"step": more, "before": less, **played})
            return out
        before: Sequence[float] | None = None
        for step, side in zip(steps, sides, strict=True):
            report(0, f"{step:g} against {self.options.opponent}")
            pair = (side, Contestant(self.options.opponent))
            played = run.play("doudizhu", pair, deals=deals, seed=seed, ms=ms, each_deal=True)
            scores = played.pop("scores")
            gain = None if before is None else mean_ci95(np.subtract(scores, before))
            out.append({"step": step, **played, "gain": gain and gain[0], "gain_ci95": gain and gain[1]})
            before = scores
        return out

    def _ladder_table(self, ladder: Sequence[Mapping[str, Any]], deals: int) -> ResultTable:
        kind = "ms" if self.options.ladder == "time" else "iterations"
        played = [(f"{step['step']:g}", _interval(step), f"{step['ms_per_move']['A']:.1f}") for step in ladder]
        if self.options.ladder_against == "before":
            return ResultTable(
                f"Each step of the ladder against the one before, {deals} deals in both roles",
                (kind, "against", "wins (95 %)", "ms a move"),
                tuple(
                    (step, f"{figures['before']:g}", wins, took)
                    for (step, wins, took), figures in zip(played, ladder, strict=True)
                ),
            )
        return ResultTable(
            f"Steps of the ladder against {self.options.opponent}, {deals} deals in both roles, the same for all",
            (kind, "wins (95 %)", "more than the step before", "ms a move"),
            tuple(
                (step, wins, _gain(figures), took) for (step, wins, took), figures in zip(played, ladder, strict=True)
            ),
        )


def _parts(deals: int) -> list[int]:
    return sorted({max(1, round(deals * i / 5)) for i in range(1, 6)})


def _interval(figures: Mapping[str, Any]) -> str:
    if figures["ci95"] is None:
        return f"{figures['wp']:.3f}"
    return f"{figures['wp']:.3f} ({figures['ci95'][0]:.3f} … {figures['ci95'][1]:.3f})"


def _gain(figures: Mapping[str, Any]) -> str:
    if figures["gain_ci95"] is None:
        return "-" if figures["gain"] is None else f"{figures['gain']:+.3f}"
    low, high = figures["gain_ci95"]
    return f"{figures['gain']:+.3f} ({low:+.3f} … {high:+.3f})"


def _row(name: str, figures: Mapping[str, Any]) -> tuple[str, ...]:
    roles = (f"{figures[key]:.3f}" for key in ("landlord_wp", "peasant_wp"))
    return name, *roles, _interval(figures), f"{figures['ms_per_move']['A']:.1f}"


def _plot(rows: Mapping[str, Sequence[Mapping[str, Any]]], path: Path) -> None:
    """Win rate over games, one panel a role, one line a contestant."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    for axes, (role, key) in zip(panels, (("landlord", "landlord_wp"), ("peasants", "peasant_wp")), strict=True):
        for name, parts in rows.items():
            axes.plot([part["deals"] for part in parts], [part[key] for part in parts], marker=".", label=name)
        axes.axhline(SOURCE[key], linestyle=":", color="black", label="the source")
        axes.set_ylabel(f"wins as {role}")
        axes.set_ylim(0, 1)
        axes.grid(alpha=0.3)
    panels[0].legend(fontsize="small")
    panels[1].set_xlabel("games in the role")
    figure.savefig(path, dpi=120)
