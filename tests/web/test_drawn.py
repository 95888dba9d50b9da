"""What a board draws of a view."""

import random

import pytest

from bothost import rules
from bothost.web.drawn import drawn
from bothost.web.viewers import last_move, public_view


def ended(game, seed):
    """A hand whose players win where they may, and else choose at random."""
    state, rng = game.new_state(seed), random.Random(seed)
    while not state.terminal:
        seat = state.to_act[0]
        legal = state.legal(seat).tolist()
        wins = [action for action in legal if game.notation(action) == "hu"]
        assert "win" not in drawn(state.view(seat))
        state.apply(seat, wins[0] if wins else rng.choice(legal))
    return state


def test_the_end_of_a_hand_of_mahjong_names_winner_tile_and_fans():
    game, seen = rules.game("mahjong", preset="false-win"), set()
    for seed in range(400):
        state = ended(game, seed)
        shown = [drawn(state.view(seat)) for seat in range(4)]
        assert all("events" not in view for view in shown)
        win = shown[0]["win"]
        assert all(view["win"] == win for view in shown)
        if win is None:
            assert not any(state.returns)
            seen.add("no winner")
            continue
        score = state.returns[win["seat"]]
        assert score == (max if win["valid"] else min)(state.returns)
        points = sum(fan["points"] * fan["times"] for fan in win["fans"])
        if win["valid"]:
            assert score == (3 * (8 + points) if win["from"] == win["seat"] else 24 + points)
            seen.add("win")
        else:
            assert win["fans"] == []
            seen.add("false win")
        if len(seen) == 3:
            return
    raise AssertionError(seen)


def test_other_games_are_drawn_as_they_are():
    view = rules.game("othello").new_state(1).view(0)
    assert drawn(view) == {key: value for key, value in view.to_json().items() if key != "events"}


def test_mahjong_shows_what_all_saw_since_the_seat_discarded():
    game = rules.game("mahjong")
    for seed in range(20):
        state, rng, moves, events = game.new_state(seed), random.Random(seed), [], 0
        while not state.terminal:
            seat = state.to_act[0]
            notation = game.notation(action := rng.choice(state.legal(seat).tolist()))
            state.apply(seat, action)
            for event in state.events(0, events):
                events += 1
                kind, mover, *tile = event.split(" ")
                if kind in ("play", "chi", "peng", "gang", "bugang"):
                    moves.append((int(mover), f"{kind}:{tile[0]}"))
                elif kind == "angang":  # which tile, its own seat alone knows
                    moves.append((int(mover), kind))
            for view in map(state.view, range(4)):
                own = [i for i, (mover, move) in enumerate(moves) if mover == view.seat and move.startswith("play:")]
                assert drawn(view)["recent"] == moves[own[-1] if own else 0 :], notation
                public = public_view("mahjong", view.to_json(), {})
                assert public["recent"] == drawn(view)["recent"]


@pytest.mark.parametrize(("name", "options"), [("doudizhu", {}), ("othello", {"random_plies": 3})])
def test_the_last_move_names_who_made_it(name, options):
    game = rules.game(name, **options)
    state, rng = game.new_state(3), random.Random(3)
    while not state.terminal:
        seat = state.to_act[0]
        action = rng.choice(state.legal(seat).tolist())
        state.apply(seat, action)
        public = public_view(name, state.view(0).to_json(), {})
        assert last_move(name, public) == {"seat": seat, "notation": game.notation(action)}
