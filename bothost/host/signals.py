"""The signals of a host: SIGTERM and Ctrl-C end it, SIGHUP reloads its configuration."""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import time
from collections.abc import Callable, Iterator

TWICE_S = 0.1
"""A signal that comes again so soon was sent twice: ``timeout`` sends it to the process, and to the process's group.
On a busy machine there are some hundredths of a second between the two."""


@contextlib.contextmanager
def handling(interrupt: Callable[[int], object], reload: Callable[[], object]) -> Iterator[None]:
    """Handle signals in this event loop while the block runs. ``interrupt`` gets the signal's number."""
    loop = asyncio.get_running_loop()
    last = -math.inf

    def once(number: int) -> None:
        nonlocal last
        before, last = last, time.monotonic()
        if last - before > TWICE_S:
            interrupt(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, once, number)
    loop.add_signal_handler(signal.SIGHUP, reload)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)
