"""``bothost play STRATEGY --stdio``: whatever the strategy does wrong is told, and the program lives."""

import io
from typing import ClassVar

import numpy as np
import pytest

import bothost.rules as rules
from bothost import Decision, Player, Strategy, exec_protocol
from bothost.cli import play

GAME = rules.game("pairing")
STATE = GAME.new_state(1)
VIEW = STATE.view(STATE.to_act[0])
OPEN = exec_protocol.Open(table="t", game="pairing", rules={}, seat=VIEW.seat, seats=GAME.num_seats, seed=1)


class First(Strategy):
    name, version, games = "first", "1", ("pairing",)
    more: ClassVar = {}

    def player(self, table):
        return FirstPlayer(self.more)


class FirstPlayer(Player):
    def __init__(self, more):
        self.more = more

    def decide(self, view, legal, budget):
        if "bug" in self.more:
            raise self.more["bug"]
        return Decision(action=int(legal[0]), **self.more)


def answer(more, table="t"):
    """What the program says when a decision has ``more`` than an action, or when a strategy has a bug."""
    strategy = First(First.Options())
    strategy.more = more
    legal = tuple(map(VIEW.notation, VIEW.legal()))
    view = VIEW.to_json()
    decide = exec_protocol.Decide(table=table, id=7, seq=VIEW.seq, phase=VIEW.phase, legal=legal, view=view)
    out = io.BytesIO()
    play.serve(strategy, io.BytesIO(b"".join(map(exec_protocol.encode, (OPEN, decide)))), out, name="first")
    return exec_protocol.decode_for_host(out.getvalue())


def test_a_decision_is_an_action():
    first = VIEW.notation(int(VIEW.legal()[0]))
    assert answer({}) == exec_protocol.Action(id=7, action=first)
    assert answer({"value": np.float32(0.5)}) == exec_protocol.Action(id=7, action=first, value=0.5)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"bug": KeyError("t")}, "KeyError: 't'"),
        ({"bug": ZeroDivisionError("by zero")}, "ZeroDivisionError: by zero"),
        ({"stats": {"nodes": object()}}, "TypeError: Encoding objects of type object is unsupported"),
    ],
)
def test_a_bug_is_told_as_what_it_is(more, told):
    assert answer(more) == exec_protocol.Error(id=7, message=told)


def test_a_table_that_is_not_open_is_named():
    assert answer({}, "u") == exec_protocol.Error(id=7, message="there is no table 'u'")
