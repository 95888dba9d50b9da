"""Encoder blocks of mahjong, plane by plane, on positions written by hand; and that no view shows what is hidden."""

from __future__ import annotations

import numpy as np
import pytest

from bothost import rules
from bothost.rules import Oracle, View, mahjong
from bothost.rules.game import State

GAME = rules.game("mahjong")
INDEX = {word: tile for tile, word in enumerate(mahjong.TILES)}

# South's turn in a south round: east has shown a chow and a hidden kong, west a pung; eight tiles were discarded.
SNAPSHOT = {
    "seat": 1,
    "phase": "turn",
    "actor": 1,
    "prevalent_wind": "south",
    "hand": ["W1", "W1", "W1", "W2", "T5", "T5", "B9", "F2", "J3", "J3", "T3"],
    "drawn": "T3",
    "melds": [
        [{"kind": "chi", "tile": "B2", "claimed": "B1"}, {"kind": "angang"}],
        [{"kind": "peng", "tile": "F4", "claimed": "F4"}],
        [{"kind": "peng", "tile": "W9", "claimed": "W9"}],
        [],
    ],
    "discards": [["F1", "F1", "F4"], ["B5", "W9"], ["W1"], ["T9", "B1"]],
    "hand_sizes": [7, 11, 10, 13],
    "wall_left": [15, 17, 16, 18],
}


@pytest.fixture(scope="module")
def view() -> View:
    return GAME.view_from_snapshot(SNAPSHOT)


def rows(plane: np.ndarray) -> list[set[str]]:
    """The kinds that are 1 in each of the four rows."""
    assert set(np.unique(plane)) <= {0.0, 1.0}
    return [{mahjong.TILES[t] for t in np.flatnonzero(row)} for row in plane]


def full(block: np.ndarray) -> list[int]:
    """Indices of the rows that are all ones; every row is that or all zeros."""
    lines = block.reshape(-1, 34)
    assert all(line.min() == line.max() for line in lines)
    return np.flatnonzero(lines[:, 0]).tolist()


def test_tile_sets(view: View) -> None:
    planes = view.encode("tiles")
    hand = [{"W1", "W2", "T3", "T5", "B9", "F2", "J3"}, {"W1", "T5", "J3"}, {"W1"}, set()]
    assert rows(planes[0]) == hand
    assert rows(planes[1]) == [{"F4"}, {"F4"}, {"F4"}, set()]  # own melds
    assert rows(planes[2]) == [{"W9"}, {"W9"}, {"W9"}, set()]  # west sits next
    assert rows(planes[3]) == [set()] * 4
    assert rows(planes[4]) == [{"B1", "B2", "B3"}, set(), set(), set()]  # east; its kong is hidden
    assert rows(planes[5])[0] == {"B5", "W9"}
    assert rows(planes[6])[0] == {"W1"}
    assert rows(planes[7])[0] == {"T9", "B1"}
    assert rows(planes[8])[:2] == [{"F1", "F4"}, {"F1"}]
    open_tiles = rows(planes[9])
    assert open_tiles[0] == {"B5", "W1", "T9", "F1", "F4", "W9", "B1", "B2", "B3"}
    assert open_tiles[2] == {"F4", "W9"}
    unseen = rows(planes[10])
    assert "W1" not in unseen[0] and "F4" in unseen[0] and "F4" not in unseen[1] and "J1" in unseen[3]
    assert rows(planes[11])[0] == {"T3"}  # drawn
    assert rows(planes[12]) == [set()] * 4  # nothing to claim


def test_integers_as_full_rows(view: View) -> None:
    planes = view.encode("tiles")
    assert [full(planes[i]) for i in range(13, 18)] == [[1], [1], [3], [0], [0]]  # seat, wind, dealer, phase, actor
    integers = view.encode("integers")
    assert integers.shape == (13, 4, 34)
    needed = min(mahjong.distances(counts("W1 W1 W1 W2 T5 T5 B9 F2 J3 J3 T3"), 1))
    assert full(integers) == [17, 24 + 1, 29 + 1, 34 + 0, 39 + 2, 44 + needed]


def counts(hand: str) -> np.ndarray:
    return np.bincount([INDEX[word] for word in hand.split()], minlength=34).astype(np.uint8)


def test_discards_in_order(view: View) -> None:
    order = view.encode("order")
    assert [mahjong.TILES[int(row.argmax())] for row in order[3, :3]] == ["F4", "F1", "F1"] and not order[3, 3:].any()
    assert mahjong.TILES[int(order[0, 0].argmax())] == "W9"
    state = GAME.new_state(3)
    for _ in range(8):
        seat = state.to_act[0]
        state.apply(seat, int(next(a for a in state.legal(seat) if GAME.notation(int(a))[:4] in ("pass", "play"))))
    view = state.view(0)
    newest_first = [e.split()[2] for e in state.events(0) if e.startswith("play 0")][::-1]
    own = view.encode("order")[0]
    assert [mahjong.TILES[int(row.argmax())] for row in own if row.any()] == newest_first


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_look_ahead_planes_say_what_look_ahead_says(depth: int) -> None:
    hand = "W1 W2 W3 W5 W6 W7 T4 T5 T6 B8 B9 F1 F1 J1"
    view = GAME.view_from_snapshot({"seat": 0, "phase": "turn", "actor": 0, "hand": hand.split()})
    ahead = mahjong.look_ahead(view, depth)
    assert ahead.recommended is not None
    best = ahead.after[ahead.recommended]
    planes = view.encode(f"look_ahead_{depth}")
    assert planes.shape == (48, 4, 34)
    assert rows(planes[0]) == [{mahjong.TILES[ahead.recommended]}, set(), set(), set()]
    in_reach = {tile: p for tile, p in ahead.after.items() if p.worth > 0}
    by_lack = [{mahjong.TILES[t] for t, p in in_reach.items() if min(p.tiles_needed, 3) == n} for n in (1, 2, 3)]
    assert rows(planes[1]) == [{mahjong.TILES[t] for t in in_reach}, *by_lack]
    assert full(planes[2:4]) == [best.shape, 4 + min(best.tiles_needed, 3)]
    assert full(planes[4:25]) == best.fans
    assert full(planes[25:27]) == best.shapes
    assert full(planes[27:48]) == best.all_fans


def test_look_ahead_planes_are_empty_where_nothing_is_in_reach() -> None:
    hand = "W1 W4 W8 T2 T5 T8 B3 B5 B9 F1 F3 J1 J2 W9"
    view = GAME.view_from_snapshot({"seat": 0, "phase": "turn", "actor": 0, "hand": hand.split()})
    assert not view.encode("look_ahead_1").any()
    assert view.encode("look_ahead_4")[25:27].any()  # knitted tiles and honours, four away


def test_prospects_of_actions() -> None:
    hand = "W1 W2 W3 W5 W6 W7 T4 T5 T6 B8 B9 F1 F1 J1"
    view = GAME.view_from_snapshot({"seat": 0, "phase": "turn", "actor": 0, "hand": hand.split()})
    legal = view.legal()
    floats = dict(zip((GAME.notation(int(a)) for a in legal), view.encode_actions("prospect", legal), strict=True))
    best = floats["play:J1"]
    assert best[1] == best[17] == 1.0
    assert best[3:10].argmax() == 1 and best[11:16].argmax() == 0 and best[10] == pytest.approx(13 / 24)
    assert all(row[17] < 1.0 for word, row in floats.items() if word != "play:J1")
    with pytest.raises(ValueError, match="legal"):
        view.encode_actions("prospect", np.array([GAME.parse("play:W9")], np.int32))


def test_the_acceptance_weighted_look_ahead_knows_what_others_keep() -> None:
    """Late in a hand the last wind, of which two lie open, comes more readily than the last five of a suit."""
    discards = [["W9"] * 3, ["F4", "T1", "T9", "W5", "J2"], ["B1", "B9", "F4", "W5"], ["F1", "F2", "F3", "J1", "J2"]]
    hand = "T1 T2 T3 T4 T5 T6 T7 T8 T9 B2 B2 B2 F4 W5"
    known = {"hand": hand.split(), "wall_left": [6, 6, 6, 6], "discards": discards}
    view = GAME.view_from_snapshot({"seat": 0, "phase": "turn", "actor": 0, **known})
    waits = np.array([GAME.parse("play:W5"), GAME.parse("play:F4")], np.int32)  # for the wind, for the five
    plain, weighted = (np.expm1(6 * view.encode_actions(name, waits)[:, 0]) for name in ("prospect", "appraisal"))
    assert weighted[0] / weighted[1] > 1.2 * plain[0] / plain[1]


def test_the_acceptance_weighted_look_ahead_pools_the_hands_that_lack_several_tiles() -> None:
    """Many hands are two and three tiles away: together they are worth less than their sum, but no less than the chance
    of each and what danger there is says of the discards."""
    hand = "W1 W2 W3 W4 W6 T4 T5 T6 T7 B6 B7 B8 F1 J1"
    view = GAME.view_from_snapshot({"seat": 0, "phase": "turn", "actor": 0, "hand": hand.split()})
    legal = view.legal()
    plain, weighted = (view.encode_actions(name, legal) for name in ("prospect", "appraisal"))
    assert (weighted[:, 0] <= plain[:, 0]).all() and (weighted[:, 0] < plain[:, 0]).any()
    assert ((weighted[:, 0] > 0) == (plain[:, 0] > 0)).all(), "the same hands are in reach"
    np.testing.assert_array_equal(weighted[:, 16], plain[:, 16])


def test_prospects_of_a_win_and_of_claims() -> None:
    state = GAME.new_state(0)
    seen = {"hu": 0, "chi": 0, "peng": 0}
    for seed in range(12):
        state = GAME.new_state(seed)
        while not state.terminal:
            seat = state.to_act[0]
            view = state.view(seat)
            legal = view.legal()
            for action, row in zip(legal, view.encode_actions("prospect", legal), strict=True):
                move = GAME.notation(int(action)).partition(":")[0]
                if move == "hu":
                    assert row[3] == 1.0 and row[10] >= 8 / 24 - 1e-6
                if move in seen:
                    seen[move] += 1
            state.apply(seat, mahjong.rule_choice(view)[0])
    assert min(seen.values()) > 0


# ------------------------------------------------------------------------------------------------ hidden information


def somewhere(seed: int) -> tuple[State, int]:
    state, rng = GAME.new_state(seed), np.random.default_rng(seed)
    for _ in range(int(rng.integers(5, 60))):
        if state.terminal:
            break
        seat = state.to_act[0]
        state.apply(seat, int(rng.choice(state.legal(seat))))
    return (state, state.to_act[0]) if not state.terminal else somewhere(seed + 1000)


@pytest.mark.parametrize("seed", range(6))
def test_encoders_and_decisions_do_not_depend_on_what_is_hidden(seed: int) -> None:
    """The same view over other hands and another wall: the oracle's planes change, and nothing else does."""
    state, seat = somewhere(seed)
    view = state.view(seat)
    other = view.sample_state(seed + 1)
    same = other.view(seat)
    assert same == view
    assert not np.array_equal(Oracle(state, seat).encode("hidden"), Oracle(other, seat).encode("hidden"))
    for name, block in GAME.blocks.items():
        if block.of == "view":
            assert np.array_equal(view.encode(name), same.encode(name)), name
        elif block.of == "action":
            legal = view.legal()
            assert np.array_equal(view.encode_actions(name, legal), same.encode_actions(name, legal)), name
    assert mahjong.rule_choice(view) == mahjong.rule_choice(same)
    assert mahjong.acceptance_weighted_choice(view) == mahjong.acceptance_weighted_choice(same)
    with pytest.raises(ValueError, match="hidden"):
        view.encode("hidden")
