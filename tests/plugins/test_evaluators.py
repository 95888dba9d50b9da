"""Strategies that build on what others say actions are worth: how an option comes to be one, and what is refused."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import ModuleType
from typing import ClassVar

import msgspec
import numpy as np
import pytest

from bothost import Budget, Decision, Evaluator, Player, Strategy, Table, hookimpl, rules
from bothost.errors import ConfigError
from bothost.host.plans import Plans
from bothost.host.process import ProcessLimits, ProcessStrategy
from bothost.plugins import Plugins, Resolved, weights
from bothost.rules import ActionArray, FloatArray, View
from bothost.tables.router import Router
from bothost.testing.strategy_laws import Broken, Run, evaluates


class Consulting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    evaluator: str = "last-is-best"


class LastIsBest(Evaluator):
    """Likes an action the better the later it comes."""

    name = "last-is-best"
    version = "1"
    games = ("*",)

    def player(self, table: Table) -> Player:
        return Follower(self)

    def action_values(self, views: Sequence[View], legal: Sequence[ActionArray]) -> list[FloatArray]:
        return [np.linspace(-1, 1, len(actions), dtype=np.float32) for actions in legal]


class Believer(Strategy):
    """Does what its evaluator values most; without one, what comes first."""

    name = "believer"
    version = "1"
    games = ("*",)
    evaluators = ("evaluator",)
    Options: ClassVar[type[msgspec.Struct]] = Consulting
    evaluator: Evaluator | None = None

    def use_evaluator(self, option: str, evaluator: Evaluator) -> None:
        assert option == "evaluator"
        self.evaluator = evaluator

    def player(self, table: Table) -> Player:
        return Follower(self.evaluator)


class Follower(Player):
    def __init__(self, evaluator: Evaluator | None) -> None:
        self.evaluator = evaluator

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        if self.evaluator is None:
            return Decision(action=int(legal[0]))
        return Decision(action=int(legal[np.argmax(self.evaluator.action_values([view], [legal])[0])]))


MODULE = ModuleType("consulting")
MODULE.bothost_strategies = hookimpl(lambda: [LastIsBest, Believer])  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return Plugins.load(modules=[MODULE])


def asked() -> tuple[Table, View]:
    game = rules.game("doudizhu")
    return Table(lobby="l", table="t", game=game, seat=0, seed=1), game.new_state(3).view(0)


def choice(strategy: Strategy) -> int:
    table, view = asked()
    return strategy.player(table).decide(view, view.legal(), Budget(deadline=float("inf"))).action


def test_what_an_option_names_is_made_and_handed_over(plugins: Plugins) -> None:
    legal = asked()[1].legal()
    assert choice(plugins.resolve("believer").make()) == legal[-1]
    assert choice(plugins.resolve("believer", {"evaluator": ""}).make()) == legal[0]


def test_it_is_handed_over_in_a_process_too(plugins: Plugins) -> None:
    resolved = plugins.resolve("doudizhu-mcts", {"evaluator": "deep-mc", "iterations": 40, "belief": 0})
    table, view = asked()
    here = resolved.make().player(table).decide(view, view.legal(), Budget(deadline=float("inf")))
    remote = ProcessStrategy(resolved, ProcessLimits(2048 << 20))
    try:
        there = remote.player(table).decide(view, view.legal(), Budget(deadline=time.monotonic() + 60.0))
    finally:
        remote.close()
    assert here.stats is not None and there.stats is not None
    assert here.stats["evaluator"] == there.stats["evaluator"]
    assert (there.action, list(there.policy or ())) == (here.action, list(here.policy or ()))


def test_another_model_of_the_evaluator_is_another_player(plugins: Plugins) -> None:
    one, same, other = (
        plugins.resolve("doudizhu-mcts", {"evaluator": f"deep-mc:{level}"}).pinned
        for level in ("level-1", "level-1", "level-2")
    )
    assert one == same != other
    assert one[0] == other[0]


class Skewed(LastIsBest):
    """Values all actions alike, and wrongly in one way or another."""

    def __init__(self, fault: str, model: None) -> None:
        super().__init__(None)
        self.fault = fault

    def player(self, table: Table) -> Player:
        return Follower(None)

    def action_values(self, views: Sequence[View], legal: Sequence[ActionArray]) -> list[FloatArray]:
        if self.fault == "misaligned":
            return [np.zeros(len(actions) + 1, np.float32) for actions in legal]
        value = {"nan": np.nan, "large": 2.0, "batch": 1.0 / len(views)}[self.fault]
        values = [np.full(len(actions), value, np.float32) for actions in legal]
        return values


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("misaligned", "legal actions"),
        ("nan", "outside"),
        ("large", "outside"),
        ("batch", "asked about with"),
    ],
)
def test_the_conformance_kit_tells_an_evaluators_faults(fault: str, words: str) -> None:
    resolved = Resolved("skewed", Skewed, fault)
    with pytest.raises(Broken, match=words):
        evaluates(Run(resolved, rules.game("claims"), 0, 1000.0), 2)


def test_evaluators_conform() -> None:
    for name, game in (("deep-mc", "doudizhu"), ("last-is-best", "claims")):
        resolved = Plugins.load(modules=[MODULE]).resolve(name)
        assert evaluates(Run(resolved, rules.game(game), 0, 1000.0), 2).endswith("views")


def test_a_host_takes_up_what_the_evaluators_alias_comes_to_stand_for() -> None:
    strategy = Plugins.load().strategies["deep-mc"]
    known = weights.manifest(strategy)
    assert known is not None
    one, other, *_ = sorted(known.versions)
    stands = {("deep-mc", "champion"): one}
    registry = Plugins.load(aliases=lambda name, alias: stands.get((name, alias)))
    plans = Plans(Router([], registry.strategies.__contains__), registry, quarantine_after=3, quarantine_s=60.0)
    plans.fresh_s = 0.0
    by = {"evaluator": "deep-mc"}
    first = plans.load("doudizhu-mcts", by)
    assert plans.load("doudizhu-mcts", by) is first
    stands["deep-mc", "champion"] = other
    assert plans.load("doudizhu-mcts", by).resolved.pinned != first.resolved.pinned


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("last-is-bets", "last-is-bets"),
        ("deep-mc:level-99", "level-99"),
        ("rule-doudizhu", "rule-doudizhu is not an evaluator"),
        ("believer", "believer is not an evaluator"),
        ("exec:", "names no command"),
    ],
)
def test_what_is_no_evaluator_is_refused_with_the_options_name(plugins: Plugins, address: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        plugins.resolve("believer", {"evaluator": address})
    assert (refused.value.key, refused.value.value) == ("options.evaluator", address)
    assert refused.value.advice
