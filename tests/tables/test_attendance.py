"""Who is away from a hand, as far as the lobby tells."""

import pytest
from table_seat import Seat

from bothost.messages import HandEnded, HandStarted, PlayerInfo, Presence, Seated, ServerActedFor, Snapshot
from bothost.tables.hand import HandClosed


def away_of(outputs):
    [closed] = [output for output in outputs if isinstance(output, HandClosed)]
    return closed.hand.away


def players(*names):
    return tuple(PlayerInfo(name, seat) for seat, name in enumerate(names))


def test_a_hand_knows_who_was_away_at_any_time(seat):
    first, second = (other for other in range(3) if other != seat.seat)
    assert seat.feed(Presence("t", first, False)) == []
    seat.feed(Presence("t", first, True))
    assert away_of(seat.feed(HandEnded("t", "h", None))) == {first}
    seat.feed(HandStarted("t", "i", seat.seat))
    assert away_of(seat.feed(HandEnded("t", "i", None))) == set(), "back before it began"
    seat.feed(Presence("t", second, False))
    seat.feed(HandStarted("t", "j", seat.seat))
    seat.feed(Presence("t", second, True))
    assert away_of(seat.feed(HandEnded("t", "j", None))) == {second}, "away when it began"


@pytest.mark.parametrize("nowhere", [-1, 3, 10**9])
def test_a_lobby_that_tells_of_seats_that_there_are_not_spoils_no_hand(seat, nowhere):
    assert seat.feed(Presence("t", nowhere, False)) == seat.feed(ServerActedFor("t", "h", nowhere)) == []
    assert away_of(seat.feed(HandEnded("t", "h", None))) == set()
    seat.feed(HandStarted("t", "i", seat.seat))
    assert away_of(seat.feed(HandEnded("t", "i", None))) == set()


def test_a_player_who_is_away_is_so_at_the_seat_of_the_next_hand():
    seat = Seat()
    for hand, names, away in (
        ("h", ("ada", "bob", "cyd"), set()),
        ("i", ("bob", "cyd", "ada"), {0}),
        ("j", ("cyd", "ada", "bob"), {2}),
    ):
        seat.feed(HandStarted("t", hand, names.index("ada"), players(*names)))
        assert away_of(seat.feed(HandEnded("t", hand, None))) == away
        if hand == "h":
            seat.feed(Presence("t", 1, False))


def test_presence_that_is_told_with_the_seat_counts_for_the_hand_that_follows():
    seat = Seat()
    seat.feed(Seated("t", "doudizhu", seat.game.rules, 0, players("ada", "bob", "cyd")))
    seat.feed(Presence("t", 2, False))
    seat.feed(Snapshot("t", "h", seat.seat, seat.state.view(seat.seat).to_json()))
    seat.session.disconnected()
    seat.feed(Seated("t", "doudizhu", seat.game.rules, 0, players("ada", "bob", "cyd")))
    seat.feed(Presence("t", 2, True))
    seat.feed(Presence("t", 1, False))
    seat.snapshot()
    assert away_of(seat.feed(HandEnded("t", "h", None))) == {1, 2}
    seat.feed(HandStarted("t", "i", 0, players("ada", "bob", "cyd")))
    assert away_of(seat.session.abort()) == {1}


def test_where_the_lobby_moved_for_another_the_hand_alone_is_marked(seat):
    other = (seat.seat + 1) % 3
    assert seat.feed(ServerActedFor("t", "another", other)) == []
    assert seat.session.hand.away == set()
    seat.feed(ServerActedFor("t", "h", other))
    assert away_of(seat.feed(HandEnded("t", "h", None))) == {other}
    assert seat.feed(ServerActedFor("t", "h", other)) == []
    seat.feed(HandStarted("t", "i", seat.seat))
    assert seat.session.hand.away == set()
