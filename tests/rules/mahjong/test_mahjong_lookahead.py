"""Look-ahead of mahjong: which hands win over the next draws, against brute force and on positions written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest

from bothost import rules
from bothost.rules import View, mahjong

GAME = rules.game("mahjong")
CHOICES = Path(__file__).with_name("rule_choices.jsonl")
INDEX = {word: tile for tile, word in enumerate(mahjong.TILES)}


def turn(hand: str, game: rules.Game = GAME, **known: object) -> View:
    """East's view on its own turn in the first round, with 14 tiles less three per meld; the last one was drawn."""
    return game.view_from_snapshot(
        {"seat": 0, "phase": "turn", "actor": 0, "prevalent_wind": "east", "hand": hand.split(), **known}
    )


def fans_of(prospect: mahjong.Prospect) -> set[str]:
    return {mahjong.FANS[f].name for f in prospect.fans}


def counts(view: View) -> np.ndarray:
    return np.bincount([INDEX[word] for word in view.to_json()["hand"]], minlength=34).astype(np.uint8)


def most_points(standing: np.ndarray, lacking: tuple[int, ...]) -> int:
    """Of a concealed hand of 14 tiles: the most points, whichever of the missing tiles comes last, drawn or not."""
    wins = [(tile, drawn, 0, 0, 0, 0, 0, 0) for tile in set(lacking) for drawn in (0, 1)]
    hands = np.repeat(standing[None], len(wins), axis=0)
    points, _ = mahjong.fan_many(hands, np.zeros((len(wins), 4, 2), np.uint8), np.array(wins, np.uint8))
    return int(points.max())


WAITS_FOR_B7 = "W1 W2 W3 W5 W6 W7 T4 T5 T6 B8 B9 F1 F1 J1"


def test_a_hand_that_waits_discards_its_loose_tile() -> None:
    ahead = mahjong.look_ahead(turn(WAITS_FOR_B7), depth=1)
    assert ahead.recommended == INDEX["J1"]
    assert [tile for tile, prospect in ahead.after.items() if prospect.worth > 0] == [INDEX["J1"]]
    best = ahead.after[INDEX["J1"]]
    assert (best.tiles_needed, mahjong.SHAPES[best.shape]) == (1, "standard")
    assert fans_of(best) == {"mixed-straight", "fully-concealed-hand", "edge-wait"}
    assert best.points == 13
    assert best.shapes == [0]


def test_what_the_wait_is_worth() -> None:
    """Drawn, B7 pays 3 * (8 + 13) points; from a discard 24 + 11, two points being for concealment."""
    view = turn(WAITS_FOR_B7)
    best = mahjong.look_ahead(view, depth=1).after[INDEX["J1"]]
    turns, unseen = 0.35 * 20, 136 - 14
    drawn, anyhow = (1 - np.exp(-turns * 4 * rate / unseen) for rate in (1.0, 2.5))
    assert best.chance == pytest.approx(anyhow)
    assert best.worth == pytest.approx(drawn * 63 + (anyhow - drawn) * 35)


def test_a_tile_that_lies_open_cannot_come() -> None:
    gone = {"discards": [[], ["B7", "B7"], ["B7"], ["B7"]]}
    assert mahjong.look_ahead(turn(WAITS_FOR_B7, **gone), depth=1).recommended is None


MELDS = [[{"kind": "chi", "tile": "W2", "claimed": "W1"}, {"kind": "chi", "tile": "T4", "claimed": "T3"}], [], [], []]


def test_nothing_below_the_minimum_counts() -> None:
    """Complete with any of several tiles, and worth two or three points: at one draw nothing is in reach."""
    hand = "B5 B6 B7 W6 W7 T8 T8 F1"
    ahead = mahjong.look_ahead(turn(hand, melds=MELDS), depth=1)
    assert ahead.targets > 0
    assert ahead.recommended is None
    assert ahead.now.worth == 0
    lower = rules.game("mahjong", minimum=1)
    assert mahjong.look_ahead(turn(hand, lower, melds=MELDS), depth=1).recommended == INDEX["F1"]


def test_a_hand_without_any_fan_wins_from_a_discard() -> None:
    """The chicken hand: eight points for nothing at all, which a drawn tile, itself worth one, would spoil."""
    best = mahjong.look_ahead(turn("B5 B6 B7 W6 W7 J2 J2 F1", melds=MELDS), depth=1).after[INDEX["F1"]]
    assert fans_of(best) == {"chicken-hand"} and best.points == 8


@pytest.mark.parametrize(
    ("hand", "shape", "fan", "tiles_needed"),
    [
        ("W1 W1 W4 W4 T3 T3 T8 T8 B2 B2 B9 B9 F1 F2", "seven_pairs", "seven-pairs", 1),
        ("W1 W9 T1 T9 B1 B9 F1 F2 F3 F4 J1 J2 J2 W5", "thirteen_orphans", "thirteen-orphans", 1),
        ("W1 W4 W7 T2 T5 T8 B3 B6 F1 F2 F3 J1 W2 W3", "honours_and_knitted", "lesser-honors-and-knitted-tiles", 2),
        ("W1 W4 W7 T2 T5 T8 B3 B6 F1 F1 F1 J1 J1 W9", "knitted_straight", "knitted-straight", 1),
        ("W2 W2 W2 T6 T6 T6 B8 B8 B8 F1 F1 J3 J3 W9", "standard", "all-pungs", 1),
        ("T1 T2 T3 T5 T5 T7 T8 T9 T4 F1 F1 J1 W9 B9", "standard", "half-flush", 3),
        ("W1 W2 W3 T4 T5 T6 F2 F2 F2 J1 J1 B7 B7 W9", "standard", "all-types", 1),
    ],
)
def test_shapes_and_fans_on_positions_written_by_hand(hand: str, shape: str, fan: str, tiles_needed: int) -> None:
    ahead = mahjong.look_ahead(turn(hand), depth=tiles_needed)
    assert ahead.recommended is not None
    best = ahead.after[ahead.recommended]
    assert best.tiles_needed == tiles_needed
    assert fan in {mahjong.FANS[f].name for f in best.all_fans}
    assert mahjong.SHAPES.index(shape) in best.shapes
    nearer = mahjong.look_ahead(turn(hand), depth=tiles_needed - 1)
    assert mahjong.FANS.index(next(f for f in mahjong.FANS if f.name == fan)) not in nearer.now.all_fans


def nearly_won(rng: np.random.Generator, missing: int) -> View:
    """A winning hand of eight points or so, some of its tiles exchanged for others."""
    while True:
        cores = [
            [0, 1, 2, 12, 13, 14, 24, 25, 26],
            [3, 4, 5, 12, 13, 14, 21, 22, 23],
            [9, 9, 9, 10, 10, 10, 11, 11, 11],
        ]
        suits = rng.permutation(3)
        core = [9 * int(suits[t // 9]) + t % 9 for t in cores[rng.integers(3)]]
        low = 9 * int(rng.integers(3)) + int(rng.integers(7))
        pair = int(rng.integers(34))
        hand = np.bincount([*core, low, low + 1, low + 2, pair, pair], minlength=34)
        for _ in range(missing):
            hand[rng.choice(np.flatnonzero(hand))] -= 1
            hand[rng.integers(34)] += 1
        if hand.max() <= 4:
            return turn(" ".join(mahjong.TILES[t] for t in np.repeat(np.arange(34), hand)))


@pytest.mark.parametrize("seed", range(8))
def test_one_draw_reaches_exactly_the_hands_that_win(seed: int) -> None:
    view = nearly_won(np.random.default_rng(seed), missing=1 + seed % 2)
    hand, ahead = counts(view), mahjong.look_ahead(view, depth=1)
    for discard, prospect in ahead.after.items():
        wins = False
        for tile in range(34):
            standing = hand.copy()
            standing[discard] -= 1
            standing[tile] += 1
            if tile != discard and hand[tile] < 4:
                wins = wins or most_points(standing, (tile,)) >= 8
        assert (prospect.worth > 0) == wins, mahjong.TILES[discard]


@pytest.mark.parametrize("seed", range(4))
def test_every_discard_that_two_draws_reward_has_a_hand_of_eight_points(seed: int) -> None:
    """What is promised exists; and a deeper look sees at least as much."""
    view = nearly_won(np.random.default_rng(100 + seed), missing=2)
    hand = counts(view)
    one, two, three = (mahjong.look_ahead(view, depth) for depth in (1, 2, 3))
    assert two.now.worth > 0
    for discard in two.after:
        assert one.after[discard].worth <= two.after[discard].worth + 1e-9
        assert two.after[discard].worth <= three.after[discard].worth + 1e-9
        if two.after[discard].worth > 0:
            kept = hand.copy()
            kept[discard] -= 1
            assert any(most_points(standing, lacking) >= 8 for standing, lacking in completions(kept)), discard


def completions(kept: np.ndarray) -> Iterator[tuple[np.ndarray, tuple[int, int]]]:
    """Complete hands that 13 tiles become by two draws and a discard between, with the tiles drawn."""
    pairs = np.array(list(combinations_with_replacement(range(34), 2)))
    drawn = np.zeros((len(pairs), 34), np.uint8)
    np.add.at(drawn, (np.arange(len(pairs))[:, None], pairs), 1)
    for spare in np.flatnonzero(kept):
        rest = kept.copy()
        rest[spare] -= 1
        hands = drawn + rest
        may = (hands.max(axis=1) <= 4) & (drawn[:, spare] == 0)
        pairs_left, hands = pairs[may], hands[may]
        for i in np.flatnonzero(mahjong.shanten_many(hands) == -1):
            yield hands[i], (int(pairs_left[i, 0]), int(pairs_left[i, 1]))


def test_depths_and_views_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="depth"):
        mahjong.look_ahead(turn(WAITS_FOR_B7), depth=8)
    with pytest.raises(TypeError, match="mahjong"):
        mahjong.look_ahead(rules.game("othello").new_state(1).view(0))


def test_nothing_is_in_reach_before_the_deal() -> None:
    ahead = mahjong.look_ahead(GAME.new_view(2))
    assert ahead.recommended is None and ahead.now.worth == 0 and not ahead.after


# ---------------------------------------------------------------------------------------------- recorded choices


@pytest.mark.parametrize("line", CHOICES.read_text().splitlines(), ids=lambda line: json.loads(line)["seed"])
def test_the_rule_players_choose_as_recorded(line: str) -> None:
    """Choices and worths of both rule players in whole hands, as an earlier look-ahead made them target by target."""
    hand = json.loads(line)
    state = rules.game("mahjong", preset=hand["preset"]).new_state(hand["seed"])
    for action, reason, worth, weighted_action, weighted_reason, weighted_worth in hand["choices"]:
        view = state.view(state.to_act[0])
        assert mahjong.rule_choice(view) == (action, reason, pytest.approx(worth, rel=1e-9))
        weighted = mahjong.acceptance_weighted_choice(view)
        assert weighted == (weighted_action, weighted_reason, pytest.approx(weighted_worth, rel=1e-9))
        state.apply(view.seat, action)
    assert state.terminal


# ---------------------------------------------------------------------------------------------------------- dangers


def test_what_nobody_can_wait_for_is_safe() -> None:
    """A discard that all let pass, and an honour of which every other copy lies open."""
    state = GAME.new_state(5)
    while True:
        seat = state.to_act[0]
        view = state.view(seat)
        events = state.events(seat)
        if view.phase == "turn" and sum(e.startswith("play") for e in events) > 30 and view.asked:
            break
        action = next(a for a in state.legal(seat) if GAME.notation(int(a)).startswith(("pass", "play")))
        state.apply(seat, int(action))
    dangers = mahjong.dangers(view)
    plays = [e.split() for e in events if e.startswith("play")]
    last = INDEX[plays[-1][2]]
    since = {seat_ for _, seat_, _ in plays[-3:]}
    assert len(since) == 3 and dangers[last] < dangers.max()
    table = view.to_json()
    shown = np.bincount([INDEX[t] for seat_ in table["discards"] for t in seat_], minlength=34) + counts(view)
    for tile in range(27, 34):
        if shown[tile] == 4:
            assert dangers[tile] == 0
    assert (dangers >= 0).all() and dangers.max() < 16


def test_melds_of_an_opponent_make_discards_dearer() -> None:
    discards = [["F1"] * 2, ["F2", "F3", "W1", "B9", "B2", "J1"], ["F3", "F4"], ["F4", "J2"]]
    quiet = mahjong.dangers(turn(WAITS_FOR_B7, discards=discards))
    chows = [{"kind": "chi", "tile": tile, "claimed": tile} for tile in ("T3", "T5", "T8")]
    loud = mahjong.dangers(turn(WAITS_FOR_B7, discards=discards, melds=[[], chows, [], []]))
    bamboo, dot = INDEX["T2"], INDEX["B4"]
    assert loud[bamboo] > quiet[bamboo] and loud[bamboo] > loud[dot]
