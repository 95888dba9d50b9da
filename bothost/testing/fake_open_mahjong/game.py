"""A match of the fake open_mahjong lobby: deals, flowers, claims, clocks, and players who are offline.

Written from the frames of the real lobby (``docs/reference/adapters/open_mahjong.md``); the scoring is our own.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Protocol

from bothost.lobbies.open_mahjong import protocol as wire
from bothost.testing.fake_open_mahjong.position import CHOWS, Position
from bothost.testing.fake_open_mahjong.seat import ALL_TILES, Seat
from bothost.testing.fake_open_mahjong.traps import Traps

OFFLINE_S = 0.5
"""The lobby discards for a player who is offline after this time."""
READY_S = 15.0
"""After a win the lobby waits this long for players who do not say ready."""
SETTLE_S = 0.3
"""A flower's replacement is drawn at once, and reported after this time."""
SWITCH_S = 4.0
SWITCHED = {5: (1, 0, 3, 2), 9: (3, 2, 0, 1), 13: (2, 3, 1, 0)}
"""Hands before which the players switch seats: the new index by the one in the first hand."""
PRIORITY = {"hu_first": 5, "hu_second": 4, "hu_third": 3, "peng": 2, "gang": 2, "pass": 0}
"""Priorities of claims. A chow has 1."""


class Lobby(Protocol):
    """The server, as its matches use it."""

    rng: random.Random
    traps: Traps
    second: float
    stale: list[tuple[int, str]]

    def tell(self, user: int, kind: str, /, **members: Any) -> None: ...
    def silence(self, user: int, where: str, what: str) -> None: ...
    def moved(self, user: int) -> None: ...
    def finished(self, match: Match) -> None: ...
    def chance(self, probability: float, name: str) -> bool: ...
    def later(self, after_s: float, call: Callable[..., object], *args: object) -> asyncio.TimerHandle: ...


class Match:
    """A match of four hands for each round of the room's setting."""

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
        self.alarm: asyncio.TimerHandle | None = None
        self.over = False

    # --------------------------------------------------------------------------------------------------- a hand

    def deal(self) -> None:
        if self.over:
            return
        self.wall = list(ALL_TILES)
        self.owner.rng.shuffle(self.wall)
        for i, seat in enumerate(self.seats):
            seat.tiles = [self.wall.pop(0) for _ in range(14 if i == 0 else 13)]
        self.tick, self.current, self.status = 0, 0, "opening"
        self.tell_all("gamestate/guobiao/game_start", "game_info", self.picture)
        self.open_flowers(0)

    def open_flowers(self, index: int) -> None:
        """Seat by seat, one flower at a time."""
        for i in range(index, 4):
            self.current = i
            if any(map(wire.is_flower, self.seats[i].tiles)):
                return self.ask_hand(["buhua", "pass"])
        self.current, self.status = 0, "hand"
        self.ask_hand(self.position.options(0), opening_buhua_complete=True)

    @property
    def position(self) -> Position:
        return Position(self.seats, self.wall, self.current, (self.round - 1) // 4 % 4, self.room["hepai_limit"])

    # --------------------------------------------------------------------------------------------------- asking

    def ask_hand(self, actions: list[str], **members: Any) -> None:
        self.tick += 1
        self.asked, self.answers = {self.current: actions}, {}
        self.ask = {"kind": "hand", **members}
        for i in range(4):
            self.tell_asked(i)
        self.start_clock()

    def ask_claims(self, claims: dict[int, list[str]], status: str, tile: int) -> None:
        self.tick += 1
        self.status, self.asked, self.answers, self.ask = status, claims, {}, {"kind": "claims", "tile": tile}
        for i in claims:
            self.tell_asked(i)
        self.start_clock()

    def start_clock(self) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
        patience = max(self.seats[i].bank for i in self.asked) + self.room["step_timer"]
        self.alarm = self.owner.later(patience * self.owner.second, self.time_is_up, self.round, self.tick)
        for i in self.asked:
            if self.seats[i].robot or self.seats[i].offline:
                self.move_for(i)

    def move_for(self, index: int) -> None:
        """Move for a robot or a player who is offline, unless the player moves before."""
        slow = not self.seats[index].robot and self.ask["kind"] == "hand"
        self.owner.later(OFFLINE_S * self.owner.second if slow else 0.0, self.auto, self.round, self.tick, index)

    def auto(self, hand: int, tick: int, index: int) -> None:
        """Discard the drawn tile. A player who is offline passes at flowers, and the clock makes the first discard."""
        if self.over or (hand, tick) != (self.round, self.tick) or index not in self.asked:
            return
        actions, seat = self.asked[index], self.seats[index]
        if seat.robot and "buhua" in actions:
            self.take(index, "buhua", 0)
        elif "pass" in actions:
            self.take(index, "pass", 0)
        elif seat.spared:
            seat.spared = False
        elif "cut" in actions:
            self.take(index, "cut", seat.tiles[-1])

    def time_is_up(self, hand: int, tick: int) -> None:
        if self.over or (hand, tick) != (self.round, self.tick) or not self.asked:
            return
        for i in list(self.asked):
            if i in self.answers:
                continue
            self.seats[i].bank = 0
            if "pass" in self.asked[i]:
                self.take(i, "pass", 0)
            elif "cut" in self.asked[i]:
                self.asked = {}
                self.cut_tile(i, self.seats[i].tiles[-1], True, None, timeout=True)
            return self.time_is_up(hand, tick)

    # --------------------------------------------------------------------------------------------------- answers

    def heard(self, user: int, frame: dict[str, Any]) -> None:
        """Handle a player's action. An invalid one is ignored, and recorded as a silence."""
        index = self.index_of(user)
        action = "cut" if frame["type"].endswith("/cut_tile") else frame.get("action")
        where = f"{self.id}.{self.round}.{self.tick}"
        if index is None or action is None:
            return self.owner.silence(user, where, str(frame))
        if action == "ready":
            return self.heard_ready(index)
        tile: Any = frame.get("TileId") if action == "cut" else frame.get("targetTile")
        if frame.get("action_tick") != self.tick:
            return self.owner.stale.append((user, str(action)))
        fits = action in self.asked.get(index, ())
        seat = self.seats[index]
        if action == "cut":
            fits = fits and tile in seat.tiles
        elif action == "angang":
            fits = fits and seat.tiles.count(tile) == 4
        elif action == "jiagang":
            fits = fits and f"k{tile}" in seat.combos
        choice = action == "cut" and len(set(seat.tiles)) > 3
        if not fits or index in self.answers or (choice and self.owner.chance(self.owner.traps.ignore, "ignore")):
            return self.owner.silence(user, where, f"{action} {tile}")
        self.take(index, action, tile or 0, frame.get("cutIndex"))
        self.owner.moved(user)

    def take(self, index: int, action: str, tile: int, place: int | None = None) -> None:
        if self.ask["kind"] == "hand":
            self.asked = {}
            return self.hand_action(index, action, tile, place)
        self.answers[index] = (action, tile)
        waiting = [i for i in self.asked if i not in self.answers]
        best = max(self.answers, key=lambda i: PRIORITY.get(self.answers[i][0], 1))
        most = PRIORITY.get(self.answers[best][0], 1)
        if any(PRIORITY.get(action, 1) > most for i in waiting for action in self.asked[i]):
            return
        if most == 0 and waiting:
            return
        self.asked = {}
        self.claim(best, self.answers[best][0])

    # --------------------------------------------------------------------------------------------------- moves

    def hand_action(self, index: int, action: str, tile: int, place: int | None) -> None:
        seat = self.seats[index]
        if self.status == "opening":
            if action == "pass":
                return self.open_flowers(index + 1)
            flower = self._lay_flower(seat)
            seat.tiles.append(self.wall.pop(0))
            news = {"deal_tile": seat.tiles[-1], "buhua_tile": flower, "is_mo_buhua": False}
            self.do(["buhua", "deal_buhua_tile"], index, **news)
            return self.open_flowers(index)
        if action == "cut":
            return self.cut_tile(index, tile, seat.slot and tile == seat.tiles[-1], place)
        if action == "buhua":
            flower = self._lay_flower(seat)
            seat.take(self.wall.pop())
            self.do(["buhua"], index, buhua_tile=flower, is_mo_buhua=True)
            self.owner.later(SETTLE_S * self.owner.second, self._replaced, index)
            return
        if action == "angang":
            seat.tiles = [held for held in seat.tiles if held != tile]
            seat.combos.append(f"G{tile}")
            seat.masks.append([2, tile] * 4)
            self.do(["angang"], index, combination_target=f"G{tile}", combination_mask=seat.masks[-1])
            return self.draw(index, "deal_gang_tile", self.wall.pop())
        if action == "jiagang":
            return self._add_to_pung(index, tile)
        self.end(index, "hu_self", seat.tiles[-1])

    def _add_to_pung(self, index: int, tile: int) -> None:
        seat = self.seats[index]
        seat.tiles.remove(tile)
        seat.slot = False
        place = seat.combos.index(f"k{tile}")
        seat.combos[place] = f"g{tile}"
        mask = seat.masks[place]
        at = mask.index(1)
        seat.masks[place] = [*mask[:at], 3, tile, *mask[at:]]
        self.do(["jiagang"], index, combination_target=f"k{tile}", combination_mask=seat.masks[place])
        self.cut = tile
        claims = self.position.claims(tile, robbing=True)
        if claims:
            return self.ask_claims(claims, "robbing", tile)
        self.draw(index, "deal_gang_tile", self.wall.pop())

    def _lay_flower(self, seat: Seat) -> int:
        flower = max(seat.tiles)
        seat.tiles.remove(flower)
        seat.flowers.append(flower)
        seat.slot = False
        return flower

    def _replaced(self, index: int) -> None:
        if not self.over:
            self._drawn(index, "deal_buhua_tile")

    def draw(self, index: int, kind: str, tile: int) -> None:
        self.seats[index].take(tile)
        self.current, self.status = index, "hand"
        self._drawn(index, kind)

    def _drawn(self, index: int, kind: str) -> None:
        self.do([kind], index, deal_tile=self.seats[index].tiles[-1])
        self.ask_hand(self.position.options(index, kong=kind == "deal_gang_tile"), deal_tile_type=kind)

    def cut_tile(self, index: int, tile: int, drawn: bool, place: int | None, *, timeout: bool = False) -> None:
        seat = self.seats[index]
        if drawn:
            seat.tiles.pop()
        else:
            seat.tiles.remove(tile)
        seat.discards.append(tile)
        seat.slot, self.cut = False, tile
        late = {"is_timeout_action": True} if timeout else {"cut_tile_index": place}
        self.do(["cut"], index, cut_tile=tile, cut_class=drawn, **late)
        claims = self.position.claims(tile)
        if claims:
            return self.ask_claims(claims, "claims", tile)
        self.nobody_claims()

    def nobody_claims(self) -> None:
        if self.status == "robbing":
            return self.draw(self.current, "deal_gang_tile", self.wall.pop())
        if not self.wall:
            return self.end(None, "liuju", 0)
        self.draw((self.current + 1) % 4, "deal_tile", self.wall.pop(0))

    def claim(self, index: int, action: str) -> None:
        tile, seat, source = self.cut, self.seats[index], self.seats[self.current]
        if action == "pass":
            return self.nobody_claims()
        if action.startswith("hu_"):
            return self.end(index, action, tile)
        source.discards.pop()
        source.claimed.append(tile)
        side = (index - self.current) % 4
        if action.startswith("chi"):
            a, b = CHOWS[action]
            pair, middle = [tile + a, tile + b], sorted([tile, tile + a, tile + b])[1]
            target, mask = f"s{middle}", [1, tile, 0, tile + a, 0, tile + b]
        else:
            pair = [tile] * (3 if action == "gang" else 2)
            target = f"{'g' if action == 'gang' else 'k'}{tile}"
            sideways = len(pair) if side == 3 else side - 1
            mask = [x for i in range(len(pair) + 1) for x in (int(i == sideways), tile)]
        for held in pair:
            seat.tiles.remove(held)
        seat.combos.append(target)
        seat.masks.append(mask)
        members = {"combination_mask": mask, "combination_target": target}
        self.do([action], index, **members, cut_from_player=self.current, cut_tile=tile)
        self.current, seat.slot = index, False
        if action == "gang":
            return self.draw(index, "deal_gang_tile", self.wall.pop())
        self.status = "hand"
        self.ask_hand(["cut"])

    # --------------------------------------------------------------------------------------------------- the end

    def end(self, winner: int | None, how: str, tile: int) -> None:
        changes = [0, 0, 0, 0]
        result: dict[str, Any] = {"hu_class": how}
        if winner is not None:
            seat, drawn = self.seats[winner], how == "hu_self"
            kong = self.status == "robbing" or (drawn and self.ask.get("deal_tile_type") == "deal_gang_tile")
            tiles = seat.tiles if drawn else [*seat.tiles, tile]
            fans = self.position.win(winner, tile, tiles, drawn=drawn, kong=kong)
            assert fans is not None
            points, names = fans
            for i in range(4):
                changes[i] = -8 - (points if drawn or i == self.current else 0)
            changes[winner] = 0
            changes[winner] = -sum(changes)
            result |= {"hepai_player_index": winner, "hu_score": points, "hu_fan": names, "hepai_player_hand": tiles}
        for seat, change in zip(self.seats, changes, strict=True):
            seat.score += change
            seat.history.append((self.round, change))
        last = self.round >= 4 * self.room["game_round"]
        self.tick += 1
        by_original = {str(seat.original): change for seat, change in zip(self.seats, changes, strict=True)}
        result |= {"action_tick": self.tick, "score_changes": by_original}
        result["next_status"] = "match_end" if last else "round_end_by_ready"
        self.tell_all("gamestate/guobiao/show_result", "show_result_info", result)
        self.asked, self.status = {}, "over"
        if last:
            return self.finish()
        if winner is None:
            self.owner.later(0.02, self.next_hand, self.round)
            return
        self.status = "ready"
        self.waits = {i for i, seat in enumerate(self.seats) if not seat.robot}
        self.tell_ready()
        self.owner.later(READY_S * self.owner.second, self.next_hand, self.round)
        if not self.waits:
            self.next_hand(self.round)

    def heard_ready(self, index: int) -> None:
        if self.status != "ready" or index not in self.waits:
            return
        self.waits.discard(index)
        self.tell_ready()
        if not self.waits:
            self.next_hand(self.round)

    def next_hand(self, after: int) -> None:
        """Change seats, and deal. At the end of a round the players read their new seats before that."""
        if self.over or self.round != after or self.status not in ("over", "ready"):
            return
        self.round += 1
        self.status, self.current = "over", 0
        switched = SWITCHED.get(self.round)
        if switched is None:
            self.seats = self.seats[1:] + self.seats[:1]
        else:
            self.seats.sort(key=lambda seat: switched[seat.original])
        for seat in self.seats:
            seat.clear(self.room["round_timer"])
        if switched is None:
            return self.deal()
        self.tell_all("switch_seat", "switch_seat_info", {"current_round": self.round})
        self.owner.later(SWITCH_S * self.owner.second, self.deal)

    def finish(self) -> None:
        self.over = True
        data = {
            str(i): {"rank": 1, "score": seat.score, "pt": 0.0, "username": seat.name}
            for i, seat in enumerate(self.seats)
        }
        info = {"master_seed": 4 * 10**76, "commitment": "0", "salt": "0", "player_final_data": data}
        self.tell_all("gamestate/guobiao/game_end", "game_end_info", info)
        self.stop()
        self.owner.finished(self)

    def stop(self) -> None:
        self.over = True
        if self.alarm is not None:
            self.alarm.cancel()

    # --------------------------------------------------------------------------------------------------- presence

    def index_of(self, user: int) -> int | None:
        return next((i for i, seat in enumerate(self.seats) if seat.user == user), None)

    def gone(self, user: int) -> bool:
        """Record that a player disconnected. Returns whether other people are online."""
        index = self.index_of(user)
        if index is None:
            return True
        self.seats[index].offline = self.seats[index].spared = True
        self.tell_tags()
        if all(seat.offline or seat.robot for seat in self.seats):
            self.stop()
            return False
        if index in self.asked and index not in self.answers:
            self.move_for(index)
        return True

    def back(self, user: int) -> None:
        """Send a player who returned the position, and the open request."""
        index = self.index_of(user)
        assert index is not None
        self.seats[index].offline = False
        self.tell_tags()
        self.tell(index, "gamestate/guobiao/game_start", "game_info", self.picture(index))
        if index in self.asked and index not in self.answers and self.status != "opening":
            self.tell_asked(index)

    # --------------------------------------------------------------------------------------------------- frames

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
