"""Memory that a host has freed goes back to the system."""

import asyncio
import platform
import subprocess
import sys

import pytest

from bothost.host import launch
from bothost.plugins import Plugins
from bothost.testing.hosting import Hosting

FRAGMENTED = """
import threading
from bothost.native import _native

def rss_mb():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))

kept = []

def fill():  # the last block keeps the allocator from giving back the others by itself
    blocks = [b"x" * 60_000 for _ in range(1000)]
    kept.append(b"x" * 60_000)

thread = threading.Thread(target=fill)
thread.start()
thread.join()
before = rss_mb()
_native.return_free_memory()
print(before - rss_mb())
"""

ARENAS = """
import ctypes, threading
from bothost.host import launch

async def main():
    together = threading.Barrier(8)

    def work():
        together.wait()
        held.append([b"x" * 1000 for _ in range(1000)])
        together.wait()

    held = []
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

launch.run(main())
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(libc.fdopen(1, b"w"))
libc.malloc_info(0, out)
libc.fflush(out)
"""

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators decide for themselves")


@glibc
def test_the_threads_of_a_host_share_two_arenas():
    result = subprocess.run([sys.executable, "-c", ARENAS], capture_output=True, text=True, check=True)
    assert result.stdout.count("<heap nr=") == launch.ARENAS


@glibc
def test_free_blocks_below_one_in_use_are_returned():
    result = subprocess.run([sys.executable, "-c", FRAGMENTED], capture_output=True, text=True, check=True)
    assert float(result.stdout) > 40.0, "of 57 MiB"


async def test_a_host_returns_free_memory_again_and_again(tmp_path, monkeypatch):
    calls, twice = [], asyncio.Event()
    loop = asyncio.get_running_loop()

    def count():
        calls.append(1)
        if len(calls) == 2:
            loop.call_soon_threadsafe(twice.set)

    monkeypatch.setattr(launch, "TRIM_S", 0.01)
    monkeypatch.setattr("bothost.native._native.return_free_memory", count)
    async with launch.opened(Hosting(tmp_path).settings(), Plugins.load(entry_points=False)):
        await asyncio.wait_for(twice.wait(), 10.0)
    ended = len(calls)
    await asyncio.sleep(0.05)
    assert len(calls) == ended, "it stops with the host"
