"""The five strategy systems play whole hands over a real websocket, put on tables by a configuration file."""

import asyncio

from bothost.config import load
from bothost.host.memory import StoreMemory
from bothost.host.supervisor import Host
from bothost.plugins import Plugins
from bothost.store import DecisionLog, Store, schema

CONFIG = """
[host]
name = "test"
data_dir = "."
drain_timeout_s = 10

[store]
url = "sqlite:///log.db"

[[lobby]]
name = "home"
adapter = "embedded"
url = "{url}"
margin_ms = 50
allow_same_table = true
{accounts}

[[route]]
game = "pairing"
strategy = "phase-ppo"
level = 5

[[route]]
game = "mahjong"
strategy = "mahjong-ppo"

[[route]]
game = "othello"
strategy = "fm-clone"

[[route]]
account = "ada"
strategy = "doudizhu-mcts"
options = {{ iterations = 8, belief = 8 }}

[[route]]
account = "bob"
strategy = "deep-mc"

[[route]]
game = "doudizhu"
strategy = "fm-clone"
"""
ACCOUNT = """
  [[lobby.account]]
  name = "{name}"
  tables = 4
  token = {{ env = "TOKEN_{name}" }}
"""
WISH = """
    [[lobby.account.wish]]
    game = "{game}"
"""
NAMES = ("ada", "bob", "cyd", "dan")
SEATS = {"doudizhu": 3, "mahjong": 4, "othello": 2, "pairing": 2}
PLAYED = {
    ("doudizhu", "doudizhu-mcts"),
    ("doudizhu", "deep-mc"),
    ("doudizhu", "fm-clone"),
    ("mahjong", "mahjong-ppo"),
    ("othello", "fm-clone"),
    ("pairing", "phase-ppo"),
}


async def test_all_five_strategies_play_where_the_configuration_puts_them(kit, tmp_path):
    async with kit.lobby():
        accounts = ""
        for i, name in enumerate(NAMES):
            wishes = "".join(WISH.format(game=game) for game, seats in SEATS.items() if i < seats)
            accounts += ACCOUNT.format(name=name) + wishes
        path = tmp_path / "config.toml"
        path.write_text(CONFIG.format(url=kit.url, accounts=accounts))
        settings = load(path, env={f"TOKEN_{name}": name * 3 for name in NAMES})
        schema.upgrade(settings.store)
        log = DecisionLog.open(settings.store, "test", tmp_path / "spool")
        memory = StoreMemory(Store.open(settings.store))
        host = Host(settings, Plugins.load(), log, memory, config_hash="0" * 8, connection=kit.fast)
        running = asyncio.create_task(host.run())

        def ended() -> set[str]:
            return {row.game for row in kit.rows("SELECT DISTINCT game FROM games JOIN game_ends USING (game_id)")}

        await kit.until(lambda: ended() == set(SEATS), seconds=120)
        host.interrupt()
        await asyncio.wait_for(running, 90)
    assert host.runner.counters.fallbacks == {}
    assert kit.count("decisions") == host.runner.counters.decisions
    rows = kit.rows("SELECT DISTINCT game, strategy, model_sha256 IS NOT NULL AS learnt FROM decisions")
    assert {(row.game, row.strategy) for row in rows} == PLAYED
    assert all(row.learnt for row in rows if row.strategy != "doudizhu-mcts")
    reasons = kit.rows("SELECT stats FROM decisions WHERE strategy = 'fm-clone' AND stats IS NOT NULL")
    assert any("reasons" in str(row.stats) for row in reasons)
