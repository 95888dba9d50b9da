"""The four-colour pairing game: against its slow oracle, its options, and move by move."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from pairing_oracle import CARDS, Oracle
from pairing_positions import RULE_SETS, legal_words, play, position

from bothost import rules


def lock_step(game: rules.Game, seed: int) -> rules.State:
    """Play one random hand natively and in the oracle; they must agree after every action."""
    rng = random.Random(seed)
    state = game.new_state(seed)
    oracle = Oracle(game.rules, state.deal)
    seen = [1, 1]
    while True:
        assert state.terminal == (oracle.mover is None)
        for seat in range(2):
            events = state.events(seat, seen[seat])
            told = oracle.log[seat][seen[seat] - 1 :]
            assert [event if not event.startswith("reveal") else "reveal" for event in events] == told
            seen[seat] += len(events)
            shown = state.view(seat).to_json()
            assert shown["scores"] == [oracle.score(0), oracle.score(1)]
            assert shown["pool"] == sorted(oracle.pool, key=CARDS.index)
            assert shown["hands"][seat] == sorted(oracle.hands[seat], key=CARDS.index)
            assert len(shown["hands"][1 - seat]) == len(oracle.hands[1 - seat])
            assert len(shown["deck"]) == len(oracle.deck)
        if oracle.mover is None:
            lead = oracle.score(0) - oracle.score(1)
            assert state.returns == (lead, -lead)
            return state
        assert state.to_act == (oracle.mover,)
        legal = [game.notation(action) for action in state.legal(oracle.mover)]
        assert legal == oracle.legal()
        assert legal, "a hand under way always offers an action: there is no deadlock"
        action = rng.choice(legal)
        state.apply(oracle.mover, game.parse(action))
        oracle.apply(action)


@pytest.mark.parametrize("options", RULE_SETS, ids=str)
def test_native_and_oracle_agree_in_lock_step(options: dict[str, Any]) -> None:
    game = rules.game("pairing", **options)
    for seed in range(25):
        lock_step(game, seed)


def test_about_60_percent_of_random_games_see_a_discard() -> None:
    """63 % with actions drawn uniformly; 59 % is on record for a random player of another kind. None deadlocks."""
    game = rules.game("pairing")
    env = rules.vec_env(game, 4000, seed=7)
    rng = np.random.default_rng(7)
    discarded, ended = np.zeros(env.n, bool), np.zeros(env.n, bool)
    while not ended.all():
        offsets = env.legal_offsets
        actions = env.legal_ids[offsets[:-1] + (rng.random(env.n) * np.diff(offsets)).astype(np.int64)]
        discarded |= (actions == game.parse("enter:discard1")) & ~ended
        env.step(actions)
        ended |= env.done
    assert 0.55 < discarded.mean() < 0.68


def test_presets_and_options() -> None:
    assert rules.presets("pairing") == ("seven-phase", "four-phase")
    game = rules.game("pairing", preset="four-phase", hand=5)
    assert game.rules["deck"] == 52 - 2 * 5 - 10
    assert rules.game("pairing", **game.rules).rules == game.rules
    assert game.num_actions == 58
    assert game.num_seats == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hands": 9}, 'did you mean "hand"'),
        ({"skil_a": 1}, 'did you mean "skill_a"'),
        ({"preset": "seven"}, '"seven" is not one of seven-phase, four-phase'),
        ({"hand": 0}, "hand: 0 is not within 1 .. 20"),
        ({"hand": 20, "pool": 13}, "need more than 52 cards"),
        ({"deck": 23}, "more than the 22 cards"),
        ({"points": [1, 2]}, "13 values"),
        ({"points": [100] * 13}, "points of rank 1"),
        ({"refill": 1}, "refill must be true or false"),
        ({"colour_set": 0}, "colour_set"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        rules.game("pairing", **options)


def test_default_points_are_120_in_all() -> None:
    points = rules.game("pairing").rules["points"]
    assert points == [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 8]
    assert 4 * sum(points) == 120


def test_skill_a_puts_a_card_under_the_deck_that_only_its_owner_knows() -> None:
    state = rules.game("pairing", pool=2).state_from_deal(position())
    play(state, "enter:A", "g1")
    assert state.events(0, 1) == ["enter 0 A", "replace 0 g1", "draw 0 r7"]
    assert state.events(1, 1) == ["replace 0 ?", "draw 0 ?"]
    assert state.view(0).to_json()["deck"] == ["?", "?", "g1"]
    assert state.view(1).to_json()["deck"] == ["?", "?", "?"]
    assert state.view(0).phase == "init"
    assert "enter:A" not in legal_words(state)


def test_skill_b_pairs_any_colours_and_tops_the_pool_up() -> None:
    state = rules.game("pairing", pool=2).state_from_deal(position())
    play(state, "enter:B")
    assert legal_words(state) == ["g1", "r2"]
    play(state, "g1")
    assert legal_words(state) == ["g5", "w6"]
    play(state, "w6")
    assert state.events(1, 1) == ["force 0 g1 w6", "refill - r7"]
    assert state.to_act == (0,)


def test_pairing_needs_one_colour_and_ends_the_turn() -> None:
    state = rules.game("pairing", pool=2).state_from_deal(position())
    play(state, "enter:pairing")
    assert legal_words(state) == ["g1"], "r2 has no partner"
    play(state, "g1")
    assert legal_words(state) == ["g5"]
    play(state, "g5")
    assert state.to_act == (1,)


def test_two_discards_then_the_final_one() -> None:
    deal = position(pool=["r5"], hands=[["g1", "g2"], ["w3", "b4"]], deck=["g7", "b8", "g9", "b10", "g11"])
    state = rules.game("pairing", pool=1).state_from_deal(deal)
    assert legal_words(state) == ["enter:A", "enter:B", "enter:discard1"]
    play(state, "enter:discard1", "g1")
    assert state.events(1, 1) == ["discard 0 g1", "draw 0 ?", "refill - b8"]
    assert legal_words(state) == ["enter:A", "enter:B", "enter:discard2"]
    play(state, "enter:discard2", "g2")
    assert legal_words(state) == ["enter:A", "enter:B", "enter:final"], "two a turn, and the deck holds only one"
    play(state, "enter:final", "g9")
    assert state.events(1)[-1] == "final 0 g9"
    assert state.to_act == (1,)


def test_the_four_phase_machine_discards_inside_pairing() -> None:
    deal = position(pool=["r5"], hands=[["g1", "g2"], ["w3", "b4"]], deck=["g7", "b8", "g9", "b10"])
    state = rules.game("pairing", preset="four-phase", pool=1).state_from_deal(deal)
    assert legal_words(state) == ["enter:A", "enter:B", "enter:pairing"]
    play(state, "enter:pairing", "g1")
    assert state.view(0).phase == "pairing", "no skill after a discard"
    play(state, "g2", "g7")
    assert [event.split()[0] for event in state.events(1, 1)] == [
        "discard", "draw", "refill", "discard", "draw", "refill", "final"
    ]  # fmt: skip
    assert state.to_act == (1,)


def test_sets_score() -> None:
    deal = position(pool=["g13"], hands=[["g1"], ["w3"]], deck=["r7", "b8"])
    greens = [f"g{rank}" for rank in (2, 3, 4, 5)]
    deal["libraries"] = [["r13", "w13", "b13", *greens], []]
    named = {"g1", "w3", "g13", "r7", "b8", *deal["libraries"][0]}
    deal["aside"] = [card for card in CARDS if card not in named]
    state = rules.game("pairing", pool=1).state_from_deal(deal)
    play(state, "enter:pairing", "g1", "g13")
    lead = 1 + 8 + 8 + 5  # both cards, the four thirteens, the sixth green
    assert state.view(0).to_json()["scores"] == [lead, 0]


def test_an_empty_hand_skips_turns() -> None:
    deal = position(pool=["g5", "b5", "w5"], hands=[["g1"], ["w3", "b4"]], deck=[])
    state = rules.game("pairing", refill=False, pool=3).state_from_deal(deal)
    play(state, "enter:pairing", "g1", "g5", "enter:pairing", "w3", "w5")
    assert state.to_act == (1,), "seat 0 has no cards left"
    play(state, "enter:pairing", "b4", "b5")
    assert state.terminal


def test_illegal_actions_change_nothing() -> None:
    state = rules.game("pairing").new_state(1)
    before = state.view(0)
    for seat, action in [(1, "enter:B"), (0, "g1"), (0, "enter:final")]:
        with pytest.raises(ValueError, match="may not"):
            state.apply(seat, before.parse(action))
    assert state.view(0) == before
