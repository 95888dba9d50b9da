"""What a match is, in a form for worker processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bothost.rules.game import Game
from bothost.strategy import Strategy

Json = dict[str, Any]


class MatchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A match, in a form for worker processes."""

    game: str
    rules: Json
    contestants: tuple[str, ...]
    """Strategy addresses."""
    options: tuple[Json, ...]
    """Options per contestant."""
    weights: tuple[str | None, ...] = ()
    """Per contestant the folder of its version, or None; empty: None for all."""
    deals: int
    seed: int = 0
    ms: float | None = None
    """Time allowed per decision; None: no clock."""
    batch: int = 64
    workers: int = 1
    sequential: bool = False
    """Stop as soon as the sequential test has decided between "A is better" and "B is better"."""
    alpha: float = 0.05
    forgive: bool = False
    """A contestant that raises plays the first legal action, and the deal counts it. False: the match fails."""
    config: str | None = None
    """Configuration file that names the plugins."""


Build = Callable[[MatchSpec], tuple[Game, list[Strategy]]]
"""Makes a match's game and strategies. It must be a module-level function: worker processes import it by name."""
