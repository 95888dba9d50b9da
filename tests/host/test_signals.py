"""Signals of a host: once, twice, and the same one twice."""

import asyncio
import os
import signal

import pytest

from bothost.host.signals import TWICE_S, handling


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_to_the_process_and_to_its_group_counts_once(number):
    got, reloaded = [], []
    with handling(got.append, lambda: reloaded.append(1)):
        for sent in (1, 2):
            for _ in range(2):
                os.kill(os.getpid(), number)
            await asyncio.sleep(2 * TWICE_S)
            assert got == [number] * sent
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(TWICE_S)
    assert got == [number] * 2 and reloaded == [1]
