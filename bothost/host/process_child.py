"""The worker process of a strategy: ``python -m bothost.host.process_child``; see :mod:`bothost.host.process`."""

from __future__ import annotations

import contextlib
import importlib
import operator
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bothost import children
from bothost.errors import described, raised_at
from bothost.host.logged_json import stats_as_json
from bothost.host.process_messages import (
    LENGTH,
    Ask,
    ClosePlayer,
    LoadStrategy,
    Reply,
    StrategySpec,
    decode_request,
    frame,
)
from bothost.plugins import Plugins, made
from bothost.rules.game import Game
from bothost.strategy import Budget, Decision, Model, Player, Strategy, Table
from bothost.tables.fallback import checked
from bothost.tables.games import Games


class Child:
    """Serves one strategy until the host closes the connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._incoming = connection.makefile("rb")
        self._players: dict[int, tuple[Player, Game]] = {}
        self._unmade: dict[int, tuple[dict[str, Any], list[str]]] = {}
        """Players that the strategy has not made yet: their tables and all of their events."""
        self._games = Games()
        self._strategy: Strategy | None = None

    def run(self) -> None:
        while (message := self._read()) is not None:
            if isinstance(message, LoadStrategy):
                self._connection.sendall(frame(Reply(None, self._load(message))))
            elif isinstance(message, ClosePlayer):
                self._unmade.pop(message.player, None)
                known = self._players.pop(message.player, None)
                if known is not None:
                    with contextlib.suppress(BaseException):
                        known[0].close()
            else:
                self._connection.sendall(self._answer(message))

    def _read(self) -> LoadStrategy | Ask | ClosePlayer | None:
        if len(head := self._incoming.read(LENGTH.size)) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack(head)
        return decode_request(data) if len(data := self._incoming.read(length)) == length else None

    def _load(self, message: LoadStrategy) -> str | None:
        """Make the strategy. Returns the error message if that failed."""
        try:
            self._make(message)
        except BaseException as error:
            return _in_words(error, message.strategy.module)
        return None

    def _make(self, message: LoadStrategy) -> None:
        sys.path[:] = message.path
        Plugins.load(Path(message.plugins_dir) if message.plugins_dir else None)  # registers their games
        evaluators = {option: _instance(making) for option, making in message.evaluators.items()}
        self._strategy = made(_instance(message.strategy), evaluators)

    def _answer(self, ask: Ask) -> bytes:
        try:
            player, game, events = self._player(ask)
            if events:
                player.observe(events)
            view = game.view_from_bytes(ask.view)
            legal = np.frombuffer(ask.legal, dtype="<i4").astype(np.int32)
            decision = player.decide(view, legal, Budget(ask.deadline, ask.bank_ms))
            stats = None if checked(decision).stats is None else stats_as_json(decision.stats)
            return frame(Reply(plain(decision), stats=stats))
        except BaseException as error:
            return frame(Reply(None, _in_words(error, type(self._strategy).__module__)))

    def _player(self, ask: Ask) -> tuple[Player, Game, list[str]]:
        """The player, made if needed, its game, and the events for it. If making it fails, the next request tries
        again."""
        if (known := self._players.get(ask.player)) is not None:
            return *known, ask.events
        assert self._strategy is not None
        if ask.table is not None:
            self._unmade[ask.player] = ask.table, []
        table, events = self._unmade[ask.player]
        events += ask.events
        described = dict(table)
        game = self._games.make(described.pop("game"), described.pop("rules"))
        player = self._strategy.player(Table(game=game, **described))
        self._players[ask.player] = player, game
        del self._unmade[ask.player]
        return player, game, events


def _in_words(error: BaseException, module: str) -> str:
    """An exception with its place in the plugin."""
    at = raised_at(error, module)
    text = described(error)
    return text if at is None else f"{text} ({at})"


def _instance(making: StrategySpec) -> Strategy:
    strategy: type[Strategy] = operator.attrgetter(making.name)(importlib.import_module(making.module))
    options = msgspec.convert(making.options, strategy.Options)
    model = None if making.model is None else msgspec.convert(making.model, Model)
    return strategy(options, model)


def plain(decision: Decision) -> dict[str, Any]:
    """A decision as plain data, without its statistics. Arrays become lists of floats, None if they are none."""
    return {
        "action": int(decision.action),
        "policy": _floats(decision.policy),
        "values": _floats(decision.values),
        "value": None if isinstance(value := _floats(decision.value), list) else value,
        "phase": decision.phase,
        "model_sha256": decision.model_sha256,
        "encoder_version": decision.encoder_version,
        "wait_ms": None if decision.wait_ms is None else float(decision.wait_ms),
    }


def _floats(values: Any) -> Any:
    """A float, or lists of them; None if the plugin's value has no numbers."""
    try:
        return None if values is None else np.asarray(values, dtype=float).tolist()
    except Exception:  # a plugin's objects may raise anything
        return None


def main() -> None:
    children.contain(int(sys.argv[2]))
    # Only the host ends this process: it closes the connection or sends SIGKILL.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    Child(socket.socket(fileno=int(sys.argv[1]))).run()
    os._exit(0)  # do not wait for threads of the plugin


if __name__ == "__main__":
    main()
