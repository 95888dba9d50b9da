"""Legality, bidding and scoring against the slow oracle, under every preset."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothost.rules import doudizhu, game, presets

DECK = [r for r in doudizhu.RANKS for _ in range(4 if r not in "BR" else 1)]
GAMES = {name: game("doudizhu", preset=name) for name in presets("doudizhu")}
WIDEST = game("doudizhu", preset="douzero", shuttles=True)


def small_hand(rng: random.Random, size: int) -> str:
    """Cards of few ranks, so that chains, planes and fours are frequent."""
    ranks = set(rng.sample(doudizhu.RANKS[:12], rng.randint(3, 6))) | set(rng.sample("2BR", rng.randint(0, 2)))
    low = rng.randint(0, 8)
    ranks |= set(doudizhu.RANKS[low : low + rng.randint(0, 4)])
    pool = [c for c in DECK if c in ranks]
    hand = rng.sample(pool, min(size, len(pool)))
    return "".join(sorted(hand, key=doudizhu.RANKS.index))


def position(g, hand, last=None):
    snapshot = {"seat": 0, "hand": hand, "landlord": 0, "counts": [len(hand), 17, 17], "turn": 0}
    if last:
        left = 17 - len(doudizhu.move(g.parse(last)).cards)
        snapshot |= {"last": [2, last], "counts": [len(hand), 17, left]}
    return g.view_from_snapshot(snapshot)


@pytest.mark.parametrize("preset", [*GAMES, "widest"])
def test_leads_are_the_oracles(oracle, preset):
    g = GAMES.get(preset, WIDEST)
    rng = random.Random(preset)
    for _ in range(20):
        hand = small_hand(rng, rng.randint(1, 11))
        ours = []
        for action in position(g, hand).legal():
            move = doudizhu.move(action)
            ours.append((move.cards, oracle.Reading(move.kind, move.length, move.rank)))
        assert len(ours) == len(set(ours))
        assert set(ours) == oracle.legal(hand, None, g.rules), hand


@pytest.mark.parametrize("preset", [*GAMES, "widest"])
def test_answers_are_the_oracles(oracle, preset):
    g = GAMES.get(preset, WIDEST)
    rng = random.Random(f"answers {preset}")
    for _ in range(12):
        first = small_hand(rng, rng.randint(1, 12))
        last = int(rng.choice(position(g, first).legal()))
        played = doudizhu.move(last)
        hand = small_hand(rng, 9)
        for card in played.cards:  # one deck: what was played is not in the hand
            hand = hand.replace(card, "", 1)
        if not hand:
            continue
        view = position(g, hand, g.notation(last))
        reading = oracle.Reading(played.kind, played.length, played.rank)
        ours = {doudizhu.move(a).cards for a in view.legal()}
        theirs = {cards for cards, _ in oracle.legal(hand, reading, g.rules)}
        assert ours == theirs | {""}, (hand, g.notation(last))


@given(seed=st.integers(0, 2**32), preset=st.sampled_from(sorted(GAMES)))
@settings(max_examples=60, deadline=None)
def test_whole_hands_score_as_the_oracle_says(oracle, seed, preset):
    g = GAMES[preset]
    state = g.new_state(seed)
    rng = random.Random(seed)
    last, last_seat, plays = None, None, []
    while not state.terminal:
        (seat,) = state.to_act
        action = int(rng.choice(state.legal(seat)))
        move = doudizhu.move(action)
        if move.kind == "call":
            state.apply(seat, action)
            continue
        if last_seat == seat:
            last = None
        if move.kind == "pass":
            assert last is not None
        else:
            reading = oracle.Reading(move.kind, move.length, move.rank)
            assert reading in oracle.readings(move.cards, g.rules)
            assert last is None or oracle.beats(reading, last)
            last, last_seat = reading, seat
        plays.append((seat, move.cards))
        state.apply(seat, action)
    if plays:
        view = state.view(0).to_json()
        assert state.returns == oracle.score(view["landlord"], plays, view["stake"], g.rules)
        assert all(state.view(s).to_json()["counts"] == view["counts"] for s in range(3))
    else:
        assert state.returns == (0, 0, 0)


def bid_all(g, calls, first=1):
    """The state after these calls from seat `first` on, and who was asked."""
    cards = DECK[:]
    random.Random(4).shuffle(cards)
    hands = ["".join(cards[17 * i : 17 * i + 17]) for i in range(3)]
    state = g.state_from_deal({"hands": hands, "bottom": "".join(cards[51:]), "first": first})
    asked = []
    for word in calls:
        (seat,) = state.to_act
        asked.append(seat)
        state.apply(seat, g.parse(word))
    return state, asked


@pytest.mark.parametrize(
    ("calls", "landlord", "stake"),
    [
        (["bid3"], 1, 3),
        (["bid1", "bid2", "bid3"], 0, 3),
        (["bid0", "bid1", "bid0"], 2, 1),
        (["bid2", "bid0", "bid0"], 1, 2),
        (["bid0", "bid0", "bid0"], None, None),
    ],
)
def test_calling_1_2_3(calls, landlord, stake):
    g = GAMES["bidding"]
    state, _ = bid_all(g, calls)
    shown = state.view(0).to_json()
    if landlord is None:
        assert state.terminal and state.returns == (0, 0, 0) and shown["revealed"]
    else:
        assert (shown["landlord"], shown["stake"], shown["turn"]) == (landlord, stake, landlord)
        assert shown["counts"][landlord] == 20


def test_a_bid_must_exceed_those_before():
    g = GAMES["bidding"]
    state, _ = bid_all(g, ["bid1"])
    assert [g.notation(a) for a in state.legal(2)] == ["bid0", "bid2", "bid3"]
    with pytest.raises(ValueError, match="may not"):
        state.apply(2, g.parse("bid1"))


@pytest.mark.parametrize(
    ("calls", "landlord", "stake", "asked"),
    [
        # mailgyc/doudizhu, Room._is_rob_end and Room.on_rob
        (["bid0", "bid0", "bid0"], 1, 1, [1, 2, 0]),
        (["call", "bid0", "bid0"], 1, 2, [1, 2, 0]),
        (["bid0", "call", "bid0"], 2, 2, [1, 2, 0]),
        (["bid0", "call", "grab"], 0, 4, [1, 2, 0]),
        (["call", "grab", "bid0", "bid0"], 2, 4, [1, 2, 0, 1]),
        (["call", "grab", "bid0", "grab"], 1, 8, [1, 2, 0, 1]),
        (["call", "grab", "grab", "bid0"], 0, 8, [1, 2, 0, 1]),
        (["call", "bid0", "grab", "grab"], 1, 8, [1, 2, 0, 1]),
    ],
)
def test_call_and_grab(calls, landlord, stake, asked):
    state, seats = bid_all(GAMES["mailgyc"], calls)
    shown = state.view(2).to_json()
    assert seats == asked
    assert (shown["phase"], shown["landlord"], shown["stake"]) == ("play", landlord, stake)


def test_without_a_call_the_hand_is_void_if_the_rules_say_so():
    state, _ = bid_all(game("doudizhu", preset="mailgyc", all_pass="void"), ["bid0"] * 3)
    assert state.terminal and state.returns == (0, 0, 0) and state.view(0).to_json()["revealed"]


def test_botzone_gives_the_first_seat_what_nobody_wants():
    state, _ = bid_all(GAMES["botzone-bid"], ["bid0"] * 3, first=0)
    assert state.view(0).to_json()["landlord"] == 0


DEAL = {"hands": ["33334444BR2222555", "66777788889999TTT", "TJJJJQQQQKKKKAAAA"], "bottom": "566", "first": 0}
SPRING = "BR pass pass 3333 pass pass 4444 pass pass 5555 pass pass 222266"
NO_SPRING = "3333 7777 pass BR pass pass 4444 pass pass 5555 pass pass 222266"
ANTI_SPRING = "66 77 pass pass TTT66 pass pass 778899 pass pass 88 pass pass 99"


@pytest.mark.parametrize(
    ("options", "plays", "returns"),
    [
        ({}, SPRING, (64, -32, -32)),  # rocket, three bombs, spring: 2^5, the landlord plays for double
        ({}, NO_SPRING, (64, -32, -32)),  # rocket and four bombs
        ({}, ANTI_SPRING, (-4, 2, 2)),
        ({"spring_factor": 3}, ANTI_SPRING, (-6, 3, 3)),
        ({"spring_factor": 1}, ANTI_SPRING, (-2, 1, 1)),
        ({"bomb_factor": 1}, SPRING, (4, -2, -2)),
        ({"landlord_double": False}, SPRING, (32, -32, -32)),
        ({"base": 5}, ANTI_SPRING, (-20, 10, 10)),
        ({"scoring": "win_loss"}, SPRING, (2, -1, -1)),
        ({"preset": "botzone"}, SPRING.replace("222266", "2222 pass pass 66"), (1, -1, -1)),
    ],
)
def test_bombs_rocket_spring_and_anti_spring(options, plays, returns):
    g = game("doudizhu", **options)
    state = g.state_from_deal(DEAL)
    for word in plays.split():
        (seat,) = state.to_act
        state.apply(seat, g.parse(word))
    assert state.terminal and state.returns == returns


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "poker"}, "is not one of rlcard"),
        ({"bidding": "auction"}, "is not one of none, score, grab"),
        ({"base": 0}, "is not within"),
        ({"speed": 3}, "no option"),
        ({"shuttles": 1}, "true or false"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        game("doudizhu", **options)


def test_presets_and_options_combine():
    g = game("doudizhu", preset="rlcard", bidding="score", scoring="win_loss")
    assert g.rules["bidding"] == "score" and not g.rules["rocket_kickers"]
    assert game("doudizhu", **g.rules).rules == g.rules
    assert game("doudizhu").rules == GAMES["rlcard"].rules
