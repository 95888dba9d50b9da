"""Standings of a tournament: scores with 95 % intervals, a crosstable, and the significance of differences.

All scores are shares of wins: 1 won, 0 lost, 0.5 even. Deals are the independent observations. All matches of a round
use the same deals, so a contestant's score on a deal is first averaged over its opponents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from statistics import fmean

import msgspec

from bothost.arena.figures import Score, mean_return, win
from bothost.arena.lineup import Lineup
from bothost.arena.match import DealResult
from bothost.arena.pairings import Group
from bothost.training.statistics import EQUAL, mean_half95, share_ends, share_half95

_Series = Callable[["MatchResult"], list[tuple[float, ...]]]


class MatchResult(msgspec.Struct, frozen=True):
    """A finished match."""

    round: int
    group: Group
    wins: Mapping[tuple[int, int], tuple[float, ...]]
    """For every pair (a, b), a before b in ``group``: a's share of wins over b on every deal."""
    points: Mapping[int, tuple[float, ...]]
    """For every contestant, its mean return per hand on every deal."""
    hands: int
    illegal: Mapping[int, int]
    failed: Mapping[int, int]
    late: Mapping[int, int] = {}

    def share(self, a: int, b: int) -> tuple[float, ...]:
        """The share of wins of ``a`` over ``b`` on every deal."""
        return self.wins[a, b] if (a, b) in self.wins else tuple(1.0 - value for value in self.wins[b, a])

    def score(self, who: int) -> float:
        """Mean share of wins over the others of the match."""
        others = [other for other in self.group if other != who]
        return sum(fmean(self.share(who, other)) for other in others) / len(others)


class Estimate(msgspec.Struct, frozen=True):
    """A mean with its 95 % interval; ``ci95`` is None for a single deal."""

    mean: float
    ci95: tuple[float, float] | None

    @classmethod
    def of(cls, mean: float, half: float) -> Estimate:
        """Make it from the mean and half the width of the interval."""
        return cls(mean, (mean - half, mean + half) if math.isfinite(half) else None)

    @classmethod
    def of_share(cls, mean: float, half: float) -> Estimate:
        """The same for a share of wins, whose interval ends at 0 and 1."""
        return cls(mean, share_ends(mean, half) if math.isfinite(half) else None)

    def half(self) -> float | None:
        """How far the interval reaches from the mean, to its farther end."""
        return self.ci95 and max(self.mean - self.ci95[0], self.ci95[1] - self.mean)

    def reversed(self) -> Estimate:
        """The other side's share."""
        return Estimate(1.0 - self.mean, self.ci95 and (1.0 - self.ci95[1], 1.0 - self.ci95[0]))


class Pair(msgspec.Struct, frozen=True):
    """The result of all matches between two contestants."""

    score: Estimate
    deals: int
    p_value: float
    """p-value of a two-sided t test against an even match; of a sign test if all deals ended alike."""
    p_holm: float
    """Corrected for the number of pairs (Holm 1979)."""


def match_result(
    round_: int, group: Group, seats: Sequence[Lineup], score: Score, deals: Sequence[DealResult]
) -> MatchResult:
    """Summarize a match. ``score``: scores a deal of two contestants."""
    deals = sorted(deals, key=lambda deal: deal.deal)
    points: dict[int, tuple[float, ...]] = {
        who: tuple(mean_return(deal, seats, nth) for deal in deals) for nth, who in enumerate(group)
    }
    if len(group) == 2:
        wins = {group: tuple(score(deal, seats) for deal in deals)}
    else:
        wins = {(a, b): tuple(map(win, points[a], points[b])) for a, b in combinations(group, 2)}
    hands = [hand for deal in deals for hand in deal.hands]
    return MatchResult(
        round=round_,
        group=group,
        wins=wins,
        points=points,
        hands=len(hands),
        illegal={who: sum(hand.illegal[nth] for hand in hands) for nth, who in enumerate(group)},
        failed={who: sum(hand.failed[nth] for hand in hands if hand.failed) for nth, who in enumerate(group)},
        late={who: sum(hand.late[nth] for hand in hands if hand.late) for nth, who in enumerate(group)},
    )


def scores(results: Sequence[MatchResult], who: int) -> Estimate | None:
    """Share of wins over all opponents, with equal weight for each meeting; None before the first match."""
    found = _over_rounds(
        results, who, lambda one: [one.share(who, other) for other in one.group if other != who], share_half95
    )
    return found and Estimate.of_share(*found)


def points(results: Sequence[MatchResult], who: int) -> Estimate | None:
    """Mean return per hand, in the game's points."""
    found = _over_rounds(results, who, lambda one: [one.points[who]], mean_half95)
    return found and Estimate.of(*found)


def _over_rounds(
    results: Sequence[MatchResult], who: int, of: _Series, half95: Callable[[Sequence[float]], tuple[float, float]]
) -> tuple[float, float] | None:
    """Mean and half an interval, over the deals of each round and then over rounds; None before the first match.

    Rounds have different deals, so their variances add.
    """
    rounds: dict[int, list[tuple[float, ...]]] = {}
    for result in results:
        if who in result.group:
            rounds.setdefault(result.round, []).extend(of(result))
    if not rounds:
        return None
    series = sum(len(of_round) for of_round in rounds.values())
    mean, variance = 0.0, 0.0
    for of_round in rounds.values():
        centre, half = half95([fmean(deal) for deal in zip(*of_round, strict=True)])
        weight = len(of_round) / series
        mean += weight * centre
        variance += (weight * half) ** 2
    return mean, math.sqrt(variance)


def crosstable(results: Sequence[MatchResult]) -> dict[tuple[int, int], Pair]:
    """Return (a, b) → their pair, for all a < b that have met."""
    observed: dict[tuple[int, int], dict[int, list[tuple[float, ...]]]] = {}
    for result in results:
        for a, b in combinations(sorted(result.group), 2):
            observed.setdefault((a, b), {}).setdefault(result.round, []).append(result.share(a, b))
    values = {
        pair: [fmean(deal) for of_round in rounds.values() for deal in zip(*of_round, strict=True)]
        for pair, rounds in observed.items()
    }
    p_values = {pair: p_even(shares) for pair, shares in values.items()}
    corrected = holm(p_values)
    return {
        pair: Pair(Estimate.of_share(*share_half95(shares)), len(shares), p_values[pair], corrected[pair])
        for pair, shares in values.items()
    }


def p_even(shares: Sequence[float]) -> float:
    """Two-sided p-value of "the mean is 0.5"."""
    mean, count = fmean(shares), len(shares)
    if count < 2:
        return 1.0
    if max(shares) - min(shares) < EQUAL:  # all deals ended alike: the t statistic is infinite, so use the sign test
        return 1.0 if abs(mean - 0.5) < EQUAL else 2.0 ** (1 - count)
    variance = sum((share - mean) ** 2 for share in shares) / (count - 1)
    return p_t((mean - 0.5) / math.sqrt(variance / count), count - 1)


def p_t(t: float, degrees: int) -> float:
    """Two-sided p-value of Student's t (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    theta = math.atan(abs(t) / math.sqrt(degrees))
    cos2 = math.cos(theta) ** 2
    term, total = 1.0, 1.0 if degrees > 1 else 0.0
    for k in range(3 if degrees % 2 else 2, degrees - 1, 2):
        term *= cos2 * (k - 1) / k
        total += term
    if degrees % 2:
        inside = 2.0 / math.pi * (theta + math.sin(theta) * math.cos(theta) * total)
    else:
        inside = math.sin(theta) * total
    return min(1.0, max(0.0, 1.0 - inside))


def holm(p_values: Mapping[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """Apply Holm's step-down correction, which bounds the family-wise error rate."""
    corrected: dict[tuple[int, int], float] = {}
    most = 0.0
    for rank, (pair, p_value) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        most = max(most, min(1.0, (len(p_values) - rank) * p_value))
        corrected[pair] = most
    return corrected
