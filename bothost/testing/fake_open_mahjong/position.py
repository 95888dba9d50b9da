"""The legal actions at the fake open_mahjong lobby, by its rules."""

from __future__ import annotations

from dataclasses import dataclass

from bothost.lobbies.open_mahjong import protocol as wire
from bothost.rules import mahjong
from bothost.testing.fake_open_mahjong.seat import Seat, kind_of

CHOWS = {"chi_left": (-2, -1), "chi_mid": (-1, 1), "chi_right": (1, 2)}
"""Action → offsets from the discard to the two tiles of the hand."""


@dataclass(frozen=True)
class Position:
    """A moment of a hand."""

    seats: list[Seat]
    wall: list[int]
    current: int
    """Whose turn it is."""
    round_wind: int
    """0: east."""
    least_points: int
    """Minimum points of a win."""

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
        wins = [kind_of(tile), drawn, fourth, kong, not self.wall, index, self.round_wind, flowers]
        points, fans = seat.value(tiles, wins)
        if not points or points < self.least_points:
            return None
        names = [f"{fan.chinese}*{n}" for fan, n in zip(mahjong.FANS, fans, strict=True) if n]
        return points + flowers, names
