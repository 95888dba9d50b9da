"""Run plugins in child processes: limit what they see of the host, and end them with all their descendants.

A contained process adopts its orphaned descendants. A descendant that starts its own session is still below it, so
``end`` finds it. This needs Linux. Elsewhere ``end`` kills the process group, and memory use is unknown.

This file is also a program that contains another one: ``python -I -S children.py PARENT COMMAND…`` runs the command,
kills the processes that the command leaves behind, and exits with its code. So it imports the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

VARIABLES = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV"),
        *("PYTHONPATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"),
        *("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
    }
)
"""Environment variables that a plugin's process gets. It also gets those that start with ``LC_``."""
LOOKING_S = 2.0
"""How long ``end`` looks for more descendants: they may start others while they are killed."""

_PARENT_DIES_SIGNAL, _SET_DUMPABLE, _SET_CHILD_SUBREAPER = 1, 4, 36  # prctl(2)
_PAGE = os.sysconf("SC_PAGE_SIZE")


def lower_priority(task: int, nice: int) -> None:
    """Give a process or a thread this niceness, or our own if that is higher: to raise a priority takes root."""
    with contextlib.suppress(ProcessLookupError):
        os.setpriority(os.PRIO_PROCESS, task, max(nice, os.getpriority(os.PRIO_PROCESS, 0)))


def environment(more: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment of a plugin's process. ``more``: names of additional variables."""
    names = VARIABLES.union(more)
    return {name: value for name, value in os.environ.items() if name in names or name.startswith("LC_")}


def hide() -> None:
    """Keep other processes of this user from reading this process's memory, environment and open files.

    The superuser still can. This also disables core files.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def contained(command: Sequence[str]) -> list[str]:
    """Return the command line that runs ``command`` contained, as a child of this process."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def contain(parent: int, on_end: signal.Signals = signal.SIGKILL) -> None:
    """Contain this process: it adopts orphans, and leaves no core file.

    ``parent``: the process id of the parent, which may have ended already. ``on_end``: the signal that this process
    gets when the thread that started it ends.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        prctl(_PARENT_DIES_SIGNAL, on_end, 0, 0, 0)
        prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def end(pid: int) -> None:
    """Kill a contained process that leads a process group, and all its descendants. The caller waits for it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGSTOP)  # from now on it starts no more
    _end_descendants(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _end_descendants(pid: int) -> None:
    """Kill the descendants of a process that starts no more itself, and those that they start meanwhile.

    A killed process starts no more, but may take seconds to end. It leaves its children to this one before its state
    becomes "Z". A child that is just left may be overlooked once, so the last look and the one before must find none.
    """
    killed: set[int] = set()
    dead: set[int] = set()
    quiet, until = 0, time.monotonic() + LOOKING_S
    while quiet < 2:
        quiet += 1
        for each in descendants(pid, but=dead):
            if each not in killed:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(each, signal.SIGKILL)  # at once: in a millisecond another may run in its place
                killed.add(each)
                quiet = 0
            if time.monotonic() > until:
                return
        dead.update(each for each in killed - dead if _state(each) == "Z")


def descendants(pid: int, but: Collection[int] = ()) -> Iterator[int]:
    """Process ids of all descendants of a process, except ``but`` and theirs: each before its children, newest first.

    Empty if the system does not report them.
    """
    parents = [pid]
    while parents:
        parent = parents.pop()
        try:
            threads = os.listdir(f"/proc/{parent}/task")
        except OSError:  # the process has ended
            continue
        for thread in threads:
            try:
                children = Path(f"/proc/{parent}/task/{thread}/children").read_text().split()
            except OSError:  # the thread has ended
                continue
            for child in reversed(children):
                if (number := int(child)) not in but:
                    yield number
                    parents.append(number)


def resident_bytes(pid: int) -> int:
    """Resident memory of a process, in bytes. 0 if it has ended or the system does not report it."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _state(pid: int) -> str:
    """The letter of /proc/PID/stat; "Z" for a process that has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "Z"


def _main() -> None:
    def terminate(*_: object) -> None:
        _end_descendants(os.getpid())
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminate)
    contain(int(sys.argv[1]), signal.SIGTERM)
    own, command = os.getpid(), sys.argv[2:]
    started = os.fork()
    if started == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            contain(own)
            os.execvp(command[0], command)
        except OSError as error:
            sys.exit(f"{command[0]}: {error.strerror}")
    while True:
        pid, status = os.wait()
        if pid == started:
            break
    _end_descendants(own)
    if (code := os.waitstatus_to_exitcode(status)) < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(own, -code)
    os._exit(code)


if __name__ == "__main__":
    _main()
