"""Perfect-information games of OpenSpiel, and OpenSpiel's bots as strategies. Extra ``openspiel``.

Source: Lanctot et al., "OpenSpiel: A Framework for Reinforcement Learning in Games" (2019).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from bothost import Board, LazyClass, hookimpl
from bothost.errors import UsageError
from bothost.rules import GameFactory

if TYPE_CHECKING:
    from bothost_openspiel.game import SpielGame

MEMBERS = (
    "backgammon",
    "breakthrough",
    "checkers",
    "chess",
    "connect_four",
    "go(board_size=9)",
    "havannah",
    "hex",
    "mancala",
    "tic_tac_toe",
    "y",
)
"""Games that lists show. Others can be played by name."""


def make(name: str, **options: object) -> SpielGame:
    """Make a game such as ``connect_four`` or ``go(board_size=9)``. Raises UsageError, or ValueError for options."""
    if find_spec("pyspiel") is None:
        raise UsageError(f"openspiel:{name[:40]} needs OpenSpiel", advice='pip install "bothost[openspiel]"')
    from bothost_openspiel.game import load

    if options:
        raise ValueError(f"{name} takes no options: write openspiel:{name}(NAME=VALUE)")
    return load(name)


@hookimpl
def bothost_games() -> Iterator[GameFactory]:
    members = MEMBERS if find_spec("pyspiel") is not None else ()
    yield GameFactory("openspiel:", make, members=tuple(f"openspiel:{name}" for name in members))


@hookimpl
def bothost_boards() -> Iterator[Board]:
    """Nothing is hidden in these games: spectators see what the seats see."""
    yield Board("openspiel:*", None, public=dict)


@hookimpl
def bothost_strategies() -> Iterator[LazyClass]:
    if find_spec("pyspiel") is not None:
        yield LazyClass("openspiel-mcts", "bothost_openspiel.bots:SpielMcts")
        yield LazyClass("openspiel-random", "bothost_openspiel.bots:SpielRandom")
