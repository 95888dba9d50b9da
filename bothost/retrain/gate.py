"""The gate: a challenger is promoted only if a match shows that it is better.

The match uses duplicate deals and the arena's sequential test, a betting martingale that is valid at every deal. In
games with luck adjustment (``bothost.arena.luck``) it tests adjusted points, otherwise wins. A
challenger that is no better passes with probability at most ``alpha``. The match ends when one of the two is shown to
be better, or after ``deals``. A match without a result refuses the challenger.

Some strategies do not aim to win, such as those that imitate players. Their trainers compare the two models on held-out
hands of the log (``Trainer.gains``), under the same test.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from bothost import rules
from bothost.arena.luck import has_luck
from bothost.arena.run import run_match
from bothost.arena.spec import Build, MatchSpec
from bothost.errors import BothostError, UsageError
from bothost.plugins import import_failed
from bothost.sequential import BettingTest
from bothost.strategy import Model, PlayerLog, Strategy

Json = dict[str, Any]
KEPT_S = 30 * 86_400.0
"""A match without a result can be continued for this long."""


class GateRefused(BothostError):
    """The match did not show the challenger to be better."""


class GateSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a match decides."""

    deals: int = 2000
    """Most deals of the match, or most held-out hands."""
    alpha: float = 0.05
    """Highest probability that a challenger passes although it is no better."""
    seed: int = 0
    workers: int = 1
    game: str | None = None
    """None: the strategy's only game."""
    options: Json = {}
    """Options of play of both."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the match showed."""

    better: bool
    challenger: str
    champion: str
    deals: int
    """Deals played, or held-out hands compared."""
    alpha: float
    p_better: float
    """Anytime-valid p-value of "the challenger is no better"."""
    p_worse: float
    figures: Json
    """Figures of the arena, or the mean ``gain`` on held-out hands."""

    def __str__(self) -> str:
        result = "better" if self.better else "worse" if self.p_worse <= self.alpha else "not shown to be better"
        return (
            f"{self.challenger} is {result} than {self.champion}: {self._evidence()}, "
            f"p = {self.p_better:.4g} that it is no better, where at most {self.alpha:g} passes"
        )

    def _evidence(self) -> str:
        if "gain" in self.figures:
            return f"{self.deals} held-out hands, on which it gained {self.figures['gain']:+.4f}"
        if "adjusted_lead" in self.figures:
            lead, within = self.figures["adjusted_lead"], _within(self.figures["adjusted_lead_ci95"], "+.2f")
            return f"{self.deals} deals, less luck it won {lead:+.2f} points a hand{within}"
        if "agents" in self.figures:
            mine = self.figures["agents"]["A"]
            return f"{self.deals} deals, it scored {mine['score']:+.2f} a hand{_within(mine['ci95'], '+.2f')}"
        return f"{self.deals} deals, it won {self.figures['wp']:.3f} of them{_within(self.figures['ci95'], '.3f')}"


def _within(ci95: Sequence[float] | None, form: str) -> str:
    return f" (95 % {ci95[0]:{form}} … {ci95[1]:{form}})" if ci95 else ""


def play(
    challenger: str,
    champion: str,
    build: Build,
    settings: GateSettings,
    *,
    game: str,
    config: str | None = None,
    journal: Path | None = None,
    on_deal: Callable[[int, float], None] | None = None,
) -> Verdict:
    """Play the match of two addresses. With a journal, an interrupted match continues, until it has a result."""
    spec = MatchSpec(
        game=game,
        rules={},
        contestants=(challenger, champion),
        options=(settings.options, settings.options),
        deals=settings.deals,
        seed=settings.seed,
        workers=settings.workers,
        sequential=True,
        luck_adjusted=has_luck(game),
        alpha=settings.alpha,
        config=config,
    )
    figures = run_match(spec, build, journal=journal, on_deal=on_deal)
    test = figures["sequential"]
    if journal is not None and test["verdict"] is not None:
        journal.unlink(missing_ok=True)
    return Verdict(
        better=test["verdict"] == "A",
        challenger=challenger,
        champion=champion,
        deals=figures["deals"],
        alpha=settings.alpha,
        p_better=test["p_a_better"],
        p_worse=test["p_b_better"],
        figures=figures,
    )


def journal_in(
    folder: Path, challenger: tuple[str, Model], champion: tuple[str, Model], settings: GateSettings, game: str
) -> Path:
    """The journal of the match of two addresses and their models. Matches that differ in anything have different ones.

    Journals of matches that were not continued for ``KEPT_S`` are removed.
    """
    for path in folder.glob("gate-*.jsonl"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > KEPT_S:
                path.unlink()
    played = [game, rules.game(game).rules, has_luck(game), challenger[0], champion[0], settings.options]
    how = zlib.crc32(msgspec.json.encode(played, order="sorted"))
    models = f"{challenger[1].sha256[:12]}-{champion[1].sha256[:12]}"
    return folder / f"gate-{models}-{settings.seed}-{how:08x}.jsonl"


def gains(
    strategy: type[Strategy], log: PlayerLog, lineage: Json, challenger: Model, champion: Model
) -> Iterator[float] | None:
    """The trainer's estimate of the challenger's gain on each held-out hand. None: a match decides.

    Raises UsageError if a module is missing for a challenger that imitates.
    """
    try:
        trainer = strategy.trainer()
    except ImportError as error:
        if "log" in (lineage.get("training", lineage) or {}):
            raise import_failed(f"comparing models of {strategy.name}", error) from error
        return None
    if trainer is None or isinstance(trainer, Mapping) or not trainer.learns_from_log:
        return None
    return trainer(trainer.Options()).gains(log, lineage, challenger, champion)


def weigh(found: Iterator[float], challenger: str, champion: str, settings: GateSettings) -> Verdict:
    """Decide by the gains of held-out hands, each within [-1, 1]. Stops when the result is clear."""
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
    """The game to play. Raises UsageError if the strategy plays several games and none is named."""
    if settings.game is not None:
        return settings.game
    if len(strategy.games) == 1 and strategy.games[0] != "*":
        return strategy.games[0]
    raise UsageError(f"{strategy.name} plays {', '.join(strategy.games)}", advice="name the game of the match: --game")
