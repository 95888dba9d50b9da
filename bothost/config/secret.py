"""Secrets of the configuration. The file names their source; they are never in the file and never printed."""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bothost.errors import ConfigError

REDACTED = "[redacted]"
_MAX_BYTES = 64 * 1024


class Secret:
    """A secret value. ``str``, ``repr`` and serialisation redact it; ``reveal`` returns it.

    A missing secret is an error only when it is used: ``config lint`` and ``doctor`` warn, ``reveal`` raises.
    """

    __slots__ = ("_value", "problem", "source")

    source: str
    """Where it comes from: ``$BOTHOST_HOME_TOKEN``, or the path of a file."""
    problem: str
    """Why there is no value; empty if there is one."""

    def __init__(self, value: str | None, source: str, problem: str = "") -> None:
        self._value = value
        self.source = source
        self.problem = problem if value is None else ""

    @property
    def present(self) -> bool:
        return self._value is not None

    @property
    def reference(self) -> dict[str, str] | None:
        """Its form in config.toml; None if it has several possible sources."""
        if " or " in self.source:
            return None
        return {"env": self.source[1:]} if self.source.startswith("$") else {"file": self.source}

    def reveal(self) -> str:
        """Return the value. Raises ConfigError if there is none."""
        if self._value is None:
            raise ConfigError(self.problem, advice=f"provide it through {self.source}")
        return self._value

    def __repr__(self) -> str:
        return f"Secret({self.source})"

    def __str__(self) -> str:
        return REDACTED

    def __format__(self, spec: str) -> str:
        return format(REDACTED, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self._value, self.source) == (other._value, other.source)

    def __hash__(self) -> int:
        return hash(self.source)


def variable(*parts: str) -> str:
    """Name of the environment variable of a secret: ``variable("home", "ada", "token")`` is BOTHOST_HOME_ADA_TOKEN.

    Shells and service managers allow only ASCII there. Other characters become ``U`` and their number.
    """

    def written(character: re.Match[str]) -> str:
        return "_" if character[0].isascii() else f"U{ord(character[0]):04X}"

    return "_".join(["BOTHOST", *(re.sub(r"[^A-Z0-9]", written, part.upper()) for part in parts)])


def from_environment(names: tuple[str, ...], env: Mapping[str, str]) -> Secret:
    """Make a secret from the first of these variables that is set."""
    for name in names:
        if env.get(name):
            return Secret(env[name], f"${name}")
    words = " or ".join(f"${name}" for name in names)
    return Secret(None, words, f"{words} is not set")


def from_config(value: Any, base: Path, env: Mapping[str, str], warnings: list[str]) -> Secret:
    """Make a secret from its form in config.toml. Raises ValueError; its message never includes the value."""
    if isinstance(value, Secret):
        return value
    if isinstance(value, str):
        raise ValueError(
            'a secret must not be in the file; write { env = "NAME" } or { file = "path" } instead '
            "(and change the secret if the file was shared)"
        )
    if not isinstance(value, dict) or len(value) != 1 or not set(value) <= {"env", "file"}:
        raise ValueError('expected { env = "NAME" } or { file = "path" }')
    ((kind, name),) = value.items()
    if not isinstance(name, str) or not name:
        raise ValueError(f"expected a name after {kind!r}")
    if kind == "env":
        return from_environment((name,), env)
    return _from_file(base / expanded(name), warnings)


def expanded(path: str | Path) -> Path:
    """Return the path with the home directory for ``~``. Raises ValueError if there is none."""
    if "\0" in str(path):
        raise ValueError("has a NUL character, as no path has")
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ValueError("lies in the home directory of an unknown user") from error


def _from_file(path: Path, warnings: list[str]) -> Secret:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
            mode = stat.S_IMODE(path.stat().st_mode)
        text = data.decode("utf-8-sig").strip()
    except OSError as error:
        return Secret(None, str(path), f"secret file {path}: {error.strerror or error}")
    except UnicodeDecodeError:
        return Secret(None, str(path), f"secret file {path} is not UTF-8 text")
    if len(data) > _MAX_BYTES:
        return Secret(None, str(path), f"secret file {path} is larger than {_MAX_BYTES} bytes")
    if not text:
        return Secret(None, str(path), f"secret file {path} is empty")
    if mode & 0o044:
        warnings.append(f"secret file {path} can be read by other users: chmod 600 {path}")
    return Secret(text, str(path))
