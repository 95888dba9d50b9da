"""From one seat's events, every seat's decisions."""

import random

import pytest

from bothost import rules
from bothost.store.rebuild import moves_of


@pytest.mark.parametrize("name", rules.games(plugins=False))
@pytest.mark.parametrize("watcher", [0, 1])
def test_views_legal_actions_and_moves_of_all_seats_are_those_of_the_hand(name, watcher):
    game = rules.game(name)
    for seed in range(3):
        rng = random.Random(seed)
        state = game.new_state(seed)
        expected = []
        while not state.terminal:
            seat = rng.choice(state.to_act)
            legal = state.legal(seat)
            action = int(rng.choice(legal.tolist()))
            expected.append((seat, state.view(seat).to_bytes(), legal.tolist(), action))
            state.apply(seat, action)
        found = list(moves_of(game, watcher, state.events(watcher)))
        assert [(m.seat, m.view.to_bytes(), m.legal.tolist(), m.action) for m in found] == expected


def test_a_hand_that_was_not_revealed_gives_nothing():
    game = rules.game("doudizhu")
    assert list(moves_of(game, 0, game.new_state(1).events(0))) == []
    with pytest.raises(ValueError):
        list(moves_of(game, 0, ["nonsense"]))
