"""Windows of decisions, and the queue of deadlines."""

import math

from hypothesis import given
from hypothesis import strategies as st

from bothost.tables.clock import MIN_WINDOW_S, NEVER, ClockPolicy, Deadlines, window

any_ms = st.one_of(
    st.none(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(0, 60_000),
    st.just(0.0),
    st.integers(-10, 10),
    st.just(10**400),
)


@given(any_ms, st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 10), st.floats(0, 10))
def test_whatever_the_lobby_notice_the_moments_are_in_order(grant_ms, bank_ms, margin_s, min_move_s):
    policy = ClockPolicy(margin_s=margin_s, min_move_s=min_move_s)
    w = window(policy, 1000.0, grant_ms, bank_ms)
    assert 1000.0 < w.strategy < w.late < w.fallback < w.answer < 1000.0 + 2 * 3600 + 1
    assert 1000.0 <= w.not_before <= w.answer


def test_an_answer_leaves_the_margin_before_the_lobby_deadline():
    w = window(ClockPolicy(margin_s=0.25), 10.0, 5000)
    assert w.answer == 10.0 + 5.0 - 0.25
    assert w.strategy >= 10.0 + 4.5


def test_a_share_of_the_bank_may_be_spent():
    policy = ClockPolicy(margin_s=0.25, bank_share=0.1)
    assert math.isclose(window(policy, 0.0, 1000, 20_000).answer, 1.0 + 2.0 - 0.25)


def test_a_margin_longer_than_the_grant_leaves_half_of_it():
    assert window(ClockPolicy(margin_s=1.0), 0.0, 600).answer == 0.3


def test_a_clock_of_0_after_a_reconnect_still_gives_time_for_a_legal_move():
    """lichess-bot#1053: the lobby told 0 ms right after a reconnect, and the bot sent an illegal move."""
    assert window(ClockPolicy(), 5.0, 0.0, 0.0).answer == 5.0 + MIN_WINDOW_S


def test_without_a_clock_the_configured_time_counts():
    assert window(ClockPolicy(margin_s=0.0, no_clock_s=7.0), 1.0, None).answer == 8.0


class Item:
    def __init__(self):
        self.due_at = self.wake_at = NEVER


class Model:
    """Every item is due exactly when its latest deadline has passed: the obvious way."""

    def __init__(self, items):
        self.items = items

    def due(self, now):
        return {i for i, item in enumerate(self.items) if item.due_at <= now}


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0, 50), st.booleans()), max_size=60))
def test_every_item_comes_up_at_its_latest_deadline_and_never_before(steps):
    queue, items, now = Deadlines(), [Item() for _ in range(5)], 0.0
    for index, delay, advance in steps:
        if delay > 45 and not advance:
            queue.forget(items[index])
        elif advance:
            now += delay
            expected = Model(items).due(now)
            found = queue.due(now)
            assert {items.index(item) for item in found} == expected
            for item in found:
                item.due_at = NEVER
        else:
            items[index].due_at = now + delay
            queue.watch(items[index])
            assert queue.next() <= now + delay


def test_items_that_are_gone_are_not_held_until_their_deadline():
    queue, alive = Deadlines(), Item()
    alive.due_at = 1000.0
    queue.watch(alive)
    for _ in range(1000):
        item = Item()
        item.due_at = 500.0
        queue.watch(item)
        queue.forget(item)
    assert len(queue) < 50
    assert queue.due(1000.0) == [alive]


def test_later_deadlines_of_the_same_table_add_no_entries():
    queue, item = Deadlines(), Item()
    for at in range(1, 1001):
        item.due_at = float(at)
        queue.watch(item)
    assert len(queue) == 1
    assert queue.due(999.5) == []
    assert queue.due(1000.0) == [item]
    assert len(queue) == 0
