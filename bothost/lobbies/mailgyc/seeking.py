"""Takes and leaves seats at mailgyc."""

from __future__ import annotations

from bothost import messages as m
from bothost.lobbies.frames import unknown_attribute
from bothost.lobbies.mailgyc import protocol as wire
from bothost.lobbies.mailgyc.hand import RULES, uids_of
from bothost.lobbies.mailgyc.options import READY, REJOIN, STALL, MailgycAttributes, MailgycOptions
from bothost.lobbies.mailgyc.session import REJOIN_S, Session


class Seeker:
    """Seeks one seat at a time, after we have left the last one."""

    def __init__(self, session: Session, options: MailgycOptions) -> None:
        self.leaving = False
        """Whether frames may still be about a room that we left."""
        self._session = session
        self._options = options
        self._seek: m.Seek | None = None
        self._asked = False
        """Whether we asked the lobby for the seat."""
        self._searched_self = False
        """Whether we logged in again to find out which room the lobby keeps for us."""

    @property
    def level(self) -> int:
        """The level of the seek."""
        wanted = {} if self._seek is None else self._seek.wish.attributes
        return wanted.get("level", self._options.level)  # type: ignore[no-any-return]

    def begin(self, seek: m.Seek, leave: list[m.Output]) -> list[m.Output]:
        """Start a seek. ``leave``: the outputs that give up our present seat."""
        self._seek = seek
        return leave if self.leaving else [*leave, *self._ask()]

    def problem(self, wish: m.Wish) -> str:
        """Why we cannot seek this now; empty if we can."""
        levels = self._session.levels
        level, room = wish.attributes.get("level", self._options.level), wish.attributes.get("room", -1)
        if wish.game != "doudizhu" or wish.rules not in ({}, RULES):
            return 'this lobby plays doudizhu with rules = { preset = "mailgyc" } only'
        if problem := unknown_attribute(wish.attributes, MailgycAttributes):
            return problem
        if not isinstance(level, int) or (levels and level not in levels):
            return f"level {level!r} does not exist; known: {', '.join(map(str, sorted(levels)))}"
        if not str(room).removeprefix("-").isdecimal():
            return f"room must be a number, not {room!r}"
        return "" if self._seek is None else "another seek is still open"

    def _ask(self) -> list[m.Output]:
        if self._seek is None:
            return []
        self._asked = True
        room = int(self._seek.wish.attributes.get("room", -1))
        asked = self._session.send(wire.JOIN, room=room, level=self.level)
        # A player who was here before gets no answer to the first request for a room by its number.
        return [asked] if room == -1 else [asked, m.SetTimer(REJOIN, REJOIN_S)]

    def ask_again(self) -> list[m.Output]:
        """Repeat the request, if it has no answer."""
        return self._ask() if self._asked else []

    def cancel(self, item: m.CancelSeek) -> list[m.Output]:
        if self._seek is None or self._seek.seek != item.seek:
            return []
        asked, self._seek, self._asked = self._asked, None, False
        return self.go_away() if asked else []

    def go_away(self) -> list[m.Output]:
        """Leave our room. The lobby does not answer that: its list of rooms shows that no more of the room can come."""
        self.leaving = True
        cancelled = (m.CancelTimer(READY), m.CancelTimer(STALL))
        return [*cancelled, self._session.send(wire.LEAVE), self._session.send(wire.ROOMS)]

    def gone(self) -> list[m.Output]:
        """We have left the room: start the waiting seek."""
        self.leaving = False
        return self._ask()

    def seated(self, frame: wire.Joined) -> tuple[str | None, list[m.Output]]:
        """The lobby shows a room. Returns our seek if the room answers it, otherwise what to do.

        If the room that we asked for does not exist, the lobby seats us in another.
        """
        seek = self._seek
        if self.leaving or seek is None or not self._asked or self._session.uid not in uids_of(frame.players):
            return None, []
        wanted = int(seek.wish.attributes.get("room", -1))
        if wanted not in (-1, frame.room.id):
            self._seek, self._asked = None, False
            ended = m.SeekEnded(seek.seek, f"there is no free room {wanted}: the lobby chose {frame.room.id}")
            return None, [*self.go_away(), ended]
        return seek.seek, []

    def found(self) -> None:
        """The seek found its seat."""
        self._seek, self._asked, self._searched_self = None, False, False

    def refused(self, reason: str) -> list[m.Output]:
        """The lobby refuses something. Its message does not say what."""
        seek = self._seek
        if seek is None or not self._asked:
            return [m.Notice(f"the lobby says: {reason}", "warning")]
        self._seek, self._asked = None, False
        out: list[m.Output] = [m.SeekEnded(seek.seek, reason)]
        if believes_we_sit(reason) and not self._searched_self:
            self._searched_self = True
            out += self._session.reconnect("the lobby keeps a seat for us: log in again to find out where")
        return out

    def end(self) -> list[m.Output]:
        """End the seek, because the connection was lost."""
        seek, self._seek, self._asked, self.leaving = self._seek, None, False, False
        return [] if seek is None else [m.SeekEnded(seek.seek, "disconnected")]


def believes_we_sit(reason: str) -> bool:
    """Whether the lobby refuses a seat because it believes that we sit and are connected already."""
    return reason == "TURN ERROR" or "STATE" in reason
