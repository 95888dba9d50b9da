"""The figures of a match, per game, as in ``bothost arena --json``.

Intervals are over deals, not over hands: the lineups of one deal share its cards and are not independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from bothost.arena.lineup import Lineup, letter
from bothost.arena.match import DealResult, HandResult
from bothost.messages import Json
from bothost.training.statistics import mean_ci95, share_ci95


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def win(mine: float, theirs: float) -> float:
    """1 for a win, 0 for a loss, 0.5 for a draw."""
    return 0.5 if mine == theirs else float(mine > theirs)


def sat(deal: DealResult, seats: Sequence[Lineup], who: int) -> Iterator[tuple[HandResult, int]]:
    """The hands of a deal, each with every seat that a contestant had in it."""
    for hand, lineup in zip(deal.hands, seats, strict=True):
        yield from ((hand, seat) for seat, sitting in enumerate(lineup) if sitting == who)


def mean_return(deal: DealResult, seats: Sequence[Lineup], who: int) -> float:
    """A contestant's mean score on a deal."""
    return fmean(hand.returns[seat] for hand, seat in sat(deal, seats, who))


def common(deals: Sequence[DealResult], contestants: int) -> Json:
    """Figures that every game has."""
    hands = [hand for deal in deals for hand in deal.hands]
    names = {letter(who): who for who in range(contestants)}
    moves = {name: sum(hand.decisions[who] for hand in hands) for name, who in names.items()}
    seconds = {name: sum(hand.seconds[who] for hand in hands) for name, who in names.items()}
    return {
        "deals": len(deals),
        "hands": len(hands),
        "ms_per_move": {name: 1000.0 * seconds[name] / moves[name] if moves[name] else None for name in names},
        "illegal": {name: sum(hand.illegal[who] for hand in hands) for name, who in names.items()},
        "late": {name: sum(hand.late[who] for hand in hands if hand.late) for name, who in names.items()},
    }


def duel_score(deal: DealResult, seats: Sequence[Lineup]) -> float:
    """Contestant A's share of wins on a deal; a draw counts half."""
    return sum(
        win(hand.returns[lineup.index(0)], hand.returns[lineup.index(1)])
        for hand, lineup in zip(deal.hands, seats, strict=True)
    ) / len(seats)


def duel_figures(deals: Sequence[DealResult], seats: Sequence[Lineup]) -> Json:
    """``wp`` (A's share of wins, draws half) with ``ci95``, and ``mean_lead`` with its own interval."""
    wp, ci95 = share_ci95([duel_score(deal, seats) for deal in deals])
    lead, lead_ci95 = mean_ci95([mean_return(deal, seats, 0) for deal in deals])
    return {"wp": wp, "ci95": ci95, "mean_lead": lead, "mean_lead_ci95": lead_ci95, **common(deals, 2)}


def _alone(lineup: Lineup) -> int:
    """The seat whose contestant has no other one."""
    return next(seat for seat, who in enumerate(lineup) if lineup.count(who) == 1)


class Contest(NamedTuple):
    """A hand of Dou Dizhu between two contestants as sides, as contestant A sees it."""

    as_landlord: bool
    points: float
    """The landlord's return, or its negative."""

    @classmethod
    def of(cls, hand: HandResult, lineup: Lineup) -> Contest | None:
        """None if there is no landlord, or if its contestant also holds a peasant's seat."""
        landlord = hand.final.get("landlord")
        if landlord is None or lineup.count(lineup[landlord]) > 1:
            return None
        as_landlord, points = lineup[landlord] == 0, hand.returns[landlord]
        return cls(as_landlord, points if as_landlord else -points)


def doudizhu_score(deal: DealResult, seats: Sequence[Lineup]) -> float:
    """A's share of wins on a deal.

    With bidding, the landlord's contestant may also hold a peasant's seat. Such a hand counts by the return of the
    contestant with one seat: above zero is a win.
    """
    wins = []
    for hand, lineup in zip(deal.hands, seats, strict=True):
        if (contest := Contest.of(hand, lineup)) is not None:
            wins.append(float(contest.points > 0))
            continue
        single = _alone(lineup)
        share = win(hand.returns[single], 0.0)
        wins.append(share if lineup[single] == 0 else 1.0 - share)
    return fmean(wins)


def doudizhu_figures(deals: Sequence[DealResult], seats: Sequence[Lineup]) -> Json:
    """``wp`` with ``ci95``, ``landlord_wp`` and ``peasant_wp`` (A in that role, B in the other), and ``adp``.

    ``adp`` is A's mean points per hand as a side: the landlord's return, or its negative. With three contestants
    ``agents`` has the figures of each.
    """
    contestants = 1 + max(max(lineup) for lineup in seats)
    by_deal = [
        [found for hand, lineup in zip(deal.hands, seats, strict=True) if (found := Contest.of(hand, lineup))]
        for deal in deals
    ]
    wins: dict[bool, list[float]] = {True: [], False: []}
    for contest in (contest for contests in by_deal for contest in contests):
        wins[contest.as_landlord].append(float(contest.points > 0))
    adp = [fmean(contest.points for contest in contests) for contests in by_deal if contests]
    wp, ci95 = share_ci95([doudizhu_score(deal, seats) for deal in deals])
    adp_mean, adp_ci95 = mean_ci95(adp) if adp else (None, None)
    return {
        "wp": wp,
        "ci95": ci95,
        "landlord_wp": _mean(wins[True]),
        "peasant_wp": _mean(wins[False]),
        "adp": adp_mean,
        "adp_ci95": adp_ci95,
        **({"agents": _doudizhu_agents(deals, seats, contestants)} if contestants > 2 else {}),
        **common(deals, contestants),
    }


def _doudizhu_agents(deals: Sequence[DealResult], seats: Sequence[Lineup], contestants: int) -> Json:
    """Per contestant: mean ``score`` per hand of its own seat with ``ci95``, ``win_rate``, and that in each role."""
    agents: Json = {}
    for who in range(contestants):
        wins: dict[str, list[float]] = {"": [], "landlord": [], "peasant": []}
        for hand, seat in (found for deal in deals for found in sat(deal, seats, who)):
            landlord = hand.final.get("landlord")
            won = win(hand.returns[seat], 0.0)
            wins[""].append(won)
            if landlord is not None:
                wins["landlord" if seat == landlord else "peasant"].append(won)
        mean, ci95 = mean_ci95([mean_return(deal, seats, who) for deal in deals])
        agents[letter(who)] = {
            "score": mean,
            "ci95": ci95,
            "win_rate": _mean(wins[""]),
            "landlord_wp": _mean(wins["landlord"]),
            "peasant_wp": _mean(wins["peasant"]),
        }
    return agents


def table_score(deal: DealResult, seats: Sequence[Lineup]) -> float:
    """Contestant A's share of deals won. It wins a deal if its mean return exceeds the others' mean."""
    others = [hand.returns[seat] for who in range(1, len(seats[0])) for hand, seat in sat(deal, seats, who)]
    return win(mean_return(deal, seats, 0), fmean(others))


def table_figures(deals: Sequence[DealResult], seats: Sequence[Lineup]) -> Json:
    """Per contestant: mean ``score`` per hand with ``ci95``, and ``win_rate`` (hands in which it alone scored most)."""
    contestants = 1 + max(max(lineup) for lineup in seats)
    agents: Json = {}
    for who in range(contestants):
        mean, ci95 = mean_ci95([mean_return(deal, seats, who) for deal in deals])
        wins = [
            float(hand.returns[seat] == max(hand.returns) and hand.returns.count(hand.returns[seat]) == 1)
            for deal in deals
            for hand, seat in sat(deal, seats, who)
        ]
        agents[letter(who)] = {"score": mean, "ci95": ci95, "win_rate": _mean(wins)}
    return {"agents": agents, **common(deals, contestants)}


LEAD_BOUND = 32.0
"""Leads of a deal are clipped here, in points, to become scores of the sequential test."""


def adjusted_mean(deal: DealResult, seats: Sequence[Lineup], who: int) -> float:
    """A contestant's mean score on a deal, less its luck."""
    return fmean(hand.returns[seat] - hand.luck[seat] for hand, seat in sat(deal, seats, who))


def adjusted_lead(deal: DealResult, seats: Sequence[Lineup]) -> float:
    """Contestant A's adjusted points a hand. Of two contestants the one that sits alone counts in every lineup."""
    if max(max(lineup) for lineup in seats) > 1:
        return adjusted_mean(deal, seats, 0)
    leads = []
    for hand, lineup in zip(deal.hands, seats, strict=True):
        seat = _alone(lineup)
        points = hand.returns[seat] - hand.luck[seat]
        leads.append(points if lineup[seat] == 0 else -points)
    return fmean(leads)


def adjusted_score(deal: DealResult, seats: Sequence[Lineup]) -> float:
    """``adjusted_lead`` as a score within [0, 1]; 0.5 is a draw."""
    lead = adjusted_lead(deal, seats)
    return 0.5 + max(-LEAD_BOUND, min(LEAD_BOUND, lead)) / (2 * LEAD_BOUND)


def adjusted_figures(deals: Sequence[DealResult], seats: Sequence[Lineup]) -> Json:
    """Like ``mahjong_figures``. Per contestant ``luck_adjusted``: its adjusted ``score`` per hand with ``ci95``.

    Of two contestants also ``adjusted_lead`` with ``adjusted_lead_ci95``.
    """
    figures = mahjong_figures(deals, seats)
    for who, agent in enumerate(figures["agents"].values()):
        mean, ci95 = mean_ci95([adjusted_mean(deal, seats, who) for deal in deals])
        agent["luck_adjusted"] = {"score": mean, "ci95": ci95}
    if len(figures["agents"]) == 2:
        lead, lead_ci95 = mean_ci95([adjusted_lead(deal, seats) for deal in deals])
        figures.update(adjusted_lead=lead, adjusted_lead_ci95=lead_ci95)
    return figures


class Settlement(NamedTuple):
    """How a hand of Chinese Official mahjong ended, derived from its scores."""

    winner: int
    discarder: int | None
    """None: self-drawn."""
    fan: int


def settlement(returns: Sequence[float]) -> Settlement | None:
    """Winner, discarder and fan of a hand; None if no seat won.

    A self-drawn win of f fan takes 8 + f from each seat. A win on a discard takes 8 + f from the discarder and 8 from
    the others. So the scores identify the win. After a false win (one pays 10 to each) no seat won.
    """
    winner = max(range(len(returns)), key=lambda seat: returns[seat])
    losers = [seat for seat in range(len(returns)) if seat != winner]
    if returns[winner] <= 0 or any(returns[seat] >= 0 for seat in losers):
        return None
    most = min(losers, key=lambda seat: returns[seat])
    if all(returns[seat] == returns[most] for seat in losers):
        return Settlement(winner, None, round(-returns[most] - 8))
    return Settlement(winner, most, round(-returns[most] - 8))


def mahjong_figures(deals: Sequence[DealResult], seats: Sequence[Lineup]) -> Json:
    """Like ``table_figures``, with ``win_rate`` and ``deal_in_rate`` per hand, and ``fan_per_win``."""
    figures = table_figures(deals, seats)
    ended = [
        (lineup, settlement(hand.returns)) for deal in deals for hand, lineup in zip(deal.hands, seats, strict=True)
    ]
    for who, (name, agent) in enumerate(figures["agents"].items()):
        hands = sum(lineup.count(who) for lineup, _ in ended)
        won = [end.fan for lineup, end in ended if end is not None and lineup[end.winner] == who]
        dealt_in = sum(
            end is not None and end.discarder is not None and lineup[end.discarder] == who for lineup, end in ended
        )
        agent["win_rate"] = len(won) / hands
        agent["deal_in_rate"] = dealt_in / hands
        agent["fan_per_win"] = _mean(won)
        agent["illegal"] = figures["illegal"][name]
    return figures


Score = Callable[[DealResult, Sequence[Lineup]], float]
Figures = Callable[[Sequence[DealResult], Sequence[Lineup]], Json]


def figures_for(game: str, seats: Sequence[Lineup], *, luck_adjusted: bool = False) -> tuple[Score, Figures]:
    """Return the functions that score a game's deals for the sequential test, and compute its figures."""
    if luck_adjusted:
        return adjusted_score, adjusted_figures
    if game == "doudizhu":
        return doudizhu_score, doudizhu_figures
    if game == "mahjong":
        return table_score, mahjong_figures
    if len(seats[0]) == 2:
        return duel_score, duel_figures
    return table_score, table_figures
