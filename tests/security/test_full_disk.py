"""A disk without room: what stops, what continues, and what the operator sees."""

import asyncio
import contextlib
import resource

import structlog

from bothost.bench.chaos import rows_of
from bothost.bench.chaos_lobby import CountingLobby
from bothost.config import AccountSettings, Secret, WishSettings
from bothost.host.health import health
from bothost.host.status import status_of
from bothost.testing.hosting import Hosting, until

ROOM = 64 * 1024
"""Bytes to which a file may grow while the disk is full."""
NAMES = ("ada", "bob", "cyd")


@contextlib.contextmanager
def full_disk():
    """Every write behind the first bytes of a file fails, in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def until_still(lobby, seconds=0.5):
    """Wait until the lobby receives no move for so long; returns how many it has."""
    while True:
        moves = len(lobby.answers)
        await asyncio.sleep(seconds)
        if len(lobby.answers) == moves:
            return moves


async def test_a_full_disk_stops_moves_loses_none_and_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("bothost.host.health.STUCK_S", 0.5)
    kit = Hosting(tmp_path)
    wish = (WishSettings(game="othello"),)
    accounts = [AccountSettings(name=name, token=Secret(name * 3, "test"), tables=2, wishes=wish) for name in NAMES]
    tokens = {name: name * 3 for name in NAMES}
    async with contextlib.AsyncExitStack() as stack:
        lobby = await stack.enter_async_context(CountingLobby(tokens, games=("othello",), hands=2, tables=100))
        settings = kit.settings(kit.lobby("home", "embedded", lobby.url, accounts))
        host = await stack.enter_async_context(kit.running(settings))
        await until(lambda: len(lobby.answers) > 300)
        connections = lobby.newest_line()
        with full_disk(), structlog.testing.capture_logs() as logs:
            await until(lambda: health(host)["status"] == "failing")
            moves = await until_still(lobby)
            await asyncio.sleep(1.0)
            assert len(lobby.answers) == moves, "no move leaves before its row is saved"
            assert all(account.connection.connected for account in host.accounts)
            assert lobby.newest_line() == connections, "connections stay open"
            found = health(host)
            assert found["status"] == "failing" and "become durable" in found["problems"][0]
            status = status_of(host)
            assert status["outages"] >= 1 and status["health"] == found["problems"]
            assert status["log"]["queue"] > 0
        assert {"database_away", "spool_failed"} <= {log["event"] for log in logs}
        await until(lambda: len(lobby.answers) > moves + 300)
        assert health(host)["status"] == "ok"
        assert host.log.stats.rejected == 0
    rows = rows_of(kit.store_settings)
    assert [rows[answer] for answer in lobby.answers.items()] == [1] * len(lobby.answers)
    assert lobby.illegal == lobby.second_opinions == 0
