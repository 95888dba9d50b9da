"""The conformance kit finds each fault, and nothing in what is sound."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from bothost import Budget, Decision, Evaluator, Player, Request, Strategy, Table, rules
from bothost.plugins import Plugins
from bothost.rules import ActionArray, Game, View
from bothost.testing import check_strategy as check_strategy_module
from bothost.testing import misbehaving
from bothost.testing.check_strategy import check_strategy

CLAIMS = rules.game("claims")


NIM_PLUGIN = """
from bothost import Decision, Player, Strategy, hookimpl
from bothost.testing.check_strategy import check_strategy
from bothost.testing.nim import make_nim

class First(Player):
    def decide(self, view, legal, budget):
        return Decision(action=int(legal[0]))

class TakesOne(Strategy):
    name, version, games = "takes-one", "1", ("nim",)
    def player(self, table):
        return First()

@hookimpl
def bothost_games():
    yield "nim", make_nim

def check():
    check_strategy(TakesOne, hands=2).require()
"""


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return Plugins.load(modules=[misbehaving])


@pytest.mark.parametrize("name", ["random", "first-legal"])
def test_sound_strategies_conform(name: str, plugins: Plugins) -> None:
    report = check_strategy(name, games=[CLAIMS], hands=100, plugins=plugins)
    report.require()
    assert report.hands == 100 and report.decisions > 300


def test_a_class_plays_the_games_of_installed_plugins(tmp_path: Path) -> None:
    (tmp_path / "nim_plugin.py").write_text(NIM_PLUGIN)
    installed = tmp_path / "nim_plugin-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: nim-plugin\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("[bothost]\nnim_plugin = nim_plugin\n")
    program = "import nim_plugin; nim_plugin.check()"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=True)


FAULTS = {
    "hang": ("legal", "has not returned after"),
    "slow": ("inside its budget", "came late"),
    "slow-quick": ("quick is quick", "quick takes 2"),
    "crash": ("legal", "decide raised RuntimeError"),
    "exit": ("legal", "decide raised SystemExit"),
    "panic": ("legal", "decide raised PanicException"),
    "player": ("legal", "player raised"),
    "init": ("legal", "the constructor raised"),
    "close": ("legal", "close raised"),
    "illegal": ("legal", "decide answered -1"),
    "stubborn": ("legal", "asked again after a refused action, answered"),
    "no-decision": ("legal", "decide returned int"),
    "fraction": ("legal", "Decision.action is float"),
    "policy": ("legal", "policy has"),
    "view": ("legal", "changed the view"),
    "leak": ("legal", "kept after decide has returned"),
    "flood": ("prints nothing", "characters were printed"),
    "moody": ("deterministic", "went another way"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_and_named(name: str, plugins: Plugins) -> None:
    budget_ms = 50.0 if name in ("hang", "slow") else 1000.0
    options = {"slow": {"seconds": 0.1}, "hang": {"seconds": 3.0}}.get(name, {})
    report = check_strategy(
        f"misbehaving-{name}", games=[CLAIMS], hands=10, budget_ms=budget_ms, options=options, plugins=plugins
    )
    check, words = FAULTS[name]
    found = [finding for finding in report.findings if finding.check == check]
    assert not found[0].ok and words in found[0].detail and found[0].advice
    with pytest.raises(AssertionError, match=words):
        report.require()


def test_all_misbehaving_strategies_are_tried(plugins: Plugins) -> None:
    names = {name.removeprefix("misbehaving-") for name in plugins.strategies if name.startswith("misbehaving-")}
    in_process = {"gil", "dies", "segfault", "process-leak", "process-flood"}
    assert names - set(FAULTS) == in_process, "these are for hosts: they take the process with them"


def test_faults_that_come_late_are_found(plugins: Plugins) -> None:
    report = check_strategy("misbehaving-crash", games=[CLAIMS], hands=20, options={"after": 2}, plugins=plugins)
    assert not report.ok and report.decisions > 2


def test_games_that_are_not_there_are_findings(plugins: Plugins) -> None:
    report = check_strategy("random", games=["chess"], hands=1, plugins=plugins)
    assert [finding.check for finding in report.findings if not finding.ok] == ["game exists"]


class NoPlayer(Strategy):
    """Makes what is not a player."""

    name, version, games = "no-player", "1", ("*",)
    made: Any = None

    def player(self, table: Table) -> Player:
        made: Player = self.made
        return made


@pytest.mark.parametrize(("made", "words"), [(None, "NoneType"), (Player, "the class Player")])
def test_what_is_no_player_is_named(made: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NoPlayer, "made", made)
    report = check_strategy(NoPlayer, games=[CLAIMS], hands=2)
    with pytest.raises(AssertionError, match=f"player returned {words}"):
        report.require()


def test_a_player_may_prepare_for_longer_than_a_decision_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Starting(Player):
        def prepare(self) -> None:
            threading.Event().wait(0.3)

        def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
            return Decision(action=int(legal[0]))

    monkeypatch.setattr(check_strategy_module, "HANG_S", 0.05)
    monkeypatch.setattr(NoPlayer, "made", Starting())
    report = check_strategy(NoPlayer, games=[CLAIMS], hands=1, budget_ms=40.0)
    assert not [finding for finding in report.findings if "prepare" in finding.detail]


class ClosesBadly(NoPlayer):
    """Fails to close from the ``after``-th instance on."""

    name = "closes-badly"
    after: ClassVar[int]
    made_so_far: ClassVar[int]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        ClosesBadly.made_so_far += 1
        self.number = ClosesBadly.made_so_far

    def player(self, table: Table) -> Player:
        return _AnswersPlayer()

    def close(self) -> None:
        if self.number >= self.after:
            raise RuntimeError("it cannot close")


@pytest.mark.parametrize("after", range(1, 7))
def test_a_strategy_that_fails_to_close_is_named_by_whichever_check_closes_it(
    after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClosesBadly, "after", after, raising=False)
    monkeypatch.setattr(ClosesBadly, "made_so_far", 0, raising=False)
    monkeypatch.setattr(Answers, "fields", {})
    with pytest.raises(AssertionError, match="close raised RuntimeError: it cannot close"):
        check_strategy(ClosesBadly, games=[CLAIMS], hands=2).require()
    assert ClosesBadly.made_so_far >= after


class Answers(Strategy):
    """Answers with ``fields`` beside a legal action."""

    name, version, games = "answers", "1", ("*",)
    fields: ClassVar[dict[str, Any]] = {}
    kind: Any = Decision

    def player(self, table: Table) -> Player:
        return _AnswersPlayer()


class _AnswersPlayer(Player):
    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        fields = {name: value(legal) if callable(value) else value for name, value in Answers.fields.items()}
        made: Decision = Answers.kind(action=int(legal[0]), **fields)
        return made


class Derived(Decision, kw_only=True):
    """Not what a host takes for a decision."""


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"encoder_version": np.int64(2)}, "Decision.encoder_version is int64, not int"),
        ({"phase": 7}, "Decision.phase is int, not str"),
        ({"wait_ms": "5"}, "Decision.wait_ms is str, not Real"),
        ({"policy": lambda legal: (1.0 for _ in legal)}, "policy is not numeric"),
        ({"policy": lambda legal: np.full((len(legal), 1), 1.0 / len(legal))}, r"policy has the shape \(\d+, 1\)"),
        ({"policy": lambda legal: np.append(2.0, np.full(len(legal) - 1, -1.0 / max(1, len(legal) - 1)))}, "negative"),
        ({"values": lambda legal: ["high"] * len(legal)}, "values is not numeric"),
        ({"value": "high"}, "value is not numeric"),
        ({"value": np.zeros(1)}, r"value has the shape \(1,\)"),
        ({"stats": ["reason"]}, "stats is a list"),
        ({"stats": {"reason": "x" * (1 << 20)}}, "the log takes 1048576"),
        ({"stats": {"reason": "\ud800"}}, "stats cannot be logged"),
    ],
)
def test_what_a_host_would_not_use_or_log_is_named(
    fields: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Answers, "fields", fields)
    with pytest.raises(AssertionError, match=words):
        check_strategy(Answers, games=[CLAIMS], hands=2).require()


class Yields(Strategy):
    """Decides for a batch one by one, with ``first`` as the index of the first; None: without an index."""

    name, version, games = "yields", "1", ("*",)
    first: ClassVar[int | None] = 0

    def player(self, table: Table) -> Player:
        return _AnswersPlayer()

    def decide_many(self, requests: Sequence[Request]) -> Any:
        first = Yields.first
        for index, request in enumerate(requests, first or 0):
            decision = Decision(action=int(request.legal[0]))
            yield decision if first is None else (index, decision)


@pytest.mark.parametrize("first", [1, None])
def test_a_batch_without_the_indexes_of_its_requests_is_found(
    first: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_strategy(Yields, games=[CLAIMS], hands=2).require()
    monkeypatch.setattr(Yields, "first", first)
    with pytest.raises(AssertionError, match=r"did not decide each of 2 requests once\n.*index of the request"):
        check_strategy(Yields, games=[CLAIMS], hands=2).require()


async def _awaited(self: Any, requests: Any) -> list[Decision]:
    raise AssertionError


async def _generated(self: Any, requests: Any) -> Any:
    yield 0, Decision(action=0)


@pytest.mark.parametrize("decide_many", [_awaited, _generated])
def test_an_async_batch_is_named(decide_many: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Yields, "decide_many", decide_many)
    with pytest.raises(AssertionError, match="decide_many is an async function: write it with def, without async"):
        check_strategy(Yields, games=[CLAIMS], hands=2).require()
    gc.collect()  # Python would warn of a coroutine that nobody awaited


@pytest.mark.parametrize(
    ("owner", "method"),
    [(Yields, "player"), (Yields, "close"), *((_AnswersPlayer, name) for name in ("prepare", "observe", "close"))],
)
def test_a_method_that_nobody_would_await_is_named(owner: type, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def awaited(self: Any, *arguments: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(owner, method, awaited)
    monkeypatch.setattr(Yields, "wants_events", True)
    with pytest.raises(AssertionError, match=rf"{method} is an async function: write it with def, without async"):
        check_strategy(Yields, games=[CLAIMS], hands=2).require()
    gc.collect()


class Values(Evaluator):
    """Values actions by what ``made`` makes of their arrays."""

    name, version, games = "values", "1", ("*",)
    made: Any = None

    def player(self, table: Table) -> Player:
        return _AnswersPlayer()

    def action_values(self, views: Sequence[View], legal: Sequence[ActionArray]) -> Any:
        return Values.made(legal)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda legal: None, "action_values raised TypeError"),
        (lambda legal: (np.zeros(len(each)) for each in legal), "has no len"),
        (lambda legal: [["high"] * len(each) for each in legal], "could not convert string"),
        (lambda legal: [np.full(len(each), np.nan) for each in legal], "outside"),
    ],
)
def test_values_that_are_none_are_named(made: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Values, "made", staticmethod(made))
    with pytest.raises(AssertionError, match=words):
        check_strategy(Values, games=[CLAIMS], hands=2).require()


def test_a_strategy_that_fails_at_a_game_is_named() -> None:
    class Choosy(NoPlayer):
        @classmethod
        def supports(cls, game: Game) -> bool:
            raise KeyError("colour")

    with pytest.raises(AssertionError, match="supports raised KeyError: 'colour'"):
        check_strategy(Choosy, games=[CLAIMS], hands=2).require()


def test_a_subclass_of_decision_is_no_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answers, "kind", Derived)
    with pytest.raises(AssertionError, match="decide returned Derived, not a Decision"):
        check_strategy(Answers, games=[CLAIMS], hands=2).require()
