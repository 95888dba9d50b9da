"""From seeks to tables: who waits where, who is invited, when robots fill in. Sans-IO."""

from __future__ import annotations

from collections.abc import Iterator

from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.players import Players
from bothost.lobby_server.playing import PlayingTables
from bothost.lobby_server.seating import Member
from bothost.lobby_server.settings import ServerSettings
from bothost.lobby_server.table import ServerTable
from bothost.lobby_server.timers import Timers
from bothost.lobby_server.waiting import BadWish, GameShelf, IdSource, Seeker, WaitingTable, table_rules, wish_key

MAX_NAME = 100
"""Characters of a seek's name."""
MAX_PASSWORD = 256
"""Characters of a table's password."""

Label = tuple[str, str, wire.Scalar | None]
"""A game under its rules (``wish_key``), with one of its attributes or with none."""


class WaitingList:
    """All waiting tables of a lobby."""

    def __init__(
        self,
        settings: ServerSettings,
        shelf: GameShelf,
        ids: IdSource,
        players: Players,
        playing: PlayingTables,
        timers: Timers,
    ) -> None:
        self.settings = settings
        self.shelf = shelf
        self._ids = ids
        self._players = players
        self._playing = playing
        self._timers = timers
        self.tables: dict[str, WaitingTable] = {}
        self._open: dict[Label, dict[str, WaitingTable]] = {}
        """What a seek may ask for → waiting tables that offer it and are open to all, oldest first."""
        self._seeks: dict[str, dict[str, WaitingTable]] = {}
        """player → seek → table."""
        self._invitations: dict[str, WaitingTable] = {}

    def public(self) -> Iterator[WaitingTable]:
        """Waiting tables that are public."""
        return (table for table in self.tables.values() if not table.private)

    # ------------------------------------------------------------------------------------------------------- asking

    def ask(self, player: str, message: wire.Seek | wire.Create | wire.Join, now: float) -> None:
        """Seek, create or join. Raises BadWish."""
        if not 0 < len(message.seek) <= MAX_NAME:
            raise BadWish("bad_message", f"`seek` has 1 to {MAX_NAME} characters", "$.seek")
        mine = self._seeks.get(player, {})
        if message.seek in mine:
            raise BadWish("seek_exists", "you have a seek of this name", "$.seek")
        if len(mine) + self._players.num_tables(player) >= self.settings.tables_per_account:
            raise BadWish("limit", f"at most {self.settings.tables_per_account} tables and seeks", "")
        if isinstance(message, wire.Join):
            table = self._joinable(player, message)
        elif isinstance(message, wire.Create):
            table = self._new(message, now, message.password)
        else:
            table = self._oldest_fitting(player, message) or self._new(message, now)
        self._sit(table, player, message.seek, now)

    def _joinable(self, player: str, message: wire.Join) -> WaitingTable:
        table = self.tables.get(message.table)
        if table is None:
            raise BadWish("unknown_table", "no such table waits for players", "$.table")
        if not table.opens_to(message.password):
            raise BadWish("forbidden", "this table's password is another", "$.password")
        if not table.free or any(s.player == player for s in table.seekers):
            raise BadWish("table_full", "no seat for you here", "$.table")
        return table

    def _oldest_fitting(self, player: str, wish: wire.Seek) -> WaitingTable | None:
        """The oldest waiting public table that this wish fits."""
        if wish.attributes.get("private"):
            raise BadWish("bad_attributes", "a private table is opened with `create`", "$.attributes.private")
        key = wish_key(self.shelf.get(wish.game, wish.rules))
        fewest = min((self._open.get(label, {}) for label in _labels(key, wish.attributes)), key=len)
        for table in fewest.values():
            fits = table.free and table.meets(wish.attributes)
            if fits and all(s.player != player for s in table.seekers):
                return table
        return None

    def _new(self, wish: wire.Seek | wire.Create, now: float, password: str = "") -> WaitingTable:
        game, attributes = self.shelf.get(wish.game, wish.rules), wish.attributes
        if len(password) > MAX_PASSWORD:
            raise BadWish("bad_message", f"a password has at most {MAX_PASSWORD} characters", "$.password")
        settled = table_rules(self.settings, game, attributes)
        if attributes.get("robots") and self.settings.robots_after_s is None:
            raise BadWish("bad_attributes", "this lobby has no robots", "$.attributes.robots")
        if len(self.tables) + len(self._playing.by_name) >= self.settings.tables:
            raise BadWish("limit", "this lobby has no room for another table", "")
        table = WaitingTable(
            name=self._ids.new(secret=bool(attributes.get("private"))),
            rules=settled,
            key=wish_key(game),
            private=bool(attributes.get("private")),
            password=password,
            opened=now,
        )
        self.tables[table.name] = table
        if not table.private and not table.password:
            for label in _labels(table.key, attributes):
                self._open.setdefault(label, {})[table.name] = table
        return table

    def _sit(self, table: WaitingTable, player: str, seek: str, now: float) -> None:
        table.seekers.append(Seeker(player, seek))
        self._seeks.setdefault(player, {})[seek] = table
        if not table.free and not table.rules.attributes.get("accept"):
            self._start(table, now)
            return
        taken = len(table.seekers)
        self._players.send(player, wire.Waiting(seek, table.name, table.rules.game.num_seats, taken))
        if not table.free:
            self._invite(table, now)
        self._set_timer(table, now)

    # -------------------------------------------------------------------------------------------------- invitations

    def _invite(self, table: WaitingTable, now: float) -> None:
        table.invitation = self._ids.new()
        table.expires = now + self.settings.accept_s
        self._invitations[table.invitation] = table
        players = tuple(seeker.player for seeker in table.seekers)
        for seeker in table.seekers:
            seeker.accepted = False
            expires_ms = int(self.settings.accept_s * 1000)
            self._players.send(
                seeker.player, wire.Invitation(table.invitation, seeker.seek, table.info(), expires_ms, players)
            )

    def answer(self, player: str, invitation: str, accepts: bool, now: float) -> None:
        """Accept or decline. Raises BadWish."""
        table = self._invitations.get(invitation)
        seeker = next((s for s in table.seekers if s.player == player), None) if table is not None else None
        if table is None or seeker is None:
            raise BadWish("unknown_invitation", "this invitation has expired, or is not yours", "$.invitation")
        if not accepts:
            self._part(table, [seeker], "you declined", now)
            return
        seeker.accepted = True
        if all(s.accepted for s in table.seekers):
            self._start(table, now)

    # ------------------------------------------------------------------------------------------------------ parting

    def cancel(self, player: str, seek: str, now: float) -> None:
        """Withdraw a seek. Raises BadWish."""
        table = self._seeks.get(player, {}).get(seek)
        if table is None:
            raise BadWish("unknown_seek", "you have no seek of this name: a table may just have started", "$.seek")
        self._part(table, [s for s in table.seekers if s.player == player], "cancelled", now)

    def forget_player(self, player: str, now: float) -> None:
        """The player's connection is gone: seats are not kept for who may not come back."""
        for table in list(self._seeks.get(player, {}).values()):
            self._part(table, [s for s in table.seekers if s.player == player], "disconnected", now)

    def _part(self, table: WaitingTable, seekers: list[Seeker], reason: str, now: float) -> None:
        """Some leave; the rest wait on."""
        for seeker in seekers:
            table.seekers.remove(seeker)
            self._drop_seek(seeker)
            self._players.send(seeker.player, wire.SeekEnded(seeker.seek, reason))
        if table.invitation:
            del self._invitations[table.invitation]
            table.invitation = ""
            taken = len(table.seekers)
            for seeker in table.seekers:
                waiting = wire.Waiting(seeker.seek, table.name, table.rules.game.num_seats, taken)
                self._players.send(seeker.player, waiting)
        if table.seekers:
            self._set_timer(table, now)
        else:
            self._drop(table)

    def _drop_seek(self, seeker: Seeker) -> None:
        mine = self._seeks[seeker.player]
        del mine[seeker.seek]
        if not mine:
            del self._seeks[seeker.player]

    def _drop(self, table: WaitingTable) -> None:
        del self.tables[table.name]
        self._timers.cancel(f"waiting {table.name}")
        self._invitations.pop(table.invitation, None)
        for label in _labels(table.key, table.rules.attributes):
            same = self._open.get(label, {})
            same.pop(table.name, None)
            if not same:
                self._open.pop(label, None)

    # ------------------------------------------------------------------------------------------------------- timing

    def _robots_at(self, table: WaitingTable) -> float | None:
        wanted = table.rules.attributes.get("robots", None if table.private else True)
        if self.settings.robots_after_s is None or not wanted:
            return None
        at_once = "robots" in table.rules.attributes
        return table.opened + (0.0 if at_once else self.settings.robots_after_s)

    def _set_timer(self, table: WaitingTable, now: float) -> None:
        when = table.opened + self.settings.wait_s
        if table.invitation:
            when = min(when, table.expires)
        robots_at = self._robots_at(table)
        if robots_at is not None and table.free:
            when = min(when, robots_at)
        self._timers.set(f"waiting {table.name}", max(when, now))

    def tick(self, name: str, now: float) -> None:
        """The timer of a waiting table fired."""
        table = self.tables.get(name)
        if table is None:
            return
        robots_at = self._robots_at(table)
        if table.invitation and now >= table.expires:
            self._part(table, [s for s in table.seekers if not s.accepted], "the invitation expired", now)
        elif now >= table.opened + self.settings.wait_s:
            self._part(table, list(table.seekers), "no other player came", now)
        elif robots_at is not None and now >= robots_at and table.free:
            self._start(table, now)
        else:
            self._set_timer(table, now)

    def _start(self, table: WaitingTable, now: float) -> None:
        """Draw the seats and play; robots take what is free."""
        robots = table.free
        self._drop(table)
        for seeker in table.seekers:
            self._drop_seek(seeker)
        members = [Member(seeker.player, seeker.seek) for seeker in table.seekers]
        members += [Member(f"robot-{i + 1}", robot=True) for i in range(robots)]
        self._ids.rng.shuffle(members)
        playing = ServerTable(table.name, table.rules, members, self._players, self._ids.seed, now)
        self._playing.open(playing, now)


def _labels(key: str, attributes: wire.Attributes) -> list[Label]:
    return [(key, "", None), *((key, name, value) for name, value in attributes.items())]
