"""The event loop's share of its core."""

import os
import sys
import threading

import pytest

from bothost.native import _native

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone counts turns for each thread")


def scheduling(thread=0):
    return os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK, os.getpriority(os.PRIO_PROCESS, thread)


def test_short_turns_change_nothing_else_and_are_not_inherited():
    before, found = scheduling(), []

    def loop():
        _native.take_short_turns()
        found.append(scheduling())
        child = threading.Thread(target=lambda: found.append((os.sched_getscheduler(0), slice_ns())))
        child.start()
        child.join()
        found.append(slice_ns())

    thread = threading.Thread(target=loop)
    thread.start()
    thread.join()
    assert found[:2] == [before, (os.SCHED_OTHER, slice_ns())]
    if found[2] is not None:  # a kernel that tells, and is new enough
        assert found[2] in (100_000, slice_ns())


def slice_ns():
    """Length of this thread's turns, where the kernel tells it."""
    try:
        with open(f"/proc/self/task/{threading.get_native_id()}/sched") as file:
            return next((int(line.split(":")[1]) for line in file if line.startswith("se.slice")), None)
    except OSError:
        return None
