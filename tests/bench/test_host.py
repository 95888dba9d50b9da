"""What the host's benchmark says of the machine that it ran on."""

import pytest

from bothost.bench.host import core_ticks, stolen_share


def test_the_stolen_share_is_of_the_time_between_two_looks():
    before = [100, 0, 50, 800, 3, 0, 1, 10, 7, 0]  # user … softirq, steal, guest: a part of user
    after = [160, 0, 70, 810, 3, 0, 1, 20, 9, 0]
    assert stolen_share(before, after) == pytest.approx(10 / 100)
    assert stolen_share(before, before) is None


def test_a_system_that_does_not_tell_has_no_stolen_share():
    assert core_ticks(10_000) == []
    assert stolen_share([], []) is None
    assert stolen_share([1, 2, 3], [2, 3, 4]) is None
