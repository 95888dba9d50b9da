"""Rows that wait for others are not forgotten at the end."""

import asyncio
from types import SimpleNamespace

from bothost.host.recorder import LINGER_S, Recorder
from bothost.store import EventsRecord
from bothost.tables.hand import Outcome


class Log:
    def __init__(self):
        self.rows, self.closed, self.full = [], False, False

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


async def test_what_nothing_waits_for_shares_a_later_commit():
    """A decision's row is handed over in its turn of the loop; events and outcomes do not make that commit larger."""
    log, batches = Log(), []
    log.submit = lambda records: batches.append(list(records)) or asyncio.get_running_loop().create_future()
    recorder = Recorder(log, host="test", config_hash="0", before_send=True)
    recorder._decision = lambda hand, plan, job, at: job.row
    hand = SimpleNamespace(plan=None, unlogged=[])

    def answer(row):
        return SimpleNamespace(state="new", steps=(SimpleNamespace(row=row, id=b""),), hand=hand, ids=())

    events = [EventsRecord(b"g" * 16, 0, seq, "pass") for seq in (0, 1)]
    recorder._add(events[0])
    recorder.answer(answer("first"))
    await asyncio.sleep(0)
    recorder._add(events[1])
    recorder.answer(answer("second"))
    await asyncio.sleep(0)
    assert batches == [["first"], ["second"]]
    await asyncio.sleep(3 * LINGER_S)
    assert batches == [["first"], ["second"], events]
    recorder.close()


async def test_what_a_restarted_host_reads_of_a_refusal_is_there_before_the_decision_that_follows_it():
    log = Log()
    recorder = Recorder(log, host="test", config_hash="0", before_send=True)
    recorder._decision = lambda hand, plan, job, at: job.row
    refused = SimpleNamespace(ids=(b"r" * 16,))
    hand = SimpleNamespace(plan=None, unlogged=[])
    recorder.outcome(Outcome(refused, "acknowledged"))
    recorder.outcome(Outcome(refused, "rejected", "no"))
    recorder.answer(SimpleNamespace(state="new", steps=(SimpleNamespace(row="next", id=b""),), hand=hand, ids=()))
    await asyncio.sleep(0)
    assert [getattr(row, "kind", row) for row in log.rows] == ["rejected", "next"]
    recorder.close()
    assert [getattr(row, "kind", row) for row in log.rows] == ["rejected", "next", "acknowledged"]


async def test_moves_that_need_not_wait_do_wait_while_the_log_is_full():
    """Else live tables would fill the memory with rows while neither database nor spool takes any."""
    log, sent = Log(), []
    durable = asyncio.get_running_loop().create_future()
    log.submit = lambda records: log.rows.extend(records) or durable
    recorder = Recorder(log, host="test", config_hash="0", before_send=False)
    recorder.send = sent.extend
    answers = [SimpleNamespace(state="logged", steps=()) for _ in range(3)]
    recorder.answer(answers[0])
    await asyncio.sleep(0)
    assert sent == answers[:1]
    log.full = True
    recorder._add(EventsRecord(b"g" * 16, 0, 0, "pass"))
    recorder.answer(answers[1])
    await asyncio.sleep(3 * LINGER_S)
    assert sent == answers[:1] and len(log.rows) == 1
    durable.set_result(None)
    log.full = False
    recorder.answer(answers[2])
    await asyncio.sleep(0.01)
    assert sent == answers
    recorder.close()
