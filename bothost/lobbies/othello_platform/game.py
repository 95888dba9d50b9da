"""One of our games at othello_platform: requests, moves, and what happens when the boards differ."""

from __future__ import annotations

from typing import ClassVar, Literal

from bothost import messages as m
from bothost.lobbies.othello_platform import protocol as wire
from bothost.lobbies.othello_platform.options import SYNC, WINDOW
from bothost.lobbies.othello_platform.position import START, Position, notation, text
from bothost.lobbies.othello_platform.rooms import players
from bothost.lobbies.othello_platform.sending import Sending
from bothost.lobbies.othello_platform.session import Session
from bothost.lobbies.othello_platform.sync import PositionSync

MAX_REJECTED = 4
"""After this many refused moves at one board, the lobby's clock decides."""
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

    def __init__(self, session: Session, game_id: str, table: str, seat: int, attributes: m.Json) -> None:
        self.id = game_id
        self.name = table
        self.seat = seat
        self.over = False
        self._session = session
        self._attributes = attributes
        self._players: tuple[m.PlayerInfo, ...] = ()
        self._position = Position(seat)
        self._sending = Sending(session, game_id)
        self._held: m.Act | None = None
        """An answer that came while we waited for the position. The host answers each request only once."""
        self._sync = PositionSync(session, game_id)
        self._shown = False
        """Whether the host has received a position: the start, or a snapshot."""
        self._diverged = False
        """Whether the lobby's position does not follow from the moves that we received."""

    @classmethod
    def remembered(cls, session: Session, memo: m.Json) -> Game | None:
        """The game of an earlier process; None if the memo has none."""
        game, table, seat = memo.get("game"), memo.get("table"), memo.get("seat")
        if isinstance(game, str) and game and isinstance(table, str) and table and seat in (0, 1):
            attributes = memo.get("attributes")
            return cls(session, game, table, int(seat), attributes if isinstance(attributes, dict) else {})
        return None

    def begin(self, frame: wire.GameStart, raw: str | bytes, *, seated: bool, seek: str | None) -> list[m.Output]:
        """Handle the game's first message. ``seated``: the host already knows the table."""
        self._players = players(frame)
        memo = {"game": self.id, "table": self.name, "seat": self.seat, "attributes": self._attributes}
        out: list[m.Output] = [m.Remember(memo)]
        if not seated:
            out.append(self.seated(seek))
        if frame.turn != "BLACK" or text(frame.board) != START.split()[2]:  # not the start of the game
            return out + self.resync()
        self._sync.done = True
        out.append(m.HandStarted(self.name, self.id, self.seat, self._players))
        out.append(m.Delta(self.name, self.id, 0, tuple(self._position.observe(START))))
        return out + self._ask(frame.remaining_ms, raw)

    def seated(self, seek: str | None = None) -> m.Seated:
        return m.Seated(self.name, "othello", {}, self.seat, self._players, self._attributes, seek)

    # ---------------------------------------------------------------------------------------------------------- moves

    def _ask(self, grant_ms: float | None, raw: str | bytes, *, stalled: bool = False) -> list[m.Output]:
        """Request a move, if our seat must place a disc. The id stays the same until the lobby refuses a move.

        ``stalled``: a restarted lobby restored the game without its forced pass, and refuses every move.
        """
        self._shown = True
        if stalled:
            return [m.Notice(f"{self.id}: the lobby waits for a side that must pass; its clock decides", "error")]
        if not self._position.view.asked:
            return []
        refused = self._sending.refusals(self._position.board)
        if refused >= MAX_REJECTED:
            return [m.Notice(f"{self.id}: the lobby refuses our moves; its clock decides", "error")]
        seq = self._position.view.seq
        request = f"{self.id}.{seq}.{refused}"
        return [m.ActionRequest(self.name, self.id, request, grant_ms, 0.0, seq, None, raw)]

    def act(self, act: m.Act) -> list[m.Output]:
        """Send a move. If the position is not known, keep the move until it is."""
        if not self._sync.done:
            self._held = act
            return []
        if not self._position.view.asked or not act.request_id.startswith(f"{self.id}.{self._position.view.seq}."):
            return []  # the request is outdated
        return [self._sending.send(act, self._position, self.seat)]

    def moved(self, frame: wire.Moved, raw: str | bytes) -> list[m.Output]:
        """Handle a placed disc."""
        position, seq, board = self._position, self._position.view.seq, text(frame.board)
        if not self._sync.done or position.board == board:
            return []  # the snapshot that we wait for includes it, or it was sent twice
        square = notation(frame.pos)
        events = position.place(frame.color, square)
        same_board = events is not None and position.board == board
        out: list[m.Output] = [m.Delta(self.name, self.id, seq, tuple(events))] if events and same_board else []
        if wire.COLORS[self.seat] == frame.color:
            out += self._sending.acknowledge()
        if same_board and position.turn == frame.next_turn:
            return out + self._ask(frame.remaining_ms, raw)
        out += self._adopt(f"after {frame.color} {square}", board, frame.next_turn, frame.remaining_ms, raw)
        if not self._sync.done or (frame.next_turn is not None and self._position.turn != frame.next_turn):
            return out + self.resync()  # the game cannot continue from this position: ask for it again
        return out

    def _adopt(
        self, when: str, board: str, turn: wire.Color | None, grant_ms: float | None, raw: str | bytes
    ) -> list[m.Output]:
        """Use the lobby's position, because it differs from ours."""
        detail = f"{self.id}: the lobby's position {when} differs from ours: using the lobby's: {board} {turn}"
        out: list[m.Output] = [m.Notice(detail, "warning")]
        if turn is None:
            return out  # the game is over; its end follows
        position = self._position
        same = position.board == board and self._shown
        try:
            view = position.replace(board, turn, max(position.view.seq, 1) if same else position.view.seq + 1)
        except ValueError as error:
            self._sync.done = False
            return [*out, m.Notice(f"{self.id}: the lobby's position is invalid: {error}", "error")]
        self._diverged = True
        out.append(m.Snapshot(self.name, self.id, self.seat, view))
        return out + self._ask(grant_ms, raw, stalled=position.turn != turn)

    def rejected(self, reason: str) -> list[m.Output]:
        """Handle an error: it is about the move that we sent, if there is one."""
        act = self._sending.act
        if act is None:
            return []
        self._sync.done = False
        return [self._sending.refuse(act, self._position.board, reason, resync=True)]

    # ----------------------------------------------------------------------------------------------------- coming back

    def lost(self) -> list[m.Output]:
        """Handle a lost connection. Our last move may or may not have arrived."""
        self._sending.act = self._held = None
        return self._sync.lost()

    def resync(self) -> list[m.Output]:
        """Ask for the position. Nothing is decided before it arrives."""
        return self._sync.ask(watch=not self._shown)

    def timer(self, name: str) -> list[m.Output]:
        if name == WINDOW:
            return self._sync.repeat()
        out = self._sync.timed_out() if name == SYNC else []
        if out is None:
            return self.end(m.TableEnded(self.name, "aborted", detail="the lobby does not send the position"))
        return out

    def state_sync(self, frame: wire.StateSync, raw: str | bytes) -> list[m.Output]:
        """Handle the whole position."""
        if self._session.me not in frame.ids:
            return self.end(m.TableEnded(self.name, "aborted", detail="other players play this game"))
        self.seat = frame.ids.index(self._session.me)
        self._players = players(frame) or self._players
        if frame.status != "playing":
            hand, table = ended_unseen(self.name, self.id, self.seat, frame)
            return [*hand, *self.end(table)]
        if self._sync.done:
            return []  # the answer to a repeated ``reconnect``
        out = self._sync.received()
        before = self._position.view.seq
        shown = self._show(frame, raw)
        if self._position.view.seq > before:
            out += self._sending.acknowledge()
        elif self._sending.act is not None:
            shown = self._unanswered(self._sending.act, shown, frame.remaining_ms, raw)
        held, self._held = self._held, None
        if held is not None and held.request_id in (o.request_id for o in shown if isinstance(o, m.ActionRequest)):
            shown += self.act(held)
        return out + shown

    def _show(self, frame: wire.StateSync, raw: str | bytes) -> list[m.Output]:
        """Report the lobby's position, with its history if we know that."""
        board = text(frame.board)
        candidates = []
        replayed = Position(self.seat)
        if not self._diverged and replayed.replay(frame.moves):
            replayed.catch_up(board)
            candidates.append(replayed)
        if self._shown:
            candidates.append(self._position)
        for position in candidates:
            stalled = position.misses_pass(frame.turn)
            if position.board == board and (position.turn == frame.turn or stalled):
                self._position = position
                snapshot = m.Snapshot(self.name, self.id, self.seat, position.view.to_json())
                return [snapshot, *self._ask(frame.remaining_ms, raw, stalled=stalled)]
        return self._adopt("after a reconnect", board, frame.turn, frame.remaining_ms, raw)

    def _unanswered(
        self, act: m.Act, shown: list[m.Output], grant_ms: float | None, raw: str | bytes
    ) -> list[m.Output]:
        """Our move did not arrive: send it again, or give it up after ``RESENDS`` attempts."""
        again = self._sending.resend(self._position, self.seat)
        if again is not None:
            return [*shown, again]
        rejected = self._sending.refuse(act, self._position.board, "the lobby did not echo our move", resync=False)
        others = [output for output in shown if not isinstance(output, m.ActionRequest)]
        return [*others, rejected, *self._ask(grant_ms, raw)]

    # ------------------------------------------------------------------------------------------------------- its end

    def game_over(self, frame: wire.GameOver) -> list[m.Output]:
        scores = {"BLACK": (1.0, -1.0), "WHITE": (-1.0, 1.0), "DRAW": (0.0, 0.0)}.get(frame.result or "")
        reason = OVER.get(frame.end_reason, "normal") if scores is not None else "aborted"
        hand = m.HandEnded(self.name, self.id, scores, frame.end_reason)
        return [hand, *self.end(m.TableEnded(self.name, reason, scores, detail=frame.end_reason))]

    def gone(self, detail: str) -> list[m.Output]:
        """The lobby has forgotten the game. Its result is known if we saw the last move."""
        scores = self._position.scores()
        if scores is None:
            return self.end(m.TableEnded(self.name, "aborted", detail=detail))
        hand = m.HandEnded(self.name, self.id, scores)
        return [hand, *self.end(m.TableEnded(self.name, "normal", scores, detail=detail))]

    def resign(self) -> m.SendFrame:
        return self._session.send("resign", gameId=self.id, color=wire.COLORS[self.seat])

    def end(self, ended: m.TableEnded) -> list[m.Output]:
        self.over = True
        return [m.CancelTimer(SYNC), m.CancelTimer(WINDOW), m.Remember(self.FORGET), ended]


def ended_unseen(name: str, hand: str, seat: int, frame: wire.StateSync) -> tuple[tuple[m.Output, ...], m.TableEnded]:
    """The end of a game that ended while we were offline. Its result is known if its moves are."""
    position = Position(seat)
    scores = position.scores() if position.replay(frame.moves) else None
    if scores is None:
        return (), m.TableEnded(name, "aborted", detail="the game ended while we were offline")
    snapshot = m.Snapshot(name, hand, seat, position.view.to_json())
    return (snapshot, m.HandEnded(name, hand, scores)), m.TableEnded(name, "normal", scores)
