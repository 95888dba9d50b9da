"""The rooms and the match queue of the fake of othello-platform."""

from __future__ import annotations

import time

from bothost.testing.fake_othello_platform.games import Games
from bothost.testing.fake_othello_platform.parts import Json, Line, Lobby, Room

MATCH_S = 0.02
"""How long after a player joins the queue the players there are matched."""


class Rooms:
    """All rooms, and the players who wait for any opponent."""

    def __init__(self, owner: Lobby, games: Games) -> None:
        self.by_id: dict[int, Room] = {}
        self.queue: dict[int, float] = {}
        self._owner = owner
        self._games = games

    def open(self, name: str, owner: int, mode: str = "human_vs_human", password: str = "") -> Room:
        room = Room(next(self._owner.numbers), name, owner, mode, password, opened_at=time.monotonic())
        self.by_id[room.id] = room
        return room

    def listed(self) -> list[Json]:
        """The waiting rooms, the newest first."""
        listed = time.monotonic() - self._owner.list_s
        waiting = [room for room in self.by_id.values() if room.status == "waiting" and room.opened_at <= listed]
        return [room.described() for room in reversed(waiting)]

    def forget_waiting(self) -> None:
        """Close waiting rooms, and forget the players in the queue, because the server restarts."""
        for room in self.by_id.values():
            room.status = "finished" if room.game is None else room.status
        self.queue.clear()

    def enter(self, user: int, room: Room) -> None:
        """Take a seat, or the same seat again. A refusal is a message on the websocket, also for a REST call."""
        if room.status == "finished":
            return self._owner.refuse(user, "ROOM_FINISHED")
        if user not in room.seats and None not in room.seats:
            return self._owner.refuse(user, "ROOM_FULL")
        if user not in room.seats:
            room.seats[room.seats.index(None)] = user
        if room.against_ai and room.game is None:
            return self._games.begin(room)
        self.show(room)
        if room.game is not None and room.game in self._games.running:
            self._owner.tell(user, "game_start", self._games.again(self._games.running[room.game]))

    def quit(self, user: int, room: Room) -> None:
        if user in room.seats and room.game is None:
            room.seats[room.seats.index(user)] = None
            room.ready = [False, False]
            self.show(room)
            if room.seats == [None, None]:
                room.status = "finished"

    def show(self, room: Room) -> None:
        """The room's state, to its players."""
        (black, white), name = room.seats, self._owner.accounts.name
        state: Json = {
            "roomId": room.id, "gameId": room.game, "blackId": black, "whiteId": white,
            "status": "waiting" if room.game is None else "playing", "spectatable": True,
            "blackReady": room.ready[0], "whiteReady": room.ready[1], "blackName": name(black),
            "whiteName": name(white), "ownerId": room.owner, "roomName": room.name, "spectators": [],
        }  # fmt: skip
        for user in room.seats:
            self._owner.tell(user, "room_state", state)

    # ------------------------------------------------------------------------------------------------------- messages

    def join(self, line: Line, payload: Json) -> None:
        room = self.by_id.get(payload["roomId"])
        if room is None:
            self._owner.error(line, "ROOM_NOT_FOUND")
        else:
            self.enter(line.user, room)

    def ready(self, line: Line, payload: Json) -> None:
        room = self.by_id.get(payload["roomId"])
        if room is None or line.user not in room.seats or room.game is not None:
            return self._owner.error(line, "VALIDATION_ERROR")
        room.ready[room.seats.index(line.user)] = bool(payload["ready"])
        self.show(room)

    def start(self, line: Line, payload: Json) -> None:
        room = self.by_id.get(payload["roomId"])
        if room is None or room.owner != line.user or not all(room.ready) or room.game is not None:
            return self._owner.error(line, "VALIDATION_ERROR")
        self._games.begin(room)

    def join_queue(self, line: Line, payload: Json) -> None:
        since = self.queue[line.user] = time.monotonic()
        line.say("match_queued", {"size": len(self.queue)})
        self._owner.later(MATCH_S, self._match_players)
        self._owner.later(self._owner.queue_s, self._give_up, line.user, since)

    def leave_queue(self, line: Line, payload: Json) -> None:
        self.queue.pop(line.user, None)
        line.say("match_left", {})

    def _give_up(self, user: int, since: float) -> None:
        """The player has waited too long."""
        if self.queue.get(user) == since:
            del self.queue[user]
            self._owner.tell(user, "match_timeout", {})

    def _match_players(self) -> None:
        while len(self.queue) >= 2:
            black, white = list(self.queue)[:2]
            del self.queue[black], self.queue[white]
            room = self.open("匹配对局", black)
            self.enter(black, room)
            self.enter(white, room)
            number = str(room.id) if self._owner.traps.text_ids else room.id
            for user in (black, white):
                self._owner.tell(user, "match_found", {"roomId": number, "opponent": None})
