"""The fallback chain: its order, and who is skipped."""

import types

import numpy as np
import pytest

from bothost.strategy import Decision, Player, Strategy
from bothost.tables import fallback
from bothost.tables.actor import Actor


class Fixed(Player):
    """Decides on and quickly on what it was given; raises what is an error."""

    def __init__(self, decide, quick=None):
        self._decide, self._quick = decide, quick

    def decide(self, view, legal, budget):
        return _give(self._decide, legal)

    def quick(self, view, legal):
        return _give(self._quick, legal)


def _give(what, legal):
    if isinstance(what, Exception):
        raise what
    return what if isinstance(what, Decision) else Decision(action=int(legal[what]))


class Fallback(Strategy):
    name, version, games = "fallback", "1", ("*",)

    def player(self, table):
        return Fixed(-1)


@pytest.fixture
def job(seat):
    job = seat.job()
    job.hand.actor = Actor(types.SimpleNamespace(strategy="chosen", fallback="stand-in", reason=None))
    job.hand.actor.table = object()
    return job


def links(job):
    return [(link.by, loaded) for link, loaded in fallback.middle_links(job)]


def test_the_chain_is_strategy_quick_policy_fallback_strategy_first_legal_action():
    assert [link.by for link in fallback.CHAIN] == ["strategy", "quick", "fallback", "first-legal"]


def test_each_link_has_its_time_and_they_end_in_order(seat):
    window = seat.job().window
    ends = [link.until(window) for link in fallback.CHAIN]
    assert ends == [window.late, window.fallback, window.fallback, window.answer] and ends == sorted(ends)


def test_a_link_that_the_hand_does_not_have_is_skipped(job):
    assert links(job) == [("fallback", "stand-in")], "no player was made, so there is no quick policy"
    job.hand.actor.player = Fixed(0, 0)
    assert links(job) == [("quick", "chosen"), ("fallback", "stand-in")]
    job.hand.actor.plan.fallback = None
    assert links(job) == [("quick", "chosen")]


def test_each_link_decides_by_its_own_code(job):
    job.hand.actor.player = Fixed(0, 1)
    by = {link.by: link.decide(job, lambda loaded: Fallback(None)) for link in fallback.CHAIN[1:]}
    assert by["quick"].action == job.legal[1]
    assert by["fallback"].action == job.legal[-1]
    assert by["first-legal"].action == job.legal[0]


def test_the_last_link_says_late_where_nobody_said_why(job):
    decision, by = fallback.decide_last(job)
    assert (decision.action, by, job.reason) == (job.legal[0], "first-legal", "late")
    fallback.fall_back(job, "illegal")
    fallback.decide_last(job)
    assert job.reason == "illegal"


def test_falling_back_voids_what_the_strategy_may_still_say(job, seat):
    ticket = job.ticket
    fallback.fall_back(job, "late")
    assert job.ticket != ticket and job.link == 1 and job.hand.due_at == job.window.fallback
    assert fallback.is_over(job, seat.now)


def test_what_is_no_decision_or_not_legal_does_not_count(job):
    with pytest.raises(TypeError, match="returned str, not a Decision"):
        fallback.checked("pass")

    async def decide():
        raise AssertionError

    with pytest.raises(TypeError, match="decide is an async function: write it with def"):
        fallback.checked(decide())
    with pytest.raises(ValueError, match="illegal"):
        fallback.checked(Decision(action=10**6), job.legal)
    assert fallback.checked(Decision(action=int(job.legal[0])), job.legal)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("action", 1.0),
        ("action", True),
        ("phase", 7),
        ("model_sha256", b"0"),
        ("encoder_version", "1"),
        ("wait_ms", "100"),
        ("wait_ms", 1j),
    ],
)
def test_a_field_of_a_wrong_type_makes_no_decision(field, value):
    with pytest.raises(TypeError, match=f"Decision.{field} is {type(value).__name__}, not"):
        fallback.checked(Decision(**{"action": 0, field: value}))
    good = Decision(action=0, phase="play", model_sha256="0", encoder_version=1, wait_ms=np.float32(5.0))
    assert fallback.checked(good) is good


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("phase", "\ud800"),
        ("phase", "a\0b"),
        ("model_sha256", "x" * 257),
        ("encoder_version", 2**31),
        ("encoder_version", -(2**31) - 1),
        ("wait_ms", 10**400),
    ],
)
def test_what_the_log_cannot_store_makes_no_decision(field, value):
    """Otherwise the move would be sent, and its row refused by the database or by every export."""
    with pytest.raises(TypeError, match=f"Decision.{field} is not"):
        fallback.checked(Decision(**{"action": 0, field: value}))
