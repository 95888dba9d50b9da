"""A hundred hands at the unmodified mailgyc/doudizhu server, with broken connections. ::

    BOTHOST_MAILGYC_SOURCE=~/doudizhu BOTHOST_REAL_SERVER_PYTHON=~/servers/bin/python \\
        pytest -m long tests/lobbies/mailgyc/test_real_server.py -s
"""

import asyncio

import pytest

import bothost_baselines
from bothost.config import AccountSettings, RouteSettings, WishSettings
from bothost.host.account import Timeouts
from bothost.host.reconnect import ConnectionSettings
from bothost.testing.hosting import Hosting

from .. import real_servers

HANDS = 100
BREAK_EVERY_S = 10.0
NAMES = ("botada", "botbob", "botcyd")


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_a_hundred_hands_at_the_real_server(tmp_path):
    """All three players lose the connection every 10 s. The server notices after 3 s; they come back to their hand."""
    source = real_servers.source_of("BOTHOST_MAILGYC_SOURCE")
    kit = Hosting(
        tmp_path,
        connection=ConnectionSettings(heartbeat_s=5.0, connect_s=5.0, backoff_first_s=0.1, backoff_most_s=2.0),
        timeouts=Timeouts(seek_s=60.0, settle_s=1.0, confirm_s=60.0, idle_s=120.0),
    )
    wish = (WishSettings(game="doudizhu", attributes={"level": 2}),)
    accounts = [AccountSettings(name=name, wishes=wish) for name in NAMES]
    with real_servers.mailgyc(source, tmp_path / "server") as port:
        async with real_servers.Proxy(port, linger_s=3.0) as proxy:
            url = f"ws://127.0.0.1:{proxy.port}"
            lobby = kit.lobby("ddz", "mailgyc", url, accounts, options={"ready_after_s": 0.05})
            settings = kit.settings(lobby, routes=(RouteSettings(strategy="rule-doudizhu"),))
            async with kit.running(settings, bothost_baselines, drain=False) as host, asyncio.timeout(3000):
                while host.runner.counters.hands < HANDS * 3:
                    await asyncio.sleep(BREAK_EVERY_S)
                    proxy.break_connections()
    outcomes = dict(kit.rows("SELECT kind, count(*) FROM outcomes GROUP BY kind"))
    ends = dict(kit.rows("SELECT reason, count(*) FROM game_ends GROUP BY reason"))
    print({"breaks": proxy.breaks, "hands": ends, "outcomes": outcomes})
    assert proxy.breaks >= 5
    assert host.runner.counters.fallbacks == {}
    # While another player returns, the lobby may answer our return twice. The second answer, an error, looks like the
    # refusal of a move: a resync follows.
    assert outcomes.get("rejected", 0) <= proxy.breaks
    assert outcomes["sent"] - outcomes["acknowledged"] <= outcomes.get("rejected", 0) + len(NAMES)
    assert ends["normal"] >= HANDS * 3
