"""The ledger of seats: never above the cap, never a leaked slot."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from bothost.tables.slots import Capacity, Slots

NAMES = st.sampled_from([f"n{i}" for i in range(6)])
ACCOUNTS = st.sampled_from([0, 1])
CAPS = (3, 2)
SHARED = 4


class Ledger(RuleBasedStateMachine):
    """Random seeks, acceptances, cancels, expiries and ends, beside the obvious bookkeeping."""

    def __init__(self):
        super().__init__()
        self.shared = Capacity(SHARED)
        self.slots = [Slots(cap, self.shared) for cap in CAPS]
        self.reserved = [{}, {}]
        self.held = [set(), set()]
        self.now = 0.0

    def free(self, a):
        used = [len(self.reserved[i]) + len(self.held[i]) for i in (0, 1)]
        return used[a] < CAPS[a] and sum(used) < SHARED

    @rule(a=ACCOUNTS, seek=NAMES, life=st.floats(0, 5))
    def reserve(self, a, seek, life):
        expected = seek not in self.reserved[a] and self.free(a)
        assert self.slots[a].reserve(seek, self.now + life) == expected
        if expected:
            self.reserved[a][seek] = self.now + life

    @rule(a=ACCOUNTS, seek=NAMES, life=st.floats(0, 5))
    def extend(self, a, seek, life):
        assert self.slots[a].extend(seek, self.now + life) == (seek in self.reserved[a])
        if seek in self.reserved[a]:
            self.reserved[a][seek] = self.now + life

    @rule(a=ACCOUNTS, seek=NAMES)
    def cancel(self, a, seek):
        assert self.slots[a].cancel(seek) == (self.reserved[a].pop(seek, None) is not None)

    @rule(a=ACCOUNTS, table=NAMES, seek=st.one_of(st.none(), NAMES))
    def seat(self, a, table, seek):
        if table in self.held[a]:
            assert self.slots[a].seat(table, seek)
            self.reserved[a].pop(seek, None)
        elif seek in self.reserved[a]:
            assert self.slots[a].seat(table, seek)
            del self.reserved[a][seek]
            self.held[a].add(table)
        else:
            expected = self.free(a)
            assert self.slots[a].seat(table, seek) == expected
            if expected:
                self.held[a].add(table)

    @rule(a=ACCOUNTS, table=NAMES)
    def release(self, a, table):
        assert self.slots[a].release(table) == (table in self.held[a])
        self.held[a].discard(table)

    @rule(a=ACCOUNTS, later=st.floats(0, 3))
    def expire(self, a, later):
        self.now += later
        late = {seek for seek, at in self.reserved[a].items() if at <= self.now}
        assert set(self.slots[a].expire(self.now)) == late
        for seek in late:
            del self.reserved[a][seek]

    @invariant()
    def never_above_the_cap_never_a_leak(self):
        for i in (0, 1):
            assert self.slots[i].held == self.held[i]
            assert self.slots[i].reserved == set(self.reserved[i])
            assert self.slots[i].used <= CAPS[i]
        assert self.shared.used == sum(slots.used for slots in self.slots) <= SHARED


TestLedger = Ledger.TestCase
TestLedger.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_game_is_not_started_beyond_the_concurrency_cap():
    """lichess-bot#1163, #991, #1101: an acceptance in flight did not count."""
    slots = Slots(1, Capacity(1))
    assert slots.reserve("first", 10.0)
    assert not slots.reserve("second", 10.0)
    assert slots.seat("table-1", "first")
    assert not slots.seat("table-2", "late"), "the lobby seats us at a second table all the same: it must be left"
    assert slots.release("table-1")
    assert slots.reserve("third", 10.0)
