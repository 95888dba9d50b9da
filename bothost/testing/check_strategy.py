"""The conformance kit for strategies.

::

    from bothost.testing.check_strategy import check_strategy

    def test_conformance() -> None:
        check_strategy("my-strategy", hands=100).require()

It plays whole hands with the same calls as the host, and checks these laws:

- Decisions are legal, well-formed and within the budget. An action that the lobby refused is not chosen again.
- Equal seeds give equal decisions. Rebuilt views work as well. Views are not changed.
- An evaluator's values are within their range. ``quick`` is fast. Nothing leaks.
"""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bothost import BothostError, rules
from bothost.errors import ANY_FAILURE, GameNotPlayed, described
from bothost.exec_protocol import START_S
from bothost.plugins import Plugins, Resolved
from bothost.rules import Game
from bothost.strategy import Strategy, plays
from bothost.testing import strategy_laws as laws
from bothost.testing.strategy_laws import Broken, Run

HANG_FACTOR, HANG_S = 4.0, 2.0
"""A call that takes this many budgets and seconds counts as hung. ``prepare`` has the time of a program's start."""


class Finding(msgspec.Struct, frozen=True):
    """The result of one check."""

    check: str
    game: str
    ok: bool
    detail: str = ""
    advice: str = ""

    def __str__(self) -> str:
        text = f"{'ok  ' if self.ok else 'FAIL'}  {self.check}" + (f" ({self.game})" if self.game else "")
        text += f": {self.detail}" if self.detail else ""
        return f"{text}\n      fix: {self.advice}" if self.advice and not self.ok else text


class Judged:
    """Base of the reports of kits."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return all(finding.ok for finding in self.findings)

    def require(self) -> None:
        """Raise AssertionError with the failed findings, if there are any. For tests."""
        if not self.ok:
            raise AssertionError("\n".join(str(finding) for finding in self.findings if not finding.ok))


class Report(Judged, msgspec.Struct, frozen=True):
    """The result of all checks."""

    address: str
    findings: tuple[Finding, ...]
    hands: int
    decisions: int
    mean_us: float
    """Mean time of ``decide``, microseconds."""
    max_ms: float


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
    """Check a strategy (an address, a class, or a resolved address) in ``hands`` hands of each game.

    ``games``: default all games that the strategy declares, with their default rules; of a program, those that it says
    it plays. Raises as ``Plugins.resolve``
    does. The report contains the strategy's own errors.
    """
    resolved = _resolved(strategy, options, plugins)
    findings = [_finding("options schema", "", laws.options_schema, resolved.strategy)]
    not_played: list[Finding] = []
    runs: list[Run] = []
    for game in _games(resolved.strategy, games, findings):
        run = Run(resolved, game, seed, budget_ms)
        try:
            findings += _check_game(run, hands)
        except GameNotPlayed as error:
            not_played.append(Finding("plays the game", game.name, False, str(error), error.advice))
        else:
            if not games and run.calling == "prepare" and resolved.strategy.games == ("*",):
                break  # a program that does not start for one game starts for none
        runs.append(run)
    decisions = sum(run.decisions for run in runs)
    if games or not decisions:
        findings += not_played
    return Report(
        resolved.address,
        tuple(findings),
        hands=sum(run.hands for run in runs),
        decisions=decisions,
        mean_us=round(sum(run.seconds for run in runs) / max(decisions, 1) * 1e6, 2),
        max_ms=round(max((run.slowest for run in runs), default=0.0) * 1e3, 3),
    )


def _resolved(strategy: Any, options: Mapping[str, Any] | None, plugins: Plugins | None) -> Resolved:
    if isinstance(strategy, Resolved):
        return strategy
    plugins = plugins or Plugins.load()  # for a class, too: its games may be those of installed plugins
    if isinstance(strategy, str):
        return plugins.resolve(strategy, options)
    return Resolved(strategy.name, strategy, msgspec.convert(dict(options or {}), strategy.Options))


def _games(strategy: type[Strategy], wanted: Sequence[str | Game], findings: list[Finding]) -> Iterator[Game]:
    """The games to play. A declared game that does not exist or is not supported becomes a finding."""
    declared = [name for name in strategy.games if not name.endswith("*")]
    listed = [name for name in rules.games() if name not in declared and plays(strategy.games, name)]
    for item in wanted or [*declared, *listed]:
        name = item if isinstance(item, str) else item.name
        try:
            game = rules.game(item) if isinstance(item, str) else item
        except BothostError as error:
            findings.append(Finding("game exists", name, False, str(error), error.advice))
            continue
        try:
            supported = strategy.supports(game)
        except ANY_FAILURE as error:
            detail = f"supports raised {described(error)}"
            findings.append(Finding("plays the game", name, False, detail, "@classmethod; return True or False"))
            continue
        if not supported:
            detail = f"{strategy.name} declares games = {strategy.games!r}"
            findings.append(Finding("plays the game", name, False, detail, "add it to games, or leave it out here"))
            continue
        yield game


def _check_game(run: Run, hands: int) -> list[Finding]:
    """Run all checks of one game. If the strategy cannot play or hangs, skip the rest."""
    found: list[Finding] = []
    game = run.game.name
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
            finding, hung = _guarded(name, run, check, count)
            found.append(finding)
            if hung or (name == "legal" and not finding.ok):
                break
    found.append(_finding("inside its budget", game, laws.in_budget, run))
    found.append(_finding("quick is quick", game, laws.quick_is_quick, run))
    found.append(_finding("prints nothing", game, laws.prints_nothing, printed.written))
    return found


def _guarded(name: str, run: Run, check: Callable[[Run, int], str], hands: int) -> tuple[Finding, bool]:
    """Run a check in a separate thread, and stop waiting if a call hangs. Returns (finding, whether it hung)."""
    result: list[Finding] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            result.append(_finding(name, run.game.name, check, run, hands))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name=f"check {run.resolved.address}", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
        limit = (START_S if run.calling == "prepare" else run.budget_ms / 1000.0 * HANG_FACTOR) + HANG_S
        if run.call_started is not None and time.monotonic() - run.call_started > limit:
            run.given_up = True
            detail = f"{run.calling} has not returned after {limit:.0f} s"
            advice = "watch budget.left_ms(); a host quarantines such a strategy"
            return Finding(name, run.game.name, False, detail, advice), True
    if failed:
        raise failed[0]
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
