"""``bothost play STRATEGY --stdio``: whatever the strategy does wrong is told, and the program lives."""

import io
from typing import ClassVar

import msgspec
import numpy as np
import pytest

import bothost.rules as rules
from bothost import Decision, Player, Strategy, exec_protocol
from bothost.cli import play

GAME = rules.game("pairing")
STATE = GAME.new_state(1)
VIEW = STATE.view(STATE.to_act[0])
LEGAL = tuple(map(VIEW.notation, VIEW.legal()))
OPEN = exec_protocol.Open(table="t", game="pairing", rules={}, seat=VIEW.seat, seats=GAME.num_seats, seed=1)


class First(Strategy):
    name, version, games = "first", "1", ("pairing",)
    more: ClassVar = {}

    def player(self, table):
        return FirstPlayer(self.more)


class FirstPlayer(Player):
    def __init__(self, more):
        self.more = more

    def observe(self, events):
        self.more = {"stats": {"events": events}}

    def decide(self, view, legal, budget):
        if "bug" in self.more:
            raise self.more["bug"]
        return Decision(action=int(legal[0]), **self.more)


def answer(more, table="t", opened=OPEN, legal=LEGAL, events=(), wants_events=False):
    """What the program says when a decision has ``more`` than an action, or when a strategy has a bug."""
    strategy = First(First.Options())
    strategy.more, strategy.wants_events = more, wants_events
    view = VIEW.to_json()
    decide = exec_protocol.Decide(table=table, id=7, seq=VIEW.seq, phase=VIEW.phase, legal=legal, view=view)
    told = [exec_protocol.Event(table=table, event=event) for event in events]
    out = io.BytesIO()
    lines = b"".join(map(exec_protocol.encode, (opened, *told, decide)))
    play.serve(strategy, io.BytesIO(lines), out, name="first")
    return exec_protocol.decode_for_host(out.getvalue())


def test_a_decision_is_an_action():
    assert answer({}) == exec_protocol.Action(id=7, action=LEGAL[0])
    assert answer({"value": np.float32(0.5)}) == exec_protocol.Action(id=7, action=LEGAL[0], value=0.5)


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


def test_what_the_lobby_has_refused_is_not_chosen_again():
    assert answer({}, legal=LEGAL[1:]) == exec_protocol.Action(id=7, action=LEGAL[1])


def test_events_reach_a_strategy_that_wants_them():
    assert answer({}, events=("a", "b"), wants_events=True).stats == {"events": ["a", "b"]}
    assert answer({}, events=("a", "b")).stats is None


@pytest.mark.parametrize(
    ("opened", "told"),
    [
        ({"rules": {"stones": 1}}, "ValueError: pairing has no option"),
        ({"game": "chess"}, "UsageError: no game is called 'chess'"),
    ],
)
def test_a_hand_that_cannot_be_opened_costs_its_own_moves(opened, told):
    said = answer({}, opened=msgspec.structs.replace(OPEN, **opened))
    assert said.id == 7 and said.message.startswith(told)


def test_a_table_that_is_not_open_is_named():
    assert answer({}, "u") == exec_protocol.Error(id=7, message="there is no table 'u'")
