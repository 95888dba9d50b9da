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
    usual = []  # this thread may have run a host, and have short turns itself
    in_a_thread(lambda: usual.append(slice_ns()))

    def loop():
        _native.take_short_turns()
        found.append(scheduling())
        in_a_thread(lambda: found.append((os.sched_getscheduler(0), slice_ns())))
        found.append(slice_ns())

    in_a_thread(loop)
    assert found[:2] == [before, (os.SCHED_OTHER, *usual)]
    if found[2] is not None:  # a kernel that tells, and is new enough
        assert found[2] in (100_000, *usual)


def in_a_thread(run):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def slice_ns():
    """Length of this thread's turns, where the kernel tells it."""
    try:
        with open(f"/proc/self/task/{threading.get_native_id()}/sched") as file:
            return next((int(line.split(":")[1]) for line in file if line.startswith("se.slice")), None)
    except OSError:
        return None
