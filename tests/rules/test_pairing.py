"""The four-colour pairing game: against its slow oracle, and what its hidden information and encoder must be."""

from __future__ import annotations

import collections
import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairing_oracle import CARDS, Oracle

from bothost import rules

RULE_SETS: list[dict[str, Any]] = [
    {},
    {"preset": "four-phase"},
    {"hand": 4, "pool": 5, "skill_a": 3, "skill_b": 2},
    {"preset": "four-phase", "hand": 6, "pool": 4, "deck": 12, "skill_a": 2, "skill_b": 0, "discard_to_hand": 2},
    {"refill": False, "pool": 3, "discards": 1, "points": list(range(13)), "rank_bonus": 3},
    {"preset": "four-phase", "pool": 0, "colour_set": 2, "colour_bonus": 1, "discard_to_pool": 4},
    {"hand": 20, "pool": 12, "discard_to_hand": 0, "discard_to_pool": 0, "skill_a": 4, "skill_b": 7},
]


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


# options


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
        ({"preset": "seven"}, 'did you mean "seven-phase"'),
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


# single moves


def position(**changes: Any) -> dict[str, Any]:
    """A small position under way; cards that are named nowhere lie in the libraries, seat 0's first."""
    deal: dict[str, Any] = {
        "hands": [["g1", "r2"], ["w3", "b4"]],
        "pool": ["g5", "w6"],
        "deck": ["r7", "b8", "r9"],
        "aside": [],
        "discards": [],
        "charges": [[1, 1], [1, 1]],
        "scores": [0, 0],
        "to_move": 0,
        "turn": 12,
        "discards_used": 0,
    }
    deal.update(changes)
    named = {card for hand in deal["hands"] for card in hand}
    named.update(deal["pool"], deal["deck"], deal["aside"], deal["discards"])
    rest = [card for card in CARDS if card not in named]
    deal["libraries"] = [rest[: len(rest) // 2], rest[len(rest) // 2 :]]
    return deal


def play(state: rules.State, *actions: str) -> None:
    for action in actions:
        state.apply(state.to_act[0], state.view(0).parse(action))


def legal_words(state: rules.State) -> list[str]:
    return [state.game.notation(action) for action in state.legal(state.to_act[0])]


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
        with pytest.raises(ValueError, match=r"not asked|not legal"):
            state.apply(seat, before.parse(action))
    assert state.view(0) == before


# what a seat knows


def test_composite_events_alone_are_enough() -> None:
    """A lobby that only takes and tells composite moves: own selections never come as events."""
    game = rules.game("pairing")
    rng = random.Random(5)
    state = game.new_state(5)
    lean = game.new_view(0)
    told = 0
    while not state.terminal:
        seat = state.to_act[0]
        action = int(rng.choice(state.legal(seat)))
        state.apply(seat, action)
        events = state.events(0, told)
        told += len(events)
        lean.observe_all([event for event in events if event.split()[0] not in ("enter", "select")])
        if state.view(0).phase in ("init", "waiting"):
            assert lean.to_json() == {**state.view(0).to_json(), "seq": lean.seq}
    assert lean.record() == state.view(0).record()


def test_a_lobby_may_decide_otherwise_than_what_was_selected() -> None:
    state = rules.game("pairing", pool=2).state_from_deal(position())
    view = state.view(0)
    view.apply(view.parse("enter:pairing"))
    view.apply(view.parse("g1"))
    view.observe("force 0 r2 w6")
    assert view.to_json()["history"] == [[0, "enter:B"], [0, "r2"], [0, "w6"]]


@pytest.mark.parametrize(
    "event",
    [
        "pair 1 w3 w6", "pair 0 g1 w6", "pair 0 g2 g5", "draw 0 r7", "refill - r7", "replace 0 ?", "discard 0 g1",
        "final 0 g1", "reveal - hands=| pool= deck= aside= replaced=", "select 0 g1", "enter 1 A", "enter 0 discard1",
        "pair 0 g1", "pair 0 g1 g5 g6", "deal 0 hand=g1 pool=g2", "force 0 ? w6", "nonsense 0", "pair", "pair 7 g1 g5",
        "pair 0 x1 g5", "pair 0 g14 g5", "pair 0 g01 g5", "",
    ],
)  # fmt: skip
def test_impossible_events_are_refused_and_change_nothing(event: str) -> None:
    view = rules.game("pairing", pool=2).state_from_deal(position()).view(0)
    before = view.clone()
    with pytest.raises(ValueError, match=r"."):
        view.observe(event)
    assert view == before


def test_snapshot_with_unknowns() -> None:
    game = rules.game("pairing")
    snapshot = {
        "seat": 1, "hands": [7, ["g1", "r2", "w3"]], "pool": ["g5", "b6"], "deck": 10, "to_move": 1,
        "phase": "pairing", "selected": ["g1"], "scores": [30, 41], "seq": 77,
    }  # fmt: skip
    view = game.view_from_snapshot(snapshot)
    assert (view.phase, view.seq, view.asked) == ("pairing", 77, True)
    assert [view.notation(action) for action in view.legal()] == ["g5"]
    sampled = view.sample_state(3)
    assert sampled.view(1) == view
    play(sampled, "g5")
    while not sampled.terminal:
        play(sampled, sampled.game.notation(sampled.legal(sampled.to_act[0])[0]))
    full = game.new_state(4).view(0)
    assert game.view_from_snapshot(full.to_json()) == full


def test_a_view_made_from_a_snapshot_outlives_the_reveal() -> None:
    game = rules.game("pairing", hand=2)
    state = game.new_state(9)
    play(state, legal_words(state)[-1])
    shown = state.view(1).to_json()
    keys = ("seat", "seq", "hands", "pool", "deck", "to_move", "libraries", "discards", "scores", "charges", "turn")
    rng = random.Random(9)
    while state.to_act == (0,):
        state.apply(0, int(rng.choice(state.legal(0))))
    shown = state.view(1).to_json()
    view = game.view_from_snapshot({key: shown[key] for key in keys})
    while not state.terminal:
        seat = state.to_act[0]
        state.apply(seat, int(rng.choice(state.legal(seat))))
    view.observe_all(state.events(1, view.seq))
    assert view.terminal
    assert view.record() is None, "where the hand began is not known"
    assert game.view_from_bytes(view.to_bytes()) == view
    assert game.view_from_json(view.to_json()) == view


# sampling


def worlds(game: rules.Game, state: rules.State, seat: int) -> set[str]:
    """Every (deal, actions) under which ``seat`` would have seen what it saw, found by trying all."""
    deal, them = state.deal, 1 - seat
    begun = game.state_from_deal(deal).view(seat).to_json()
    places = [("hands", i) for i in range(len(begun["hands"][them]))]
    places += [("deck", i) for i, card in enumerate(begun["deck"]) if card == "?"]
    hidden = [deal["hands"][them][i] if kind == "hands" else deal["deck"][i] for kind, i in places]
    hidden += deal.get("aside", [])
    told = [event for event in state.events(seat) if not event.startswith("deal")]
    mine = [(who, state.game.notation(action)) for who, action in state.actions]
    found, tried = set(), set()
    for cards in itertools.permutations(hidden, len(places)):
        other = {**deal, "hands": [list(hand) for hand in deal["hands"]], "deck": list(deal["deck"])}
        for (kind, i), card in zip(places, cards, strict=True):
            (other["hands"][them] if kind == "hands" else other["deck"])[i] = card
        other["hands"][them].sort(key=CARDS.index)
        if repr(other) in tried:
            continue
        tried.add(repr(other))
        found.update(histories(game, other, seat, told, mine))
    return found


def histories(
    game: rules.Game, deal: dict[str, Any], seat: int, told: list[str], actions: list[tuple[int, str]]
) -> list[str]:
    """The same actions from another deal, with every card that the other seat may have put under the deck."""
    ends = [(Oracle(game.rules, deal), [])]
    for index, (who, word) in enumerate(actions):
        unknown = who != seat and index and actions[index - 1] == (who, "enter:A")
        following = []
        for oracle, done in ends:
            for choice in oracle.hands[who] if unknown else [word]:
                if oracle.mover != who or choice not in oracle.legal():
                    continue
                again = Oracle(game.rules, deal)
                for earlier in [*done, choice]:
                    again.apply(earlier)
                if again.log[seat] == told[: len(again.log[seat])]:
                    following.append((again, [*done, choice]))
        ends = following
    return [repr((deal["hands"], deal["deck"], done)) for oracle, done in ends if oracle.log[seat] == told]


SAMPLED: list[tuple[dict[str, Any], list[str]]] = [
    # the other seat discards, draws, and discards again: its old cards avoid more colours than its new one
    (
        position(hands=[["g1", "g2"], ["w3", "b4", "w5"]], pool=["g6"], deck=["b7", "r8", "g9"], to_move=1),
        ["enter:discard1", "w3", "enter:B", "b4", "g6", "enter:final", "w5"],
    ),
    # it puts a card under the deck between two discards, and that card comes up
    (
        position(hands=[["g1"], ["w3", "b4", "w10"]], pool=["g6"], deck=["b7", "r8", "w9", "g10"], to_move=1),
        ["enter:discard1", "w3", "enter:A", "b4", "enter:discard2", "b7"],
    ),
    # it draws what we put under the deck, and puts cards there itself
    (
        position(hands=[["g1", "g2", "b5"], ["w3", "b4"]], pool=["g6", "w7"], deck=["b8", "r9"], aside=["r1"]),
        ["enter:A", "g1", "enter:pairing", "g2", "g6", "enter:A", "w3", "enter:A", "b4", "enter:discard1", "r9"],
    ),
]


def follow(state: rules.State, script: list[str], rng: random.Random, extra: int) -> None:
    for word in script:
        if word not in legal_words(state):
            break
        play(state, word)
    for _ in range(extra):
        if not state.terminal:
            play(state, rng.choice(legal_words(state)))


@pytest.mark.parametrize("case", range(len(SAMPLED)))
@pytest.mark.parametrize("preset", ["seven-phase", "four-phase"])
def test_samples_are_uniform_over_what_the_view_allows(case: int, preset: str) -> None:
    game = rules.game("pairing", preset=preset, pool=1, skill_a=2, skill_b=2)
    deal, script = SAMPLED[case]
    checked = 0
    for attempt in range(4):
        state = game.state_from_deal({**deal, "charges": [[2, 2], [2, 2]]})
        follow(state, script if preset == "seven-phase" else [], random.Random(attempt), 3 * attempt)
        if state.terminal or state.view(state.to_act[0]).to_json()["open"]:
            continue  # what the mover entered and selected so far is not seen, and not sampled
        for seat in range(2):
            allowed = worlds(game, state, seat)
            if not 1 < len(allowed) <= 900:
                continue
            draws = 20 * len(allowed)
            view = state.view(seat)
            counts: collections.Counter[str] = collections.Counter()
            for seed in range(draws):
                sampled = view.sample_state(seed)
                record = sampled.deal
                done = [game.notation(action) for _, action in replayed(game, sampled, view)]
                counts[repr((record["hands"], record["deck"], done))] += 1
            assert set(counts) <= allowed
            expected = draws / len(allowed)
            chi2 = sum((counts[world] - expected) ** 2 / expected for world in allowed)
            freedom = len(allowed) - 1
            assert chi2 < freedom + 5 * math.sqrt(2 * freedom) + 10, (chi2, freedom)
            checked += 1
    assert checked, "no position had a number of worlds that can be counted"


def replayed(game: rules.Game, sampled: rules.State, view: rules.View) -> list[tuple[int, int]]:
    """The actions of a sampled state, from what both of its seats saw."""
    both = [sampled.view(seat).to_json()["history"] for seat in range(2)]
    longest = max(both, key=len)
    words = [a if a[1] != "?" else b for a, b in itertools.zip_longest(*both, fillvalue=None) if a and b]
    words += longest[len(words) :]
    return [(seat, game.parse(word)) for seat, word in words]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), options=st.sampled_from(RULE_SETS), stop=st.integers(0, 80))
def test_samples_fit_the_view(seed: int, options: dict[str, Any], stop: int) -> None:
    game = rules.game("pairing", **options)
    rng = random.Random(seed)
    state = game.new_state(seed)
    for _ in range(stop):
        if state.terminal:
            break
        seat = state.to_act[0]
        state.apply(seat, int(rng.choice(state.legal(seat))))
    for seat in range(2):
        view = state.view(seat)
        sampled = view.sample_state(seed)
        assert sampled.view(seat) == view
        while not sampled.terminal:
            who = sampled.to_act[0]
            sampled.apply(who, int(rng.choice(sampled.legal(who))))


# encoder


def planes_of(view: rules.View) -> tuple[list[set[str]], list[float]]:
    features = view.encode("features")
    assert features.shape == (384,)
    planes = [{CARDS[i] for i in np.flatnonzero(features[52 * k : 52 * k + 52])} for k in range(7)]
    return planes, [round(float(value), 4) for value in features[364:]]


def test_features_of_a_position_by_hand() -> None:
    deal = position(deck=["r7", "b8", "r9", "b9"], aside=["b10"], scores=[30, 18])
    state = rules.game("pairing", pool=2, hand=4).state_from_deal(deal)
    play(state, "enter:A", "g1", "enter:B", "r2")
    planes, scalars = planes_of(state.view(0))
    assert planes == [
        {"r2", "r7"}, {"g5", "w6"}, set(deal["libraries"][0]), set(deal["libraries"][1]), set(), {"r2"},
        {"w3", "b4", "b8", "r9", "b9", "b10"},
    ]  # fmt: skip
    assert scalars == [
        0, 0, 1, 0, 0, 0, 0,  # phase B
        0, 1, 1, 1,  # charges
        round(4 / 42, 4),  # deck
        0.25, 0.15, 0.1,  # scores over 120
        0.5, 0.5,  # hands of 4
        1.5,  # turn 12 of 8
        1, 1,  # discards left, a first card is chosen
    ]  # fmt: skip
    planes, scalars = planes_of(state.view(1))
    assert planes[0] == {"w3", "b4"}
    assert planes[5] == set()
    assert planes[6] == {"g1", "r2", "r7", "b8", "r9", "b9", "b10"}
    assert scalars[:11] == [0] * 7 + [1, 1, 0, 1]
    assert scalars[12:15] == [0.15, 0.25, -0.1]


def test_features_before_the_deal_are_zero_and_at_the_deal_add_up() -> None:
    game = rules.game("pairing")
    assert not game.new_view(0).encode("features").any()
    planes, scalars = planes_of(game.new_state(1).view(0))
    assert [len(plane) for plane in planes] == [10, 10, 0, 0, 0, 0, 32]
    assert scalars == [1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0]


def test_scores_and_oracle_blocks() -> None:
    state = rules.game("pairing", pool=2).state_from_deal(position(scores=[5, 9]))
    assert state.view(1).encode("scores").tolist() == [9, 5]
    hidden = rules.Oracle(state, 0).encode("hidden")
    assert {CARDS[i] for i in np.flatnonzero(hidden[0])} == {"w3", "b4"}
    assert [round(float(hidden[1][CARDS.index(card)]), 3) for card in ("r7", "b8", "r9")] == [1, 0.5, 0.333]


def test_vec_env_gives_the_lead_at_every_turn() -> None:
    """What a trainer makes its reward of: "scores" while a hand runs, ``returns`` when it has ended."""
    game = rules.game("pairing")
    env = rules.vec_env(game, 8, seed=3)
    rng = np.random.default_rng(3)
    states = [game.state_from_deal(env.deal(i)) for i in range(env.n)]
    scores = np.empty((env.n, 2), np.float32)
    for _ in range(200):
        env.encode("scores", scores)
        for i, state in enumerate(states):
            assert scores[i].tolist() == state.view(int(env.seat[i])).encode("scores").tolist()
        offsets = env.legal_offsets
        actions = env.legal_ids[offsets[:-1] + (rng.random(env.n) * np.diff(offsets)).astype(np.int64)]
        seats = env.seat.copy()
        env.step(actions)
        for i, state in enumerate(states):
            state.apply(int(seats[i]), int(actions[i]))
            assert env.done[i] == state.terminal
            if state.terminal:
                assert env.returns[i].tolist() == list(state.returns)
                states[i] = game.state_from_deal(env.deal(i))
