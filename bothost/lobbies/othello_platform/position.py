"""The position of one game at othello_platform, as a canonical view.

The lobby does not announce passes: the same colour moves again. A pass is forced, so it follows from the move before.
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


class Position:
    """What our seat knows about a game."""

    def __init__(self, seat: int) -> None:
        self._game = rules.game("othello")
        self.view: View = self._game.new_view(seat)

    @property
    def board(self) -> str:
        return str(self.view.to_json().get("board", ""))

    @property
    def turn(self) -> Color | None:
        seat = self.view.to_act
        return None if seat is None or self.view.terminal else COLORS[seat]

    def observe(self, event: str) -> list[str]:
        """Fold an event. Returns it with the passes and the end that follow. Raises ValueError if it is illegal."""
        self.view.observe(event)
        return [event, *_settle(self.view)]

    def place(self, color: Color, square: str) -> list[str] | None:
        """Fold a move of the lobby. Returns its events; None if our rules do not allow it."""
        try:
            return self.observe(f"move {COLORS.index(color)} {square}")
        except ValueError:
            return None

    def replay(self, moves: Sequence[SyncMove]) -> bool:
        """Fold a game from its beginning. Returns whether our rules allow it."""
        self.observe(START)
        return all(
            move.is_pass or (move.pos is not None and self.place(move.color, notation(move.pos)) is not None)
            for move in moves
        )

    def catch_up(self, board: str) -> None:
        """Fold the one move that this board has in addition, if it is one.

        The lobby reads a game's moves before its board, and a move can be played between.
        """
        new = [square for square, disc in enumerate(self.board) if disc == "-" != board[square]]
        if self.turn is not None and len(new) == 1:
            self.place(self.turn, notation(Pos(new[0] % 8, new[0] // 8)))

    def replace(self, board: str, turn: Color, seq: int) -> Json:
        """Replace our position by the lobby's, without its history. Returns the snapshot.

        Raises ValueError if the position is invalid.
        """
        self.view = self._at(board, turn, seq)
        _settle(self.view)
        return self.view.to_json()

    def misses_pass(self, turn: Color | None) -> bool:
        """Whether ``turn`` must pass on this board, so that the lobby lost the forced pass."""
        if turn is None or self.view.terminal or turn == self.turn:
            return False
        view = self._at(self.board, turn, 1)
        return _settle(view)[:1] == [f"pass {COLORS.index(turn)}"]

    def scores(self) -> tuple[float, ...] | None:
        """Per seat, at the end of a game; None before."""
        if not self.view.terminal:
            return None
        board = self.board
        lead = board.count("X") - board.count("O")
        black = float((lead > 0) - (lead < 0))
        return (black, -black + 0.0)

    def _at(self, board: str, turn: Color, seq: int) -> View:
        return self._game.view_from_snapshot(
            {"seat": self.view.seat, "board": board, "turn": COLORS.index(turn), "seq": seq}
        )


def _settle(view: View) -> list[str]:
    """Fold the forced passes, and the end. Returns their events."""
    events: list[str] = []
    while not view.terminal and (seat := view.to_act) is not None:
        try:
            view.observe(f"pass {seat}")  # refused unless nothing else is legal
        except ValueError:
            break
        events.append(f"pass {seat}")
    if view.terminal:
        events.append("reveal -")
        view.observe(events[-1])
    return events
