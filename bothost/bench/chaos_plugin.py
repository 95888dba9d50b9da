"""Strategies that misbehave at random: a single-file plugin of the hosts that ``bothost bench chaos`` runs.

Each fault appends its name to the file ``journal`` first, so that it is counted even if it kills the process.
"""

from __future__ import annotations

import ctypes
import os
import random
import re
import sys
import time
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from bothost import Budget, Decision, Execution, Player, Strategy, Table, hookimpl
from bothost.rules import ActionArray, View


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    chance: float = 0.01
    """Chance of a fault, per decision."""
    journal: str = os.devnull
    """File to which the names of faults are appended."""
    hang_s: float = 20.0


def crash(options: Options, good: Decision) -> Any:
    raise RuntimeError("misbehaving at random")


def hang(options: Options, good: Decision) -> Any:
    time.sleep(options.hang_s)
    return good


def illegal(options: Options, good: Decision) -> Any:
    return Decision(action=1 << 30)


def no_decision(options: Options, good: Decision) -> Any:
    return "a move"


def slow(options: Options, good: Decision) -> Any:
    time.sleep(0.5)
    return good


def flood(options: Options, good: Decision) -> Any:
    sys.stdout.write("thinking …\n" * 10_000)
    return good


def die(options: Options, good: Decision) -> Any:
    os._exit(1)


def segfault(options: Options, good: Decision) -> Any:
    return ctypes.string_at(0)


def leak(options: Options, good: Decision) -> Any:
    """Allocates memory until it is stopped."""
    kept = []
    while True:
        kept.append(os.urandom(16 << 20))


def hold_gil(options: Options, good: Decision) -> Any:
    until = time.monotonic() + options.hang_s
    while time.monotonic() < until:
        re.match(r"(a+)+$", "a" * 22 + "b")
    return good


Fault = Callable[[Options, Decision], Any]
IN_A_THREAD: tuple[Fault, ...] = (crash, hang, illegal, no_decision, slow)
IN_A_PROCESS: tuple[Fault, ...] = (crash, hang, illegal, no_decision, slow, flood, die, segfault, leak, hold_gil)


class ErraticPlayer(Player):
    def __init__(self, strategy: ErraticThread) -> None:
        self.strategy = strategy

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        good = Decision(action=int(random.choice(legal)))
        options = self.strategy.options
        if random.random() >= options.chance:
            return good
        fault = random.choice(self.strategy.faults)
        with open(options.journal, "a") as journal:
            journal.write(f"{fault.__name__}\n")
        return fault(options, good)  # type: ignore[no-any-return]


class ErraticThread(Strategy):
    """Faults that a host contains in a thread."""

    name = "erratic-thread"
    version = "1"
    games = ("*",)
    Options: ClassVar[type[msgspec.Struct]] = Options
    execution: ClassVar[Execution] = "thread"
    faults: ClassVar[tuple[Fault, ...]] = IN_A_THREAD

    def player(self, table: Table) -> Player:
        return ErraticPlayer(self)


class ErraticProcess(ErraticThread):
    """Also faults that only a separate process contains."""

    name = "erratic-process"
    execution: ClassVar[Execution] = "process"
    faults: ClassVar[tuple[Fault, ...]] = IN_A_PROCESS


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    return [ErraticThread, ErraticProcess]
