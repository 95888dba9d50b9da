"""Derived features: situations of a position, and attributes of a candidate.

All depend on the base features and the legal classes only, so that logged decisions need nothing else. They compare
what a person would compare: the cards of a rank with the played ones, a candidate with the other candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from bothost.rules import doudizhu, othello
from bothost.training.factorization import IntArray, Samples, SparseRows
from bothost_fm_clone.words import KINDS, counted
from bothost_fm_clone.words import RANKS as RANK_WORDS

BoolMatrix = npt.NDArray[np.bool_]
COUNTS = (1, 2, 3, 5, 8)
"""Upper bounds of the bins of hand counts."""
RANKS = 15
LEAVES = 346
"""Features of an afterstate (see ``encode``)."""
# First indices of the parts of the block ``move_types`` (see ``encode``).
HOLDS, LEADS, BEATS_NEXT, BEATS_PREVIOUS, NEXT_HAS, PREVIOUS_HAS, ROLE = 0, 308, 617, 618, 927, 947, 967


def _few(who: str) -> list[str]:
    names = [f"{who} has {counted(n, 'card')} left" for n in COUNTS[:3]]
    return [*names, f"{who} has 4 or 5 cards left", f"{who} has 6 to 8 cards left"]


DOUDIZHU_SITUATIONS = (
    "the partner's play leads",
    "an enemy's play leads",
    "an enemy plays next",
    *_few("the closest enemy"),
    *_few("the partner"),
)
EMPTY = (50, 40, 30, 20, 12, 6)
OTHELLO_SITUATIONS = tuple(f"fewer than {n} squares are empty" for n in EMPTY)
DOUDIZHU_RELATIONS = (
    "is the lowest of its kind",
    "is the second lowest of its kind",
    "is the highest of its kind at hand",
    "keeps the fewest plays",
    "keeps one play more than the best",
    "keeps two plays more than the best",
    "splits a pair",
    "splits a trio",
    "splits a bomb",
)
LEAST_VALUE, MOST_VALUE = -90, 20
DOUDIZHU_VALUES = tuple(f"keeps a hand worth {n} points" for n in range(LEAST_VALUE, MOST_VALUE + 1))
"""By ``bothost.rules.doudizhu.hand_value``, rounded."""
POINTS_BEHIND = (*(n / 2 for n in range(41)), *map(float, range(22, 31, 2)), 35.0, 40.0, 50.0, 60.0)
"""Differences that have a feature. Others count as the nearest."""
LIKED = "the best by the rule player's judgement"
DOUDIZHU_JUDGEMENTS = (
    f"is {LIKED}",
    *(f"is {points:g} point{'s' * (points != 1)} behind {LIKED}" for points in POINTS_BEHIND[1:]),
    "cannot be beaten, and leaves one play",
)
"""Without what the rule player adds for a certain win. Candidates that empty the hand are not compared with others."""
OTHELLO_RELATIONS = (
    "leaves the fewest replies",
    "leaves the second fewest replies",
    "leaves the most replies",
    "turns the fewest discs",
    "turns the most discs",
    "has the fewest discs beside empty squares",
    "has the second fewest discs beside empty squares",
    "has the most discs beside empty squares",
)
PARTS = {
    "moves": "mobility",
    "discs beside empty squares": "frontier",
    "corners": "corners",
    "edge discs that can never turn": "stability",
    "discs beside empty corners": "danger",
    "discs on edges": "edges",
    "discs": "greed",
}
"""What the rule player of Othello judges a position by, in words, and its names in ``othello.WEIGHTS``."""
UNUSED = {"edges": 100, "greed": 1000}
"""Weights of the parts that the rule player leaves out."""
_WEIGHTS = {**othello.WEIGHTS, **UNUSED}
_PLIES = {"one move": 1, "two moves": 2, "three moves": 3}
Judgement = tuple[int, Mapping[str, int]]
JUDGED: Mapping[str, Judgement] = {
    **{f"by a look-ahead of {moves}": (plies, othello.WEIGHTS) for moves, plies in _PLIES.items()},
    **{f"in {words}": (1, dict.fromkeys(_WEIGHTS, 0) | {part: _WEIGHTS[part]}) for words, part in PARTS.items()},
}
"""What a candidate of Othello is judged by: plies, and weights."""
JUDGED_TWICE: Mapping[str, Judgement] = {
    f"by a look-ahead of {moves} that counts {words} more": (
        plies,
        {**othello.WEIGHTS, part: othello.WEIGHTS[part] + _WEIGHTS[part]},
    )
    for moves, plies in _PLIES.items()
    if plies > 1
    for words, part in PARTS.items()
}
"""The same where one part counts twice as much, or is no longer left out. A player who goes by other weights than the
rule player also expects other replies."""
DISCS_BEHIND = (*(n / 2 for n in range(10)), *map(float, range(5, 13)), 14.0, 16.0, 20.0)
"""Differences that have a feature. Others count as the nearest."""
BEHIND = ("is", *(f"is {discs:g} disc{'s' * (discs != 1)} behind" for discs in DISCS_BEHIND[1:]))
OTHELLO_JUDGEMENTS, OTHELLO_JUDGED_TWICE = (
    tuple(f"{behind} the best {what}" for what in judged for behind in BEHIND) for judged in (JUDGED, JUDGED_TWICE)
)
MOST_TURNED, MOST_OPEN = 12, 20
ORBITS = (
    "plays on a corner",
    "plays on an edge square beside a corner",
    "plays on an edge square next but one to a corner",
    "plays on an edge square in the middle",
    "plays on the square diagonal to a corner",
    "plays on a square of the second ring beside that",
    "plays on a square of the second ring in the middle",
    "plays on a corner of the third ring",
    "plays on a square of the third ring in the middle",
    "plays on a square of the centre",
    "places no disc",
)
"""Kinds of squares, ordered as ``Encoding.groups``. Rotations and reflections of the board map a kind to itself."""


@cache
def doudizhu_classes() -> tuple[tuple[str, ...], npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """(words, table, groups, bodies) of the classes.

    ``table`` (classes, 3): the indices into ``words`` of a class's kind, rank and length. ``groups`` (classes,): the
    group by kind and length. ``bodies`` (classes, 2): the rank and count of a body of equal cards, (-1, 0) for others.
    """
    names = doudizhu.abstract_names()
    class_of = doudizhu.abstract_map()
    kinds: dict[str, int] = {}
    groups: dict[tuple[str, int], int] = {}
    rows, group, body = [], [], []
    for index, name in enumerate(names):
        move = doudizhu.move(int(np.argmax(class_of == index)))
        kind = str(move.kind)
        cards = [card for card in name if card in doudizhu.RANKS]
        rank = doudizhu.RANKS.index(cards[0]) if cards else -1
        rows.append((kinds.setdefault(kind, len(kinds)), rank, len(name) if index else 0))
        group.append(groups.setdefault((kind, len(name)), len(groups)))
        equal = bool(cards) and len(set(cards)) == 1
        body.append((rank, len(cards)) if equal else (-1, 0))
    table = np.array(rows, np.int32)
    words = [KINDS[kind] for kind in kinds]
    words += [f"plays {RANK_WORDS.get(rank, rank)} as the lowest rank" for rank in doudizhu.RANKS]
    words += ["plays no card", *(f"plays {counted(n, 'card')}" for n in range(1, 21))]
    table[:, 1] = np.where(table[:, 1] >= 0, table[:, 1] + len(kinds), -1)
    table[:, 2] += len(kinds) + RANKS
    return tuple(words), table, np.array(group, np.int32), np.array(body, np.int32)


def doudizhu_situations(known: BoolMatrix) -> BoolMatrix:
    """bool, shape (positions, situations), for positions with these base features."""
    landlord, after, before = known[:, ROLE], known[:, ROLE + 1], known[:, ROLE + 2]
    beats_next, beats_previous = known[:, BEATS_NEXT], known[:, BEATS_PREVIOUS]
    partner = (after & beats_next) | (before & beats_previous)
    next_has, previous_has = (_number(known[:, start : start + 20]) for start in (NEXT_HAS, PREVIOUS_HAS))
    enemy = np.where(after, previous_has, np.where(before, next_has, np.minimum(next_has, previous_has)))
    friend = np.where(after, next_has, np.where(before, previous_has, 99))
    columns = [partner, (beats_next | beats_previous) & ~partner, landlord | before]
    for count in (enemy, friend):
        least = 0
        for most in COUNTS:
            columns.append((count > least) & (count <= most))
            least = most
    return np.stack(columns, axis=1)


def doudizhu_relations(known: BoolMatrix, legal: SparseRows, leaves: SparseRows) -> BoolMatrix:
    """bool, shape (candidates, relations). ``known``: base features of each position."""
    _, _, group, body = doudizhu_classes()
    row, cls = legal.row_of, legal.items
    kind = row.astype(np.int64) * (group.max() + 1) + group[cls]
    place, count = _place(kind)
    several = count > 1
    plays = _plays(leaves)
    fewest = np.full(len(legal), 99)
    np.minimum.at(fewest, row, plays)
    more = plays - fewest[row]
    held = np.zeros((len(known), RANKS), np.int64)
    for found in _copies():
        held += np.where(found >= 0, known[:, np.maximum(found, 0)], False)
    rank, copies = body[cls].T
    own = np.where(rank >= 0, held[row, np.maximum(rank, 0)], 0)
    rest = (own > copies) & (rank >= 0)
    columns = [several & (place == 0), several & (place == 1), several & (place == count - 1)]
    columns += [more == n for n in range(3)]
    columns += [rest & (own == n) for n in (2, 3, 4)]
    return np.stack(columns, axis=1)


def doudizhu_values(leaves: SparseRows) -> IntArray:
    """int32, shape (candidates,): what the rest of the hand is worth, as an index into ``DOUDIZHU_VALUES``."""
    known = leaves.flags(LEAVES)
    held = np.zeros((len(leaves), RANKS), np.int8)
    for found in _copies():
        held += np.where(found >= 0, known[:, np.maximum(found, 0)], False)
    hands, of_hands = np.unique(held, axis=0, return_inverse=True)
    values = [doudizhu.hand_value("".join(map(str.__mul__, doudizhu.RANKS, hand))) for hand in hands.tolist()]
    rounded = np.clip(np.rint(values), LEAST_VALUE, MOST_VALUE).astype(np.int32) - LEAST_VALUE
    return rounded[of_hands.reshape(-1)]


def doudizhu_judgements(samples: Samples) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """int32, shape (candidates,): the place in ``POINTS_BEHIND``. bool: whether a candidate wins for certain."""
    row = samples.legal.row_of
    points = doudizhu.judgements(samples.features.arrays, samples.legal.arrays)
    empties = points >= doudizhu.LAST_PLAY
    certain = ~empties & (points >= doudizhu.CERTAIN_WIN / 2)
    points = points - doudizhu.CERTAIN_WIN * certain
    best = np.full(len(samples), -np.inf, np.float32)
    np.maximum.at(best, row[~empties], points[~empties])
    behind = np.where(empties, 0.0, best[row] - points)
    return _nearest(behind, POINTS_BEHIND), certain


def _nearest(values: npt.NDArray[np.floating], among: Sequence[float]) -> IntArray:
    """The place of the nearest of these ascending numbers."""
    between = np.convolve(among, [0.5, 0.5], "valid")
    found: IntArray = np.digitize(values, between, right=True).astype(np.int32)
    return found


@cache
def _copies() -> tuple[npt.NDArray[np.int64], ...]:
    """For one to four cards of a rank, the indices of the features ``holds …`` by rank; -1 if there is none."""
    names = doudizhu.abstract_names()[1:]
    first = [names.index(rank) for rank in doudizhu.RANKS]
    out = [np.array(first)]
    for copies in (2, 3, 4):
        out.append(np.array([names.index(rank * copies) if rank * copies in names else -1 for rank in doudizhu.RANKS]))
    return tuple(out)


def _plays(leaves: SparseRows) -> npt.NDArray[np.int64]:
    """For each candidate, the number of plays that empty the rest of the hand."""
    begin = 308 + 21
    found = (leaves.items >= begin) & (leaves.items < begin + 16)
    out = np.zeros(len(leaves), np.int64)
    out[leaves.row_of[found]] = leaves.items[found] - begin
    return out


def othello_situations(known: BoolMatrix) -> BoolMatrix:
    """bool, shape (positions, situations)."""
    empty = known[:, 2::3].sum(axis=1)
    return np.stack([empty < n for n in EMPTY], axis=1)


def othello_relations(
    known: BoolMatrix, legal: SparseRows, leaves: SparseRows
) -> tuple[BoolMatrix, IntArray, IntArray]:
    """bool, shape (candidates, relations); for each candidate the number of flipped discs, and of own discs beside
    empty squares."""
    row = legal.row_of
    after = leaves.flags(3 * 64 + 25)
    own, enemy, empty = (after[:, what : 3 * 64 : 3].reshape(-1, 8, 8) for what in range(3))
    replies = np.argmax(after[:, 3 * 64 :], axis=1)
    before = known[:, 1::3].sum(axis=1)
    turned = before[row] - enemy.sum(axis=(1, 2))
    beside = np.zeros_like(empty)
    padded = np.pad(empty, ((0, 0), (1, 1), (1, 1)))
    for down in range(3):
        for right in range(3):
            beside |= padded[:, down : down + 8, right : right + 8]
    open_ = (own & beside).sum(axis=(1, 2))
    columns = []
    for values, places in ((replies, (0, 1, -1)), (turned, (0, -1)), (open_, (0, 1, -1))):
        rank, last = _ranks(row, values)
        columns += [(rank == (place if place >= 0 else last)) & (last > 0) for place in places]
    return np.stack(columns, axis=1), turned.astype(np.int32), open_.astype(np.int32)


def othello_judgements(samples: Samples, judged: Iterable[Judgement]) -> IntArray:
    """int32, shape (candidates, judgements): each candidate's place among the ``BEHIND`` of each of ``judged``."""
    legal = samples.legal
    values = np.stack(
        [
            othello.judgements(samples.features.arrays, legal.arrays, depth=plies, weights=weights)
            for plies, weights in judged
        ],
        axis=1,
    )
    best = np.maximum.reduceat(values, legal.offsets[:-1])
    nearest = _nearest(best[legal.row_of] - values, DISCS_BEHIND)
    found: IntArray = nearest + len(BEHIND) * np.arange(values.shape[1], dtype=np.int32)
    return found


def _ranks(row: npt.NDArray[np.int64], values: npt.NDArray[np.integer]) -> tuple[IntArray, IntArray]:
    """The rank of each value, none below 0, among the distinct values of its row, from 0; and the row's last rank."""
    span = int(values.max(initial=0)) + 1
    distinct, place = np.unique(row * span + values, return_inverse=True)
    begin, end = (np.searchsorted(distinct // span, row, side) for side in ("left", "right"))
    return (place - begin).astype(np.int32), (end - begin - 1).astype(np.int32)


def _place(keys: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For each item its place among the items with the same key, in their order, and their number."""
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    place = np.empty(len(keys), np.int64)
    place[np.argsort(keys, kind="stable")] = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts)
    return place, counts[inverse]


def _number(flags: BoolMatrix) -> npt.NDArray[np.int64]:
    return np.where(flags.any(axis=1), flags.argmax(axis=1) + 1, 99)


def appended(
    rows: SparseRows, begin: int, more: BoolMatrix, numbers: npt.NDArray[np.integer] | None = None
) -> SparseRows:
    """Append features with indices from ``begin`` on, which no row has yet.

    Where ``more`` (rows, n) is set, the feature is its column, or the value of ``numbers`` (rows, n).
    """
    row, column = np.nonzero(more)
    item = column if numbers is None else numbers[row, column]
    items = np.concatenate([rows.items, (item + begin).astype(np.int32)])
    return SparseRows.of_items(len(rows), np.concatenate([rows.row_of, row]), items)
