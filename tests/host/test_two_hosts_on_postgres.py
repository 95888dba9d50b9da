"""Two whole hosts, each a process of its own, on one PostgreSQL database: accounts split by leases, one host killed."""

import asyncio
import os
import signal
import sys
from collections import Counter

import sqlalchemy as sa

from bothost.config import StoreSettings
from bothost.lobbies.embedded import protocol as wire
from bothost.store import schema
from bothost.store.engine import make_engine
from bothost.testing.fake_lobby import FakeLobby
from bothost.testing.postgres import new_database

NAMES = ("ada", "bob", "cyd")
CONFIG = """
[host]
name = "{host}"
data_dir = "{host}"
drain_timeout_s = 1
lease_s = {lease_s}
[store]
url = "{database}"
[log]
level = "error"
[[lobby]]
name = "home"
adapter = "embedded"
url = "{lobby}"
min_move_ms = 20
allow_same_table = true
"""
ACCOUNT = """
[[lobby.account]]
name = "{name}"
token = {{ file = "{name}.token" }}
tables = 3
[[lobby.account.wish]]
game = "doudizhu"
"""
ROUTE = '[[route]]\nstrategy = "random"\n'


def rows(store, query):
    engine = make_engine(store)
    try:
        with engine.connect() as connection:
            return connection.execute(sa.text(query)).all()
    finally:
        engine.dispose()


def expire_leases(store, host):
    """As if they had not been renewed for a minute."""
    engine = make_engine(store)
    with engine.begin() as connection:
        earlier = "UPDATE leases SET expires_us = expires_us - 60000000 WHERE holder LIKE :host"
        connection.execute(sa.text(earlier), {"host": f"{host}@%"})
    engine.dispose()


def moves_of(lobby, name):
    return {(act.table, act.id, act.action) for act in lobby.said_by(name, wire.Act)}


async def start(folder, host, names, store, lobby, lease_s):
    for name in names:
        token = folder / f"{name}.token"
        token.touch(0o600)
        token.write_text(name * 3)
    file = folder / f"{host}.toml"
    accounts = "".join(ACCOUNT.format(name=name) for name in names)
    file.write_text(CONFIG.format(host=host, database=store.url, lobby=lobby.url, lease_s=lease_s) + accounts + ROUTE)
    return await asyncio.create_subprocess_exec(sys.executable, "-m", "bothost", "run", "--config", str(file))


async def test_the_other_host_takes_over_and_every_move_has_one_row(postgres_url, tmp_path):
    store = StoreSettings(url=new_database(postgres_url, "two_hosts"))
    schema.upgrade(store)
    async with FakeLobby({name: name * 3 for name in NAMES}, robots=True, hands=2, grant_ms=60_000) as lobby:
        one = await start(tmp_path, "one", NAMES[:2], store, lobby, lease_s=60)
        try:
            await lobby.until(lambda: all(moves_of(lobby, name) for name in NAMES[:2]), 90)
            two = await start(tmp_path, "two", NAMES, store, lobby, lease_s=2)
        except BaseException:
            one.kill()
            raise
        try:
            await lobby.until(lambda: moves_of(lobby, "cyd"), 90)
            held = rows(store, "SELECT account, split_part(holder, '@', 1) FROM leases")
            assert dict(map(tuple, held)) == {"ada": "one", "bob": "one", "cyd": "two"}
            before = {name: len(moves_of(lobby, name)) for name in NAMES}
            await lobby.until(lambda: all(len(moves_of(lobby, name)) > before[name] + 10 for name in NAMES), 60)
            os.kill(one.pid, signal.SIGKILL)
            await one.wait()
            expire_leases(store, "one")
            before = {name: len(moves_of(lobby, name)) for name in NAMES}
            await lobby.until(lambda: all(len(moves_of(lobby, name)) > before[name] + 20 for name in NAMES), 90)
            two.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(two.wait(), 90) == 0
        finally:
            for process in (one, two):
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        received = set().union(*(moves_of(lobby, name) for name in NAMES))
        illegal = [told for name in NAMES for told in lobby.sent_to(name, wire.Rejected) if told.reason == "illegal"]
    logged = Counter(map(tuple, rows(store, 'SELECT "table", request_id, notation FROM decisions')))
    assert len(received) > 100 and illegal == []
    assert {logged[move] for move in received} == {1}
    assert len({move[:2] for move in received}) == len(received), "no second opinions"
    hands = rows(store, 'SELECT account, "table", hand, count(*) FROM games GROUP BY 1, 2, 3')
    assert {count for *_, count in hands} == {1}, "hands went on under their ids"
    assert rows(store, "SELECT * FROM leases") == []
