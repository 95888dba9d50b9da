"""Waits between attempts to connect, and the rate limit."""

import random

from hypothesis import given
from hypothesis import strategies as st

from bothost.host.backoff import Backoff
from bothost.tables.clock import TokenBucket


@given(st.floats(1, 100), st.integers(1, 20), st.lists(st.floats(0, 0.5), min_size=1, max_size=200))
def test_never_more_than_burst_plus_rate_times_time(rate, burst, pauses):
    bucket, now, taken = TokenBucket(rate, burst, 0.0), 0.0, 0
    for pause in pauses:
        now += pause
        taken += bucket.take(now)
        assert taken <= burst + rate * now + 1e-6


@given(st.floats(0.5, 50), st.integers(1, 5))
def test_after_the_wait_that_it_names_there_is_a_token(rate, burst):
    bucket, now = TokenBucket(rate, burst, 0.0), 0.0
    for _ in range(30):
        while bucket.take(now):
            pass
        assert bucket.wait() > 0
        now += bucket.wait()
        assert bucket.take(now)


def test_backoff_grows_to_its_bound_with_full_jitter_and_starts_again():
    backoff = Backoff(1.0, 30.0, random.Random(1))
    waits = [backoff.next() for _ in range(200)]
    for attempt, wait in enumerate(waits):
        assert 0.0 <= wait <= min(30.0, 2.0**attempt)
    assert min(waits[10:]) < 3.0 and max(waits[10:]) > 27.0
    backoff.reset()
    assert backoff.next() <= 1.0


def test_the_wait_that_a_lobby_asks_for_comes_on_top():
    assert Backoff(1.0, 30.0).next(5.0) >= 5.0
