"""fm-clone: plays like a given player, by combinations of features that factorization machines found."""

from __future__ import annotations

from bothost import LazyClass, hookimpl


@hookimpl
def bothost_strategies() -> list[LazyClass]:
    return [LazyClass("fm-clone", "bothost_fm_clone.decide:FmClone")]
