"""What luck gave: zero on average, exactly so over all orders of a wall, whoever plays."""

import sys
import threading
from itertools import permutations

import numpy as np
import pytest

from bothost import rules
from bothost.rules import mahjong

GAME = rules.game("mahjong")
SEED = 148
"""From here on, the first hand that reaches the end of the wall has players that wait."""


def random_action(state, rng):
    return int(rng.choice(state.legal(state.to_act[0])))


def rule_action(state):
    return mahjong.rule_choice(state.view(state.to_act[0]))[0]


def finish(state, choose):
    while not state.terminal:
        state.apply(state.to_act[0], choose(state))
    return state


def drawn(state):
    """Tiles drawn by each seat since the deal."""
    events = [event.split() for event in state.events(0, 0)]
    return [sum(event[:2] == ["draw", str(seat)] for event in events) for seat in range(4)]


def near_the_end(seed):
    """A hand of rule players before and after the third last draw; None if it ends earlier."""
    state = GAME.new_state(seed)
    while not state.terminal:
        before = state.clone()
        state.apply(state.to_act[0], rule_action(state))
        if sum(drawn(state)) == 84 - 2:
            return before, state
    return None


def test_over_all_orders_of_the_last_three_tiles_luck_is_zero_exactly():
    before, state = next(found for found in map(near_the_end, range(SEED, SEED + 200)) if found)
    wall, draws, drawer = state.deal["wall"], drawn(state), state.to_act[0]
    # A seat draws its 34 tiles from the end of its share: 13 for the deal, then one by one.
    places = [34 * seat + i for seat in range(4) for i in range(21 - draws[seat])]
    places.append(34 * drawer + 21 - draws[drawer])
    tiles = [wall[place] for place in places]
    assert len(tiles) == 3
    lucks = []
    for order in permutations(tiles):
        other = list(wall)
        for place, tile in zip(places, order, strict=True):
            other[place] = tile
        end = finish(GAME.replay({**state.deal, "wall": other}, state.actions), rule_action)
        lucks.append(mahjong.luck(end))
    assert np.ptp(lucks, axis=0).max() > 0.01
    np.testing.assert_allclose(np.mean(lucks, axis=0), mahjong.luck(before), atol=1e-6)


def test_luck_sums_to_zero_and_depends_on_the_hand_alone():
    state = finish(GAME.new_state(5), rule_action)
    luck = mahjong.luck(state)
    assert luck.sum() == pytest.approx(0, abs=1e-6)
    assert np.abs(luck).max() > 1
    again = GAME.replay(state.deal, state.actions)
    np.testing.assert_array_equal(mahjong.luck(again), luck)


def test_luck_is_zero_on_average_whoever_plays():
    rng = np.random.default_rng(1)
    lucks = [mahjong.luck(finish(GAME.new_state(seed), lambda state: random_action(state, rng))) for seed in range(10)]
    error = np.std(lucks, axis=0) / np.sqrt(len(lucks))
    assert np.all(np.abs(np.mean(lucks, axis=0)) < 4.5 * error)


@pytest.mark.long
def test_plain_and_adjusted_scores_agree_on_many_hands_and_adjusted_ones_vary_less():
    states = [finish(GAME.new_state(seed), rule_action) for seed in range(1500)]
    scores, lucks = np.array([state.returns for state in states]), np.array([mahjong.luck(state) for state in states])
    assert np.all(np.abs(lucks.mean(0)) < 4 * lucks.std(0) / np.sqrt(len(lucks)))
    assert scores.var() > 3 * (scores - lucks).var()


def test_states_of_other_games_and_of_unknown_walls_are_refused():
    with pytest.raises(TypeError, match="mahjong"):
        mahjong.luck(rules.game("othello").new_state(1))
    with pytest.raises(ValueError, match="flowers"):
        mahjong.luck(rules.game("mahjong", flowers=True).new_state(1))


def test_luck_is_that_of_the_hand_at_the_call_though_another_thread_plays_on():
    rng = np.random.default_rng(2)
    state = GAME.new_state(2)
    for _ in range(60):
        state.apply(state.to_act[0], random_action(state, rng))
    expected, go = mahjong.luck(state.clone()), threading.Event()

    def play_on():
        go.wait()
        finish(state, lambda state: random_action(state, rng))

    other = threading.Thread(target=play_on)
    other.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60.0)  # the other thread runs while luck has released the GIL, and not before
    try:
        go.set()
        found = mahjong.luck(state)
    finally:
        sys.setswitchinterval(interval)
        other.join()
    assert state.terminal
    np.testing.assert_array_equal(found, expected)
