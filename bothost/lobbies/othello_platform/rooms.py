"""A room at othello_platform where we wait for a game to begin."""

from __future__ import annotations

from typing import Literal

from bothost import messages as m
from bothost.lobbies.othello_platform import protocol as wire
from bothost.lobbies.othello_platform.options import LOOK, ROOM, OthelloPlatformOptions
from bothost.lobbies.othello_platform.session import Session

UNKNOWN = "unknown"
"""The opponent in a room that the lobby has not shown since a reconnect."""


class WaitingRoom:
    """Does what is needed to start a game: says ready, starts, and leaves for another room if no opponent comes."""

    def __init__(
        self, session: Session, options: OthelloPlatformOptions, room: str, wish: m.Json, *, ours: bool
    ) -> None:
        """``ours``: whether we opened the room."""
        self.id = room
        self.name = f"room-{room}"
        self.wish = wish
        """Attributes of the wish."""
        self.over = False
        self._session = session
        self._options = options
        self._ours = ours
        self._opponent: str | None = None
        """The other player's id; None: we are alone."""
        self._said_ready = False
        self._said_start = False

    @property
    def attributes(self) -> m.Json:
        """The wish without its secrets."""
        return public(self.wish)

    @property
    def number(self) -> int | str:
        """The room's id as the lobby expects it."""
        return wire.number(self.id)

    def enter(self, frame: wire.RoomState, seek: str | None) -> list[m.Output]:
        """We have taken a seat."""
        seated = m.Seated(self.name, "othello", {}, None, players(frame), self.attributes, seek)
        return [m.SetTimer(ROOM, self._options.wait_s), seated, *self._look_later(), *self.shown(frame)]

    def enter_again(self) -> list[m.Output]:
        """Enter the room again after a reconnect. The answer shows whether the lobby kept our seat."""
        self._opponent = UNKNOWN
        seated = m.Seated(self.name, "othello", {}, None, (), self.attributes)
        return [seated, self.ask(), m.SetTimer(ROOM, self._options.start_s), *self._look_later()]

    def ask(self) -> m.SendFrame:
        """Ask for the room's state."""
        return self._session.send("room_join", roomId=self.number)

    def shown(self, frame: wire.RoomState) -> list[m.Output]:
        """Handle the room's state."""
        out: list[m.Output] = []
        opponent = frame.white_id if frame.black_id == self._session.me else frame.black_id
        if opponent != self._opponent:
            self._opponent, self._said_ready, self._said_start = opponent, False, False
            waits = opponent is None and self._ours
            out.append(m.SetTimer(ROOM, self._options.wait_s if waits else self._options.start_s))
        mine = frame.black_ready if frame.black_id == self._session.me else frame.white_ready
        if opponent is not None and not mine and not self._said_ready:
            self._said_ready = True
            out.append(self.ready())
        both = frame.black_ready and frame.white_ready
        if both and frame.owner_id == self._session.me and not self._said_start:
            self._said_start = True
            out.append(self.start())
        elif not both:
            self._said_start = False
        return out

    def ready(self) -> m.SendFrame:
        return self._session.send("room_ready", roomId=self.number, ready=True)

    def start(self) -> m.SendFrame:
        return self._session.send("room_start", roomId=self.number)

    def look(self) -> list[m.Output]:
        """If we are still alone, list the other rooms."""
        alone = self._opponent is None
        return [*([self._session.rest.list_rooms("look", self.id)] if alone else []), *self._look_later()]

    def _look_later(self) -> list[m.Output]:
        looks = self._options.look_s > 0 and self.wish.get("mode") == "room"
        return [m.SetTimer(LOOK, self._options.look_s)] if looks else []

    def compare(self, rooms: list[wire.Room]) -> list[m.Output]:
        """Leave if another player waits alone in a newer room. Otherwise both would wait for ever.

        The owner of the newest room is most likely to be online.
        """
        if self._opponent is not None:
            return []
        others = [room for room in rooms if fits(room, self.wish) and room.id not in self._session.rest.left]
        if not any(_age(room.id) > _age(self.id) for room in others):
            return []
        return self.leave("aborted", "another player waits in a newer room")

    def leave(self, reason: Literal["left", "aborted"], detail: str = "") -> list[m.Output]:
        """Give up the seat."""
        return [self._session.rest.quit_room(self.id), *self.end(reason, detail)]

    def end(self, reason: Literal["left", "aborted"], detail: str) -> list[m.Output]:
        """Report that we no longer sit in the room."""
        self.over = True
        return [m.CancelTimer(ROOM), m.CancelTimer(LOOK), m.TableEnded(self.name, reason, detail=detail)]


def fits(room: wire.Room, wish: m.Json) -> bool:
    """Whether a room fits the attributes of a wish."""
    if room.status != "waiting" or room.mode != "human_vs_human":
        return False
    return room.has_password == bool(wish.get("password")) and str(wish.get("name", room.name)) == room.name


def public(wish: m.Json) -> m.Json:
    """The attributes of a wish without its secrets."""
    return {key: value for key, value in wish.items() if key != "password"}


def players(frame: wire.Players) -> tuple[m.PlayerInfo, ...]:
    """Black and white, if they are known. The lobby's own player has no id and is left out."""
    seats = ((frame.black_id, frame.black_name), (frame.white_id, frame.white_name))
    return tuple(m.PlayerInfo(who, seat, name or "") for seat, (who, name) in enumerate(seats) if who is not None)


def table_info(room: wire.Room) -> m.TableInfo:
    """What a listing shows of a room."""
    attributes = {"name": room.name, "mode": room.mode, "ai_level": room.ai_level, "password": room.has_password}
    return m.TableInfo(f"room-{room.id}", "othello", {}, attributes, 1)


def _age(room: str) -> int:
    """A sort key: rooms in the order in which they were opened."""
    return int(room) if room.isascii() and room.isdecimal() else 0
