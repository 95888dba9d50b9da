"""The whole plugin contract: nine hooks. A plugin is a module with functions of these names, marked ``@hookimpl``.

Plugins are found through the entry-point group ``bothost`` and in ``plugins_dir``. The plugins included with bothost
register in the same way. Registration hooks fire once, at start-up, in registration order. Notification hooks fire in
the host, off the hot path: they may lag and must not block. An exception in one is logged and has no other effect.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pluggy

from bothost.rules.game import Game
from bothost.strategy import Decision, Strategy, Table

if TYPE_CHECKING:
    import typer

    from bothost.export.base import Exporter
    from bothost.lobbies.base import LobbyAdapter
    from bothost.rules import GameFactory

PROJECT = "bothost"
API_VERSION = 1
"""Raised when a hook or a base class changes incompatibly."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class LazyClass(msgspec.Struct, frozen=True):
    """A strategy or a lobby adapter that is imported only when it is needed. A host starts faster with it."""

    name: str
    """The class's ``name``."""
    place: str
    """``package.module:Class``"""

    def load(self) -> Any:
        """Import the class. Raises what the import raises."""
        module, _, name = self.place.partition(":")
        return getattr(importlib.import_module(module), name)


class DecisionMade(msgspec.Struct, frozen=True):
    """The event of ``bothost_decision_made``; a move of several decisions has one for each."""

    table: Table
    game_id: str
    """Id of the hand in the log, hexadecimal."""
    seq: int
    """Number of events that the seat had received."""
    request_id: str
    decision: Decision
    fallback: str | None
    """Why the strategy did not decide: ``late``, ``error``, ``illegal``, ``quarantined`` or ``unavailable``. None: it
    did."""
    elapsed_ms: float
    """From the arrival of the request to the decision."""


class TableClosed(msgspec.Struct, frozen=True):
    """The event of ``bothost_table_closed``."""

    table: Table
    game_id: str
    """Id of the hand in the log, hexadecimal."""
    reason: str
    """How the hand ended, such as ``normal``, ``resigned`` or ``aborted``."""
    scores: tuple[float, ...] | None
    """One per seat; None when the hand was void or the table was aborted."""


class Board(msgspec.Struct, frozen=True):
    """How the browser draws a game: an ES module in a plugin."""

    game: str
    """Name of the game, or of a family, such as ``openspiel:*``."""
    folder: Path | None
    """Folder with ``board.js`` and the files that it loads. It exports ``Board`` and may export ``describe``.

    None: the browser shows the view as a table."""
    public: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Takes ``View.to_json()`` and returns what spectators may see. None: nothing before the hand ends."""


@hookspec
def bothost_strategies() -> Iterable[type[Strategy] | LazyClass]:  # type: ignore[empty-body]
    """Strategies that this plugin adds. Fires at start-up. A generator runs until the requested one is found.

    A ``bothost.LazyClass`` names a strategy without importing it.
    """


@hookspec
def bothost_games() -> Iterable[tuple[str, Callable[..., Game]] | GameFactory]:  # type: ignore[empty-body]
    """Games that this plugin adds: name, and a factory that takes the rules as keywords. Fires first at start-up.

    A ``bothost.rules.GameFactory`` adds a game with presets, or a family of games.
    """


@hookspec
def bothost_boards() -> Iterable[Board]:  # type: ignore[empty-body]
    """Boards that this plugin adds to the browser. Fires when ``bothost web`` starts.

    A board for a game that bothost draws itself replaces the built-in one.
    """


@hookspec
def bothost_lobbies() -> Iterable[type[LobbyAdapter] | LazyClass]:  # type: ignore[empty-body]
    """Lobby adapters that this plugin adds. Fires at start-up. A generator runs until the requested one is found.

    A ``bothost.LazyClass`` names an adapter without importing it.
    """


@hookspec
def bothost_exporters() -> Iterable[type[Exporter]]:  # type: ignore[empty-body]
    """Export formats that this plugin adds. Fires when ``bothost export`` runs."""


@hookspec
def bothost_commands() -> Iterable[tuple[str, typer.Typer]]:  # type: ignore[empty-body]
    """Commands (noun, Typer app) that this plugin adds to the command line. Fires when the command line is built."""


@hookspec
def bothost_table_opened(table: Table) -> None:
    """A hand begins at one of our tables. Fires when its strategy is chosen, before the first decision is requested.

    After a restart it fires again for hands that continue.
    """


@hookspec
def bothost_decision_made(event: DecisionMade) -> None:
    """A decision was sent. Fires after the move was handed to the connection.

    It does not fire if the lobby withdraws its request before the move is sent.
    """


@hookspec
def bothost_table_closed(event: TableClosed) -> None:
    """A hand ended or its table was lost. Fires once per ``bothost_table_opened``, after the last decision.

    It does not fire if another host takes over the account: the hand continues there.
    """


def specs() -> dict[str, Any]:
    """Hook name → function, in the order of this file."""
    return {name: value for name, value in globals().items() if name.startswith("bothost_")}
