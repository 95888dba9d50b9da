"""The command that runs a program in bubblewrap."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from bothost import PluginError

_HIDDEN = ("/etc/bothost", "/home", "/media", "/mnt", "/root", "/run", "/srv", "/tmp", "/var")
"""Folders that a program in a sandbox does not see, nor the home of the user."""


def sandboxed(command: Sequence[str], cwd: str | None, memory_mb: int) -> list[str]:
    """Return the command that runs ``command`` in a sandbox. Raises PluginError without bubblewrap.

    It can write to ``/tmp`` and ``/dev/shm``, which are in memory: ``memory_mb`` limits each of them; 0: no limit.
    """
    if shutil.which("bwrap") is None:
        advice = 'install bubblewrap, or set sandbox = "none"'
        raise PluginError("exec", "the sandbox needs the program bwrap", advice=advice)
    folder, tmp = os.path.abspath(cwd or os.curdir), os.path.realpath("/tmp")
    places = dict.fromkeys(os.path.realpath(os.path.expanduser(place)) for place in (*_HIDDEN, "~"))
    hidden = [place for place in places if os.path.isdir(place) and place != os.sep]
    inside = [place for place in hidden if place != folder and os.path.commonpath([place, folder]) == folder]
    size = ["--size", str(memory_mb << 20)] if memory_mb else []

    def hide(folders: Sequence[str]) -> list[str]:
        return [word for place in folders for word in (*(size if place == tmp else []), "--tmpfs", place)]

    return [
        *("bwrap", "--die-with-parent", "--unshare-all", "--cap-drop", "ALL"),
        *("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", *size, "--tmpfs", "/dev/shm"),
        *hide([place for place in hidden if place not in inside]),
        *("--ro-bind", folder, folder, *hide(inside)),
        *(word for place in ("/dev", *hidden) if place != tmp for word in ("--remount-ro", place)),
        *("--chdir", folder, "--", *command),
    ]
