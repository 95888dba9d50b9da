"""Tables that wait for players: seeks, private tables, invitations. Sans-IO."""

from __future__ import annotations

import hmac
import random
from collections.abc import Iterable

import msgspec

from bothost.lobbies.embedded import protocol as wire
from bothost.lobby_server.seating import TableRules
from bothost.lobby_server.settings import ServerSettings
from bothost.rules.game import Game, Json
from bothost.tables.games import Games

MAX_ATTRIBUTES = 16


class BadWish(ValueError):
    """A wish that this server cannot meet; ``code`` and ``field`` go into the error frame."""

    def __init__(self, code: wire.ErrorCode, message: str, field: str) -> None:
        super().__init__(message)
        self.code: wire.ErrorCode = code
        self.field = field


class Seeker(msgspec.Struct):
    player: str
    seek: str
    accepted: bool = False


class WaitingTable(msgspec.Struct, kw_only=True):
    """A table whose seats are not all taken, or not all accepted."""

    name: str
    rules: TableRules
    key: str
    private: bool
    password: str
    opened: float
    seekers: list[Seeker] = []
    invitation: str = ""
    """Set while it is full and waits for everybody to accept."""
    expires: float = 0.0

    @property
    def free(self) -> int:
        return self.rules.game.num_seats - len(self.seekers)

    def info(self) -> wire.TableInfo:
        return wire.TableInfo(
            table=self.name,
            game=self.rules.game.name,
            rules=self.rules.game.rules,
            attributes=self.rules.attributes,
            seats=self.rules.game.num_seats,
            free=self.free,
            locked=bool(self.password),
        )

    def opens_to(self, password: str) -> bool:
        return hmac.compare_digest(self.password.encode(), password.encode())

    def meets(self, attributes: wire.Attributes) -> bool:
        """Whether every attribute that a seeker states is this table's."""
        mine = self.rules.attributes
        return all(name in mine and mine[name] == value for name, value in attributes.items())


class IdSource:
    """The lobby's random numbers, and ids that no other table or invitation has, even over restarts."""

    def __init__(self, rng: random.Random, boot: str) -> None:
        self.rng = rng
        self._boot = boot
        self._count = 0

    def new(self, *, secret: bool = False) -> str:
        """``secret``: it cannot be guessed."""
        self._count += 1
        return f"{self._boot}-{self._count}" + (f"-{self.rng.getrandbits(96):024x}" if secret else "")

    def session(self) -> str:
        return f"{self._boot}-{self.rng.getrandbits(64):016x}"

    def seed(self) -> int:
        return self.rng.getrandbits(63)


def whole_number(attributes: wire.Attributes, name: str, default: int, low: int, high: int) -> int:
    """An attribute that must be a whole number within [low, high]. Raises BadWish."""
    value = attributes.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadWish("bad_attributes", f"`{name}` is a whole number from {low} to {high}", f"$.attributes.{name}")
    return value


class GameShelf:
    """The games of a lobby, refused in words a client can use."""

    def __init__(self, names: Iterable[str]) -> None:
        self._games = Games()
        self.names = sorted(names)

    def get(self, name: str, rules: Json) -> Game:
        """The game of that name under these rules. Raises BadWish."""
        if name not in self.names:
            raise BadWish("unknown_game", f"this lobby plays {', '.join(self.names)}", "$.game")
        try:
            return self._games.make(name, rules)
        except Exception as error:  # hostile rules must not cost more than an error frame
            raise BadWish("bad_rules", f"{name}: {error}"[:300], "$.rules") from None


def table_rules(settings: ServerSettings, game: Game, attributes: wire.Attributes) -> TableRules:
    """Check the attributes that mean something to the server; others are labels. Raises BadWish."""
    if len(attributes) > MAX_ATTRIBUTES:
        raise BadWish("bad_attributes", f"at most {MAX_ATTRIBUTES} attributes", "$.attributes")
    for name, value in attributes.items():
        if len(name) > 64 or (isinstance(value, str) and len(value) > 256):
            raise BadWish("bad_attributes", "names have at most 64 characters, texts 256", "$.attributes")
    level = attributes.get("level")
    if level is not None and (isinstance(level, bool) or not isinstance(level, int | str)):
        raise BadWish("bad_attributes", "`level` is a whole number or a text", "$.attributes.level")
    for name in ("private", "accept", "robots"):
        if not isinstance(attributes.get(name, False), bool):
            raise BadWish("bad_attributes", f"`{name}` is true or false", f"$.attributes.{name}")
    grant_ms = whole_number(attributes, "grant_ms", settings.grant_ms, 0, 3_600_000)
    bank_ms = whole_number(attributes, "bank_ms", settings.bank_ms, 0, 86_400_000)
    slowest_s = (grant_ms + bank_ms) / 1000.0 if grant_ms else 0.0
    return TableRules(
        game=game,
        attributes=attributes,
        grant_ms=grant_ms,
        bank_ms=bank_ms,
        lag_ms=settings.lag_ms,
        hands=whole_number(attributes, "hands", settings.hands, 1, settings.max_hands),
        pause_ms=settings.pause_ms,
        max_rejects=settings.max_rejects,
        idle_s=max(settings.idle_s, 2 * slowest_s),  # the server moves for who is late before it gives the table up
    )


def wish_key(game: Game) -> str:
    """Equal for games with equal rules."""
    return game.name + msgspec.json.encode(game.rules, order="deterministic").decode()
