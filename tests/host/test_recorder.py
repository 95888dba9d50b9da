"""Rows that wait for others are not forgotten at the end."""

import asyncio
from types import SimpleNamespace

import pytest

from bothost.host import recorder as recording
from bothost.host.batches import LINGER_S, Batches
from bothost.host.recorder import EVENTS, Recorder
from bothost.store import EventsRecord
from bothost.tables.hand import Outcome


class Log:
    def __init__(self):
        self.rows, self.closed, self.full = [], False, False

    def submit(self, records):
        assert not self.closed
        self.rows.extend(records)
        return asyncio.get_running_loop().create_future()


def events(seq):
    return EventsRecord(b"g" * 16, 0, seq, "pass")


async def test_what_waits_is_submitted_at_the_end_and_what_comes_later_raises_nothing():
    log, troubles = Log(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: troubles.append(context))
    batches = Batches(log, before_send=True)
    batches.add(events(0))
    batches.close()
    log.closed = True
    batches.add(events(1))
    batches.flush()
    await asyncio.sleep(3 * LINGER_S)
    assert log.rows == [events(0)] and troubles == []


async def test_what_nothing_waits_for_shares_a_later_commit():
    """A decision's row is submitted in its turn of the loop; events and outcomes do not make that commit larger."""
    log, submitted = Log(), []
    log.submit = lambda records: submitted.append(list(records)) or asyncio.get_running_loop().create_future()
    batches = Batches(log, before_send=True)
    for seq, decision in enumerate(("first", "second")):
        batches.add(events(seq))
        batches.add_answer(SimpleNamespace(state="logging"), [decision])
        await asyncio.sleep(0)
    assert submitted == [["first"], ["second"]]
    await asyncio.sleep(3 * LINGER_S)
    assert submitted == [["first"], ["second"], [events(0), events(1)]]
    batches.close()


async def test_what_a_restarted_host_reads_of_a_refusal_is_there_before_the_decision_that_follows_it():
    log = Log()
    recorder = Recorder(log, host="test", config_hash="0", before_send=True)
    refused = SimpleNamespace(ids=(b"r" * 16,))
    recorder.outcome(Outcome(refused, "acknowledged"))
    recorder.outcome(Outcome(refused, "rejected", "no"))
    recorder.batches.add_answer(SimpleNamespace(state="logging"), ["next"])
    await asyncio.sleep(0)
    assert [getattr(row, "kind", row) for row in log.rows] == ["rejected", "next"]
    recorder.batches.close()
    assert [getattr(row, "kind", row) for row in log.rows] == ["rejected", "next", "acknowledged"]


async def test_moves_that_need_not_wait_do_wait_while_the_log_is_full():
    """Else live tables would fill the memory with rows while neither database nor spool takes any."""
    log, sent = Log(), []
    durable = asyncio.get_running_loop().create_future()
    log.submit = lambda records: log.rows.extend(records) or durable
    batches = Batches(log, before_send=False)
    batches.send = sent.extend
    answers = [SimpleNamespace(state="logged") for _ in range(3)]
    batches.add_answer(answers[0])
    await asyncio.sleep(0)
    assert sent == answers[:1]
    log.full = True
    batches.add(events(0))
    batches.add_answer(answers[1])
    await asyncio.sleep(3 * LINGER_S)
    assert sent == answers[:1] and len(log.rows) == 1
    durable.set_result(None)
    log.full = False
    batches.add_answer(answers[2])
    await asyncio.sleep(0.01)
    assert sent == answers
    batches.close()


@pytest.mark.parametrize("slow_us", [0, 3_600_000_000])
async def test_a_decision_at_a_slow_table_takes_the_events_before_it_along(kit, monkeypatch, slow_us):
    """Else who watches a person play sees the table up to sixteen events late."""
    monkeypatch.setattr(recording, "SLOW_US", slow_us)
    moved = "SELECT game_id, seat, seq FROM decisions WHERE game_id IN (SELECT game_id FROM game_ends)"
    async with kit.lobby(), kit.running(kit.settings()) as host:
        await kit.until(lambda: host.runner.counters.hands >= 3)
        await kit.until(lambda: len(kit.rows(moved)) > 20)  # a hand in which nobody bids has three
    rows = {}
    for game_id, seat, seq, text in kit.rows("SELECT game_id, seat, seq, events FROM events ORDER BY seq"):
        rows.setdefault((game_id, seat), []).append((seq, text.count("\n") + 1))
    decided = [((game_id, seat), seq) for game_id, seat, seq in kit.rows(moved)]
    if slow_us:
        assert all(count >= EVENTS for stretches in rows.values() for _, count in stretches[:-1])
    else:
        assert all(seq in {first + count for first, count in rows[key]} for key, seq in decided if seq)
