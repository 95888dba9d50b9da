"""After each connect: which of an account's tables the lobby names, and what becomes of the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from bothost.host.lost_hands import LostHands
from bothost.host.recorder import now_us
from bothost.messages import TableEnded
from bothost.tables.session import Session

MAX_ENDED = 1000
"""Most ends of unknown tables that are kept until lost hands are closed."""


class RollCall:
    """Gives the lobby some time to name the tables at which we still sit.

    Then it reports the others as absent, and closes the hands that earlier processes left open elsewhere.

    Args:
        account: Names of the lobby and the account.
        lost_hands: Closes hands of earlier processes. None if another host may play them on the same account.
        wait_s: The time that the lobby has, in seconds.
    """

    def __init__(self, account: tuple[str, str], lost_hands: LostHands | None, wait_s: float) -> None:
        self.over = False
        """Whether the lobby had the time since the connect to show us the hands that are played."""
        self._account = account
        self._lost_hands = lost_hands
        self._wait_s = wait_s
        self._began_us = 0
        """When we first connected. Hands that started before are of other processes."""
        self._sessions: Mapping[str, Session] = {}
        self._absent: Callable[[Collection[str]], None] = lambda tables: None
        self._unnamed: set[str] = set()
        self._ended: dict[str, TableEnded] = {}
        """Ends of unknown tables, which may be those of an earlier process."""
        self._closing: asyncio.Task[None] | None = None
        """Closes the lost hands of earlier processes."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, sessions: Mapping[str, Session], absent: Callable[[Collection[str]], None]) -> None:
        """The lobby has logged us in.

        Args:
            sessions: Our sessions, by table.
            absent: Called with the tables that the lobby did not name.
        """
        self.stop()
        self._began_us = self._began_us or now_us()
        self._sessions, self._absent, self._unnamed = sessions, absent, set(sessions)
        self._timer = asyncio.get_running_loop().call_later(self._wait_s, self.end)

    def named(self, table: str) -> None:
        """The lobby has named a table."""
        self._unnamed.discard(table)

    def ended(self, event: TableEnded) -> None:
        """An unknown table has ended."""
        if self._lost_hands is not None and self._closing is None and len(self._ended) < MAX_ENDED:
            self._ended[event.table] = event

    def end(self) -> None:
        """The lobby has had its time."""
        self.stop()
        self.over = True
        unnamed, self._unnamed = self._unnamed, set()
        self._absent(unnamed & self._sessions.keys())
        if (lost := self._lost_hands) is not None and self._closing is None:
            ended, self._ended = self._ended, {}
            self._closing = lost.tasks.spawn(lost.close(self._account, self._began_us, self._is_played, ended))

    def _is_played(self, table: str, hand: str) -> bool | None:
        """Whether a hand of an earlier process is still played. None: the lobby has shown no hand of the table yet."""
        if (session := self._sessions.get(table)) is None:
            return False
        return None if session.hand is None else session.hand.name == hand

    def stop(self) -> None:
        """There is no connection any more."""
        self.over = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def leave_lost_hands(self) -> None:
        """Close no lost hands any more: the next holder of the account may find that they continue."""
        if self._closing is not None:
            self._closing.cancel()
