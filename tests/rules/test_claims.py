"""Simultaneous decisions on the test game "claims" (tests/native/claims.h): the contract that mahjong relies on."""

import itertools
import random
from collections import Counter

import pytest

from bothost import rules

PASS, MATCH, PAIR = 8, 9, 10


def asked_at_once() -> rules.State:
    """Four seats; seat 0 discards a 0, of which every other seat holds one."""
    deal = {"first": 0, "hands": [[0, 1, 2], [0, 3, 3], [0, 4, 4], [0, 5, 5]]}
    state = rules.game("claims", seats=4, hand=3).state_from_deal(deal)
    state.apply(0, 0)
    return state


def test_all_who_hold_the_number_are_asked_at_once():
    state = asked_at_once()
    assert state.to_act == (1, 2, 3)
    for seat in (1, 2, 3):
        assert state.legal(seat).tolist() == [PASS, MATCH]
        assert state.view(seat).asked
        assert state.view(seat).to_act is None
        assert state.view(seat).phase == "claim"
    assert state.legal(0).tolist() == []
    assert not state.view(0).asked


@pytest.mark.parametrize("order", list(itertools.permutations([1, 2, 3])))
@pytest.mark.parametrize("answers", list(itertools.product([PASS, MATCH], repeat=3)))
def test_the_outcome_does_not_depend_on_the_order_of_answers(order: tuple[int, ...], answers: tuple[int, ...]):
    state = asked_at_once()
    for i, seat in enumerate(order):
        before = [len(state.events(s)) for s in range(4)]
        state.apply(seat, answers[seat - 1])
        after = [len(state.events(s)) for s in range(4)]
        if i < 2:  # an answer is an event to its own seat alone
            assert [b - a for a, b in zip(before, after, strict=True)] == [int(s == seat) for s in range(4)]
            assert seat not in state.to_act
            assert not state.view(seat).asked
    claimants = [seat for seat in (1, 2, 3) if answers[seat - 1] == MATCH]
    outcome = f"take {claimants[0]} match" if claimants else "none -"
    assert all(state.events(s)[-1] == outcome for s in range(4))
    assert state.to_act == ((claimants[0],) if claimants else (1,))


def test_a_pair_beats_a_nearer_match():
    deal = {"first": 0, "hands": [[0, 1, 2], [0, 3, 3], [0, 0, 4]]}
    state = rules.game("claims", seats=3, hand=3).state_from_deal(deal)
    state.apply(0, 0)
    assert state.legal(2).tolist() == [PASS, MATCH, PAIR]
    state.apply(2, PAIR)
    assert state.to_act == (1,)
    state.apply(1, MATCH)
    assert state.events(0)[-1] == "take 2 pair"
    assert state.to_act == (2,)


def test_a_seat_answers_once():
    state = asked_at_once()
    state.apply(2, PASS)
    with pytest.raises(ValueError, match="seat 2 may not"):
        state.apply(2, MATCH)
    assert state.to_act == (1, 3)


def test_losing_answers_stay_hidden_until_the_reveal():
    state = asked_at_once()
    for seat in (1, 2, 3):
        state.apply(seat, MATCH)
    rng = random.Random(1)
    while not state.terminal:
        assert not any("2:match" in e or e.startswith("answer 2") for s in (0, 1, 3) for e in state.events(s))
        seat = rng.choice(state.to_act)
        state.apply(seat, int(state.legal(seat)[0]))
    assert all("1:match+2:match+3:match" in state.events(s)[-1] for s in range(4))


def test_scores_are_paid_by_the_discarder():
    game = rules.game("claims", seats=3, hand=3)
    state = game.state_from_deal({"first": 0, "hands": [[0, 0, 0], [1, 1, 1], [0, 1, 2]]})
    state.apply(0, 0)
    state.apply(2, MATCH)  # 1 point from seat 0
    state.apply(2, 1)
    state.apply(1, PAIR)  # 3 points from seat 2
    state.apply(1, 1)
    assert state.terminal
    assert state.returns == (-1.0, 3.0, -2.0)


def test_samples_are_uniform_over_the_deals_that_fit():
    """Seat 0 of a tiny deal: while claims are open that it owes nothing to, somebody must hold the number."""
    game = rules.game("claims", seats=3, hand=1)
    state = game.state_from_deal({"first": 0, "hands": [[0], [0], [1]]})
    state.apply(0, 0)
    view = state.view(0)
    n = 6000
    counts = Counter(tuple(h[0] for h in view.sample_state(i).deal["hands"][1:]) for i in range(n))
    deck = Counter([number for number in range(8) for _ in range(4)])
    deck[0] -= 1
    weights = {(a, b): deck[a] * (deck[b] - (a == b)) for a in range(8) for b in range(8) if 0 in (a, b)}
    total = sum(weights.values())
    assert set(counts) == set(weights)
    chi2 = sum((counts[k] - n * w / total) ** 2 / (n * w / total) for k, w in weights.items())
    assert chi2 < 37.7  # 15 cells, 14 degrees of freedom: p = 0.0006; the seeds are fixed


def test_a_snapshot_may_leave_out_past_answers():
    state = asked_at_once()
    for seat in (1, 2, 3):
        state.apply(seat, PASS)
    told = state.view(2).to_json()
    for turn in told["turns"]:
        turn["answer"] = None
    view = state.game.view_from_snapshot(told)
    assert view.legal().tolist() == state.legal(2).tolist()
    assert view.seq == state.view(2).seq


def test_it_is_hidden_from_the_list_of_games():
    assert "claims" not in rules.games()
    assert "claims" in rules.games(testing=True)
