"""Seats and tiles of the fake open_mahjong lobby."""

from __future__ import annotations

from typing import Any

import numpy as np

from bothost.lobbies.open_mahjong import protocol as wire
from bothost.rules import mahjong

ALL_TILES = [10 * s + r for s in (1, 2, 3) for r in range(1, 10)] * 4 + list(range(41, 48)) * 4 + list(range(51, 59))
_INDEX = {word: i for i, word in enumerate(mahjong.TILES)}
_KINDS = {"s": 1, "k": 2, "g": 3, "G": 4}


def kind_of(tile: int) -> int:
    """Index of a tile among the 34 canonical kinds."""
    return _INDEX[wire.word(tile)]


class Seat:
    """A player in a match."""

    def __init__(self, user: int, name: str, bank: int) -> None:
        self.user = user
        self.name = name
        self.score = 0
        self.history: list[tuple[int, int]] = []
        """(hand, score) of the hands that are over."""
        self.offline = False
        self.spared = False
        """Whether the next discard is left to the clock, because the player has only just gone offline."""
        self.original = 0
        self.claimed: list[int] = []
        """Discards that others claimed. As in the real lobby, it is not cleared between the hands of a match."""
        self.clear(bank)

    @property
    def robot(self) -> bool:
        return self.user < wire.ROBOTS_BELOW

    def clear(self, bank: int) -> None:
        """Prepare for a hand."""
        self.bank = bank
        self.tiles: list[int] = []
        self.discards: list[int] = []
        self.combos: list[str] = []
        self.masks: list[list[int]] = []
        self.flowers: list[int] = []
        self.slot = False
        """Whether the last tile was just drawn."""

    def take(self, tile: int) -> None:
        """Draw a tile."""
        self.tiles.append(tile)
        self.slot = True

    def lay_flower(self) -> int:
        """Lay down the last flower of the hand. Returns it."""
        flower = max(self.tiles)
        self.tiles.remove(flower)
        self.flowers.append(flower)
        self.slot = False
        return flower

    def picture(self, index: int, *, shown: bool) -> dict[str, Any]:
        """The seat in a frame. ``shown``: with its hidden tiles, for the seat itself."""
        info = {
            "user_id": self.user,
            "username": self.name,
            "hand_tiles_count": len(self.tiles),
            "discard_tiles": list(self.discards),
            "discard_origin_tiles": list(self.claimed),
            "combination_tiles": [c if shown or c[0] != "G" else "G0" for c in self.combos],
            "combination_mask": [m if shown or m[0] != 2 else [2, 0] * 4 for m in self.masks],
            "huapai_list": list(self.flowers),
            "remaining_time": self.bank,
            "player_index": index,
            "original_player_index": self.original,
            "score": self.score,
            "score_history": [f"{score:+03d}" for _, score in self.history],
            "round_number_history": [hand for hand, _ in self.history],
            "has_draw_slot": self.slot,
            "tag_list": ["offline"] if self.offline else [],
        }
        return info | ({"hand_tiles": list(self.tiles)} if shown else {})

    def value(self, tiles: list[int], wins: list[Any]) -> tuple[int, list[int]]:
        """Points and count of each fan of these tiles with our melds; 0 points if the hand is not complete."""
        standing = np.zeros((1, 34), np.uint8)
        for held in tiles:
            standing[0, kind_of(held)] += 1
        if standing.max() > 4:
            return 0, []
        melds = np.zeros((1, 4, 2), np.uint8)
        for place, combo in enumerate(self.combos):
            melds[0, place] = (_KINDS[combo[0]], kind_of(int(combo[1:])))
        points, fans = mahjong.fan_many(standing, melds, np.array([wins], np.uint8))
        return int(points[0]), fans[0].tolist()
