"""A match of the fake open_mahjong lobby: deals, flowers, claims, and players who are offline.

Written from the frames of the real lobby (``docs/reference/adapters/open_mahjong.md``); the scoring is our own.
"""

from __future__ import annotations

from typing import Any

from bothost.lobbies.open_mahjong import protocol as wire
from bothost.testing.fake_open_mahjong.board import Board, Lobby
from bothost.testing.fake_open_mahjong.position import CHOWS
from bothost.testing.fake_open_mahjong.questions import Questions
from bothost.testing.fake_open_mahjong.seat import ALL_TILES, Seat

READY_S = 15.0
"""After a win the lobby waits this long for players who do not say ready."""
SETTLE_S = 0.3
"""A flower's replacement is drawn at once, and reported after this time."""
SWITCH_S = 4.0
SWITCHED = {5: (1, 0, 3, 2), 9: (3, 2, 0, 1), 13: (2, 3, 1, 0)}
"""Hands before which the players switch seats: the new index by the one in the first hand."""


class Match:
    """A match of four hands for each round of the room's setting: its moves, and the ends of its hands."""

    def __init__(self, owner: Lobby, match_id: str, room: dict[str, Any], seats: list[Seat]) -> None:
        self.owner = owner
        self.board = Board(owner, match_id, room, seats)
        self.questions = Questions(self.board, self)

    def heard(self, user: int, frame: dict[str, Any]) -> None:
        """Handle a player's action. An invalid one is ignored, and recorded as a silence."""
        index = self.board.index_of(user)
        action = "cut" if frame["type"].endswith("/cut_tile") else frame.get("action")
        if index is None or action is None:
            return self.owner.silence(user, self.board.place, str(frame))
        if action == "ready":
            return self.heard_ready(index)
        self.questions.heard(index, action, frame)

    def deal(self) -> None:
        board = self.board
        if board.over:
            return
        board.wall = list(ALL_TILES)
        self.owner.rng.shuffle(board.wall)
        for i, seat in enumerate(board.seats):
            seat.tiles = [board.wall.pop(0) for _ in range(14 if i == 0 else 13)]
        board.tick, board.current, board.status = 0, 0, "opening"
        board.tell_all("gamestate/guobiao/game_start", "game_info", board.picture)
        self.open_flowers(0)

    def open_flowers(self, index: int) -> None:
        """Seat by seat, one flower at a time."""
        board = self.board
        for i in range(index, 4):
            board.current = i
            if any(map(wire.is_flower, board.seats[i].tiles)):
                return self.questions.ask_hand(["buhua", "pass"])
        board.current, board.status = 0, "hand"
        self.questions.ask_hand(board.position.options(0), opening_buhua_complete=True)

    def hand_action(self, index: int, action: str, tile: int, place: int | None) -> None:
        board = self.board
        seat = board.seats[index]
        if board.status == "opening":
            if action == "pass":
                return self.open_flowers(index + 1)
            flower = seat.lay_flower()
            seat.tiles.append(board.wall.pop(0))
            news = {"deal_tile": seat.tiles[-1], "buhua_tile": flower, "is_mo_buhua": False}
            board.do(["buhua", "deal_buhua_tile"], index, **news)
            return self.open_flowers(index)
        if action == "cut":
            return self.cut_tile(index, tile, seat.slot and tile == seat.tiles[-1], place)
        if action == "buhua":
            flower = seat.lay_flower()
            seat.take(board.wall.pop())
            board.do(["buhua"], index, buhua_tile=flower, is_mo_buhua=True)
            self.owner.later(SETTLE_S * self.owner.second, self._drawn, index, "deal_buhua_tile")
            return
        if action == "angang":
            seat.tiles = [held for held in seat.tiles if held != tile]
            seat.combos.append(f"G{tile}")
            seat.masks.append([2, tile] * 4)
            board.do(["angang"], index, combination_target=f"G{tile}", combination_mask=seat.masks[-1])
            return self.draw(index, "deal_gang_tile", board.wall.pop())
        if action == "jiagang":
            return self._add_to_pung(index, tile)
        self.end(index, "hu_self", seat.tiles[-1])

    def _add_to_pung(self, index: int, tile: int) -> None:
        board = self.board
        seat = board.seats[index]
        seat.tiles.remove(tile)
        seat.slot = False
        place = seat.combos.index(f"k{tile}")
        seat.combos[place] = f"g{tile}"
        mask = seat.masks[place]
        at = mask.index(1)
        seat.masks[place] = [*mask[:at], 3, tile, *mask[at:]]
        board.do(["jiagang"], index, combination_target=f"k{tile}", combination_mask=seat.masks[place])
        board.cut = tile
        claims = board.position.claims(tile, robbing=True)
        if claims:
            return self.questions.ask_claims(claims, "robbing", tile)
        self.draw(index, "deal_gang_tile", board.wall.pop())

    def draw(self, index: int, kind: str, tile: int) -> None:
        board = self.board
        board.seats[index].take(tile)
        board.current, board.status = index, "hand"
        self._drawn(index, kind)

    def _drawn(self, index: int, kind: str) -> None:
        board = self.board
        if board.over:
            return
        board.do([kind], index, deal_tile=board.seats[index].tiles[-1])
        self.questions.ask_hand(board.position.options(index, kong=kind == "deal_gang_tile"), deal_tile_type=kind)

    def cut_tile(self, index: int, tile: int, drawn: bool, place: int | None, *, timeout: bool = False) -> None:
        board = self.board
        seat = board.seats[index]
        if drawn:
            seat.tiles.pop()
        else:
            seat.tiles.remove(tile)
        seat.discards.append(tile)
        seat.slot, board.cut = False, tile
        late = {"is_timeout_action": True} if timeout else {"cut_tile_index": place}
        board.do(["cut"], index, cut_tile=tile, cut_class=drawn, **late)
        claims = board.position.claims(tile)
        if claims:
            return self.questions.ask_claims(claims, "claims", tile)
        self.nobody_claims()

    def nobody_claims(self) -> None:
        board = self.board
        if board.status == "robbing":
            return self.draw(board.current, "deal_gang_tile", board.wall.pop())
        if not board.wall:
            return self.end(None, "liuju", 0)
        self.draw((board.current + 1) % 4, "deal_tile", board.wall.pop(0))

    def claim(self, index: int, action: str) -> None:
        board = self.board
        tile, seat, source = board.cut, board.seats[index], board.seats[board.current]
        if action == "pass":
            return self.nobody_claims()
        if action.startswith("hu_"):
            return self.end(index, action, tile)
        source.discards.pop()
        source.claimed.append(tile)
        side = (index - board.current) % 4
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
        board.do([action], index, **members, cut_from_player=board.current, cut_tile=tile)
        board.current, seat.slot = index, False
        if action == "gang":
            return self.draw(index, "deal_gang_tile", board.wall.pop())
        board.status = "hand"
        self.questions.ask_hand(["cut"])

    def end(self, winner: int | None, how: str, tile: int) -> None:
        board = self.board
        changes = [0, 0, 0, 0]
        result: dict[str, Any] = {"hu_class": how}
        if winner is not None:
            seat, drawn = board.seats[winner], how == "hu_self"
            kong = board.status == "robbing" or (drawn and board.ask.get("deal_tile_type") == "deal_gang_tile")
            tiles = seat.tiles if drawn else [*seat.tiles, tile]
            fans = board.position.win(winner, tile, tiles, drawn=drawn, kong=kong)
            assert fans is not None
            points, names = fans
            for i in range(4):
                changes[i] = -8 - (points if drawn or i == board.current else 0)
            changes[winner] = 0
            changes[winner] = -sum(changes)
            result |= {"hepai_player_index": winner, "hu_score": points, "hu_fan": names, "hepai_player_hand": tiles}
        for seat, change in zip(board.seats, changes, strict=True):
            seat.score += change
            seat.history.append((board.round, change))
        last = board.round >= 4 * board.room["game_round"]
        board.tick += 1
        by_original = {str(seat.original): change for seat, change in zip(board.seats, changes, strict=True)}
        result |= {"action_tick": board.tick, "score_changes": by_original}
        result["next_status"] = "match_end" if last else "round_end_by_ready"
        board.tell_all("gamestate/guobiao/show_result", "show_result_info", result)
        board.asked, board.status = {}, "over"
        if last:
            return self.finish()
        if winner is None:
            self.owner.later(0.02, self.next_hand, board.round)
            return
        board.status = "ready"
        board.waits = {i for i, seat in enumerate(board.seats) if not seat.robot}
        board.tell_ready()
        self.owner.later(READY_S * self.owner.second, self.next_hand, board.round)
        if not board.waits:
            self.next_hand(board.round)

    def heard_ready(self, index: int) -> None:
        board = self.board
        if board.status != "ready" or index not in board.waits:
            return
        board.waits.discard(index)
        board.tell_ready()
        if not board.waits:
            self.next_hand(board.round)

    def next_hand(self, after: int) -> None:
        """Change seats, and deal. At the end of a round the players read their new seats before that."""
        board = self.board
        if board.over or board.round != after or board.status not in ("over", "ready"):
            return
        board.round += 1
        board.status, board.current = "over", 0
        switched = SWITCHED.get(board.round)
        if switched is None:
            board.seats = board.seats[1:] + board.seats[:1]
        else:
            board.seats.sort(key=lambda seat: switched[seat.original])
        for seat in board.seats:
            seat.clear(board.room["round_timer"])
        if switched is None:
            return self.deal()
        board.tell_all("switch_seat", "switch_seat_info", {"current_round": board.round})
        self.owner.later(SWITCH_S * self.owner.second, self.deal)

    def finish(self) -> None:
        board = self.board
        board.over = True
        data = {
            str(i): {"rank": 1, "score": seat.score, "pt": 0.0, "username": seat.name}
            for i, seat in enumerate(board.seats)
        }
        info = {"master_seed": 4 * 10**76, "commitment": "0", "salt": "0", "player_final_data": data}
        board.tell_all("gamestate/guobiao/game_end", "game_end_info", info)
        self.stop()
        self.owner.finished(self.board)

    def stop(self) -> None:
        self.board.over = True
        self.questions.stop()

    def gone(self, user: int) -> bool:
        """Record that a player disconnected. Returns whether other people are online."""
        board = self.board
        index = board.index_of(user)
        if index is None:
            return True
        board.seats[index].offline = board.seats[index].spared = True
        board.tell_tags()
        if all(seat.offline or seat.robot for seat in board.seats):
            self.stop()
            return False
        if index in board.asked and index not in board.answers:
            self.questions.move_for(index)
        return True

    def back(self, user: int) -> None:
        """Send a player who returned the position, and the open request."""
        board = self.board
        index = board.index_of(user)
        assert index is not None
        board.seats[index].offline = False
        board.tell_tags()
        board.tell(index, "gamestate/guobiao/game_start", "game_info", board.picture(index))
        if index in board.asked and index not in board.answers and board.status != "opening":
            board.tell_asked(index)
