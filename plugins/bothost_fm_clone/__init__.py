"""fm-clone: plays like a given player, by combinations of features that factorization machines found."""

from __future__ import annotations

from bothost import Strategy, hookimpl


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    from bothost_fm_clone.decide import FmClone

    return [FmClone]
