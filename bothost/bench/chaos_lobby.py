"""The lobby of ``bothost bench chaos``: it plays correctly, restarts on request, and counts what it received."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from bothost.lobbies.embedded import protocol as wire
from bothost.testing.fake_lobby import FakeLobby, Line, Recorded


class CountingLobby(FakeLobby):
    """A :class:`FakeLobby` that keeps counts instead of frames, so that it can run for hours."""

    def __init__(self, tokens: Mapping[str, str], **settings: Any) -> None:
        super().__init__(tokens, robots=True, **settings)
        self.answers: dict[int, int] = {}
        """Hash of (table, request) → hash of the move that was received for it."""
        self.second_opinions = 0
        """Requests for which two different moves came."""
        self.illegal = 0
        self.missed = 0
        """Moves that the lobby made for us after our deadline."""
        self.first_moves: dict[str, tuple[int, float]] = {}
        """Account → its newest connection that played, and the monotonic time of its first move."""
        self.last_moves: dict[str, float] = {}
        """Account → the monotonic time of its last move."""

    def incoming(self, line: Line, data: str) -> Iterable[str]:
        """Count a move before the lobby receives it."""
        if line.player is not None and '"type":"act"' in data:
            act = wire.decode_client(data)
            assert isinstance(act, wire.Act)
            move = hash(act.action)
            if self.answers.setdefault(hash((act.table, act.id)), move) != move:
                self.second_opinions += 1
            self.last_moves[line.player] = time.monotonic()
            if line.number > self.first_moves.get(line.player, (0, 0.0))[0]:
                self.first_moves[line.player] = line.number, time.monotonic()
        return (data,)

    def outgoing(self, line: Line, data: str) -> Iterable[str]:
        """Count rejections of illegal moves, which should never occur."""
        if data.startswith('{"type":"rejected"'):
            sent = wire.decode_server(data)
            self.illegal += isinstance(sent, wire.Rejected) and sent.reason == "illegal"
        elif data.startswith('{"type":"server_acted"'):
            self.missed += 1
        return (data,)

    def newest_line(self) -> int:
        return max((*self.lines, *(number for number, _ in self.first_moves.values())), default=0)

    def all_played_at(self, line: int) -> float | None:
        """The time at which the last account moved on a connection newer than ``line``; None: not all have."""
        first = [self.first_moves.get(name, (0, 0.0)) for name in self.settings.tokens]
        return max(at for _, at in first) if all(number > line for number, _ in first) else None

    def all_moved_since(self, time_s: float) -> bool:
        """Whether every account has moved since this monotonic time."""
        return all(self.last_moves.get(name, 0.0) > time_s for name in self.settings.tokens)

    def _note(self, frame: Recorded) -> None:
        self._news.set()
