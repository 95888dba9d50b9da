"""The C++ core: games, search and learning, and their bindings in the extension module ``bothost.native._native``."""

from __future__ import annotations

import importlib

from bothost.native import _native


def register_test_games() -> None:
    """Add the games that only test the contract of games. A checkout's install has them; a wheel does not."""
    try:
        testing = importlib.import_module("bothost.native._testing")
    except ModuleNotFoundError:
        return
    _native.register_game(testing.claims)
