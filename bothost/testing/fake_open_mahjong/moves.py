"""The legal actions of the players in a match of the fake open_mahjong lobby, as it performs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bothost.testing.fake_open_mahjong.seat import Seat

if TYPE_CHECKING:
    from bothost.testing.fake_open_mahjong.game import Match

SETTLE_S = 0.3
"""A flower's replacement is drawn at once, and reported after this time."""


class Moves:
    """Performs the players' legal actions."""

    def __init__(self, match: Match) -> None:
        self._match = match

    def hand_action(self, index: int, action: str, tile: int, place: int | None) -> None:
        seat = self._match.seats[index]
        if self._match.status == "opening":
            if action == "pass":
                return self._match.open_flowers(index + 1)
            flower = self._lay_flower(seat)
            seat.tiles.append(self._match.wall.pop(0))
            news = {"deal_tile": seat.tiles[-1], "buhua_tile": flower, "is_mo_buhua": False}
            self._match.do(["buhua", "deal_buhua_tile"], index, **news)
            return self._match.open_flowers(index)
        if action == "cut":
            return self.cut_tile(index, tile, seat.slot and tile == seat.tiles[-1], place)
        if action == "buhua":
            flower = self._lay_flower(seat)
            seat.take(self._match.wall.pop())
            self._match.do(["buhua"], index, buhua_tile=flower, is_mo_buhua=True)
            self._match.owner.later(SETTLE_S * self._match.owner.second, self._replaced, index)
            return
        if action == "angang":
            seat.tiles = [held for held in seat.tiles if held != tile]
            seat.combos.append(f"G{tile}")
            seat.masks.append([2, tile] * 4)
            self._match.do(["angang"], index, combination_target=f"G{tile}", combination_mask=seat.masks[-1])
            return self.draw(index, "deal_gang_tile", self._match.wall.pop())
        if action == "jiagang":
            return self._add_to_pung(index, tile)
        self._match.end(index, "hu_self", seat.tiles[-1])

    def _add_to_pung(self, index: int, tile: int) -> None:
        seat = self._match.seats[index]
        seat.tiles.remove(tile)
        seat.slot = False
        place = seat.combos.index(f"k{tile}")
        seat.combos[place] = f"g{tile}"
        mask = seat.masks[place]
        at = mask.index(1)
        seat.masks[place] = [*mask[:at], 3, tile, *mask[at:]]
        self._match.do(["jiagang"], index, combination_target=f"k{tile}", combination_mask=seat.masks[place])
        self._match.cut = tile
        claims = self._match.position.claims(tile, robbing=True)
        if claims:
            return self._match.ask_claims(claims, "robbing", tile)
        self.draw(index, "deal_gang_tile", self._match.wall.pop())

    def _lay_flower(self, seat: Seat) -> int:
        flower = max(seat.tiles)
        seat.tiles.remove(flower)
        seat.flowers.append(flower)
        seat.slot = False
        return flower

    def _replaced(self, index: int) -> None:
        if not self._match.over:
            self._drawn(index, "deal_buhua_tile")

    def draw(self, index: int, kind: str, tile: int) -> None:
        self._match.seats[index].take(tile)
        self._match.current, self._match.status = index, "hand"
        self._drawn(index, kind)

    def _drawn(self, index: int, kind: str) -> None:
        self._match.do([kind], index, deal_tile=self._match.seats[index].tiles[-1])
        self._match.ask_hand(self._match.position.options(index, kong=kind == "deal_gang_tile"), deal_tile_type=kind)

    def cut_tile(self, index: int, tile: int, drawn: bool, place: int | None, *, timeout: bool = False) -> None:
        seat = self._match.seats[index]
        if drawn:
            seat.tiles.pop()
        else:
            seat.tiles.remove(tile)
        seat.discards.append(tile)
        seat.slot, self._match.cut = False, tile
        late = {"is_timeout_action": True} if timeout else {"cut_tile_index": place}
        self._match.do(["cut"], index, cut_tile=tile, cut_class=drawn, **late)
        claims = self._match.position.claims(tile)
        if claims:
            return self._match.ask_claims(claims, "claims", tile)
        self.nobody_claims()

    def nobody_claims(self) -> None:
        if self._match.status == "robbing":
            return self.draw(self._match.current, "deal_gang_tile", self._match.wall.pop())
        if not self._match.wall:
            return self._match.end(None, "liuju", 0)
        self.draw((self._match.current + 1) % 4, "deal_tile", self._match.wall.pop(0))

    def claim(self, index: int, action: str) -> None:
        tile, seat, source = self._match.cut, self._match.seats[index], self._match.seats[self._match.current]
        if action == "pass":
            return self.nobody_claims()
        if action.startswith("hu_"):
            return self._match.end(index, action, tile)
        source.discards.pop()
        source.claimed.append(tile)
        side = (index - self._match.current) % 4
        if action.startswith("chi"):
            a, b = {"chi_left": (-2, -1), "chi_mid": (-1, 1), "chi_right": (1, 2)}[action]
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
        self._match.do([action], index, **members, cut_from_player=self._match.current, cut_tile=tile)
        self._match.current, seat.slot = index, False
        if action == "gang":
            return self.draw(index, "deal_gang_tile", self._match.wall.pop())
        self._match.status = "hand"
        self._match.ask_hand(["cut"])
