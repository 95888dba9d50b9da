"""The gate: a challenger is promoted only when a match shows that it is better.

The match is played on duplicate deals under the arena's sequential test (a betting martingale, valid at every moment
one cares to look): a challenger that is no better passes with probability at most ``alpha``. It ends as soon as one of
the two is shown to be better, or after ``deals``; a match that shows nothing refuses.

Where winning is not what a strategy is for, its trainer weighs the two on held-out hands of the log instead
(``Trainer.gains``), under the same test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from bothost.arena.run import Build, MatchSpec, run_match
from bothost.errors import BothostError, UsageError
from bothost.sequential import BettingTest
from bothost.strategy import Model, PlayerLog, Strategy

Json = dict[str, Any]


class GateRefused(BothostError):
    """The match did not show the challenger to be better."""


class GateSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a match decides."""

    deals: int = 2000
    """At most; of held-out hands too."""
    alpha: float = 0.05
    """Probability, at most, that a challenger passes which is no better."""
    seed: int = 0
    ms: float | None = None
    """Time per decision; None: no clock."""
    workers: int = 1
    game: str | None = None
    """None: the strategy's only game."""
    rules: Json = {}


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the match showed."""

    better: bool
    challenger: str
    champion: str
    deals: int
    """Or held-out hands."""
    alpha: float
    p_better: float
    """Anytime-valid p-value of "the challenger is no better"."""
    p_worse: float
    figures: Json
    """The arena's; of held-out hands the mean ``gain``."""

    def __str__(self) -> str:
        said = "better" if self.better else "worse" if self.p_worse <= self.alpha else "not shown to be better"
        return (
            f"{self.challenger} is {said} than {self.champion}: {self._told()}, "
            f"p = {self.p_better:.4g} that it is no better, where at most {self.alpha:g} passes"
        )

    def _told(self) -> str:
        if "gain" in self.figures:
            return f"{self.deals} held-out hands, on which it gained {self.figures['gain']:+.4f}"
        share, ci = self.figures.get("wp"), self.figures.get("ci95")
        won = "" if share is None else f"it won {share:.3f} of them"
        won += f" (95 % {ci[0]:.3f} … {ci[1]:.3f})" if won and ci else ""
        return f"{self.deals} deals, {won or 'see its figures'}"


def play(
    challenger: str,
    champion: str,
    build: Build,
    settings: GateSettings,
    *,
    game: str,
    options: Json | None = None,
    config: str | None = None,
    journal: Path | None = None,
    on_deal: Callable[[int, float], None] | None = None,
) -> Verdict:
    """Play the match of two addresses. With a journal, one that was interrupted goes on."""
    given = options or {}
    spec = MatchSpec(
        game=game,
        rules=settings.rules,
        contestants=(challenger, champion),
        options=(given, given),
        deals=settings.deals,
        seed=settings.seed,
        ms=settings.ms,
        workers=settings.workers,
        sequential=True,
        alpha=settings.alpha,
        config=config,
    )
    figures = run_match(spec, build, journal=journal, on_deal=on_deal)
    said = figures["sequential"]
    return Verdict(
        better=said["verdict"] == "A",
        challenger=challenger,
        champion=champion,
        deals=figures["deals"],
        alpha=settings.alpha,
        p_better=said["p_a_better"],
        p_worse=said["p_b_better"],
        figures=figures,
    )


def gains(
    strategy: type[Strategy], log: PlayerLog, lineage: Json, challenger: Model, champion: Model
) -> Iterator[float] | None:
    """How much better the challenger is on each held-out hand, as its trainer says; None: a match decides."""
    try:
        trainer = strategy.trainer()
    except ImportError:
        return None
    if trainer is None or isinstance(trainer, Mapping) or not trainer.learns_from_log:
        return None
    return trainer(trainer.Options()).gains(log, lineage, challenger, champion)


def weigh(found: Iterator[float], challenger: str, champion: str, settings: GateSettings) -> Verdict:
    """Decide by what held-out hands say, each a number within [-1, 1]; as soon as they have said enough."""
    better, worse = BettingTest(alpha=settings.alpha), BettingTest(alpha=settings.alpha)
    count, total = 0, 0.0
    for gain in islice(found, settings.deals):
        count, total = count + 1, total + gain
        if better.update(0.5 + 0.5 * gain) | worse.update(0.5 - 0.5 * gain):
            break
    return Verdict(
        better=better.rejected,
        challenger=challenger,
        champion=champion,
        deals=count,
        alpha=settings.alpha,
        p_better=better.p_value,
        p_worse=worse.p_value,
        figures={"gain": total / max(1, count)},
    )


def game_of(strategy: type[Strategy], settings: GateSettings) -> str:
    """The game to play. Raises UsageError where the strategy plays several and none is named."""
    if settings.game is not None:
        return settings.game
    if len(strategy.games) == 1 and strategy.games[0] != "*":
        return strategy.games[0]
    raise UsageError(f"{strategy.name} plays {', '.join(strategy.games)}", advice="name the game of the match: --game")
