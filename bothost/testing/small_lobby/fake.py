"""A fake of the lobby with the behaviour of the real one, and the conformance kit's settings for it."""

from __future__ import annotations

import json
import secrets
from typing import Any

from starlette.routing import WebSocketRoute

from bothost import rules
from bothost.lobbies.base import Account
from bothost.messages import Wish
from bothost.testing.check_lobby import UNOBSERVED, LobbyKit
from bothost.testing.fake_server import FakeServer, Line
from bothost.testing.small_lobby.adapter import SmallLobby

TOKENS = {"ada": "token-of-ada", "bob": "token-of-bob"}
PASS = 64


class FakeTable:
    """One game of Othello."""

    def __init__(self, name: str, players: list[str]) -> None:
        self.name = name
        self.players = players
        self.state = rules.game("othello").new_state(0)
        self.ply = 1
        self.tries = 0

    def frame(self, player: str, no: str = "") -> dict[str, Any]:
        """What a player is sent."""
        seat = self.players.index(player)
        view = self.state.view(seat).to_json()
        frame = {"table": self.name, "seat": seat, "board": view["board"], "ply": self.ply, "tries": self.tries}
        if self.state.terminal:
            return {**frame, "over": self.state.returns}
        return {**frame, "turn": self.state.to_act[0], "no": no}

    def move(self, player: str, square: str) -> bool:
        """Place a disc; forced passes follow at once. Returns whether it was legal."""
        seat = self.players.index(player)
        if self.state.terminal or seat not in self.state.to_act:
            return False
        legal = {rules.game("othello").notation(int(action)): int(action) for action in self.state.legal(seat)}
        if square not in legal:
            self.tries += 1
            return False
        self.state.apply(seat, legal[square])
        while not self.state.terminal and list(self.state.legal(self.state.to_act[0])) == [PASS]:
            self.state.apply(self.state.to_act[0], PASS)
        self.ply, self.tries = self.ply + 1, 0
        return True


class FakeSmallLobby(FakeServer):
    """The lobby, on a free port of loopback. Use it in an ``async with``."""

    def __init__(self) -> None:
        super().__init__([WebSocketRoute("/", self.websocket)])
        self.tables: dict[str, FakeTable] = {}
        """By player."""
        self.waiting: list[str] = []
        self.lines: dict[str, Line] = {}

    def received(self, line: Line, text: str) -> None:
        frame = json.loads(text)
        if "login" in frame:
            self._log_in(line, frame["login"], frame["token"])
            return
        player = next(name for name, known in self.lines.items() if known is line)
        if "seek" in frame and player not in self.waiting:
            self.waiting.append(player)
            if len(self.waiting) == 2:
                table = FakeTable(secrets.token_hex(4), self.waiting)  # a name never returns
                self.waiting = []
                self._show(table)
        elif "move" in frame and player in self.tables:
            table = self.tables[player]
            if table.move(player, frame["move"]):
                self._show(table)
            else:
                self._send(player, table.frame(player, no="this move is not legal"))

    def _log_in(self, line: Line, player: str, token: str) -> None:
        if TOKENS.get(player) != token:
            line.send(json.dumps({"denied": "no such account"}))
            line.close()
            return
        self.lines[player] = line
        self._send(player, {"hello": player})
        if player in self.tables:
            self._send(player, self.tables[player].frame(player))

    def _show(self, table: FakeTable) -> None:
        for player in table.players:
            self.tables[player] = table
            self._send(player, table.frame(player))
            if table.state.terminal:
                del self.tables[player]

    def _send(self, player: str, frame: dict[str, Any]) -> None:
        self.lines[player].send(json.dumps(frame))


def accounts(lobby: FakeSmallLobby) -> list[Account]:
    """The accounts that fill a table."""
    return [Account(name=name, url=lobby.url, token=token) for name, token in TOKENS.items()]


KIT = LobbyKit(
    adapter=SmallLobby,
    lobby=FakeSmallLobby,
    accounts=accounts,
    wish=Wish("othello"),
    # Write a test for each of these, and name it here: the kit cannot see them by playing.
    proven_by=dict.fromkeys(UNOBSERVED, "see the fake: it does what the capabilities say"),
)
