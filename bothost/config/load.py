"""Find config.toml, read it, and convert it to :class:`~bothost.config.Settings`, or report all errors."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import msgspec

from bothost.config.check import Problem, nearest, problems
from bothost.config.lines import find_line, line_numbers
from bothost.config.names import is_visible
from bothost.config.secret import REDACTED, Secret, expanded, from_config, from_environment, variable
from bothost.config.settings import (
    AccountSettings,
    HostSettings,
    LobbySettings,
    Settings,
    is_loopback,
)
from bothost.errors import ConfigError, ConfigErrors

FILE_NAME = "config.toml"
_SQLITE = "sqlite:///"
_SECRET_KEY = re.compile(r"(?i)token|passw|secret|api_?key|access_?key|^auth$|session")


class Loaded(msgspec.Struct, frozen=True):
    """Settings with the path of their file, and warnings for the operator."""

    settings: Settings
    path: Path
    warnings: tuple[str, ...] = ()


def find(path: str | Path | None = None, env: Mapping[str, str] = os.environ) -> Path:
    """Return ``path``, else $BOTHOST_CONFIG, else ./config.toml. Raises ConfigError if the file does not exist."""
    if path is not None:
        found, origin = Path(path), "--config"
    elif env.get("BOTHOST_CONFIG"):
        found, origin = Path(env["BOTHOST_CONFIG"]), "$BOTHOST_CONFIG"
    else:
        found, origin = Path(FILE_NAME), ""
    if found.is_file():
        return found.absolute()
    if found.exists():
        raise ConfigError("is not a file", file=str(found), advice=f"name the file itself in {origin or '--config'}")
    advice = "run it in the folder of the demo, write a file with: bothost init, or name one with --config"
    advice = f"correct the path in {origin}" if origin else advice
    raise ConfigError("there is no such file", file=str(found), advice=advice)


def load(path: str | Path | None = None, env: Mapping[str, str] = os.environ) -> Settings:
    """Load the settings of the file that ``find`` returns. Raises ConfigError or ConfigErrors."""
    return read(path, env).settings


def read(path: str | Path | None = None, env: Mapping[str, str] = os.environ) -> Loaded:
    """Like ``load``, with the path and the warnings."""
    file = find(path, env)
    try:
        str(file).encode()
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        advice = f"let this user read it: chmod u+r {file}"
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(file), advice=advice) from error
    except UnicodeEncodeError as error:  # the log and the database could not hold the paths beside it
        advice = "rename the folder, or set LC_ALL=C.UTF-8"
        raise ConfigError("its path is not UTF-8 text", file=ascii(str(file)), advice=advice) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text (byte {error.start})", file=str(file)) from error
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also for numbers of thousands of digits, and for deep nesting
        raise _toml_error(str(error), str(file)) from error
    warnings: list[str] = []
    settings = _settle(data, file, env, warnings, line_numbers(text))
    return Loaded(settings, file, tuple(warnings))


def _toml_error(text: str, file: str) -> ConfigError:
    place = re.search(r" \(at line (\d+), (column \d+)\)$", text)
    line = None
    if place is not None:
        line, text = int(place[1]), f"{text[: place.start()]} ({place[2]})"
    advice = "see https://toml.io"
    if text.startswith("Cannot overwrite a value"):
        text, advice = "the key stands twice", "remove one of the two"
    return ConfigError(f"is not valid TOML: {text}", file=file, line=line, advice=advice)


def parse(text: str, *, base: Path, env: Mapping[str, str] = os.environ) -> Settings:
    """Parse settings from text, with paths relative to ``base``. Raises ConfigError."""
    return _settle(tomllib.loads(text), base / FILE_NAME, env, [], line_numbers(text))


def _settle(
    data: dict[str, Any], file: Path, env: Mapping[str, str], warnings: list[str], lines: Mapping[str, int]
) -> Settings:
    base = file.parent

    def decode(kind: type, value: Any) -> Any:
        if kind is Secret:
            return from_config(value, base, env, warnings)
        if kind is Path and isinstance(value, (str, Path)) and str(value):
            return expanded(value)
        raise ValueError("expected a path")

    found = problems(data, Settings, dec_hook=decode)
    if not found:
        warnings.clear()  # the second conversion below warns again
        settings = _complete(msgspec.convert(data, Settings, dec_hook=decode), base, env)
        found = list(_semantic_problems(settings))
    if found:
        errors = [
            ConfigError(
                p.message, file=str(file), line=find_line(lines, p.key), key=p.key, value=p.value, advice=p.advice
            )
            for p in found
        ]
        raise errors[0] if len(errors) == 1 else ConfigErrors(errors)
    warnings.extend(_warnings(settings))
    loose = settings.host.plugins_dir
    if loose is not None and loose != _anchor(HostSettings().plugins_dir, base) and not loose.is_dir():
        warnings.append(f"host.plugins_dir: there is no folder {loose}")
    return settings


def _complete(settings: Settings, base: Path, env: Mapping[str, str]) -> Settings:
    """Resolve relative paths against the file's folder, and read the default variables of secrets."""
    change = msgspec.structs.replace
    host, log, store, server = settings.host, settings.log, settings.store, settings.lobby_server
    url = store.url
    driver, _, path = url.partition(":///")
    if driver.partition("+")[0] == "sqlite" and path and not path.startswith("/") and ":memory:" not in path:
        url = f"{sqlite_url(base)}/{path}"
    password = _or_variable(store.password, "BOTHOST_STORE_PASSWORD", env)
    web_password = _or_variable(settings.web.password, "BOTHOST_WEB_PASSWORD", env)
    return change(
        settings,
        host=change(host, data_dir=_anchor(host.data_dir, base), plugins_dir=_anchor(host.plugins_dir, base)),
        log=change(log, file=_anchor(log.file, base)),
        store=change(store, url=url, password=password),
        web=change(settings.web, password=web_password),
        lobby_server=change(server, tokens=server.tokens or from_environment(("BOTHOST_LOBBY_TOKENS",), env)),
        lobbies=tuple(
            change(lobby, accounts=tuple(_account(lobby, account, env) for account in lobby.accounts))
            for lobby in settings.lobbies
        ),
    )


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite database in this file. In a URL, ``?`` ends the path, and ``%20`` is a space."""
    return _SQLITE + re.sub(r"\?|%(?=[0-9A-Fa-f]{2})", lambda found: quote(found[0]), str(path))


def _anchor(path: Path | None, base: Path) -> Any:
    return None if path is None else base / path


def _account(lobby: LobbySettings, account: AccountSettings, env: Mapping[str, str]) -> AccountSettings:
    names = (variable(lobby.name, account.name, "token"), variable(lobby.name, "token"))
    token = account.token or from_environment(names, env)
    password = _or_variable(account.password, variable(lobby.name, account.name, "password"), env)
    return msgspec.structs.replace(account, token=token, password=password)


def _or_variable(secret: Secret | None, name: str, env: Mapping[str, str]) -> Secret | None:
    """The configured secret, else that of the variable if it is set."""
    return from_environment((name,), env) if secret is None and env.get(name) else secret


def _semantic_problems(settings: Settings) -> Iterable[Problem]:
    """Problems of settings that are valid key by key."""
    lobbies = [lobby.name for lobby in settings.lobbies]
    for name in _repeated(lobbies):
        yield Problem("lobby", f"two lobbies are named {name!r}", name, "give each its own name")
    for index, lobby in enumerate(settings.lobbies):
        parts = _url_parts(lobby.url)
        if parts is None or not _is_address(parts):
            yield Problem(f"lobby[{index}].url", "is not a URL", None, 'for example "wss://lobby.example/ws"')
        elif parts.username or _holds_secret(lobby.url):
            advice = "leave it out of the URL, and give the account a token or a password"
            yield Problem(f"lobby[{index}].url", "holds a secret", REDACTED, advice)
        yield from _options_with_secrets(lobby.options, f"lobby[{index}].options")
        for name in _repeated(account.name for account in lobby.accounts):
            yield Problem(f"lobby[{index}].account", f"two accounts are named {name!r}", name, "name each once")
        for number, account in enumerate(lobby.accounts):
            if not is_visible(account.name, len(account.name)):
                advice = "use visible characters without spaces, in Unicode's normal form NFC"
                yield Problem(f"lobby[{index}].account[{number}].name", "is not an account name", account.name, advice)
            yield from _bad_manners(account, f"lobby[{index}].account[{number}].manners")
    for index, route in enumerate(settings.routes):
        if route.lobby is not None and route.lobby not in lobbies:
            advice = f"lobbies: {', '.join(lobbies) or 'none'}"
            yield Problem(f"route[{index}].lobby", f"there is no lobby {route.lobby!r}", route.lobby, advice)
        if route.level is not None and ":" in route.strategy:
            advice = "name the version once: in the address, or as a level"
            yield Problem(f"route[{index}].level", f"{route.strategy!r} names a version already", route.level, advice)
        yield from _options_with_secrets(route.options, f"route[{index}].options")
    hidden = {secret.source.removeprefix("$") for secret in secrets(settings)}
    passed_on = [("host.plugin_environment", name) for name in settings.host.plugin_environment]
    for index, route in enumerate(settings.routes):
        names = route.options.get("environment", ()) if route.strategy.startswith("exec:") else ()
        if isinstance(names, list):  # the strategy's schema reports anything else
            passed_on += [(f"route[{index}].options.environment", str(name)) for name in names]
    for key, name in passed_on:
        if name in hidden:
            yield Problem(key, "passes a secret of this configuration to plugins", name, "leave it out")
    parts = _url_parts(settings.store.url)
    advice = 'for example "sqlite:///var/bothost.db" or "postgresql+psycopg://user@host/name"'
    if parts is None or not (backend := parts.scheme.partition("+")[0]):
        yield Problem("store.url", "is not a database URL", None, advice)
    elif backend not in ("sqlite", "postgresql"):
        yield Problem("store.url", f"no support for {backend} databases", None, advice)
    elif backend == "sqlite" and parts.path in ("", "/", "/:memory:"):
        yield Problem("store.url", "the log must be a file, not memory", None, advice)
    elif _holds_secret(settings.store.url):
        advice = "leave it out of the URL, and set $BOTHOST_STORE_PASSWORD or [store] password"
        yield Problem("store.url", "holds a password", REDACTED, advice)


def _bad_manners(account: AccountSettings, key: str) -> Iterable[Problem]:
    manners = account.manners
    for name in sorted({*manners.allow} & {*manners.block}):
        yield Problem(f"{key}.block", f"{name!r} is on both lists, allow and block", name, "leave it on one of them")
    low, high = manners.min_rating, manners.max_rating
    if low is not None and high is not None and low > high:
        yield Problem(f"{key}.min_rating", f"no rating is at least {low} and at most {high}", low, "exchange the two")
    if manners.widen_per_minute and low is None and high is None:
        advice = "set min_rating or max_rating"
        yield Problem(f"{key}.widen_per_minute", "widens no window", manners.widen_per_minute, advice)
    if manners.slots_for_people > account.tables:
        advice = f"at most tables = {account.tables}"
        yield Problem(f"{key}.slots_for_people", "is more than the account's tables", manners.slots_for_people, advice)
    if manners.slots_for_people and manners.opponents != "any":
        advice = f"leave it out: opponents = {manners.opponents!r} decides already"
        yield Problem(f"{key}.slots_for_people", "reserves nothing", manners.slots_for_people, advice)
    for nth, hours in enumerate(manners.pause):
        start, end = hours.split("-")
        if start == end:
            advice = "name two different times; to pause always, leave the account out"
            yield Problem(f"{key}.pause[{nth}]", "begins when it ends", hours, advice)
    try:
        ZoneInfo(manners.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        advice = nearest(manners.timezone, sorted(available_timezones()))
        advice = advice if advice.startswith("did") else 'for example "Europe/Berlin"'
        yield Problem(f"{key}.timezone", "is not a time zone", manners.timezone, advice)


def _warnings(settings: Settings) -> Iterable[str]:
    """Valid settings that are probably not what the operator wants."""
    for lobby in settings.lobbies:
        parts = urlsplit(lobby.url)
        if parts.scheme in ("ws", "http") and not is_loopback(parts.hostname or ""):
            yield f"lobby {lobby.name}: {parts.scheme}:// sends the token in clear text; use {parts.scheme}s://"
        if not lobby.accounts:
            yield f"lobby {lobby.name} has no [[lobby.account]]: nothing will connect to it"
    yield from _shared_variables(settings)
    if settings.lobbies and not settings.routes:
        yield "there is no [[route]]: no strategy will play"
    if settings.metrics.port is not None and not is_loopback(settings.metrics.host):
        yield f"metrics are served on {settings.metrics.host}: other machines can read them"
    if settings.web.enabled and settings.web.port and settings.web.port == settings.metrics.port:
        yield f"web.port and metrics.port are both {settings.web.port}: the pages will find their port in use"
    if settings.web.enabled and settings.web.unprotected:
        secret = settings.web.password
        why = f"others can reach {settings.web.host}, so web.password must be set" if secret is None else secret.problem
        yield f"the pages are not served: {why}"
    elif settings.web.enabled and settings.web.hosts and settings.web.password is None:
        yield "who reaches the pages by a name of web.hosts is an operator: set web.password, or ask for one there"
    if not is_loopback(settings.lobby_server.host):
        yield f"the embedded lobby listens on {settings.lobby_server.host}: other machines can connect"


def _shared_variables(settings: Settings) -> Iterable[str]:
    """Default variables of secrets that belong to several names, such as a-b and a_b: one would log in as the other."""
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for lobby in settings.lobbies:
        for account in lobby.accounts:
            for kind, secret in (("token", account.token), ("password", account.password)):
                own, of_lobby = variable(lobby.name, account.name, kind), variable(lobby.name, kind)
                for name, owner in ((own, f"{lobby.name}/{account.name}"), (of_lobby, lobby.name)):
                    if secret is not None and f"${name}" in secret.source.split(" or "):
                        owners[name].add(owner)
    for name, sharing in owners.items():
        if len(sharing) > 1:
            among = " and ".join(sorted(sharing))
            yield f"${name} is the secret of {among}: give one another variable, as in token = {{ env = … }}"


def _holds_secret(url: str) -> bool:
    """Whether a URL has a password, or a key in its query or fragment that names a secret."""
    parts = _url_parts(url)
    if parts is None:
        return False
    keys = [pair.partition("=")[0] for pair in re.split("[&;]", f"{parts.query}&{parts.fragment}")]
    return bool(parts.password) or any(_SECRET_KEY.search(unquote(key)) for key in keys)


def _options_with_secrets(value: Any, key: str) -> Iterable[Problem]:
    """A problem for each URL with a secret among the options of a plugin, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _options_with_secrets(inner, f"{key}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _options_with_secrets(inner, f"{key}[{index}]")
    elif isinstance(value, str) and "://" in value and _holds_secret(value):
        yield Problem(key, "holds a secret", REDACTED, "leave it out; the plugin's page says where it belongs")


def _url_parts(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _is_address(parts: SplitResult) -> bool:
    """Whether a URL names a host, and no port that cannot exist."""
    try:
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def plain(settings: Settings) -> dict[str, Any]:
    """Return the settings as plain data in the shape of config.toml. A secret is replaced by its source."""

    def encode(value: Any) -> Any:
        return value.reference if isinstance(value, Secret) else str(value)

    return dict(msgspec.to_builtins(settings, enc_hook=encode))


def config_hash(settings: Settings) -> str:
    """Hash all settings except secrets to 16 hex digits. Logged with each decision."""
    data = msgspec.json.encode(settings, enc_hook=lambda v: None if isinstance(v, Secret) else str(v), order="sorted")
    return hashlib.sha256(data).hexdigest()[:16]


def secrets(settings: Settings) -> list[Secret]:
    """Return all secrets of the settings."""
    found = [settings.store.password, settings.web.password, settings.lobby_server.tokens]
    for lobby in settings.lobbies:
        for account in lobby.accounts:
            found += [account.token, account.password]
    return [secret for secret in found if secret is not None]
