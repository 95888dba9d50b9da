"""Waiting for a game at open_mahjong: finding, opening and filling a room; the match queue."""

from __future__ import annotations

import msgspec

from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.open_mahjong import protocol as wire
from bothost.lobbies.open_mahjong.session import BEGIN, GAME, LOOK, WAIT, OpenMahjongOptions, OpenMahjongSession, Table

AGAIN_S = 15.0
"""Saying ready, or starting, is repeated after so long where nothing came of it."""
_KEYS = frozenset(("room", "room_name", "password", "robots", "game_round", "create", "queue"))


class Seeking(msgspec.Struct):
    """A seat that the host asked for."""

    id: str
    attributes: m.Json
    rules: m.Json
    room: str = ""
    """The room that we are entering."""
    created: bool = False
    queued: bool = False
    choices: list[str] = []
    """Further rooms to try."""


class OpenMahjongRooms(OpenMahjongSession):
    """One seat is looked for at a time."""

    def __init__(self, account: Account, options: OpenMahjongOptions) -> None:
        super().__init__(account, options)
        self._seek: Seeking | None = None
        self._listing = False

    def _session_lost(self) -> list[m.Output]:
        """Rooms and queues forget who disconnects; a game does not."""
        out = self._end_seek("disconnected")
        self._listing = False
        if self._table is not None:
            self._table.ask = None
        return out

    def _end_seek(self, reason: str) -> list[m.Output]:
        seek, self._seek = self._seek, None
        return [] if seek is None else [m.SeekEnded(seek.id, reason)]

    # ------------------------------------------------------------------------------------------------------ seeking

    def _begin_seek(self, item: m.Seek | m.Create | m.Join) -> list[m.Output]:
        wish = m.Wish(GAME, {}, {**item.attributes, "room": item.table}) if isinstance(item, m.Join) else item.wish
        if self._stage != "ready":
            return [m.SeekEnded(item.seek, "not connected")]
        problem = _unfit(wish)
        if self._table is not None or self._seek is not None:
            problem = "this lobby has one table at a time"
        if problem:
            return [m.SeekEnded(item.seek, problem)]
        seek = self._seek = Seeking(item.seek, wish.attributes, wish.rules)
        if "queue" in wish.attributes:
            seek.queued = True
            return [self._send("match/join_queue", queue_type=wish.attributes["queue"])]
        if "room" in wish.attributes:
            return self._enter(seek, str(wish.attributes["room"]).removeprefix("room-"))
        if isinstance(item, m.Create):
            return self._open_room(seek)
        return [self._send("room/get_room_list")]

    def _enter(self, seek: Seeking, room: str) -> list[m.Output]:
        seek.room = room
        return [self._send("room/join_room", room_id=room, password=seek.attributes.get("password", ""))]

    def _open_room(self, seek: Seeking) -> list[m.Output]:
        """Every member is sent: the lobby ends its loop for us where one is missing."""
        options, wish = self.options, seek.attributes
        seek.room, seek.created = "", True
        room = self._send(
            "room/create_GB_room",
            roomname=wish.get("room_name", options.room_name),
            gameround=wish.get("game_round", options.game_round),
            password=wish.get("password", ""),
            roundTimerValue=options.round_timer,
            stepTimerValue=options.step_timer,
            tips=False,
            random_seed=0,
            open_cuohe=False,
            sub_rule="guobiao/standard",
            hepai_limit=seek.rules.get("minimum", 8),
        )
        return [room]

    def _next_choice(self, reason: str) -> list[m.Output]:
        """The room, or the queue, did not take us."""
        seek = self._seek
        assert seek is not None
        if seek.choices:
            return self._enter(seek, seek.choices.pop(0))
        fixed = seek.created or seek.queued or "room" in seek.attributes
        if not fixed and seek.attributes.get("create", self.options.create):
            return self._open_room(seek)
        return self._end_seek(reason)

    def _cancel(self, item: m.CancelSeek) -> list[m.Output]:
        seek = self._seek
        if seek is None or seek.id != item.seek:
            return []
        self._seek = None
        if seek.queued:
            return [self._send("match/leave_queue")]
        return [self._send("room/leave_room", room_id=seek.room)] if seek.room else []

    # -------------------------------------------------------------------------------------------------------- rooms

    def _rooms(self, frame: wire.RoomList) -> list[m.Output]:
        out: list[m.Output] = []
        if self._listing:
            self._listing = False
            out.append(m.Tables(tuple(_info(room) for room in frame.room_list if _is_ours(room))))
        seek, table = self._seek, self._table
        if table is not None:
            return out + self._compare(table, frame.room_list)
        if seek is None or seek.queued or seek.room or seek.created:
            return out
        seek.choices = [
            room.id
            for room in frame.room_list
            if _fits(room, seek.attributes, seek.rules.get("minimum", room.hepai_limit))
        ]
        return out + self._next_choice("no room fits")

    def _compare(self, table: Table, rooms: tuple[wire.Room, ...]) -> list[m.Output]:
        """Two who each wait in a room of their own would wait for ever: the one in the later room moves."""
        mine = table.picture
        if mine is None or not self._is_alone(table):
            return []
        fitting = [room for room in rooms if room.id != mine.id and _fits(room, table.attributes, mine.hepai_limit)]
        if not any((-len(room.player_list), _order(room)) < (-1, _order(mine)) for room in fitting):
            return []
        return self._leave_room(table, m.TableEnded(table.name, "aborted", detail="somebody waits in another room"))

    def _is_alone(self, table: Table) -> bool:
        room = table.picture
        return not table.gamestate and room is not None and room.player_list == (self._user,)

    def _look(self) -> list[m.Output]:
        if self._table is None or not self._is_alone(self._table):
            return []
        return [self._send("room/get_room_list"), m.SetTimer(LOOK, self.options.look_s)]

    def _room_told(self, frame: wire.RoomTold) -> list[m.Output]:
        room, table, seek = frame.room_info, self._table, self._seek
        if not frame.success or room is None:
            return self._tips(wire.Tips(frame.success, frame.message))
        inside = self._user in room.player_list
        if table is not None and table.room == room.id:
            if table.gamestate:
                return []
            if not inside:
                self._table = None
                return [m.CancelTimer(BEGIN), m.CancelTimer(WAIT), m.TableEnded(table.name, "kicked")]
            table.picture = room
            return self._prepare(table, room)
        if not inside or table is not None or seek is None or seek.queued:
            return []
        if not seek.created and seek.room != room.id:
            return []
        if not _is_ours(room):
            return [self._send("room/leave_room", room_id=room.id), *self._next_choice("the room plays other rules")]
        self._seek = None
        public = {key: value for key, value in seek.attributes.items() if key != "password"}
        table = self._table = Table(f"room-{room.id}", room.id, rules_of(room.hepai_limit), public)
        table.picture = room
        players = tuple(m.PlayerInfo(str(user), None, "", user < wire.ROBOTS_BELOW) for user in room.player_list)
        attributes = {**public, "room": room.id, "room_name": room.room_name}
        out: list[m.Output] = [m.Seated(table.name, GAME, table.rules, None, players, attributes, seek.id)]
        if self.options.wait_s > 0:
            out.append(m.SetTimer(WAIT, self.options.wait_s))
        return out + self._prepare(table, room)

    def _prepare(self, table: Table, room: wire.Room) -> list[m.Output]:
        """Do our part that a game begins."""
        if room.is_game_running:
            return []
        if room.host_user_id != self._user:
            return [] if self._user in room.ready_list else [m.SetTimer(BEGIN, self.options.ready_after_s)]
        present = len(room.player_list)
        robots = sum(user < wire.ROBOTS_BELOW for user in room.player_list)
        if robots < table.attributes.get("robots", self.options.robots) and present < room.max_player:
            if table.robots_asked == present:
                return []
            table.robots_asked = present
            return [self._send("room/add_bot", room_id=room.id)]
        if (
            self._is_alone(table)
            and self.options.look_s > 0
            and table.attributes.keys().isdisjoint(("room", "password"))
        ):
            return [m.SetTimer(LOOK, self.options.look_s)]
        return [m.SetTimer(BEGIN, self.options.ready_after_s)] if _is_ready(room) else []

    def _do_our_part(self) -> list[m.Output]:
        table = self._table
        if table is None or table.picture is None or table.gamestate:
            return []
        room = table.picture
        if room.host_user_id != self._user:
            said = self._send("room/set_ready", room_id=room.id, ready=True)
        elif _is_ready(room):
            said = self._send("room/start_game", room_id=room.id)
        else:
            return []
        return [said, m.SetTimer(BEGIN, AGAIN_S)]

    def _give_up_waiting(self) -> list[m.Output]:
        table = self._table
        if table is None or table.gamestate:
            return []
        return self._leave_room(table, m.TableEnded(table.name, "aborted", detail="no game begins"))

    def _leave_room(self, table: Table, end: m.TableEnded) -> list[m.Output]:
        self._table = None
        return [
            m.CancelTimer(BEGIN),
            m.CancelTimer(WAIT),
            m.CancelTimer(LOOK),
            self._send("room/leave_room", room_id=table.room),
            end,
        ]

    def _tips(self, frame: wire.Tips) -> list[m.Output]:
        """These say nothing of what they answer: at most one thing is asked for at a time."""
        if self._stage == "login":
            return [] if frame.success else self._refuse(frame.message)
        if frame.success:
            return []
        if self._stage == "returning":
            return [*self._welcome(back=True), m.Notice(f"no way back to our game: {frame.message}", "warning")]
        if self._seek is not None and (self._seek.room or self._seek.created or self._seek.queued):
            return self._next_choice(frame.message)
        return [m.Notice(f"the lobby says: {frame.message}", "warning")]


def rules_of(minimum: int) -> m.Json:
    """Canonical rules of a room."""
    rules: m.Json = {"preset": "open-mahjong"}
    return rules if minimum == 8 else {**rules, "minimum": minimum}


def _unfit(wish: m.Wish) -> str:
    """Why this lobby cannot fulfil the wish."""
    rules = {key: value for key, value in wish.rules.items() if key != "minimum"}
    if wish.game != GAME or rules not in ({}, {"preset": "open-mahjong"}):
        return 'this lobby plays mahjong with rules = { preset = "open-mahjong" } only'
    unknown = set(wish.attributes) - _KEYS
    if unknown:
        return f"a wish has no attribute {min(unknown)!r}: there are {', '.join(sorted(_KEYS))}"
    robots, rounds = wish.attributes.get("robots", 0), wish.attributes.get("game_round", 1)
    if type(robots) is not int or not 0 <= robots <= 3:
        return f"robots: {robots!r} is not 0 to 3"
    if type(rounds) is not int or not 1 <= rounds <= 4:
        return f"game_round: {rounds!r} is not 1 to 4"
    return ""


def _is_ours(room: wire.Room) -> bool:
    """Whether these are the rules that we know."""
    return (room.room_rule, room.sub_rule, room.max_player) == ("guobiao", "guobiao/standard", 4)


def _fits(room: wire.Room, wish: m.Json, minimum: int) -> bool:
    """Whether a room is one that the wish may enter."""
    if not _is_ours(room) or room.is_game_running or len(room.player_list) >= room.max_player:
        return False
    if room.has_password != bool(wish.get("password")) or wish.get("room_name", room.room_name) != room.room_name:
        return False
    return room.hepai_limit == minimum


def _order(room: wire.Room) -> int:
    """Rooms in the order of their opening."""
    return int(room.id) if room.id.isdecimal() else 0


def _is_ready(room: wire.Room) -> bool:
    """Whether all seats are taken, and all people but the host are ready."""
    waiting = set(room.player_list) - set(room.ready_list) - {room.host_user_id}
    return len(room.player_list) == room.max_player and all(user < wire.ROBOTS_BELOW for user in waiting)


def _info(room: wire.Room) -> m.TableInfo:
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
