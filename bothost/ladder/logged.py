"""Read the outcomes of logged hands that the ladder has not counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import sqlalchemy as sa

from bothost.ladder.outcome import Outcome, marked, teams_of
from bothost.store.models import games, rated
from bothost.store.query import players_of
from bothost.store.ratings import Contestant, Scope, hand_key
from bothost.store.reader import TOGETHER_US, LoggedHand, iter_hands, together
from bothost.store.records import IMPORT_HOST, GameRecord
from bothost.store.store import Store

PAGE = 5_000
HANDS_AT_ONCE = 300
"""Hands whose marks are looked up at once."""
MADE_UP = "generated"
"""``games.host`` of hands that our strategies played under invented names."""


class LoggedOutcomes:
    """Reads the log. ``left_out`` counts the excluded hands by reason."""

    def __init__(self, store: Store, scope: Scope) -> None:
        self._store = store
        self._scope = scope
        self.left_out: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Outcome]:
        """Yield every hand that has ended and was not counted. An outcome without teams only marks its hand."""
        counted = sa.exists().where(rated.c.scope == self._scope, rated.c.key == games.c.game_id)
        hands = together(iter_hands(self._store, page=PAGE, where=(~counted,)))
        while some := list(islice(hands, HANDS_AT_ONCE)):
            named = [_names(hand[0].game) for hand in some]
            known = marked(self._store, self._scope, [key for keys in named for key in keys])
            for hand, keys in zip(some, named, strict=True):
                outcome = self._one(hand, keys, known)
                if outcome is not None:
                    yield outcome

    def _one(self, hand: list[LoggedHand], named: list[bytes], known: set[bytes]) -> Outcome | None:
        """Return the outcome of a hand; None if it has not ended. ``known``: the keys counted before."""
        ended = [seat for seat in hand if seat.end is not None]
        if not ended:
            return None
        game, keys = hand[0].game.game, tuple({seat.game.game_id for seat in hand})
        if not known.isdisjoint(named):  # another seat of ours was logged after the hand was counted
            return Outcome(game, (), (), 0, keys)
        why, outcome = self._outcome(hand, ended)
        if outcome is None:
            self.left_out[why] += 1
            outcome = Outcome(game, (), (), 0, ())
        return msgspec.structs.replace(outcome, keys=(*keys, named[0]))

    def _outcome(self, hand: list[LoggedHand], ended: list[LoggedHand]) -> tuple[str, Outcome | None]:
        """Return the reason to exclude the hand, and its outcome or None."""
        first = hand[0].game
        scored = next((seat for seat in ended if seat.scores is not None), None)
        if scored is None or scored.end is None or scored.scores is None:
            return "ended without a score", None
        if any(seat.away for seat in ended):
            return "a player was away", None
        ours = {} if first.host == IMPORT_HOST else {seat.game.seat: seat.game for seat in hand}
        seats = {seat: _strategy(game) for seat, game in ours.items()}
        for player in players_of(scored.game.players):
            seat, name = player.get("seat"), player.get("player")
            if isinstance(seat, int) and isinstance(name, str) and name and seat not in seats and not _nameless(first):
                seats[seat] = Contestant("player", name, first.lobby)
        if self._scope == "others" and (first.host == MADE_UP or len(seats) == len(ours) > 1):
            return "among our own accounts", None
        found = teams_of(first.game, seats, scored.scores)
        if found is None:
            return "nothing to compare", None
        return "", Outcome(first.game, *found, scored.end.ended_us, ())


def _names(game: GameRecord) -> list[bytes]:
    """Return the keys of a hand by its place, for its own minute and the neighbouring ones."""
    place = game.lobby, game.table, game.hand, game.game
    return [hand_key(*place, game.started_us + near * TOGETHER_US) for near in (0, -1, 1)]


def _nameless(game: GameRecord) -> bool:
    """Whether an imported record named no players, so that the names in the log are those of seats."""
    return game.host == IMPORT_HOST and _attributes(game).get("imported", {}).get("named") is False


def _strategy(game: GameRecord) -> Contestant:
    version = game.model_sha256[:8] if game.model_sha256 else game.strategy_version
    level = _attributes(game).get("strategy_level")
    return Contestant("strategy", game.strategy, version=version, level=level if isinstance(level, str) else "")


def _attributes(game: GameRecord) -> dict[str, Any]:
    try:
        found = json.loads(game.attributes)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
