"""How long logged players thought, from the rows of the bots that they played against."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import msgspec

from bothost.store.query import HandQuery, players_of
from bothost.store.reader import Timeline, iter_hands, iter_timelines, together
from bothost.store.store import Store

LEAST_MS = 100.0
"""Shorter pauses are those of the lobby and the network: no person moved in between."""
MOST_MS = 300_000.0
"""Who takes longer has gone away."""


def thinking_ms(store: Store, query: HandQuery, players: Collection[str]) -> Iterator[float]:
    """Milliseconds that these players took, one by one.

    Only hands at which everybody else is a bot of ours tell: then the time from when a bot's move left until a bot was
    asked again is the player's. ``query``: which hands; their player is added.
    """
    for player in players:
        for seats in together(iter_hands(store, msgspec.structs.replace(query, players=(player,), closed=True))):
            sat = [seated.get("player") for seated in players_of(seats[0].game.players)]
            if player in sat and len(seats) == len(sat) - 1 and all(hand.game.account != player for hand in seats):
                yield from _pauses(list(iter_timelines(store, iter(seats))))


def _pauses(timelines: list[Timeline]) -> Iterator[float]:
    """The pauses between the last move of these seats, which may be asked at once, and the next question to one."""
    turns = []
    for timeline in timelines:
        for decision in timeline.decisions:
            sent = [row.at_us for row in timeline.outcomes.get(decision.id, ()) if row.kind == "sent"]
            if decision.role == "live" and sent:
                turns.append((decision.at_us - 1000.0 * decision.elapsed_ms, min(sent)))
    last_us = -math.inf
    for asked_us, sent_us in sorted(turns):
        if LEAST_MS <= (pause := (asked_us - last_us) / 1000.0) <= MOST_MS:
            yield pause
        last_us = max(last_us, sent_us)
