"""Limits of time that also hold on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    began = time.monotonic()
    call()
    return time.monotonic() - began


def fastest(took: Callable[[], float], within_s: float, tries: int = 30) -> float:
    """The least seconds of some attempts, of which the first within the limit is the last.

    A busy machine delays some of them. What is really too slow is so each time.
    """
    least = took()
    while least >= within_s and (tries := tries - 1):
        least = min(least, took())
    return least
