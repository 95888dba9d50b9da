"""A whole match: workers, journal, sequential stop, figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from bothost.arena.crew import ProcessCrew, Work, missing, play_here, spread
from bothost.arena.figures import figures_for
from bothost.arena.journal import Header, Journal
from bothost.arena.lineup import lineups
from bothost.arena.luck import luck_of
from bothost.arena.match import DealResult
from bothost.arena.spec import Build, MatchSpec
from bothost.errors import UsageError
from bothost.rules.game import Json
from bothost.sequential import BettingTest
from bothost.strategy import Strategy


class _Sequence:
    """Feeds deals to the two one-sided tests in the order of their numbers.

    In the order in which they finish, the verdict would depend on the lengths of hands.
    """

    def __init__(self, score: Callable[[DealResult], float], alpha: float) -> None:
        self._score = score
        self._waiting: dict[int, DealResult] = {}
        self._next = 0
        self.better = BettingTest(0.5, alpha)
        self.worse = BettingTest(0.5, alpha)
        self.counted: list[DealResult] = []

    def add(self, result: DealResult) -> str | None:
        """Add a deal and return the verdict, "A" or "B", once there is one."""
        self._waiting[result.deal] = result
        while self.verdict is None and (deal := self._waiting.pop(self._next, None)) is not None:
            self._next += 1
            self.counted.append(deal)
            score = self._score(deal)
            self.better.update(score)
            self.worse.update(1.0 - score)
        return self.verdict

    @property
    def verdict(self) -> str | None:
        return "A" if self.better.rejected else "B" if self.worse.rejected else None

    def figures(self, alpha: float) -> Json:
        """The verdict and both p-values."""
        p_values = {"p_a_better": self.better.p_value, "p_b_better": self.worse.p_value}
        return {"verdict": self.verdict, "alpha": alpha, **p_values}


def run_match(
    spec: MatchSpec,
    build: Build,
    *,
    journal: Path | None = None,
    on_deal: Callable[[int, float], None] | None = None,
    on_resume: Callable[[int], None] | None = None,
    each_deal: bool = False,
) -> Json:
    """Play a match and return its figures. ``each_deal`` adds ``scores``: contestant A's score of every deal in order.

    Deals in the journal are not played again. ``on_deal`` receives the number of finished deals and contestant A's mean
    score, to show progress. ``on_resume`` receives the number of deals that the journal has, if any. Without a
    sequential test the figures do not depend on ``workers``. Raises UsageError for a sequential test of more than two.
    """
    if spec.sequential and len(spec.contestants) != 2:
        advice = "leave out --sequential, or name two"
        raise UsageError(f"a sequential test compares two, not {len(spec.contestants)} contestants", advice=advice)
    game, strategies = build(spec)
    seats = lineups(game, len(spec.contestants))
    if spec.luck_adjusted:
        luck_of(game)
    score, figures = figures_for(game.name, seats, luck_adjusted=spec.luck_adjusted)
    sides = zip(spec.contestants, strategies, spec.options, strict=True)
    header = Header.of(spec, game, tuple(describe(*side) for side in sides), spec.seed)
    sequence = _Sequence(lambda deal: score(deal, seats), spec.alpha)
    with closing(Journal(journal, header)) as book, ExitStack() as stack:
        for strategy in strategies:
            stack.callback(strategy.close)
        results = {done.deal: done for done in book.open() if done.deal < spec.deals}
        if on_resume is not None and results:
            on_resume(len(results))
        for deal in sorted(results):
            sequence.add(results[deal])
        total = sum(score(result, seats) for result in results.values())
        if not (spec.sequential and sequence.verdict):
            work = Work(0, tuple(range(len(spec.contestants))), spec.seed, missing(spec.deals, results))
            if spec.workers > 1:
                stack.close()  # the workers make their own strategies
                finished = spread(stack.enter_context(ProcessCrew(build, spec)), [work], spec.batch)
            else:
                finished = play_here(spec, game, strategies, [work])
            stack.enter_context(closing(finished))
            for _, result in finished:
                book.append(result)
                results[result.deal] = result.for_figures()
                verdict = sequence.add(results[result.deal])
                total += score(result, seats)
                if on_deal is not None:
                    on_deal(len(results), total / len(results))
                if spec.sequential and verdict:
                    break
    counted = sequence.counted if spec.sequential else [results[deal] for deal in sorted(results)]
    out = {"game": game.name, "contestants": list(spec.contestants), "seed": spec.seed, **figures(counted, seats)}
    if each_deal:
        out["scores"] = [score(result, seats) for result in counted]
    if len(spec.contestants) == 2:
        out["sequential"] = sequence.figures(spec.alpha)
    return out


def describe(address: str, strategy: Strategy, given: Json) -> str:
    """Return the address with its version or model sha256 and the given options.

    Options in a model's ``play.json`` are part of its sha256.
    """
    made = strategy.version if strategy.model is None else strategy.model.sha256
    options = f" {json.dumps(given, sort_keys=True)}" if given else ""
    return f"{address}@{made}{options}"
