"""The frames that a match of the fake open_mahjong lobby sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bothost.testing.fake_open_mahjong.game import Match


class Frames:
    """The frames that a match sends."""

    def __init__(self, match: Match) -> None:
        self._match = match

    def to_all(self, kind: str, member: str, info: Any) -> None:
        """Send a frame to all. ``info``: a dict, or a function of the receiver's index."""
        for i, seat in enumerate(self._match.seats):
            if not seat.robot and not seat.offline:
                body = info(i) if callable(info) else info
                self._match.owner.tell(seat.user, kind, **{member: body})

    def do(self, actions: list[str], player: int, **members: Any) -> None:
        self._match.tick += 1
        tick = self._match.tick

        def info(viewer: int) -> dict[str, Any]:
            given = {key: value for key, value in members.items() if value is not None}
            if viewer != player:
                given.pop("deal_tile", None)
                if actions == ["angang"]:
                    given["combination_target"], given["combination_mask"] = "G0", [2, 0] * 4
            return {"action_list": actions, "action_player": player, **given, "action_tick": tick}

        self.to_all("gamestate/guobiao/do_action", "do_action_info", info)

    def picture(self, viewer: int) -> dict[str, Any]:
        return {
            "room_id": int(self._match.room["room_id"]),
            "gamestate_id": self._match.id,
            "current_player_index": self._match.current,
            "action_tick": self._match.tick,
            "max_round": self._match.room["game_round"],
            "tile_count": len(self._match.wall),
            "current_round": self._match.round,
            "step_time": self._match.room["step_timer"],
            "round_time": self._match.room["round_timer"],
            "room_rule": "guobiao",
            "sub_rule": "guobiao/standard",
            "hepai_limit": self._match.room["hepai_limit"],
            "open_cuohe": False,
            "players_info": [seat.picture(i, shown=i == viewer) for i, seat in enumerate(self._match.seats)],
            "dealer_index": 0,
        }

    def tags(self) -> None:
        tags = {str(i): ["offline"] if seat.offline else [] for i, seat in enumerate(self._match.seats)}
        self.to_all("refresh_player_tag_list", "refresh_player_tag_list_info", {"player_to_tag_list": tags})

    def hand_ask(self, viewer: int) -> None:
        members = {key: value for key, value in self._match.ask.items() if key != "kind" and value}
        info = {
            "remaining_time": self._match.seats[viewer].bank,
            "player_index": self._match.current,
            "remain_tiles": len(self._match.wall),
            "action_list": self._match.asked.get(viewer, []),
            "action_tick": self._match.tick,
            **members,
            "dealer_index": 0,
        }
        user = self._match.seats[viewer].user
        self._match.owner.tell(user, "gamestate/guobiao/broadcast_hand_action", ask_hand_action_info=info)

    def claim_ask(self, viewer: int) -> None:
        info = {
            "remaining_time": self._match.seats[viewer].bank,
            "action_list": self._match.asked[viewer],
            "cut_tile": self._match.ask["tile"],
            "action_tick": self._match.tick,
            "player_index": viewer,
        }
        user = self._match.seats[viewer].user
        self._match.owner.tell(user, "gamestate/guobiao/ask_other_action", ask_other_action_info=info)

    def ready(self) -> None:
        ready = {str(i): i not in self._match.waits for i in range(4)}
        self.to_all("gamestate/guobiao/ready_status", "ready_status_info", {"player_to_ready": ready})
