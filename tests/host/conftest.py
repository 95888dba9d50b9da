"""A host and an embedded lobby in one event loop, on a fresh SQLite file."""

import asyncio
import contextlib
import sys
from pathlib import Path

import pytest

import bothost.rules as rules
from bothost.config import AccountSettings, Secret, WishSettings
from bothost.lobby_server import ServerSettings, serve
from bothost.testing.hosting import FAST, Hosting, RandomStrategy, module, until

NAMES = ("ada", "bob", "cyd", "dan")


class Kit(Hosting):
    """Makes hosts for one embedded lobby and one database."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.url = ""

    def settings(
        self, wishes=("doudizhu",), accounts=3, tables=1, routes=None, durability="before_send", consents=(), **lobby
    ):
        made = [
            AccountSettings(
                name=name,
                token=Secret(name * 3, "test"),
                tables=tables,
                consents=name in consents,
                wishes=tuple(wish if isinstance(wish, WishSettings) else WishSettings(game=wish) for wish in wishes),
            )
            for name in NAMES[:accounts]
        ]
        home = super().lobby("home", "embedded", self.url, made, **lobby)
        return super().settings(home, routes=routes or (), durability=durability)

    @contextlib.asynccontextmanager
    async def lobby(self, port=0, **settings):
        tokens = {name: name * 3 for name in NAMES}
        settings.setdefault("grant_ms", 60_000)  # however busy the machine is, nothing is late unless a test wants it
        async with serve(
            ServerSettings(tokens=tokens, port=port, **settings), games=rules.games(testing=True)
        ) as server:
            self.url = server.url
            yield server


@pytest.fixture
def killable(tmp_path):
    """Makes hosts of ada, bob and cyd at a lobby, as a context. It gives what starts one and returns its process id."""

    @contextlib.asynccontextmanager
    async def made(lobby):
        zygote = await asyncio.create_subprocess_exec(
            *(sys.executable, Path(__file__).with_name("kill_zygote.py"), tmp_path, lobby.url, "before_send"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )

        async def start():
            zygote.stdin.write(b"start\n")
            return int(await asyncio.wait_for(zygote.stdout.readline(), 60))

        try:
            yield start
        finally:
            zygote.stdin.close()
            await asyncio.wait_for(zygote.wait(), 60)

    return made


@pytest.fixture
def kit(tmp_path):
    made = Kit(tmp_path)
    made.module, made.until = module, until
    made.random, made.fast = module("given", RandomStrategy), FAST
    return made
