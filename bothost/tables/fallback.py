"""The fallback chain: who is asked for a decision, in order, until one gives a legal action in time.

A session asks the first link. If that fails or is late, a worker tries the middle links, and when the time is up the
session uses the last one. The first link that gives a legal action decides. The log says which one, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from bothost.rules.game import ActionArray
from bothost.strategy import IS_ASYNC, Budget, Decision, Player, Strategy, is_async
from bothost.tables.actor import Actor, Loaded
from bothost.tables.clock import Window
from bothost.tables.hand import DecidedBy, Hand, Job

InstanceOf = Callable[[Loaded], Strategy]
"""Returns the worker's instance of a strategy."""


def player_of(hand: Hand, instance: Strategy) -> Player:
    """The hand's player of this strategy instance, made if needed, after it has received all events."""
    actor = hand.actor
    player = actor.player
    if player is None or actor.instance is not instance:
        player = instance.player(actor.table)
        actor.player, actor.instance = player, instance
    if hand.news:
        news = hand.news
        player.observe([news.popleft() for _ in range(len(news))])
    return player


def budget_of(job: Job) -> Budget:
    """The time that the strategy may use for this decision."""
    return Budget(job.window.strategy, job.window.bank_ms)


def _strategy(job: Job, instance_of: InstanceOf) -> Decision:
    player = player_of(job.hand, instance_of(job.hand.actor.plan.strategy))
    return player.decide(job.view, job.legal, budget_of(job))


def _quick(job: Job, instance_of: InstanceOf) -> Decision | None:
    player = job.hand.actor.player
    assert player is not None
    return player.quick(job.view, job.legal)


def _fallback(job: Job, instance_of: InstanceOf) -> Decision:
    actor = job.hand.actor
    if actor.fallback_player is None:
        assert actor.plan.fallback is not None
        actor.fallback_player = instance_of(actor.plan.fallback).player(actor.table)
    return checked(actor.fallback_player.decide(job.view, job.legal, Budget(job.window.fallback, 0.0)))


def _first_legal(job: Job, instance_of: InstanceOf | None = None) -> Decision:
    return Decision(action=int(job.legal[0]))


def _strategy_with_player(actor: Actor) -> Loaded | None:
    return actor.plan.strategy if actor.player is not None else None


class Link(NamedTuple):
    """One link of the chain."""

    by: DecidedBy
    decide: Callable[[Job, InstanceOf], Decision | None]
    """Returns None if it has no answer. May raise anything."""
    who: Callable[[Actor], Loaded | None]
    """The strategy whose code runs; None if this hand does not have the link."""
    until: Callable[[Window], float]
    """When its answer is late."""


CHAIN: tuple[Link, ...] = (
    Link("strategy", _strategy, lambda actor: actor.plan.strategy, lambda window: window.late),
    Link("quick", _quick, _strategy_with_player, lambda window: window.fallback),
    Link("fallback", _fallback, lambda actor: actor.plan.fallback, lambda window: window.fallback),
    Link("first-legal", _first_legal, lambda actor: None, lambda window: window.answer),
)
"""The links in order. ``Job.link`` is the index of the one that is asked."""


def start(job: Job) -> None:
    """Ask the first link."""
    job.link = 0
    job.hand.due_at = CHAIN[0].until(job.window)


def fall_back(job: Job, reason: str) -> None:
    """Ask the links after the strategy, because it failed. Results of earlier hand-overs are ignored."""
    job.link, job.reason = 1, reason
    job.ticket += 1
    job.hand.due_at = CHAIN[1].until(job.window)


def is_over(job: Job, now: float) -> bool:
    """Whether only the last link is left for a job that is due: its fallbacks failed, or their time is up."""
    return job.link > 0 or now >= CHAIN[1].until(job.window)


def decide_last(job: Job) -> tuple[Decision, DecidedBy]:
    """Decide by the last link, which always gives a legal action."""
    job.reason = job.reason or "late"
    job.ticket += 1
    return _first_legal(job), CHAIN[-1].by


def middle_links(job: Job) -> Iterator[tuple[Link, Loaded]]:
    """The links that a worker tries after the strategy failed, each with its strategy."""
    for link in CHAIN[1:-1]:
        if (loaded := link.who(job.hand.actor)) is not None:
            yield link, loaded


_FIELDS: tuple[tuple[str, type, int], ...] = (
    ("phase", str, 0),
    ("model_sha256", str, 0),
    ("encoder_version", int, 32),
    ("wait_ms", Real, 64),
)
"""Fields of a Decision, other than the action, that the host reads as they are: type, and bits of an integer. None is
allowed."""
MOST_TEXT = 256
"""Characters of a text in a Decision."""


def checked(decision: Any, legal: ActionArray | None = None, what: str = "decide") -> Decision:
    """Check and return a plugin's decision. ``what``: the method that returned it.

    Raises TypeError if it is not a Decision or the log cannot store a field, ValueError if it is illegal.
    """
    if type(decision) is not Decision:
        if is_async(decision):
            raise TypeError(f"{what} {IS_ASYNC}")
        raise TypeError(f"{what} returned {type(decision).__name__}, not a Decision")
    if type(decision.action) is not int and not isinstance(decision.action, np.integer):
        raise TypeError(f"Decision.action is {type(decision.action).__name__}, not int")
    for name, kind, bits in _FIELDS:
        value = getattr(decision, name)
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"Decision.{name} is {type(value).__name__}, not {kind.__name__}")
        if isinstance(value, str) and (len(value) > MOST_TEXT or not value.isprintable()):
            raise TypeError(f"Decision.{name} is not a printable text of at most {MOST_TEXT} characters")
        if isinstance(value, int) and not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            raise TypeError(f"Decision.{name} is not an integer of {bits} bits")
    if legal is not None and decision.action not in legal:
        raise ValueError(f"action {decision.action} is illegal")
    return decision
