"""``bothost bench chaos``: a host under SIGKILL, with a database, a lobby and plugins that fail at random.

The host is ``bothost run`` as an operator starts it, in its own process, which is restarted whenever it ends. With
``--standby`` there are two: one plays and is killed, the other waits, as ``bothost run --standby`` does. The lobby runs
in this process, plays correctly and counts. Accounts play with `random`, and with strategies that misbehave in a thread
and in a process. Faults occur at random moments, in the given numbers. Then the host is drained, and the database is
checked for every move that the lobby received.

- ``moves``: answers that the lobby received; ``rows_lost``: answers without a row; ``rows_doubled``: answers with
  several rows, and requests that were answered with two different moves;
- ``missed_deadlines``: moves that the lobby made for us. A lobby that is down asks nothing and forgets its tables, so
  its own outages cause none;
- ``recovery_s``: from a kill, or the lobby's return, until every account has moved again.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import sqlalchemy as sa
import typer

from bothost import logs
from bothost.bench import chaos_plugin
from bothost.bench.chaos_lobby import CountingLobby
from bothost.bench.host import Accounts, Tables
from bothost.config import StoreSettings
from bothost.store import schema
from bothost.store.engine import make_engine, sqlite_path

STRATEGIES = ("random", "erratic-thread", "random", "erratic-process")
"""Strategies of the accounts, in turn."""
GAMES = ("doudizhu", "othello")
RESTART_S = 0.1
"""Seconds between the end of a host and its next start."""
DRAIN_S = 60.0
CONFIG = """
[host]
name = "chaos"
data_dir = "data"
plugins_dir = "plugins"
drain_timeout_s = 1
[store]
url = "{url}"
[limits]
tables = {tables}
quarantine_s = 5
process_workers = 2
process_memory_mb = 384
[log]
level = "error"
file = "host.log"
[[lobby]]
name = "home"
adapter = "embedded"
url = "{lobby}"
min_move_ms = {pace}
"""
ACCOUNT = """
[[lobby.account]]
name = "{name}"
token = {{ file = "{name}.token" }}
tables = {tables}
[[lobby.account.wish]]
game = "{game}"
attributes = {{ of = "{name}" }}
"""
"""The attribute keeps own accounts apart: robots take all other seats."""
ROUTE = """
[[route]]
account = "{name}"
strategy = "{strategy}"
"""
ERRATIC = '[route.options]\njournal = "{journal}"\nchance = {chance}\n'


def command(
    minutes: Annotated[float, typer.Option(min=0.05, help="Length.")] = 10.0,
    tables: Tables = 200,
    accounts: Accounts = 8,
    kills: Annotated[float, typer.Option(min=0, help="SIGKILLs per minute.")] = 6.0,
    outages: Annotated[float, typer.Option(min=0, help="Outages of the database per minute.")] = 3.0,
    restarts: Annotated[float, typer.Option(min=0, help="Restarts of the lobby per minute.")] = 1.0,
    chance: Annotated[
        float, typer.Option(min=0, max=1, help="Chance of a fault, per decision of a bad plugin.")
    ] = 0.01,
    pace_ms: Annotated[float, typer.Option(min=0, help="Least time of a move, ms.")] = 500.0,
    postgresql: Annotated[
        str | None, typer.Option(help="URL of an empty PostgreSQL database to use; its role must be a superuser.")
    ] = None,
    standby: Annotated[bool, typer.Option(help="Keep a second host that waits: bothost run --standby.")] = False,
    seed: Annotated[int, typer.Option(help="Of the blows.")] = 1,
    folder: Annotated[Path | None, typer.Option(help="Where all files are made and kept; default: none is.")] = None,
) -> dict[str, Any]:
    """Run the host under faults and count what it lost."""
    logs.configure(level="error")  # the lobby logs every table
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bothost-chaos-")))
        folder.mkdir(parents=True, exist_ok=True)
        per_minute = {"kill": kills, "outage": outages, "restart": restarts}
        url = postgresql or f"sqlite:///{folder.resolve()}/chaos.db"
        chaos = Chaos(folder, StoreSettings(url=url), random.Random(seed), hosts=2 if standby else 1)
        chaos.write_configuration(accounts, tables, chance, pace_ms)
        return asyncio.run(chaos.run(minutes * 60.0, per_minute))


class Chaos:
    """One run."""

    def __init__(self, folder: Path, store: StoreSettings, rng: random.Random, *, hosts: int = 1) -> None:
        """``hosts``: how many processes to keep; all but one of them wait for their turn."""
        self.folder = folder
        self.store = store
        self.rng = rng
        self.recoveries: list[float] = []
        self.struck: Counter[str] = Counter()
        self.processes = hosts
        self.hosts: list[asyncio.subprocess.Process] = []
        """The running ones, in the order of their starts."""
        self.stopping = False
        self.lobby: CountingLobby
        self.lobby_settings: dict[str, Any] = {}

    def write_configuration(self, accounts: int, tables: int, chance: float, pace_ms: float) -> None:
        """Writes ``config.toml`` without the lobby's port, the plugin and the tokens, and an empty database."""
        (self.folder / "plugins").mkdir()
        (self.folder / "plugins" / "chaos_plugin.py").write_text(Path(chaos_plugin.__file__).read_text())
        names = [f"player-{n}" for n in range(accounts)]
        config = CONFIG.replace("{pace}", str(pace_ms)).replace("{url}", self.store.url)
        config = config.replace("{tables}", str(tables))
        for n, name in enumerate(names):
            token = self.folder / f"{name}.token"
            token.touch(0o600)
            token.write_text(f"token-of-{name}")
            share = tables // accounts + (n < tables % accounts)
            config += ACCOUNT.format(name=name, tables=share, game=GAMES[n // len(STRATEGIES) % len(GAMES)])
        for n, name in enumerate(names):
            strategy = STRATEGIES[n % len(STRATEGIES)]
            config += ROUTE.format(name=name, strategy=strategy)
            if strategy.startswith("erratic"):
                config += ERRATIC.format(journal=self.journal, chance=chance)
        self.names, self.config = names, config
        schema.upgrade(self.store)

    @property
    def journal(self) -> Path:
        """The names of the faults of plugins, one per line."""
        return (self.folder / "faults").resolve()

    async def run(self, seconds: float, per_minute: dict[str, float]) -> dict[str, Any]:
        """Play for the given time under the given faults, drain, and count."""
        tokens = {name: f"token-of-{name}" for name in self.names}
        settings: dict[str, Any] = {"games": GAMES, "hands": 2, "tables": 10_000, **self.lobby_settings}
        async with CountingLobby(tokens, **settings) as self.lobby:
            (self.folder / "config.toml").write_text(self.config.replace("{lobby}", self.lobby_url()))
            keeping = [asyncio.create_task(self._keep_host()) for _ in range(self.processes)]
            try:
                await self.until_all_played(0)
                await self._strike(schedule(self.rng, seconds, per_minute))
                await self._drain(keeping)
            finally:
                self.stopping = True
                for task in keeping:
                    task.cancel()
                await asyncio.gather(*keeping, return_exceptions=True)
            return self._figures(await asyncio.to_thread(rows_of, self.store))

    # -------------------------------------------------------------------------------------------------------- the host

    def lobby_url(self) -> str:
        """The lobby's address, as the host shall use it."""
        return self.lobby.url

    async def _keep_host(self) -> None:
        """Start the host, and restart it whenever it ends, as systemd does."""
        command = [sys.executable, "-m", "bothost", "run", "--config", str(self.folder / "config.toml")]
        if self.processes > 1:
            command.append("--standby")
        while not self.stopping:
            with (self.folder / "host.out").open("ab") as out:
                host = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out)
            self.hosts.append(host)
            try:
                await host.wait()
            except asyncio.CancelledError:
                host.kill()
                await host.wait()
                raise
            finally:
                self.hosts.remove(host)
            await asyncio.sleep(RESTART_S)

    async def _drain(self, keeping: Sequence[asyncio.Task[None]]) -> None:
        """Drain the host, so that all of its rows are in the database."""
        await self.until_all_played(self.lobby.newest_line() - len(self.names))
        self.stopping = True
        for host in sorted(self.hosts, key=lambda host: host is self.playing()):  # first those that wait
            host.terminate()
        async with asyncio.timeout(DRAIN_S):
            await asyncio.gather(*keeping)

    def playing(self) -> asyncio.subprocess.Process | None:
        """The host that has locked the ``data_dir``; until one has, the one that started first."""
        running = [host for host in self.hosts if host.returncode is None]
        holder = locker(self.folder / "data" / "host.id")
        return next((host for host in running if host.pid == holder), running[0] if running else None)

    async def until_all_played(self, line: int, most_s: float = 60.0) -> float:
        """The time at which all accounts have moved on connections newer than ``line``. Raises TimeoutError."""
        async with asyncio.timeout(most_s):
            while (at := self.lobby.all_played_at(line)) is None:  # noqa: ASYNC110 (frames make it true)
                await asyncio.sleep(0.02)
        return at

    # ------------------------------------------------------------------------------------------------------- the blows

    async def _strike(self, blows: list[tuple[float, str]]) -> None:
        """Cause every fault at its moment. Faults may overlap, but outages of one kind do not.

        Returns when the host has recovered from all.
        """
        began, kinds = time.monotonic(), self.kinds()
        locks: dict[str, asyncio.Lock] = {kind: asyncio.Lock() for kind in kinds}
        async with asyncio.TaskGroup() as group:
            for at, kind in blows:
                await asyncio.sleep(began + at - time.monotonic())
                if kind in kinds:
                    group.create_task(self._blow(kinds[kind], None if kind == "kill" else locks[kind]))
                    self.struck[kind] += 1

    def kinds(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Fault → function that causes it, and returns when the host has recovered."""
        return {"kill": self._kill, "outage": self._take_database_away, "restart": self._restart_lobby}

    @staticmethod
    async def _blow(blow: Callable[[], Awaitable[None]], lock: asyncio.Lock | None) -> None:
        async with lock or contextlib.nullcontext():
            await blow()

    async def _kill(self) -> None:
        line, now = self.lobby.newest_line(), time.monotonic()
        if (host := self.playing()) is not None:
            host.kill()
        self.recoveries.append(await self.until_all_played(line) - now)

    async def _take_database_away(self) -> None:
        path = sqlite_path(self.store.url)
        async with postgres_away(self.store.url) if path is None else sqlite_away(path, self.rng):
            await asyncio.sleep(self.rng.uniform(0.3, 4.0))

    async def _restart_lobby(self) -> None:
        await self.lobby.restart(self.rng.uniform(0.1, 2.0))
        line, now = self.lobby.newest_line(), time.monotonic()
        self.recoveries.append(await self.until_all_played(line) - now)

    # ------------------------------------------------------------------------------------------------------- the count

    def _figures(self, rows: Counter[tuple[int, int]]) -> dict[str, Any]:
        answers = self.lobby.answers.items()
        lost = sum(answer not in rows for answer in answers)
        doubled = sum(rows[answer] > 1 for answer in answers)
        recoveries = sorted(self.recoveries) or [math.nan]
        return {
            "kills": self.struck["kill"],
            "db_outages": self.struck["outage"],
            "lobby_restarts": self.struck["restart"],
            "plugin_faults": self.journal.read_bytes().count(b"\n") if self.journal.exists() else 0,
            "moves": len(answers),
            "rows_lost": lost,
            "rows_doubled": doubled + self.lobby.second_opinions,
            "illegal_moves": self.lobby.illegal,
            "missed_deadlines": self.lobby.missed,
            "recovery_s_p50": round(recoveries[(len(recoveries) - 1) // 2], 3),
            "recovery_s_max": round(recoveries[-1], 3),
        }


def schedule(rng: random.Random, seconds: float, per_minute: dict[str, float]) -> list[tuple[float, str]]:
    """(moment, kind) of every fault, in order; at least one of each wanted kind. The last entry is the end."""
    blows = [
        (rng.uniform(0.02, 0.95) * seconds, kind)
        for kind, rate in per_minute.items()
        for _ in range(max(1, round(rate * seconds / 60.0)) if rate > 0 else 0)
    ]
    return [*sorted(blows), (seconds, "end")]


def locker(file: Path) -> int | None:
    """The process that has locked ``file`` by ``flock``, as Linux lists it."""
    if not file.exists():
        return None
    inode = file.stat().st_ino
    for line in Path("/proc/locks").read_text().splitlines():
        _number, kind, _advisory, _write, pid, where, *_ = line.split()  # of one that waits, ``kind`` is an arrow
        if kind == "FLOCK" and int(where.rpartition(":")[2]) == inode:
            return int(pid)
    return None


@contextlib.asynccontextmanager
async def sqlite_away(path: Path, rng: random.Random) -> AsyncIterator[None]:
    """A database that is locked by another process, or moved away, for the length of the block."""
    if rng.random() < 0.5:
        elsewhere = path.with_suffix(".away")
        os.rename(path, elsewhere)
        try:
            yield
        finally:
            os.rename(elsewhere, path)
        return
    with contextlib.closing(sqlite3.connect(path, timeout=10.0, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


@contextlib.asynccontextmanager
async def postgres_away(url: str) -> AsyncIterator[None]:
    """A database whose connections are ended, and that allows none for the length of the block, as in a restart."""
    target = sa.make_url(url)
    elsewhere = sa.create_engine(
        target.set(drivername="postgresql+psycopg", database="postgres"), isolation_level="AUTOCOMMIT"
    )

    def allow(allowed: bool) -> None:
        with elsewhere.connect() as connection:
            name = connection.dialect.identifier_preparer.quote(str(target.database))
            connection.execute(sa.text(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS {str(allowed).lower()}"))
            if not allowed:
                end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
                connection.execute(sa.text(end), {"name": target.database}).all()

    await asyncio.to_thread(allow, False)
    try:
        yield
    finally:
        await asyncio.to_thread(allow, True)
        elsewhere.dispose()


def rows_of(store: StoreSettings) -> Counter[tuple[int, int]]:
    """(hash of table and request, hash of move) → number of its rows."""
    engine = make_engine(store)
    query = sa.text("SELECT \"table\", request_id, notation FROM decisions WHERE role = 'live'")
    try:
        with engine.connect().execution_options(yield_per=10_000) as connection:
            return Counter((hash((table, request)), hash(move)) for table, request, move in connection.execute(query))
    finally:
        engine.dispose()
