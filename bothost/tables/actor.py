"""Who plays our seat in one hand: the shell makes the plan, and a worker makes the players for it."""

from __future__ import annotations

import msgspec

from bothost.plugins import Resolved
from bothost.strategy import Execution, Player, Strategy, Table


class Loaded:
    """One resolved strategy: an address with its options and model. Equal ones are the same object."""

    def __init__(self, resolved: Resolved) -> None:
        strategy = resolved.strategy
        self.resolved = resolved
        self.name = strategy.name
        self.version = resolved.model.version if resolved.model is not None else strategy.version
        self.sha256 = resolved.model.sha256 if resolved.model is not None else None
        self.execution: Execution = strategy.execution
        self.search = strategy.needs_search_thread
        self.failures: list[float] = []
        """When it failed recently, monotonic seconds."""
        self.quarantined_until = 0.0
        self.quarantine_cause = ""
        self.hung = 0
        """Number of its threads that hang. While there are any, its open tables do not run it either."""

    @property
    def address(self) -> str:
        return self.resolved.address


class Plan(msgspec.Struct, frozen=True):
    """Which strategies play one hand. It does not change during the hand."""

    strategy: Loaded
    fallback: Loaded | None
    level: str | None
    reason: str | None = None
    """"quarantined" or "unavailable": ``strategy`` is the route's fallback."""


class Actor(msgspec.Struct, eq=False):
    """Plays our seat in one hand. A worker makes the players when it first needs them."""

    plan: Plan
    table: Table = None  # type: ignore[assignment]
    """The table that the players are made for. Set before the first decision."""
    player: Player | None = None
    instance: Strategy | None = None
    """The strategy instance that made ``player``."""
    fallback_player: Player | None = None
    slot: int = -1
    """Which thread of a pool plays the hand; -1: none yet."""
