"""One hand at open_mahjong as our seat knows it: the lobby's position (``Picture``), and the canonical view.

The lobby deals fourteen tiles to the dealer, then replaces flowers one at a time. Our rules deal thirteen, and the
dealer draws when no flower is left. The lobby reports no passes, and lets a robot discard a flower. If our rules
cannot follow, the lobby's position becomes a snapshot.
"""

from __future__ import annotations

from bothost import messages as m
from bothost.lobbies.frames import Mismatch
from bothost.lobbies.open_mahjong import protocol as wire
from bothost.lobbies.open_mahjong.moves import CHOWS, kong_tile
from bothost.lobbies.open_mahjong.picture import SEATS, Picture
from bothost.rules import mahjong
from bothost.rules.game import Game, View

FALSE_WIN = "错和"
"""One of the fans of a declared hand below the minimum. The hand continues."""
BLIND_SEQ, SEQ_PER_TICK = 1000, 4
"""Views without a history count their events from these numbers, so that the count of a later one is always higher."""
_FAN_ALIASES = {"七对子": "七对"}


class HandTracker:
    """One hand, from one seat."""

    def __init__(self, name: str, game: Game, picture: Picture, tick: int) -> None:
        self.name = name
        self.picture = picture
        self.tick = tick
        """The lobby's count of actions and requests."""
        self.done = tick
        """The count at the last action."""
        self.view: View | None = None
        """None while our rules cannot express the position."""
        self.answer = ""
        """Our answer to the open discard; empty if there is none."""
        self.reported = 0
        """How many events the host has received."""
        self.trouble = ""
        """Why the view was lost."""
        self.scores = (0.0,) * SEATS
        """What each seat has won or lost in this hand: by false wins, until it ends."""
        self._game = game
        self._lines: list[str] = []
        self._pending: list[int] = []
        """Dealer's tiles, during the replacement of flowers, that the view has not drawn yet."""

    @property
    def seat(self) -> int:
        return self.picture.seat

    def seat_of(self, index: int) -> int:
        """The canonical seat of a lobby's index."""
        return self.picture.seat_of(index)

    @classmethod
    def begin(cls, name: str, game: Game, picture: Picture, tick: int) -> HandTracker:
        """Start a hand at its deal."""
        hand = cls(name, game, picture, tick)
        dealt = list(picture.own)
        if hand.seat == 0:
            place = max(i for i, tile in enumerate(dealt) if not wire.is_flower(tile))
            hand._pending = [dealt.pop(place)]
        hand.view = game.new_view(hand.seat)
        hand._fold(f"deal {hand.seat} {picture.wind} {' '.join(map(wire.word, dealt))}")
        return hand

    # ------------------------------------------------------------------------------------------------- to the host

    def take_lines(self) -> tuple[int, tuple[str, ...]]:
        """Take the events that the host has not received. Returns the number of the first, and the events."""
        first, lines = self.reported, tuple(self._lines)
        self._lines = []
        self.reported += len(lines)
        return first, lines

    def report(self, table: str) -> list[m.Output]:
        """Report new events. If the view was lost, report a snapshot of the lobby's position if that is possible."""
        if self.view is not None:
            first, lines = self.take_lines()
            return [m.Delta(table, self.name, first, lines)] if lines else []
        out: list[m.Output] = []
        if self.trouble:
            out.append(m.Notice(f"table {table}: {self.trouble}: using the lobby's position", "info"))
            self.trouble = ""
        view = self.renew()
        return out if view is None else [*out, m.Snapshot(table, self.name, self.seat, view)]

    def renew(self, seq: int | None = None) -> m.Json | None:
        """Rebuild the view from the lobby's position. Returns the snapshot; None while our rules cannot express it.

        ``seq``: what an earlier process had counted at this moment.
        """
        if seq is None:
            seq = max(self.reported + 1, BLIND_SEQ + SEQ_PER_TICK * self.tick)
        self._lines = []
        snapshot = self.picture.snapshot(seq)
        self.view = None
        if snapshot is None:
            return None
        try:
            self.view = self._game.view_from_snapshot(snapshot)
        except ValueError as error:
            self.trouble = str(error)
            return None
        self.reported, self.trouble = seq, ""
        return self.view.to_json()

    # ------------------------------------------------------------------------------------------------ what happens

    def begin_play(self) -> None:
        """Start play: the opening flowers are replaced, and the dealer draws the fourteenth tile."""
        picture = self.picture
        if picture.phase != "opening":
            return
        picture.phase, picture.actor = "turn", 0
        if self.seat == 0:
            picture.drawn = picture.own[-1]
            self._fold(f"draw 0 {wire.word(self._pending.pop())}" if self._pending else "draw 0")
        else:
            self._fold("draw 0")

    def acted(self, action: wire.Action) -> bool:
        """Fold an action. Returns whether our answer to the open discard counted.

        Raises Mismatch if the action contradicts our tiles.
        """
        seat = self.seat_of(action.action_player)
        self.done = action.action_tick
        self.tick = max(self.tick, self.done)
        counted = False
        for kind in action.action_list:
            if kind == "buhua":
                self._laid(seat, action)
            elif kind in ("deal_tile", "deal_buhua_tile", "deal_gang_tile"):
                counted |= self._settle(seat, "pass")
                self._drawn(seat, action, kind)
            elif kind == "cut":
                self.begin_play()
                self._cut(seat, action)
            elif kind in ("angang", "jiagang"):
                self.begin_play()
                self._own_kong(seat, kind, action)
            elif kind in ("chi_left", "chi_mid", "chi_right", "peng", "gang"):
                counted |= self._settle(seat, kind)
                self._claimed(seat, kind)
            else:
                self._lose(f"unknown action {kind!r}")
        return counted

    def count(self, result: wire.Result) -> bool:
        """Add the scores of a win. Returns False if the lobby does not report them."""
        changes = result.score_changes
        if changes is None or set(changes) != {"0", "1", "2", "3"}:
            return False
        won = [float(changes[str(original)]) for original in self.picture.originals]
        self.scores = tuple(map(sum, zip(self.scores, won, strict=True)))
        return True

    def ended(self, result: wire.Result) -> None:
        """Fold the end of the hand."""
        self.tick = max(self.tick, result.action_tick)
        picture = self.picture
        if result.hu_class.startswith("hu") and result.hepai_player_index is not None:
            self.begin_play()
            winner = self.seat_of(result.hepai_player_index)
            self._settle(winner, "hu")
            source = picture.actor
            hand = result.hepai_player_hand or ()
            if winner != source:
                tile = picture.last
            else:
                tile = picture.drawn if winner == self.seat else hand[-1] if hand else 0
            if tile and not wire.is_flower(tile):
                self._fold(f"hu {winner} {wire.word(tile)} {source} {_fans(result.hu_fan)}".rstrip())
        elif picture.wall == 0:
            self._settle(picture.actor, "pass")
            self._fold("exhausted -")
        picture.phase = "over"

    def asked_about(self, tile: int, *, robbing: bool) -> bool:
        """The lobby asks for claims of this tile. Returns whether ``picture`` had to change for it."""
        picture = self.picture
        if picture.phase in ("claims", "robbing") and picture.last == tile:
            return False
        kongs = [meld.tile for meld in picture.melds[picture.actor] if meld.kind == "gang"]
        if not (robbing and picture.phase in ("claims", "drawing") and tile in kongs):
            raise Mismatch("the lobby asks about a tile that was not discarded")
        picture.phase, picture.last = "robbing", tile
        return True

    def _laid(self, seat: int, action: wire.Action) -> None:
        if action.buhua_tile is None or not wire.is_flower(action.buhua_tile):
            raise Mismatch("a player lays down a tile that is not a flower")
        self.picture.lay(seat, action.buhua_tile)
        self._fold(f"flower {seat} {wire.word(action.buhua_tile)}")

    def _drawn(self, seat: int, action: wire.Action, kind: str) -> None:
        if kind == "deal_buhua_tile" and (self.picture.phase, self.picture.actor) == ("turn", seat):
            return  # the lobby draws before it reports that, so the snapshot of our return has the tile already
        tile = action.deal_tile if seat == self.seat else None
        opening = self.picture.phase == "opening"
        self.picture.draw(seat, tile, kong=kind == "deal_gang_tile")
        if tile is None:
            self._fold(f"draw {seat}")
        elif opening and seat == 0:
            self._pending.append(tile)
            flower = next((held for held in self._pending if wire.is_flower(held)), None)
            drawn = self._pending[0] if flower is None else flower
            self._pending.remove(drawn)
            self._fold(f"draw 0 {wire.word(drawn)}")
        else:
            self._fold(f"draw {seat} {wire.word(tile)}")

    def _cut(self, seat: int, action: wire.Action) -> None:
        tile = action.cut_tile
        if tile is None:
            raise Mismatch("a discard has no tile")
        self.picture.cut(seat, tile, drawn=bool(action.cut_class))
        if not wire.is_flower(tile):
            self._fold(f"play {seat} {wire.word(tile)}")
        elif self.picture.wall == 0:
            self._fold(f"flower {seat} {wire.word(tile)}")  # nothing can replace it, and no seat can claim it
        else:
            self._lose("a flower was discarded")

    def _own_kong(self, seat: int, kind: str, action: wire.Action) -> None:
        tile = kong_tile(action)
        if kind == "angang":
            self.picture.conceal(seat, tile if seat == self.seat else 0)
            self._fold(f"angang {seat} {wire.word(tile)}" if seat == self.seat else f"angang {seat}")
        else:
            self.picture.add(seat, tile)
            self._fold(f"bugang {seat} {wire.word(tile)}")

    def _claimed(self, seat: int, kind: str) -> None:
        last = self.picture.last
        if kind.startswith("chi"):
            middle = last + CHOWS[kind]
            self.picture.claim(seat, "chi", middle)
            self._fold(f"chi {seat} {wire.word(middle)}")
        else:
            self.picture.claim(seat, "gang" if kind == "gang" else "peng", last)
            self._fold(f"{kind} {seat} {wire.word(last)}")

    def _settle(self, seat: int, kind: str) -> bool:
        """Fold our answer to the open discard, now that the outcome is known. Returns whether the answer counted.

        The lobby does not echo answers. It drops a claim that another one beats, so only a pass, or a claim that is
        carried out, counts.
        """
        answer, self.answer = self.answer, ""
        if not answer or self.picture.phase not in ("claims", "robbing"):
            return False
        if answer != "pass" and (seat != self.seat or kind == "pass"):
            return False
        self._fold(f"answer {self.seat} {answer}")
        return True

    def _fold(self, line: str) -> None:
        if self.view is None:
            return
        try:
            self.view.observe(line)
        except ValueError as error:
            self._lose(f"{line}: {error}")
        else:
            self._lines.append(line)

    def _lose(self, reason: str) -> None:
        """Drop the view. Nothing is folded until ``renew``."""
        self.view, self.trouble = None, reason


def _fans(fans: wire.Words | None) -> str:
    """The lobby's fans in canonical words; empty if one is unknown."""
    counts: dict[str, int] = {}
    for fan in fans or ():
        name, _, times = fan.partition("*")
        if times and not times.isdecimal():
            return ""
        name = _FAN_ALIASES.get(name, name)
        counts[name] = counts.get(name, 0) + (int(times) if times else 1)
    try:
        return mahjong.fan_words(counts) if counts else ""
    except ValueError:
        return ""
