"""phase-ppo: the four-colour pairing game one phase at a time, learnt by PPO in self-play."""

from __future__ import annotations

from bothost import LazyClass, hookimpl


@hookimpl
def bothost_strategies() -> list[LazyClass]:
    return [LazyClass("phase-ppo", "bothost_phase_ppo.decide:PhasePpo")]
