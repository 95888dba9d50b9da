"""What a host accepts from an adapter."""

import pytest

from bothost import messages as m
from bothost.config import problems
from bothost.lobbies.base import AdapterFault, checked
from bothost.plugins import Plugins


def test_what_is_right_passes_unchanged():
    outputs = [
        m.SendFrame(1, "x"),
        m.Alive(),
        m.Delta("t", "h", 1, ("a", "b")),
        m.ActionRequest("t", "h", "r", 30000, 0.0, 3, None, b"raw"),
        m.Snapshot("t", "h", 0, {"seq": 3}),
    ]
    assert checked(outputs) is outputs


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        (None, "feed returned NoneType, not a list"),
        (m.Alive(), "feed returned Alive, not a list"),
        ("connected", "feed returned str, not a list"),
        ((m.Alive(),), "feed returned tuple, not a list"),
        ([None], "neither an effect nor an event"),
        ([m.Ping()], "a list with Ping, which is neither"),
        ([m.Delta("t", "h", "1", ())], "Delta.seq is str, not int"),
        ([m.Delta("t", "h", 1, ["play"])], "Delta.events is list, not tuple"),
        ([m.Delta("t", "h", 1, (1,))], "Delta.events has a member int, not str"),
        ([m.ActionRequest("t", "h", "r", True)], "ActionRequest.grant_ms is bool"),
        ([m.HandEnded("t", "h", (1.0, None))], "HandEnded.scores has a member NoneType"),
        ([m.Seated("t", "othello", {}, 0, ("ada",))], "Seated.players has a member str, not PlayerInfo"),
        ([m.Notice("x", "warn")], "Notice.level is 'warn', not info or warning or error"),
        ([m.TableEnded("t", "over")], "TableEnded.reason is 'over', not normal or"),
        ([m.Snapshot("t", "h", 0, {"board": "x"})], "Snapshot.view needs the key seq"),
        ([m.Snapshot("t", "h", 0, {"seq": -1})], "Snapshot.view needs the key seq"),
    ],
)
def test_what_is_wrong_is_named(outputs, said):
    with pytest.raises(AdapterFault, match=said):
        checked(outputs)


@pytest.mark.parametrize(
    ("adapter", "option", "zero"),
    [
        ("botzone", "poll_s", False),
        ("mailgyc", "stall_s", True),
        ("open_mahjong", "echo_s", False),
        ("open_mahjong", "wait_s", True),
        ("othello_platform", "start_s", False),
        ("embedded", "hello_timeout_s", False),
    ],
)
def test_no_duration_is_negative_and_zero_stands_only_for_never(adapter, option, zero):
    options = Plugins.load().lobbies[adapter].Options
    assert problems({option: -1.0}, options) and bool(problems({option: 0}, options)) != zero
