"""Shanten and useful tiles against a slow oracle and against PyMahjongGB."""

from __future__ import annotations

import random
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothost.rules import mahjong

KINDS = 34
HONOURS = range(27, 34)
ORPHANS = [0, 8, 9, 17, 18, 26, *HONOURS]
KNITTED = [[a, a + 3, a + 6, 9 + b, 12 + b, 15 + b, 18 + c, 21 + c, 24 + c] for a, b, c in permutations(range(3))]
NEVER = 100
STANDARD, PAIRS, THIRTEEN, KNIT, HONOURS_KNIT = range(5)


def needed_standard(hand: list[int], melds: int) -> int:
    """Fewest tiles to add for ``melds`` melds and a pair.

    One pass over the kinds; a state is (melds begun, pair taken, chows begun at the last kind, at the one before).
    """
    states = {(0, 0, 0, 0): 0}
    for kind in range(KINDS):
        rank = kind % 9 if kind < 27 else None
        following: dict[tuple[int, int, int, int], int] = {}
        for (m, p, one, two), cost in states.items():
            if (rank is None or rank == 0) and (one or two):
                continue  # a chow does not run over the end of its suit
            for pung in range(2):
                for pair in range(2 - p):
                    for chow in range(melds - m - pung + 1 if rank is not None else 1):
                        use = one + two + chow + 3 * pung + 2 * pair
                        if use > 4 or m + pung + chow > melds:
                            continue
                        state = (m + pung + chow, p + pair, chow, one)
                        price = cost + max(0, use - hand[kind])
                        following[state] = min(following.get(state, NEVER), price)
        states = following
    return states[melds, 1, 0, 0]


def needed(hand: list[int], melds: int) -> list[int]:
    """Tiles needed for the five shapes, each by its definition."""
    return list(_needed(tuple(hand), melds))


@cache  # the same hands with one more tile are asked for by every shape
def _needed(hand: tuple[int, ...], melds: int) -> list[int]:
    out = [needed_standard(list(hand), 4 - melds), NEVER, NEVER, NEVER, NEVER]
    if melds <= 1:
        for knitted in KNITTED:
            rest = [c - (k in knitted and c > 0) for k, c in enumerate(hand)]
            missing = sum(hand[k] == 0 for k in knitted)
            out[KNIT] = min(out[KNIT], missing + needed_standard(rest, 1 - melds))
    if melds == 0:
        prices = [max(0, 2 - c) for c in hand] + [max(0, 4 - max(c, 2)) for c in hand]
        out[PAIRS] = sum(sorted(prices)[:7])
        kinds = sum(hand[k] > 0 for k in ORPHANS)
        out[THIRTEEN] = 14 - kinds - any(hand[k] > 1 for k in ORPHANS)
        out[HONOURS_KNIT] = min(14 - min(14, sum(hand[k] > 0 for k in [*knit, *HONOURS])) for knit in KNITTED)
    return out


def useful(hand: list[int], melds: int, shape: int | None) -> set[int]:
    """Kinds whose arrival lowers what is needed, by trying each."""

    def value(h: list[int]) -> int:
        return min(needed(h, melds)) if shape is None else needed(h, melds)[shape]

    now = value(hand)
    return {k for k in range(KINDS) if hand[k] < 4 and value([c + (i == k) for i, c in enumerate(hand)]) < now}


def draw(rng: random.Random, melds: int) -> list[int]:
    """Standing tiles out of a random part of the deck, so that good hands are not rare."""
    kinds = rng.sample(range(KINDS), rng.choice([6, 9, 14, 20, 34])) if rng.random() < 0.6 else list(range(KINDS))
    if rng.random() < 0.2:
        kinds = [*rng.choice(KNITTED), *HONOURS]
    deck = [k for k in kinds for _ in range(4)]
    size = 13 - 3 * melds + rng.randrange(2)
    hand = [0] * KINDS
    for k in rng.sample(deck, size):
        hand[k] += 1
    return hand


def mask(tiles: set[int]) -> int:
    return sum(1 << t for t in tiles)


def array(hand: list[int]) -> np.ndarray:
    return np.array(hand, np.uint8)


def test_distances_equal_the_oracle() -> None:
    rng = random.Random(3)
    for i in range(300):
        melds = rng.choice([0, 0, 0, 1, 2, 3, 4])
        hand = draw(rng, melds)
        assert list(mahjong.distances(array(hand), melds)) == needed(hand, melds), (i, hand, melds)


def test_useful_tiles_equal_the_oracle() -> None:
    rng = random.Random(4)
    for i in range(2):
        melds = rng.choice([0, 0, 1, 2])
        hand = draw(rng, melds)
        for shape in range(5):
            need = needed(hand, melds)[shape]
            shanten, tiles = mahjong.useful_tiles(array(hand), melds, shape)
            assert shanten == need - 1
            assert tiles == (mask(useful(hand, melds, shape)) if need < NEVER else 0), (i, hand, melds, shape)
        shanten, tiles = mahjong.useful_tiles(array(hand), melds)
        assert shanten == min(needed(hand, melds)) - 1
        assert tiles == mask(useful(hand, melds, None)), (i, hand, melds)


def test_fourteen_tiles_of_one_suit_are_looked_up_too() -> None:
    for counts in ([4, 4, 4, 2], [3, 1, 1, 1, 1, 1, 1, 2, 3], [0, 0, 0, 0, 0, 2, 4, 4, 4]):
        hand = counts + [0] * (KINDS - len(counts))
        need = needed(hand, 0)[STANDARD]
        assert mahjong.useful_tiles(array(hand), 0, STANDARD) == (
            need - 1,
            mask(useful(hand, 0, STANDARD)) if need else 0,
        )


@pytest.mark.long
def test_useful_tiles_equal_the_oracle_on_many_hands() -> None:
    rng = random.Random(5)
    for _ in range(100):
        melds = rng.choice([0, 0, 1, 2, 3, 4])
        hand = draw(rng, melds)
        for shape in range(5):
            assert mahjong.useful_tiles(array(hand), melds, shape)[1] == mask(useful(hand, melds, shape))


def test_shanten_equals_pymahjonggb() -> None:
    """Hands without four of a kind: with them the library also counts on a fifth copy, which does not exist."""
    peer = pytest.importorskip("MahjongGB")
    words = mahjong.TILES
    shapes = [
        peer.RegularShanten,
        peer.SevenPairsShanten,
        peer.ThirteenOrphansShanten,
        peer.KnittedStraightShanten,
        peer.HonorsAndKnittedTilesShanten,
    ]
    rng = random.Random(6)
    for _ in range(2000):
        hand = draw(rng, 0)
        if sum(hand) != 13 or max(hand) == 4:
            continue
        tiles = tuple(words[k] for k, c in enumerate(hand) for _ in range(c))
        for shape, function in enumerate(shapes):
            shanten, useful_tiles = function(tiles)
            ours, tiles_mask = mahjong.useful_tiles(array(hand), 0, shape)
            assert ours == shanten, (tiles, shape)
            assert tiles_mask == mask({words.index(w) for w in useful_tiles}), (tiles, shape)


@given(st.lists(st.integers(0, 33), max_size=14).filter(lambda t: max(map(t.count, t), default=0) <= 4))
@settings(max_examples=200, deadline=None)
def test_one_more_tile_lowers_the_shanten_by_at_most_one(tiles: list[int]) -> None:
    hand = [tiles.count(k) for k in range(KINDS)]
    before = min(mahjong.distances(array(hand)))
    if tiles:
        without = [c - (k == tiles[0]) for k, c in enumerate(hand)]
        assert before <= min(mahjong.distances(array(without))) <= before + 1


def test_batches_equal_single_hands() -> None:
    rng = random.Random(7)
    hands = [draw(rng, 1) for _ in range(50)]
    batch = np.array(hands, np.uint8)
    assert mahjong.shanten_many(batch, 1).tolist() == [mahjong.useful_tiles(hand, 1)[0] for hand in batch]


@pytest.mark.parametrize(
    ("counts", "melds", "message"), [([5], 0, "more than four"), ([4] * 4, 0, "at most 14"), ([1], 5, "0 to 4 melds")]
)
def test_impossible_hands_are_refused(counts, melds, message) -> None:
    hand = array(counts + [0] * (KINDS - len(counts)))
    with pytest.raises(ValueError, match=message):
        mahjong.distances(hand, melds)
    with pytest.raises(ValueError, match=message):
        mahjong.shanten_many(hand[None], melds)
