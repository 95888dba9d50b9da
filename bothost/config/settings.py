"""The schema of config.toml: one frozen struct per table. Names of durations end with the unit.

The field names are the keys of the file, except that repeated tables are singular there (``[[lobby]]``). The string
under a field is its description in docs/reference/configuration.md.
"""

from __future__ import annotations

import ipaddress
import socket
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bothost.config.secret import Secret

Name = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z",
        max_length=64,
        description="a name of letters, digits and _ . -",
        examples=["home-1"],
    ),
]
AccountName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9\u0080-\U0010ffff][A-Za-z0-9_.\u0080-\U0010ffff-]*\Z",
        max_length=64,
        description="a name of letters and digits of any language and _ . -",
        examples=["ada"],
    ),
]
"""Among characters that are not ASCII, only visible ones: see ``bothost.config.load``."""
GameName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*(:[A-Za-z0-9_]+(\([A-Za-z0-9_.,=-]*\))?)?\Z",
        max_length=128,
        description="the name of a game",
        examples=["doudizhu"],
    ),
]
Url = Annotated[
    str,
    Meta(
        pattern=r"^(wss?|https?)://[^\s/]\S*\Z",
        max_length=2000,
        description="a lobby's address",
        examples=["wss://lobby.example/ws"],
    ),
]
EnvironmentVariable = Annotated[
    str,
    Meta(
        pattern=r"^(?!BOTHOST_)[A-Za-z_][A-Za-z0-9_]*\Z",
        max_length=200,
        description="an environment variable that is not one of bothost's own",
        examples=["HF_HOME"],
    ),
]
Port = Annotated[int, Meta(ge=0, le=65535)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Seconds = Annotated[float, Meta(ge=0, le=7 * 86400)]
Milliseconds = Annotated[float, Meta(ge=0, le=86_400_000)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all tables of config.toml."""


def _machine() -> str:
    return socket.gethostname() or "localhost"


class HostSettings(Section, frozen=True):
    """``[host]``"""

    name: Name = msgspec.field(default_factory=_machine)
    """Written into every logged row."""
    data_dir: Path = Path("var")
    """Spool, logs and the control socket."""
    plugins_dir: Path | None = Path("plugins.d")
    """Folder of loose plugins: ``*.py`` files and packages."""
    plugin_environment: tuple[EnvironmentVariable, ...] = ()
    """Environment variables that strategies in processes also get."""
    drain_timeout_s: Seconds = 300.0
    """How long a drain waits for tables to finish."""
    lease_s: Annotated[float, Meta(ge=1, le=3600)] = 15.0
    """After a crash, another host takes over the accounts when this time has passed."""


class StoreSettings(Section, frozen=True):
    """``[store]``"""

    url: str = "sqlite:///var/bothost.db"
    """SQLAlchemy URL; a relative SQLite path starts at the file's folder."""
    password: Secret | None = None
    """Password of the database, which the URL may not hold. Default: ``$BOTHOST_STORE_PASSWORD``."""
    durability: Literal["before_send", "async"] = "before_send"
    """``before_send`` saves every move before it is sent; ``async`` does not wait."""
    synchronous: Literal["normal", "full"] = "normal"
    """SQLite: ``normal`` survives SIGKILL, ``full`` also a power cut."""


class LimitSettings(Section, frozen=True):
    """``[limits]``"""

    tables: Count = 64
    """Live tables at once, over all accounts."""
    frame_bytes: Annotated[int, Meta(ge=1024, le=1 << 30)] = 1 << 20
    """A larger incoming frame closes the connection."""
    quarantine_after: Count = 3
    """A strategy that fails so often within ``quarantine_s`` gets no new tables for that time."""
    quarantine_s: Seconds = 300.0
    """See ``quarantine_after``."""
    search_threads: Count = 1
    """Searches that run at once."""
    worker_threads: Count = 2
    """Threads for strategies whose execution is ``thread``."""
    process_workers: Annotated[int, Meta(ge=1, le=256)] = 1
    """Processes of each strategy whose execution is ``process``."""
    process_memory_mb: Annotated[int, Meta(ge=32)] = 2048
    """A process that uses more resident memory than this is killed, MiB."""


class LogSettings(Section, frozen=True):
    """``[log]``"""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level to log."""
    format: Literal["console", "json"] = "console"
    """What stderr gets. A log file is always JSON."""
    file: Path | None = None
    """Also write to this file, which rotates."""
    rotate_bytes: Annotated[int, Meta(ge=4096)] = 10 * 1024 * 1024
    """Size at which the file rotates."""
    keep: Annotated[int, Meta(ge=1, le=1000)] = 5
    """Rotated files to keep."""


class MetricsSettings(Section, frozen=True):
    """``[metrics]``: ``/metrics`` for Prometheus, and the probes ``/healthz`` and ``/livez``."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Port | None = None
    """Port to serve on; without it nothing is served. 0: any free port, which the log names."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class WebSettings(Section, frozen=True):
    """``[web]``: the pages for the browser."""

    enabled: bool = False
    """Whether ``bothost run`` serves the pages, too. ``bothost web`` always does."""
    host: str = "127.0.0.1"
    """Any address but a loopback one needs ``password``."""
    port: Port = 8770
    """Port to listen on. 0: any free port."""
    password: Secret | None = None
    """Makes its holder an operator; default: ``$BOTHOST_WEB_PASSWORD``. Without it every visitor is an operator."""
    spectators: bool = False
    """Whether visitors without the password may watch public tables and play."""
    hosts: tuple[str, ...] = ()
    """Further host names by which browsers reach the pages, as behind a proxy."""

    @property
    def unprotected(self) -> bool:
        """Whether the password is missing: one is configured and has no value, or others can reach the address."""
        return not is_loopback(self.host) if self.password is None else not self.password.present


class LobbyServerSettings(Section, frozen=True):
    """``[lobby_server]``: the embedded lobby."""

    host: str = "127.0.0.1"
    """Address to listen on."""
    port: Port = 8765
    """Port to listen on. 0: any free port."""
    tokens: Secret | None = None
    """``name:token,name:token``. Default: ``$BOTHOST_LOBBY_TOKENS``."""
    grant_ms: Annotated[float, Meta(ge=1, le=86_400_000)] = 5000.0
    """Time per action."""
    bank_ms: Milliseconds = 30_000.0
    """Reserve per seat and hand."""
    hands: Annotated[int, Meta(ge=1, le=100_000)] = 1
    """Hands of a table that asks for no other number."""
    robots_after_s: Annotated[float, Meta(ge=0)] | None = None
    """Random players take the free seats of a table that has waited so long. Default: never."""
    games: tuple[GameName, ...] = ()
    """Games to offer beside the usual ones, by their whole names: ``openspiel:go(board_size=13)``."""


class WishSettings(Section, frozen=True):
    """``[[lobby.account.wish]]``: a table that the account asks for."""

    game: GameName
    """Name of the game."""
    rules: dict[str, Any] = {}
    """Options of the game's rules."""
    attributes: dict[str, Any] = {}
    """What else the table must have, in the lobby's own terms."""


Pattern = Annotated[str, Meta(min_length=1, max_length=200)]
Hours = Annotated[
    str,
    Meta(
        pattern=r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d\Z",
        description="a time of day, from and to",
        examples=["23:00-07:30"],
    ),
]


Speech = Annotated[
    str,
    Meta(
        pattern=r"^([^{}\x00-\x1f]|\{(account|opponents|game)\})*\Z",
        max_length=200,
        description="one line of text; {account}, {opponents} and {game} are filled in",
        examples=["Hello {opponents}, good luck!"],
    ),
]


class MannersSettings(Section, frozen=True):
    """``[lobby.account.manners]``: with whom the account plays, when, and how often."""

    allow: tuple[Pattern, ...] = ()
    """Play only with these players. ``*`` stands for any letters: ``"guest-*"``."""
    block: tuple[Pattern, ...] = ()
    """Never play with these players."""
    bots: tuple[Pattern, ...] = ()
    """Players that are bots, where the lobby does not say so."""
    opponents: Literal["any", "people", "bots"] = "any"
    """Play only where no bot sits, or only where no person sits."""
    own_accounts: bool = True
    """Whether to play with our own accounts (see also ``allow_same_table``)."""
    games: tuple[GameName, ...] = ()
    """Accept challenges at these games. Default: those of the wishes."""
    rated: Literal["any", "rated", "casual"] = "any"
    """Tables to play at, by their attribute ``rated``."""
    min_grant_ms: Milliseconds = 0.0
    """Least time per action of a table, by its attribute ``grant_ms``."""
    min_rating: float | None = None
    """Lowest rating of an opponent, as the ladder shows it."""
    max_rating: float | None = None
    """Highest rating of an opponent."""
    widen_per_minute: Annotated[float, Meta(ge=0)] = 0.0
    """The rating window widens so much at either end for each minute without a table."""
    unrated: bool = True
    """Whether to play with players that have no rating."""
    hands_per_opponent_a_day: Count | None = None
    """After so many hands with a player on one day, play with others."""
    slots_for_people: Annotated[int, Meta(ge=0)] = 0
    """Keep so many of the account's ``tables`` for tables with people."""
    pause: tuple[Hours, ...] = ()
    """Ask for no tables at these hours, as in ``"23:00-07:30"``. Open tables end normally."""
    greeting: Speech = ""
    """Say this to people when the first hand at a table starts. ``{opponents}``, ``{account}`` and ``{game}`` stand for
    their names."""
    goodbye: Speech = ""
    """Say this to people when a table ends, or the account leaves it."""
    chat_per_minute: Annotated[float, Meta(gt=0, le=60)] = 6.0
    """At most so many greetings and goodbyes a minute; the others are left out."""
    timezone: str = "UTC"
    """Time zone of ``pause`` and of the day, as in ``"Europe/Berlin"``."""


class AccountSettings(Section, frozen=True):
    """``[[lobby.account]]``"""

    name: AccountName
    """Name at the lobby."""
    token: Secret | None = None
    """Default: ``$BOTHOST_<LOBBY>_<ACCOUNT>_TOKEN``, else ``$BOTHOST_<LOBBY>_TOKEN``. A letter that is not ASCII stands
    there by its number, as ``U5C0F``; ``bothost config lint`` names the variable."""
    password: Secret | None = None
    """For lobbies that log in by password. Default: ``$BOTHOST_<LOBBY>_<ACCOUNT>_PASSWORD``, if set."""
    tables: Count = 1
    """Slots: tables that the account holds or asks for at once."""
    consents: bool = False
    """Whether strategies may learn to imitate the player of this account. Written into its hands."""
    wishes: tuple[WishSettings, ...] = msgspec.field(default=(), name="wish")
    manners: MannersSettings = MannersSettings()


class LobbySettings(Section, frozen=True):
    """``[[lobby]]``"""

    name: Name
    """Name of the lobby in routes, the log and variables."""
    adapter: Name
    """Name of the adapter; ``bothost lobby list`` shows them."""
    url: Url
    """Address of the lobby."""
    margin_ms: Milliseconds = 250.0
    """An answer is sent this long before its deadline."""
    min_move_ms: Milliseconds = 0.0
    """Never answer faster than this, so that people can follow."""
    allow_same_table: bool = False
    """Whether two of our own accounts may meet at one table."""
    own_accounts: tuple[AccountName, ...] = ()
    """Further accounts of ours at this lobby, which other hosts play; ``bothost run --workers`` adds its own."""
    user_agent: Annotated[str, Meta(pattern=r"^[ -~]+\Z", max_length=200)] = "bothost"
    """HTTP header that identifies this client."""
    options: dict[str, Any] = {}
    """Options of the adapter; ``bothost plugin list ADAPTER`` shows them."""
    accounts: tuple[AccountSettings, ...] = msgspec.field(default=(), name="account")


class RouteSettings(Section, frozen=True):
    """``[[route]]``: which strategy plays a table. The first route that matches decides."""

    strategy: Annotated[str, Meta(min_length=1)]
    """Address: ``NAME``, ``NAME:ALIAS`` or ``exec:COMMAND``."""
    lobby: Name | None = None
    """Match only tables of this lobby."""
    account: AccountName | None = None
    """Match only tables of accounts with this name."""
    game: GameName | None = None
    """Match only tables of this game."""
    attributes: dict[str, Any] = {}
    """Match only tables that have all of these."""
    level: Annotated[int, Meta(ge=1, le=99)] | Annotated[str, Meta(min_length=1)] | None = None
    """Level of the strategy. 3 stands for the alias ``level-3``; ``"table"`` follows the table's wish."""
    options: dict[str, Any] = {}
    """Options of the strategy; ``bothost plugin list STRATEGY`` shows them."""
    fallback: str | None = None
    """Address of the fallback strategy. Default: the game's rule player."""


class TrainingSettings(Section, frozen=True):
    """``[training]``"""

    trackers: tuple[Literal["tensorboard", "wandb", "mlflow"], ...] | None = None
    """What trainings report to. Default: TensorBoard, if it is installed. ``[]``: nothing."""


class Settings(Section, frozen=True):
    """The whole of config.toml."""

    host: HostSettings = msgspec.field(default_factory=HostSettings)
    store: StoreSettings = StoreSettings()
    limits: LimitSettings = LimitSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()
    web: WebSettings = WebSettings()
    lobby_server: LobbyServerSettings = LobbyServerSettings()
    training: TrainingSettings = TrainingSettings()
    lobbies: tuple[LobbySettings, ...] = msgspec.field(default=(), name="lobby")
    routes: tuple[RouteSettings, ...] = msgspec.field(default=(), name="route")
