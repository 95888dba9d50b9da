"""The adapter of open_mahjong_unity without sockets, and frames of the lobby to feed it with."""

import json
from pathlib import Path

from bothost import messages as m
from bothost import rules
from bothost.lobbies.base import Account
from bothost.lobbies.open_mahjong import OpenMahjong, OpenMahjongOptions

from ..adapter_bench import AdapterBench

PASSWORD = "planted-Passw0rd!m"
ACCOUNT = Account(name="ada", url="ws://lobby.example:8081", password=PASSWORD, user_agent="bot/1")
GAME = rules.game("mahjong", preset="open-mahjong")
TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
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


class Bench(AdapterBench):
    def __init__(self, memo=None, account=ACCOUNT, user=ME, **options):
        super().__init__(OpenMahjong(account, OpenMahjongOptions(**options)), GAME, memo)
        self.user = user

    def hear(self, kind, **body):
        return self.feed(m.Frame(self.conn, json.dumps({"type": kind, "success": True, **body})))

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
