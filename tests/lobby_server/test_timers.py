"""Timers fire at their moment, once, however often they were moved."""

from hypothesis import given
from hypothesis import strategies as st

from bothost.lobby_server.timers import Timers

KEYS = st.sampled_from(["a", "b", "c"])
OPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, st.integers(0, 50)),
        st.tuples(st.just("cancel"), KEYS, st.just(0)),
        st.tuples(st.just("pass"), KEYS, st.integers(0, 20)),
    ),
    max_size=60,
)


@given(OPS)
def test_timers_agree_with_a_plain_dictionary(ops):
    timers, model, now = Timers(), {}, 0
    for op, key, value in ops:
        if op == "set":
            timers.set(key, now + value)
            model[key] = now + value
        elif op == "cancel":
            timers.cancel(key)
            model.pop(key, None)
        else:
            now += value
            due = {k for k, when in model.items() if when <= now}
            assert set(timers.due(now)) == due
            for k in due:
                del model[k]
        assert len(timers) == len(model)
        if model:
            assert timers.wake_at() <= min(model.values())


def test_the_heap_does_not_grow_while_a_deadline_moves_on():
    timers = Timers()
    for when in range(10_000):
        timers.set("table", float(when))
    assert len(timers._deadlines) == 1


def test_the_heap_does_not_grow_while_hands_end_before_their_deadlines():
    timers = Timers()
    for now in range(10_000):
        timers.set("table", float(now))  # the next hand begins
        assert timers.due(float(now)) == ["table"]
        timers.set("table", now + 1e6)  # a player is asked
    assert len(timers._deadlines) < 200


def test_the_heap_does_not_grow_with_what_was_forgotten():
    timers = Timers()
    for number in range(10_000):
        timers.set(f"table {number}", 1e9)
        if number >= 10:
            timers.cancel(f"table {number - 10}")
    assert len(timers._deadlines) < 200
    assert len(timers.due(1e9)) == 10
