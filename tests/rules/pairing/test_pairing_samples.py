"""Sampled states of the four-colour pairing game: uniform over all that the view allows, and nothing else."""

from __future__ import annotations

import collections
import itertools
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairing_oracle import CARDS, Oracle
from pairing_positions import RULE_SETS, legal_words, play, position

from bothost import rules


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
            draws = 10 * len(allowed)
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
