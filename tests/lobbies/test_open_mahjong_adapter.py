"""The adapter of open_mahjong_unity: every trap of the lobby by name, every capability, and recorded frames."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothost import messages as m
from bothost import rules
from bothost.lobbies import bothost_lobbies
from bothost.lobbies import open_mahjong_protocol as wire
from bothost.lobbies.base import Account, Capabilities
from bothost.lobbies.open_mahjong import MOST_ATTEMPTS, OpenMahjong
from bothost.lobbies.open_mahjong_session import OpenMahjongOptions

PASSWORD = "planted-Passw0rd!m"
ACCOUNT = Account(name="ada", url="ws://lobby.example:8081", password=PASSWORD, user_agent="bot/1")
TRANSCRIPTS = Path(__file__).parent / "transcripts"
ME, OTHERS = 10_000_001, (10_000_002, 10_000_003, 10_000_004)
GAME_ID = "e46c17f6-98fd-466d-a58b-2554a6dfd03c"
ROOM = {
    "room_id": "1",
    "room_rule": "guobiao",
    "sub_rule": "guobiao/standard",
    "hepai_limit": 8,
    "max_player": 4,
    "player_list": [ME],
    "has_password": False,
    "host_user_id": ME,
    "is_game_running": False,
    "room_name": "bots",
    "ready_list": [],
}
HAND = [11, 12, 13, 21, 22, 23, 31, 32, 33, 41, 41, 45, 46]


class Bench:
    """An adapter without sockets; folds what it tells as a host does."""

    def __init__(self, memo=None, account=ACCOUNT, user=ME, **options):
        self.adapter = OpenMahjong(account, OpenMahjongOptions(**options))
        self.user = user
        self.out = []
        self.view = None
        self.memo = dict(memo or {})
        self.conn = 0
        self.timers = {}

    def feed(self, item):
        out = self.adapter.feed(item)
        for output in out:
            match output:
                case m.OpenSocket():
                    self.conn = output.conn
                case m.SetTimer():
                    self.timers[output.name] = output.after_s
                case m.CancelTimer():
                    self.timers.pop(output.name, None)
                case m.Remember():
                    self.memo = msgspec.json.decode(msgspec.json.encode(output.memo))
                case m.HandStarted():
                    self.view = rules.game("mahjong", preset="open-mahjong").new_view(output.seat)
                case m.Snapshot():
                    self.view = rules.game("mahjong", preset="open-mahjong").view_from_snapshot(output.view)
                case m.Delta():
                    assert output.seq == self.view.seq
                    self.view.observe_all(output.events)
                case m.ActionRequest():
                    assert self.view.asked and output.seq == self.view.seq
        self.out += out
        return out

    def hear(self, kind, **body):
        return self.feed(m.Frame(self.conn, json.dumps({"type": kind, "success": True, **body})))

    def fire(self, name):
        assert self.timers.pop(name, None) is not None, f"no timer {name}"
        return self.feed(m.TimerFired(name))

    def dial(self, command=None):
        self.feed(command or m.Authenticate(self.memo))
        return self.feed(m.SocketOpened(self.conn))

    def log_in(self, command=None):
        self.dial(command)
        info = {"user_id": self.user, "username": "ada", "userkey": "planted-key", "is_tourist": False}
        return self.hear("login", message="-", login_info=info)

    def connect(self):
        out = self.log_in()
        if "settle" in self.timers:
            out += self.fire("settle")
        return self

    def sit(self, **attributes):
        """In a room that we opened."""
        self.connect()
        self.feed(m.Seek("s", m.Wish("mahjong", {}, attributes)))
        self.hear("room/get_room_list", room_list=[])
        self.hear("room/refresh_room_info", room_info=ROOM)
        return self

    def play(self, seat=1, hand=HAND, tick=0, **changes):
        """A hand without opening flowers; seat 0 is asked first."""
        self.sit()
        self.hear("gamestate/guobiao/game_start", game_info=game_info(seat, hand, tick=tick, **changes))
        return self

    def ask_hand(self, index, actions, tick, **members):
        info = {"remaining_time": 20, "player_index": index, "remain_tiles": 80, "action_list": actions}
        info |= {"action_tick": tick, "dealer_index": 0, **members}
        return self.hear("gamestate/guobiao/broadcast_hand_action", ask_hand_action_info=info)

    def ask_claims(self, index, actions, tile, tick):
        info = {"remaining_time": 20, "action_list": actions, "cut_tile": tile, "action_tick": tick}
        return self.hear("gamestate/guobiao/ask_other_action", ask_other_action_info={**info, "player_index": index})

    def do(self, actions, player, tick, **members):
        info = {"action_list": actions, "action_player": player, "action_tick": tick, **members}
        return self.hear("gamestate/guobiao/do_action", do_action_info=info)

    def opened(self, seat=1, hand=HAND, tile=43):
        """The dealer, seat 0, has discarded ``tile``."""
        self.play(seat, hand)
        self.ask_hand(0, [], 1, opening_buhua_complete=True)
        self.do(["cut"], 0, 2, cut_tile=tile, cut_class=False)
        return self

    def turn(self, tile=14):
        """Our turn, at seat 1: we have drawn."""
        self.opened()
        self.do(["deal_tile"], 1, 3, deal_tile=tile)
        self.ask_hand(1, ["cut"], 4, deal_tile_type="deal_tile")
        return self

    def request(self):
        return told(self.out, m.ActionRequest)[-1]

    def act(self, action):
        request = self.request()
        return self.feed(m.Act(request.table, request.request_id, (action,)))

    def lose(self):
        return self.feed(m.SocketClosed(self.conn, 1006))

    def come_back(self, info, known=("room-1",)):
        self.log_in(m.Resume(known, self.memo))
        self.hear("message", message="reconnect_ask", message_info={"title": "-", "content": "-"})
        return self.hear("gamestate/guobiao/game_start", game_info=info)


def game_info(seat, hand, tick=0, users=None, **changes):
    """What ``game_start`` tells us at ``seat``."""
    users = users or [*OTHERS[:seat], ME, *OTHERS[seat:]]
    players = []
    for index, user in enumerate(users):
        player = {"user_id": user, "username": f"p{user}", "player_index": index, "discard_tiles": []}
        player["hand_tiles_count"] = len(hand) if user == ME else 14 if index == 0 else 13
        players.append(player | ({"hand_tiles": hand} if user == ME else {}) | changes.pop(f"p{index}", {}))
    info = {"room_id": 1, "gamestate_id": GAME_ID, "current_player_index": 0, "action_tick": tick, "tile_count": 91}
    info |= {"current_round": 1, "max_round": 1, "step_time": 5, "round_time": 20, "hepai_limit": 8, "dealer_index": 0}
    return info | {"players_info": players} | changes


def said(outputs):
    return [json.loads(o.data) for o in outputs if isinstance(o, m.SendFrame)]


def told(outputs, kind):
    return [o for o in outputs if isinstance(o, kind)]


# ------------------------------------------------------------------------------------------------------- logging in


def test_logging_in_names_the_connection_and_the_release_first():
    bench = Bench()
    out = bench.dial()
    (socket,) = told(bench.out, m.OpenSocket)
    assert socket.url.startswith("ws://lobby.example:8081/game/") and len(socket.url) == 29 + 36
    assert said(out) == [
        {"type": "send_release_version", "release_version": 20},
        {"type": "login", "username": "ada", "password": PASSWORD},
    ]
    info = {"user_id": ME, "username": "ada"}
    assert not told(bench.hear("login", login_info=info), m.Connected), "the way back may still be offered"
    assert told(bench.fire("settle"), m.Connected) == [m.Connected(str(ME), False, "ada")]


def test_every_connection_has_a_name_of_its_own():
    bench = Bench()
    bench.dial()
    bench.lose()
    bench.dial(m.Resume(()))
    first, second = told(bench.out, m.OpenSocket)
    assert first.url != second.url


def test_trap_another_release_version_is_told_and_closed_a_matching_one_is_not_answered():
    bench = Bench(release_version=19)
    bench.dial()
    info = {"title": "-", "content": "update"}
    out = bench.hear("message", message="error_version", message_info=info)
    (end,) = told(out, m.AuthFailed)
    assert "release_version than 19" in end.reason


@pytest.mark.parametrize("text", ["密码错误", "该 IP 今日注册次数已达上限"])
def test_trap_a_refused_login_leaves_the_socket_open(text):
    """A wrong password, or the fourth registration of a day."""
    bench = Bench()
    bench.dial()
    out = bench.feed(m.Frame(1, json.dumps({"type": "tips", "success": False, "message": text})))
    assert told(out, m.CloseSocket) and told(out, m.AuthFailed) == [m.AuthFailed(text)]


def test_an_account_without_a_password_is_refused_but_a_guest_needs_none():
    nobody = Account(name="ada", url="ws://x")
    assert told(Bench(account=nobody).feed(m.Authenticate()), m.AuthFailed)
    bench = Bench(account=nobody, tourist=True)
    assert said(bench.dial())[1] == {"type": "login", "is_tourist": True}


def test_trap_guests_are_deleted_with_their_connection():
    """Nothing is waited for, and the table is aborted, not lost."""
    bench = Bench(tourist=True).play()
    bench.lose()
    out = bench.log_in(m.Resume(("room-1",), bench.memo))
    assert told(out, m.Connected)
    assert [(end.table, end.reason) for end in told(out, m.TableEnded)] == [("room-1", "aborted")]


def test_trap_a_second_login_kicks_the_first_whose_socket_stays_open():
    bench = Bench().play()
    out = bench.hear("message", message="login_kickout", message_info={"title": "-", "content": "elsewhere"})
    assert told(out, m.CloseSocket) and told(out, m.Superseded) == [m.Superseded("elsewhere")]
    assert bench.feed(m.Ping()) == []


def test_nothing_that_the_adapter_tells_holds_a_secret():
    bench = Bench().sit(password="planted-room-secret")
    rest = [o for o in bench.out if not isinstance(o, m.SendFrame)]
    assert "planted" not in repr(rest) and "planted" not in repr(bench.adapter.account)


# ------------------------------------------------------------------------------------------------------------ rooms


def test_trap_a_room_opened_with_a_member_missing_ends_the_servers_loop_for_us():
    bench = Bench().sit(game_round=2, robots=3)
    (create,) = [frame for frame in said(bench.out) if frame["type"] == "room/create_GB_room"]
    assert create == {
        "type": "room/create_GB_room",
        "roomname": "bots",
        "gameround": 2,
        "password": "",
        "roundTimerValue": 20,
        "stepTimerValue": 5,
        "tips": False,
        "random_seed": 0,
        "open_cuohe": False,
        "sub_rule": "guobiao/standard",
        "hepai_limit": 8,
    }


def test_a_room_that_fits_is_entered_and_we_say_ready():
    bench = Bench().connect()
    bench.feed(m.Seek("s", m.Wish("mahjong")))
    full = ROOM | {"room_id": "4", "player_list": [2, 3, 4, 5]}
    other = ROOM | {"room_id": "5", "player_list": [OTHERS[0]], "sub_rule": "guobiao/lanshi"}
    locked = ROOM | {"room_id": "6", "player_list": [OTHERS[0]], "has_password": True}
    ours = ROOM | {"room_id": "7", "player_list": [OTHERS[0]], "host_user_id": OTHERS[0]}
    out = bench.hear("room/get_room_list", room_list=[full, other, locked, ours])
    assert said(out) == [{"type": "room/join_room", "room_id": "7", "password": ""}]
    out = bench.hear("room/refresh_room_info", room_info=ours | {"player_list": [OTHERS[0], ME]})
    (seated,) = told(out, m.Seated)
    assert (seated.table, seated.seek, seated.seat, seated.rules) == ("room-7", "s", None, {"preset": "open-mahjong"})
    assert said(bench.fire("begin")) == [{"type": "room/set_ready", "room_id": "7", "ready": True}]


def test_a_room_that_does_not_take_us_means_the_next_one_then_our_own():
    bench = Bench().connect()
    bench.feed(m.Seek("s", m.Wish("mahjong")))
    rooms = [ROOM | {"room_id": str(i), "player_list": [OTHERS[0]]} for i in (1, 2)]
    bench.hear("room/get_room_list", room_list=rooms)
    refusal = json.dumps({"type": "error_message", "success": False, "message": "房间不存在"})
    assert said(bench.feed(m.Frame(1, refusal)))[0]["room_id"] == "2"
    assert said(bench.feed(m.Frame(1, refusal)))[0]["type"] == "room/create_GB_room"
    assert told(bench.feed(m.Frame(1, refusal)), m.SeekEnded) == [m.SeekEnded("s", "房间不存在")]


def test_the_host_of_a_room_fills_it_with_robots_and_starts_when_all_are_ready():
    bench = Bench().sit(robots=1)
    assert said(bench.out)[-1] == {"type": "room/add_bot", "room_id": "1"}
    room = ROOM | {"player_list": [ME, 0, *OTHERS[:2]]}
    bench.hear("room/refresh_room_info", room_info=room)
    assert "begin" not in bench.timers
    bench.hear("room/refresh_room_info", room_info=room | {"ready_list": OTHERS[:2]})
    assert said(bench.fire("begin")) == [{"type": "room/start_game", "room_id": "1"}]


def test_two_who_wait_alone_find_each_other():
    bench = Bench().sit()
    assert said(bench.fire("look")) == [{"type": "room/get_room_list"}]
    later = ROOM | {"room_id": "2", "player_list": [OTHERS[0]], "host_user_id": OTHERS[0]}
    assert bench.hear("room/get_room_list", room_list=[ROOM, later]) == [], "they come to us"
    bench.fire("look")
    fuller = later | {"player_list": OTHERS[:2]}
    out = bench.hear("room/get_room_list", room_list=[ROOM, fuller])
    assert said(out) == [{"type": "room/leave_room", "room_id": "1"}]
    assert [end.reason for end in told(out, m.TableEnded)] == ["aborted"]


def test_a_room_in_which_no_game_begins_is_left():
    bench = Bench(wait_s=600.0).sit()
    assert bench.timers["wait"] == 600.0
    assert told(bench.fire("wait"), m.TableEnded)
    assert said(bench.out)[-1] == {"type": "room/leave_room", "room_id": "1"}


def test_the_match_queue():
    bench = Bench().connect()
    out = bench.feed(m.Seek("s", m.Wish("mahjong", {}, {"queue": "guobiao_1"})))
    assert said(out) == [{"type": "match/join_queue", "queue_type": "guobiao_1"}]
    out = bench.hear("gamestate/guobiao/game_start", game_info=game_info(2, HAND))
    (seated,) = told(out, m.Seated)
    assert (seated.table, seated.seek, seated.seat) == (f"game-{GAME_ID}", "s", 2)


def test_a_cancelled_seek_leaves_the_queue():
    bench = Bench().connect()
    bench.feed(m.Seek("s", m.Wish("mahjong", {}, {"queue": "guobiao_1"})))
    assert said(bench.feed(m.CancelSeek("s"))) == [{"type": "match/leave_queue"}]


@pytest.mark.parametrize(
    "wish",
    [
        m.Wish("othello"),
        m.Wish("mahjong", {"preset": "botzone"}),
        m.Wish("mahjong", {}, {"room_nmae": "x"}),
        m.Wish("mahjong", {}, {"robots": 4}),
        m.Wish("mahjong", {}, {"game_round": 0}),
    ],
)
def test_a_wish_that_the_lobby_cannot_fulfil_costs_no_word(wish):
    bench = Bench().connect()
    out = bench.feed(m.Seek("s", wish))
    assert told(out, m.SeekEnded) and not said(out)


def test_one_table_at_a_time():
    out = Bench().sit().feed(m.Seek("t", m.Wish("mahjong")))
    assert out == [m.SeekEnded("t", "this lobby has one table at a time")]


# ------------------------------------------------------------------------------------------------------------- hands


def test_trap_a_rooms_id_is_a_text_in_the_lobby_and_a_number_in_the_game():
    """One table, and one hand under the game's own name."""
    bench = Bench().play()
    (started,) = told(bench.out, m.HandStarted)
    assert (started.table, started.hand) == ("room-1", f"{GAME_ID}.1")
    assert len(told(bench.out, m.Seated)) == 1


def test_trap_seats_are_shuffled_between_hands():
    bench = Bench().play(seat=1)
    bench.hear("gamestate/guobiao/game_start", game_info=game_info(3, HAND, current_round=2))
    assert [started.seat for started in told(bench.out, m.HandStarted)] == [1, 3]
    assert [player.player for player in told(bench.out, m.HandStarted)[1].players][3] == str(ME)


def test_trap_our_frames_say_gb_and_theirs_guobiao():
    bench = Bench().turn()
    assert said(bench.act("play:W4")) == [
        {
            "type": "gamestate/GB/cut_tile",
            "gamestate_id": GAME_ID,
            "cutClass": True,
            "TileId": 14,
            "cutIndex": 13,
            "action_tick": 4,
        }
    ]


def test_trap_the_white_dragon_comes_before_the_green_one():
    """45 is the red, 46 the white, 47 the green dragon."""
    assert [wire.word(tile) for tile in (45, 46, 47)] == ["J1", "J3", "J2"]
    assert all(wire.number(wire.word(tile)) == tile for tile in range(11, 59) if tile % 10 and (tile < 48 or tile > 50))


def test_the_dealer_holds_fourteen_tiles_before_flowers_are_replaced():
    """Our rules deal thirteen: the fourteenth is drawn when no flower is left, and it is the last that came."""
    bench = Bench().play(seat=0, hand=[*HAND[:12], 52, 51])
    out = bench.ask_hand(0, ["buhua", "pass"], 1)
    frame = {"type": "gamestate/GB/send_action", "gamestate_id": GAME_ID, "action": "buhua", "targetTile": None}
    assert said(out) == [frame | {"action_tick": 1}]
    assert not told(out, m.ActionRequest), "a flower is no decision"
    bench.do(["buhua", "deal_buhua_tile"], 0, 2, buhua_tile=52, deal_tile=55)
    bench.ask_hand(0, ["buhua", "pass"], 3)
    bench.do(["buhua", "deal_buhua_tile"], 0, 4, buhua_tile=55, deal_tile=19)
    bench.ask_hand(0, ["buhua", "pass"], 5)
    bench.do(["buhua", "deal_buhua_tile"], 0, 6, buhua_tile=51, deal_tile=18)
    out = bench.ask_hand(0, ["cut"], 7, opening_buhua_complete=True)
    assert bench.view.phase == "turn" and bench.view.to_json()["drawn"] == "W8"
    assert bench.view.to_json()["flowers"] == [3, 0, 0, 0]
    assert told(out, m.ActionRequest)[0].raw is not None


def test_trap_remaining_time_is_the_bank_and_the_step_comes_on_top():
    request = Bench().turn().request()
    assert (request.grant_ms, request.bank_ms) == (5_000.0, 20_000.0)


def test_trap_drawn_tiles_are_told_to_the_drawer_alone():
    bench = Bench().turn()
    assert told(bench.out, m.Delta)[-1].events == ("draw 1 W4",)
    bench.act("play:W4")
    bench.do(["cut"], 1, 5, cut_tile=14, cut_class=True, cut_tile_index=13)
    bench.do(["deal_tile"], 2, 6)
    assert told(bench.out, m.Delta)[-1].events == ("draw 2",)


def test_trap_several_are_asked_at_once_and_a_higher_claim_goes_first():
    bench = Bench().opened(tile=24)
    bench.ask_claims(1, ["chi_left", "pass"], 24, 3)
    assert bench.request().legal == ("chi:B3", "pass")
    assert said(bench.act("chi:B3"))[0]["action"] == "chi_left"
    target = {"combination_target": "k24", "combination_mask": [0, 24, 1, 24, 0, 24]}
    out = bench.do(["peng"], 2, 4, cut_from_player=0, cut_tile=24, **target)
    assert told(out, m.MoveAcknowledged), "our claim was heard; it went second"
    assert told(out, m.Delta)[0].events == ("answer 1 chi:B3", "peng 2 B4")


def test_a_claim_that_comes_too_late_is_not_ours():
    """It was silently dropped: the next seat draws all the same."""
    bench = Bench().opened(tile=41)
    bench.ask_claims(1, ["peng", "pass"], 41, 3)
    bench.act("peng:F1")
    out = bench.do(["deal_tile"], 1, 4, deal_tile=19)
    assert told(out, m.ServerActedForUs) and not told(out, m.MoveAcknowledged)
    assert told(out, m.Delta)[0].events == ("draw 1 W9",)


def test_a_pass_has_no_echo_and_is_acknowledged_by_what_happens_next():
    bench = Bench().opened(tile=41)
    bench.ask_claims(1, ["peng", "pass"], 41, 3)
    assert said(bench.act("pass"))[0]["targetTile"] == 41
    assert "echo" not in bench.timers
    assert told(bench.do(["deal_tile"], 1, 4, deal_tile=19), m.MoveAcknowledged)


def test_our_claim_then_our_discard():
    bench = Bench().opened(tile=41)
    bench.ask_claims(1, ["peng", "pass"], 41, 3)
    bench.act("peng:F1")
    target = {"combination_target": "k41", "combination_mask": [1, 41, 0, 41, 0, 41]}
    assert told(bench.do(["peng"], 1, 4, cut_from_player=0, cut_tile=41, **target), m.MoveAcknowledged)
    bench.ask_hand(1, ["cut"], 5)
    assert bench.view.phase == "discard"
    assert said(bench.act("play:J1"))[0] | {"cutClass": None} == {
        "type": "gamestate/GB/cut_tile",
        "gamestate_id": GAME_ID,
        "cutClass": None,
        "TileId": 45,
        "cutIndex": 9,
        "action_tick": 5,
    }


def test_kongs_of_ours_and_of_others():
    bench = Bench().play(seat=1, hand=[11, 11, 11, 12, 12, 13, 14, 15, 16, 17, 18, 21, 22])
    bench.ask_hand(0, [], 1, opening_buhua_complete=True)
    bench.do(["angang"], 0, 2, combination_target="G0", combination_mask=[2, 0] * 4)
    bench.do(["deal_gang_tile"], 0, 3)
    bench.do(["cut"], 0, 4, cut_tile=12, cut_class=True)
    bench.ask_claims(1, ["peng", "pass"], 12, 5)
    bench.act("peng:W2")
    bench.do(["peng"], 1, 6, combination_target="k12", combination_mask=[1, 12, 0, 12, 0, 12])
    bench.ask_hand(1, ["cut"], 7)
    bench.act("play:B2")
    bench.do(["cut"], 1, 8, cut_tile=22, cut_class=False)
    for tick, player in ((9, 2), (11, 3), (13, 0)):
        bench.do(["deal_tile"], player, tick)
        bench.do(["cut"], player, tick + 1, cut_tile=47, cut_class=True)
    bench.do(["deal_tile"], 1, 15, deal_tile=11)
    bench.ask_hand(1, ["angang", "cut"], 16)
    assert "angang:W1" in bench.request().legal
    assert said(bench.act("angang:W1"))[0]["targetTile"] == 11
    bench.do(["angang"], 1, 17, combination_target="G11", combination_mask=[2, 11] * 4)
    bench.do(["deal_gang_tile"], 1, 18, deal_tile=12)
    bench.ask_hand(1, ["jiagang", "cut"], 19, deal_tile_type="deal_gang_tile")
    assert said(bench.act("bugang:W2"))[0] | {} == {
        "type": "gamestate/GB/send_action",
        "gamestate_id": GAME_ID,
        "action": "jiagang",
        "targetTile": 12,
        "action_tick": 19,
    }
    assert told(bench.do(["jiagang"], 1, 20, combination_target="k12"), m.MoveAcknowledged)
    bench.do(["deal_gang_tile"], 1, 21, deal_tile=44)
    assert bench.view.to_json()["after_kong"] is True


WINNING = [11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15]
"""Waits for 15, among others: four concealed pungs."""


@pytest.mark.parametrize("next_status", ["round_end_by_ready", "match_end"])
def test_a_win_then_ready_for_the_next_hand(next_status):
    bench = Bench().opened(hand=WINNING, tile=15)
    bench.ask_claims(1, ["hu_first", "pass"], 15, 3)
    assert said(bench.act("hu"))[0] | {"targetTile": 15} == {
        "type": "gamestate/GB/send_action",
        "gamestate_id": GAME_ID,
        "action": "hu_first",
        "targetTile": 15,
        "action_tick": 3,
    }
    result = {"hu_class": "hu_first", "hepai_player_index": 1, "hu_score": 64, "hu_fan": ["四暗刻*1", "清一色"]}
    result |= {"hepai_player_hand": [*WINNING, 15], "action_tick": 4, "next_status": next_status}
    changes = {"0": -72, "1": 88, "2": -8, "3": -8}
    out = bench.hear("gamestate/guobiao/show_result", show_result_info=result | {"score_changes": changes})
    assert told(out, m.MoveAcknowledged)
    assert told(out, m.HandEnded)[0].scores == (-72.0, 88.0, -8.0, -8.0)
    assert bench.view.terminal
    if next_status == "match_end":
        return
    ready = {str(i): False for i in range(4)}
    out = bench.hear("gamestate/guobiao/ready_status", ready_status_info={"player_to_ready": ready})
    assert said(out)[0] | {} == {
        "type": "gamestate/GB/send_action",
        "gamestate_id": GAME_ID,
        "action": "ready",
        "targetTile": None,
        "action_tick": 4,
    }
    assert "next" not in bench.timers, "said once"


def test_a_false_win_of_another_does_not_end_the_hand():
    bench = Bench().turn()
    result = {"hu_class": "hu_self", "hepai_player_index": 2, "hu_fan": ["错和"], "action_tick": 5}
    out = bench.hear("gamestate/guobiao/show_result", show_result_info=result)
    assert not told(out, m.HandEnded) and told(out, m.Notice)


def test_the_end_of_a_match_gives_the_room_up():
    bench = Bench().turn()
    data = {str(i): {"score": i, "rank": 1} for i in range(4)}
    out = bench.hear("gamestate/guobiao/game_end", game_end_info={"player_final_data": data})
    assert [(end.reason, end.scores) for end in told(out, m.TableEnded)] == [("normal", (0.0, 1.0, 2.0, 3.0))]
    assert said(out) == [{"type": "room/leave_room", "room_id": "1"}]
    assert bench.memo == {}


# ------------------------------------------------------------------------------------------------- silence and clocks


def test_trap_an_illegal_move_is_met_by_silence():
    """After ``echo_s`` another action is asked for, under a new id, and less time is left."""
    bench = Bench(echo_s=3.0).turn()
    first = bench.request()
    bench.act("play:W4")
    out = bench.fire("echo")
    (rejected,) = told(out, m.Rejected)
    assert rejected.request_id == first.request_id and rejected.reason.startswith("silence")
    again = bench.request()
    assert again.request_id != first.request_id
    assert (again.grant_ms, again.bank_ms) == (2_000.0, 20_000.0)
    bench.act("play:J1")
    out = bench.do(["cut"], 1, 5, cut_tile=45, cut_class=False)
    assert told(out, m.MoveAcknowledged) == [m.MoveAcknowledged("room-1", again.request_id)]


def test_silence_is_asked_about_a_few_times_only():
    bench = Bench().turn()
    moves = ["W4", "W1", "W2", "W3", "B1", "B2", "B3", "T1", "T2"]
    for _, tile in zip(range(MOST_ATTEMPTS), moves, strict=False):
        bench.act(f"play:{tile}")
        bench.fire("echo")
    assert len(told(bench.out, m.ActionRequest)) == MOST_ATTEMPTS
    assert "echo" not in bench.timers


def test_trap_a_stale_tick_is_met_by_silence_so_every_answer_carries_the_tick_of_its_question():
    bench = Bench().turn()
    assert said(bench.act("play:W4"))[0]["action_tick"] == 4
    assert bench.feed(m.Act("room-1", "another", ("play:W1",))) == []


def test_what_the_lobby_does_not_offer_is_not_even_said():
    bench = Bench().turn()
    out = bench.act("angang:W1")
    assert not said(out) and told(out, m.Rejected) and told(out, m.ActionRequest)


def test_trap_an_unknown_type_is_met_by_silence_and_told_by_us():
    bench = Bench().turn()
    assert bench.hear("fireworks") == [m.Unknown('{"type": "fireworks", "success": true}')]


def test_trap_server_made_moves_carry_is_timeout_action():
    bench = Bench().turn()
    out = bench.do(["cut"], 1, 5, cut_tile=14, cut_class=True, is_timeout_action=True)
    assert told(out, m.ServerActedForUs) == [m.ServerActedForUs("room-1", bench.request().request_id, "play:W4")]
    assert told(out, m.Delta)[0].events == ("play 1 W4",)


def test_trap_a_clock_that_ran_out_on_a_claim_is_a_pass():
    bench = Bench().opened(tile=41)
    bench.ask_claims(1, ["peng", "pass"], 41, 3)
    out = bench.do(["deal_tile"], 1, 4, deal_tile=19)
    assert told(out, m.ServerActedForUs) == [m.ServerActedForUs("room-1", bench.request().request_id, "pass")]


def test_trap_the_same_is_told_twice():
    bench = Bench().turn()
    before = len(bench.out)
    bench.do(["deal_tile"], 1, 3, deal_tile=14)
    bench.ask_hand(1, ["cut"], 4)
    assert bench.out[before:] == []


def test_a_discard_that_a_later_question_overtook_is_not_lost():
    """The lobby tells some players late of a discard, to give nothing away about claims."""
    bench = Bench().opened()
    bench.do(["deal_tile"], 1, 3, deal_tile=14)
    bench.ask_hand(1, ["cut"], 4)
    bench.act("play:W4")
    bench.ask_hand(2, [], 6)
    assert told(bench.do(["cut"], 1, 5, cut_tile=14, cut_class=True), m.MoveAcknowledged)


def test_trap_the_lobby_lets_who_is_offline_discard_a_flower():
    """Our rules know no such move: the lobby's picture takes over at the next draw."""
    bench = Bench().opened()
    bench.do(["deal_tile"], 1, 3, deal_tile=14)
    bench.ask_hand(1, ["cut"], 4)
    bench.act("play:W4")
    bench.do(["cut"], 1, 5, cut_tile=14, cut_class=True)
    bench.do(["deal_tile"], 2, 6)
    bench.do(["cut"], 2, 7, cut_tile=51, cut_class=True)
    out = bench.do(["deal_tile"], 3, 8)
    (snapshot,) = told(out, m.Snapshot)
    assert (snapshot.view["phase"], snapshot.view["actor"]) == ("turn", 3)
    assert told(bench.do(["cut"], 3, 9, cut_tile=44, cut_class=True), m.Delta)


def test_a_flower_that_nothing_can_replace_is_discarded():
    bench = Bench().play(tile_count=1)
    bench.ask_hand(0, [], 1, opening_buhua_complete=True)
    bench.do(["cut"], 0, 2, cut_tile=43, cut_class=False)
    bench.do(["deal_tile"], 1, 3, deal_tile=58)
    out = bench.ask_hand(1, ["cut"], 4, deal_tile_type="deal_tile")
    assert [(frame["TileId"], frame["cutClass"]) for frame in said(out)] == [(58, True)]
    assert not told(out, m.ActionRequest)


# ------------------------------------------------------------------------------------------------------- coming back


def back_info(tick=4, seat=1, own=(*HAND, 14), **changes):
    """The position of ``Bench.turn``."""
    mine = {"hand_tiles_count": 14, "has_draw_slot": True}
    dealer = {"hand_tiles_count": 13, "discard_tiles": [43]}
    info = {"current_player_index": 1, "tile_count": 90, **changes}
    return game_info(seat, list(own), tick=tick, p0=dealer, p1=mine, **info)


def test_trap_coming_back_is_offered_and_must_be_accepted():
    bench = Bench().turn()
    bench.lose()
    bench.log_in(m.Resume(("room-1",), bench.memo))
    out = bench.hear("message", message="reconnect_ask", message_info={"title": "-", "content": "-"})
    assert said(out) == [{"type": "reconnect_response", "reconnect": True}]
    assert not told(bench.out[-3:], m.Connected), "proven by a snapshot only"
    out = bench.hear("gamestate/guobiao/game_start", game_info=back_info())
    kinds = [type(o) for o in out if isinstance(o, m.Connected | m.Seated | m.Snapshot)]
    assert kinds == [m.Connected, m.Seated, m.Snapshot]
    before = told(bench.out, m.ActionRequest)[-1]
    out = bench.ask_hand(1, ["cut"], 4, deal_tile_type="deal_tile")
    (again,) = told(out, m.ActionRequest)
    assert again.request_id == before.request_id, "the same question keeps its id"
    assert again.grant_ms == 2_500.0, "part of the step is gone"


def test_what_happened_while_we_were_away_is_taken_from_the_snapshot():
    bench = Bench().turn()
    bench.lose()
    info = back_info(tick=30, own=HAND, current_player_index=2)
    info["players_info"][1] |= {"hand_tiles_count": 13, "has_draw_slot": False, "discard_tiles": [14]}
    info["players_info"][2] |= {"hand_tiles_count": 14, "has_draw_slot": True}
    info["tile_count"] = 89
    out = bench.come_back(info)
    (snapshot,) = told(out, m.Snapshot)
    assert snapshot.view["actor"] == 2 and snapshot.view["seq"] > 1000
    assert not told(out, m.Notice)


def test_a_snapshot_that_is_not_our_picture_is_logged_and_wins():
    bench = Bench().turn()
    bench.lose()
    out = bench.come_back(back_info(own=(*HAND[:-1], 47, 14)))
    assert any("taking the lobby's" in notice.text for notice in told(out, m.Notice))
    assert "J2" in bench.view.to_json()["hand"]


def test_trap_the_lobby_keeps_a_flower_in_our_hand_while_we_are_away():
    """No rule of ours knows such a hand: claims are passed until it is our turn to lay the flower down."""
    bench = Bench().sit()
    bench.hear("gamestate/guobiao/game_start", game_info=game_info(1, [*HAND[:12], 52]))
    bench.lose()
    info = back_info(tick=5, own=(*HAND[:12], 52), current_player_index=0, tile_count=91)
    info["players_info"][1] |= {"hand_tiles_count": 13, "has_draw_slot": False}
    out = bench.come_back(info)
    assert told(out, m.Connected) and not told(out, m.Snapshot)
    out = bench.ask_claims(1, ["peng", "pass"], 43, 6)
    assert [frame["action"] for frame in said(out)] == ["pass"]
    assert not told(out, m.Disconnected)
    bench.do(["deal_tile"], 1, 7, deal_tile=14)
    assert [frame["action"] for frame in said(bench.ask_hand(1, ["buhua", "cut"], 8))] == ["buhua"]
    assert told(bench.do(["buhua"], 1, 9, buhua_tile=52), m.Snapshot)
    bench.do(["deal_buhua_tile"], 1, 10, deal_tile=15)
    assert told(bench.ask_hand(1, ["cut"], 11), m.ActionRequest)


def test_melds_are_read_from_a_snapshot():
    bench = Bench().turn()
    bench.lose()
    info = back_info(tick=40, own=(*HAND[:10], 14))
    combos = {"combination_tiles": ["s32"], "combination_mask": [[1, 33, 0, 31, 0, 32]], "hand_tiles_count": 11}
    info["players_info"][1] |= combos
    hidden = {"combination_tiles": ["G0", "g29"], "combination_mask": [[2, 0] * 4, [1, 29, 0, 29, 0, 29, 0, 29]]}
    info["players_info"][2] |= hidden | {"hand_tiles_count": 7, "huapai_list": [51, 52]}
    info["players_info"][3] |= {"discard_origin_tiles": [33, 29]}
    info["tile_count"] = 70
    bench.come_back(info)
    told_view = bench.view.to_json()
    assert told_view["melds"][1] == [{"kind": "chi", "tile": "T2", "claimed": "T3"}]
    assert [meld["kind"] for meld in told_view["melds"][2]] == ["angang", "gang"]
    assert told_view["flowers"] == [0, 0, 2, 0]


def test_what_a_resume_needs_is_remembered_before_the_first_move():
    bench = Bench().turn()
    places = {type(o): i for i, o in enumerate(bench.out)}
    assert places[m.Remember] < places[m.ActionRequest]
    assert bench.memo["gamestate"] == GAME_ID and bench.memo["table"] == "room-1"


def test_a_fresh_process_comes_back_to_its_table_at_the_same_count():
    """The move that it logged before the crash is then given again."""
    bench = Bench().turn()
    before = bench.request()
    fresh = Bench(memo=bench.memo)
    fresh.log_in(m.Authenticate(bench.memo))
    fresh.hear("message", message="reconnect_ask", message_info={"title": "-", "content": "-"})
    out = fresh.hear("gamestate/guobiao/game_start", game_info=back_info())
    assert told(out, m.Seated)[0].table == "room-1"
    fresh.ask_hand(1, ["cut"], 4, deal_tile_type="deal_tile")
    again = fresh.request()
    assert (again.request_id, again.seq, again.hand) == (before.request_id, before.seq, before.hand)


def test_trap_a_game_that_is_not_offered_again_is_aborted_not_lost():
    bench = Bench().turn()
    bench.lose()
    bench.log_in(m.Resume(("room-1",), bench.memo))
    out = bench.fire("settle")
    assert [end.reason for end in told(out, m.TableEnded)] == ["aborted"]


def contradict(bench):
    """We are said to have discarded what we do not hold."""
    return bench.do(["cut"], 1, 5, cut_tile=29, cut_class=False)


def test_a_contradiction_is_met_by_asking_for_the_position():
    out = contradict(Bench().turn())
    assert told(out, m.Disconnected) and told(out, m.Notice)


@pytest.mark.parametrize("others", ["robots", "offline"])
def test_trap_all_people_offline_deletes_the_game_so_the_connection_is_kept(others):
    bench = Bench()
    users = [0, ME, 0, 2] if others == "robots" else None
    bench.sit()
    bench.hear("gamestate/guobiao/game_start", game_info=game_info(1, HAND, users=users))
    bench.ask_hand(0, [], 1, opening_buhua_complete=True)
    bench.do(["cut"], 0, 2, cut_tile=43, cut_class=False)
    bench.do(["deal_tile"], 1, 3, deal_tile=14)
    if others == "offline":
        tags = {str(i): ["offline"] if i != 1 else [] for i in range(4)}
        bench.hear("refresh_player_tag_list", refresh_player_tag_list_info={"player_to_tag_list": tags})
        assert [p.online for p in told(bench.out, m.Presence)] == [False] * 3
    out = contradict(bench)
    assert not told(out, m.Disconnected) and not told(out, m.CloseSocket)
    bench.hear("gamestate/guobiao/game_start", game_info=game_info(2, HAND, users=None, current_round=2))
    assert told(bench.out, m.HandStarted)[-1].seat == 2, "the next hand is told whole"


def test_the_host_is_told_the_position_again_without_breaking_the_connection():
    bench = Bench().turn()
    out = bench.feed(m.Resync("room-1"))
    assert told(out, m.Snapshot) and told(out, m.ActionRequest) and not told(out, m.CloseSocket)


def test_leaving_a_game_gives_it_up_for_good():
    bench = Bench().turn()
    out = bench.feed(m.Leave("room-1"))
    assert [end.reason for end in told(out, m.TableEnded)] == ["left"]
    bench.log_in(m.Resume(()))
    out = bench.hear("message", message="reconnect_ask", message_info={"title": "-", "content": "-"})
    assert said(out) == [{"type": "reconnect_response", "reconnect": False}]


def test_trap_a_frame_without_a_type_ends_the_servers_loop_so_we_send_none():
    bench = Bench().turn()
    bench.act("play:W4")
    bench.feed(m.Ping())
    assert all(isinstance(frame, dict) and frame["type"] for frame in said(bench.out))


def test_trap_the_dead_loops_socket_answers_protocol_pings_so_the_heartbeat_is_the_lobbys_own():
    bench = Bench().turn()
    assert said(bench.feed(m.Ping())) == [{"type": "ping", "client_ts": 1}]
    assert bench.hear("pong", client_ts=1) == [m.Alive()]


# -------------------------------------------------------------------------------------------------------- transcripts


def lines_of(name):
    return [json.loads(line) for line in (TRANSCRIPTS / f"open_mahjong_{name}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("name", "least"), [("full_match", 1500), ("edge_cases", 400)])
def test_every_recorded_frame_is_understood(name, least):
    frames = [line["data"] for line in lines_of(name) if line["dir"] == "in"]
    for frame in frames:
        wire.decode(json.dumps(frame))
    assert len(frames) > least - 400


def replay(name, conn, until=None):
    """A player's connection: our adapter hears what that one heard, and decides what that one decided."""
    bench, wrong = None, []
    for line in lines_of(name)[:until]:
        if line["conn"] != conn:
            continue
        data, way = line["data"], line["dir"]
        if way == "in" and data["type"] == "login":
            if bench is not None and told(bench.out, m.HandStarted):
                break  # a second connection
            bench = Bench(user=data["login_info"]["user_id"])
            bench.dial()
            bench.feed(m.Frame(bench.conn, json.dumps(data)))
            bench.fire("settle")
        elif way == "in" and bench is not None:
            bench.feed(m.Frame(bench.conn, json.dumps(data)))
        elif way == "out" and bench is not None and data["type"].startswith("gamestate/GB/"):
            mine = said(bench.out)[-1:] if data.get("action") == "buhua" else said(bench.act(action_of(data)))
            if mine != [data]:
                wrong.append((data, mine))
    return bench, wrong


def action_of(frame):
    if frame["type"].endswith("cut_tile"):
        return f"play:{wire.word(frame['TileId'])}"
    return {"pass": "pass"}[frame["action"]]


@pytest.mark.parametrize("conn", ["mjbota", "mjbotb", "mjbotc", "guest"])
def test_a_recorded_hand_folds_and_we_say_what_the_recorded_client_said(conn):
    """The first of the match; of the others only a part was kept."""
    bench, wrong = replay("full_match", conn, until=1270)
    assert wrong == []
    assert len(told(bench.out, m.HandEnded)) == 1 and bench.view.terminal
    assert len(said(bench.out)) > 20
    assert not any(isinstance(o, m.Notice | m.Snapshot | m.Unknown | m.Rejected) for o in bench.out)


@pytest.mark.parametrize("conn", ["mjbotb", "mjbota"])
def test_recorded_edge_cases_fold(conn):
    """An offline player discards a flower, which our rules do not know."""
    bench, wrong = replay("edge_cases", conn)
    assert wrong == []
    assert len(told(bench.out, m.Snapshot)) == 1
    assert any("a flower was discarded" in notice.text for notice in told(bench.out, m.Notice))


def test_the_recorded_reconnect():
    """The snapshot, the pending question, and the discarded flower among our own discards."""
    bench = None
    for line in lines_of("edge_cases")[330:450]:
        if line["conn"] == "mjbotc" and line["dir"] == "in":
            data = line["data"]
            if data["type"] == "login":
                bench = Bench(user=data["login_info"]["user_id"], settle_s=9.0)
                bench.dial()
            bench.feed(m.Frame(bench.conn, json.dumps(data)))
    (snapshot,) = told(bench.out, m.Snapshot)
    assert snapshot.view["discards"][2] == ["W3", "T1", "F1", "T5", "W2"]
    (request,) = told(bench.out, m.ActionRequest)
    assert request.bank_ms == 0.0 and request.grant_ms == 1_500.0


# ------------------------------------------------------------------------------------------------------ hostile frames


@given(st.one_of(st.text(max_size=60), st.binary(max_size=60)))
def test_any_frame_is_survived(data):
    bench = Bench().turn()
    bench.feed(m.Frame(bench.conn, data))


MEMBERS = (
    "action_list",
    "action_player",
    "action_tick",
    "cut_tile",
    "deal_tile",
    "buhua_tile",
    "player_index",
    "combination_target",
    "hu_class",
    "hepai_player_index",
    "hand_tiles",
)
values = st.recursive(
    st.none()
    | st.integers(-5, 60)
    | st.sampled_from(["cut", "peng", "chi_left", "buhua", "deal_tile", "angang", "jiagang", "hu_self", "k14", "G0"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=6),
    max_leaves=12,
)
KINDS = (
    ("do_action", "do_action_info"),
    ("ask_other_action", "ask_other_action_info"),
    ("broadcast_hand_action", "ask_hand_action_info"),
    ("show_result", "show_result_info"),
    ("game_start", "game_info"),
)


@given(st.sampled_from(KINDS), values)
def test_any_content_of_a_known_frame_is_survived(kind, body):
    bench = Bench().turn()
    bench.feed(m.Frame(bench.conn, json.dumps({"type": f"gamestate/guobiao/{kind[0]}", kind[1]: body})))
    bench.do(["deal_tile"], 2, 50)


actions = st.sampled_from(
    ["cut", "peng", "gang", "chi_left", "chi_mid", "chi_right", "buhua", "deal_tile", "angang", "jiagang"]
)
tiles = st.sampled_from([11, 14, 23, 41, 43, 45, 51, 58])


@given(st.lists(st.tuples(actions, st.integers(0, 3), tiles), min_size=1, max_size=12))
def test_any_course_of_a_hand_is_survived(course):
    bench = Bench().turn()
    for tick, (action, player, tile) in enumerate(course, 5):
        members = {"cut_tile": tile, "deal_tile": tile, "buhua_tile": tile, "combination_target": f"k{tile}"}
        bench.do([action], player, tick, **members)
        bench.ask_hand(player, ["cut"], tick)


# -------------------------------------------------------------------------------------------------------- capabilities


PROVEN = {
    "games": ("mahjong",),  # test_a_wish_that_the_lobby_cannot_fulfil_costs_no_word
    "tables_per_connection": 1,  # test_one_table_at_a_time
    "connections_per_identity": 1,  # test_trap_a_second_login_kicks_the_first_…
    "acks_moves": True,  # test_trap_an_illegal_move_is_met_by_silence, test_a_pass_has_no_echo_…
    "rejects_illegal": "silence",  # test_trap_an_illegal_move_is_met_by_silence
    "sends_turn": True,  # test_a_recorded_hand_folds_…: a question is asked where the lobby asks, and only there
    "sends_legal_actions": True,  # test_trap_several_are_asked_at_once_…
    "takes_composites": False,  # test_one_action_at_a_time
    "clock": "bank_and_step",  # test_trap_remaining_time_is_the_bank_…
    "resume": "identity",  # test_trap_coming_back_is_offered_and_must_be_accepted: by the login alone
    "resume_delivers": "snapshot",  # the same
    "heartbeat": "app",  # test_trap_the_dead_loops_socket_answers_protocol_pings_…
    "messages_per_second": None,  # none was met: test_a_match_of_four_accounts_of_ours at full speed
    "on_rate_limit": "none",
    "plays_for_us": True,  # test_trap_server_made_moves_carry_is_timeout_action
    "transport": "websocket",
    "needs_secret": False,  # test_an_account_without_a_password_is_refused_but_a_guest_needs_none
}


def test_every_capability_is_proven():
    assert {name: getattr(OpenMahjong.capabilities, name) for name in Capabilities.__struct_fields__} == PROVEN


def test_one_action_at_a_time():
    bench = Bench().turn()
    with pytest.raises(ValueError, match="one action at a time"):
        bench.feed(m.Act("room-1", bench.request().request_id, ("play:W4", "play:W1")))


def test_it_is_registered():
    assert OpenMahjong in bothost_lobbies()
