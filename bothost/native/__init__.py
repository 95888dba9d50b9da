"""The C++ core: games, search and learning, and their bindings in the extension module ``bothost.native._native``."""

from __future__ import annotations

import importlib

from bothost.native import _native


def native_view(view: object, game: str) -> _native.View:
    """The same view. Raises TypeError if it is not one of the core's."""
    if not isinstance(view, _native.View):
        raise TypeError(f"a View of {game} is needed, not {type(view).__name__}")
    return view


def native_state(state: object, game: str) -> _native.State:
    """As :func:`native_view`."""
    if not isinstance(state, _native.State):
        raise TypeError(f"a State of {game} is needed, not {type(state).__name__}")
    return state


def register_test_games() -> None:
    """Add the games that only test the contract of games. A checkout's install has them; a wheel does not."""
    try:
        testing = importlib.import_module("bothost.native._testing")
    except ModuleNotFoundError:
        return
    _native.register_game(testing.claims)
