"""deep-mc: Dou Dizhu by deep Monte-Carlo. Value networks learn from self-play and from experts."""

from __future__ import annotations

from bothost import Strategy, hookimpl


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    from bothost_deep_mc.decide import DeepMc

    return [DeepMc]
