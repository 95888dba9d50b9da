"""A rolling upgrade under load: hosts of an older release are replaced one by one, on one database.

    python -m benchmarks.rolling_upgrade ~/old/.venv/bin/bothost --out runs/rolling_upgrade.jsonl

Each round starts hosts of the older release, each with accounts of its own, and lets them play. Then it does what
``docs/guide/operate.md`` says: ``bothost db upgrade`` while they play, then for each old host it starts a new one with
the same accounts and its own ``data_dir``, and drains the old one. In the end it drains the new hosts, and starts an
old one again, which must refuse the newer schema. The lobby counts every answer, as in ``bothost bench chaos``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import sqlalchemy as sa
import typer

from bothost import __version__, logs
from bothost.bench.chaos import rows_of
from bothost.bench.chaos_lobby import CountingLobby
from bothost.config import StoreSettings
from bothost.store.engine import make_engine
from bothost.testing.postgres import new_database, temporary_postgres

Json = dict[str, Any]

HOSTS = 3
ACCOUNTS = 4
"""Of each host."""
TABLES = 5
"""Of each account."""
PLAY_S = 8.0
"""Play between two steps."""
END_S = 120.0
REFUSED = 78
WRONG = ("rows_lost", "rows_doubled", "illegal_moves", "missed_deadlines", "open_hands", "wrong_exits")
"""Figures that must be 0."""
CONFIG = """
[host]
name = "{name}"
data_dir = "{name}"
drain_timeout_s = 60
[store]
url = "{url}"
[log]
level = "warning"
file = "{name}.log"
[limits]
tables = {tables}
[[route]]
game = "doudizhu"
strategy = "rule-doudizhu"
[[route]]
game = "othello"
strategy = "rule-othello"
[[lobby]]
name = "home"
adapter = "embedded"
url = "{lobby}"
min_move_ms = 200
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


class Upgrade:
    """One round."""

    def __init__(self, folder: Path, old: str, url: str) -> None:
        self.folder = folder
        self.commands = {"old": (old,), "new": (sys.executable, "-m", "bothost")}
        self.url = url
        self.names = [[f"player-{host}-{n}" for n in range(ACCOUNTS)] for host in range(HOSTS)]
        self.wrong_exits = 0
        self.lobby: CountingLobby

    async def run(self) -> Json:
        """Play, upgrade, and count."""
        tokens = {name: f"token-of-{name}" for names in self.names for name in names}
        for name, token in tokens.items():
            path = self.folder / f"{name}.token"
            path.touch(0o600)
            path.write_text(token)
        async with CountingLobby(tokens, games=("doudizhu", "othello"), hands=2, tables=10_000) as self.lobby:
            self._configure("old")
            await self._call("old", "db", "upgrade", "--config", self._file("old", 0))
            hosts = [await self._start("old", host) for host in range(HOSTS)]
            await self._all_play(0)
            await asyncio.sleep(PLAY_S)
            self._configure("new")
            await self._call("new", "db", "upgrade", "--config", self._file("new", 0))
            gaps = []
            for host, old in enumerate(hosts):
                line = self.lobby.newest_line()
                hosts[host] = await self._start("new", host)
                await asyncio.sleep(PLAY_S)
                began = time.monotonic()
                await self._drain(old)
                gaps.append(await self._all_play(line, host) - began)
            await asyncio.sleep(PLAY_S)
            for new in hosts:
                await self._drain(new)
            refusal = await self.refused()
            rows = await asyncio.to_thread(rows_of, StoreSettings(url=self.url))
        answers = self.lobby.answers.items()
        return {
            "moves": len(answers),
            "rows_lost": sum(answer not in rows for answer in answers),
            "rows_doubled": sum(rows[answer] > 1 for answer in answers) + self.lobby.second_opinions,
            "illegal_moves": self.lobby.illegal,
            "missed_deadlines": self.lobby.missed,
            "open_hands": self._open_hands(),
            "wrong_exits": self.wrong_exits,
            "taken_over_s": [round(gap, 2) for gap in gaps],
            "refusal": refusal,
        }

    def _file(self, age: str, host: int) -> str:
        return str(self.folder / f"{age}-{host}.toml")

    def _configure(self, age: str) -> None:
        for host, names in enumerate(self.names):
            text = CONFIG.format(name=f"{age}-{host}", url=self.url, lobby=self.lobby.url, tables=ACCOUNTS * TABLES)
            for n, name in enumerate(names):
                text += ACCOUNT.format(name=name, tables=TABLES, game=("doudizhu", "othello")[n % 2])
            Path(self._file(age, host)).write_text(text)

    async def _start(self, age: str, host: int) -> asyncio.subprocess.Process:
        command = (*self.commands[age], "run", "--config", self._file(age, host))
        with (self.folder / f"{age}-{host}.out").open("ab") as out:
            return await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out, cwd=self.folder)

    async def _call(self, age: str, *arguments: str) -> None:
        process = await asyncio.create_subprocess_exec(*self.commands[age], *arguments, cwd=self.folder)
        self.wrong_exits += bool(await process.wait())

    async def _drain(self, process: asyncio.subprocess.Process) -> None:
        process.send_signal(signal.SIGTERM)
        self.wrong_exits += bool(await asyncio.wait_for(process.wait(), END_S))

    async def refused(self) -> str:
        """What an old host says to the new schema."""
        command = (*self.commands["old"], "run", "--config", self._file("old", 0))
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, cwd=self.folder)
        out, err = await asyncio.wait_for(process.communicate(), END_S)
        self.wrong_exits += process.returncode != REFUSED
        return (err or out).decode().strip()

    async def _all_play(self, line: int, host: int | None = None) -> float:
        """When all accounts (of a host) had moved on connections newer than ``line``."""
        names = [name for at, names in enumerate(self.names) for name in names if host in (None, at)]
        async with asyncio.timeout(END_S):
            while True:
                first = [self.lobby.first_moves.get(name, (0, 0.0)) for name in names]
                if all(number > line for number, _ in first):
                    return max(at for _, at in first)
                await asyncio.sleep(0.05)

    def _open_hands(self) -> int:
        engine = make_engine(StoreSettings(url=self.url))
        query = "SELECT count(*) FROM games WHERE game_id NOT IN (SELECT game_id FROM game_ends)"
        try:
            with engine.connect() as connection:
                return int(connection.execute(sa.text(query)).scalar_one())
        finally:
            engine.dispose()


def main(
    old: Annotated[str, typer.Argument(help="Command `bothost` of the older release.")],
    rounds: Annotated[int, typer.Option(help="Rounds; every second one on PostgreSQL.")] = 2,
    out: Annotated[Path, typer.Option(help="Results, one round a line; new rounds are appended.")] = Path(
        "runs/rolling_upgrade.jsonl"
    ),
) -> None:
    """Run rounds. Exit code 1: an invariant was broken."""
    logs.configure(level="error")
    broken = False
    with contextlib.ExitStack() as stack:
        server: str | None = None
        for number in range(rounds):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bothost-upgrade-")))
            url = f"sqlite:///{folder}/log.db"
            if number % 2:
                server = server or stack.enter_context(temporary_postgres())
                url = new_database(server, f"upgrade_{number}")
            figures = asyncio.run(Upgrade(folder, old, url).run())
            database = "postgresql" if number % 2 else "sqlite"
            done = {"database": database, "version": __version__, "at": time.strftime("%Y-%m-%d"), **figures}
            out.parent.mkdir(parents=True, exist_ok=True)
            with out.open("a") as file:
                file.write(json.dumps(done) + "\n")
            print(json.dumps(done, indent=2))
            broken = broken or any(done[name] for name in WRONG)
    if broken:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
