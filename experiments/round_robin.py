"""``bothost reproduce round-robin``: everyone against everyone on duplicate deals, with 95 % intervals.

    bothost reproduce round-robin --option game=pairing --option 'contestants=["phase-ppo:level-1","rule-pairing"]'

A contestant's strength is its mean win rate over all the others. Matches against ``against`` do not count for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec

from bothost import Contestant, ReportProgress, Reproduced, Reproduction, ReproductionRun, ResultTable


class RoundRobinOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the round robin."""

    game: str = "pairing"
    contestants: tuple[str, ...] = tuple(f"phase-ppo:level-{level}" for level in range(1, 6))
    """Addresses, the weakest first."""
    against: tuple[str, ...] = ("rule-pairing",)
    """Addresses that every contestant meets, too."""
    options: Mapping[str, Mapping[str, Any]] = {}
    """Options of some contestants, by address: ``{"phase-ppo:level-5": {"playouts": 0}}``."""
    deals: int = 300
    """Deals of a match. Each is played with the seats both ways round."""
    full_deals: int = 3000
    """Deals of a match of a full round robin."""

    def __post_init__(self) -> None:
        if len(set(self.contestants)) < 2 or len(set(self.contestants)) < len(self.contestants):
            raise ValueError("contestants must be at least two different addresses")
        if min(self.deals, self.full_deals) < 2:
            raise ValueError("deals and full_deals must be at least 2")


class Rate(NamedTuple):
    """A win rate with half the width of its 95 % interval."""

    wins: float
    half: float

    def __str__(self) -> str:
        return f"{100 * self.wins:.1f} ± {100 * self.half:.1f}"


Rates = Mapping[tuple[str, str], Rate]
"""(row, column) → the row's win rate over the column."""


class RoundRobin(Reproduction):
    """Plays every pair of contestants, and each of them against the others of ``against``."""

    name = "round-robin"
    Options: ClassVar[type[msgspec.Struct]] = RoundRobinOptions

    options: RoundRobinOptions

    def run(self, run: ReproductionRun, report: ReportProgress) -> Reproduced:
        contestants, against = self.options.contestants, self.options.against
        deals = self.options.full_deals if run.full else self.options.deals
        pairs = [(strong, weak) for weak, strong in combinations(contestants, 2)]
        pairs += [(one, other) for one in contestants for other in against]
        matches: dict[tuple[str, str], Mapping[str, Any]] = {}
        for done, (one, other) in enumerate(pairs):
            report(done, f"{one} against {other}", len(pairs))
            sides = [Contestant(side, self.options.options.get(side, {})) for side in (one, other)]
            matches[one, other] = run.play(self.options.game, sides, deals=deals, seed=run.seed)
        rates = both_ways({pair: Rate(found["wp"], found["wp"] - found["ci95"][0]) for pair, found in matches.items()})
        strengths = {one: strength([rates[one, other] for other in contestants if other != one]) for one in contestants}
        plot(strengths, run.out / "strengths.png")
        return Reproduced(
            figures={
                "game": self.options.game,
                "strengths": {one: {"wp": wp, "ci95": [wp - half, wp + half]} for one, (wp, half) in strengths.items()},
                "matches": [
                    {"a": one, "b": other} | {key: found[key] for key in ("wp", "ci95", "mean_lead", "deals")}
                    for (one, other), found in matches.items()
                ],
            },
            tables=(_table(contestants, against, rates, strengths),),
            plots=("strengths.png",),
            notes=(f"{deals} deals a match, each played with the seats both ways round; 95 % intervals over deals.",),
        )


def both_ways(rates: Rates) -> Rates:
    """The same matches, seen from either side."""
    return {**rates, **{(b, a): Rate(1.0 - rate.wins, rate.half) for (a, b), rate in rates.items()}}


def strength(rates: Sequence[Rate]) -> Rate:
    """Mean win rate. The matches count as independent."""
    half = math.sqrt(sum(rate.half**2 for rate in rates)) / len(rates)
    return Rate(sum(rate.wins for rate in rates) / len(rates), half)


def plot(strengths: Mapping[str, Rate], path: Path) -> None:
    """One point with its interval for each contestant."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 1 + 0.4 * len(strengths)), layout="constrained")
    axes = figure.subplots()
    wins = [100 * rate.wins for rate in strengths.values()]
    axes.errorbar(wins, list(strengths), xerr=[100 * rate.half for rate in strengths.values()], fmt="o", capsize=4)
    axes.set_xlabel("wins against the others, %, with 95 % intervals")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def _table(
    contestants: Sequence[str], against: Sequence[str], rates: Rates, strengths: Mapping[str, Rate]
) -> ResultTable:
    columns = (*contestants, *against)
    rows = tuple(
        (row, str(strengths[row]), *("" if row == column else str(rates[row, column]) for column in columns))
        for row in contestants
    )
    return ResultTable("Win rate of the row over the column, %", ("", "strength", *columns), rows)
