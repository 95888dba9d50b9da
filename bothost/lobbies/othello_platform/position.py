"""One game at othello-platform, folded from its messages into a canonical view: passes inferred, boards compared.

The lobby tells no passes: the next turn belongs to the same colour again. By the rules a pass is forced, so it is
known as soon as a move is.
"""

from __future__ import annotations

from collections.abc import Sequence

from bothost import rules
from bothost.lobbies.othello_platform.protocol import COLORS, Color, Pos, SyncMove
from bothost.rules.game import Json, View

_DISCS = "-XO"
START = "start - ---------------------------OX------XO--------------------------- 0"


def text(board: Sequence[int]) -> str:
    """A board of the lobby (0 empty, 1 black, 2 white) in canonical letters."""
    return "".join(_DISCS[disc] for disc in board)


def notation(pos: Pos) -> str:
    """A square's canonical name."""
    return "abcdefgh"[pos.x] + str(pos.y + 1)


class Fold:
    """What our seat knows of a game."""

    def __init__(self, seat: int) -> None:
        self._game = rules.game("othello")
        self.view: View = self._game.new_view(seat)

    @property
    def seq(self) -> int:
        """Events so far."""
        return self.view.seq

    @property
    def asked(self) -> bool:
        """Whether our seat must place a disc."""
        return self.view.asked

    @property
    def over(self) -> bool:
        return self.view.terminal

    @property
    def board(self) -> str:
        return str(self.view.to_json().get("board", ""))

    @property
    def turn(self) -> Color | None:
        seat = self.view.to_act
        return None if seat is None or self.view.terminal else COLORS[seat]

    def observe(self, event: str) -> list[str]:
        """An event, with the passes and the end that follow from it. Raises ValueError where it is impossible."""
        self.view.observe(event)
        return [event, *self._settle()]

    def place(self, color: Color, square: str) -> list[str] | None:
        """A move of the lobby as events; None where our rules do not allow it."""
        try:
            return self.observe(f"move {COLORS.index(color)} {square}")
        except ValueError:
            return None

    def replay(self, moves: Sequence[SyncMove]) -> bool:
        """A game from its beginning; whether our rules allow it."""
        self.observe(START)
        return all(
            move.is_pass or (move.pos is not None and self.place(move.color, notation(move.pos)) is not None)
            for move in moves
        )

    def replace(self, board: str, turn: Color, seq: int) -> Json:
        """The lobby's position instead of ours; its history is unknown. Returns the snapshot that says so.

        Raises ValueError where it is no position of a game that goes on.
        """
        snapshot: Json = {"seat": self.view.seat, "board": board, "turn": COLORS.index(turn), "seq": seq}
        self.view = self._game.view_from_snapshot(snapshot)
        self._settle()
        return self.view.to_json()

    def scores(self) -> tuple[float, ...] | None:
        """Per seat, at the end of a game; None before."""
        if not self.over:
            return None
        board = self.board
        lead = board.count("X") - board.count("O")
        black = float((lead > 0) - (lead < 0))
        return (black, -black + 0.0)

    def _settle(self) -> list[str]:
        """Passes that are forced, and the end."""
        events: list[str] = []
        while not self.view.terminal and (seat := self.view.to_act) is not None:
            try:
                self.view.observe(f"pass {seat}")  # refused unless nothing else is legal
            except ValueError:
                break
            events.append(f"pass {seat}")
        if self.view.terminal:
            events.append("reveal -")
            self.view.observe(events[-1])
        return events
