"""The position at an open_mahjong table as the lobby shows it: hands, open tiles, whose turn it is.

It can express positions that our rules cannot, such as a discarded flower or a flower that stays in the hand. When
the view cannot follow, a canonical snapshot is made from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from bothost.lobbies.frames import Mismatch
from bothost.lobbies.open_mahjong import protocol as wire
from bothost.messages import Json

Phase = Literal["opening", "turn", "discard", "claims", "robbing", "drawing", "over"]

SEATS = 4
WINDS = ("east", "south", "west", "north")
SIDEWAYS, ADDED = 1, 3
"""Values in ``combination_mask``: the claimed tile; the tile that was added to a pung."""
_MELDS = {"s": "chi", "k": "peng", "g": "gang", "G": "angang"}


class Meld(msgspec.Struct):
    kind: Literal["chi", "peng", "gang", "angang"]
    tile: int
    """For a chow the middle tile; 0 for another seat's concealed kong."""
    claimed: int = 0


class Picture(msgspec.Struct, kw_only=True):
    """The lobby's position. Seats are canonical (seat 0 deals); tiles are the lobby's numbers."""

    seat: int
    dealer: int
    """The lobby's index of seat 0."""
    wind: str
    sizes: list[int]
    own: list[int]
    """Our standing tiles in the lobby's order; the last drawn tile is last."""
    flowers: list[int]
    discards: list[list[int]]
    """Including the claimed ones."""
    melds: list[list[Meld]]
    wall: int
    actor: int
    phase: Phase
    last: int = 0
    """The open discard, or the tile of an added kong."""
    drawn: int = 0
    """The tile that we have drawn; 0 if it is not our turn."""
    slot: bool = False
    """Whether the last of our tiles lies apart because it was just drawn."""
    after_kong: bool = False
    originals: tuple[int, ...] = (0, 1, 2, 3)
    """Each seat's index in the first hand of the match."""

    @classmethod
    def read(cls, info: wire.GameInfo, user: int) -> Picture:
        """Read the lobby's snapshot. Raises Mismatch if we do not sit there or our tiles are missing."""
        players = sorted(info.players_info, key=lambda player: (player.player_index - info.dealer_index) % SEATS)
        if [(p.player_index - info.dealer_index) % SEATS for p in players] != list(range(SEATS)):
            raise Mismatch("two players have one seat")
        seat = next((s for s, player in enumerate(players) if player.user_id == user), None)
        own = players[seat].hand_tiles if seat is not None else None
        if seat is None or own is None or len(own) != players[seat].hand_tiles_count:
            raise Mismatch("our own tiles are missing")
        claimed = _claimed_discards(players)
        picture = cls(
            seat=seat,
            dealer=info.dealer_index,
            wind=WINDS[(info.current_round - 1) // SEATS % SEATS],
            sizes=[player.hand_tiles_count for player in players],
            own=list(own),
            flowers=[len(player.huapai_list) for player in players],
            discards=[[*tiles, *player.discard_tiles] for tiles, player in zip(claimed, players, strict=True)],
            melds=[_melds(player) for player in players],
            wall=info.tile_count,
            actor=(info.current_player_index - info.dealer_index) % SEATS,
            phase="opening",
            slot=players[seat].has_draw_slot,
            originals=tuple(
                p.player_index if p.original_player_index is None else p.original_player_index for p in players
            ),
        )
        picture._find_phase(players[picture.actor])
        return picture

    def seat_of(self, index: int) -> int:
        """The canonical seat of a lobby's index."""
        return (index - self.dealer) % SEATS

    def _find_phase(self, actor: wire.PlayerInfo) -> None:
        """Infer the phase, which the lobby does not name."""
        if not any(self.discards) and not any(self.melds) and self.sizes == [14, 13, 13, 13]:
            return
        if self.sizes[self.actor] % 3 == 2:
            first = not self.discards[self.actor] and not self.melds[self.actor]
            self.phase = "turn" if actor.has_draw_slot or first else "discard"
            if self.phase == "turn" and self.actor == self.seat:
                self.drawn = self.own[-1]
        elif actor.discard_tiles:
            self.phase, self.last = "claims", actor.discard_tiles[-1]
        else:
            self.phase = "drawing"

    @property
    def untouched(self) -> bool:
        """Whether nothing has happened since the deal."""
        return self.phase == "opening" and not any(self.flowers)

    # --------------------------------------------------------------------------------------------------- what happens

    def draw(self, seat: int, tile: int | None, *, kong: bool = False) -> None:
        self.wall -= 1
        if self.wall < 0:
            raise Mismatch("a tile is drawn from an empty wall")
        self.sizes[seat] += 1
        if seat == self.seat:
            if tile is None:
                raise Mismatch("our own draw has no tile")
            self.own.append(tile)
            self.slot = True
        if self.phase != "opening":
            self.drawn = tile if seat == self.seat and tile is not None else 0
            self.actor, self.phase, self.after_kong = seat, "turn", kong

    def lay(self, seat: int, flower: int) -> None:
        self._take(seat, (flower,))
        self.flowers[seat] += 1
        if self.phase != "opening":
            self.phase, self.actor, self.drawn = "drawing", seat, 0

    def cut(self, seat: int, tile: int, *, drawn: bool) -> None:
        self._take(seat, (tile,), last=drawn)
        self.discards[seat].append(tile)
        self.actor, self.phase, self.last, self.drawn = seat, "claims", tile, 0

    def claim(self, seat: int, kind: Literal["chi", "peng", "gang"], middle: int) -> None:
        tiles = [middle - 1, middle, middle + 1] if kind == "chi" else [middle] * (4 if kind == "gang" else 3)
        suited = all(tile // 10 == self.last // 10 and tile % 10 for tile in tiles) and (kind != "chi" or middle < 40)
        if self.last not in tiles or not suited or wire.is_flower(self.last):
            raise Mismatch("a claim does not fit the discard")
        tiles.remove(self.last)
        self._take(seat, tuple(tiles))
        self.melds[seat].append(Meld(kind, middle, self.last))
        self.actor, self.phase = seat, "drawing" if kind == "gang" else "discard"

    def conceal(self, seat: int, tile: int) -> None:
        """Fold a concealed kong. ``tile`` is 0 for another seat's."""
        self._take(seat, (tile,) * 4)
        self.melds[seat].append(Meld("angang", tile))
        self.actor, self.phase, self.drawn = seat, "drawing", 0

    def add(self, seat: int, tile: int) -> None:
        """Fold a tile that is added to a pung."""
        pung = next((meld for meld in self.melds[seat] if meld.kind == "peng" and meld.tile == tile), None)
        if pung is None:
            raise Mismatch("a tile is added to a pung that does not exist")
        self._take(seat, (tile,))
        pung.kind = "gang"
        self.actor, self.phase, self.last, self.drawn = seat, "robbing", tile, 0

    def _take(self, seat: int, tiles: tuple[int, ...], *, last: bool = False) -> None:
        self.sizes[seat] -= len(tiles)
        if self.sizes[seat] < 0:
            raise Mismatch("a seat plays more tiles than it has")
        if seat != self.seat:
            return
        self.slot = False
        for tile in tiles:
            if tile not in self.own:
                raise Mismatch("the lobby reports that we played a tile that is not in our hand")
            place = len(self.own) - 1 - self.own[::-1].index(tile) if last else self.own.index(tile)
            del self.own[place]

    # ----------------------------------------------------------------------------------------------------- snapshots

    def agrees(self, other: Picture) -> bool:
        """Whether two pictures of the same moment show the same position."""
        return _facts(self) == _facts(other)

    def snapshot(self, seq: int) -> Json | None:
        """The position for ``Game.view_from_snapshot``; None while our rules cannot express it."""
        if self.phase in ("opening", "over") or any(map(wire.is_flower, self.own)):
            return None
        asks = self.phase in ("claims", "robbing")
        if asks and wire.is_flower(self.last):
            return None  # no seat can claim it; after the next draw the rules fit again
        return {
            "seat": self.seat,
            "seq": seq,
            "prevalent_wind": self.wind,
            "phase": self.phase,
            "actor": self.actor,
            "hand": [wire.word(tile) for tile in self.own],
            "drawn": wire.word(self.drawn) if self.drawn else None,
            "last_tile": wire.word(self.last) if asks else None,
            "after_kong": self.after_kong,
            "hand_sizes": self.sizes,
            "flowers": self.flowers,
            "wall_left": [self.wall, 0, 0, 0],
            "melds": [[_meld_json(meld) for meld in melds] for melds in self.melds],
            "discards": [[wire.word(tile) for tile in tiles if not wire.is_flower(tile)] for tiles in self.discards],
        }


def _facts(picture: Picture) -> tuple[Any, ...]:
    melds = [sorted((meld.kind, meld.tile) for meld in melds) for melds in picture.melds]
    discards = [sorted(tiles) for tiles in picture.discards]
    hands = (picture.sizes, sorted(picture.own), picture.flowers, picture.wall)
    return picture.seat, picture.dealer, picture.wind, hands, melds, discards


def _melds(player: wire.PlayerInfo) -> list[Meld]:
    melds = []
    for place, name in enumerate(player.combination_tiles):
        kind, digits = _MELDS.get(name[:1]), name[1:]
        if kind is None or not digits.isdecimal():
            raise Mismatch(f"{name!r} is not a meld")
        tile = int(digits)
        if tile:
            wire.word(tile)
        mask = player.combination_mask[place] if place < len(player.combination_mask) else ()
        claimed = 0
        if kind != "angang":
            sideways = [mask[i + 1] for i in range(0, len(mask) - 1, 2) if mask[i] == 1]
            claimed = sideways[0] if kind == "chi" and sideways and abs(sideways[0] - tile) <= 1 else tile
        melds.append(Meld(kind, tile, claimed))  # type: ignore[arg-type]
    return melds


def _claimed_discards(players: Sequence[wire.PlayerInfo]) -> list[list[int]]:
    """Discards of this hand that others claimed, by the seat that discarded them.

    The melds show them: the claimed tile lies sideways, on the side of the seat that it came from.
    """
    claimed: list[list[int]] = [[] for _ in players]
    for seat, player in enumerate(players):
        for name, mask in zip(player.combination_tiles, player.combination_mask, strict=False):
            held = [pair for pair in zip(mask[::2], mask[1::2], strict=False) if pair[0] != ADDED]
            place = next((i for i, (how, _) in enumerate(held) if how == SIDEWAYS), None)
            if place is None:
                continue
            left, right = place == 0, place == len(held) - 1
            source = 3 if left or name.startswith("s") else 1 if right else 2
            claimed[(seat + source) % SEATS].append(held[place][1])
    return claimed


def _meld_json(meld: Meld) -> Json:
    return {
        "kind": meld.kind,
        "tile": wire.word(meld.tile) if meld.tile else None,
        "claimed": wire.word(meld.claimed) if meld.claimed else None,
    }
