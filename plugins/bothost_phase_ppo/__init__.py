"""phase-ppo: the four-colour pairing game one phase at a time, learnt by PPO in self-play."""

from __future__ import annotations

from bothost import Strategy, hookimpl


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    from bothost_phase_ppo.decide import PhasePpo

    return [PhasePpo]
