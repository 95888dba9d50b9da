"""A room at open_mahjong where we wait for a game."""

from __future__ import annotations

from typing import Literal

from bothost import messages as m
from bothost.lobbies.open_mahjong import protocol as wire
from bothost.lobbies.open_mahjong.options import BEGIN, GAME, LOOK, WAIT, OpenMahjongOptions, rules_of
from bothost.lobbies.open_mahjong.session import Session

REPEAT_S = 15.0
"""Say ready or start again after this time if no game started. The lobby answers ready by showing the room."""


class WaitingRoom:
    """Does what is needed to start a game: adds robots, says ready, starts."""

    def __init__(self, session: Session, options: OpenMahjongOptions, info: wire.Room, attributes: m.Json) -> None:
        self.name = f"room-{info.id}"
        self.info = info
        self.rules = rules_of(info.hepai_limit)
        self.attributes = attributes
        """Attributes of the wish, without its password."""
        self.over = False
        self._session = session
        self._options = options
        self._unshown = False
        """Whether a list had news of this room. It may have overtaken the frame that shows them to us."""
        self._unanswered = False
        """Whether we said ready, and the lobby has not shown us the room since."""
        self._robots_asked = -1
        """The number of players in the room when we last asked for a robot."""

    def enter(self, seek: str) -> list[m.Output]:
        """We have taken a seat."""
        info = self.info
        players = tuple(m.PlayerInfo(str(user), None, "", wire.is_robot(user)) for user in info.player_list)
        attributes = {**self.attributes, "room": info.id, "room_name": info.room_name}
        out: list[m.Output] = [m.Seated(self.name, GAME, self.rules, None, players, attributes, seek)]
        if self._options.wait_s > 0:
            out.append(m.SetTimer(WAIT, self._options.wait_s))
        return out + self._prepare()

    def seated(self) -> m.Seated:
        """Report that we still sit here."""
        return m.Seated(self.name, GAME, self.rules, None, (), self.attributes)

    def shown(self, info: wire.Room) -> list[m.Output]:
        """Handle a change of the room."""
        if self._session.user in info.player_list:
            self.info, self._unshown, self._unanswered = info, False, False
            return self._prepare()
        return self.removed()

    def removed(self) -> list[m.Output]:
        """The host of the room has removed us."""
        self.over = True
        return [*_stopped(), m.TableEnded(self.name, "kicked")]

    def _prepare(self) -> list[m.Output]:
        info, user = self.info, self._session.user
        if info.is_game_running:
            return []
        if info.host_user_id != user:
            return [m.SetTimer(BEGIN, REPEAT_S if user in info.ready_list else self._options.ready_after_s)]
        look: list[m.Output] = [m.SetTimer(LOOK, self._options.look_s)] if self._options.look_s > 0 else []
        present = len(info.player_list)
        robots = sum(map(wire.is_robot, info.player_list))
        if robots < self.attributes.get("robots", self._options.robots) and present < info.max_player:
            if self._robots_asked == present:
                return look
            self._robots_asked = present
            return [*look, self._session.send("room/add_bot", room_id=info.id)]
        return [*look, m.SetTimer(BEGIN, self._options.ready_after_s)] if _can_start(info) else look

    def begin(self) -> list[m.Output]:
        """Say ready, or start the game if the room is ours."""
        info = self.info
        if info.host_user_id != self._session.user:
            self._unanswered = True
            frame = self._session.send("room/set_ready", room_id=info.id, ready=True)
        elif _can_start(info):
            frame = self._session.send("room/start_game", room_id=info.id)
        else:
            return []
        return [frame, m.SetTimer(BEGIN, REPEAT_S)]

    def remind(self) -> list[m.Output]:
        """Say ready or start again. If the lobby did not answer the last ready, it has forgotten us."""
        return self._session.deaf() if self._unanswered else self.begin()

    def look(self) -> list[m.Output]:
        """Ask for the rooms, if ours is ours to start. The other players say ready again instead."""
        if self.info.host_user_id != self._session.user:
            return []
        return [self._session.send("room/get_room_list"), m.SetTimer(LOOK, self._options.look_s)]

    def compare(self, rooms: tuple[wire.Room, ...]) -> list[m.Output]:
        """Leave if another player waits alone in an older room. Otherwise both would wait for ever.

        If our room has changed and the lobby has not shown us that, it has forgotten us.
        """
        mine = self.info
        if any(room.id == mine.id and _state(room) != _state(mine) for room in rooms):
            if self._unshown:
                return self._session.deaf()
            self._unshown = True
            return []
        private = not self.attributes.keys().isdisjoint(("room", "password"))
        if private or mine.player_list != (self._session.user,):
            return []
        fitting = [room for room in rooms if room.id != mine.id and fits(room, self.attributes, mine.hepai_limit)]
        if not any((-len(room.player_list), _order(room)) < (-1, _order(mine)) for room in fitting):
            return []
        return self.leave("aborted", "another player waits in another room")

    def leave(self, reason: Literal["left", "aborted"], detail: str = "") -> list[m.Output]:
        self.over = True
        return leave_room(self._session, self.info.id, m.TableEnded(self.name, reason, detail=detail))


def leave_room(session: Session, room: str, end: m.TableEnded) -> list[m.Output]:
    """Give up the seat."""
    return [*_stopped(), session.send("room/leave_room", room_id=room), end]


def _stopped() -> list[m.Output]:
    return [m.CancelTimer(name) for name in (BEGIN, WAIT, LOOK)]


def is_ours(room: wire.Room) -> bool:
    """Whether we support the room's rules."""
    standard = (room.room_rule, room.sub_rule, room.max_player) == ("guobiao", "guobiao/standard", 4)
    return standard and room.use_flowers


def fits(room: wire.Room, wish: m.Json, minimum: int) -> bool:
    """Whether a room fits the attributes of a wish."""
    if not is_ours(room) or room.is_game_running or len(room.player_list) >= room.max_player:
        return False
    if room.has_password != bool(wish.get("password")) or str(wish.get("room_name", room.room_name)) != room.room_name:
        return False
    return room.hepai_limit == minimum


def _state(room: wire.Room) -> tuple[object, ...]:
    """What the lobby shows to all who sit in a room when it changes."""
    return room.player_list, room.ready_list, room.is_game_running


def _order(room: wire.Room) -> int:
    """A sort key: rooms in the order in which they were opened."""
    return int(room.id) if room.id.isdecimal() else 0


def _can_start(room: wire.Room) -> bool:
    """Whether all seats are taken, and all people but the host are ready."""
    waiting = set(room.player_list) - set(room.ready_list) - {room.host_user_id}
    return len(room.player_list) == room.max_player and all(map(wire.is_robot, waiting))
