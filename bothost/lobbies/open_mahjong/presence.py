"""Who is online in a game at open_mahjong, and whether the game survives when we reconnect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from bothost import messages as m
from bothost.lobbies.open_mahjong import protocol as wire


class Attendance:
    """Who is online in one game. Players are named by the lobby's index."""

    def __init__(self) -> None:
        self.offline: frozenset[int] = frozenset()
        """Indices of the players who are offline."""
        self._users: tuple[int, ...] = ()
        self._left_room: set[int] = set()
        """Users who were offline at some time. The lobby has removed them from the room for good."""

    def read(self, info: wire.GameInfo, returned: int | None) -> None:
        """Read the lobby's snapshot. ``returned``: our user id if we have just returned."""
        players = sorted(info.players_info, key=lambda player: player.player_index)
        self._users = tuple(player.user_id for player in players)
        self._update(frozenset(player.player_index for player in players if "offline" in player.tag_list))
        if returned is not None:
            self._left_room.add(returned)

    def forget_seats(self) -> None:
        """The players' indices change. The next position shows them, and who is offline."""
        self._users = ()

    def tags(self, tags: Mapping[str, wire.Words]) -> list[int]:
        """Read who is offline. Returns the indices that changed."""
        if not self._users:
            return []
        known = {str(index) for index in range(len(self._users))}
        before = self.offline
        self._update(frozenset(int(index) for index in known & tags.keys() if "offline" in tags[index]))
        return sorted(before ^ self.offline)

    def _update(self, offline: frozenset[int]) -> None:
        self.offline = offline
        self._left_room.update(self._users[index] for index in offline if index < len(self._users))

    def events(self, table: str, indices: Iterable[int], seat_of: Callable[[int], int]) -> list[m.Output]:
        """Report who of these players is online."""
        return [m.Presence(table, seat_of(index), index not in self.offline) for index in indices]

    def left_room(self, user: int) -> bool:
        """Whether the lobby removed this user from the room."""
        return user in self._left_room

    def index_of(self, user: int) -> int | None:
        return self._users.index(user) if user in self._users else None

    def turn_of(self, user: int) -> int:
        """The user's place in the order in which the people of the game reconnect, from 0."""
        people = [other for other in self._users if not wire.is_robot(other)]
        return people.index(user) if user in people else 0

    def may_disconnect(self, user: int) -> bool:
        """Whether the game survives when this user disconnects.

        The lobby deletes it when all people are offline, and when the last person in the room disconnects.
        """
        others = {other: index for index, other in enumerate(self._users) if other != user and not wire.is_robot(other)}
        online = any(index not in self.offline for index in others.values())
        last_in_room = user not in self._left_room and self._left_room >= others.keys()
        return online and not last_in_room
