"""Chat at a table of the embedded lobby: for its people alone, cleaned, limited in length and rate."""

from running_table import clients, started, told

from bothost import messages as m
from bothost.lobbies.embedded import protocol as wire


def say(lobby, player, table, text):
    player.shell.do(m.Say(table, text))
    lobby.run()


def test_the_others_at_the_table_hear_it_and_nobody_else():
    lobby, players, table = started(count=3)
    stranger = clients(lobby, 4)[3]
    stranger.start()
    say(lobby, players[0], table.name, "good luck")
    assert [told(player, m.Chat) for player in players] == [[], *[[m.Chat(table.name, "ada", "good luck")]] * 2]
    say(lobby, stranger, table.name, "let me in")
    assert len(told(players[1], m.Chat)) == 1
    assert "unknown_table" in told(stranger, m.Notice)[-1].text


def test_goodbye_is_heard_just_after_the_table_has_ended():
    lobby, players, table = started(acts=True)
    assert table.name in lobby.core.playing.ended
    say(lobby, players[0], table.name, "thank you")
    assert told(players[1], m.Chat) == [m.Chat(table.name, "ada", "thank you")]


def test_text_arrives_as_one_line_without_escape_sequences():
    lobby, players, table = started()
    say(lobby, players[0], table.name, "\x1b[2Jone\r\ntwo\x07\u202ethree")
    assert told(players[1], m.Chat)[0].text == "one twothree"


def test_long_and_empty_texts_are_refused():
    lobby, players, table = started()
    for text in ("x" * 301, "", "\x1b[31m"):
        say(lobby, players[0], table.name, text)
    assert told(players[1], m.Chat) == []
    assert len(told(players[0], m.Notice)) == 3


def test_chat_has_a_rate_of_its_own_and_does_not_slow_the_moves():
    lobby, players, table = started()
    for number in range(20):
        say(lobby, players[0], table.name, f"spam {number}")
    assert len(told(players[1], m.Chat)) == lobby.settings.chat_burst
    assert not told(players[0], m.Throttled)
    lobby.sleep(60.0 / lobby.settings.chat_per_minute)
    say(lobby, players[0], table.name, "sorry")
    assert told(players[1], m.Chat)[-1].text == "sorry"


def test_a_player_whose_account_was_removed_gets_nothing():
    lobby, players, table = started(acts=True)
    players[1].shell.drop()
    lobby.run()
    lobby.core.dismiss("bob")
    say(lobby, players[0], table.name, "bye")
    assert told(players[2], m.Chat) == [m.Chat(table.name, "ada", "bye")]
    assert not any(isinstance(error, wire.Error) and error.code == "internal" for error in told(players[0], wire.Error))
