"""The JSON text that native games print is the JSON that they give as Python objects."""

import json
import random

import pytest

from bothost import rules


@pytest.mark.parametrize("name", rules.games(plugins=False))
def test_text_of_logged_views_equals_their_json(name):
    game = rules.game(name)
    if not hasattr(game, "view_json"):
        pytest.skip("a game written in Python")
    rng = random.Random(4)
    for seed in range(3):
        state = game.new_state(seed)
        while not state.terminal:
            seat = rng.choice(state.to_act)
            for watcher in range(game.num_seats):
                view = state.view(watcher)
                assert json.loads(game.view_json(view.to_bytes())) == view.to_json()
            state.apply(seat, int(rng.choice(state.legal(seat).tolist())))
        for watcher in range(game.num_seats):
            view = state.view(watcher)
            assert json.loads(game.view_json(view.to_bytes())) == view.to_json()
    for damaged in (b"", b"\xff" * 20):
        with pytest.raises(ValueError):
            game.view_json(damaged)
