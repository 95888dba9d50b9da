"""deep-mc: Dou Dizhu by deep Monte-Carlo. Value networks learn from self-play and from experts."""

from __future__ import annotations

from bothost import LazyClass, hookimpl


@hookimpl
def bothost_strategies() -> list[LazyClass]:
    return [LazyClass("deep-mc", "bothost_deep_mc.decide:DeepMc")]
