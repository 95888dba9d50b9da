"""The rule player of Othello: corners, a perfect end, bounded work, and that it beats random play."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothost import rules
from bothost.arena.lineup import lineups
from bothost.arena.match import play_deals
from bothost.rules.othello import choose
from bothost.strategy import Budget, NoOptions, Table
from bothost_baselines.othello import Options, RuleOthello
from bothost_baselines.random import Random


def test_it_beats_random_play() -> None:
    game = rules.game("othello", preset="random8")
    seats = lineups(game, 2)
    pair = [RuleOthello(Options()), Random(NoOptions())]
    leads = [
        hand.returns[seat.index(0)]
        for result in play_deals(game, pair, seats, range(20), seed=1)
        for hand, seat in zip(result.hands, seats, strict=True)
    ]
    assert sum(lead > 0 for lead in leads) > 0.95 * len(leads)


def test_looking_further_is_stronger() -> None:
    game = rules.game("othello", preset="random8")
    seats = lineups(game, 2)
    pair = [RuleOthello(Options()), RuleOthello(Options(depth=1, solve_from=0))]
    leads = [
        hand.returns[seat.index(0)]
        for result in play_deals(game, pair, seats, range(10), seed=2)
        for hand, seat in zip(result.hands, seats, strict=True)
    ]
    assert sum(lead > 0 for lead in leads) > 0.7 * len(leads)


def late(seed: int, empty: int) -> rules.State | None:
    """A position of random play with this many empty squares."""
    rng = random.Random(seed)
    state = rules.game("othello", preset="discs").new_state(seed)
    while not state.terminal:
        seat = state.to_act[0]
        if state.view(seat).to_json()["board"].count("-") <= empty:
            return state
        state.apply(seat, int(rng.choice(state.legal(seat))))
    return None


def minimax(state: rules.State, seat: int) -> float:
    """Discs ahead for ``seat`` under best play, by trying everything."""
    if state.terminal:
        return state.returns[seat]
    mover = state.to_act[0]
    values = []
    for action in state.legal(mover):
        after = state.clone()
        after.apply(mover, int(action))
        values.append(minimax(after, seat))
    return max(values) if mover == seat else min(values)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), empty=st.integers(1, 6))
def test_the_end_is_solved_exactly(seed: int, empty: int) -> None:
    state = late(seed, empty)
    if state is None:
        return
    seat = state.to_act[0]
    found = choose(state.view(seat))
    if found.action == state.game.parse("pass"):
        return
    assert found.exact
    assert found.score == minimax(state, seat)
    after = state.clone()
    after.apply(seat, found.action)
    assert minimax(after, seat) == found.score


def test_the_value_of_a_solved_hand_is_its_return() -> None:
    state = late(3, 5)
    assert state is not None
    seat = state.to_act[0]
    for preset in ("standard", "discs"):
        game = rules.game("othello", preset=preset)
        view = game.view_from_snapshot(state.view(seat).to_json())
        player = RuleOthello(Options()).player(Table(lobby="test", table="t", game=game, seat=seat, seed=0))
        decision = player.decide(view, view.legal(), Budget(deadline=math.inf))
        exact = minimax(state, seat)
        assert decision.value == (exact if preset == "discs" else math.copysign(1.0, exact) if exact else 0.0)
        assert decision.stats is not None and decision.stats["exact"]


def test_work_is_bounded_and_repeatable() -> None:
    view = rules.game("othello").new_state(0).view(0)
    found = choose(view, depth=30, nodes=50_000)
    assert 50_000 <= found.nodes < 50_100
    assert found == choose(view, depth=30, nodes=50_000)
    assert view.is_legal(choose(view, nodes=1).action)


def test_it_refuses_what_it_cannot_play() -> None:
    game = rules.game("othello")
    with pytest.raises(ValueError, match="not asked"):
        choose(game.new_state(0).view(1))
    with pytest.raises(TypeError, match="othello"):
        choose(rules.game("pairing").new_state(0).view(0))
    with pytest.raises(ValueError, match="depth"):
        choose(game.new_state(0).view(0), depth=0)
