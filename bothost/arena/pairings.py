"""The pairings of tournaments: round robin, gauntlet, Swiss and knockout, at tables of two or more.

Contestants are indices in the order of entry, favourites first. Pairings are deterministic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

Format = Literal["round-robin", "swiss", "knockout", "gauntlet"]
Group = tuple[int, ...]
"""The contestants of one match, ascending."""
Met = Mapping[frozenset[int], int]
"""Pair → number of their meetings."""
SEARCH_STEPS = 20_000
"""Pairs that the Swiss system tries before it allows a second meeting."""


class Round(NamedTuple):
    """Matches that are played at the same time, on the same deals."""

    matches: tuple[Group, ...]
    byes: tuple[int, ...] = ()


def round_robin(contestants: int, size: int) -> Round:
    """Every group of ``size`` contestants plays once."""
    return Round(tuple(combinations(range(contestants), size)))


def gauntlet(contestants: int, size: int) -> Round:
    """The first contestant plays every group of others."""
    return Round(tuple((0, *others) for others in combinations(range(1, contestants), size - 1)))


def knockout(alive: Sequence[int], size: int) -> Round:
    """Pair the top seeds with the bottom seeds. If a table cannot be filled, the top seeds have a bye.

    At tables of more than two, seeds are assigned in serpentine order. If too few for one table are left, they meet in
    pairs.
    """
    seeds = sorted(alive)
    size = size if len(seeds) >= size else 2
    tables = len(seeds) // size
    byes, playing = seeds[: len(seeds) % size], seeds[len(seeds) % size :]
    groups: list[list[int]] = [[] for _ in range(tables)]
    for start in range(0, len(playing), tables):
        row = playing[start : start + tables]
        for group, seed in zip(groups, row if start // tables % 2 == 0 else reversed(row), strict=True):
            group.append(seed)
    return Round(tuple(tuple(sorted(group)) for group in groups), tuple(byes))


def advancing(size: int) -> int:
    """Return how many of a knockout table advance: half of them."""
    return size // 2


def swiss(standing: Sequence[int], met: Met, byes: Counter[int], size: int) -> Round:
    """Pair contestants of similar standing, best first, without repeated meetings if possible.

    If a table cannot be filled, the lowest contestants with the fewest byes have a bye.
    """
    order = list(standing)
    resting = sorted(order, key=lambda who: (byes[who], -standing.index(who)))[: len(order) % size]
    order = [who for who in order if who not in resting]
    pairs = _pair(order, met) if size == 2 else None
    return Round(tuple(tuple(sorted(group)) for group in pairs or _fill(order, met, size)), tuple(sorted(resting)))


def _pair(order: Sequence[int], met: Met) -> list[Group] | None:
    """Find pairs without repeated meetings, by backtracking; None if there are none within ``SEARCH_STEPS``."""
    steps = 0

    def search(left: Sequence[int]) -> list[Group] | None:
        nonlocal steps
        if not left:
            return []
        first, others = left[0], left[1:]
        for nth, other in enumerate(others):
            steps += 1
            if steps > SEARCH_STEPS:
                return None
            if met.get(frozenset((first, other)), 0):
                continue
            rest = search([*others[:nth], *others[nth + 1 :]])
            if rest is not None:
                return [(first, other), *rest]
        return None

    return search(order)


def _fill(order: Sequence[int], met: Met, size: int) -> list[Group]:
    """Fill tables from the top of the standings, each with those whom its players have met least."""
    left, groups = list(order), []
    while left:
        group = [left.pop(0)]
        while len(group) < size:
            sitting = tuple(group)
            nearest = min(left, key=lambda who: sum(met.get(frozenset((who, other)), 0) for other in sitting))
            left.remove(nearest)
            group.append(nearest)
        groups.append(tuple(group))
    return groups
