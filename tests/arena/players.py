"""Small strategies for arena tests; imported by worker processes, hence a module of its own."""

import sys
import time
from typing import ClassVar

import numpy as np

from bothost import rules
from bothost.strategy import Decision, Player, Strategy
from bothost.testing.misbehaving import PanicException


class _RandomPlayer(Player):
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def decide(self, view, legal, budget):
        return Decision(action=int(self.rng.choice(legal)))


class Random(Strategy):
    name = "test-random"
    version = "1"
    games = ("*",)

    def player(self, table):
        return _RandomPlayer(table.seed)


class FirstPlayer(Player):
    def decide(self, view, legal, budget):
        return Decision(action=int(legal[0]))


class First(Strategy):
    name = "test-first"
    version = "1"
    games = ("*",)

    def player(self, table):
        return FirstPlayer()


class _LastPlayer(Player):
    def decide(self, view, legal, budget):
        return Decision(action=int(legal[-1]))


class Last(Strategy):
    name = "test-last"
    version = "1"
    games = ("*",)

    def player(self, table):
        return _LastPlayer()


class _SearchPlayer(Player):
    def __init__(self, seed):
        self.seed = seed

    def decide(self, view, legal, budget):
        search = rules.search(view, seed=self.seed)
        search.run(iterations=60)
        return Decision(action=max(search.root_actions, key=lambda root: root[1])[0])


class Searching(Strategy):
    name = "test-search"
    version = "1"
    games = ("*",)

    def player(self, table):
        return _SearchPlayer(table.seed)


class _LiarPlayer(Player):
    def decide(self, view, legal, budget):
        return Decision(action=-1)


class Liar(Strategy):
    name = "test-liar"
    version = "1"
    games = ("*",)

    def player(self, table):
        return _LiarPlayer()


class _ScribblerPlayer(Player):
    def decide(self, view, legal, budget):
        legal[:] = 9_999
        return Decision(action=-1)


class Scribbler(Strategy):
    """Writes into the array of legal actions."""

    name = "test-scribbler"
    version = "1"
    games = ("*",)

    def player(self, table):
        return _ScribblerPlayer()


class _SlowPlayer(Player):
    def decide(self, view, legal, budget):
        assert budget.left_ms() <= 50
        time.sleep(0.002)
        return Decision(action=int(legal[0]))


class Slow(Strategy):
    name = "test-slow"
    version = "1"
    games = ("*",)

    def player(self, table):
        return _SlowPlayer()


class _LatePlayer(Player):
    def decide(self, view, legal, budget):
        time.sleep(0.012)
        return Decision(action=int(legal[-1]))


class Late(Strategy):
    """Needs 12 ms for a decision."""

    name = "test-late"
    version = "1"
    games = ("*",)

    def player(self, table):
        return _LatePlayer()


class _ReturningPlayer(Player):
    def __init__(self, make):
        self.make = make

    def decide(self, view, legal, budget):
        return self.make(legal)


class Number(Strategy):
    """Returns the action itself instead of a decision."""

    name = "test-number"
    version = "1"
    games = ("*",)
    make = staticmethod(lambda legal: int(legal[0]))

    def player(self, table):
        return _ReturningPlayer(self.make)


class Fraction(Number):
    """Decides for an action that is no integer."""

    name = "test-fraction"
    make = staticmethod(lambda legal: Decision(action=float(legal[0])))


class Array(Number):
    """Decides for an action of a NumPy type."""

    name = "test-array"
    make = staticmethod(lambda legal: Decision(action=legal[0]))


class Awaiting(Number):
    """Has an async decide."""

    name = "test-awaiting"

    @staticmethod
    async def make(legal):
        raise AssertionError


class Quitting(Number):
    """Ends the program."""

    name = "test-quitting"
    make = staticmethod(lambda legal: sys.exit("enough"))


class Panicking(Number):
    """Raises what a panic of a Rust extension raises."""

    name = "test-panicking"

    @staticmethod
    def make(legal):
        raise PanicException("index out of range")


class Silent(Number):
    """Answers as a program that does not answer in time."""

    name = "test-silent"

    @staticmethod
    def make(legal):
        raise TimeoutError("did not answer in time")


class Homeless(First):
    """Makes no player."""

    name = "test-homeless"

    def player(self, table):
        raise RuntimeError("no player")


class _ClingingPlayer(FirstPlayer):
    def close(self):
        raise RuntimeError("will not go")


class Clinging(First):
    """Its players fail when a hand is over. Keeps which of its instances were closed."""

    name = "test-clinging"
    closed: ClassVar[list[Strategy]] = []

    def player(self, table):
        return _ClingingPlayer()

    def close(self):
        self.closed.append(self)


class Wordless(First):
    """Raises what cannot be shown."""

    name = "test-wordless"

    def player(self, table):
        raise type("Wordless", (Exception,), {"__str__": lambda self: self.words})


STRATEGIES = {
    cls.name: cls
    for cls in (
        *(Random, First, Last, Searching, Liar, Scribbler, Slow, Late),
        *(Number, Fraction, Array, Awaiting, Quitting, Panicking, Silent, Homeless, Clinging, Wordless),
    )
}


def build(spec):
    return rules.game(spec.game, **spec.rules), [
        STRATEGIES[name](STRATEGIES[name].Options()) for name in spec.contestants
    ]


class _ListeningPlayer(Player):
    def __init__(self, fails):
        self.told, self.fails = 0, fails

    def observe(self, events):
        if self.fails:
            raise RuntimeError("does not listen")
        self.told += len(events)

    def decide(self, view, legal, budget):
        if self.told != view.seq:
            raise AssertionError(f"told {self.told} of {view.seq} events")
        return Decision(action=int(legal[0]))


class Listening(Strategy):
    """Fails unless it was told every event before it decides."""

    name = "test-listening"
    version = "1"
    games = ("*",)
    wants_events = True

    def player(self, table):
        return _ListeningPlayer(fails=False)


class Deaf(Listening):
    """Fails when it is told anything."""

    name = "test-deaf"

    def player(self, table):
        return _ListeningPlayer(fails=True)
