"""Misbehaving plugins, for tests of hosts and conformance kits.

The module itself is a plugin: ``Plugins.load(modules=[misbehaving])``. :func:`write_broken` writes plugins that do not
load. The first ``after`` decisions of each player are good; after that, every decision misbehaves.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from bothost import Budget, Decision, Execution, Player, Strategy, Table, hookimpl
from bothost.rules import ActionArray, View


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    after: int = 0
    """Number of good decisions before the first bad one."""
    seconds: float = 60.0
    """How long it hangs, sleeps or holds the GIL."""


class SlowOptions(Options, frozen=True, forbid_unknown_fields=True):
    seconds: float = 1.2


class _MisbehavingPlayer(Player):
    def __init__(self, strategy: Misbehaving) -> None:
        self.strategy = strategy
        self.decisions = 0

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        self.decisions += 1
        good = Decision(action=int(legal[0]))
        return good if self.decisions <= self.strategy.options.after else self.strategy.misbehave(view, legal, good)


class Misbehaving(Strategy):
    """Base of all: after its good decisions it answers with what ``misbehave`` returns."""

    version = "1"
    games = ("*",)
    Options: ClassVar[type[msgspec.Struct]] = Options
    execution: ClassVar[Execution] = "thread"

    def player(self, table: Table) -> Player:
        return _MisbehavingPlayer(self)

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        """What ``decide`` returns instead of a good decision. The default is the good decision."""
        return good


class Hang(Misbehaving):
    """Does not return, and lets other threads run."""

    name = "misbehaving-hang"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        time.sleep(self.options.seconds)
        return good


class Slow(Hang):
    """Returns a good decision after its budget has run out."""

    name = "misbehaving-slow"
    Options = SlowOptions


class SlowQuick(Misbehaving):
    """Decides at once, but sleeps when it is asked for a quick answer."""

    name = "misbehaving-slow-quick"

    def player(self, table: Table) -> Player:
        return _SlowQuickPlayer(self)


class _SlowQuickPlayer(_MisbehavingPlayer):
    def quick(self, view: View, legal: ActionArray) -> Decision:
        time.sleep(0.02)
        return Decision(action=int(legal[0]))


class Crash(Misbehaving):
    """Raises in ``decide``."""

    name = "misbehaving-crash"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        raise RuntimeError("misbehaving as announced")


class Exits(Misbehaving):
    """Calls ``exit()`` in ``decide``, in the thread that all inline strategies share."""

    name = "misbehaving-exit"
    execution: ClassVar[Execution] = "inline"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        sys.exit(3)


class PanicException(BaseException):
    """What a panic in a Rust extension raises. It is no ``Exception``."""


class Panics(Misbehaving):
    """Raises what is no ``Exception`` in ``decide``, in the thread that all inline strategies share."""

    name = "misbehaving-panic"
    execution: ClassVar[Execution] = "inline"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        raise PanicException("misbehaving as announced")


class CrashOnPlayer(Misbehaving):
    """Raises in ``player``."""

    name = "misbehaving-player"

    def player(self, table: Table) -> Player:
        raise RuntimeError("misbehaving as announced")


class CrashOnInit(Misbehaving):
    """Raises in the constructor."""

    name = "misbehaving-init"

    def __init__(self, options: Any, model: Any = None) -> None:
        raise RuntimeError("misbehaving as announced")


class CrashOnClose(Misbehaving):
    """Plays well, and raises when a player is closed."""

    name = "misbehaving-close"

    def player(self, table: Table) -> Player:
        player = _MisbehavingPlayer(self)
        player.close = self.fail  # type: ignore[method-assign]
        return player

    def fail(self) -> None:
        raise RuntimeError("misbehaving as announced")


class Illegal(Misbehaving):
    """Answers with an action that is not legal."""

    name = "misbehaving-illegal"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        return Decision(action=next(a for a in range(-1, len(legal) + 1) if a not in legal))


class Stubborn(Misbehaving):
    """Ignores ``legal``, so it chooses again what the lobby has refused."""

    name = "misbehaving-stubborn"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        return Decision(action=int(view.legal()[0]))


class NoDecision(Misbehaving):
    """Returns an action in place of a Decision."""

    name = "misbehaving-no-decision"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        return good.action


class Fraction(Misbehaving):
    """Returns an action that is no integer."""

    name = "misbehaving-fraction"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        return Decision(action=good.action + 0.5)  # type: ignore[arg-type]


class BadPolicy(Misbehaving):
    """Returns a policy that is longer than the legal actions, with a NaN in it."""

    name = "misbehaving-policy"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        return Decision(action=good.action, policy=[float("nan")] * (len(legal) + 1))


class ChangesView(Misbehaving):
    """Applies its move to the view that it was given."""

    name = "misbehaving-view"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        view.apply(good.action)
        return good


class Leak(Misbehaving):
    """Keeps every view and every player for ever, and a megabyte for each decision."""

    name = "misbehaving-leak"
    megabytes = 1

    def __init__(self, options: Any, model: Any = None) -> None:
        super().__init__(options, model)
        self.kept: list[Any] = []

    def player(self, table: Table) -> Player:
        player = super().player(table)
        self.kept.append(player)
        return player

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        self.kept += [view, bytearray(self.megabytes << 20)]
        return good


class Flood(Misbehaving):
    """Prints a lot."""

    name = "misbehaving-flood"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        sys.stdout.write("thinking …\n" * 1000)
        sys.stderr.write("thinking …\n" * 1000)
        return good


class Moody(Misbehaving):
    """Claims to be deterministic, but decides by the clock."""

    name = "misbehaving-moody"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        return Decision(action=int(legal[time.perf_counter_ns() // 100 % len(legal)]))


class HoldsGil(Misbehaving):
    """Holds the GIL. Only a process contains it."""

    name = "misbehaving-gil"
    execution = "process"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        until = time.monotonic() + self.options.seconds
        while time.monotonic() < until:
            re.match(r"(a+)+$", "a" * 22 + "b")  # backtracks for seconds, in C
        return good


class Dies(Misbehaving):
    """Ends the process. Only a process contains it."""

    name = "misbehaving-dies"
    execution = "process"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        os._exit(1)


class Segfault(Misbehaving):
    """Reads invalid memory, like a bug in a native extension. Only a process contains it."""

    name = "misbehaving-segfault"
    execution = "process"

    def misbehave(self, view: View, legal: ActionArray, good: Decision) -> Any:
        return ctypes.string_at(0)


class LeakInProcess(Leak):
    """As ``Leak``, in a process, where a limit contains it."""

    name = "misbehaving-process-leak"
    execution = "process"
    megabytes = 32


class FloodInProcess(Flood):
    """As ``Flood``, in a process, whose output is discarded."""

    name = "misbehaving-process-flood"
    execution = "process"


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    return [*Misbehaving.__subclasses__(), Slow, LeakInProcess, FloodInProcess]


_BROKEN = {
    "import_error": "import there_is_no_such_module",
    "syntax_error": "def bothost_strategies(:\n",
    "exits": "import sys\nsys.exit(3)",
    "raises": "raise RuntimeError('misbehaving as announced')",
    "no_hooks": "x = 1",
    "misspelled_hook": "from bothost import hookimpl\n@hookimpl\ndef bothost_stratgies():\n    return []",
    "wrong_signature": "from bothost import hookimpl\n@hookimpl\ndef bothost_table_opened(tabel):\n    pass",
    "hook_raises": "from bothost import hookimpl\n@hookimpl\ndef bothost_strategies():\n    yield None.name",
    "not_a_class": "from bothost import hookimpl\n@hookimpl\ndef bothost_strategies():\n    return ['random']",
    "newer_api": "from bothost import hookimpl\nAPI_VERSION = 99\n@hookimpl\ndef bothost_strategies():\n    return []",
    "wrong_attributes": """
from bothost import Strategy, hookimpl
class Wrong(Strategy):
    name = "Wrong Name"
    version = 1
    games = "pairing"
    levels = ["easy"]
    execution = "fork"
    api_version = 99
    Options = dict
    def player(self, table): ...
class Abstract(Strategy):
    name = "abstract"
    version = "1"
    games = ("*",)
@hookimpl
def bothost_strategies():
    return [Wrong, Abstract]
""",
    "duplicate": """
from bothost import Strategy, hookimpl
class Random(Strategy):
    name = "random"
    version = "1"
    games = ("*",)
    def player(self, table): ...
@hookimpl
def bothost_strategies():
    return [Random]
""",
}


def write_broken(folder: Path) -> list[str]:
    """Write one plugin for each way not to load into ``folder``. Returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in _BROKEN.items():
        (folder / f"{name}.py").write_text(source, "utf-8")
    return list(_BROKEN)
