"""What a seat knows: snapshots with unknowns, sampling by counting, bytes, JSON, hostile input."""

import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothost.rules import doudizhu, game

GAME = game("doudizhu")
BIDDING = game("doudizhu", preset="bidding")
DECK = "".join(r * (4 if r not in "BR" else 1) for r in doudizhu.RANKS)


def without(cards, gone):
    left = list(cards)
    for card in gone:
        left.remove(card)
    return "".join(left)


def canonical(cards):
    return "".join(sorted(cards, key=doudizhu.RANKS.index))


def hands_of(state):
    """Hands that the seats hold now, from a sampled state's own views."""
    return [state.view(seat).to_json()["hand"] for seat in range(3)]


def chi_square(observed, expected):
    """Pearson's statistic; `expected` are probabilities."""
    total = sum(observed.values())
    assert set(observed) <= set(expected)
    return sum((observed[k] - total * p) ** 2 / (total * p) for k, p in expected.items())


# 99.99 % quantiles of chi-square by degrees of freedom.
LIMIT = {1: 15.1, 2: 18.4, 3: 21.1, 4: 23.5, 5: 25.7}


def late_position(unseen, hand, counts, **more):
    """Seat 0, all cards known to be played but its hand and `unseen`."""
    gone = without(DECK, unseen + hand)
    sizes = [20 - counts[0], 17 - counts[1], 17 - counts[2]]
    piles = [gone[: sizes[0]], gone[sizes[0] : sizes[0] + sizes[1]], gone[sizes[0] + sizes[1] :]]
    return GAME.view_from_snapshot(
        {"seat": 0, "hand": hand, "landlord": 0, "counts": counts, "turn": 0, "played": piles} | more
    )


def test_samples_are_uniform_over_the_unseen_cards():
    view = late_position("3345", "BR", [2, 2, 2])
    seen = Counter(hands_of(view.sample_state(seed))[1] for seed in range(6000))
    # Of the six ways to give two of the four distinct cards to the next seat:
    assert chi_square(seen, {"33": 1 / 6, "34": 2 / 6, "35": 2 / 6, "45": 1 / 6}) < LIMIT[3]


def test_samples_of_unequal_hands():
    view = late_position("33456", "BR", [2, 1, 4])
    seen = Counter(hands_of(view.sample_state(seed))[1] for seed in range(6000))
    assert chi_square(seen, {"3": 2 / 5, "4": 1 / 5, "5": 1 / 5, "6": 1 / 5}) < LIMIT[3]


def test_unplayed_bottom_cards_lie_with_the_landlord():
    state = GAME.new_state(5)
    bottom = state.deal["bottom"]
    view = state.view(1)
    others = Counter()
    for seed in range(3000):
        sampled = view.sample_state(seed)
        hands = hands_of(sampled)
        assert sampled.deal["bottom"] == bottom
        assert not Counter(bottom) - Counter(hands[0])
        assert hands[1] == view.to_json()["hand"]
        assert sampled.view(1) == view
        others["R" in hands[0]] += 1
    if "R" not in bottom + hands[1]:
        assert chi_square(others, {True: 17 / 34, False: 17 / 34}) < LIMIT[1]


def test_bidding_leaves_the_bottom_to_chance():
    state = BIDDING.new_state(2)
    view = state.view(0)
    card = next(c for c in "RB2" if c not in view.to_json()["hand"])
    held = view.to_json()["hand"].count(card)
    unseen = DECK.count(card) - held
    inside = sum(view.sample_state(seed).deal["bottom"].count(card) for seed in range(4000)) / 4000
    assert math.isclose(inside, unseen * 3 / 37, abs_tol=0.03)


def test_an_unknown_bottom_is_drawn_from_the_landlords_cards():
    view = late_position("3345", "BR", [2, 2, 2])
    seen = Counter("R" in view.sample_state(seed).deal["bottom"] for seed in range(6000))
    assert chi_square(seen, {True: 3 / 20, False: 17 / 20}) < LIMIT[1]


def test_reconnect_without_bottom_and_history():
    """What mailgyc tells: own hand, counts, whose turn, the last play."""
    snapshot = {
        "seat": 1,
        "hand": "2J3445677TQKB",
        "landlord": 2,
        "counts": [9, 13, 7],
        "turn": 1,
        "last": [0, "999A"],
    }
    g = game("doudizhu", preset="mailgyc")
    view = g.view_from_snapshot(snapshot)
    assert view.asked and view.record() is None
    assert {view.notation(a) for a in view.legal()} == {"pass"}
    landlord_has_r = Counter()
    for seed in range(4000):
        sampled = view.sample_state(seed)
        assert sampled.view(1) == view
        hands, deal = hands_of(sampled), sampled.deal
        assert [len(h) for h in hands] == [9, 13, 7]
        assert canonical("".join(deal["hands"]) + deal["bottom"]) == DECK
        assert not Counter("999A") - Counter(deal["hands"][0])
        landlord_has_r["R" in hands[2]] += 1
    places = 54 - 13 - 4  # anywhere but in the own hand and the last play
    assert chi_square(landlord_has_r, {True: 7 / places, False: 1 - 7 / places}) < LIMIT[1]
    assert g.state_from_deal(sampled.deal).deal == deal
    while not sampled.terminal:
        (seat,) = sampled.to_act
        sampled.apply(seat, int(sampled.legal(seat)[-1]))
    follower = view.clone()
    follower.observe_all(sampled.events(1))
    assert follower == sampled.view(1)
    view.observe("pass 1")
    view.observe("play 2 TTTK")
    assert view.to_json()["counts"] == [9, 13, 3]
    assert g.view_from_bytes(view.to_bytes()) == view
    assert g.view_from_json(view.to_json()) == view


def test_reconnect_while_calling():
    g = game("doudizhu", preset="mailgyc")
    hand = "33445566778899TTJ"
    view = g.view_from_snapshot({"seat": 0, "hand": hand, "first": 1, "bids": [[1, "call"], [2, "bid0"]]})
    assert view.phase == "bid" and [view.notation(a) for a in view.legal()] == ["bid0", "grab"]
    told = g.new_view(0)
    told.observe_all([f"deal 0 {hand} 1", "bid 1 call", "bid 2 bid0"])
    assert view == told


def test_a_snapshot_with_history_is_complete():
    """What Botzone tells: own cards, the bottom, every play."""
    g = game("doudizhu", preset="botzone")
    state = g.new_state(9)
    rng = random.Random(1)
    for _ in range(12):
        (seat,) = state.to_act
        state.apply(seat, int(rng.choice(state.legal(seat))))
    known = state.view(1).to_json()
    view = g.view_from_snapshot({key: known[key] for key in ("seat", "hand", "landlord", "bottom", "history")})
    assert view == state.view(1)
    shuffled = "".join(rng.sample(known["hand"], len(known["hand"])))
    assert g.view_from_snapshot({**known, "hand": shuffled, "format": 1}) == view


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hand": "333333"}, "too many of '3'"),
        ({"hand": "345"}, "not of its counted size"),
        ({"counts": [2, 2, 18]}, "dealt"),
        ({"counts": [2, 0, 2]}, "no cards"),
        ({"last": [1, "BR"]}, "more cards of a rank"),
        ({"bottom": "2"}, "bottom is 3 cards"),
        ({"last": [1, "pass"]}, "is a play"),
        ({"landlord": None}, "landlord"),
        ({"turn": 3}, "turn"),
        ({"colour": "red"}, "no key"),
    ],
)
def test_contradictions_are_refused(change, message):
    base = {"seat": 0, "hand": "BR", "landlord": 0, "counts": [2, 2, 2], "turn": 0, "complete": False}
    GAME.view_from_snapshot(base)
    with pytest.raises(ValueError, match=message):
        GAME.view_from_snapshot(base | change)


@pytest.mark.parametrize(
    "event",
    ["play 1 3", "play 0 99", "play 0 66A", "bid 0 bid1", "deal 0 33334444555566667 0", "reveal - 3 3 3 3 0", "pass 0"],
)
def test_events_that_cannot_be_are_refused_and_change_nothing(event):
    view = GAME.state_from_deal(
        {"hands": ["33334444BR2222555", "66777788889999TTT", "TJJJJQQQQKKKKAAAA"], "bottom": "566"}
    ).view(0)
    before = view.to_bytes()
    with pytest.raises(ValueError):
        view.observe(event)
    assert view.to_bytes() == before


def test_nobody_plays_cards_that_were_seen_elsewhere():
    state = GAME.state_from_deal(
        {"hands": ["33334444BR2222555", "66777788889999TTT", "TJJJJQQQQKKKKAAAA"], "bottom": "566"}
    )
    state.apply(0, GAME.parse("66"))
    view = state.view(0)
    for event in ("play 1 22", "play 1 BR", "play 1 5555", "play 2 77"):
        with pytest.raises(ValueError):
            view.observe(event)
    view.observe("play 1 88")


def mid_game(seed, g=GAME, moves=30):
    state = g.new_state(seed)
    rng = random.Random(seed)
    for _ in range(moves):
        if state.terminal:
            break
        (seat,) = state.to_act
        state.apply(seat, int(rng.choice(state.legal(seat))))
    return state


def test_bytes_are_small():
    sizes = [len(mid_game(seed).view(1).to_bytes()) for seed in range(50)]
    assert max(sizes) < 110 and sum(sizes) / len(sizes) < 75


@given(seed=st.integers(0, 1000), flips=st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=4))
@settings(max_examples=300, deadline=None)
def test_hostile_bytes_are_refused_or_safe_to_use(seed, flips):
    g = (GAME, BIDDING, game("doudizhu", preset="mailgyc"))[seed % 3]
    view = mid_game(seed, g, moves=seed % 40).view(seed % 3)
    if seed % 2 and view.phase == "play":
        keys = ("seat", "hand", "landlord", "counts", "turn", "played", "history")
        known = {key: view.to_json()[key] for key in keys}
        last = view.to_json()["last"]
        view = g.view_from_snapshot(known | {"complete": False} | ({"last": last} if last else {}))
    data = bytearray(view.to_bytes())
    for position, value in flips:
        data[position % len(data)] = value
    try:
        found = g.view_from_bytes(bytes(data))
    except ValueError:
        return
    assert g.view_from_bytes(found.to_bytes()) == found
    assert g.view_from_json(found.to_json()) == found
    found.legal()
    found.sample_state(1)
    for name, block in g.blocks.items():
        if block.of == "view":
            found.encode(name)
        elif block.of == "action":
            found.encode_actions(name, found.legal()[:3])
    if found.asked:
        doudizhu.rule_choice(found)
