"""A person's seat: what its page is shown."""

from bothost import rules
from bothost.lobbies.embedded import protocol as wire
from bothost.web.seat import Seat


def seat_that_was_late():
    """A person's seat for which the lobby has moved, and which is asked again."""
    game = rules.game("othello")
    seat, events = Seat(game, "token", {}), tuple(game.new_state(1).events(0, 0))
    for frame in (
        wire.HandStarted("t1", "h1", 0, ()),
        wire.ServerActed("t1", "1", "d3", "timeout"),
        wire.Events("t1", "h1", 0, events, ask=wire.Ask(id="2", grant_ms=None, bank_ms=0)),
    ):
        seat.receive(wire.encode(frame), 0.0)
    return seat


def test_a_player_learns_which_move_the_lobby_made_for_them_until_their_next_answer():
    seat = seat_that_was_late()
    assert seat.shown(0.0)["acted"] == {"reason": "timeout", "action": "d3"} and seat.shown(0.0)["notice"] == ""
    seat.act("2", "d3")
    assert seat.shown(0.0)["acted"] is None


def test_an_answer_that_comes_too_late_leaves_the_next_question_open():
    """The lobby moved, and asked the same seat again, while the answer was on its way."""
    seat = seat_that_was_late()
    late = wire.Rejected("t1", "1", "stale", "this question is answered, withdrawn or was never asked")
    seat.receive(wire.encode(late), 0.0)
    assert seat.shown(0.0)["ask"] == "2" and seat.shown(0.0)["notice"] == "too late: this turn is over"
