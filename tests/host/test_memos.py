"""What adapters remember reaches the database, however long that is away."""

import threading

from bothost.errors import StoreUnavailable
from bothost.host.memos import MemoWriter


class Database:
    def __init__(self):
        self.away, self.asked, self.memos = True, threading.Event(), {}

    def write(self, lobby, account, memo):
        self.asked.set()
        if self.away:
            raise StoreUnavailable("gone")
        if memo == "bad":
            raise ValueError("no memo")
        self.memos[lobby, account] = memo


def test_the_newest_memo_waits_for_the_database():
    database = Database()
    memos = MemoWriter(database.write, retry_s=0.01)
    memos.remember(("home", "ada"), {"game": 1})
    assert database.asked.wait(30)
    for game in (2, 3):
        memos.remember(("home", "ada"), {"game": game})
    memos.remember(("home", "bob"), {"game": 7})
    database.away = False
    memos.close()
    assert database.memos == {("home", "ada"): {"game": 3}, ("home", "bob"): {"game": 7}}


def test_a_memo_that_cannot_be_written_costs_no_other_and_an_end_does_not_wait_for_ever():
    database = Database()
    database.away = False
    memos = MemoWriter(database.write, retry_s=60.0)
    memos.remember(("home", "ada"), "bad")
    memos.remember(("home", "bob"), {})
    memos.close()
    assert database.memos == {("home", "bob"): {}}
    database.away = True
    memos = MemoWriter(database.write, retry_s=60.0)
    memos.remember(("home", "ada"), {})
    memos.close()
    assert ("home", "ada") not in database.memos
