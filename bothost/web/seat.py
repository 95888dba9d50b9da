"""A person's seat at a table of the embedded lobby. Sans-IO: frames come in, frames and what to show go out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bothost.lobbies.embedded import protocol as wire
from bothost.lobbies.frames import plain_text
from bothost.rules.game import Game, Json, View
from bothost.web.drawn import drawn
from bothost.web.viewers import MOST_CHAT

SEEK = "seat"
AGENT = "bothost-web"
TOO_LATE = "too late: this turn is over"


class Seat:
    """One account, one table, one hand or more."""

    def __init__(self, game: Game, token: str, attributes: Mapping[str, wire.Scalar]) -> None:
        """``attributes`` of the wished table: its room, its clock, its number of hands."""
        self.game = game
        self.state: Literal["connecting", "waiting", "playing", "over"] = "connecting"
        self.table = ""
        self.hand = ""
        self.seat = 0
        self.names: list[str] = []
        self.view: View | None = None
        self.ask: wire.Ask | None = None
        self.asked_at = 0.0
        """When ``ask`` came, monotonic."""
        self.scores: tuple[float, ...] | None = None
        self.notice = ""
        """The last thing that the player should know, such as a refusal."""
        self.acted: Json | None = None
        """The move that the lobby made for this seat since its last answer: ``reason``, ``action``."""
        self.chat: list[Json] = []
        """What the others at the table said: ``player``, ``text``."""
        self._token = token
        self._attributes = dict(attributes)
        self._lost = False

    def hello(self) -> bytes:
        """The first frame."""
        return wire.encode(wire.Hello(wire.VERSION, self._token, AGENT))

    def act(self, ask: str, notation: str) -> bytes:
        """The frame that answers a question. Raises ValueError where it is not the open one, or the action illegal."""
        if self.ask is None or self.ask.id != ask or self.view is None:
            raise ValueError(TOO_LATE)
        if not self.view.is_legal(self.view.parse(notation)):
            raise ValueError(f"{notation[:40]!r} is not legal now")
        self.ask, self.notice, self.acted = None, "", None
        return wire.encode(wire.Act(self.table, ask, notation))

    def leave(self) -> bytes:
        """The frame that gives up the table."""
        return wire.encode(wire.Leave(self.table) if self.table else wire.Cancel(SEEK))

    def receive(self, data: str | bytes, now: float) -> list[bytes]:
        """Take a frame of the lobby; returns what to send."""
        match wire.decode_server(data):
            case wire.Welcome():
                self.state = "waiting"
                return [wire.encode(wire.Seek(SEEK, self.game.name, self.game.rules, self._attributes))]
            case wire.Seated() as frame:
                self.state, self.table = "playing", frame.table
                self._take_seats(frame.seat, frame.players)
            case wire.HandStarted() as frame:
                self._take_seats(frame.seat, frame.players)
                self.hand, self.view, self.ask, self.scores = frame.hand, self.game.new_view(frame.seat), None, None
            case wire.Events() as frame:
                return self._events(frame, now)
            case wire.Snapshot() as frame:
                self.view = self.game.view_from_snapshot({"seq": frame.seq, **frame.view})
                self.hand, self.seat, self._lost = frame.hand, frame.seat, False
                self._open(frame.ask, now)
            case wire.Rejected() as frame if frame.reason == "stale":
                self.notice = TOO_LATE  # the lobby moved meanwhile, and may have asked for the next move already
            case wire.Rejected() as frame:
                self.notice = frame.message
                self._open(frame.ask, now)
            case wire.Withdrawn():
                self.ask = None
            case wire.ServerActed() as frame:
                self.ask, self.acted = None, {"reason": frame.reason, "action": frame.action}
            case wire.HandEnded() as frame:
                self.ask, self.scores = None, frame.scores
            case wire.TableEnded() as frame:
                self.state, self.ask, self.notice = "over", None, frame.detail
            case wire.Chat() as frame if frame.table == self.table:
                said = {"player": plain_text(frame.player, 100), "text": plain_text(frame.text)}
                self.chat = [*self.chat, said][-MOST_CHAT:]
            case wire.Error() as frame:
                self.notice = frame.message
            case wire.SeekEnded() as frame:
                self.state, self.notice = "over", frame.reason
            case _:
                pass  # presence and lists change nothing here
        return []

    def _take_seats(self, seat: int, players: tuple[wire.PlayerInfo, ...]) -> None:
        self.seat = seat
        self.names = [player.player for player in sorted(players, key=lambda player: player.seat)]

    def _events(self, frame: wire.Events, now: float) -> list[bytes]:
        if self.view is None or frame.hand != self.hand or frame.seq != self.view.seq:
            if self._lost:
                return []
            self._lost = True
            return [wire.encode(wire.Sync(frame.table))]
        if frame.events:
            self.view.observe_all(frame.events)
            self.ask = None
        if frame.ask is not None:
            self._open(frame.ask, now)
        return []

    def _open(self, ask: wire.Ask | None, now: float) -> None:
        self.ask, self.asked_at = ask, now

    def shown(self, now: float) -> Json:
        """What the player's page draws: this seat's view; at the end of the hand also those of the others."""
        view = self.view
        legal = view.legal().tolist() if view is not None and self.ask is not None else []
        return {
            "state": self.state,
            "game": self.game.name,
            "table": self.table,
            "seat": self.seat,
            "names": self.names,
            "view": None if view is None else drawn(view),
            "views": self._views(),
            "legal": [{"action": action, "notation": view.notation(action)} for action in legal] if view else [],
            "ask": None if self.ask is None else self.ask.id,
            "left_ms": self._left_ms(now),
            "scores": self.scores,
            "notice": self.notice,
            "acted": self.acted,
            "chat": self.chat,
        }

    def _views(self) -> dict[int, Json] | None:
        """The views of all seats once the deal is revealed at the end of the hand; None before."""
        if self.view is None or self.scores is None or (record := self.view.record()) is None:
            return None
        state = self.game.replay(*record)
        return {seat: drawn(state.view(seat)) for seat in range(self.game.num_seats)}

    def _left_ms(self, now: float) -> float | None:
        if self.ask is None or self.ask.grant_ms is None:
            return None
        return max(0.0, self.ask.grant_ms + self.ask.bank_ms - 1000 * (now - self.asked_at))
