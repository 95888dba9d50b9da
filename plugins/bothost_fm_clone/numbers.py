"""Numbers that features of candidates spell out: "keeps 3 cards" is one value of the number of cards kept.

A feature says nothing of its neighbours: that a player likes to keep two cards does not tell that one card is even
better. With few hands a player's likings are found sooner along such a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from bothost.rules import doudizhu
from bothost.training.factorization import FloatArray
from bothost_fm_clone import attributes, mahjong
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.sight import sight
from bothost_fm_clone.words import RANKS, counted, move_words

MIDDLE = 7
"""The rank of Dou Dizhu, counted from 0, that is neither high nor low: a 10."""
LOST = -20
"""Stands for less than 0 %."""
HIGH, JOKERS = 11, 13
"""The lowest high rank, which is the ace, and the first joker."""


@cache
def numbers(game: str) -> FloatArray:
    """float32, shape (features of candidates, numbers): what each feature adds to each number."""
    known = {name: index for index, name in enumerate(sight(game).choices)}
    made = numbers_of(game)
    out = np.zeros((len(known), len(made)), np.float32)
    for column, number in enumerate(made.values()):
        for name, value in number.items():
            out[known[name], column] = value
    return out


@cache
def numbers_of(game: str) -> Mapping[str, Mapping[str, float]]:
    """What each number is called, and what features add to it, by their names."""
    return {"doudizhu": _doudizhu, "othello": _othello, "mahjong": _mahjong}[game]()


def _doudizhu() -> Mapping[str, Mapping[str, float]]:
    kept = {f"keeps {counted(n, 'card')}": n for n in range(1, 21)}
    plays = {f"keeps {counted(n, 'play')}": n for n in range(1, 16)}
    values = {name: n for n, name in enumerate(attributes.DOUDIZHU_VALUES, attributes.LEAST_VALUE)}
    behind = dict(zip(attributes.DOUDIZHU_JUDGEMENTS[:-1], attributes.POINTS_BEHIND, strict=True))
    lowest = {f"plays {RANKS.get(rank, rank)} as the lowest rank": n for n, rank in enumerate(doudizhu.RANKS, 1)}
    # Of a rank with several cards, each number of copies up to the greatest is kept.
    ranks = [(n, rank * copies) for n, rank in enumerate(doudizhu.RANKS) for copies in range(1, 5)]
    ranks = [(n, cards) for n, cards in ranks if len(cards) == 1 or n < JOKERS]
    strength = {f"keeps {move_words(cards)}": n - MIDDLE for n, cards in ranks}
    high = {f"keeps {move_words(cards)}": 1.0 for n, cards in ranks if n >= HIGH}
    return {
        "number of cards kept": kept,
        "number of plays kept": plays,
        "value of the hand kept": values,
        "lowest rank played": lowest,
        "strength of the cards kept": strength,
        "number of high cards kept": high,
        f"points behind {attributes.LIKED}": behind,
    }


def _othello() -> Mapping[str, Mapping[str, float]]:
    replies = {f"leaves the opponent {n} repl{'ies' if n != 1 else 'y'}": n for n in range(25)}
    turned = {f"turns {counted(n, 'disc')}": n for n in range(attributes.MOST_TURNED + 1)}
    open_ = {f"has {counted(n, 'disc')} beside empty squares": n for n in range(attributes.MOST_OPEN + 1)}
    own = encoding("othello")
    kinds = [
        [square for square, group in zip(own.classes, own.groups, strict=True) if group == kind]
        for kind in range(len(attributes.ORBITS) - 1)  # the last one places no disc
    ]
    of_kinds = {
        f"squares that {words}: {kind.removeprefix('plays on ')}": {
            f"after it, {who} {square}": 1.0 for square in squares
        }
        for kind, squares in zip(attributes.ORBITS[:-1], kinds, strict=True)
        for who, words in (("holds", "it holds"), ("the opponent holds", "the opponent holds"))
    }
    amounts = dict(zip(attributes.BEHIND, attributes.DISCS_BEHIND, strict=True))
    behind = {
        f"discs behind the best {what}": {f"{words} the best {what}": discs for words, discs in amounts.items()}
        for what in (*attributes.JUDGED, *attributes.JUDGED_TWICE)
    }
    return {
        "number of replies": replies,
        "number of discs turned": turned,
        "number of discs beside empty squares": open_,
        **of_kinds,
        **behind,
    }


def _mahjong() -> Mapping[str, Mapping[str, float]]:
    costs = mahjong.bins(mahjong.COSTS, "may cost points")
    made = {"points that it may cost": {name: float(n) for n, name in enumerate(costs)}}
    for estimate in mahjong.ESTIMATES:
        shares = mahjong.bins(mahjong.RATIOS, "keeps a share of the best worth")
        needed = [f"then needs {mahjong.few(n, 'tile')}" for n in range(7)]
        of_estimate: dict[str, tuple[Sequence[str], Sequence[float]]] = {
            "share of the best worth": (shares, range(len(shares))),
            "number of tiles needed": (needed, range(len(needed))),
            "points aimed at": ([f"aims at {least} points" for least in mahjong.POINTS], mahjong.POINTS),
        }
        of_estimate |= {
            f"percent of the best {what}": (mahjong.percents(what), (LOST, *mahjong.PERCENTS))
            for what in mahjong.COMPARED
        }
        for number, (names, values) in of_estimate.items():
            named = (f"{name} {estimate}" for name in names)
            made[f"{number} {estimate}"] = dict(zip(named, map(float, values), strict=True))
    return made
