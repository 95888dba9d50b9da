"""The rule player of mahjong: it wins, it takes every win, and it never claims a false one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from bothost import rules
from bothost.arena.lineup import lineups
from bothost.arena.match import play_deals
from bothost.rules import View, mahjong
from bothost.strategy import Budget, NoOptions, Strategy, Table
from bothost_baselines.mahjong import RuleMahjong, SimpleMahjong
from bothost_baselines.random import Random


@pytest.mark.parametrize("kind", [RuleMahjong, SimpleMahjong])
def test_it_beats_random_play(kind: type[Strategy]) -> None:
    game = rules.game("mahjong")
    seats = lineups(game, 2)
    pair = [kind(NoOptions()), Random(NoOptions())]
    lead = 0.0
    for result in play_deals(game, pair, seats, range(6), seed=1):
        for hand, seat in zip(result.hands, seats, strict=True):
            lead += sum(r for r, who in zip(hand.returns, seat, strict=True) if who == 0)
    assert lead > 0


@pytest.mark.parametrize("preset", rules.presets("mahjong"))
@pytest.mark.parametrize(
    "choose", [mahjong.rule_choice, partial(mahjong.rule_choice, simple=True), mahjong.acceptance_weighted_choice]
)
def test_four_of_them_finish_most_hands_and_take_every_win(
    preset: str, choose: Callable[[View], tuple[int, str, float]]
) -> None:
    game = rules.game("mahjong", preset=preset)
    won = 0
    for seed in range(12):
        state = game.new_state(seed)
        while not state.terminal:
            seat = state.to_act[0]
            view = state.view(seat)
            action, reason, _ = choose(view)
            assert action in view.legal()
            assert (reason == "win") == (action == game.parse("hu"))
            if not game.rules["false_win"]:
                assert (reason == "win") == (game.parse("hu") in view.legal())
            state.apply(seat, action)
        assert not state.events(0)[-2].startswith("false-hu")
        won += any(state.returns)
    assert won >= 8


def test_its_decisions_give_reasons() -> None:
    game = rules.game("mahjong")
    view = game.new_state(1).view(0)
    player = RuleMahjong(NoOptions()).player(Table(lobby="l", table="t", game=game, seat=0, seed=1))
    decision = player.decide(view, view.legal(), Budget(deadline=float("inf")))
    assert decision.action in view.legal() and decision.stats is not None and decision.stats["reason"]
    quick = player.quick(view, view.legal())
    assert quick is not None and quick.action == decision.action


def test_a_view_of_another_game_is_refused() -> None:
    with pytest.raises(TypeError, match="mahjong"):
        mahjong.rule_choice(rules.game("othello").new_state(1).view(0))
    with pytest.raises(TypeError, match="mahjong"):
        mahjong.acceptance_weighted_choice(rules.game("othello").new_state(1).view(0))
    state = rules.game("mahjong").new_state(1)
    with pytest.raises(ValueError, match="not asked"):
        mahjong.rule_choice(state.view(1))
    with pytest.raises(ValueError, match="not asked"):
        mahjong.acceptance_weighted_choice(state.view(1))


def test_what_a_lobby_refused_is_not_said_again() -> None:
    """A lobby may take a move for illegal that our rules allow: it is then missing among the legal ones."""
    game = rules.game("mahjong")
    state = game.new_state(3)
    (seat,) = state.to_act
    view, legal = state.view(seat), state.legal(seat)
    player = RuleMahjong(NoOptions()).player(Table(lobby="l", table="t", game=game, seat=seat, seed=1))
    refused = player.decide(view, legal, Budget(deadline=float("inf"))).action
    rest = legal[legal != refused]
    assert player.decide(view, rest, Budget(deadline=float("inf"))).action in rest
