"""A hundred games at the unmodified othello-platform server, with broken connections. ::

    BOTHOST_OTHELLO_SOURCE=~/othello-platform BOTHOST_REAL_SERVER_NODE=~/node-22/bin/node \\
        pytest -m long tests/lobbies/othello_platform/test_real_server.py -s
"""

import asyncio

import pytest

import bothost_baselines
from bothost.config import AccountSettings, RouteSettings, Secret, WishSettings
from bothost.host.account import Timeouts
from bothost.host.reconnect import ConnectionSettings
from bothost.testing.hosting import Hosting

from .. import real_servers

GAMES = 100
BREAK_EVERY_S = 15.0
PASSWORD = "planted-Passw0rd!o"
NAMES = ("botada", "botbob", "botcyd", "botdan", "boteve", "botfay")


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_a_hundred_games_at_the_real_server(tmp_path):
    """All players lose their connections every 15 s, and come back to their games within the lobby's 30 s."""
    source = real_servers.source_of("BOTHOST_OTHELLO_SOURCE")
    kit = Hosting(
        tmp_path,
        connection=ConnectionSettings(heartbeat_s=5.0, connect_s=12.0, backoff_first_s=0.1, backoff_most_s=2.0),
        timeouts=Timeouts(seek_s=90.0, settle_s=1.0, confirm_s=60.0, idle_s=120.0),
    )
    wish = (WishSettings(game="othello", attributes={"mode": "match"}),)
    accounts = [AccountSettings(name=name, password=Secret(PASSWORD, "test"), wishes=wish) for name in NAMES]
    with real_servers.othello_platform(source, tmp_path / "server") as port:
        async with real_servers.Proxy(port) as proxy:
            url = f"ws://127.0.0.1:{proxy.port}/ws"
            lobby = kit.lobby("oth", "othello_platform", url, accounts, options={"register": True})
            settings = kit.settings(lobby, routes=(RouteSettings(strategy="rule-othello"),))
            async with kit.running(settings, bothost_baselines, drain=False) as host, asyncio.timeout(3000):
                while host.runner.counters.hands < GAMES * 2:
                    await asyncio.sleep(BREAK_EVERY_S)
                    proxy.break_connections()
    outcomes = dict(kit.rows("SELECT kind, count(*) FROM outcomes GROUP BY kind"))
    ends = dict(kit.rows("SELECT reason, count(*) FROM game_ends GROUP BY reason"))
    fallbacks = dict(host.runner.counters.fallbacks)
    print({"breaks": proxy.breaks, "games": ends, "outcomes": outcomes, "fallbacks": fallbacks})
    assert proxy.breaks >= 5
    assert fallbacks == {}
    assert outcomes.get("rejected", 0) <= proxy.breaks
    assert ends["normal"] >= GAMES * 2
