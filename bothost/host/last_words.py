"""The end of what a child process writes to stderr: it often says why the process ended."""

from __future__ import annotations

import os
import threading

from bothost.errors import printable

MOST = 500
"""Most bytes that are kept."""
_WAIT_S = 0.5
"""How long to wait for the end of the pipe: a descendant of the process may keep it open."""


class LastWords:
    """Start a process with its ``fileno()`` as ``stderr``, then call ``follow``.

    A thread reads, so the process never waits.
    """

    def __init__(self) -> None:
        self._reads, self._writes = os.pipe()
        self._kept = b""
        self._thread = threading.Thread(target=self._read, name="last words", daemon=True)

    def fileno(self) -> int:
        return self._writes

    def follow(self) -> None:
        """Read until the process and its descendants have ended."""
        os.close(self._writes)
        self._thread.start()

    def text(self) -> str:
        """The end of what was written, safe to log. Call it after the end of the process."""
        self._thread.join(_WAIT_S)
        return printable(self._kept.decode(errors="replace").strip())

    def _read(self) -> None:
        with open(self._reads, "rb", buffering=0) as pipe:
            while chunk := pipe.read(65536):
                self._kept = (self._kept + chunk)[-MOST:]
