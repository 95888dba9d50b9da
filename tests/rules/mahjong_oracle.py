"""A slow, obvious Chinese Official mahjong: lists of words, and PyMahjongGB for the fans.

It is written from the rules alone and shares nothing with the native core.
"""

from __future__ import annotations

from typing import Any

from MahjongGB import MahjongFanCalculator

TILES = [f"{s}{r}" for s in "WTB" for r in range(1, 10)] + ["F1", "F2", "F3", "F4", "J1", "J2", "J3"]
WINDS = ["east", "south", "west", "north"]
MOVES = ["pass", "hu", "play", "chi", "peng", "gang", "angang", "bugang"]


class Oracle:
    """One hand. ``asked`` maps each seat that may act to its legal words."""

    def __init__(self, rules: dict[str, Any], deal: dict[str, Any]) -> None:
        self.rules = rules
        self.wind = WINDS.index(deal["prevalent_wind"])
        wall = list(deal["wall"])
        share = len(wall) // 4
        self.walls = (
            [wall[i * share : (i + 1) * share] for i in range(4)] if rules["wall"] == "per-seat" else [wall] * 4
        )
        self.hands: list[list[str]] = [[] for _ in range(4)]
        self.melds: list[list[tuple[str, str]]] = [[] for _ in range(4)]
        self.flowers: list[list[str]] = [[] for _ in range(4)]
        self.open: list[str] = []
        self.scores: list[int] | None = None
        self.fans: dict[str, int] = {}
        self.phase, self.actor, self.last, self.drawn, self.kong = "turn", 0, "", "", False
        self.answers: dict[int, str] = {}
        self.asked: dict[int, list[str]] = {}
        for hand, seat_wall in zip(self.hands, self.walls, strict=True):
            hand += [seat_wall.pop() for _ in range(13)]
        for seat in range(4):
            while out := [t for t in self.hands[seat] if t[0] == "H"]:
                for flower in out:
                    self.hands[seat].remove(flower)
                    self.flowers[seat].append(flower)
                self.hands[seat] += [self.walls[seat].pop() for _ in out]
        self.draw(0, kong=False)

    def draw(self, seat: int, kong: bool) -> None:
        while True:
            if not self.walls[seat]:
                self.phase, self.scores, self.asked = "over", [0] * 4, {}
                return
            tile = self.walls[seat].pop()
            if tile[0] != "H":
                break
            self.flowers[seat].append(tile)
            kong = False
        self.hands[seat].append(tile)
        self.phase, self.actor, self.drawn, self.kong = "turn", seat, tile, kong
        hand = self.hands[seat]
        words = [f"play:{t}" for t in set(hand)] + ["hu"] * self.may_win(seat)
        if not self.last_round() and self.walls[seat]:
            words += [f"angang:{t}" for t in set(hand) if hand.count(t) == 4]
            words += [f"bugang:{t}" for kind, t in self.melds[seat] if kind == "peng" and t in hand]
        self.ask({seat: words})

    def ask(self, asked: dict[int, list[str]]) -> None:
        self.asked = {seat: sorted(words, key=order) for seat, words in asked.items()}

    def last_round(self) -> bool:
        return not self.walls[(self.actor + 1) % 4]

    def win(self, seat: int) -> dict[tuple[str, int], int] | None:
        """Fans (name, points) of the seat's hand now, None where it is not complete."""
        own = self.phase == "turn"
        rest = list(self.hands[seat])
        if own:
            rest.remove(self.drawn)
        tile = self.drawn if own else self.last
        names = {"chi": ("CHI", 1), "peng": ("PENG", 1), "gang": ("GANG", 1), "angang": ("GANG", 0)}
        packs = tuple((names[kind][0], t, names[kind][1]) for kind, t in self.melds[seat])
        if len(rest) + 3 * len(packs) != 13 or rest.count(tile) == 4:
            return None
        fourth = self.open.count(tile) - (self.phase == "claims") == 3
        about_kong = self.kong if own else self.phase == "robbing"
        try:
            fans = MahjongFanCalculator(
                packs,
                tuple(rest),
                tile,
                len(self.flowers[seat]),
                own,
                fourth,
                about_kong,
                self.last_round(),
                seat,
                self.wind,
                True,
            )
        except TypeError:
            return None
        return {(name, points): times for points, times, name, _ in fans}

    def may_win(self, seat: int) -> bool:
        fans = self.win(seat)
        if fans is None:
            return False
        return self.rules["false_win"] or self.points(fans, flowers=False) >= self.rules["minimum"]

    @staticmethod
    def points(fans: dict[tuple[str, int], int], flowers: bool) -> int:
        return sum(points * times for (name, points), times in fans.items() if flowers or name != "花牌")

    def claims(self, seat: int) -> list[str]:
        words = ["hu"] if self.may_win(seat) else []
        hand, tile = self.hands[seat], self.last
        if self.phase == "claims" and not self.last_round():
            if hand.count(tile) >= 2:
                words.append(f"peng:{tile}")
            if hand.count(tile) == 3 and self.walls[seat]:
                words.append(f"gang:{tile}")
            if seat == (self.actor + 1) % 4 and tile[0] in "WTB":
                for low in range(int(tile[1]) - 2, int(tile[1]) + 1):
                    chow = [f"{tile[0]}{rank}" for rank in range(low, low + 3)]
                    if all(t in TILES and (t == tile or t in hand) for t in chow):
                        words.append(f"chi:{chow[1]}")
        return ["pass", *words] if words else []

    def apply(self, seat: int, word: str) -> None:
        assert word in self.asked[seat]
        if self.phase in ("claims", "robbing"):
            self.answers[seat] = word
            del self.asked[seat]
            if not self.asked:
                self.resolve()
            return
        move, _, tile = word.partition(":")
        if move == "hu":
            self.finish(seat)
            return
        for _ in range(4 if move == "angang" else 1):
            self.hands[seat].remove(tile)
        if move == "angang":
            self.melds[seat].append(("angang", tile))
            self.draw(seat, kong=True)
            return
        if move == "bugang":
            self.melds[seat][self.melds[seat].index(("peng", tile))] = ("gang", tile)
        self.open.append(tile)
        self.phase, self.last = "claims" if move == "play" else "robbing", tile
        self.answers = {}
        self.ask({s: words for s in range(4) if s != seat and (words := self.claims(s))})
        if not self.asked:
            self.resolve()

    def resolve(self) -> None:
        rank = {"hu": 3, "peng": 2, "gang": 2, "chi": 1}
        best, claim = 0, ("", 0)
        for i in range(1, 4):
            seat = (self.actor + i) % 4
            move = self.answers.get(seat, "pass").partition(":")[0]
            if rank.get(move, 0) > best:
                best, claim = rank[move], (self.answers[seat], seat)
        word, seat = claim
        if not word:
            robbing = self.phase == "robbing"
            self.draw(self.actor if robbing else (self.actor + 1) % 4, kong=robbing)
            return
        move, _, tile = word.partition(":")
        if move == "hu":
            self.finish(seat)
            return
        middle = TILES.index(tile)
        needs = {
            "chi": [t for t in TILES[middle - 1 : middle + 2] if t != self.last],
            "peng": [tile] * 2,
            "gang": [tile] * 3,
        }[move]
        for t in needs:
            self.hands[seat].remove(t)
        self.open += needs
        self.melds[seat].append((move, tile))
        self.actor = seat
        if move == "gang":
            self.draw(seat, kong=True)
        else:
            self.phase = "discard"
            self.ask({seat: [f"play:{t}" for t in set(self.hands[seat])]})

    def finish(self, seat: int) -> None:
        fans = self.win(seat)
        assert fans is not None
        self.fans = {name: times for (name, _), times in fans.items()}
        points = self.points(fans, flowers=True)
        if self.points(fans, flowers=False) < self.rules["minimum"]:
            self.scores = [-30 if s == seat else 10 for s in range(4)]
        elif self.phase == "turn":
            self.scores = [3 * (8 + points) if s == seat else -(8 + points) for s in range(4)]
        else:
            self.scores = [-8 - points * (s == self.actor) for s in range(4)]
            self.scores[seat] = 24 + points
        self.phase, self.asked = "over", {}


def order(word: str) -> tuple[int, int]:
    """The place of an action in the action space."""
    move, _, tile = word.partition(":")
    return MOVES.index(move), TILES.index(tile) if tile else 0
