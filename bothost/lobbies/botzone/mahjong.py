"""Chinese-Standard-Mahjong at Botzone: lines of text. Every event is a request and needs a response.

Requests: ``0 id wind`` · ``1 h0 h1 h2 h3 tile×13 flower×(h0+…)`` · ``2 tile`` (we drew it) · ``3 p DRAW``,
``3 p PLAY t``, ``3 p PENG discard``, ``3 p CHI middle discard``, ``3 p GANG``, ``3 p BUGANG t``, ``3 p BUHUA flower``.
A claim and the discard after it are one message, and one response of ours. Our claim counts only when a later request
shows it. ``GANG`` is a concealed kong after the seat's own draw, and a claim after another seat's discard.

Nothing states whether a match has flowers. The deal shows it, or the first flower that a player lays down.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from bothost.lobbies.botzone.dialect import Dialect, Folded, Mismatch, OtherRules
from bothost.rules.game import Json

WINDS = ("east", "south", "west", "north")
DEALT = 13


class Mahjong(Dialect):
    """``rules`` says whether there are flowers. What the match shows overrides it."""

    name: ClassVar[str] = "Chinese-Standard-Mahjong"
    game: ClassVar[str] = "mahjong"
    players: ClassVar[int] = 4
    always_asked: ClassVar[bool] = False

    def __init__(self, rules: Json) -> None:
        super().__init__({"preset": "botzone", **rules})
        self._place: tuple[int, str] | None = None
        """Our seat and the prevalent wind."""
        self._last = ""
        """The last discard, or the tile that was added to a pung."""

    def take(self, request: Any, answered: Any) -> Folded:
        words = request.split() if isinstance(request, str) else []
        match words:
            case ["0", seat, wind] if self._place is None:
                self._place = (_number(seat, 4), WINDS[_number(wind, 4)])
                return Folded([])
            case ["1", *words_dealt] if self.view is None:
                return Folded(self._deal(words_dealt))
            case ["2", tile] if self.view is not None:
                return Folded([*self._own(answered), *self._observe(f"draw {self.seat} {tile}")])
            case ["3", seat, what, *tiles] if self.view is not None:
                own = self._own(answered)
                return Folded(own + self._happened(_number(seat, 4), what, tiles, answered))
        raise Mismatch(f"unknown request: {str(request)[:100]}")

    def _deal(self, words: list[str]) -> list[str]:
        """Fold the deal with its flowers as if all of them had been among the first 13 tiles of their seats."""
        if self._place is None:
            raise Mismatch("the deal came before the seat")
        counts = [_number(word, 9) for word in words[:4]]
        tiles, flowers = words[4 : 4 + DEALT], words[4 + DEALT :]
        if len(counts) != 4 or len(tiles) != DEALT or len(flowers) != sum(counts):
            raise Mismatch("a deal needs 13 tiles and as many flowers as its counts")
        if flowers:
            self.rules = {**self.rules, "flowers": True}
        seat, wind = self._place
        first = sum(counts[:seat])
        ours = flowers[first : first + counts[seat]]
        self._begin(seat)
        dealt = tiles[: DEALT - len(ours)] + ours
        events = self._observe(f"deal {seat} {wind} {' '.join(dealt)}")
        replacements = iter(tiles[DEALT - len(ours) :])
        left = iter(flowers)
        for other, count in enumerate(counts):
            for _ in range(count):
                drawn = f" {next(replacements)}" if other == seat else ""
                events += self._observe(f"flower {other} {next(left)}", f"draw {other}{drawn}")
        return events

    def _happened(self, seat: int, what: str, tiles: list[str], answered: Any) -> list[str]:
        match what, tiles:
            case "DRAW", []:
                return self._observe(f"draw {seat}")
            case "PLAY", [tile]:
                self._last = tile
                return self._observe(f"play {seat} {tile}")
            case "PENG", [discard]:
                return self._melded(f"peng {seat} {self._last}", seat, discard)
            case "CHI", [middle, discard]:
                return self._melded(f"chi {seat} {middle}", seat, discard)
            case "GANG", []:
                return self._kong(seat, answered)
            case "BUGANG", [tile]:
                self._last = tile
                return self._observe(f"bugang {seat} {tile}")
            case "BUHUA", [flower]:
                return self._flower(seat, flower)
        raise Mismatch(f"unknown event: {what[:20]} with {len(tiles)} tiles")

    def _melded(self, event: str, seat: int, discard: str) -> list[str]:
        self._last = discard
        return self._observe(event, f"play {seat} {discard}")

    def _kong(self, seat: int, answered: Any) -> list[str]:
        if self.view is None or self.view.phase != "turn":
            return self._observe(f"gang {seat} {self._last}")
        if seat != self.seat:
            return self._observe(f"angang {seat}")
        match str(answered).split():
            case ["GANG", tile]:
                return self._observe(f"angang {seat} {tile}")
        raise Mismatch("the judge shows a concealed kong of ours that we did not declare")

    def _flower(self, seat: int, flower: str) -> list[str]:
        assert self.view is not None
        if not self.view.game.rules["flowers"]:
            raise OtherRules("this match is played with flowers", {**self.rules, "flowers": True})
        if self.view.phase == "turn":  # its draw came before
            return self._observe(f"flower {seat} {flower}")
        drawn = f" {flower}" if seat == self.seat else ""
        return self._observe(f"draw {seat}{drawn}", f"flower {seat} {flower}")

    def _own(self, answered: Any) -> list[str]:
        """Fold our answer to a discard or an added kong. A request shows what we do on our own turn."""
        if self.view is None or not self.view.asked or self.view.phase not in ("claims", "robbing"):
            return []
        return self._observe(f"answer {self.seat} {action_of(str(answered).strip() or 'PASS', self._last)}")

    def respond(self, actions: Sequence[str]) -> Any:
        move, _, tile = actions[0].partition(":")
        discard = actions[1].removeprefix("play:") if len(actions) > 1 else ""
        match move:
            case "pass" | "hu":
                return move.upper()
            case "play" | "bugang":
                return f"{move.upper()} {tile}"
            case "angang":
                return f"GANG {tile}"
            case "gang":
                return "GANG"
            case "peng" if discard:
                return f"PENG {discard}"
            case "chi" if discard:
                return f"CHI {tile} {discard}"
        raise ValueError(f"Botzone's protocol has no message for {' '.join(actions)}")

    def blind(self, request: Any, answered: Any = None) -> Any:
        match str(request).split():
            case ["2", tile]:
                return f"PLAY {tile}"
        return "PASS"

    def ended(self, answered: Any, scores: Sequence[float]) -> list[str]:
        """Our answer to the last discard, and the win if its tile is known. The judge does not report the fans."""
        events = super().ended(answered, scores)
        view = self.view
        if view is None or view.terminal or len(scores) != 4:
            return events
        shown = view.to_json()
        winner = max(range(4), key=lambda seat: scores[seat])
        actor = shown["actor"]
        line = "exhausted -"
        if scores[winner] > 0:
            tile = shown["drawn"] if view.phase == "turn" else self._last
            line = f"hu {winner} {tile} {actor}"
        try:
            return events + self._observe(line)
        except Mismatch:
            return events


def action_of(response: str, claimed: str | None) -> str:
    """The action of a response, without the discard after a claim. Raises Mismatch.

    ``claimed``: the tile that may be claimed; None if the seat has drawn a tile.
    """
    match response.split():
        case ["PASS" | "HU" as verb]:
            return verb.lower()
        case ["PLAY" | "BUGANG" as verb, tile] if claimed is None:
            return f"{verb.lower()}:{tile}"
        case ["GANG", tile] if claimed is None:
            return f"angang:{tile}"
        case ["GANG"] if claimed is not None:
            return f"gang:{claimed}"
        case ["PENG", _] if claimed is not None:
            return f"peng:{claimed}"
        case ["CHI", middle, _] if claimed is not None:
            return f"chi:{middle}"
    raise Mismatch(f"{response[:40]!r} is not an answer to a {'draw' if claimed is None else 'discard'}")


def _number(word: str, below: int) -> int:
    """Parse an integer from 0 to ``below`` - 1. Raises Mismatch."""
    if not (word.isascii() and word.isdigit() and len(word) <= 2 and int(word) < below):
        raise Mismatch(f"{word[:20]!r} is not a number below {below}")
    return int(word)
