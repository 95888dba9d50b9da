"""The adapter of open_mahjong_unity: logging in, rooms and the queue."""

import json

import pytest

from bothost import messages as m
from bothost.lobbies.base import Account

from ..adapter_bench import told
from .bench import GAME_ID, HAND, ME, OTHERS, PASSWORD, ROOM, Bench, game_info, said

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
    assert "release_version 19" in end.reason


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
    plain = ROOM | {"room_id": "8", "player_list": [OTHERS[0]], "use_flowers": False}
    ours = ROOM | {"room_id": "7", "player_list": [OTHERS[0]], "host_user_id": OTHERS[0]}
    out = bench.hear("room/get_room_list", room_list=[full, other, locked, plain, ours])
    assert said(out) == [{"type": "room/join_room", "room_id": "7", "password": ""}]
    out = bench.hear("room/refresh_room_info", room_info=ours | {"player_list": [OTHERS[0], ME]})
    (seated,) = told(out, m.Seated)
    assert (seated.table, seated.seek, seated.seat, seated.rules) == ("room-7", "s", None, {"preset": "open-mahjong"})
    assert said(bench.fire("begin")) == [{"type": "room/set_ready", "room_id": "7", "ready": True}]


def test_a_name_or_a_password_of_digits_is_a_text():
    bench = Bench().connect()
    bench.feed(m.Seek("s", m.Wish("mahjong", {}, {"room_name": 17, "password": 1234})))
    ours = ROOM | {"room_id": "7", "player_list": [OTHERS[0]], "room_name": "17", "has_password": True}
    assert said(bench.hear("room/get_room_list", room_list=[ours]))[0]["password"] == "1234"
    (create,) = said(bench.hear("tips", success=False, message="full"))
    assert (create["roomname"], create["password"]) == ("17", "1234")


def test_a_room_with_an_endless_name_hides_no_other():
    bench = Bench().connect()
    bench.feed(m.Seek("s", m.Wish("mahjong")))
    endless = ROOM | {"room_id": "4", "room_name": "x" * 2000}
    ours = ROOM | {"room_id": "7", "player_list": [OTHERS[0]], "host_user_id": OTHERS[0]}
    out = bench.hear("room/get_room_list", room_list=[endless, None, ours])
    assert said(out) == [{"type": "room/join_room", "room_id": "7", "password": ""}]


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


def test_a_player_who_joins_while_we_look_is_waited_for_and_not_shown_at_all_means_the_lobby_forgot_us():
    bench, joined = Bench().sit(), ROOM | {"player_list": [ME, OTHERS[0]]}
    bench.fire("look")
    assert bench.hear("room/get_room_list", room_list=[joined]) == [], "the list may come first"
    bench.hear("room/refresh_room_info", room_info=joined)
    bench.hear("room/refresh_room_info", room_info=ROOM)
    bench.fire("look")
    assert bench.hear("room/get_room_list", room_list=[joined]) == []
    bench.fire("look")
    out = bench.hear("room/get_room_list", room_list=[joined])
    assert told(out, m.CloseSocket) and told(out, m.Disconnected)


def test_a_ready_player_says_so_again_and_a_lobby_that_does_not_show_the_room_then_has_forgotten_us():
    room = ROOM | {"room_id": "7", "player_list": [OTHERS[0], ME], "host_user_id": OTHERS[0]}
    bench = Bench().connect()
    bench.feed(m.Join("s", "room-7"))
    bench.hear("room/refresh_room_info", room_info=room)
    for _ in range(3):
        assert said(bench.fire("begin")) == [{"type": "room/set_ready", "room_id": "7", "ready": True}]
        assert not said(bench.hear("room/refresh_room_info", room_info=room | {"ready_list": [ME]}))
    bench.fire("begin")
    out = bench.fire("begin")
    assert told(out, m.CloseSocket) and told(out, m.Disconnected)


@pytest.mark.parametrize("news", [{"ready_list": OTHERS[:1]}, {"is_game_running": True}])
def test_the_host_of_a_room_looks_whether_it_changed_without_a_word_to_us(news):
    bench = Bench().sit()
    room = ROOM | {"player_list": [ME, OTHERS[0]]}
    bench.hear("room/refresh_room_info", room_info=room)
    for listed in (room, room | news):
        bench.fire("look")
        assert bench.hear("room/get_room_list", room_list=[listed]) == []
    bench.fire("look")
    assert told(bench.hear("room/get_room_list", room_list=[room | news]), m.Disconnected)


def test_whoever_removes_us_from_a_room_is_left_alone():
    bench = Bench().connect()
    theirs = ROOM | {"room_id": "7", "player_list": [OTHERS[0], ME], "host_user_id": OTHERS[0]}
    bench.feed(m.Join("s", "room-7"))
    bench.hear("room/refresh_room_info", room_info=theirs)
    out = bench.hear("room/leave_room_done", message="您已被房主移出房间")
    assert [end.reason for end in told(out, m.TableEnded)] == ["kicked"]
    bench.feed(m.Seek("t", m.Wish("mahjong")))
    theirs = theirs | {"room_id": "1", "player_list": [OTHERS[0]]}
    assert said(bench.hear("room/get_room_list", room_list=[theirs]))[0]["type"] == "room/create_GB_room"
    ours = ROOM | {"room_id": "2"}
    bench.hear("room/refresh_room_info", room_info=ours)
    bench.fire("look")
    assert bench.hear("room/get_room_list", room_list=[theirs, ours]) == [], "we do not leave our room for theirs"


def test_a_room_in_which_no_game_begins_is_left():
    bench = Bench(wait_s=600.0).sit()
    assert bench.timers["wait"] == 600.0
    assert told(bench.fire("wait"), m.TableEnded)
    assert said(bench.out)[-1] == {"type": "room/leave_room", "room_id": "1"}


def test_a_lobby_that_believes_that_we_play_already_is_asked_where_by_a_login():
    """It forgot us in the queue, and started our game without a word."""
    bench = Bench().connect()
    for last in (False, True):
        bench.feed(m.Seek("s", m.Wish("mahjong", {}, {"queue": "guobiao_1"})))
        out = bench.feed(m.Frame(1, json.dumps({"type": "tips", "success": False, "message": "您正在游戏中"})))
        assert told(out, m.SeekEnded) and bool(told(out, m.Disconnected)) == last
    out = bench.come_back(game_info(1, HAND), known=())
    assert told(out, m.Seated) and told(out, m.HandStarted)


def test_a_lobby_that_believes_that_we_sit_in_a_room_learns_otherwise_by_a_login():
    """It forgot us, and so does not tell us that our room is gone."""
    bench = Bench().connect()
    text = "已经处于一个房间中"
    for last in (False, True):
        bench.feed(m.Seek("s", m.Wish("mahjong")))
        bench.hear("room/get_room_list", room_list=[])
        out = bench.feed(m.Frame(1, json.dumps({"type": "tips", "success": False, "message": text})))
        assert told(out, m.SeekEnded) and bool(told(out, m.Disconnected)) == last


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


def test_a_room_whose_seek_was_cancelled_before_it_was_shown_is_left():
    """The lobby lets nobody into a second room."""
    bench = Bench().connect()
    bench.feed(m.Create("s", m.Wish("mahjong")))
    bench.feed(m.CancelSeek("s"))
    bench.feed(m.Seek("t", m.Wish("mahjong")))
    out = bench.hear("room/refresh_room_info", room_info=ROOM)
    assert said(out) == [{"type": "room/leave_room", "room_id": "1"}] and not told(out, m.Seated)
    assert bench.hear("room/create_room_done", room_info=ROOM) == []


@pytest.mark.parametrize("end", ["refused", "lost"])
def test_a_cancelled_room_that_was_never_opened_costs_no_other(end):
    bench = Bench().connect()
    bench.feed(m.Create("s", m.Wish("mahjong")))
    bench.feed(m.CancelSeek("s"))
    if end == "refused":
        bench.feed(m.Frame(1, json.dumps({"type": "tips", "success": False, "message": "您已在房间中"})))
    else:
        bench.lose()
        bench.log_in(m.Resume(()))
        bench.fire("settle")
    bench.feed(m.Join("t", "room-1"))
    assert told(bench.hear("room/refresh_room_info", room_info=ROOM), m.Seated)


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
