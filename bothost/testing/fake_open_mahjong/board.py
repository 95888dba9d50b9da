"""What a match of the fake open_mahjong lobby is at, and the frames that show it to the players."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Protocol

from bothost.testing.fake_open_mahjong.position import Position
from bothost.testing.fake_open_mahjong.seat import Seat
from bothost.testing.fake_open_mahjong.traps import Traps


class Lobby(Protocol):
    """The server, as its matches use it."""

    rng: random.Random
    traps: Traps
    second: float
    stale: list[tuple[int, str]]

    def tell(self, user: int, kind: str, /, **members: Any) -> None: ...
    def silence(self, user: int, where: str, what: str) -> None: ...
    def moved(self, user: int) -> None: ...
    def finished(self, board: Board) -> None: ...
    def chance(self, probability: float, name: str) -> bool: ...
    def later(self, after_s: float, call: Callable[..., object], *args: object) -> asyncio.TimerHandle: ...


class Board:
    """The state of a match."""

    def __init__(self, owner: Lobby, match_id: str, room: dict[str, Any], seats: list[Seat]) -> None:
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
    def position(self) -> Position:
        return Position(self.seats, self.wall, self.current, (self.round - 1) // 4 % 4, self.room["hepai_limit"])

    @property
    def place(self) -> str:
        """Where an action came, in the server's records."""
        return f"{self.id}.{self.round}.{self.tick}"

    def index_of(self, user: int) -> int | None:
        return next((i for i, seat in enumerate(self.seats) if seat.user == user), None)

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
