"""A hundred hands at the unmodified open_mahjong server, with broken connections. ::

    BOTHOST_OPEN_MAHJONG_SOURCE=~/open_mahjong_unity BOTHOST_REAL_SERVER_PYTHON=~/servers/bin/python \\
        pytest -m long tests/lobbies/open_mahjong/test_real_server.py -s
"""

import asyncio
import json

import pytest

import bothost_baselines
from bothost.config import AccountSettings, RouteSettings, Secret, WishSettings
from bothost.host.account import Timeouts
from bothost.host.reconnect import ConnectionSettings
from bothost.testing.hosting import Hosting

from .. import real_servers

HANDS = 100
PASSWORD = "planted-Passw0rd!m"
BREAK_EVERY_S = 20.0
NAMES = ("botada", "botbob", "botcyd", "botdan")
OPTIONS = {"ready_after_s": 0.05, "settle_s": 0.5, "look_s": 1.0, "game_round": 4}


def hosting(folder, port, names):
    folder.mkdir()
    kit = Hosting(
        folder,
        connection=ConnectionSettings(heartbeat_s=5.0, connect_s=5.0, backoff_first_s=0.1, backoff_most_s=2.0),
        timeouts=Timeouts(seek_s=60.0, settle_s=1.0, confirm_s=60.0, idle_s=120.0),
    )
    wish = (WishSettings(game="mahjong"),)
    accounts = [AccountSettings(name=name, password=Secret(PASSWORD, "test"), wishes=wish) for name in names]
    lobby = kit.lobby("omj", "open_mahjong", f"ws://127.0.0.1:{port}", accounts, options=OPTIONS)
    settings = kit.settings(lobby, routes=(RouteSettings(strategy="rule-mahjong"),))
    return kit, kit.running(settings, bothost_baselines, drain=False)


def hands_of(kit):
    """(game, round, account) → our points; in the order of play."""
    query = "SELECT hand, account, g.seat, scores FROM games g JOIN game_ends e USING (game_id) ORDER BY ended_us"
    hands = {}
    for hand, account, seat, scores in kit.rows(query):
        game, _, number = hand.rpartition(".")
        if scores is not None:
            hands[game, int(number), account] = json.loads(scores)[seat]
    return hands


@pytest.mark.long
@pytest.mark.timeout(3600)
async def test_a_hundred_hands_at_the_real_server(tmp_path):
    """One of four players loses the connection every 20 s: the lobby keeps the game while another stays in the room."""
    source = real_servers.source_of("BOTHOST_OPEN_MAHJONG_SOURCE")
    with real_servers.open_mahjong(source, tmp_path / "server") as (port, database):
        for name in NAMES:
            await real_servers.register_at_open_mahjong(port, name, PASSWORD)
        async with real_servers.Proxy(port) as proxy:
            shaky, one = hosting(tmp_path / "shaky", proxy.port, NAMES[:1])
            steady, rest = hosting(tmp_path / "steady", port, NAMES[1:])
            async with one as first, rest as second:
                async with asyncio.timeout(3000):
                    while second.runner.counters.hands < HANDS * 3:
                        await asyncio.sleep(BREAK_EVERY_S)
                        proxy.break_connections()
        truth = real_servers.open_mahjong_scores(database)
    mine, others = hands_of(shaky), hands_of(steady)
    games = dict.fromkeys(game for game, _, _ in others)
    compared = 0
    for game, scores in zip(games, truth, strict=False):
        for (played_in, number, account), points in {**mine, **others}.items():
            if played_in == game:
                assert points == scores[number, account], (number, account)
                compared += 1
    outcomes = [dict(kit.rows("SELECT kind, count(*) FROM outcomes GROUP BY kind")) for kit in (shaky, steady)]
    print({"games": len(truth), "scores compared": compared, "breaks": proxy.breaks, "outcomes": outcomes})
    assert compared > HANDS * 2 and proxy.breaks >= 10
    assert first.runner.counters.fallbacks == second.runner.counters.fallbacks == {}
    assert "rejected" not in outcomes[0] and "rejected" not in outcomes[1]
    assert second.runner.counters.aborted <= 3, "only the hand that the end of the test cuts off"
    assert outcomes[1]["sent"] - outcomes[1]["acknowledged"] <= outcomes[1].get("withdrawn", 0) + 3
