"""The lobby's core, played through the adapter, in memory and with a clock of its own."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_lobby import RandomClient
from running_table import asked, clients, new_lobby, started, told

from bothost import messages as m
from bothost import rules
from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server import hand as hands

# ------------------------------------------------------------------------------------------------------- whole games


@pytest.mark.parametrize("game", rules.games(plugins=False, testing=True))
def test_every_game_is_played_to_its_end(game):
    seats = rules.game(game).num_seats
    lobby = new_lobby(seed=7)
    players = clients(lobby, seats)
    for player in players:
        player.start(m.Wish(game, {}, {"hands": 2}), m.Wish(game, {}, {"hands": 2}))
    lobby.run()
    assert lobby.core.tables == {}
    assert not lobby.core.waiting.tables
    for player in players:
        assert len(player.ended) == 2
        assert len(player.hands) == 4
        for view, ended in player.hands:
            assert view.terminal
            assert ended.reason == "normal"
            assert view.record() is not None, "hands are revealed at their end"
            deal, actions = view.record()
            assert tuple(view.game.replay(deal, actions).returns) == ended.scores
        assert not told(player, m.Unknown | m.Rejected | m.Notice | m.ServerActedForUs)


@pytest.mark.parametrize("seed", range(10))
def test_folding_what_a_seat_received_gives_the_states_view(seed):
    lobby, players, table = started(seed)
    rng = random.Random(seed)
    state, hand = table.hand.state, table.hand
    while not state.terminal:
        rng.choice([p for p in players if p.asked]).answer(table.name)
        lobby.run()
        for player in players:
            seat = hand.seat_of(player.shell.adapter.account.name)
            assert player.views[table.name].to_bytes() == state.view(seat).to_bytes()


def test_nobody_receives_an_event_of_another_seat():
    lobby, players, table = started(acts=True)
    lobby.run()
    hand = table.hand
    for player in players:
        seat = hand.seat_of(player.shell.adapter.account.name)
        assert player.events[table.name, "1"] == hand.state.events(seat)


def test_seats_go_round_and_scores_add_up():
    lobby, players, _ = started(acts=True, attributes={"hands": 3})
    lobby.run()
    for player in players:
        seats = [e.seat for e in told(player, m.HandStarted)]
        assert sorted(seats) == [0, 1, 2]
        own = [h.scores[seat] for seat, h in zip(seats, told(player, m.HandEnded), strict=True)]
        (end,) = told(player, m.TableEnded)
        assert end.reason == "normal"
        assert end.scores[seats[-1]] == sum(own)


def test_equal_seeds_deal_equal_hands():
    first, second = (started(seed=5, acts=True)[1][0].hands[0][0].to_bytes() for _ in range(2))
    assert first == second


# -------------------------------------------------------------------------------------------------------- questions


def test_an_illegal_answer_is_told_and_the_question_comes_again_under_a_new_id():
    lobby, players, table = started()
    player = asked(players)
    request = player.asked[table.name]
    lobby.sleep(2.0)
    player.shell.do(m.Act(table.name, request.request_id, ("nonsense",)))
    lobby.run()
    rejected, again = player.shell.events[-2:]
    assert rejected.request_id == request.request_id
    assert rejected.reason.startswith("illegal")
    assert again.request_id != request.request_id
    assert again.seq == request.seq
    assert again.grant_ms == request.grant_ms - 2000, "the clock ran on"
    player.answer(table.name)
    lobby.run()
    assert told(player, m.MoveAcknowledged)[-1].request_id == again.request_id


def test_after_many_illegal_answers_the_server_moves():
    lobby, players, table = started(max_rejects=3)
    player = asked(players)
    for _ in range(3):
        player.shell.do(m.Act(table.name, player.asked[table.name].request_id, ("nonsense",)))
        lobby.run()
    (acted,) = told(player, m.ServerActedForUs)
    assert acted.action is not None
    assert len(told(player, m.Rejected)) == 3


def test_a_question_is_answered_once():
    lobby, players, table = started()
    player = asked(players)
    request = player.asked[table.name]
    player.answer(table.name)
    lobby.run()
    seen = len(table.hand.state.actions)
    player.shell.do(m.Act(table.name, request.request_id, ("pass",)))
    lobby.run()
    (rejected,) = told(player, m.Rejected)
    assert rejected.reason.startswith("stale")
    assert len(table.hand.state.actions) == seen


def test_another_players_question_cannot_be_answered():
    lobby, players, table = started()
    player = asked(players)
    request = player.asked[table.name]
    other = next(p for p in players if p is not player)
    legal = player.views[table.name].legal()
    other.shell.do(m.Act(table.name, request.request_id, (player.views[table.name].notation(int(legal[0])),)))
    lobby.run()
    assert told(other, m.Rejected)[0].reason.startswith("stale")
    assert table.hand.state.actions == []


# ----------------------------------------------------------------------------------------------------------- clocks


def test_the_server_moves_when_grant_and_bank_are_spent():
    lobby, players, table = started(grant_ms=1000, bank_ms=2000, lag_ms=100)
    player = asked(players)
    first = player.views[table.name].legal()[0]
    lobby.sleep(3.05)
    assert not told(player, m.ServerActedForUs)
    lobby.sleep(0.1)
    (acted,) = told(player, m.ServerActedForUs)
    assert table.rules.game.parse(acted.action) == table.hand.state.actions[0][1] == first


def test_thinking_beyond_the_grant_costs_the_bank():
    lobby, players, table = started(grant_ms=1000, bank_ms=10_000)
    player = asked(players)
    lobby.sleep(3.5)
    player.answer(table.name)
    lobby.run()
    while not player.asked:
        asked(players).answer(table.name)
        lobby.run()
    request = player.asked[table.name]
    assert (request.grant_ms, request.bank_ms) == (1000, 7500)


def test_a_table_may_have_its_own_clock_or_none():
    _, players, table = started(attributes={"grant_ms": 0})
    request = asked(players).asked[table.name]
    assert request.grant_ms is None
    _, players, table = started(attributes={"grant_ms": 700, "bank_ms": 5})
    request = asked(players).asked[table.name]
    assert (request.grant_ms, request.bank_ms) == (700, 5)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.0, 3.0))
def test_whoever_sleeps_every_hand_ends(seed, pace):
    lobby, players, table = started(seed, grant_ms=1000, bank_ms=500)
    rng = random.Random(seed)
    for _ in range(40):
        lobby.sleep(pace)
        waiting = [p for p in players if p.asked]
        if waiting and rng.random() < 0.5:
            rng.choice(waiting).answer(table.name)
            lobby.run()
        if table.ended:
            break
    lobby.sleep(100.0)
    assert table.ended.reason == "normal"
    for player in players:
        assert player.views[table.name].terminal
        assert not player.asked


def test_a_table_where_nobody_plays_is_given_up():
    lobby, players, table = started(attributes={"grant_ms": 0}, idle_s=60.0)
    lobby.sleep(61.0)
    assert table.ended.reason == "aborted"
    for player in players:
        assert told(player, m.HandEnded)[-1].scores is None
        assert told(player, m.TableEnded)[-1].reason == "aborted"
    assert lobby.core.tables == {}
    assert len(lobby.core.timers) == 0


def test_a_program_that_asks_for_its_position_keeps_no_table_alive():
    """A host asks at tables that are silent for long."""
    lobby, players, table = started(attributes={"grant_ms": 0}, idle_s=60.0)
    for _ in range(7):
        lobby.sleep(10.0)
        players[0].shell.do(m.Resync(table.name))
        lobby.run()
    assert table.ended and table.ended.reason == "aborted"


def test_a_player_with_a_clock_may_think_longer_than_a_silent_table_lasts():
    lobby, players, table = started(attributes={"grant_ms": 100_000, "bank_ms": 0}, idle_s=60.0)
    lobby.sleep(90.0)
    assert table.ended is None and table.hand.questions.open
    asked(players).answer(table.name)
    lobby.sleep(110.0)
    assert table.hand.played_for


# ------------------------------------------------------------------------------------------------- lost connections


@pytest.mark.parametrize("seed", range(40))
def test_resuming_at_random_moments_loses_nothing(seed):
    lobby, players, table = started(seed, attributes={"hands": 2, "grant_ms": 0})
    rng = random.Random(seed)
    for _ in range(150):
        player = rng.choice(players)
        what = rng.choice(["answer", "answer", "answer", "drop", "resume", "resync"])
        if what == "answer" and player.asked and not table.ended:
            player.answer(table.name)
        elif what == "drop":
            player.shell.drop()
        elif what == "resume":
            player.resume()
        elif what == "resync":
            player.shell.do(m.Resync(table.name))
        if rng.random() < 0.7:
            lobby.run(10_000)
    for player in players:
        player.resume()
    lobby.run(10_000)
    for player in players:
        player.acts = True
        for name in list(player.asked):
            player.answer(name)
    lobby.run(10_000)
    assert table.ended.reason == "normal"
    for player in players:
        assert [h.hand for _, h in player.hands] == ["1", "2"]
        for view, ended in player.hands:
            assert view.terminal and ended.reason == "normal"
        for number in ("1", "2"):
            events = player.events[table.name, number]
            assert events[-1].startswith("reveal"), "the whole stream arrived, in spite of the losses"


def test_a_resume_brings_seat_snapshot_and_the_pending_question_with_its_clock():
    lobby, players, table = started(grant_ms=5000, bank_ms=9000)
    player = asked(players)
    request = player.asked[table.name]
    player.shell.drop()
    lobby.sleep(6.0)
    mark = len(player.shell.events)
    player.resume()
    lobby.run()
    connected, seated, snapshot, again = player.shell.events[mark:]
    assert connected.player == player.shell.adapter.account.name and connected.resumed
    assert isinstance(seated, m.Seated) and seated.table == table.name
    assert isinstance(snapshot, m.Snapshot) and snapshot.hand == "1"
    assert again.request_id == request.request_id
    assert (again.grant_ms, again.bank_ms) == (0, 8000)


def test_a_fresh_process_finds_its_tables():
    lobby, players, _ = started()
    player = asked(players)
    player.shell.drop()
    lobby.run()
    fresh = RandomClient(lobby.shell(player.shell.adapter.account.name), 1, acts=False)
    fresh.shell.memo = player.shell.memo
    fresh.start()
    lobby.run()
    kinds = [type(event) for event in fresh.shell.events]
    assert kinds == [m.Connected, m.Seated, m.HandStarted, m.Snapshot, m.ActionRequest]
    assert fresh.shell.events[0].resumed


def test_an_unknown_table_is_told_to_be_gone():
    lobby = new_lobby()
    (player,) = clients(lobby, 1)
    player.shell.do(m.Resume(("elsewhere-7",), {}))
    lobby.run()
    (ended,) = told(player, m.TableEnded)
    assert (ended.table, ended.reason) == ("elsewhere-7", "aborted")


def test_a_table_that_ended_meanwhile_tells_its_result():
    lobby, players, table = started(grant_ms=1000, bank_ms=0)
    player = asked(players)
    player.shell.drop()
    for other in players:
        other.acts = True
        for name in list(other.asked):
            other.answer(name)
    lobby.sleep(60.0)
    assert table.ended
    player.resume()
    lobby.run()
    assert told(player, m.TableEnded)[-1].reason == "normal"
    assert told(player, m.HandEnded)[-1].scores is not None
    assert player.views[table.name].terminal


def test_presence_is_told_to_the_others():
    lobby, players, table = started()
    seat = table.hand.seat_of("ada")
    players[0].shell.drop()
    lobby.run()
    assert told(players[1], m.Presence)[-1] == m.Presence(table.name, seat, False)
    players[0].resume()
    lobby.run()
    assert told(players[1], m.Presence)[-1] == m.Presence(table.name, seat, True)
    assert not told(players[0], m.Presence)


def test_a_second_socket_takes_over_and_the_first_is_told():
    lobby, players, table = started()
    player = asked(players)
    second = RandomClient(lobby.shell(player.shell.adapter.account.name), 9, acts=False)
    second.start()
    lobby.run()
    assert told(player, m.Superseded)
    assert not told(player, m.Disconnected), "we do not fight for it"
    assert second.asked[table.name].request_id
    second.answer(table.name)
    lobby.run()
    assert told(second, m.MoveAcknowledged)
    assert lobby.core.players[player.shell.adapter.account.name].conn is not None


# ------------------------------------------------------------------------------------------------- resign and leave


def test_the_server_plays_on_for_who_resigns():
    lobby, players, table = started(attributes={"hands": 2})
    quitter = players[0]
    quitter.shell.do(m.Resign(table.name))
    lobby.run()
    for player in players[1:]:
        player.acts = True
        for name in list(player.asked):
            player.answer(name)
    lobby.run()
    assert told(players[1], m.HandEnded)[0].reason == "resigned"
    assert quitter.views[table.name].seq
    assert told(quitter, m.HandEnded)[0].scores is not None
    assert [e.hand for e in told(quitter, m.HandStarted)] == ["1", "2"], "a hand is resigned, not the table"


def test_a_table_ends_after_the_hand_in_which_somebody_left():
    lobby, players, table = started(attributes={"hands": 5})
    players[0].shell.do(m.Leave(table.name))
    lobby.run()
    assert told(players[0], m.TableEnded)[0].reason == "left"
    for player in players[1:]:
        player.acts = True
        for name in list(player.asked):
            player.answer(name)
    lobby.run()
    assert told(players[1], m.TableEnded)[0].reason == "left"
    assert len(told(players[1], m.HandEnded)) == 1
    assert len(told(players[0], m.TableEnded)) == 1
    assert lobby.core.tables == {}


@pytest.mark.parametrize("command", [m.Resign, m.Leave])
def test_between_two_hands_nobody_resigns_and_who_leaves_ends_the_table(command):
    lobby, players, table = started(acts=True, attributes={"hands": 3}, pause_ms=5_000)
    lobby.run()
    assert [len(told(player, m.HandEnded)) for player in players] == [1, 1, 1]
    players[0].shell.do(command(table.name))
    lobby.run()
    if command is m.Resign:
        assert "no hand is being played" in told(players[0], m.Notice)[-1].text
        lobby.sleep(60.0)
        assert told(players[0], m.TableEnded)[0].reason == "normal"
    else:
        assert [told(player, m.TableEnded)[0].reason for player in players] == ["left"] * 3


def test_a_hand_in_which_the_server_moves_without_end_is_void(monkeypatch):
    monkeypatch.setattr(hands, "AUTOMATIC_MOVES", 3)
    lobby, players, table = started(count=1, attributes={"robots": True}, game="doudizhu", robots_after_s=0.0)
    players[0].shell.do(m.Resign(table.name))
    lobby.sleep(100.0)
    (ended,) = told(players[0], m.TableEnded)
    assert (ended.reason, ended.detail) == ("aborted", "the game does not end")
    assert told(players[0], m.HandEnded)[0].reason == "void"


def test_a_table_that_everybody_left_is_gone():
    lobby, players, table = started()
    for player in players:
        player.shell.do(m.Leave(table.name))
    lobby.run()
    assert lobby.core.tables == {}
    assert len(lobby.core.timers) == 0
    assert wire.TableEnded in {type(wire.decode_server(f)) for way, f in players[0].shell.frames if way == "in"}


# ---------------------------------------------------------------------------------------------------- broken games


def test_a_bug_in_a_game_costs_its_table_and_not_the_lobby():
    lobby, players, table = started()

    class Broken:
        terminal = False
        to_act = (0,)

        def __getattr__(self, name):
            raise RuntimeError("a bug in a plugin's game")

    table.hand.state = Broken()
    asked(players).answer(table.name)
    lobby.run()
    assert table.ended.reason == "aborted"
    for player in players:
        assert told(player, m.TableEnded)[0].reason == "aborted"
        player.acts = True
        player.start(m.Wish("claims"))
    lobby.run()
    assert all(len(told(p, m.TableEnded)) == 2 for p in players)


@pytest.mark.parametrize("scores", [(math.nan, 0.0, 0.0), (1.0,), (None, None, None)])
def test_a_game_that_gives_no_scores_costs_its_table_alone(scores):
    lobby, players, table = started()

    class Over:
        terminal = True
        to_act = ()
        returns = scores

        def __init__(self, state):
            self.__dict__ = {"state": state}

        def __getattr__(self, name):
            return getattr(self.__dict__["state"], name)

        def apply(self, seat, action):
            self.state.apply(seat, action)

    table.hand.state = Over(table.hand.state)
    asked(players).answer(table.name)
    lobby.run()
    assert table.ended.reason == "aborted"
    for player in players:
        (hand,), (end,) = told(player, m.HandEnded), told(player, m.TableEnded)
        assert (hand.scores, hand.reason, end.reason) == (None, "void", "aborted")


# -------------------------------------------------------------------------------------------------- removed accounts


def test_a_table_goes_on_when_the_account_of_a_player_who_left_is_removed():
    lobby, players, table = started()
    players[1].shell.do(m.Leave(table.name))
    lobby.run()
    players[1].shell.drop()
    lobby.run()
    lobby.core.dismiss("bob")
    assert set(lobby.core.players) == {"ada", "cyd"}
    lobby.sleep(1000.0)
    assert not lobby.core.tables and told(players[0], m.TableEnded)[-1].reason == "left"


def test_a_player_without_an_account_is_forgotten_once_neither_connected_nor_seated():
    lobby, players, _table = started()
    lobby.core.dismiss("bob")
    players[1].shell.drop()
    assert "bob" in lobby.core.players, "the table keeps the seat"
    lobby.core.dismiss("cyd")
    lobby.sleep(1000.0)
    assert set(lobby.core.players) == {"ada", "cyd"} and not lobby.core.tables
    players[2].shell.drop()
    assert set(lobby.core.players) == {"ada"}
