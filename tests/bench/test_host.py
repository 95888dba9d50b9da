"""What the host's benchmark says of the machine that it ran on."""

import subprocess
import sys

import pytest

from bothost.bench.host import answered, core_ticks, stolen_share
from bothost.bench.host_subject import tables_of
from bothost.errors import BothostError


def test_the_stolen_share_is_of_the_time_between_two_looks():
    before = [100, 0, 50, 800, 3, 0, 1, 10, 7, 0]  # user … softirq, steal, guest: a part of user
    after = [160, 0, 70, 810, 3, 0, 1, 20, 9, 0]
    assert stolen_share(before, after) == pytest.approx(10 / 100)
    assert stolen_share(before, before) is None


@pytest.mark.parametrize(("tables", "accounts"), [(1000, 20), (1001, 20), (3, 2), (2, 5)])
def test_accounts_share_all_tables(tables, accounts):
    shares = tables_of(tables, accounts)
    assert sum(shares) == tables and len(shares) == min(tables, accounts) and max(shares) - min(shares) <= 1


def test_a_subject_that_ends_first_ends_cleanly():
    code = "import threading, time; from bothost.bench.host_subject import end_after_parent as wait; "
    code += "threading.Thread(target=wait, daemon=True).start(); time.sleep(0.2)"
    subject = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    assert subject.wait(30) == 0
    subject.stdin.close()


def test_a_system_that_does_not_tell_has_no_stolen_share():
    assert core_ticks(10_000) == []
    assert stolen_share([], []) is None
    assert stolen_share([1, 2, 3], [2, 3, 4]) is None


def test_a_run_without_an_answer_has_no_figures():
    with pytest.raises(BothostError, match=r"nothing was answered within 0\.1 s"):
        answered({"per_s": 0.0, "p50_ms": None}, 0.1)
