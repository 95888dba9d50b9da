"""Signals of a host: once, twice, and the same one twice."""

import asyncio
import os
import signal
from types import SimpleNamespace

import pytest

from bothost.host import signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_to_the_process_and_to_its_group_counts_once(number, monkeypatch):
    now, got, reloaded = [100.0], [], asyncio.Event()
    monkeypatch.setattr(signals, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with signals.handling(got.append, reloaded.set):
        for sent in (1, 2):
            for each in (number, signal.SIGHUP):  # the second is handled after the first
                os.kill(os.getpid(), each)
            await reloaded.wait()
            now[0] += signals.TWICE_S / 2
            reloaded.clear()
            for each in (number, signal.SIGHUP):
                os.kill(os.getpid(), each)
            await reloaded.wait()
            assert got == [number] * sent
            now[0] += 2 * signals.TWICE_S
            reloaded.clear()
