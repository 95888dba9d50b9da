"""mahjong-ppo's search at the table: what replaces the network's choice, in which time, and the same in a replay."""

import time

import msgspec
import numpy as np
import pytest

from bothost import Budget, Table, rules
from bothost.plugins import weights
from bothost_mahjong_ppo.decide import MahjongPpo, PlayOptions
from bothost_mahjong_ppo.search import Search

GAME = rules.game("mahjong")
FOREVER = Budget(deadline=float("inf"))
SEARCH = PlayOptions(deals=6, draws=1, least_probability=0.0001, errors=0.0)


@pytest.fixture(scope="module")
def strategy():
    return MahjongPpo(SEARCH, weights.find(MahjongPpo, "champion"))


def player(strategy, game=GAME):
    return strategy.player(Table(lobby="l", table="t", game=game, seat=0, seed=7))


def asked(count):
    """Views of one seat's own turns in a hand of rule players."""
    state = GAME.new_state(11)
    while count:
        seat = state.to_act[0]
        view, legal = state.view(seat), state.legal(seat)
        if len(legal) > 3:
            yield view, legal
            count -= 1
        state.apply(seat, rules.mahjong.rule_choice(view)[0])


def test_a_searched_decision_repeats_and_says_what_it_found(strategy):
    changed = 0
    for view, legal in asked(8):
        made, alone = player(strategy).decide(view, legal, FOREVER), player(strategy).quick(view, legal)
        assert made.action in legal and "values" not in (alone.stats or {})
        if made.stats is None:
            assert made.action == alone.action
            continue
        changed += made.action != alone.action
        assert made.action == player(strategy).replay(view, legal, made.stats).action
        values = made.stats["values"]
        assert 2 <= len(values) <= 4
        assert values[view.notation(made.action)] >= values[view.notation(alone.action)]
    assert changed, "at no standard error some choices change"
    assert player(strategy).replay(view, legal, {}).action == alone.action


def test_without_time_for_the_whole_search_the_network_decides(strategy):
    for view, legal in asked(3):
        hurried = player(strategy).decide(view, legal, Budget(deadline=time.monotonic() + 0.002))
        assert hurried.stats is None
        assert hurried.action == player(strategy).quick(view, legal).action


def test_hands_with_flowers_are_not_searched(strategy):
    game = rules.game("mahjong", flowers=True)
    view = game.new_state(3).view(game.new_state(3).to_act[0])
    assert player(strategy, game).decide(view, view.legal(), FOREVER).stats is None


def test_only_a_sure_gain_replaces_the_first_choice():
    luck = np.random.default_rng(0).normal(0.0, 20.0, (40, 1))
    points = luck + np.array([0.0, 3.0, -1.0]) + np.random.default_rng(1).normal(0.0, 1.0, (40, 3))
    assert Search(errors=2.0).best(points) == 1, "the deals' own luck does not count"
    noise = np.random.default_rng(2).normal(0.0, 20.0, (40, 3)) + np.array([0.0, 3.0, -1.0])
    assert Search(errors=2.0).best(noise) == 0
    assert Search().best(points[:1]) == 0, "one deal is no evidence"


def test_what_is_searched_are_the_likely_actions():
    policy = np.array([0.01, 0.5, 0.0, 0.3, 0.1, 0.05, 0.04])
    assert Search(deals=1).places(policy).tolist() == [1, 3, 4, 5]
    assert Search(deals=1, least_probability=0.4).places(policy).tolist() == []
    assert Search().places(policy).tolist() == []


@pytest.mark.parametrize("wrong", [{"deals": -1}, {"draws": 0}, {"least_probability": 0.5}, {"errors": -0.1}])
def test_options_out_of_range_are_refused(wrong):
    with pytest.raises(msgspec.ValidationError, match=next(iter(wrong))):
        msgspec.convert(wrong, PlayOptions)
