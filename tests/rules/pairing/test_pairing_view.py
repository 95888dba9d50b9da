"""What a seat of the four-colour pairing game knows: from composite events, from hostile ones, from snapshots."""

from __future__ import annotations

import random

import pytest
from pairing_positions import legal_words, play, position

from bothost import rules


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
