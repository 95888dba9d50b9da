"""What a match of the fake open_mahjong lobby is at: its legal actions, and the frames that show it to the players."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bothost.lobbies.open_mahjong import protocol as wire
from bothost.rules import mahjong
from bothost.testing.fake_open_mahjong.seat import Seat, kind_of

if TYPE_CHECKING:
    from bothost.testing.fake_open_mahjong.server import FakeOpenMahjong

CHOWS = {"chi_left": (-2, -1), "chi_mid": (-1, 1), "chi_right": (1, 2)}
"""Action → offsets from the discard to the two tiles of the hand."""


class Board:
    """The state of a match."""

    def __init__(self, owner: FakeOpenMahjong, match_id: str, room: dict[str, Any], seats: list[Seat]) -> None:
        self.owner = owner
        self.id = match_id
        self.room = room
        self.seats = seats
        owner.rng.shuffle(self.seats)
        for i, seat in enumerate(self.seats):
            seat.original = i
        self.round = 1
        self.tick = 0
        self.wall: list[int] = []
        self.status = "waiting"
        self.current = 0
        self.cut = 0
        self.asked: dict[int, list[str]] = {}
        self.answers: dict[int, tuple[str, int]] = {}
        self.ask: dict[str, Any] = {}
        self.waits: set[int] = set()
        """Players who have not said ready for the next hand."""
        self.over = False

    @property
    def place(self) -> str:
        """Where an action came, in the server's records."""
        return f"{self.id}.{self.round}.{self.tick}"

    def index_of(self, user: int) -> int | None:
        return next((i for i, seat in enumerate(self.seats) if seat.user == user), None)

    # ---------------------------------------------------------------------------------------------------- legal actions

    def options(self, index: int, *, kong: bool = False) -> list[str]:
        """Legal actions of a seat that has drawn a tile."""
        seat = self.seats[index]
        out = []
        if self.wall:
            out += ["buhua"] if any(map(wire.is_flower, seat.tiles)) else []
            out += ["angang"] if any(seat.tiles.count(tile) == 4 for tile in seat.tiles) else []
            out += ["jiagang"] if any(c[0] == "k" and int(c[1:]) in seat.tiles for c in seat.combos) else []
        out.append("cut")
        if self.win(index, seat.tiles[-1], seat.tiles, drawn=True, kong=kong) is not None:
            out.append("hu_self")
        return out

    def claims(self, tile: int, *, robbing: bool = False) -> dict[int, list[str]]:
        """Legal claims of a tile that was discarded, or added to a pung, by seat."""
        out: dict[int, list[str]] = {}
        for step, hu in ((1, "hu_first"), (2, "hu_second"), (3, "hu_third")):
            i = (self.current + step) % 4
            seat, can = self.seats[i], []
            if self.wall and not robbing and not wire.is_flower(tile):
                if step == 1 and tile <= 40:
                    can += [name for name, (a, b) in CHOWS.items() if {tile + a, tile + b} <= set(seat.tiles)]
                can += ["peng"] if seat.tiles.count(tile) >= 2 else []
                can += ["gang"] if seat.tiles.count(tile) == 3 else []
            if not wire.is_flower(tile):
                fans = self.win(i, tile, [*seat.tiles, tile], drawn=False, kong=robbing)
                can += [hu] if fans is not None else []
            if can:
                out[i] = [*can, "pass"]
        return out

    def win(self, index: int, tile: int, tiles: list[int], *, drawn: bool, kong: bool) -> tuple[int, list[str]] | None:
        """Points and fans of a win; None if the hand is not complete or has too few points."""
        seat = self.seats[index]
        if any(map(wire.is_flower, tiles)):
            return None
        shown = sum(s.discards.count(tile) + sum(m[1::2].count(tile) for m in s.masks) for s in self.seats)
        fourth = shown == (3 if drawn or kong else 4)
        flowers = len(seat.flowers)
        wins = [kind_of(tile), drawn, fourth, kong, not self.wall, index, (self.round - 1) // 4 % 4, flowers]
        points, fans = seat.value(tiles, wins)
        if not points or points < self.room["hepai_limit"]:
            return None
        names = [f"{fan.chinese}*{n}" for fan, n in zip(mahjong.FANS, fans, strict=True) if n]
        return points + flowers, names

    # ----------------------------------------------------------------------------------------------------------- frames

    def tell(self, index: int, kind: str, member: str, info: dict[str, Any]) -> None:
        seat = self.seats[index]
        if not seat.robot and not seat.offline:
            self.owner.tell(seat.user, kind, **{member: info})

    def tell_all(self, kind: str, member: str, info: Any) -> None:
        """Send a frame to all. ``info``: a dict, or a function of the receiver's index."""
        for i in range(4):
            self.tell(i, kind, member, info(i) if callable(info) else info)

    def do(self, actions: list[str], player: int, **members: Any) -> None:
        """Tell all what a player did."""
        self.tick += 1

        def info(viewer: int) -> dict[str, Any]:
            given = {key: value for key, value in members.items() if value is not None}
            if viewer != player:
                given.pop("deal_tile", None)
                if actions == ["angang"]:
                    given["combination_target"], given["combination_mask"] = "G0", [2, 0] * 4
            return {"action_list": actions, "action_player": player, **given, "action_tick": self.tick}

        self.tell_all("gamestate/guobiao/do_action", "do_action_info", info)

    def tell_asked(self, index: int) -> None:
        """Send a player the open request. All players see who must act after a draw."""
        info: dict[str, Any] = {"remaining_time": self.seats[index].bank, "action_tick": self.tick}
        info |= {"player_index": index, "action_list": self.asked.get(index, [])}
        if self.ask["kind"] == "claims":
            info["cut_tile"] = self.ask["tile"]
            return self.tell(index, "gamestate/guobiao/ask_other_action", "ask_other_action_info", info)
        members = {key: value for key, value in self.ask.items() if key != "kind" and value}
        info |= {"player_index": self.current, "remain_tiles": len(self.wall), "dealer_index": 0, **members}
        self.tell(index, "gamestate/guobiao/broadcast_hand_action", "ask_hand_action_info", info)

    def tell_tags(self) -> None:
        tags = {str(i): ["offline"] if seat.offline else [] for i, seat in enumerate(self.seats)}
        self.tell_all("refresh_player_tag_list", "refresh_player_tag_list_info", {"player_to_tag_list": tags})

    def tell_ready(self) -> None:
        ready = {str(i): i not in self.waits for i in range(4)}
        self.tell_all("gamestate/guobiao/ready_status", "ready_status_info", {"player_to_ready": ready})

    def picture(self, viewer: int) -> dict[str, Any]:
        """The position as a player sees it."""
        return {
            "room_id": int(self.room["room_id"]),
            "gamestate_id": self.id,
            "current_player_index": self.current,
            "action_tick": self.tick,
            "max_round": self.room["game_round"],
            "tile_count": len(self.wall),
            "current_round": self.round,
            "step_time": self.room["step_timer"],
            "round_time": self.room["round_timer"],
            "room_rule": "guobiao",
            "sub_rule": "guobiao/standard",
            "hepai_limit": self.room["hepai_limit"],
            "open_cuohe": False,
            "players_info": [seat.picture(i, shown=i == viewer) for i, seat in enumerate(self.seats)],
            "dealer_index": 0,
        }
