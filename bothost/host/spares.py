"""Worker processes that are started before it is known what they will play.

A worker process imports for as long as the host itself does. Those that the routes will need are started as soon as the
plugins are known, so that both import at the same time: a host that was killed is back sooner.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections import deque
from typing import NamedTuple

from bothost.config import Settings
from bothost.plugins import Plugins

_SECRET = re.compile(r"BOTHOST_.*(TOKEN|TOKENS|PASSWORD|SECRET)")


class Started(NamedTuple):
    """A process that waits for its strategy, and the connection to it."""

    process: subprocess.Popen[bytes]
    connection: socket.socket


def start() -> Started:
    """Start a worker process (:mod:`bothost.host.process_child`). It ends with the thread that calls this."""
    ours, theirs = socket.socketpair()
    # Output goes nowhere: it could be endless, and would pass by the filter that keeps secrets out of logs.
    process = subprocess.Popen(
        [sys.executable, "-m", "bothost.host.process_child", str(theirs.fileno()), str(os.getpid())],
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if not _SECRET.fullmatch(name)},
        start_new_session=True,
    )
    theirs.close()
    return Started(process, ours)


def number_for(settings: Settings, plugins: Plugins) -> int:
    """How many processes the strategies of the routes will need."""
    names = {(route.strategy.partition(":")[0], repr(sorted(route.options.items()))) for route in settings.routes}
    strategies = (plugins.strategies.get(name) for name, _ in names)
    in_processes = sum(found is not None and found.execution == "process" for found in strategies)
    return in_processes * settings.limits.process_workers


class Spares:
    """Processes that nobody has taken yet. Threads may take them; they are started by the thread that makes this."""

    def __init__(self, number: int = 0) -> None:
        self._waiting = deque(start() for _ in range(number))

    def take(self) -> Started:
        """One of them, or a fresh one."""
        while self._waiting:
            try:
                spare = self._waiting.popleft()
            except IndexError:  # another thread was faster
                break
            if spare.process.poll() is None:
                return spare
            spare.connection.close()
        return start()

    def close(self) -> None:
        """End those that nobody took."""
        while self._waiting:
            process, connection = self._waiting.popleft()
            process.kill()
            process.wait()
            connection.close()
