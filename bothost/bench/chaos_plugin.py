"""Strategies that misbehave at random: a single-file plugin of the hosts that ``bothost bench chaos`` runs.

Each fault appends its name to the file ``journal`` first, so that it is counted even if it kills the process.
"""

from __future__ import annotations

import os
import random
from typing import Any, ClassVar

import msgspec

from bothost import Budget, Decision, Execution, Player, Strategy, Table, hookimpl
from bothost.rules import ActionArray, View
from bothost.testing import misbehaving
from bothost.testing.misbehaving import Misbehaving


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    chance: float = 0.01
    """Chance of a fault, per decision."""
    journal: str = os.devnull
    """File to which the names of faults are appended."""
    hang_s: float = 20.0


class LeaksWithoutEnd(misbehaving.Leak):
    """Allocates memory until it is stopped."""

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        while True:
            self.kept.append(os.urandom(16 << 20))


IN_A_THREAD: tuple[type[Misbehaving], ...] = (
    misbehaving.Crash,
    misbehaving.Hang,
    misbehaving.Illegal,
    misbehaving.NoDecision,
    misbehaving.Slow,
)
IN_A_PROCESS: tuple[type[Misbehaving], ...] = (
    *IN_A_THREAD,
    misbehaving.Flood,
    misbehaving.Dies,
    misbehaving.Segfault,
    misbehaving.HoldsGil,
    LeaksWithoutEnd,
)


class ErraticPlayer(Player):
    def __init__(self, options: Options, faults: list[Misbehaving]) -> None:
        self.options = options
        self.faults = faults

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        good = Decision(action=int(random.choice(legal)))
        if random.random() >= self.options.chance:
            return good
        fault = random.choice(self.faults)
        with open(self.options.journal, "a") as journal:
            journal.write(f"{type(fault).__name__}\n")
        return fault.misbehave(view, legal, good)  # type: ignore[no-any-return]


class ErraticThread(Strategy):
    """Faults that a host contains in a thread."""

    name = "erratic-thread"
    version = "1"
    games = ("*",)
    Options: ClassVar[type[msgspec.Struct]] = Options
    execution: ClassVar[Execution] = "thread"
    faults = IN_A_THREAD

    def player(self, table: Table) -> Player:
        hang_s = self.options.hang_s
        faults = [
            kind(misbehaving.Options(seconds=0.5 if kind is misbehaving.Slow else hang_s)) for kind in self.faults
        ]
        return ErraticPlayer(self.options, faults)


class ErraticProcess(ErraticThread):
    """Also faults that only a separate process contains."""

    name = "erratic-process"
    execution: ClassVar[Execution] = "process"
    faults = IN_A_PROCESS


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    return [ErraticThread, ErraticProcess]
