"""The RHCP player: its hand values are the best of all partitions, and it plays by them in plain positions."""

import itertools
import math
import random
import time
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothost import Budget, Table
from bothost.rules import doudizhu, game, presets
from bothost.strategy import NoOptions
from bothost_baselines.rhcp import RhcpDoudizhu

BUDGET = Budget(deadline=math.inf)
PLAIN = game("doudizhu", scoring="win_loss", landlord_double=False)
DECK = "".join(rank * (4 if rank not in "BR" else 1) for rank in doudizhu.RANKS)


def player(g=PLAIN, seat=0):
    return RhcpDoudizhu(NoOptions()).player(Table(lobby="test", table="1", game=g, seat=seat, seed=1))


def decide(hand, **position):
    snapshot = {"seat": 0, "hand": hand, "landlord": 0, "turn": 0} | position
    view = PLAIN.view_from_snapshot(snapshot)
    decision = player().decide(view, view.legal(), BUDGET)
    assert decision.stats["reason"]
    return view.notation(decision.action)


def worth(cards):
    """Of one play, by the published table; None where the cards are none."""
    readings = [doudizhu.move(action) for action in doudizhu.readings(cards)]
    values = []
    for move in (move for move in readings if not set(move.needs) - {"same_rank_kickers"}):
        top = move.rank + move.length - 1
        if move.kind == "rocket":
            values.append(20)
        elif move.kind == "bomb":
            values.append(top + 7)
        elif move.kind in ("trio_chain", "plane_solo", "plane_pair", "quad_solo", "quad_pair"):
            values.append(top / 2)
        else:
            values.append(top - 7)
    return max(values, default=None)


@cache
def best_of_all_partitions(hand):
    """By trying every play that holds the lowest card."""
    if not hand:
        return 0
    best, rest = -math.inf, hand[1:]
    for size in range(len(rest) + 1):
        for chosen in {tuple(c) for c in itertools.combinations(rest, size)}:
            value = worth(hand[0] + "".join(chosen))
            if value is None:
                continue
            left = list(rest)
            for card in chosen:
                left.remove(card)
            best = max(best, value - 7 + best_of_all_partitions("".join(left)))
    return best


@cache
def best_without_breaking(counts, planes=()):
    """What a hand with these numbers of each rank is worth, in half points, if kickers are all of a rank that the
    chains leave. ``planes``: the lengths of those taken out."""
    values = [chainless(counts, planes)]
    for width, shortest in ((1, 5), (2, 3), (3, 2)):
        for start, end in itertools.combinations(range(13), 2):
            if end - start < shortest or min(counts[start:end]) < width:
                continue
            left = tuple(c - width * (start <= r < end) for r, c in enumerate(counts))
            top = end - 1
            if width == 3:
                values.append(top - 14 + best_without_breaking(left, tuple(sorted((*planes, end - start)))))
            else:
                values.append(2 * (top - 14) + best_without_breaking(left, planes))
    return max(values)


def chainless(counts, planes):
    rocket = counts[13] and counts[14]
    held = {n: [r for r, c in enumerate(counts) if c == n and not (rocket and r > 12)] for n in (1, 2, 3, 4)}
    certain = (40 - 14 if rocket else 0) + sum(2 * r - 28 for r in held[3])
    found = []
    for fours in itertools.product((None, 1, 2), repeat=len(held[4])):  # bombs, or with solos or pairs
        value = certain + sum(r - 14 if kickers else 2 * r for r, kickers in zip(held[4], fours, strict=True))
        for others in itertools.product((None, 1, 2), repeat=len(planes)):
            taken = list(zip((2,) * len(fours) + planes, fours + others, strict=True))
            solos, pairs = (sum(n for n, kickers in taken if kickers == size) for size in (1, 2))
            if solos <= len(held[1]) and pairs <= len(held[2]):
                left = sorted(held[1][solos:] + held[2][pairs:])[len(held[3]) :]
                found.append(value + sum(2 * r - 28 for r in left))
    return max(found)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(doudizhu.RANKS[:13]), min_size=1, max_size=7, unique=True),
    st.sampled_from(["", "B", "BR"]),
    st.randoms(use_true_random=False),
)
def test_a_hand_is_worth_its_best_partition_that_breaks_nothing_for_kickers(ranks, jokers, rng):
    cards = [rank for rank in ranks for _ in range(4)] + list(jokers)
    hand = rng.sample(cards, rng.randint(1, min(20, len(cards))))
    counts = tuple(hand.count(rank) for rank in doudizhu.RANKS)
    assert 2 * doudizhu.hand_value("".join(hand)) == best_without_breaking(counts)


@pytest.mark.parametrize(
    "hand", ["34567", "333444", "3334", "55556", "33344456", "BR3", "5555BR", "334455", "3456789", "3344556677899"]
)
def test_hands_with_chains_planes_and_bombs_are_worth_their_best_partition(hand):
    assert doudizhu.hand_value(hand) == best_of_all_partitions(hand)
    partition = [doudizhu.move(action).cards for action in doudizhu.best_partition(hand)]
    assert sorted("".join(partition)) == sorted(hand)
    assert sum(worth(cards) - 7 for cards in partition) == doudizhu.hand_value(hand)


def test_hands_full_of_pairs_are_worth_their_best_partition():
    """Two chains from one rank: the second may be no longer than what the first leaves without a gap."""
    rng = random.Random(3)
    for _ in range(300):
        low = rng.randint(0, 4)
        hand = "".join(doudizhu.RANKS[r] * rng.choice((0, 1, 2, 2, 2)) for r in range(low, low + 8))
        partition = [doudizhu.move(action).cards for action in doudizhu.best_partition(hand)]
        assert sorted("".join(partition)) == sorted(hand)
        assert sum(worth(cards) - 7 for cards in partition) == doudizhu.hand_value(hand), hand


@pytest.mark.parametrize(
    ("hand", "counts", "move"),
    [
        ("34567", [5, 17, 17], "34567"),  # the last play
        ("34567BR", [7, 17, 17], "BR"),  # the rocket, then the last play
        ("3456789KK2", [10, 17, 17], "3456789"),  # the chain, for it leaves the best hand
        ("333KK2", [6, 17, 17], "333KK"),  # the pair goes along
        ("46JQK", [5, 1, 17], "K"),  # no small card for who has one
        ("334J", [4, 2, 17], "3"),  # no pair for who has two
    ],
)
def test_leads(hand, counts, move):
    assert decide(hand, counts=counts) == move


@pytest.mark.parametrize(
    ("hand", "last", "counts", "move"),
    [
        ("3456789K", [2, "9"], [8, 9, 9], "K"),  # the card that is left over
        ("34567", [2, "6"], [5, 9, 9], "pass"),  # keeps the chain
        ("34567", [2, "6"], [5, 9, 2], "7"),  # but an enemy about to go out
        ("4688999JJKK5555", [2, "A"], [15, 9, 9], "pass"),  # a bomb is for when it decides
        ("5555K", [2, "A"], [5, 9, 9], "5555"),
        ("46789JJ5555", [2, "A"], [11, 9, 2], "5555"),
    ],
)
def test_answers(hand, last, counts, move):
    assert decide(hand, last=last, counts=counts) == move


def test_peasants_are_partners():
    assert decide("4599KKA2", landlord=2, last=[1, "6"], counts=[8, 9, 20]) == "pass"
    assert decide("7", landlord=2, last=[1, "6"], counts=[1, 9, 20]) == "7"
    assert decide("358KKA", landlord=2, counts=[6, 1, 9]) == "3"  # the partner is next and has one card


@pytest.mark.parametrize("preset", presets("doudizhu"))
def test_plays_whole_hands_under_every_preset(preset):
    g = game("doudizhu", preset=preset)
    for seed in range(15):
        state = g.new_state(seed)
        while not state.terminal:
            (seat,) = state.to_act
            legal = state.legal(seat)
            action = player(g, seat).decide(state.view(seat), legal, BUDGET).action
            assert action in legal
            state.apply(seat, action)


def test_beats_random_play_within_milliseconds():
    won, rng, slowest = 0, random.Random(1), []
    for seed in range(100):
        state = PLAIN.new_state(seed)
        while not state.terminal:
            (seat,) = state.to_act
            if seat == 0:
                view, start = state.view(seat), time.thread_time()
                action = player().quick(view, state.legal(seat)).action
                slowest.append(time.thread_time() - start)
            else:
                action = int(rng.choice(state.legal(seat)))
            state.apply(seat, action)
        won += state.returns[0] > 0
    assert won > 90
    assert sorted(slowest)[-2] < 0.01  # but for the first call, which builds tables


def test_it_needs_a_view_that_is_asked():
    with pytest.raises(ValueError, match="asked"):
        doudizhu.rhcp_choice(PLAIN.new_view(0))
