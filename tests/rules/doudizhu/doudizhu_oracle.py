"""Dou Dizhu said slowly and obviously: what a play is, what beats what, what a hand scores.

Shares nothing with the native core: cards are strings, plays are recognised from counts, legal plays are found by
trying every subset of a hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

RANKS = "3456789TJQKA2BR"
MIN_CHAIN = {1: 5, 2: 3, 3: 2, 4: 2}


class Reading(NamedTuple):
    """One way to read cards as a play: plays of one kind and length compare by rank."""

    kind: str
    length: int
    rank: int


def _runs(counts: Counter[int], width: int) -> Iterator[tuple[int, int]]:
    """(start, length) of every run of ranks 3..A with at least ``width`` cards each."""
    for start in range(12):
        for length in range(1, 12 - start + 1):
            if all(counts[r] >= width for r in range(start, start + length)):
                yield start, length


def _kickers_ok(kickers: Counter[int], start: int, length: int, rules: Mapping[str, Any]) -> bool:
    if any(start <= r < start + length for r in kickers):
        return False
    if max(kickers.values()) > 1 and not rules["same_rank_kickers"]:
        return False
    if max(kickers.values()) > 3 and not rules["bomb_kickers"]:
        return False
    if kickers[13] and kickers[14] and not rules["rocket_kickers"]:
        return False
    beside = [r for r in (start - 1, start + length) if 0 <= r < 12]
    return length == 1 or rules["neighbour_kickers"] or all(kickers[r] < 3 for r in beside)


def readings(cards: str, rules: Mapping[str, Any]) -> set[Reading]:
    """Every way to read these cards as a play."""
    counts = Counter(RANKS.index(c) for c in cards)
    total, top = len(cards), max(counts.values(), default=0)
    found: set[Reading] = set()
    if set(counts) == {13, 14} and total == 2:
        found.add(Reading("rocket", 1, 13))
    if len(counts) == 1:
        found.add(Reading({1: "solo", 2: "pair", 3: "trio", 4: "bomb"}[top], 1, min(counts)))
    for start, length in _runs(counts, 1):
        for width in (1, 2, 3, 4):
            if length >= MIN_CHAIN[width] and total == width * length == sum(
                min(counts[r], width) for r in range(start, start + length)
            ):
                name = {1: "solo_chain", 2: "pair_chain", 3: "trio_chain", 4: "shuttle"}[width]
                if width < 4 or rules["shuttles"]:
                    found.add(Reading(name, length, start))
    for width, names in ((3, ("trio", "plane")), (4, ("quad", "shuttle"))):
        bodies = [*_runs(counts, width), *([(12, 1)] if counts[12] >= width else [])]
        for start, length in bodies:
            kickers = counts - Counter({r: width for r in range(start, start + length)})
            if not kickers:
                continue
            slots = length if width == 3 else 2 * length
            name = names[length > 1]
            if name == "shuttle" and (not rules["shuttles"] or max(kickers.values()) > 2):
                continue
            left = total - width * length
            distinct = len(kickers) == left
            if left == slots and _kickers_ok(kickers, start, length, rules) and (name != "shuttle" or distinct):
                found.add(Reading(f"{name}_solo", length, start))
            clear = all(not start <= r < start + length for r in kickers)
            if left == 2 * slots and clear and all(n == 2 for n in kickers.values()):
                found.add(Reading(f"{name}_pair", length, start))
    return found


def beats(a: Reading, b: Reading) -> bool:
    """Whether play ``a`` beats play ``b``."""
    if "rocket" in (a.kind, b.kind):
        return b.kind != "rocket"
    if a.kind == "bomb" and b.kind != "bomb":
        return True
    return a[:2] == b[:2] and a.rank > b.rank


def legal(hand: str, last: Reading | None, rules: Mapping[str, Any]) -> set[tuple[str, Reading]]:
    """Every (sorted cards, reading) that may be played on ``last``; passing is ("", …) and not listed."""
    counts = Counter(hand)
    out = set()
    ranks = [r for r in RANKS if counts[r]]
    for chosen in product(*(range(counts[r] + 1) for r in ranks)):
        cards = "".join(r * n for r, n in zip(ranks, chosen, strict=True))
        out |= {(cards, r) for r in readings(cards, rules) if cards and (last is None or beats(r, last))}
    return out


def fewest_plays(hand: str, rules: Mapping[str, Any], memo: dict[str, int]) -> int:
    """Least number of plays that empty the hand, by trying every play that holds its lowest card."""
    if not hand:
        return 0
    if hand not in memo:
        best = len(hand)
        for cards, _ in legal(hand, None, rules):
            if cards[0] == hand[0]:
                rest = Counter(hand) - Counter(cards)
                best = min(best, 1 + fewest_plays("".join(sorted(rest.elements(), key=RANKS.index)), rules, memo))
        memo[hand] = best
    return memo[hand]


def score(landlord: int, plays: Sequence[tuple[int, str]], stake: int, rules: Mapping[str, Any]) -> tuple[float, ...]:
    """Scores of a finished hand from its plays (seat, cards; "" passes); the last play emptied a hand."""
    winner = plays[-1][0]
    points = 1.0
    if rules["scoring"] == "points":
        points = rules["base"] * stake
        for _, cards in plays:
            if {r.kind for r in readings(cards, rules)} & {"bomb", "rocket"} if cards else False:
                points *= rules["bomb_factor"]
        played = Counter(seat for seat, cards in plays if cards)
        spring = winner == landlord and len(played) == 1
        anti_spring = winner != landlord and played[landlord] == 1
        if spring or anti_spring:
            points *= rules["spring_factor"]
    factor = 2 if rules["landlord_double"] else 1
    sign = 1 if winner == landlord else -1
    return tuple(sign * points * factor if seat == landlord else -sign * points for seat in range(3))
