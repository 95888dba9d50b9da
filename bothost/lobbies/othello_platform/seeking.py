"""Seeks a game at othello_platform: in the matchmaking queue, in a room, or against the lobby's own player."""

from __future__ import annotations

from typing import get_args

import msgspec

from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.frames import BadFrame, unknown_attribute
from bothost.lobbies.othello_platform import protocol as wire
from bothost.lobbies.othello_platform.options import QUEUE, Mode, OthelloPlatformAttributes, OthelloPlatformOptions
from bothost.lobbies.othello_platform.rest import Call
from bothost.lobbies.othello_platform.rooms import WaitingRoom, fits
from bothost.lobbies.othello_platform.session import Session

QUEUE_S = 90.0
"""The lobby gives up after 60 s. If it does not report that, we give up after this time."""
CHOICES = 3
"""Rooms to try before we open one. Some listed rooms were left long ago."""


class Seek(msgspec.Struct):
    """A seat that the host asked for."""

    id: str
    attributes: m.Json
    room: str = ""
    """The room that we are entering; empty: none yet."""
    queued: bool = False
    created: bool = False
    """Whether the room is our own."""
    choices: list[str] = []
    """Further rooms to try."""


class Seeker:
    """Seeks one seat at a time."""

    def __init__(self, session: Session, account: Account, options: OthelloPlatformOptions) -> None:
        self.seek: Seek | None = None
        self._session = session
        self._account = account
        self._options = options

    @property
    def entering(self) -> bool:
        """Whether an error about a room would be about the room that we are entering."""
        return self.seek is not None and bool(self.seek.room)

    def begin(self, item: m.Seek | m.Create | m.Join) -> list[m.Output]:
        attributes = item.attributes if isinstance(item, m.Join) else item.wish.attributes
        if problem := unknown_attribute(attributes, OthelloPlatformAttributes):
            return [m.SeekEnded(item.seek, problem)]
        if isinstance(item, m.Join):
            self.seek = Seek(item.seek, item.attributes)
            return self._enter(self.seek, item.table.removeprefix("room-"))
        wish = item.wish
        if wish.game != "othello" or wish.rules not in ({}, {"preset": "standard"}):
            return [m.SeekEnded(item.seek, "this lobby plays othello by the standard rules only")]
        asked = wish.attributes.get("mode", "match")
        mode = "create" if isinstance(item, m.Create) and asked != "ai" else asked
        if mode not in get_args(Mode):
            return [m.SeekEnded(item.seek, f"mode must be match, room, create or ai, not {mode!r}")]
        seek = self.seek = Seek(item.seek, wish.attributes)
        if mode in ("create", "ai"):
            return [self._create(seek, ai=mode == "ai")]
        if mode == "room":
            return [self._session.rest.list_rooms("rooms", seek.id)]
        seek.queued = True
        return [self._session.send("match_join"), m.SetTimer(QUEUE, QUEUE_S)]

    def answered(self, call: Call, result: m.HttpResult) -> list[m.Output]:
        """Handle the answer to a call about rooms."""
        seek = self.seek
        good = result.status in (200, 201)
        try:
            if seek is None or seek.id != call.about:  # close a room that was made for an earlier seek
                unused = call.purpose == "create" and good
                return [self._session.rest.quit_room(wire.room(result.body).id)] if unused else []
            if not good:
                return self.next_room(wire.problem(result.body) or f"HTTP {result.status}")
            if call.purpose == "create":
                return self._enter(seek, wire.room(result.body).id)
            if call.purpose == "rooms":
                return self._choose(seek, wire.room_list(result.body))
        except BadFrame as error:
            return self.end(f"{call.purpose}: {error}") if seek is not None and seek.id == call.about else []
        return []  # entered: the room's state follows

    def entered(self, frame: wire.RoomState) -> tuple[WaitingRoom | None, list[m.Output]]:
        """The lobby shows a new room in which we sit. Returns it if it answers the seek."""
        seek = self.seek
        if frame.room_id in self._session.rest.left or (seek is not None and seek.room not in ("", frame.room_id)):
            return None, []
        self.seek = None
        attributes, ours = (seek.attributes, seek.created) if seek is not None else ({}, False)
        room = WaitingRoom(self._session, self._options, frame.room_id, attributes, ours=ours)
        return room, [m.CancelTimer(QUEUE), *room.enter(frame, seek.id if seek is not None else None)]

    def take(self) -> Seek | None:
        """A game started. Returns the seek that it answers."""
        seek, self.seek = self.seek, None
        return seek

    def next_room(self, reason: str) -> list[m.Output]:
        """A room refused us. Try another, then open our own."""
        seek = self.seek
        assert seek is not None
        if seek.choices:
            return self._enter(seek, seek.choices.pop(0))
        if seek.attributes.get("mode") == "room" and not seek.created:
            return [self._create(seek, ai=False)]
        return self.end(reason)

    def cancel(self, item: m.CancelSeek) -> list[m.Output]:
        seek = self.seek
        if seek is None or seek.id != item.seek:
            return []
        out: list[m.Output] = [self._session.send("match_leave")] if seek.queued else []
        if seek.room:
            out.append(self._session.rest.quit_room(seek.room))
        return out + self.end("cancelled")

    def end(self, reason: str) -> list[m.Output]:
        """End the seek without a seat."""
        seek, self.seek = self.seek, None
        return [] if seek is None else [m.CancelTimer(QUEUE), m.SeekEnded(seek.id, reason)]

    def queue_ended(self, reason: str) -> list[m.Output]:
        """The lobby's queue ended without a game."""
        return self.end(reason) if self.seek is not None and self.seek.queued else []

    def queue_timed_out(self) -> list[m.Output]:
        """Give up if the lobby's queue does not answer."""
        ended = self.queue_ended(f"the lobby's queue did not answer within {QUEUE_S:g} s")
        return [self._session.send("match_leave"), *ended] if ended else []

    def _choose(self, seek: Seek, rooms: list[wire.Room]) -> list[m.Output]:
        left = self._session.rest.left
        fitting = [room.id for room in rooms if fits(room, seek.attributes) and room.id not in left]
        seek.choices = fitting[:CHOICES]
        return self.next_room("no room fits")

    def _create(self, seek: Seek, *, ai: bool) -> m.Output:
        wish = seek.attributes
        seek.created = True
        body: m.Json = {"name": str(wish.get("name", self._account.name))[:40], "mode": "human_vs_human"}
        if ai:
            body |= {"mode": "human_vs_ai", "aiLevel": wish.get("ai_level", 3)}
        elif wish.get("password"):
            body["password"] = str(wish["password"])
        return self._session.rest.create_room(body, seek.id)

    def _enter(self, seek: Seek, room: str) -> list[m.Output]:
        seek.room = room
        if room in self._session.rest.left:
            self._session.rest.left.remove(room)
        if not room.isascii() or not room.isdigit():
            return self.end(f"no such room: {room[:40]!r}")
        password = seek.attributes.get("password")
        if password:
            return [self._session.rest.enter_room(room, str(password), seek.id)]
        return [self._session.send("room_join", roomId=wire.number(room))]
