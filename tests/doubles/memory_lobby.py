"""An embedded lobby with adapters and players in one thread, without sockets and with a simulated clock.

Time passes only in :meth:`MemoryLobby.sleep`, connections break only on request, and a seed fixes every deal, so that
tests are deterministic. ::

    lobby = MemoryLobby({"ada": "secret", "bob": "secret-2"})
    players = [RandomClient(lobby.shell(name)) for name in ("ada", "bob")]
    for player in players:
        player.start(Wish("othello"))
    lobby.run()
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bothost import messages as m
from bothost import rules
from bothost.lobbies.base import Account, LobbyAdapter
from bothost.lobbies.embedded import EmbeddedLobby, EmbeddedOptions
from bothost.lobby_server.core import Lobby, Send
from bothost.lobby_server.settings import ServerSettings
from bothost.rules.game import View


class MemoryLobby:
    """The core of the embedded lobby, and the connected shells."""

    def __init__(
        self,
        tokens: Mapping[str, str],
        *,
        games: Iterable[str] | None = None,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        """``settings``: fields of ``ServerSettings``. ``games`` defaults to all games, including those for tests."""
        self.settings = ServerSettings(tokens=dict(tokens), **settings)
        names = rules.games(testing=True) if games is None else games
        self.core = Lobby(self.settings, names, rng=random.Random(seed), boot="t")
        self.now = 0.0
        self._shells: list[AdapterShell] = []
        self._wires: dict[int, AdapterShell] = {}
        self._numbers = 0

    def shell(self, name: str, adapter: LobbyAdapter | None = None) -> AdapterShell:
        """A shell for this account that is not connected yet. Default adapter: a new ``EmbeddedLobby``."""
        if adapter is None:
            account = Account(name=name, url="ws://memory/ws", token=self.settings.tokens.get(name, ""))
            adapter = EmbeddedLobby(account, EmbeddedOptions())
        shell = AdapterShell(self, adapter)
        self._shells.append(shell)
        return shell

    def run(self, most: int = 1_000_000) -> None:
        """Deliver messages until none is left. Raises AssertionError after ``most`` deliveries."""
        for _ in range(most):
            self._deliver()
            busy = next((shell for shell in self._shells if shell.inbox), None)
            if busy is not None:
                busy.step()
            elif (wake_at := self.core.wake_at()) is not None and wake_at <= self.now:
                self.core.tick(self.now)
            else:
                return
        raise AssertionError(f"not quiet after {most} deliveries")

    def sleep(self, seconds: float) -> None:
        """Let time pass. Timers fire at their own moments."""
        until = self.now + seconds
        while True:
            self.run()
            times = [t for shell in self._shells for t in shell.timers.values()]
            wake_at = self.core.wake_at()
            when = min(times + ([wake_at] if wake_at is not None else []), default=math.inf)
            if when > until:
                break
            self.now = max(self.now, when)
            self.core.tick(self.now)
            for shell in self._shells:
                shell.ring(self.now)
        self.now = until

    def connect(self, shell: AdapterShell) -> int:
        """Open a connection to the core. Returns its number."""
        self._numbers += 1
        self._wires[self._numbers] = shell
        self.core.opened(self._numbers, self.now)
        return self._numbers

    def disconnect(self, wire: int) -> None:
        """Close a connection to the core."""
        if self._wires.pop(wire, None) is not None:
            self.core.closed(wire, self.now)

    def _deliver(self) -> None:
        for output in self.core.take():
            shell = self._wires.get(output.conn)
            if shell is None:
                continue
            if isinstance(output, Send):
                shell.receive(output.conn, output.data.decode())
            else:
                self.disconnect(output.conn)
                shell.hung_up(output.conn, output.code, output.reason)


class AdapterShell:
    """Performs an adapter's effects on a :class:`MemoryLobby`, and keeps its events."""

    def __init__(self, lobby: MemoryLobby, adapter: LobbyAdapter) -> None:
        self.lobby = lobby
        self.adapter = adapter
        self.inbox: deque[m.Input] = deque()
        self.timers: dict[str, float] = {}
        self.memo: dict[str, Any] = {}
        self.events: list[m.Event] = []
        """All events of the adapter, oldest first."""
        self.listener: Callable[[m.Event], None] | None = None
        self.frames: list[tuple[str, str]] = []
        """Every frame, oldest first: ("in" | "out", text), as the adapter sees it."""
        self._wire: int | None = None
        self._conn = 0

    def do(self, command: m.Input) -> None:
        """Queue a command; ``MemoryLobby.run`` performs it."""
        self.inbox.append(command)

    def step(self) -> None:
        """Feed one input and perform the outputs."""
        for output in self.adapter.feed(self.inbox.popleft()):
            self._perform(output)

    def drop(self) -> None:
        """Break the connection. Frames in transit are lost, and both sides notice."""
        if self._wire is not None:
            wire, self._wire = self._wire, None
            self.lobby.disconnect(wire)
            self.inbox = deque(i for i in self.inbox if not isinstance(i, m.Frame))
            self.inbox.append(m.SocketClosed(self._conn, 1006, "dropped"))

    def receive(self, wire: int, text: str) -> None:
        """Receive a frame from the lobby."""
        if wire == self._wire:
            self.frames.append(("in", text))
            self.inbox.append(m.Frame(self._conn, text))

    def hung_up(self, wire: int, code: int, reason: str) -> None:
        """Handle a connection that the lobby closed."""
        if wire == self._wire:
            self._wire = None
            self.inbox.append(m.SocketClosed(self._conn, code, reason))

    def ring(self, now: float) -> None:
        """Fire the timers that are due."""
        for name in [name for name, when in self.timers.items() if when <= now]:
            del self.timers[name]
            self.inbox.append(m.TimerFired(name))

    def _perform(self, output: m.Output) -> None:
        match output:
            case m.OpenSocket():
                self._conn, self._wire = output.conn, self.lobby.connect(self)
                self.inbox.append(m.SocketOpened(output.conn))
            case m.SendFrame():
                if self._wire is not None and output.conn == self._conn:
                    data = output.data
                    self.frames.append(("out", data if isinstance(data, str) else data.decode(errors="replace")))
                    self.lobby.core.received(self._wire, output.data, self.lobby.now)
            case m.CloseSocket():
                if self._wire is not None and output.conn == self._conn:
                    wire, self._wire = self._wire, None
                    self.lobby.disconnect(wire)
            case m.SetTimer():
                self.timers[output.name] = self.lobby.now + output.after_s
            case m.CancelTimer():
                self.timers.pop(output.name, None)
            case m.Remember():
                self.memo = output.memo
            case m.HttpRequest():
                raise AssertionError("this lobby has no HTTP")
            case _:
                self.events.append(output)
                if self.listener is not None:
                    self.listener(output)


class RandomClient:
    """Plays random legal moves through an adapter, folding events into views as a host does.

    It asserts what an adapter promises: a request comes after its position and fits its ``seq``, and there is no gap
    between deltas.
    """

    def __init__(self, shell: AdapterShell, seed: int = 0, *, acts: bool = True) -> None:
        self.shell = shell
        self.rng = random.Random(seed)
        self.acts = acts
        self.views: dict[str, View] = {}
        """Table → view of the running or the last hand."""
        self.games: dict[str, rules.Game] = {}
        self.asked: dict[str, m.ActionRequest] = {}
        """Table → the open request."""
        self.ended: dict[str, m.TableEnded] = {}
        self.hands: list[tuple[View, m.HandEnded]] = []
        """Every hand's end, with our view of it."""
        self.events: dict[tuple[str, str], list[str]] = {}
        """(table, hand) → the received events, if there was no snapshot."""
        self._wishes: list[m.Wish] = []
        self._known: set[str] = set()
        shell.listener = self.told

    def start(self, *wishes: m.Wish) -> None:
        """Log in, then seek tables for these wishes."""
        self._wishes = list(wishes)
        self.shell.do(m.Authenticate(self.shell.memo))

    def resume(self) -> None:
        """Connect again."""
        self._known.clear()
        self.asked.clear()
        self.shell.do(m.Resume(tuple(self.views), self.shell.memo))

    def told(self, event: m.Event) -> None:
        """Handle an event of the adapter."""
        match event:
            case m.Connected():
                for number, wish in enumerate(self._wishes):
                    self.shell.do(m.Seek(f"seek-{number}", wish))
                self._wishes = []
            case m.Disconnected() | m.Superseded():
                self._known.clear()
                self.asked.clear()
            case m.Seated():
                self.games[event.table] = rules.game(event.game, **event.rules)
            case m.HandStarted():
                self.views[event.table] = self.games[event.table].new_view(event.seat)
                self.events[event.table, event.hand] = []
                self._known.add(event.table)
            case m.Snapshot():
                self.views[event.table] = self.games[event.table].view_from_snapshot(event.view)
                self._known.add(event.table)
            case m.Delta():
                view = self.views[event.table]
                assert view.seq == event.seq, f"gap: {view.seq} events known, {event.seq} came"
                view.observe_all(event.events)
                self.events.setdefault((event.table, event.hand), []).extend(event.events)
            case m.ActionRequest():
                self._asked(event)
            case m.RequestWithdrawn() | m.ServerActedForUs() | m.MoveAcknowledged():
                # A request can come twice if a snapshot crosses our answer, and is then acknowledged.
                request = self.asked.get(event.table)
                if request is not None and request.request_id == event.request_id:
                    del self.asked[event.table]
            case m.HandEnded():
                self.hands.append((self.views[event.table].clone(), event))
            case m.TableEnded():
                self.ended[event.table] = event
            case _:
                pass

    def _asked(self, request: m.ActionRequest) -> None:
        view = self.views[request.table]
        assert request.table in self._known, "asked before a snapshot"
        assert view.asked, "asked, but not by the rules"
        assert request.seq in (None, view.seq), "asked about another position"
        self.asked[request.table] = request
        if self.acts:
            self.answer(request.table)

    def answer(self, table: str) -> None:
        """Answer the open request of a table at random."""
        request = self.asked.pop(table)
        view = self.views[table]
        action = view.notation(int(self.rng.choice(view.legal())))
        self.shell.do(m.Act(table, request.request_id, (action,)))
