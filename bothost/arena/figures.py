"""The figures of a match, per game, as in ``bothost arena --json``.

Intervals are over deals, not over hands: the lineups of one deal share its cards and are not independent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

from bothost.arena.lineup import Lineup, letter
from bothost.arena.match import DealResult, HandResult
from bothost.messages import Json
from bothost.training.statistics import mean_ci95


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def win(mine: float, theirs: float) -> float:
    """1 for a win, 0 for a loss, 0.5 for a draw."""
    return 0.5 if mine == theirs else float(mine > theirs)


def _ms_per_move(deals: Sequence[DealResult], who: int) -> float | None:
    moves = sum(hand.decisions[who] for deal in deals for hand in deal.hands)
    return 1000.0 * sum(hand.seconds[who] for deal in deals for hand in deal.hands) / moves if moves else None


def common(deals: Sequence[DealResult], contestants: int) -> Json:
    """Figures that every game has."""
    names = [letter(who) for who in range(contestants)]
    return {
        "deals": len(deals),
        "hands": sum(len(deal.hands) for deal in deals),
        "ms_per_move": {name: _ms_per_move(deals, who) for who, name in enumerate(names)},
        "illegal": {
            name: sum(hand.illegal[who] for deal in deals for hand in deal.hands) for who, name in enumerate(names)
        },
        "late": {
            name: sum(hand.late[who] for deal in deals for hand in deal.hands if hand.late)
            for who, name in enumerate(names)
        },
    }


# ------------------------------------------------------------------------------------------------------- two seats


def duel_score(deal: DealResult, seats: Sequence[Lineup]) -> float:
    """Contestant A's share of wins on a deal; a draw counts half."""
    return sum(
        win(hand.returns[lineup.index(0)], hand.returns[lineup.index(1)])
        for hand, lineup in zip(deal.hands, seats, strict=True)
    ) / len(seats)


def duel_lead(deal: DealResult, seats: Sequence[Lineup]) -> float:
    """Contestant A's mean return on a deal: the game's own score difference."""
    return sum(hand.returns[lineup.index(0)] for hand, lineup in zip(deal.hands, seats, strict=True)) / len(seats)


def duel_figures(deals: Sequence[DealResult], seats: Sequence[Lineup]) -> Json:
    """``wp`` (A's share of wins, draws half) with ``ci95``, and ``mean_lead`` with its own interval."""
    wp, ci95 = mean_ci95([duel_score(deal, seats) for deal in deals])
    lead, lead_ci95 = mean_ci95([duel_lead(deal, seats) for deal in deals])
    return {"wp": wp, "ci95": ci95, "mean_lead": lead, "mean_lead_ci95": lead_ci95, **common(deals, 2)}


# ------------------------------------------------------------------------------------------------------ Dou Dizhu


def _landlord_is_a(hand: HandResult, lineup: Lineup) -> bool | None:
    landlord = hand.final.get("landlord")
    return None if landlord is None else lineup[landlord] == 0


def _a_points(hand: HandResult, lineup: Lineup) -> float | None:
    """A's points as a side: the landlord's return, or its negative. None if there is no landlord."""
    landlord = hand.final.get("landlord")
    if landlord is None:
        return None
    return hand.returns[landlord] if lineup[landlord] == 0 else -hand.returns[landlord]


def _is_a_contest(hand: HandResult, lineup: Lineup) -> bool:
    landlord = hand.final.get("landlord")
    return landlord is not None and all(
        lineup[seat] != lineup[landlord] for seat in range(len(lineup)) if seat != landlord
    )


def doudizhu_score(deal: DealResult, seats: Sequence[Lineup]) -> float:
    """A's share of wins on a deal.

    With bidding, the landlord's contestant may also hold a peasant's seat. Such a hand counts by the return of the
    contestant with one seat: above zero is a win.
    """
    wins = []
    for hand, lineup in zip(deal.hands, seats, strict=True):
        if _is_a_contest(hand, lineup):
            points = _a_points(hand, lineup)
            assert points is not None
            wins.append(float(points > 0))
            continue
        single = next(seat for seat, who in enumerate(lineup) if lineup.count(who) == 1)
        share = win(hand.returns[single], 0.0)
        wins.append(share if lineup[single] == 0 else 1.0 - share)
    return sum(wins) / len(wins)


def doudizhu_figures(deals: Sequence[DealResult], seats: Sequence[Lineup]) -> Json:
    """``wp`` with ``ci95``, ``landlord_wp`` and ``peasant_wp`` (A in that role, B in the other), and ``adp``.

    ``adp`` is A's mean points per hand as a side: the landlord's return, or its negative. With three contestants
    ``agents`` has the figures of each.
    """
    contestants = 1 + max(max(lineup) for lineup in seats)
    as_landlord: list[float] = []
    as_peasants: list[float] = []
    adp: list[float] = []
    for deal in deals:
        points = []
        for hand, lineup in zip(deal.hands, seats, strict=True):
            if not _is_a_contest(hand, lineup):
                continue
            mine = _a_points(hand, lineup)
            assert mine is not None
            (as_landlord if _landlord_is_a(hand, lineup) else as_peasants).append(float(mine > 0))
            points.append(mine)
        if points:
            adp.append(sum(points) / len(points))
    wp, ci95 = mean_ci95([doudizhu_score(deal, seats) for deal in deals])
    adp_mean, adp_ci95 = mean_ci95(adp) if adp else (None, None)
    return {
        "wp": wp,
        "ci95": ci95,
        "landlord_wp": _mean(as_landlord),
        "peasant_wp": _mean(as_peasants),
        "adp": adp_mean,
        "adp_ci95": adp_ci95,
        **({"agents": _doudizhu_agents(deals, seats, contestants)} if contestants > 2 else {}),
        **common(deals, contestants),
    }


def _doudizhu_agents(deals: Sequence[DealResult], seats: Sequence[Lineup], contestants: int) -> Json:
    """Per contestant: mean ``score`` per hand of its own seat with ``ci95``, ``win_rate``, and that in each role."""
    agents: Json = {}
    for who in range(contestants):
        scores: list[float] = []
        wins: list[float] = []
        as_landlord: list[float] = []
        as_peasant: list[float] = []
        for deal in deals:
            mine = []
            for hand, lineup in zip(deal.hands, seats, strict=True):
                seat, landlord = lineup.index(who), hand.final.get("landlord")
                mine.append(hand.returns[seat])
                wins.append(win(mine[-1], 0.0))
                if landlord is not None:
                    (as_landlord if seat == landlord else as_peasant).append(wins[-1])
            scores.append(sum(mine) / len(mine))
        mean, ci95 = mean_ci95(scores)
        agents[letter(who)] = {
            "score": mean,
            "ci95": ci95,
            "win_rate": _mean(wins),
            "landlord_wp": _mean(as_landlord),
            "peasant_wp": _mean(as_peasant),
        }
    return agents


# ---------------------------------------------------------------------------------------------- more than two sides


def table_score(deal: DealResult, seats: Sequence[Lineup]) -> float:
    """Contestant A's share of deals won. It wins a deal if its mean return exceeds the others' mean."""
    mine: list[float] = []
    others: list[float] = []
    for hand, lineup in zip(deal.hands, seats, strict=True):
        for seat, who in enumerate(lineup):
            (mine if who == 0 else others).append(hand.returns[seat])
    return win(sum(mine) / len(mine), sum(others) / len(others))


def table_figures(deals: Sequence[DealResult], seats: Sequence[Lineup]) -> Json:
    """Per contestant: mean ``score`` per hand with ``ci95``, and ``win_rate`` (hands in which it alone scored most)."""
    contestants = 1 + max(max(lineup) for lineup in seats)
    agents: Json = {}
    for who in range(contestants):
        scores, wins = [], []
        for deal in deals:
            mine = []
            for hand, lineup in zip(deal.hands, seats, strict=True):
                best = max(hand.returns)
                for seat, sitting in enumerate(lineup):
                    if sitting == who:
                        mine.append(hand.returns[seat])
                        wins.append(float(hand.returns[seat] == best and hand.returns.count(best) == 1))
            scores.append(sum(mine) / len(mine))
        mean, ci95 = mean_ci95(scores)
        agents[letter(who)] = {"score": mean, "ci95": ci95, "win_rate": _mean(wins)}
    return {"agents": agents, **common(deals, contestants)}


# ---------------------------------------------------------------------------------------------- adjusted for luck

LEAD_BOUND = 32.0
"""Leads of a deal are clipped here, in points, to become scores of the sequential test."""


def adjusted_mean(deal: DealResult, seats: Sequence[Lineup], who: int) -> float:
    """A contestant's mean score on a deal, less its luck."""
    return fmean(
        hand.returns[seat] - hand.luck[seat]
        for hand, lineup in zip(deal.hands, seats, strict=True)
        for seat, sitting in enumerate(lineup)
        if sitting == who
    )


def adjusted_lead(deal: DealResult, seats: Sequence[Lineup]) -> float:
    """Contestant A's adjusted points a hand. Of two contestants the one that sits alone counts in every lineup."""
    if max(max(lineup) for lineup in seats) > 1:
        return adjusted_mean(deal, seats, 0)
    leads = []
    for hand, lineup in zip(deal.hands, seats, strict=True):
        seat = next(seat for seat, who in enumerate(lineup) if lineup.count(who) == 1)
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


# --------------------------------------------------------------------------------------------------------- mahjong


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
