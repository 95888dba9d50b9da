"""The specification of a match, as plain data for worker processes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bothost.rules.game import Game, Json
from bothost.strategy import Strategy


class MatchSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The specification of a match."""

    game: str
    rules: Json
    contestants: tuple[str, ...]
    """Strategy addresses."""
    options: tuple[Json, ...]
    """Options per contestant."""
    weights: tuple[str | None, ...] = ()
    """Per contestant the folder with its weights, or None; empty: None for all."""
    deals: int
    seed: int = 0
    ms: float | None = None
    """Time limit per decision in milliseconds; None: no clock."""
    batch: int = 64
    workers: int = 1
    sequential: bool = False
    """Stop as soon as the sequential test has decided between "A is better" and "B is better"."""
    alpha: float = 0.05
    luck_adjusted: bool = False
    """Also measure what luck gave each seat, and test adjusted scores. See ``bothost.arena.luck``."""
    forgive: bool = False
    """If a contestant raises or is late, play the first legal action and count it. False: an error ends the match, and
    a late decision is played and counted."""
    config: str | None = None
    """Configuration file that names the plugins."""


Build = Callable[[MatchSpec], tuple[Game, list[Strategy]]]
"""Makes a match's game and strategies. It must be a module-level function: worker processes import it by name."""
