"""Starts the unmodified servers of lobbies that others wrote, from a checkout of their source, and breaks connections.

The servers need their own requirements. Install those into an interpreter of their own.
"""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psycopg
import pytest
from websockets.asyncio.client import connect

from bothost.testing.postgres import new_database, temporary_postgres

PYTHON = os.environ.get("BOTHOST_REAL_SERVER_PYTHON", sys.executable)
"""The interpreter that has the servers' requirements."""
NODE = os.environ.get("BOTHOST_REAL_SERVER_NODE", "node")
"""Node.js, for servers that need it."""


def source_of(variable):
    """The checkout that an environment variable names; skips the test where it is not set."""
    if variable not in os.environ:
        pytest.skip(f"{variable} names no checkout of the server")
    return Path(os.environ[variable]).resolve()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(command, folder, port, environment=None, log_folder=None):
    """A server process, once it listens. ``log_folder``: for its output; default: where it runs."""
    log_folder = log_folder or folder
    with (log_folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, env={**os.environ, **(environment or {})}
        )
        try:
            give_up = time.monotonic() + 60
            while True:
                alive = process.poll() is None and time.monotonic() < give_up
                assert alive, (log_folder / "server.log").read_text()[-2000:]
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.2)
            yield
        finally:
            process.terminate()
            process.wait(20)


@contextlib.contextmanager
def open_mahjong(source, folder):
    """A server of open_mahjong_unity; gives its port and the connection string of its database."""
    with temporary_postgres() as url:
        new_database(url, "open_mahjong")
        socket_folder = url.partition("?host=")[2]
        shutil.copytree(source / "open_mahjong_server", folder)
        (folder / "server" / "local_config.py").write_text(
            "class Config:\n"
            f"    host, user, password, database, port = {socket_folder!r}, 'postgres', '', 'open_mahjong', 5432\n"
            "    auto_create_chatserver = logging_do_stream_handler = False\n"
            "    release_version = 20\n"
            "    player_jwt_secret = player_jwt_audience = 'test'\n"
        )
        port = free_port()
        command = [PYTHON, "-m", "uvicorn", "server.server:app", "--host", "127.0.0.1", "--port", str(port)]
        with running(command, folder, port):
            yield port, url.replace("/postgres?", "/open_mahjong?", 1)


async def register_at_open_mahjong(port, name, password):
    """The server allows three new accounts a day and address: each name comes from its own."""
    address = f"10.0.0.{len(name) + ord(name[-1])}"
    path = f"ws://127.0.0.1:{port}/game/{uuid.uuid4()}"
    async with connect(path, additional_headers={"X-Forwarded-For": address}) as line:
        await line.send(json.dumps({"type": "send_release_version", "release_version": 20}))
        await line.send(json.dumps({"type": "login", "username": name, "password": password}))
        assert json.loads(await line.recv())["success"]


def open_mahjong_scores(database):
    """Score changes in the server's own records: one dict a match, (round, user name) → points."""
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT record FROM game_records ORDER BY created_at").fetchall()
    matches = []
    for (record,) in rows:
        title, scores = record["game_title"], {}
        for number, hand in enumerate(sorted(record["game_round"].values(), key=lambda r: r["round_index"]), 1):
            won = [tick[4] for tick in hand["action_ticks"] if str(tick[0]).startswith("hu")]
            changes = won[-1] if won else [0, 0, 0, 0]
            for player, index in enumerate(hand["seats"]):
                scores[number, title[f"p{player}_name"]] = changes[index]
        matches.append(scores)
    return matches


@contextlib.contextmanager
def mailgyc(source, folder):
    """A server of mailgyc/doudizhu; gives its port."""
    shutil.copytree(source / "server", folder)
    database = f"sqlite+aiosqlite:///{folder}/lobby.db"
    port = free_port()
    environment = {"DATABASE_URI": database, "PORT": str(port), "PYTHONPATH": str(folder)}
    tables = (
        "import asyncio, models\n"
        "from models.base import Base, engine\n"
        "async def make():\n"
        "    async with engine.begin() as connection:\n"
        "        await connection.run_sync(Base.metadata.create_all)\n"
        "asyncio.run(make())\n"
    )
    subprocess.run(
        [PYTHON, "-c", tables], cwd=folder, env={**os.environ, **environment}, check=True, capture_output=True
    )
    with running([PYTHON, "app.py"], folder, port, environment):
        yield port


@contextlib.contextmanager
def othello_platform(source, log_folder):
    """A server of othello-platform, in whose checkout ``pnpm install`` has run; gives its port.

    It runs with its own settings but for the limits of logins and calls, which count all players of one address.
    """
    server = source / "apps" / "server"
    log_folder.mkdir()
    with temporary_postgres() as url:
        new_database(url, "othello")
        port = free_port()
        environment = {
            "DATABASE_URL": f"socket:{url.partition('?host=')[2]}?db=othello&user=postgres",
            "JWT_SECRET": "planted-secret-of-the-test",
            "HOST": "127.0.0.1",
            "PORT": str(port),
            "AUTH_RATE_LIMIT_MAX": "1000",
            "RATE_LIMIT_MAX": "100000",
        }
        typescript = [NODE, "--import", "tsx"]
        migrate = [*typescript, "src/db/migrate.ts", "up"]
        subprocess.run(migrate, cwd=server, env={**os.environ, **environment}, check=True, capture_output=True)
        with running([*typescript, "src/index.ts"], server, port, environment, log_folder):
            yield port


class Proxy:
    """Forwards connections to a port of loopback, and breaks them on request."""

    def __init__(self, target, linger_s=0.0):
        """``linger_s``: how long the server keeps a connection that its client has lost."""
        self.target = target
        self.linger_s = linger_s
        self.port = 0
        self.breaks = 0
        self._writers = set()
        self._tasks = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error):
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        back, forth = await asyncio.open_connection("127.0.0.1", self.target)
        self._writers.add(writer)
        try:
            await asyncio.gather(self._pump(reader, forth, self.linger_s), self._pump(back, writer))
        finally:
            self._writers.discard(writer)
            for side in (writer, forth):
                side.transport.abort()
            self._tasks.discard(task)

    @staticmethod
    async def _pump(reader, writer, linger_s=0.0):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        await asyncio.sleep(linger_s)
        with contextlib.suppress(ConnectionError):
            writer.close()

    def break_connections(self):
        """Without a close frame."""
        self.breaks += bool(self._writers)
        for writer in self._writers:
            writer.transport.abort()
