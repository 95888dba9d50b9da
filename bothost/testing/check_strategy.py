"""The conformance kit for strategies: says in words what is wrong with one.

::

    from bothost.testing.check_strategy import check_strategy

    def test_conformance() -> None:
        check_strategy("my-strategy", hands=100).require()

It plays whole hands through the same calls as the host makes, and asks: are all decisions legal and well-formed, do
equal seeds give equal decisions, do they come inside the budget, does a rebuilt view work as well, are views left
alone, are an evaluator's values within their range, does ``quick`` hold, is everything let go at the end?
"""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bothost import BothostError, rules
from bothost.plugins import Plugins, Resolved
from bothost.rules import Game
from bothost.strategy import Strategy, plays
from bothost.testing import strategy_laws as laws
from bothost.testing.strategy_laws import Broken, Run

HANG_FACTOR = 4.0
"""A decision that takes this many budgets, and two seconds, counts as hung."""


class Finding(msgspec.Struct, frozen=True):
    """One question and its answer."""

    check: str
    game: str
    ok: bool
    detail: str = ""
    advice: str = ""

    def __str__(self) -> str:
        text = f"{'ok  ' if self.ok else 'FAIL'}  {self.check}" + (f" ({self.game})" if self.game else "")
        text += f": {self.detail}" if self.detail else ""
        return f"{text}\n      fix: {self.advice}" if self.advice and not self.ok else text


class Report(msgspec.Struct, frozen=True):
    """What the kit found."""

    address: str
    findings: tuple[Finding, ...]
    hands: int
    decisions: int
    mean_us: float
    """Mean time of ``decide``, microseconds."""
    max_ms: float

    @property
    def ok(self) -> bool:
        return all(finding.ok for finding in self.findings)

    def require(self) -> None:
        """Raise AssertionError with what failed, unless all is well. For tests."""
        if not self.ok:
            raise AssertionError("\n".join(str(finding) for finding in self.findings if not finding.ok))


def check_strategy(
    strategy: str | type[Strategy] | Resolved,
    *,
    games: Sequence[str | Game] = (),
    hands: int = 1000,
    budget_ms: float = 1000.0,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    plugins: Plugins | None = None,
) -> Report:
    """Check a strategy (an address, a class, or what an address resolved to) in ``hands`` hands of each game.

    ``games``: default all that the strategy declares, under their default rules. Raises what ``Plugins.resolve``
    raises; whatever the strategy itself does wrong is in the report.
    """
    resolved = _resolved(strategy, options, plugins)
    findings = [_finding("options schema", "", laws.options_schema, resolved.strategy)]
    total = Run(budget_ms)
    for game in _games(resolved.strategy, games, findings):
        run = Run(budget_ms)
        findings += _check_game(resolved, game, hands, seed, run)
        total.add(run)
    mean_us = total.seconds / total.decisions * 1e6 if total.decisions else 0.0
    return Report(
        resolved.address,
        tuple(findings),
        total.hands,
        total.decisions,
        round(mean_us, 2),
        round(total.slowest * 1e3, 3),
    )


def _resolved(strategy: Any, options: Mapping[str, Any] | None, plugins: Plugins | None) -> Resolved:
    if isinstance(strategy, Resolved):
        return strategy
    if isinstance(strategy, str):
        return (plugins or Plugins.load()).resolve(strategy, options)
    return Resolved(strategy.name, strategy, msgspec.convert(dict(options or {}), strategy.Options))


def _games(strategy: type[Strategy], wanted: Sequence[str | Game], findings: list[Finding]) -> Iterator[Game]:
    """The games to play; a declared game that does not exist, or is not supported after all, is a finding."""
    declared = [name for name in strategy.games if not name.endswith("*")]
    listed = [name for name in rules.games() if name not in declared and plays(strategy.games, name)]
    for item in wanted or [*declared, *listed]:
        name = item if isinstance(item, str) else item.name
        try:
            game = rules.game(item) if isinstance(item, str) else item
        except BothostError as error:
            findings.append(Finding("game exists", name, False, str(error), error.advice))
            continue
        if not strategy.supports(game):
            detail = f"{strategy.name} declares games = {strategy.games!r}"
            findings.append(Finding("plays the game", name, False, detail, "add it to games, or leave it out here"))
            continue
        yield game


def _check_game(resolved: Resolved, game: Game, hands: int, seed: int, run: Run) -> list[Finding]:
    """All checks of one game; a strategy that does not even play is asked no more."""
    found: list[Finding] = []
    checks = (
        ("legal", laws.plays_legally, hands),
        ("rebuilt view", laws.survives_resync, min(hands, 20)),
        ("deterministic", laws.is_deterministic, min(hands, 20)),
        ("tables apart", laws.keeps_tables_apart, min(hands, 8)),
        ("decide_many", laws.batches, min(hands, 8)),
        ("evaluates", laws.evaluates, min(hands, 4)),
        ("lets go", laws.lets_go, min(hands, 20)),
    )
    printed = _Counter()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(_Counter()):
        for name, check, count in checks:
            finding, hung = _guarded(name, game, run, check, resolved, count, seed)
            found.append(finding)
            if hung or (name == "legal" and not finding.ok):
                break
    found.append(_finding("inside its budget", game.name, laws.in_budget, run))
    found.append(_finding("quick is quick", game.name, laws.quick_is_quick, run))
    found.append(_finding("prints nothing", game.name, laws.prints_nothing, printed.written))
    return found


def _guarded(
    name: str, game: Game, run: Run, check: Any, resolved: Resolved, hands: int, seed: int
) -> tuple[Finding, bool]:
    """Run a check in a thread of its own and watch that no call takes for ever: (finding, whether it hung)."""
    result: list[Finding] = []
    limit = run.budget_ms / 1000.0 * HANG_FACTOR + 2.0

    def work() -> None:
        result.append(_finding(name, game.name, check, resolved, game, hands, seed, run))

    thread = threading.Thread(target=work, name=f"check {resolved.address}", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
        if run.call_started is not None and time.monotonic() - run.call_started > limit:
            run.given_up = True
            detail = f"{run.calling} has not returned after {limit:.0f} s"
            advice = "watch budget.left_ms(); a host gives such a strategy up"
            return Finding(name, game.name, False, detail, advice), True
    return result[0], False


def _finding(check: str, game: str, law: Any, *arguments: Any) -> Finding:
    try:
        detail = law(*arguments)
    except Broken as broken:
        return Finding(check, game, False, str(broken), broken.advice)
    return Finding(check, game, True, detail or "")


class _Counter(io.TextIOBase):
    """A stdout that only counts."""

    written = 0

    def write(self, text: str) -> int:
        self.written += len(text)
        return len(text)
