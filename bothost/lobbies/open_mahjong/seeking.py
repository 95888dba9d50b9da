"""Seeks a seat at open_mahjong: finds or opens a room, or joins the match queue."""

from __future__ import annotations

import msgspec

from bothost import messages as m
from bothost.lobbies.frames import unknown_attribute
from bothost.lobbies.open_mahjong import protocol as wire
from bothost.lobbies.open_mahjong.options import GAME, OpenMahjongAttributes, OpenMahjongOptions, rules_of
from bothost.lobbies.open_mahjong.rooms import WaitingRoom, fits, is_ours
from bothost.lobbies.open_mahjong.session import Session

ELSEWHERE = (
    "您正在对局中", "您正在游戏中", "您已匹配到对局", "当前房间", "已在房间中", "已经处于一个房间中", "已在匹配队列中",
)  # fmt: skip
"""Parts of refusals that say that we play or wait already."""


class Seek(msgspec.Struct):
    """A seat that the host asked for."""

    id: str
    wish: m.Wish
    room: str = ""
    """The room that we are entering."""
    created: bool = False
    queued: bool = False
    choices: list[str] = []
    """Further rooms to try."""


class Seeker:
    """Seeks one seat at a time."""

    def __init__(self, session: Session, options: OpenMahjongOptions) -> None:
        self.seek: Seek | None = None
        self._unwanted = False
        """Whether the lobby opens a room for a seek that was cancelled."""
        self._elsewhere = False
        """Whether the lobby refused us last because we play or wait already."""
        self._session = session
        self._options = options

    def begin(self, item: m.Seek | m.Create | m.Join) -> list[m.Output]:
        wish = m.Wish(GAME, {}, {**item.attributes, "room": item.table}) if isinstance(item, m.Join) else item.wish
        problem = "this lobby has one table at a time" if self.seek is not None else _problem(wish)
        if problem:
            return [m.SeekEnded(item.seek, problem)]
        seek = self.seek = Seek(item.seek, wish)
        if "queue" in wish.attributes:
            seek.queued = True
            return [self._session.send("match/join_queue", queue_type=wish.attributes["queue"])]
        if "room" in wish.attributes:
            return self._enter(seek, str(wish.attributes["room"]).removeprefix("room-"))
        if isinstance(item, m.Create):
            return self._open_room(seek)
        return [self._session.send("room/get_room_list")]

    def _enter(self, seek: Seek, room: str) -> list[m.Output]:
        seek.room = room
        password = str(seek.wish.attributes.get("password", ""))
        return [self._session.send("room/join_room", room_id=room, password=password)]

    def _open_room(self, seek: Seek) -> list[m.Output]:
        """Open a room. The frame needs every member: if one is missing, the lobby ignores us from then on."""
        options, wish = self._options, seek.wish.attributes
        seek.room, seek.created = "", True
        room = self._session.send(
            "room/create_GB_room",
            roomname=str(wish.get("room_name", options.room_name)),
            gameround=wish.get("game_round", options.game_round),
            password=str(wish.get("password", "")),
            roundTimerValue=options.round_timer,
            stepTimerValue=options.step_timer,
            tips=False,
            random_seed=0,
            open_cuohe=False,
            sub_rule="guobiao/standard",
            hepai_limit=seek.wish.rules.get("minimum", 8),
        )
        return [room]

    @property
    def entering(self) -> bool:
        """Whether the lobby has not shown us yet the room that we asked to enter."""
        return self.seek is not None and self.seek.room != ""

    def choose(self, rooms: tuple[wire.Room, ...]) -> list[m.Output]:
        """Enter a room that fits, or open one."""
        seek = self.seek
        if seek is None or seek.queued or seek.room or seek.created:
            return []
        minimum = seek.wish.rules.get("minimum")
        seek.choices = [
            room.id
            for room in rooms
            if fits(room, seek.wish.attributes, room.hepai_limit if minimum is None else minimum)
        ]
        return self._next_choice(seek, "no room fits")

    def _next_choice(self, seek: Seek, reason: str) -> list[m.Output]:
        """Try the next room, because the last one or the queue refused us."""
        if seek.choices:
            return self._enter(seek, seek.choices.pop(0))
        wish = seek.wish.attributes
        fixed = seek.created or seek.queued or "room" in wish
        if not fixed and wish.get("create", self._options.create):
            return self._open_room(seek)
        return self.end(reason)

    def entered(self, info: wire.Room) -> tuple[WaitingRoom | None, list[m.Output]]:
        """The lobby shows a room in which we sit. Returns it if it answers the seek."""
        seek = self.seek
        if self._unwanted:
            self._unwanted = False
            return None, [self._session.send("room/leave_room", room_id=info.id)]
        if seek is None or seek.queued or not (seek.created or seek.room == info.id):
            return None, []
        if not is_ours(info):
            left = self._session.send("room/leave_room", room_id=info.id)
            return None, [left, *self._next_choice(seek, "the room plays other rules")]
        self.seek, self._elsewhere = None, False
        public = {key: value for key, value in seek.wish.attributes.items() if key != "password"}
        room = WaitingRoom(self._session, self._options, info, public)
        return room, room.enter(seek.id)

    def refused(self, reason: str) -> list[m.Output]:
        """The lobby refuses something. Its message does not say what.

        If it says twice that we play or wait already, it started something without telling us. A login brings us there.
        """
        seek, unwanted, self._unwanted = self.seek, self._unwanted, False
        if unwanted or seek is None or not (seek.room or seek.created or seek.queued):
            return []
        before, self._elsewhere = self._elsewhere, any(part in reason for part in ELSEWHERE)
        if before and self._elsewhere:
            self._elsewhere = False
            return [*self.end(reason), *self._session.reconnect("the lobby says that we play or wait already")]
        return self._next_choice(seek, reason)

    def cancel(self, item: m.CancelSeek) -> list[m.Output]:
        seek = self.seek
        if seek is None or seek.id != item.seek:
            return []
        self.seek, self._unwanted = None, seek.created
        if seek.queued:
            return [self._session.send("match/leave_queue")]
        return [self._session.send("room/leave_room", room_id=seek.room)] if seek.room else []

    def end(self, reason: str) -> list[m.Output]:
        """End the seek without a seat."""
        seek, self.seek = self.seek, None
        return [] if seek is None else [m.SeekEnded(seek.id, reason)]

    def lost(self) -> list[m.Output]:
        """End the seek, because the connection is lost. Rooms and queues drop us."""
        self._unwanted = False
        return self.end("disconnected")

    def take(self) -> str | None:
        """A game started. Returns the id of the seek that it answers."""
        seek, self.seek = self.seek, None
        return None if seek is None else seek.id


def table_info(room: wire.Room) -> m.TableInfo:
    """What a listing shows of a room."""
    attributes = {
        "room_name": room.room_name,
        "password": room.has_password,
        "game_round": room.game_round,
        "round_timer": room.round_timer,
        "step_timer": room.step_timer,
        "running": room.is_game_running,
    }
    free = 0 if room.is_game_running else max(room.max_player - len(room.player_list), 0)
    return m.TableInfo(f"room-{room.id}", GAME, rules_of(room.hepai_limit), attributes, free)


def _problem(wish: m.Wish) -> str:
    """Why this lobby cannot fulfil the wish; empty if it can."""
    rules = {key: value for key, value in wish.rules.items() if key != "minimum"}
    if wish.game != GAME or rules not in ({}, {"preset": "open-mahjong"}):
        return 'this lobby plays mahjong with rules = { preset = "open-mahjong" } only'
    if problem := unknown_attribute(wish.attributes, OpenMahjongAttributes):
        return problem
    robots, rounds = wish.attributes.get("robots", 0), wish.attributes.get("game_round", 1)
    if type(robots) is not int or not 0 <= robots <= 3:
        return f"robots must be 0 to 3, not {robots!r}"
    if type(rounds) is not int or not 1 <= rounds <= 4:
        return f"game_round must be 1 to 4, not {rounds!r}"
    return ""
