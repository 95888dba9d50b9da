"""An adapter for a lobby that sends the whole board with every frame."""

from __future__ import annotations

from typing import Any

import msgspec

from bothost import messages as m
from bothost.lobbies.base import Account, Capabilities, LobbyAdapter
from bothost.lobbies.frames import NOT_JSON, unknown


class Frame(msgspec.Struct):
    """A frame of the lobby: hello, denied, a board, or the end of a game."""

    hello: str = ""
    denied: str = ""
    table: str = ""
    seat: int = 0
    board: str = ""  # 64 letters of "-XO"
    turn: int = 0
    ply: int = 0  # boards of this table so far
    tries: int = 0  # moves that were refused at this board
    no: str = ""  # why the last move was refused
    over: tuple[float, float] | None = None


class SmallLobby(LobbyAdapter):
    """One account. It needs no memo, because each frame has the whole position and the lobby knows us by name."""

    name = "small-lobby"
    kit = "bothost.testing.small_lobby.fake:KIT"
    capabilities = Capabilities(
        games=("othello",),
        tables_per_connection=1,
        acks_moves=True,
        rejects_illegal="error",
        sends_turn=True,
        clock="none",
        resume="identity",
        resume_delivers="snapshot",
    )

    def __init__(self, account: Account, options: Any) -> None:
        super().__init__(account, options)
        self._conn, self._table = 0, ""
        self._seek: str | None = None
        self._sent: m.Act | None = None

    def feed(self, item: m.Input) -> list[m.Output]:
        match item:
            case m.Authenticate() | m.Resume():
                self._conn, self._table, self._sent = self._conn + 1, "", None
                return [m.OpenSocket(self._conn, self.account.url)]
            case m.SocketOpened():
                return [self._say(login=self.account.name, token=self.account.token)]
            case m.SocketClosed() | m.SocketFailed() if item.conn == self._conn:
                return [m.Disconnected(item.reason or "the connection is lost")]
            case m.Seek():
                self._seek = item.seek
                return [self._say(seek="othello")]
            case m.Act():
                self._sent = item
                return [self._say(table=item.table, move=item.actions[0])]
            case m.Close():
                return [m.CloseSocket(self._conn)]
            case m.Frame() if item.conn == self._conn:
                return self._frame(item.data)
        return []

    def _say(self, **frame: str) -> m.SendFrame:
        return m.SendFrame(self._conn, msgspec.json.encode(frame).decode())

    def _frame(self, data: str | bytes) -> list[m.Output]:
        try:
            frame = msgspec.json.decode(data, type=Frame)
        except NOT_JSON:
            return [unknown(data)]
        if frame.hello:
            return [m.Connected(frame.hello)]
        if frame.denied:
            return [m.CloseSocket(self._conn), m.AuthFailed(frame.denied)]
        if not frame.table or frame.seat not in (0, 1):
            return [unknown(data)]
        out = self._answered(frame)
        if frame.over is None:
            return out + self._board(frame, data)
        self._table, table = "", frame.table
        return [*out, m.HandEnded(table, table, frame.over), m.TableEnded(table, "normal", frame.over)]

    def _answered(self, frame: Frame) -> list[m.Output]:
        """Report what happened to our last move: the lobby refused it, or the next board shows it."""
        sent, self._sent = self._sent, None
        if sent is None or sent.table != frame.table:
            return []
        if frame.no:
            return [m.Rejected(sent.table, sent.request_id, frame.no)]
        return [m.MoveAcknowledged(sent.table, sent.request_id)]

    def _board(self, frame: Frame, raw: str | bytes) -> list[m.Output]:
        out: list[m.Output] = []
        if frame.table != self._table:
            self._table, seek, self._seek = frame.table, self._seek, None
            out.append(m.Seated(frame.table, "othello", {}, frame.seat, seek=seek))
        view = {"seat": frame.seat, "board": frame.board, "turn": frame.turn, "seq": max(frame.ply, 0)}
        out.append(m.Snapshot(frame.table, frame.table, frame.seat, view))
        if frame.turn == frame.seat:
            request = f"{frame.ply}.{frame.tries}"  # the same after a resume, another after a refusal
            out.append(m.ActionRequest(frame.table, frame.table, request, None, seq=frame.ply, raw=raw))
        return out
