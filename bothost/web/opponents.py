"""The bots that a person plays against: a host of its own in a child process, with one account a seat.

It writes the same log as every host. It ends with the table, and drains when its parent is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import structlog
import tomli_w

from bothost.config import Settings
from bothost.config import secrets as secrets_of
from bothost.host.last_words import LastWords
from bothost.locking import locked
from bothost.rules.game import Game

_log = structlog.get_logger("bothost.web")

LOBBY = "browser"
"""Name of the pages' own lobby in the log."""
MIN_MOVE_MS = 700
"""Bots never answer faster, so that people can follow."""
END_S = 10.0
"""How long a command may take to end before it is killed."""

PLAY = "play"
"""The folder of ``data_dir`` with a folder for each game."""
JOBS = "jobs"
"""The folder of ``data_dir`` with a folder for each running job."""
CONFIGURATION, TOKEN, PASSWORD = "config.toml", "token-", "store-password"
"""Names of a game's files; a token's name ends with the number of its bot."""


class Bot(msgspec.Struct, frozen=True):
    """One opponent."""

    name: str
    token: str
    address: str
    """Address of its strategy."""


def bots_of(addresses: Sequence[str], room: str) -> list[Bot]:
    """An account for each address. Names say who plays, and are never used twice."""
    return [
        Bot(f"{address.replace(':', '.')[:40]}-{room}-{number}", secrets.token_urlsafe(32), address)
        for number, address in enumerate(addresses, 1)
    ]


def configuration(
    settings: Settings, folder: Path, url: str, game: Game, bots: Sequence[Bot], attributes: Mapping[str, Any]
) -> str:
    """config.toml of the child. Secrets stand in files beside it."""
    basis = basis_of(settings, folder, folder)
    basis["host"] |= {"name": f"{LOBBY}-{folder.name}", "drain_timeout_s": 2.0}
    wish = {"game": game.name, "rules": game.rules, "attributes": dict(attributes)}
    accounts = [
        {"name": bot.name, "token": {"file": _secret(folder / f"{TOKEN}{number}", bot.token)}, "wish": [wish]}
        for number, bot in enumerate(bots, 1)
    ]
    lobby = {
        "name": LOBBY,
        "adapter": "embedded",
        "url": url,
        "allow_same_table": True,
        "min_move_ms": MIN_MOVE_MS,
        "account": accounts,
    }
    return tomli_w.dumps(
        {
            **basis,
            "log": {"level": "warning", "file": str(folder / "host.log")},
            "lobby": [lobby],
            "route": [{"account": bot.name, "strategy": bot.address} for bot in bots],
        }
    )


def basis_of(settings: Settings, folder: Path, data_dir: Path) -> dict[str, Any]:
    """``[host]`` and ``[store]`` of a child process: our database and plugins. Secrets stand in files in ``folder``."""
    store: dict[str, Any] = {"url": settings.store.url, "durability": settings.store.durability}
    if settings.store.password is not None and settings.store.password.present:
        store["password"] = {"file": _secret(folder / PASSWORD, settings.store.password.reveal())}
    host: dict[str, Any] = {"data_dir": str(data_dir)}
    if settings.host.plugins_dir is not None:
        host["plugins_dir"] = str(settings.host.plugins_dir.resolve())
    return {"host": host, "store": store}


def environment_of(settings: Settings) -> dict[str, str]:
    """The environment of a child process: ours without secrets. The bots of this user could read those of the child."""
    sources = {source for secret in secrets_of(settings) for source in secret.source.split(" or ")}
    return {name: value for name, value in os.environ.items() if f"${name}" not in sources}


def _secret(file: Path, text: str) -> str:
    """A file that only this user can read."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(text)
    return str(file)


@contextlib.asynccontextmanager
async def running(
    settings: Settings, room: str, url: str, game: Game, bots: Sequence[Bot], attributes: Mapping[str, Any]
) -> Any:
    """The bots at work; gives the process. They are ended on leaving."""
    folder = settings.host.data_dir.resolve() / PLAY / room
    folder.mkdir(parents=True, mode=0o700)
    with locked(folder) as lock:
        file = folder / CONFIGURATION
        file.write_text(configuration(settings, folder, url, game, bots, attributes))
        argv = [sys.executable, "-m", "bothost", "run", "--config", str(file), "--worker", "1/1"]
        argv += ["--parent", str(os.getpid())]
        last_words = LastWords()
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=last_words.fileno(),
                pass_fds=(lock,),
                env=environment_of(settings),
            )
        finally:
            last_words.follow()
        try:
            yield process
        finally:
            await end(process)
            if process.returncode:
                said = await asyncio.to_thread(last_words.text)
                _log.warning("the bots of a game failed", game=room, code=process.returncode, stderr=said)
            await asyncio.to_thread(_clear, folder, ended_well=process.returncode == 0)


def clear_leftovers(data_dir: Path) -> None:
    """Remove the folders of games whose server and bots were killed, and of jobs whose server was."""
    for file in (data_dir / JOBS).glob(f"*/{CONFIGURATION}"):
        with contextlib.suppress(OSError), locked(file.parent):
            shutil.rmtree(file.parent, ignore_errors=True)
    for file in (data_dir / PLAY).glob(f"*/{CONFIGURATION}"):
        with contextlib.suppress(OSError), locked(file.parent):
            _clear(file.parent, ended_well=not any(file.parent.glob("spool/*/*/*.spool")))


def _clear(folder: Path, *, ended_well: bool) -> None:
    """Remove a game's folder. If its bots failed, keep their log and the rows that they could not write."""
    if ended_well:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for name in (CONFIGURATION, PASSWORD, f"{TOKEN}*"):
        for file in folder.glob(name):
            file.unlink(missing_ok=True)


async def end(process: asyncio.subprocess.Process) -> None:
    """End a command of bothost, and wait for it."""
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):  # drain; quit; no more patience
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_S / 2):
                await process.wait()
