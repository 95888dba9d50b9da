"""Rules for whom an account plays, when, and how often. Sans-IO.

The account checks them before it accepts a challenge, when it is seated, and after every hand. A check returns None if
the account may play, otherwise the reason for the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, time
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo

from bothost.config import MannersSettings
from bothost.messages import Json, PlayerInfo, Seated

Ratings = Callable[[str, str], float | None]
"""(the lobby's id of a player, game) → rating; None if there is none."""


class Manners:
    """The manners of one account. ``now`` is in monotonic seconds."""

    def __init__(
        self,
        settings: MannersSettings,
        account: str,
        own: Collection[str] = (),
        ratings: Ratings = lambda player, game: None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """``own``: names of all our accounts at this lobby, whichever process plays them.

        ``clock``: the time of day in the settings' time zone.
        """
        self.settings = settings
        self._account = account
        self.own = frozenset(own)
        self._ratings = ratings
        self._clock = clock or (lambda: datetime.now(ZoneInfo(self.settings.timezone)))
        self._met: Counter[str] = Counter()
        self._day = self._clock().date()
        self._waiting_since: float | None = None

    # ------------------------------------------------------------------------------------------------- what happened

    def remember(self, met: Counter[str]) -> None:
        """Set today's hands with each player, including those that we have counted."""
        self._turn_day()
        self._met |= met

    def midnight(self) -> datetime:
        """The start of today, in the settings' time zone."""
        return datetime.combine(self._clock().date(), time(), ZoneInfo(self.settings.timezone))

    def waits(self, now: float) -> None:
        """Record that the account seeks a table. The rating window widens from now on, until it plays."""
        if self._waiting_since is None:
            self._waiting_since = now

    def sat_down(self) -> None:
        """Record that the account stays at a table. The rating window is narrow again."""
        self._waiting_since = None

    def played(self, players: Sequence[PlayerInfo], seat: int | None) -> None:
        """Record the end of a hand with these players. ``seat``, here and below: ours, if it is known."""
        self._turn_day()
        self._met.update({player.player for player in self.others(players, seat)})

    def _turn_day(self) -> None:
        if (today := self._clock().date()) != self._day:
            self._day = today
            self._met.clear()

    # --------------------------------------------------------------------------------------------------------- answers

    def pauses(self) -> str | None:
        """Check the hours without play."""
        now = self._clock().time()
        for hours in self.settings.pause:
            start, end = (time.fromisoformat(part) for part in hours.split("-"))
            if (start <= now < end) if start <= end else (now >= start or now < end):
                return f"pause hours {hours}"
        return None

    def challenge(self, game: str, attributes: Json, players: Sequence[PlayerInfo], now: float) -> str | None:
        """Check a challenge. ``players``: the known players at the table."""
        if self.settings.games and game not in self.settings.games:
            return f"game {game}"
        return self.pauses() or self._table(attributes) or self.company(game, players, None, now)

    def table(self, seat: Seated, now: float, *, without_people: int, slots: int) -> str | None:
        """Check a table where the lobby gave us a seat. ``without_people``: number of our other tables without people.
        ``slots``: number of tables that the account may have."""
        reserved = self.settings.slots_for_people
        alone = bool(seat.players) and not self.people(seat.players, seat.seat)
        if reserved and alone and without_people >= max(0, slots - reserved):
            return f"{reserved} of {slots} slots are for people"
        return self._table(seat.attributes) or self.company(seat.game, seat.players, seat.seat, now)

    def people(self, players: Sequence[PlayerInfo], seat: int | None) -> bool:
        """Whether a person sits there: a player who is not known as a bot and is not one of our accounts."""
        return any(not self._is_bot(player) for player in self.others(players, seat))

    def _table(self, attributes: Json) -> str | None:
        settings = self.settings
        rated = attributes.get("rated") is True
        if settings.rated != "any" and rated != (settings.rated == "rated"):
            return "rated" if rated else "not rated"
        grant = attributes.get("grant_ms")
        if settings.min_grant_ms and isinstance(grant, int | float) and grant < settings.min_grant_ms:
            return f"a clock of {grant} ms"
        return None

    def company(self, game: str, players: Sequence[PlayerInfo], seat: int | None, now: float) -> str | None:
        """Check whether to play, or continue to play, with these players."""
        settings = self.settings
        self._turn_day()
        others = self.others(players, seat)
        for player in others:
            name = player.name or player.player
            ours = player.player in self.own
            if _matches(player, settings.block):
                return f"{name} is on the block list"
            if settings.allow and not ours and not _matches(player, settings.allow):
                return f"{name} is not on the allow list"
            if ours and not settings.own_accounts:
                return f"{name} is our own account"
            most = settings.hands_per_opponent_a_day
            if most is not None and not ours and self._met[player.player] >= most:
                return f"{self._met[player.player]} hands with {name} today"
            if (unfit := self._rating(player, game, now)) is not None:
                return unfit
        if settings.opponents == "people" and others and any(self._is_bot(player) for player in others):
            return "a bot sits there"
        if settings.opponents == "bots" and self.people(players, seat):
            return "a person sits there"
        return None

    def window(self, now: float) -> tuple[float, float] | None:
        """The lowest and highest rating that are accepted now; None: all."""
        settings = self.settings
        if settings.min_rating is None and settings.max_rating is None:
            return None
        waited = 0.0 if self._waiting_since is None else max(0.0, now - self._waiting_since)
        wider = settings.widen_per_minute * waited / 60.0
        low = float("-inf") if settings.min_rating is None else settings.min_rating - wider
        high = float("inf") if settings.max_rating is None else settings.max_rating + wider
        return low, high

    def _rating(self, player: PlayerInfo, game: str, now: float) -> str | None:
        window = self.window(now)
        if window is None or player.player in self.own:
            return None
        name = player.name or player.player
        rating = self._ratings(player.player, game)
        if rating is None:
            return None if self.settings.unrated else f"{name} has no rating"
        if not window[0] <= rating <= window[1]:
            return f"{name} is rated {rating:.1f}, outside {window[0]:.1f} to {window[1]:.1f}"
        return None

    def others(self, players: Sequence[PlayerInfo], seat: int | None) -> list[PlayerInfo]:
        """The players without ourselves: who has our seat, else our id, else our name if nobody else has it.

        Where names are free, a blocked player may take ours.
        """
        for ours in (
            [player for player in players if seat is not None and player.seat == seat],
            [player for player in players if player.player == self._account],
            [player for player in players if player.name == self._account],
        ):
            if len(ours) == 1:
                return [player for player in players if player is not ours[0]]
        return list(players)

    def _is_bot(self, player: PlayerInfo) -> bool:
        return bool(player.bot) or player.player in self.own or _matches(player, self.settings.bots)


def _matches(player: PlayerInfo, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in (player.player, player.name) if name)
