"""Whose moves these are: the others learn where the server plays for a player, and no more."""

import pytest
from running_table import NAMES, asked, started, told

from bothost import messages as m
from bothost.lobbies.embedded import protocol as wire


def frames_in(player, mark=0):
    return [text for way, text in player.shell.frames[mark:] if way == "in"]


def name_of(player):
    return player.shell.adapter.account.name


def play_on(lobby, players):
    for player in players:
        player.acts = True
        for name in list(player.asked):
            player.answer(name)
    lobby.run()


def played_for(player):
    """Seats of each hand at which the server is said to have moved, in the order of the hands' ends."""
    frames = [wire.decode_server(text) for text in frames_in(player)]
    return [frame.played_for for frame in frames if isinstance(frame, wire.HandEnded)]


@pytest.mark.parametrize("command", [m.Leave, m.Resign])
def test_the_others_are_told_before_the_server_moves_for_who_leaves_or_resigns(command):
    lobby, players, table = started(attributes={"hands": 2})
    quitter = asked(players)
    others = [player for player in players if player is not quitter]
    seat = table.hand.seat_of(name_of(quitter))
    word = f'"type":"resigned","table":"{table.name}","hand":"1","seat":{seat}'
    if command is m.Leave:
        word = f'"type":"presence","table":"{table.name}","player":"{name_of(quitter)}","seat":{seat},"online":false'
    before, marks = len(table.hand.state.actions), [len(player.shell.frames) for player in others]
    quitter.shell.do(command(table.name))
    lobby.run()
    assert len(table.hand.state.actions) > before
    for player, mark in zip(others, marks, strict=True):
        first, *later = frames_in(player, mark)
        assert word in first and '"events"' in "".join(later)
    play_on(lobby, players)
    for player in others:
        assert played_for(player)[0] == (seat,)
        hands = [event.hand for event in told(player, m.ServerActedFor)]
        assert hands == (["1"] if command is m.Leave else ["1", "1"]), "the next hand is the player's again"


def test_whoever_is_late_is_told_at_the_end_of_the_hand_and_not_before():
    """That a player was asked at all is a secret of the hand."""
    lobby, players, table = started(grant_ms=1000, bank_ms=0)
    late = asked(players)
    seat, hand = table.hand.seat_of(name_of(late)), table.hand
    lobby.sleep(1.15)
    assert told(late, m.ServerActedForUs) and not hand.over
    for player in players:
        assert not told(player, m.ServerActedFor) and "played_for" not in "".join(frames_in(player))
    while not table.ended:
        play_on(lobby, [player for player in players if player is not late])
        lobby.sleep(1.15)
    for player in players:
        assert played_for(player) == [(seat,)]
        assert told(player, m.ServerActedFor) == [m.ServerActedFor(table.name, "1", seat)]
        kinds = [type(event) for event in player.shell.events]
        assert kinds.index(m.ServerActedFor) < kinds.index(m.HandEnded)


def test_robots_play_themselves():
    lobby, players, table = started(count=1, acts=True, game="doudizhu", robots_after_s=0.0)
    lobby.run()
    assert played_for(players[0]) == [()]
    state = table.hand.state
    again, own = state.game.state_from_deal(state.deal), [seat.robot for seat in table.hand.seats].index(False)
    first = []
    for seat, action in state.actions:
        first += [action == again.legal(seat)[0]] if seat != own else []
        again.apply(seat, action)
    assert not all(first), "they draw their moves"


def test_whoever_missed_the_end_of_a_hand_is_told_for_whom_the_server_moved():
    lobby, players, table = started(grant_ms=1000, bank_ms=0)
    away, late = (player for player in players if player is not asked(players))
    away.shell.drop()
    play_on(lobby, [player for player in players if player not in (away, late)])
    lobby.sleep(60.0)
    assert table.ended
    away.resume()
    lobby.run()
    seats = sorted(table.hand.seat_of(name_of(player)) for player in (away, late))
    assert played_for(away) == [tuple(seats)]


def test_who_is_away_is_told_with_the_seat_and_whoever_came_back_unseen():
    lobby, players, table = started()
    seats = {name: table.hand.seat_of(name) for name in NAMES[:3]}
    players[1].shell.drop()
    lobby.run()
    players[0].shell.drop()
    players[2].shell.drop()
    lobby.run()
    players[1].resume()
    lobby.run()
    assert told(players[1], m.Presence) == [
        m.Presence(table.name, seats[name], False) for name in sorted(("ada", "cyd"), key=seats.get)
    ]
    mark = len(players[0].shell.events)
    players[0].resume()
    lobby.run()
    news = [event for event in players[0].shell.events[mark:] if isinstance(event, m.Presence)]
    assert sorted(news, key=lambda event: event.online) == [
        m.Presence(table.name, seats["cyd"], False),
        m.Presence(table.name, seats["bob"], True),
    ]
