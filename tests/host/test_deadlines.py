"""One timer watches the deadlines of all hands."""

import asyncio
import time
import types

import pytest

from bothost.host.deadlines import DeadlineTimer
from bothost.tables.clock import NEVER


class Panic(BaseException):
    """What the panic of a game in Rust raises."""


@pytest.mark.parametrize("error", [RuntimeError("broken"), Panic("broken")])
async def test_a_failure_at_one_hand_takes_no_deadline_from_the_others(error):
    reported, expired = [], []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["exception"]))

    def expire(hand, now):
        hand.due_at = NEVER
        if hand is bad:
            raise error
        expired.append(hand)
        if len(expired) == 2:
            over.set()

    now, over = time.monotonic(), asyncio.Event()
    bad, same, later = (types.SimpleNamespace(due_at=now + s, wake_at=NEVER) for s in (0.0, 0.0, 0.05))
    timer = DeadlineTimer(expire)
    for hand in (bad, same, later):
        timer.watch(hand)
    async with asyncio.timeout(10):
        await over.wait()
    assert expired == [same, later] and reported == [error]
    timer.close()
