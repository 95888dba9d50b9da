"""Rows that wait for others are not forgotten at the end."""

import asyncio

from bothost.host.recorder import LINGER_S, Recorder
from bothost.store import EventsRecord


class Log:
    def __init__(self):
        self.rows, self.closed = [], False

    def submit(self, records):
        assert not self.closed
        self.rows.extend(records)
        return asyncio.get_running_loop().create_future()


async def test_what_waits_is_submitted_at_the_end_and_what_comes_later_raises_nothing():
    log, troubles = Log(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: troubles.append(context))
    recorder = Recorder(log, host="test", config_hash="0", before_send=True)
    first, late = (EventsRecord(b"g" * 16, 0, seq, "pass") for seq in (0, 1))
    recorder._add(first)
    recorder.close()
    log.closed = True
    recorder._add(late)
    recorder.flush()
    await asyncio.sleep(3 * LINGER_S)
    assert log.rows == [first] and troubles == []
