"""One player of the conformance kit for lobby adapters: random legal moves, and a check of every event."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from bothost import messages as m
from bothost import rules
from bothost.errors import BothostError, PluginError
from bothost.lobbies.base import LobbyAdapter
from bothost.rules.game import View
from bothost.testing.adapter_driver import AdapterDriver, Fed, fed

Breach = Callable[[str, str], None]
"""Reports a law and what broke it."""
SILENCE_S = 5.0
"""After a broken law, a lobby that is silent for so long has nothing more to say: few adapters get further then."""


class LobbyPlayer:
    """Follows one account's tables as a host does, through real sockets."""

    def __init__(
        self,
        adapter: LobbyAdapter,
        wish: m.Wish,
        breach: Breach,
        *,
        seed: int = 0,
        memo: m.Json | None = None,
        fed: Fed = fed,
    ) -> None:
        limit = adapter.capabilities.messages_per_second
        self.driver = AdapterDriver(adapter, listener=self._received, fed=self._fed)
        self._feed = fed
        self.driver.memo = dict(memo or {})
        self.holding = False
        """Whether requests are left unanswered."""
        self.pending: m.ActionRequest | None = None
        self.hands: list[m.HandEnded] = []
        self.answered = 0
        self._wish = wish
        self._report = breach
        self._broken = False
        self._rng = random.Random(seed)
        self._pause_s = 0.0 if limit is None else 1.5 / limit
        self._games: dict[str, rules.Game] = {}
        self._views: dict[str, View] = {}
        self._hand: dict[str, str] = {}
        self._known: set[str] = set()
        """Tables whose position came since the last connection."""
        self._asked: dict[tuple[str, str], tuple[str, int]] = {}
        """(table, request id) → (hand, number of events)."""
        self._seeks = 0
        self._up = False
        self._alarms: set[asyncio.TimerHandle] = set()
        self._changed = asyncio.Event()

    def _fed(self, adapter: LobbyAdapter, item: m.Input) -> list[m.Output]:
        try:
            return self._feed(adapter, item)
        except PluginError:
            self._changed.set()  # whoever waits for an event would wait to the end
            raise

    # ------------------------------------------------------------------------------------------------------ commands

    def start(self) -> None:
        """Log in, as a fresh process does, and look for a table."""
        self.driver.do(m.Authenticate(self.driver.memo))

    def resume(self) -> None:
        """Connect again after a loss."""
        self.driver.do(m.Resume(tuple(self._views), self.driver.memo))

    async def close(self) -> None:
        """Stop without a word, as a killed process does."""
        for alarm in self._alarms:
            alarm.cancel()
        await self.driver.aclose()

    async def until(self, true: Callable[[], object], timeout_s: float, what: str) -> None:
        """Wait until something is true. Raises TimeoutError, which says what did not come."""
        now = asyncio.get_running_loop().time
        began = now()
        try:
            async with asyncio.timeout(timeout_s) as limit:
                while not true():
                    self._changed.clear()
                    if self.driver.failure is not None:
                        raise self.driver.failure
                    if self._broken:
                        limit.reschedule(min(began + timeout_s, now() + SILENCE_S))
                    await self._changed.wait()
        except TimeoutError:
            last = [type(event).__name__ for event in self.driver.events[-6:]]
            raise TimeoutError(f"{what} did not come within {now() - began:.0f} s; last events: {last}") from None

    def answer(self) -> None:
        """Answer the open request at random."""
        request, self.pending = self.pending, None
        if request is None or not self._up:
            return
        view = self._views[request.table]
        legal = view.legal()
        if not len(legal):
            return
        self.answered += 1
        action = int(self._rng.choice(legal))
        self.driver.do(m.Act(request.table, request.request_id, (view.notation(action),)))

    def answer_illegally(self, tries: int) -> tuple[m.ActionRequest, str]:
        """Answer the open request with an action that is not legal. Returns both; the action is empty if none is found.

        ``tries``: most actions to look at.
        """
        request, self.pending = self.pending, None
        assert request is not None
        view = self._views[request.table]
        for _ in range(tries):
            action = self._rng.randrange(view.game.num_actions)
            if not view.is_legal(action):
                self.driver.do(m.Act(request.table, request.request_id, (view.notation(action),)))
                return request, view.notation(action)
        return request, ""

    # --------------------------------------------------------------------------------------------------------- events

    def _breach(self, law: str, detail: str) -> None:
        self._broken = True
        self._report(law, detail)

    def _received(self, event: m.Event) -> None:
        """Fold one event, and check it."""
        self._changed.set()
        if not self._up and not isinstance(event, _BEFORE_CONNECTED):
            self._breach("session", f"{type(event).__name__} without a session")
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)

    def _connected(self, event: m.Connected) -> None:
        self._up = True
        self._known.clear()
        self._later(self._seek, 0.0)

    def _seek(self) -> None:
        """A host seeks when the resumed tables have had time to show."""
        if self._up and not self._games:
            self._seeks += 1
            self.driver.do(m.Seek(f"seek-{self._seeks}", self._wish))

    def _seek_later(self, event: Any) -> None:
        self._later(self._seek, 0.2)

    def _disconnected(self, event: Any) -> None:
        self._up = False
        self.pending = None
        self._known.clear()

    def _seated(self, event: m.Seated) -> None:
        try:
            self._games[event.table] = rules.game(event.game, **event.rules)
        except (BothostError, ValueError, TypeError) as error:
            self._breach("rules", f"Seated names rules that no game has: {error}")

    def _hand_started(self, event: m.HandStarted) -> None:
        if (game := self._game(event.table, "HandStarted")) is None:
            return
        self._views[event.table], self._hand[event.table] = game.new_view(event.seat), event.hand
        self._known.add(event.table)

    def _snapshot(self, event: m.Snapshot) -> None:
        if (game := self._game(event.table, "Snapshot")) is None:
            return
        try:
            view = game.view_from_snapshot(event.view)
        except ValueError as error:
            self._breach("snapshot", f"the game refuses it: {error}")
            return
        before = self._views.get(event.table)
        if before is not None and self._hand.get(event.table) == event.hand and view.seq < before.seq:
            self._breach("seq", f"a snapshot at event {view.seq} of hand {event.hand} after event {before.seq}")
        if view.seat != event.seat:
            self._breach("snapshot", f"it shows seat {view.seat}, the event says {event.seat}")
        self._views[event.table], self._hand[event.table] = view, event.hand
        self._known.add(event.table)

    def _delta(self, event: m.Delta) -> None:
        view = self._views.get(event.table)
        if view is None or event.table not in self._known or self._hand[event.table] != event.hand:
            self._breach("order", f"Delta of hand {event.hand} before its position")
            return
        if event.seq != view.seq:
            self._breach("seq", f"Delta from event {event.seq} on, where {view.seq} are known")
            return
        try:
            view.observe_all(event.events)
        except ValueError as error:
            self._breach("events", f"the game refuses {list(event.events)}: {error}")

    def _action_request(self, event: m.ActionRequest) -> None:
        view = self._views.get(event.table)
        if view is None or event.table not in self._known:
            self._breach("order", f"ActionRequest {event.request_id} before the position")
            return
        if not view.asked or event.seq not in (None, view.seq):
            where = f"after event {view.seq}" + ("" if view.asked else ", where our seat has nothing to decide")
            self._breach("request", f"{event.request_id} is about event {event.seq}, {where}")
        place = (self._hand[event.table], view.seq)
        if self._asked.setdefault((event.table, event.request_id), place) != place:
            self._breach("request ids", f"{event.request_id} is used at two positions of a table")
        self.pending = event
        if not self.holding:
            self._later(self.answer, self._pause_s)

    def _request_over(self, event: Any) -> None:
        if self.pending is not None and event.request_id in (None, self.pending.request_id):
            self.pending = None

    def _hand_ended(self, event: m.HandEnded) -> None:
        game = self._game(event.table, "HandEnded")
        if game is not None and event.scores is not None and len(event.scores) != game.num_seats:
            self._breach("scores", f"{len(event.scores)} scores at a game of {game.num_seats} seats")
        self.pending = None
        self.hands.append(event)

    def _table_ended(self, event: m.TableEnded) -> None:
        self._games.pop(event.table, None)
        self._views.pop(event.table, None)
        self._known.discard(event.table)
        if self.pending is not None and self.pending.table == event.table:
            self.pending = None
        self._seek_later(event)

    def _game(self, table: str, what: str) -> rules.Game | None:
        if table not in self._games:
            self._breach("order", f"{what} of table {table} before Seated")
        return self._games.get(table)

    def _later(self, call: Callable[[], None], after_s: float) -> None:
        self._alarms.add(asyncio.get_running_loop().call_later(after_s, self._call, call))

    def _call(self, call: Callable[[], None]) -> None:
        """Call it. If it fails, ``until`` raises the error."""
        try:
            call()
        except Exception as error:
            self.driver.failure = self.driver.failure or error
            self._changed.set()


_BEFORE_CONNECTED = (
    m.Connected,
    m.Disconnected,
    m.AuthFailed,
    m.Superseded,
    m.Throttled,
    m.Notice,
    m.Unknown,
    m.Alive,
    m.SeekEnded,
    m.TableEnded,  # of a table that is gone
)
_HANDLERS: dict[type, Callable[[LobbyPlayer, Any], None]] = {
    m.Connected: LobbyPlayer._connected,
    m.Disconnected: LobbyPlayer._disconnected,
    m.Superseded: LobbyPlayer._disconnected,
    m.AuthFailed: LobbyPlayer._disconnected,
    m.SeekEnded: LobbyPlayer._seek_later,
    m.Seated: LobbyPlayer._seated,
    m.HandStarted: LobbyPlayer._hand_started,
    m.Snapshot: LobbyPlayer._snapshot,
    m.Delta: LobbyPlayer._delta,
    m.ActionRequest: LobbyPlayer._action_request,
    m.RequestWithdrawn: LobbyPlayer._request_over,
    m.ServerActedForUs: LobbyPlayer._request_over,
    m.MoveAcknowledged: LobbyPlayer._request_over,
    m.HandEnded: LobbyPlayer._hand_ended,
    m.TableEnded: LobbyPlayer._table_ended,
}
