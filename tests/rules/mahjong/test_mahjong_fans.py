"""Fan calculation against PyMahjongGB, which the official judge uses, and against the rule book's examples."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pytest

from bothost.rules import mahjong

MahjongGB = pytest.importorskip("MahjongGB")

WORDS = mahjong.TILES
KIND = {"chow": 1, "pung": 2, "kong": 3, "concealed kong": 4}
FANS = [name for name, _, _ in mahjong.FANS]
CHINESE = {chinese: i for i, (_, chinese, _) in enumerate(mahjong.FANS)}
CHINESE |= {"独听・边张": FANS.index("edge-wait"), "独听・嵌张": FANS.index("closed-wait")}
CHINESE |= {"独听・单钓": FANS.index("single-wait")}


@dataclass
class Hand:
    """A hand to score: ``standing`` holds the winning tile; a chow is named by its middle tile."""

    standing: list[int]
    melds: list[tuple[str, int]]
    win: int
    self_drawn: bool = False
    fourth: bool = False
    kong: bool = False
    last: bool = False
    seat: int = 0
    prevalent: int = 0
    flowers: int = 0

    def peer(self) -> dict[int, int] | None:
        """Fans by PyMahjongGB, None where it sees no winning hand. It overruns on hands that are too long."""
        assert len(self.standing) + 3 * len(self.melds) == 14
        rest = list(self.standing)
        rest.remove(self.win)
        names = {"chow": ("CHI", 1), "pung": ("PENG", 1), "kong": ("GANG", 1), "concealed kong": ("GANG", 0)}
        packs = tuple((names[kind][0], WORDS[tile], names[kind][1]) for kind, tile in self.melds)
        try:
            fans = MahjongGB.MahjongFanCalculator(
                packs,
                tuple(WORDS[t] for t in rest),
                WORDS[self.win],
                self.flowers,
                self.self_drawn,
                self.fourth,
                self.kong,
                self.last,
                self.seat,
                self.prevalent,
                True,
            )
        except TypeError as error:
            assert "NOT_WIN" in str(error)
            return None
        return {CHINESE[name]: count for _, count, name, _ in fans}


def score(hands: list[Hand]) -> list[dict[int, int] | None]:
    """Fans by the native core."""
    standing = np.zeros((len(hands), 34), np.uint8)
    melds = np.zeros((len(hands), 4, 2), np.uint8)
    wins = np.zeros((len(hands), 8), np.uint8)
    for i, h in enumerate(hands):
        for t in h.standing:
            standing[i, t] += 1
        for j, (kind, tile) in enumerate(h.melds):
            melds[i, j] = KIND[kind], tile
        wins[i] = h.win, h.self_drawn, h.fourth, h.kong, h.last, h.seat, h.prevalent, h.flowers
    points, times = mahjong.fan_many(standing, melds, wins)
    return [
        None if p < 0 else {int(f): int(row[f]) for f in row.nonzero()[0]} for p, row in zip(points, times, strict=True)
    ]


def worth(fans: dict[int, int]) -> int:
    return sum(mahjong.FANS[f].points * n for f, n in fans.items())


def suit(tile: int) -> int:
    return tile // 9


NUMBERS = list(range(27))
PALETTES: list[list[int]] = [
    NUMBERS,
    list(range(34)),
    list(range(9)),
    list(range(9, 18)) + list(range(27, 34)),
    list(range(18, 27)),
    [t for t in NUMBERS if t // 9 != 1],
    [10, 11, 12, 14, 16, 32],  # all green
    [10, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 25, 26, 33],  # reversible
    [t for t in NUMBERS if t % 9 < 3],
    [t for t in NUMBERS if t % 9 < 4],
    [t for t in NUMBERS if 3 <= t % 9 < 6],
    [t for t in NUMBERS if t % 9 > 5],
    [t for t in NUMBERS if t % 9 > 4],
    [t for t in NUMBERS if t % 9 in (0, 8)],
    [t for t in NUMBERS if t % 9 in (0, 8)] + list(range(27, 34)),
    list(range(27, 34)),
    [t for t in NUMBERS if t % 9 % 2],
    [t for t in NUMBERS if 2 <= t % 9 <= 6],
    [t for t in NUMBERS if t % 9 in (0, 1, 2, 6, 7, 8)] + list(range(27, 34)),
    list(range(3)) + list(range(27, 34)),
]


@dataclass
class Builder:
    """Draws winning hands, with a bias to rare fans; every draw may fail and is then repeated."""

    rng: random.Random
    left: Counter[int] = field(default_factory=Counter)

    def take(self, tiles: list[int]) -> bool:
        self.left.subtract(tiles)
        return min(self.left[t] for t in tiles) >= 0

    def sets(self, count: int) -> list[tuple[str, int]] | None:
        """Chows and pungs out of one palette, related to each other more often than chance would have it."""
        rng = self.rng
        if count == 4 and rng.random() < 0.06:
            return self.terminal_chows() if rng.random() < 0.5 else self.plain_chows()
        palette = set(rng.choice(PALETTES))
        chow_share = rng.choice([0.0, 0.3, 0.6, 1.0])
        related = rng.choice([0.0, 0.5, 0.9])
        steps = rng.choice([[0], [0, 9, 18], [1], [1, 10, 19], [2], [3, 12, 21], [6, 0], [9], [0, 3, 6, 9, 1, 2]])
        chows = [t for t in NUMBERS if t % 9 in range(1, 8) and {t - 1, t, t + 1} <= palette]
        out: list[tuple[str, int]] = []
        for _ in range(count):
            kind = "chow" if chows and rng.random() < chow_share else "pung"
            tile = rng.choice(chows if kind == "chow" else sorted(palette))
            if out and rng.random() < related:
                kind, tile = out[-1][0], (out[-1][1] + rng.choice(steps)) % 27
            if kind == "chow" and tile % 9 not in range(1, 8):
                return None
            if not self.take([tile - 1, tile, tile + 1] if kind == "chow" else [tile] * 3):
                return None
            out.append((kind, tile))
        pair = rng.choice(sorted(palette) if rng.random() < 0.8 else range(34))
        if rng.random() < 0.1:
            pair = rng.choice([4, 13, 22])
        return [*out, ("pair", pair)] if self.take([pair] * 2) else None

    def terminal_chows(self) -> list[tuple[str, int]] | None:
        """The two hands of 123 789, 123 789 and a pair of fives."""
        suits = self.rng.sample(range(3), 3)
        if self.rng.random() < 0.5:
            suits = suits[:1] * 3
        parts = [("chow", 9 * s + low) for s in suits[:2] for low in (1, 7)]
        self.take([t for _, middle in parts for t in (middle - 1, middle, middle + 1)])
        pair = 9 * suits[2] + 4
        self.take([pair] * 2)
        return [*parts, ("pair", pair)]

    def plain_chows(self) -> list[tuple[str, int]] | None:
        """Chows of all suits and a pair of honours: where hands without any fan come from."""
        suits = [*range(3), self.rng.randrange(3)]
        parts = [("chow", 9 * s + self.rng.randint(1, 7)) for s in suits]
        pair = self.rng.randrange(27, 34)
        taken = [self.take([t - 1, t, t + 1]) for _, t in parts] + [self.take([pair] * 2)]
        return [*parts, ("pair", pair)] if all(taken) else None

    def standard(self, knitted: bool) -> Hand | None:
        rng = self.rng
        loose: list[int] = []
        if knitted:
            a, b, c = rng.sample(range(3), 3)
            loose = [a, a + 3, a + 6, 9 + b, 12 + b, 15 + b, 18 + c, 21 + c, 24 + c]
            self.take(loose)
        parts = self.sets(1 if knitted else 4)
        if parts is None:
            return None
        melded = rng.choice([0.0, 0.0, 0.4, 1.0])
        kongs = rng.choice([0.0, 0.2, 1.0])
        melds: list[tuple[str, int]] = []
        for kind, tile in parts[:-1]:
            if kind == "pung" and rng.random() < kongs and self.left[tile] == 1:
                self.left[tile] = 0
                melds.append(("kong" if rng.random() < max(melded, 0.3) else "concealed kong", tile))
            elif rng.random() < melded:
                melds.append((kind, tile))
            else:
                loose += [tile - 1, tile, tile + 1] if kind == "chow" else [tile] * 3
        loose += [parts[-1][1]] * 2
        return Hand(loose, melds, rng.choice(loose))

    def special(self) -> Hand | None:
        rng = self.rng
        which = rng.randrange(5)
        if which == 0:
            palette = rng.choice(PALETTES)
            tiles = [t for t in rng.choices(palette, k=7) for _ in range(2)]
        elif which == 1:
            low = 9 * rng.randrange(3) + rng.randrange(3)
            tiles = [t for t in range(low, low + 7) for _ in range(2)]
        elif which == 2:
            orphans = [0, 8, 9, 17, 18, 26, *range(27, 34)]
            tiles = [*orphans, rng.choice(orphans)]
        elif which == 3:
            a, b, c = rng.sample(range(3), 3)
            knitted = [a, a + 3, a + 6, 9 + b, 12 + b, 15 + b, 18 + c, 21 + c, 24 + c]
            honours = rng.choice([rng.sample(range(27, 34), rng.randint(5, 7)), list(range(27, 34))])
            tiles = honours + rng.sample(knitted, 14 - len(honours))
        else:
            low = 9 * rng.randrange(3)
            tiles = [low] * 3 + list(range(low + 1, low + 8)) + [low + 8] * 3 + [rng.randrange(low, low + 9)]
        if not self.take(tiles):
            return None
        return Hand(tiles, [], rng.choice(tiles[-1:] + tiles))

    def hand(self) -> Hand:
        rng = self.rng
        while True:
            self.left = Counter({t: 4 for t in range(34)})
            kind = rng.random()
            made = self.special() if kind < 0.15 else self.standard(knitted=kind < 0.25)
            if made is not None:
                break
        made.self_drawn = rng.random() < 0.5
        made.last = rng.random() < 0.1
        once = made.standing.count(made.win) == 1
        shown = sum(abs(t - made.win) <= (k == "chow") and suit(t) == suit(made.win) for k, t in made.melds)
        if rng.random() < 0.15:
            made.kong = any("kong" in k for k, _ in made.melds) if made.self_drawn else once and not shown
        made.fourth = once and rng.random() < 0.1 and not (made.kong and not made.self_drawn)
        made.seat, made.prevalent = rng.randrange(4), rng.randrange(4)
        made.flowers = rng.choice([0, 0, 0, 1, 8])
        return made


def spoil(hand: Hand, rng: random.Random) -> Hand:
    """The hand with one standing tile exchanged: usually no winning hand any more."""
    held = Counter(hand.standing)
    for kind, tile in hand.melds:
        held.update([tile - 1, tile, tile + 1] if kind == "chow" else [tile] * (4 if "kong" in kind else 3))
    standing = list(hand.standing)
    standing[rng.randrange(len(standing))] = rng.choice([t for t in range(34) if held[t] < 4])
    return Hand(standing, hand.melds, rng.choice(standing), self_drawn=True, seat=hand.seat)


def compare(count: int, seed: int) -> Counter[int]:
    """Score ``count`` winning hands and as many spoilt ones by both; returns how often each fan counted.

    Points must always agree. Where two readings of a hand are worth the same, the rule book leaves the choice to the
    winner, and the two may name different fans: rare, and bounded here.
    """
    rng = random.Random(seed)
    builder = Builder(rng)
    seen: Counter[int] = Counter()
    other_reading = 0
    for _ in range(0, count, 5000):
        hands = [builder.hand() for _ in range(min(count, 5000))]
        for hand, ours in zip(hands, score(hands), strict=True):
            theirs = hand.peer()
            assert ours is not None and theirs is not None, hand
            assert worth(ours) == worth(theirs), (hand, ours, theirs)
            other_reading += ours != theirs
            seen.update(ours.keys())
        spoilt = [spoil(h, rng) for h in hands]
        for hand, ours in zip(spoilt, score(spoilt), strict=True):
            theirs = hand.peer()
            assert (ours is None) == (theirs is None), hand
            assert ours is None or theirs is None or worth(ours) == worth(theirs), (hand, ours, theirs)
    assert other_reading <= max(2, count // 5000)
    return seen


def test_fans_equal_those_of_the_official_judge() -> None:
    seen = compare(10_000, seed=1)
    assert len(seen) >= 78


@pytest.mark.long
def test_fans_equal_those_of_the_official_judge_on_many_hands() -> None:
    seen = compare(300_000, seed=2)
    assert [FANS[f] for f in range(len(FANS)) if seen[f] < 10] == []


def tiles(text: str) -> list[int]:
    return [WORDS.index(word) for word in text.split()]


@pytest.mark.parametrize(
    ("standing", "melds", "win", "options", "expected"),
    [
        ("W1 W1 W1 W2 W3 W4 W5 W6 W7 W8 W9 W9 W9 W5", [], "W5", {}, 88 + 2 + 1),
        ("W1 W9 T1 T9 B1 B9 F1 F2 F3 F4 J1 J2 J3 J3", [], "J3", {}, 88),
        ("W1 W4 W7 T2 T5 T8 B3 B6 B9 F1 F2 F3 F4 J1", [], "J1", {}, 24),
        ("W3 W4 W5 W6 W7 W8 T3 T4 T5 T6 T7 T8 B8 B8", [], "T8", {"self_drawn": True}, 2 + 4 + 2 + 1 + 1 + 1),
        ("B8 B8", [("chow", "W2"), ("chow", "T6"), ("pung", "F2"), ("kong", "B3")], "B8", {}, 6 + 1 + 1),
    ],
)  # fmt: skip
def test_scores_of_known_hands(standing, melds, win, options, expected) -> None:
    hand = Hand(tiles(standing), [(k, WORDS.index(t)) for k, t in melds], WORDS.index(win), **options)
    fans = score([hand])[0]
    assert fans is not None
    theirs = hand.peer()
    assert theirs is not None
    assert worth(fans) == worth(theirs) == expected


def test_a_pung_that_a_discard_completes_is_not_concealed() -> None:
    won = Hand(tiles("W2 W2 W2 T3 T3 T3 B5 B5 B5 W7 W8 W9 T9 T9"), [], WORDS.index("B5"))
    drawn = Hand(won.standing, [], won.win, self_drawn=True)
    claimed, concealed = score([won, drawn])
    assert claimed is not None and concealed is not None
    assert FANS.index("two-concealed-pungs") in claimed
    assert FANS.index("three-concealed-pungs") in concealed


def test_the_fourth_tile_is_seen_in_the_winners_own_melds() -> None:
    hand = Hand(tiles("W3 W4 W5 T4 T4 T4 B8 B8"), [("pung", WORDS.index("W5")), ("chow", WORDS.index("T2"))], 4)
    fans = score([hand])[0]
    assert fans is not None and FANS.index("last-tile") in fans


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"standing": [0] * 13}, "more than four|14 tiles"),
        ({"standing": tiles("W1 W1 W2")}, "14 tiles"),
        ({"win": 9}, "winning tile"),
        ({"melds": [("chow", 8)], "standing": [1] * 3}, "14 tiles|middle"),
        ({"seat": 4}, "wind"),
        ({"flowers": 9}, "flowers"),
    ],
)
def test_impossible_hands_are_refused(row, message) -> None:
    good = {"standing": tiles("W1 W1 W1 W2 W3 W4 W5 W6 W7 W8 W9 W9 W9 W5"), "melds": [], "win": 0}
    with pytest.raises(ValueError, match=message):
        score([Hand(**(good | row))])


def test_arrays_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="equal lengths"):
        mahjong.fan_many(np.zeros((2, 34), np.uint8), np.zeros((1, 4, 2), np.uint8), np.zeros((2, 8), np.uint8))
