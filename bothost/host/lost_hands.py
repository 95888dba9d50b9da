"""Closes hands of an earlier process that cannot continue, so that no hand in the log stays open for ever.

After a crash, hands continue at the tables that the lobby names again. A while after the connect, hands at other tables
count as lost. They end as the lobby reported for the table, otherwise as aborted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec
import structlog

from bothost.errors import ANY_FAILURE, StoreUnavailable
from bothost.host.backoff import Backoff
from bothost.host.recorder import Recorder
from bothost.host.tasks import BackgroundTasks
from bothost.messages import TableEnded
from bothost.store import GameRecord
from bothost.tables.conduct import TableKey
from bothost.tables.games import Games
from bothost.tables.hand import valid_scores

_log = structlog.get_logger("bothost.host")

AGAIN_S = 60.0
"""How often we look again whether a table between two hands still plays a hand of an earlier process."""

FindOpen = Callable[[str, str, int], Sequence[GameRecord]]
"""Returns the open hands of (lobby, account) that started before a time in microseconds. Called in a thread."""


class LostHands:
    """Closes lost hands. Used on the event loop."""

    def __init__(
        self, find: FindOpen, recorder: Recorder, games: Games, looks_up: Callable[[TableKey, str], bool]
    ) -> None:
        """``looks_up``: whether a hand, by table and name, is still looked up. Its session logs its end."""
        self._find = find
        self._looks_up = looks_up
        self._recorder = recorder
        self._games = games
        self.tasks = BackgroundTasks()
        """Running calls of ``close``."""

    async def close(
        self,
        account: tuple[str, str],
        began_us: int,
        is_played: Callable[[str, str], bool | None],
        ended: dict[str, TableEnded],
    ) -> None:
        """Close the hands of (lobby, account) that started before ``began_us``, except those that are still played.

        ``is_played`` takes table and hand; None: not known yet. ``ended``: the ends of tables that the lobby reported,
        by name.
        """
        while True:
            hands = await self._open(account, began_us)
            played = [
                None if self._looks_up(TableKey(*account, hand.table), hand.hand) else is_played(hand.table, hand.hand)
                for hand in hands
            ]
            lost = [hand for hand, still in zip(hands, played, strict=True) if still is False]
            for hand in lost:
                end = ended.get(hand.table)
                reason = end.reason if end is not None else "aborted"
                self._recorder.hand_lost(hand.game_id, hand.seat, reason, self._scores(hand, end))
            if lost:
                _log.warning("lost_hands_closed", lobby=account[0], account=account[1], hands=len(lost))
            if None not in played:
                return
            await asyncio.sleep(AGAIN_S)

    def _scores(self, hand: GameRecord, end: TableEnded | None) -> tuple[float, ...] | None:
        """The scores that the lobby reported, if they fit the game."""
        if end is None or end.reason == "aborted":
            return None
        try:
            game = self._games.make(hand.game, msgspec.json.decode(hand.rules))
        except ANY_FAILURE:  # the game may be a plugin's that is not installed any more
            return None
        return valid_scores(end.scores, game.num_seats)

    async def _open(self, account: tuple[str, str], began_us: int) -> Sequence[GameRecord]:
        """The hands that have not ended. Waits while the database is unreachable."""
        backoff = Backoff(1.0, 60.0)
        while True:
            try:
                return await asyncio.to_thread(self._find, *account, began_us)
            except StoreUnavailable:
                await asyncio.sleep(backoff.next(1.0))
            except ANY_FAILURE:
                _log.exception("lost_hands_not_closed", lobby=account[0], account=account[1])
                return ()
