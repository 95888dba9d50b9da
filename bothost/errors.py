"""Every error that bothost raises on purpose.

::

    BothostError                  exit code 1
    ├── UsageError                2   the command line asks for something that does not exist
    ├── ConfigError               78  config.toml: file, key, bad value, fix
    │   └── ConfigErrors              several at once, in ``errors``
    ├── AuthError                 77  a lobby refused our credentials
    ├── LobbyUnreachable          75  a lobby cannot be reached
    ├── PluginError               a plugin failed to load or broke its contract
    │   ├── StrategyNotFound      2
    │   └── GameNotPlayed             found out at the table
    ├── ModelError                a model file is missing, corrupt, or made for another encoder
    │   ├── VersionNotFound       2   the strategy has no such version or level
    │   └── InvalidName           2   no name for a version, or none of the aliases
    ├── StoreError                the database
    │   ├── SchemaOutdated        78  the schema is of another version: run ``bothost db upgrade``
    │   └── StoreUnavailable      75  cannot be reached now
    └── ProtocolError             a peer (lobby, exec program) sent something invalid

Errors hold data in attributes. ``str()`` says what happened; ``advice`` says what to do.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence

ANY_FAILURE = (Exception, SystemExit)
"""What plugin code may raise. SystemExit too: ``exit()`` in a plugin must not end the host or a shared thread."""


def raised_at(error: BaseException, module: str = "") -> str | None:
    """``FILE:LINE`` of the innermost frame of an exception; with a module, of the innermost one in its package."""
    package, at = module.partition(".")[0], None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if not package or str(frame.f_globals.get("__name__")).partition(".")[0] == package:
            at = f"{os.path.basename(frame.f_code.co_filename)}:{line}"
    return at


def described(error: BaseException, most: int = 2000) -> str:
    """``Type: message`` of an exception of a plugin, whose ``__str__`` may raise. At most ``most`` characters."""
    kind = type(error).__name__
    try:
        text = f"{kind}: {error}" if str(error) else kind
    except Exception:
        text = f"{kind}: its message cannot be shown"
    return text[:most].encode(errors="replace").decode()


def printable(text: object) -> str:
    """Text that a lobby or a player wrote, safe for the terminal: control characters become visible."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


class BothostError(Exception):
    """Base of all. ``str(e)`` says what happened; ``e.advice`` says what to do, or is empty."""

    exit_code = 1

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice
        if advice:  # a traceback, as in a notebook, shows it
            self.add_note(f"fix: {advice}")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle arguments and attributes: the constructors of subclasses do not take the message."""
        return _again, (type(self), self.args, vars(self))


def _again(kind: type[BothostError], args: tuple[object, ...], attributes: dict[str, object]) -> BothostError:
    error = kind.__new__(kind)
    error.args = args
    vars(error).update(attributes)
    return error


class UsageError(BothostError):
    """The command line names something that does not exist."""

    exit_code = 2


class ConfigError(BothostError):
    """A setting is wrong. ``file``, ``line`` and ``key`` say where; ``value`` is the bad value."""

    exit_code = 78

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        key: str | None = None,
        value: object = None,
        advice: str = "",
    ) -> None:
        super().__init__(message, advice=advice)
        self.file = file
        self.line = line
        self.key = key
        self.value = value

    def __str__(self) -> str:
        file = f"{self.file}:{self.line}" if self.file and self.line else self.file
        where = ": ".join(part for part in (file, self.key) if part)
        return f"{where}: {super().__str__()}" if where else super().__str__()


class ConfigErrors(ConfigError):
    """Several settings are wrong. ``errors`` holds them, in the order of the file."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        advice = dict.fromkeys(error.advice for error in errors if error.advice)
        super().__init__("", advice="; ".join(advice))
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "; ".join(map(str, self.errors))


class AuthError(BothostError):
    """A lobby refused our credentials."""

    exit_code = 77


class LobbyUnreachable(BothostError):
    """A lobby cannot be reached."""

    exit_code = 75


class PluginError(BothostError):
    """A plugin failed to load, or broke its contract."""

    def __init__(self, plugin: str, message: str, *, advice: str = "") -> None:
        super().__init__(f"plugin {plugin}: {message}", advice=advice)
        self.plugin = plugin


class StrategyNotFound(PluginError):
    """No strategy of that name is registered."""

    exit_code = 2

    def __init__(self, strategy: str, *, advice: str = "") -> None:
        BothostError.__init__(self, f"there is no strategy {strategy!r}", advice=advice)
        self.plugin = strategy


class GameNotPlayed(PluginError):
    """A strategy does not play a game, which shows only when it is asked to: a program says so when it starts."""


class ModelError(BothostError):
    """A model file is missing or corrupt, has the wrong sha256, or was made for another encoder version."""


class VersionNotFound(ModelError):
    """A strategy has no version or level of that name."""

    exit_code = 2


class InvalidName(ModelError):
    """A version cannot have that name, or there is no such alias."""

    exit_code = 2


class StoreError(BothostError):
    """The database refused a statement, or holds invalid data."""


class SchemaOutdated(StoreError):
    """The database schema does not match this version of bothost."""

    exit_code = 78


class StoreUnavailable(StoreError):
    """The database cannot be reached now."""

    exit_code = 75


class ProtocolError(BothostError):
    """A peer sent something invalid. ``frame`` is what it sent, shortened."""

    def __init__(self, message: str, *, frame: str = "", advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.frame = frame[:200]
