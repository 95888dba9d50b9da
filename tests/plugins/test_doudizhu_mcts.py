"""doudizhu-mcts: what it plays, when it stops, and that its search can be done again."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from stopwatch import fastest

import bothost_doudizhu_mcts
from bothost import Budget, Decision, Evaluator, Model, ModelError, Player, Table, rules
from bothost.errors import ConfigError
from bothost.plugins import Plugins
from bothost.plugins.weights import model_sha256
from bothost.rules import ActionArray, FloatArray, State, View, doudizhu
from bothost.training.publish import write_version
from bothost_doudizhu_mcts import evaluated, timing
from bothost_doudizhu_mcts.network import Network

PLUGINS = Plugins.load()
GAME = rules.game("doudizhu")
NO_CLOCK = Budget(deadline=math.inf)


def player(seat: int = 0, game: rules.Game = GAME, **options: object) -> Player:
    strategy = PLUGINS.resolve("doudizhu-mcts", options).make()
    return strategy.player(Table(lobby="test", table="1", game=game, seat=seat, seed=7))


def decide(view: View, budget: Budget = NO_CLOCK, **options: object) -> Decision:
    return player(view.seat, view.game, **options).decide(view, view.legal(), budget)


def middle_of_a_hand(seed: int, plies: int) -> State:
    state = GAME.new_state(seed)
    while plies > 0 or state.terminal or len(state.legal(state.to_act[0])) < 2:
        if state.terminal:
            seed += 1000
            state = GAME.new_state(seed)
        state.apply(state.to_act[0], doudizhu.rule_choice(state.view(state.to_act[0]))[0])
        plies -= 1
    return state


def test_equal_seeds_and_iterations_give_equal_searches() -> None:
    state = middle_of_a_hand(3, 8)
    view = state.view(state.to_act[0])
    one, other = decide(view, iterations=300), decide(view, iterations=300)
    assert one.policy == other.policy
    assert one.values == other.values
    assert one.stats is not None
    assert 0 < one.stats["iterations"] <= 300


def test_without_a_clock_short_searches_weigh_few_deals() -> None:
    state = middle_of_a_hand(3, 8)
    view = state.view(state.to_act[0])
    for iterations, belief, deals in ((100, 1000, 100), (100, 20, 20), (100, 0, 0)):
        stats = decide(view, iterations=iterations, belief=belief).stats
        assert stats is not None and stats["deals"] == deals


def test_the_statistics_tell_what_a_person_wants_to_know() -> None:
    state = GAME.new_state(5)
    decision = decide(state.view(0), iterations=200)
    assert decision.stats is not None
    assert {"iterations", "nodes", "seed", "ms", "candidates", "reused_visits"} <= set(decision.stats)
    best = next(iter(decision.stats["candidates"]))
    assert GAME.parse(best) == decision.action
    assert decision.policy is not None
    assert sum(decision.policy) == pytest.approx(1.0)
    assert int(np.argmax(decision.policy)) == state.legal(0).tolist().index(decision.action)


def test_forced_moves_and_last_plays_take_no_thought() -> None:
    decision = None
    for seed in range(50):
        state = middle_of_a_hand(seed, 12)
        while not state.terminal:
            view = state.view(state.to_act[0])
            if len(view.legal()) == 1:
                decision = decide(view, iterations=10**6)
                break
            state.apply(view.seat, doudizhu.rule_choice(view)[0])
        if decision is not None:
            break
    assert decision is not None
    assert decision.stats == {"reason": "only move", "iterations": 0}


@pytest.mark.parametrize("ms", [5.0, 60.0])
def test_it_stops_before_its_deadline(ms: float) -> None:
    state = GAME.new_state(11)
    thinker = player()
    most_s = ms / 1000.0 + 0.002

    def took() -> float:
        began = time.monotonic()
        thinker.decide(state.view(0), state.legal(0), Budget(deadline=began + ms / 1000.0))
        return time.monotonic() - began

    assert fastest(took, most_s) < most_s


def test_the_tree_goes_along_with_the_hand() -> None:
    state = GAME.new_state(2)
    thinker = player(iterations=1500)
    reused = []
    while not state.terminal:
        seat = state.to_act[0]
        view = state.view(seat)
        if seat == 0:
            decision = thinker.decide(view, view.legal(), NO_CLOCK)
            reused.append((decision.stats or {}).get("reused_visits", 0))
            state.apply(seat, decision.action)
        else:
            state.apply(seat, doudizhu.rule_choice(view)[0])
    assert any(reused)


def test_pondering_searches_on_while_others_move() -> None:
    state = GAME.new_state(2)
    thinker = player(iterations=300, ponder=True)
    pondered, pause_s = 0, 0.05
    while not state.terminal and not pondered:
        seat = state.to_act[0]
        view = state.view(seat)
        if seat == 0:
            decision = thinker.decide(view, view.legal(), NO_CLOCK)
            pondered = (decision.stats or {}).get("pondered", 0)
            state.apply(seat, decision.action)
            time.sleep(pause_s)
            pause_s *= 2  # for a busy machine
        else:
            state.apply(seat, doudizhu.rule_choice(view)[0])
    thinker.close()
    assert pondered > 0


def test_searches_that_a_clock_cut_short_are_replayed_from_their_statistics() -> None:
    state = GAME.new_state(2)
    thinker, again = player(ponder=True), player()
    searched = decisions = 0
    while not state.terminal and decisions < 2:
        seat = state.to_act[0]
        view = state.view(seat)
        if seat != 0:
            state.apply(seat, doudizhu.rule_choice(view)[0])
            continue
        decisions += 1
        seconds = 0.03 if searched else 0.3  # on a busy machine 30 ms may be over before the first iteration
        decision = thinker.decide(view, view.legal(), Budget(deadline=time.monotonic() + seconds))
        assert decision.stats is not None
        replayed = again.replay(view, view.legal(), decision.stats)
        assert replayed is not None
        assert replayed.action == decision.action
        assert replayed.policy == decision.policy
        assert replayed.values == decision.values
        searched += decision.stats["iterations"]
        state.apply(seat, decision.action)
    thinker.close()
    assert searched > 0
    assert again.replay(view, view.legal(), {"reason": "told by somebody else"}) is None


class Fond(Evaluator):
    """Values one action above all others."""

    name = "fond"
    version = "1"
    games = ("doudizhu",)

    def __init__(self, action: int) -> None:
        super().__init__(None)
        self.action, self.asked = action, 0

    def player(self, table: Table) -> Player:
        raise NotImplementedError

    def action_values(self, views: Sequence[View], legal: Sequence[ActionArray]) -> list[FloatArray]:
        self.asked += len(views)
        return [np.where(actions == self.action, 0.9, -0.9).astype(np.float32) for actions in legal]


class Slow(Fond):
    """Takes 50 s for an inference, by a clock that stands still otherwise: how busy the machine is does not count."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def action_values(self, views: Sequence[View], legal: Sequence[ActionArray]) -> list[FloatArray]:
        self.now += 50.0
        return super().action_values(views, legal)


def test_a_search_that_came_no_farther_than_its_root_is_replayed_and_so_is_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = Slow(0)
    monkeypatch.setattr(timing, "time", slow)
    monkeypatch.setattr(evaluated, "time", slow)

    def made(evaluator: Evaluator) -> Player:
        strategy = PLUGINS.resolve("doudizhu-mcts", {"evaluator": "", "max_ms": 3_600_000.0}).make()
        strategy.use_evaluator("evaluator", evaluator)
        return strategy.player(Table(lobby="test", table="1", game=GAME, seat=0, seed=7))

    state = GAME.new_state(2)
    thinker, again = made(slow), made(Fond(0))
    for seconds in (90.0, 1000.0):
        while state.to_act[0] != 0 or len(state.legal(0)) == 1:
            state.apply(state.to_act[0], doudizhu.rule_choice(state.view(state.to_act[0]))[0])
        view = state.view(0)
        decision = thinker.decide(view, view.legal(), Budget(deadline=time.monotonic() + seconds))
        assert decision.stats is not None
        if seconds < 1000.0:
            assert decision.stats["reason"] == "no time to search" and decision.stats["iterations"] > 0
        replayed = again.replay(view, view.legal(), decision.stats)
        assert replayed is not None
        assert replayed.policy == decision.policy and replayed.values == decision.values
        state.apply(0, decision.action)
    assert decision.policy is not None


def fond_of(action: int, game: rules.Game = GAME, **options: object) -> tuple[Fond, Player]:
    strategy = PLUGINS.resolve("doudizhu-mcts", {**options, "evaluator": ""}).make()
    evaluator = Fond(action)
    strategy.use_evaluator("evaluator", evaluator)
    return evaluator, strategy.player(Table(lobby="test", table="1", game=game, seat=0, seed=7))


def test_the_evaluators_favourite_is_played_where_its_word_counts_for_much() -> None:
    view = GAME.new_state(5).view(0)
    for action in view.legal()[[0, -1]].tolist():
        evaluator, thinker = fond_of(action, iterations=200, prior_visits=1000.0)
        assert thinker.decide(view, view.legal(), NO_CLOCK).action == action
        assert evaluator.asked > 1


@pytest.mark.parametrize("options", [{"threads": 2}, {"utility": "points"}])
def test_an_evaluator_is_not_asked_where_something_else_guides_the_search(options: dict[str, object]) -> None:
    view = GAME.new_state(5).view(0)
    evaluator, thinker = fond_of(int(view.legal()[0]), iterations=100, **options)
    assert "evaluator" not in (thinker.decide(view, view.legal(), NO_CLOCK).stats or {})
    assert evaluator.asked == 0


def test_nor_about_bids() -> None:
    game = rules.game("doudizhu", preset="bidding")
    view = game.new_state(1).view(0)
    evaluator, thinker = fond_of(int(view.legal()[0]), game, iterations=100)
    thinker.decide(view, view.legal(), NO_CLOCK)
    assert evaluator.asked == 0


def test_statistics_name_the_model_of_the_evaluator() -> None:
    view = GAME.new_state(5).view(0)
    stats = decide(view, iterations=100, evaluator="deep-mc:level-2").stats
    model = PLUGINS.resolve("deep-mc:level-2").model
    assert stats is not None and model is not None
    assert stats["evaluator"] == f"deep-mc:{model.version} {model.sha256}"


@pytest.mark.parametrize(("hand", "bid"), [("RB2222AAAAKKKQQQJ", "bid3"), ("334456677899TTJQK", "bid0")])
def test_it_bids_on_strong_hands_and_not_on_weak_ones(hand: str, bid: str) -> None:
    game = rules.game("doudizhu", preset="bidding")
    rest = Counter("3456789TJQKA2" * 4 + "BR") - Counter(hand)
    cards = "".join(sorted(rest.elements(), key=doudizhu.RANKS.index))
    hands = [hand, cards[0:34:2], cards[1:34:2]]
    view = game.state_from_deal({"hands": hands, "bottom": cards[34:], "first": 0}).view(0)
    assert view.notation(decide(view, iterations=4000).action) == bid


def test_options_out_of_range_are_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"noise: doudizhu-mcts: expected a number <= 1\.0, got 2\.0"):
        player(noise=2.0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A network that has learnt nothing."""
    import torch

    from bothost_doudizhu_mcts.model import Networks, graphs

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("weights")
    files = write_version(folder, Networks().in_16_bits(), graphs(), 1).files
    return Model("doudizhu-mcts", "v1", model_sha256(files), str(folder), files, 1)


def with_network(model: Model, **options: object) -> Player:
    resolved = PLUGINS.resolve("doudizhu-mcts", options)
    strategy = resolved.strategy(resolved.options, model)
    return strategy.player(Table(lobby="test", table="1", game=GAME, seat=0, seed=7))


def test_the_network_alone_takes_the_move_of_its_best_value(model: Model) -> None:
    view = GAME.new_state(5).view(0)
    decision = with_network(model, cnn="only").decide(view, view.legal(), Budget(deadline=0.0))
    assert decision.values is not None
    assert decision.action == int(view.legal()[int(np.argmax(decision.values))])
    assert (decision.model_sha256, decision.encoder_version) == (model.sha256, 1)


def test_the_networks_values_are_the_trees_priors(model: Model) -> None:
    """Where they count for much, the search ends with them."""
    view = GAME.new_state(5).view(0)
    thinker = with_network(model, cnn="on", iterations=400, prior_visits=1e5)
    much = thinker.decide(view, view.legal(), NO_CLOCK)
    network = with_network(model, cnn="only").decide(view, view.legal(), NO_CLOCK)
    assert much.value is not None and network.values is not None
    assert much.value == pytest.approx(network.values[view.legal().tolist().index(much.action)], abs=0.02)
    assert much.model_sha256 == model.sha256


def test_the_networks_values_are_the_leaves_values(model: Model) -> None:
    """A network that has learnt nothing values all alike, near 0; playouts know who wins."""
    hands = ["222AAAA" + "3456789TJQ", "3456789TJQK345678", "3456789TJQK9TJQKK"]
    view = GAME.state_from_deal({"hands": hands, "bottom": "BR2", "first": 0}).view(0)
    values = {
        cnn: with_network(model, cnn=cnn, iterations=200, prior_visits=0.0).decide(view, view.legal(), NO_CLOCK).value
        for cnn in ("on", "off")
    }
    assert values["off"] > 0.9 > 0.5 > abs(values["on"])


@pytest.fixture(scope="module")
def shipped() -> Model:
    model = PLUGINS.resolve("doudizhu-mcts").model
    assert model is not None
    return model


def test_the_shipped_network_plays_in_every_mode(shipped: Model) -> None:
    state = middle_of_a_hand(3, 6)
    view = state.view(state.to_act[0])
    played = {mode: decide(view, iterations=200, cnn=mode) for mode in ("on", "off", "only")}
    assert played["on"].model_sha256 == played["only"].model_sha256 == shipped.sha256
    assert played["off"].model_sha256 is None
    assert all(decision.action in view.legal() for decision in played.values())
    assert played["on"].values != played["off"].values


def test_the_shipped_network_loses_little_by_its_teachers_values(shipped: Model) -> None:
    """In hands of rule players, what deep-mc would lose by playing the network's best move; a random move loses 0.1."""
    network, teacher = Network(shipped), PLUGINS.resolve("deep-mc").make()
    assert isinstance(teacher, Evaluator)
    views = []
    for seed in range(20):
        state = GAME.new_state(seed)
        while not state.terminal:
            view = state.view(state.to_act[0])
            if len(view.legal()) > 1:
                views.append(view)
            state.apply(view.seat, doudizhu.rule_choice(view)[0])
    legal = [view.legal() for view in views]
    taught, own = teacher.action_values(views, legal), network.action_values(views, legal)
    regret = np.mean([value.max() - value[mine.argmax()] for value, mine in zip(taught, own, strict=True)])
    drawn = np.mean([value.max() - value.mean() for value in taught])
    assert regret < 0.03 < drawn / 3, (regret, drawn)


def test_the_shipped_networks_lineage_says_how_it_was_made() -> None:
    folder = Path(bothost_doudizhu_mcts.__file__).parent / "weights"
    lineage = json.loads((folder / "lineage.json").read_text())
    assert lineage["command"].startswith("bothost train doudizhu-mcts fit ")
    (records,) = lineage["records_made_by"]
    assert "evaluator=doudizhu-mcts" in records["command"] and records["records"] == lineage["records"] > 80_000
    players = lineage["start_lineage"]
    assert players["command"].startswith("bothost train doudizhu-mcts players ") and players["top1"] > 0.7
    distilled = players["start_lineage"]
    assert distilled["command"].startswith("bothost train doudizhu-mcts distil ")
    assert distilled["teacher"].startswith("deep-mc") and distilled["positions"] > 1e6 and distilled["regret"] < 0.015


def test_the_network_alone_needs_a_network() -> None:
    with pytest.raises(ModelError, match="only needs a network"):
        resolved = PLUGINS.resolve("doudizhu-mcts", {"cnn": "only"})
        resolved.strategy(resolved.options, None)


@pytest.mark.long
def test_headline_against_the_rhcp_player(tmp_path: Path) -> None:
    """1,000 duplicate deals, 200 ms a move: some hours on one core."""
    from bothost.arena.run import run_match
    from bothost.arena.spec import MatchSpec
    from bothost.cli.arena import build

    spec = MatchSpec(
        game="doudizhu",
        rules={},
        contestants=("doudizhu-mcts", "rhcp-doudizhu"),
        options=({}, {}),
        deals=1000,
        ms=200.0,
    )
    figures = run_match(spec, build, journal=tmp_path / "journal.jsonl")
    assert figures["landlord_wp"] >= 0.66
    assert figures["peasant_wp"] >= 0.58
    assert figures["wp"] >= 0.62
    assert not any(figures["illegal"].values())
