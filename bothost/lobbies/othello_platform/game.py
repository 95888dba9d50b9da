"""One game of ours at othello-platform: requests, the move that is out, and what happens when boards disagree."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from bothost import messages as m
from bothost.lobbies.othello_platform import protocol as wire
from bothost.lobbies.othello_platform.position import Fold, notation, text

SYNC, WINDOW = "sync", "window"
SYNC_S = 10.0
"""The lobby must answer ``reconnect`` by then."""
SYNCS = 3
WINDOW_S = 12.0
"""The lobby gives 30 s from the end of any of our connections, also from that of an old one that it notices late: we
say ``reconnect`` again and again."""
WINDOWS = 8
RESENDS = 2
MAX_REJECTED = 4

OVER: dict[str, Literal["normal", "resigned", "timeout", "left"]] = {
    "normal": "normal",
    "draw_agree": "normal",
    "resign": "resigned",
    "timeout": "timeout",
    "disconnect": "left",
}


class Game:
    """A game from its first message to its last."""

    FORGET: ClassVar[m.Json] = {"game": "", "table": "", "seat": 0}

    def __init__(self, game_id: str, table: str, seat: int, attributes: m.Json) -> None:
        self.id = game_id
        self.table = table
        self.seat = seat
        self.attributes = attributes
        self.players: tuple[m.PlayerInfo, ...] = ()
        self.fold = Fold(seat)
        self.synced = False
        """Whether our position is known to be the lobby's."""
        self._sent: m.Act | None = None
        """The move that is out."""
        self._resent = 0
        self._held: m.Act | None = None
        """An answer that came while the position was being asked for."""
        self._told = False
        """Whether the position was told at all: by its beginning, or by a snapshot."""
        self._diverged = False
        """Whether the lobby's position does not follow from the moves that we saw."""
        self._refused = (0, 0)
        """A position, and how many moves the lobby refused there."""
        self._syncs = 0
        self._windows = 0
        self.cut = False
        """Whether a connection was given up because the position was not told."""

    @classmethod
    def remembered(cls, memo: m.Json) -> Game | None:
        """The game of an earlier process."""
        game, table, seat = memo.get("game"), memo.get("table"), memo.get("seat")
        if isinstance(game, str) and game and isinstance(table, str) and table and seat in (0, 1):
            attributes = memo.get("attributes")
            return cls(game, table, int(seat), attributes if isinstance(attributes, dict) else {})
        return None

    def memo(self) -> m.Json:
        """What a fresh process needs to come back."""
        return {"game": self.id, "table": self.table, "seat": self.seat, "attributes": self.attributes}

    def seated(self, seek: str | None = None) -> m.Seated:
        return m.Seated(self.table, "othello", {}, self.seat, self.players, self.attributes, seek)

    def begins_with(self, frame: wire.GameStart) -> bool:
        """Whether a game's first message shows its beginning."""
        return frame.turn == "BLACK" and text(frame.board) == "-" * 27 + "OX------XO" + "-" * 27

    # ---------------------------------------------------------------------------------------------------------- moves

    def ask(self, grant_ms: float | None, raw: str | bytes) -> list[m.Output]:
        """The question, if our seat must place a disc. At one position of one game it keeps its id, until refused."""
        self._told = True
        if not self.fold.asked:
            return []
        seq = self.fold.seq
        refused = self._refused[1] if self._refused[0] == seq else 0
        if refused >= MAX_REJECTED:
            return [m.Notice(f"{self.id}: the lobby refuses our moves; its clock decides", "error")]
        request = f"{self.id}.{seq}.{refused}"
        return [m.ActionRequest(self.table, self.id, request, grant_ms, 0.0, seq, None, raw)]

    def act(self, act: m.Act) -> str | None:
        """The frame of a move; None: the question is past."""
        if not self.fold.asked or not act.request_id.startswith(f"{self.id}.{self.fold.seq}."):
            return None
        self._sent, self._resent = act, 0
        return self._frame(act)

    def hold(self, act: m.Act) -> None:
        """Keep an answer until the position is told: the host does not answer the same question twice."""
        self._held = act

    def _frame(self, act: m.Act) -> str:
        return wire.move(self.id, self.fold.seq, self.seat, act.actions[0])

    def moved(self, frame: wire.Moved, raw: str | bytes) -> list[m.Output]:
        """A disc was placed."""
        fold, seq, board = self.fold, self.fold.seq, text(frame.board)
        if fold.board == board:
            return []  # told twice
        square = notation(frame.pos)
        events = fold.place(frame.color, square)
        out: list[m.Output] = []
        agree = events is not None and fold.board == board and fold.turn == frame.next_turn
        if events is not None and fold.board == board:
            out.append(m.Delta(self.table, self.id, seq, tuple(events)))
        sent = self._sent
        if sent is not None and wire.COLORS[self.seat] == frame.color:
            self._sent = None
            out.append(m.MoveAcknowledged(self.table, sent.request_id))
        if agree:
            return out + self.ask(frame.remaining_ms, raw)
        return out + self._lobby_wins(f"after {frame.color} {square}", board, frame.next_turn, frame.remaining_ms, raw)

    def _lobby_wins(
        self, when: str, board: str, turn: wire.Color | None, grant_ms: float | None, raw: str | bytes
    ) -> list[m.Output]:
        """The lobby's board is not ours: its own counts."""
        detail = f"{self.id}: the lobby's position {when} is not ours; its own counts: {board} {turn}"
        out: list[m.Output] = [m.Notice(detail, "warning")]
        if turn is None:
            return out  # it is over, and its end is told
        same = self.fold.board == board and self._told
        try:
            view = self.fold.replace(board, turn, max(self.fold.seq, 1) if same else self.fold.seq + 1)
        except ValueError as error:
            self.synced = False
            return [*out, m.Notice(f"{self.id}: a position that cannot be played: {error}", "error")]
        self._diverged = True
        out.append(m.Snapshot(self.table, self.id, self.seat, view))
        return out + self.ask(grant_ms, raw)

    def rejected(self, reason: str) -> m.Rejected | None:
        """An error that names nothing came while a move was out; None: none was."""
        sent, self._sent = self._sent, None
        if sent is None:
            return None
        seq = self.fold.seq
        self._refused = (seq, self._refused[1] + 1 if self._refused[0] == seq else 1)
        self.synced = False
        return m.Rejected(self.table, sent.request_id, reason, resync=True)

    # ----------------------------------------------------------------------------------------------------- coming back

    def lost(self) -> None:
        """The connection is gone: a move that was out may have arrived or not."""
        self.synced = False
        self._sent = self._held = None
        self._syncs = 0
        self._windows = WINDOWS

    def ask_for_sync(self) -> list[m.Output]:
        self.synced = False
        self._syncs += 1
        if not self._told:
            self._windows = WINDOWS  # an earlier process may have left a connection behind
        return [m.SetTimer(SYNC, SYNC_S)]

    def may_ask_again(self) -> bool:
        return self._syncs < SYNCS

    def watch_window(self) -> list[m.Output]:
        """After coming back: say so again in a while, as the end of an old connection may be noticed only then."""
        if self._windows <= 0:
            return []
        self._windows -= 1
        return [m.SetTimer(WINDOW, WINDOW_S)]

    def state_sync(self, frame: wire.StateSync, raw: str | bytes) -> list[m.Output | str]:
        """The whole position. A text in the answer is a frame to send."""
        board = text(frame.board)
        if self.synced:
            return []  # the answer to a reconnect that was said in advance
        self.synced, self._syncs, self.cut = True, 0, False
        out: list[Any] = [m.CancelTimer(SYNC), *self.watch_window()]
        before = self.fold.seq
        fold = Fold(self.seat)
        if not self._diverged and fold.replay(frame.moves) and fold.board == board and fold.turn == frame.turn:
            self.fold = fold
            told: list[Any] = [m.Snapshot(self.table, self.id, self.seat, fold.view.to_json())]
            told += self.ask(frame.remaining_ms, raw)
        else:
            if self._told and self.fold.board == board and self.fold.turn == frame.turn:
                told = [m.Snapshot(self.table, self.id, self.seat, self.fold.view.to_json())]
                told += self.ask(frame.remaining_ms, raw)
            else:
                told = list(self._lobby_wins("after a reconnect", board, frame.turn, frame.remaining_ms, raw))
        sent = self._sent
        if sent is not None and self.fold.seq > before:
            self._sent = None
            out.append(m.MoveAcknowledged(self.table, sent.request_id))
        elif sent is not None and self._resent < RESENDS:
            self._resent += 1
            told.append(self._frame(sent))  # it did not arrive: the same answer again
        elif sent is not None:
            rejected = self.rejected("no echo of our move")
            assert rejected is not None
            self.synced = True
            told = [item for item in told if not isinstance(item, m.ActionRequest)]
            told += [
                m.Rejected(rejected.table, rejected.request_id, rejected.reason),
                *self.ask(frame.remaining_ms, raw),
            ]
        held, self._held = self._held, None
        asked = [item.request_id for item in told if isinstance(item, m.ActionRequest)]
        if held is not None and held.request_id in asked and (frame_again := self.act(held)) is not None:
            told.append(frame_again)
        return out + told


def players(frame: wire.RoomState | wire.GameStart | wire.StateSync) -> tuple[m.PlayerInfo, ...]:
    """Black, then white, where they are known. The lobby's own player has no id."""
    seats = ((frame.black_id, frame.black_name), (frame.white_id, frame.white_name))
    return tuple(m.PlayerInfo(who, seat, name or "") for seat, (who, name) in enumerate(seats) if who is not None)
