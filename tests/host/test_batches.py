"""How long rows wait for the log."""

import asyncio
import time

from bothost.host.batches import Batches


class Log:
    """Its rows become durable when the test says so."""

    full = False

    def __init__(self):
        self.submitted = []

    def submit(self, records):
        self.submitted.append(asyncio.get_running_loop().create_future())
        return self.submitted[-1]


async def test_rows_that_wait_are_seen_even_if_rows_before_them_were_still_open():
    log = Log()
    batches = Batches(log, before_send=True)
    for answer in ("first", "second"):
        batches.add_answer(Answer(), [answer])
        batches.flush()
    log.submitted[0].set_result(None)
    await asyncio.sleep(0)
    assert batches.durable.total == 1
    assert batches.waiting_s(time.monotonic() + 60.0) > 59.0
    log.submitted[1].set_result(None)
    await asyncio.sleep(0)
    assert batches.durable.total == 2 and batches.waiting_s(time.monotonic() + 60.0) == 0.0


class Answer:
    state = "decided"
