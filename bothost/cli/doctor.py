"""``bothost doctor``: check whether this machine can run this configuration, and show fixes."""

from __future__ import annotations

import email.utils
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
import typer

from bothost import config
from bothost.cli import options, output
from bothost.errors import BothostError, ConfigErrors

Status = Literal["ok", "warning", "failed"]

LOW_DISK, NO_DISK = 2 * 10**9, 2 * 10**8
"""Free bytes below which to warn, and to fail: an hour of full logging is some 10^9."""
CLOCK_S = 5.0
"""Difference to a lobby's clock that causes a warning."""
REACH_S = 5.0


class Check(msgspec.Struct, frozen=True):
    """One check and its result."""

    name: str
    status: Status
    detail: str
    fix: str = ""
    exit_code: int = 1

    def rows(self) -> list[tuple[str, str]]:
        """The check in lines of a table."""
        fix = [("", f"fix: {self.fix}")] if self.fix and self.status != "ok" else []
        return [(self.status, f"{self.name}: {self.detail}"), *fix]


def command(config_file: options.Config = None, json: options.Json = False) -> None:
    """Check this machine and configuration, and show fixes."""
    checks = list(diagnose(config_file))
    failed = [check for check in checks if check.status == "failed"]
    summary = f"{len(failed)} of {len(checks)} checks failed" if failed else "ready: bothost run"
    text = output.table([row for check in checks for row in check.rows()])
    output.emit({"ok": not failed, "checks": checks}, json, f"{text}\n\n{summary}")
    if failed:
        raise typer.Exit(failed[0].exit_code)


def diagnose(config_file: Path | None) -> Iterator[Check]:
    """Run all checks, in the order in which problems should be fixed."""
    yield _python()
    yield from _guarded("native core", _native)
    try:
        loaded = config.read(config_file)
    except BothostError as error:
        yield from _failed("configuration", error)
        return
    settings = loaded.settings
    yield Check("configuration", "ok", f"{loaded.path} (hash {config.config_hash(settings)})")
    for text in options.warnings(loaded):
        yield Check("configuration", "warning", text)
    yield from _guarded("plugins", lambda: _plugins(settings, str(loaded.path)))
    yield from _folder("data_dir", settings.host.data_dir, "set another [host] data_dir")
    if settings.log.file is not None:
        yield from _folder("log file", settings.log.file.parent, "set another [log] file")
    yield _open_files(settings)
    yield from _guarded("database", lambda: _database(settings))
    yield from _clock()
    for lobby in settings.lobbies:
        yield from _lobby(lobby)


def _guarded(name: str, check: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """Run a check, and convert its exceptions to failures."""
    try:
        yield from list(check())
    except BothostError as error:
        yield from _failed(name, error)
    except Exception as error:
        yield Check(name, "failed", f"{type(error).__name__}: {error}", "this is a bug in bothost; please report it")


def _failed(name: str, error: BothostError) -> Iterator[Check]:
    for part in error.errors if isinstance(error, ConfigErrors) else (error,):
        yield Check(name, "failed", str(part), part.advice, error.exit_code)


def _python() -> Check:
    detail = f"{'.'.join(map(str, sys.version_info[:3]))} in {sys.prefix}"
    if not interpreter_is_slow(mapped_files(), sysconfig.get_config_var("PY_CFLAGS_NODIST") or ""):
        return Check("python", "ok", detail)
    detail += ", built --enable-shared without -fno-semantic-interposition, which makes Python slower"
    return Check("python", "warning", detail, "make the venv with another interpreter (docs/guide/deploy.md, Install)")


def interpreter_is_slow(mapped: str, flags: str) -> bool:
    """Whether the interpreter runs from a shared library whose functions call each other through a table.

    ``mapped``: the files that the process has in its memory; ``flags``: what the interpreter was compiled with.
    """
    return "libpython3" in mapped and "-fno-semantic-interposition" not in flags


def mapped_files() -> str:
    """The files that this process has in its memory; "" where the system does not say."""
    try:
        return Path("/proc/self/maps").read_text()
    except OSError:  # not Linux
        return ""


def _native() -> Iterator[Check]:
    try:
        from bothost import rules
    except ImportError as error:
        yield Check("native core", "failed", str(error), "build it: make install (or: pip install bothost)")
        return
    yield Check("native core", "ok", f"games: {', '.join(rules.games())}")


def _plugins(settings: config.Settings, file: str) -> Iterator[Check]:
    from bothost.host.check import SECRET_ADVICE, check_settings, missing_secrets
    from bothost.plugins import Plugins

    plugins = Plugins.load(settings.host.plugins_dir)
    plugins.folder = Path(file).parent
    for failure in plugins.failures:
        yield Check("plugins", "warning", f"{failure.plugin}: {failure.cause}", failure.advice)
    yield Check("plugins", "ok", f"{len(plugins.sources)} loaded, {len(plugins.strategies)} strategies")
    for text in missing_secrets(settings, plugins):
        yield Check("secrets", "failed", text, SECRET_ADVICE, 78)
    try:
        check_settings(settings, plugins, file=file)
    except BothostError as error:
        yield from _failed("routes", error)
    else:
        yield Check("routes", "ok", f"{output.counted(len(settings.routes), 'route')}, all strategies resolve")


def _folder(name: str, folder: Path, otherwise: str) -> Iterator[Check]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"bothost")
        free = shutil.disk_usage(folder).free
    except OSError as error:
        fix = f"let this user write to it, make room, or {otherwise}"
        yield Check(name, "failed", f"{folder}: {error.strerror}", fix, 78)
        return
    status: Status = "failed" if free < NO_DISK else "warning" if free < LOW_DISK else "ok"
    yield Check(name, status, f"{folder}, {free / 1e9:.1f} GB free", f"make room, or {otherwise}")


def _open_files(settings: config.Settings) -> Check:
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    except (ImportError, OSError):
        return Check("open files", "ok", "unlimited")
    needed = 64 + 4 * settings.limits.tables
    if 0 <= soft < needed:
        return Check("open files", "warning", f"{soft} allowed, up to {needed} needed", f"ulimit -n {needed}")
    return Check("open files", "ok", f"{soft} allowed")


def _database(settings: config.Settings) -> Iterator[Check]:
    from bothost.store import schema
    from bothost.store.engine import shown

    schema.check_database(settings.store)
    yield Check("database", "ok", f"{shown(settings.store.url)}, schema up to date")


def _clock() -> Iterator[Check]:
    built = Path(__file__).stat().st_mtime
    if time.time() < built - 86400:
        yield Check("clock", "failed", f"{time.ctime()} is before bothost was installed", "set the clock; use NTP")
    else:
        yield Check("clock", "ok", f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}")


def _lobby(lobby: config.LobbySettings) -> Iterator[Check]:
    """Check a lobby's address, certificate and clock with one plain HTTP request."""
    import httpx

    from bothost.host.certificates import advice_for, trusted

    name = f"lobby {lobby.name}"
    url = "http" + lobby.url.removeprefix("ws") if lobby.url.startswith("ws") else lobby.url
    try:
        headers = {"User-Agent": lobby.user_agent}
        with httpx.stream("GET", url, timeout=REACH_S, headers=headers, verify=trusted()) as answer:
            date = answer.headers.get("date")  # nobody reads the body: it may be endless
    except httpx.RemoteProtocolError:
        yield Check(name, "ok", f"{lobby.url} answers")  # a websocket server without HTTP
        return
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        local = "127.0.0.1" in lobby.url or "localhost" in lobby.url
        fix = "start it: bothost lobby serve" if local and lobby.adapter == "embedded" else "check url and network"
        why = str(error) or type(error).__name__
        yield Check(name, "failed", f"{lobby.url}: {why}", advice_for(why, fix), 75)
        return
    yield Check(name, "ok", f"{lobby.url} answers")
    if date:
        try:
            behind = email.utils.parsedate_to_datetime(date).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return
        if abs(behind) > CLOCK_S:
            detail = (
                f"this machine's clock is {abs(behind):.0f} s {'behind' if behind > 0 else 'ahead of'} {lobby.name}"
            )
            yield Check("clock", "warning", detail, "set the clock; use NTP")
