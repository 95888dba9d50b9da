"""Who sits where: the lineups in which one deal is played."""

from __future__ import annotations

from bothost.errors import UsageError
from bothost.rules.game import Game

Lineup = tuple[int, ...]
"""Contestant index per seat."""


def lineups(game: Game, contestants: int) -> tuple[Lineup, ...]:
    """The lineups of a duplicate deal. Every contestant sits in every place equally often.

    Two seats: both ways round. Dou Dizhu: one contestant is the landlord and the other both peasants, and the reverse.
    With bidding, or a landlord that the deal draws, the landlord is not known beforehand, so each contestant has each
    seat alone once. Four contestants at four seats: the four rotations.

    Raises UsageError if the game has no duplicate form for this number of contestants.
    """
    seats = game.num_seats
    if contestants == seats:
        return tuple(tuple((seat + shift) % seats for seat in range(seats)) for shift in range(seats))
    if contestants == 2 and seats == 3:
        known = game.rules.get("bidding") == "none" and game.rules.get("first") != "random"
        alone = range(1) if known else range(seats)
        return tuple(
            tuple(mine if seat == single else 1 - mine for seat in range(seats)) for single in alone for mine in (0, 1)
        )
    if contestants == 2 and seats == 4:
        return tuple(
            tuple(mine if seat == single else 1 - mine for seat in range(seats))
            for mine in (0, 1)
            for single in range(seats)
        )
    raise UsageError(
        f"{game.name} has {seats} seats: a match of {contestants} has no duplicate form",
        advice="name 2 strategies" + (f", or {seats}" if seats > 2 else ""),
    )


def letter(who: int) -> str:
    """The short name of a contestant: A … Z, AA, AB …"""
    before, last = divmod(who, 26)
    return (letter(before - 1) if before else "") + chr(ord("A") + last)
