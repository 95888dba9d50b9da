"""``bothost bench deepmc``: the speed of deep-mc's self-play and learning on one core, in the process's CPU time."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from bothost.errors import UsageError
from bothost.plugins import Plugins

STRATEGY = "deep-mc"
DOUZERO_GAMES_PER_S = 26.0
"""Games per second of DouZero's self-play (Zha et al., arXiv:2106.06135) on one core: the reference."""


def command(
    hands: Annotated[int, typer.Option(help="Hands played at once.", min=1)] = 512,
    repeats: Annotated[int, typer.Option(help="Rounds; the median counts.", min=1)] = 3,
    large: Annotated[bool, typer.Option("--large", help="Networks of 1.5 million parameters a role.")] = False,
    seed: Annotated[int, typer.Option(help="Of networks and deals.", min=0)] = 0,
) -> dict[str, Any]:
    """Self-play without branches: hands, decisions among several moves, and samples learnt from, per second."""
    strategy = Plugins.load().strategies.get(STRATEGY)
    if strategy is None:
        raise UsageError(f"{STRATEGY} is not installed", advice="install bothost with its plugins")
    trainer: Any = strategy.trainer()
    figures: dict[str, Any] = trainer.measure(hands=hands, repeats=repeats, large=large, seed=seed)
    times = round(figures["games_per_s_core"] / DOUZERO_GAMES_PER_S, 2)
    return figures | {"times_douzero": times, "hands": hands, "seed": seed}
