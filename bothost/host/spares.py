"""Starts worker processes before their strategies are loaded.

A worker process takes as long to import its modules as the host. So processes for the routes start as soon as the
plugins are known, on the cores that the host leaves free. Both then import at the same time, and a restart after a kill
is faster.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from bothost import children
from bothost.config import Settings
from bothost.host.last_words import LastWords
from bothost.plugins import Plugins


class Started(NamedTuple):
    """A process that waits for its strategy, and the connection to it."""

    process: subprocess.Popen[bytes]
    connection: socket.socket
    last_words: LastWords


def start(variables: Iterable[str] = ()) -> Started:
    """Start a worker process (:mod:`bothost.host.process_child`). It ends when the calling thread ends.

    ``variables``: names of environment variables to pass to it in addition to the usual ones.
    """
    ours, theirs = socket.socketpair()
    last_words = LastWords()
    try:  # no output goes to ours: it could be endless, and no filter would remove secrets from it
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "bothost.host.process_child", str(theirs.fileno()), str(os.getpid())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=last_words.fileno(),
            env=children.environment(variables),
            start_new_session=True,
        )
    finally:
        theirs.close()
        last_words.follow()
    return Started(process, ours, last_words)


def number_for(settings: Settings, plugins: Plugins) -> int:
    """How many processes for the strategies of the routes to start early.

    At most one on each core that the host leaves free: more would delay its own imports. The others start when taken.
    """
    names = {(route.strategy.partition(":")[0], repr(sorted(route.options.items()))) for route in settings.routes}
    strategies = (plugins.strategies.get(name) for name, _ in names)
    in_processes = sum(found is not None and found.execution == "process" for found in strategies)
    free = max(1, (os.cpu_count() or 1) - 1)
    return min(in_processes * settings.limits.process_workers, free)


class Spares:
    """Processes that are not in use yet. The thread that makes this object starts them; any thread may take one."""

    def __init__(self, number: int = 0, variables: Iterable[str] = ()) -> None:
        """``variables``: as for ``start``."""
        self._variables = tuple(variables)
        self.waiting = deque(start(self._variables) for _ in range(number))

    def take(self) -> Started:
        """Take a spare process, or start one."""
        while self.waiting:
            try:
                spare = self.waiting.popleft()
            except IndexError:  # another thread was faster
                break
            if spare.process.poll() is None:
                return spare
            spare.connection.close()
        return start(self._variables)

    def close(self) -> None:
        """End the processes that are not in use."""
        while self.waiting:
            spare = self.waiting.popleft()
            children.end(spare.process.pid)
            spare.process.wait()
            spare.connection.close()
