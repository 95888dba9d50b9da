"""Rebuild the wall of a recorded mahjong hand from the tiles that each seat was dealt and drew.

Each seat has its own share of the wall, and draws from its end. Tiles that no one drew are unknown; they are placed in
sorted order, which does not change the hand.
"""

from __future__ import annotations

from collections import Counter

from bothost.imports.record import BadRecord, Json
from bothost.rules import mahjong

BOTZONE: Json = {"preset": "botzone"}
FLOWERS = tuple(f"H{number}" for number in range(1, 9))
SEATS = 4


class Tiles:
    """The tiles taken from each seat's share, in order."""

    def __init__(self) -> None:
        self.taken: list[list[str]] = [[] for _ in range(SEATS)]
        self.flowers = False

    def dealt(self, seat: int, counts: list[int], tiles: list[str], flowers: list[str]) -> None:
        """Add a deal. Its flowers are placed as if all were among the first 13 tiles."""
        if len(counts) != SEATS or len(tiles) != 13 or len(flowers) != sum(counts):
            raise BadRecord("a deal must have 13 tiles and the counted number of flowers")
        first = sum(counts[:seat])
        own = flowers[first : first + counts[seat]]
        self.flowers = self.flowers or bool(flowers)
        kept = 13 - len(own)
        self.taken[seat] = [*tiles[:kept], *own, *tiles[kept:]]

    def drew(self, seat: int, tile: str) -> None:
        self.taken[seat].append(tile)

    def laid(self, seat: int, flower: str) -> None:
        """Add a flower that was laid down, unless its draw was added before."""
        self.flowers = True
        if self.taken[seat][-1:] != [flower]:
            self.taken[seat].append(flower)


def wall_of(tiles: Tiles) -> list[str]:
    """Return the wall of the deal. Raises BadRecord if more tiles were taken than exist."""
    left = Counter({kind: 4 for kind in mahjong.TILES})
    if tiles.flowers:
        left.update(FLOWERS)
    share = left.total() // SEATS
    for taken in tiles.taken:
        if not taken:
            raise BadRecord("the record lacks the deal of a seat")
        if len(taken) > share:
            raise BadRecord(f"a seat took {len(taken)} tiles of the {share} of its share")
        left.subtract(taken)
    if wrong := [tile for tile, count in left.items() if count < 0]:
        raise BadRecord(f"there are more {wrong[0]} than the set has")
    rest = iter(sorted(left.elements()))
    wall: list[str] = []
    for taken in tiles.taken:
        wall += [next(rest) for _ in range(share - len(taken))] + taken[::-1]
    return wall
