"""``bothost run --workers N``: every account in one process, crashed processes replaced, one command reaches all."""

import asyncio
import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from bothost import config
from bothost.cli import run
from bothost.cli.status import as_text
from bothost.errors import UsageError
from bothost.host import fleet
from bothost.host.control import Control, ask, socket_path
from bothost.host.leases import Identity
from bothost.host.recovery import open_log
from bothost.store import Store, schema
from bothost.store.decision_log import chunks_of
from bothost.store.leases import Leases
from bothost.store.models import COLUMNS, games, leases
from bothost.store.spool import Spool
from bothost.testing.fake_lobby import FakeLobby
from bothost.testing.sample_rows import sample_hand

NAMES = ("ada", "bob", "cyd", "dan", "eve")
CONFIG = """
[host]
name = "many"
drain_timeout_s = 60
[metrics]
port = 9000
[log]
level = "error"
file = "all.log"
[[lobby]]
name = "home"
adapter = "embedded"
url = "{url}"
allow_same_table = true
{accounts}
[[route]]
strategy = "random"
"""
ACCOUNT = """
[[lobby.account]]
name = "{name}"
token = {{ file = "{name}.token" }}
[[lobby.account.wish]]
game = "doudizhu"
"""


def configuration(folder: Path, url="ws://127.0.0.1:1/ws", names=NAMES, metrics=True) -> Path:
    for name in names:
        (folder / f"{name}.token").write_text(name * 3)
        (folder / f"{name}.token").chmod(0o600)
    file = folder / "config.toml"
    text = CONFIG.format(url=url, accounts="".join(ACCOUNT.format(name=name) for name in names))
    file.write_text(text if metrics else text.replace("port = 9000\n", ""))
    return file


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_every_account_is_in_one_share_and_shares_have_nothing_in_common(tmp_path, workers):
    settings = config.load(configuration(tmp_path))
    shares = [run.share_of(settings, f"{k}/{workers}") for k in range(1, workers + 1)]
    accounts = [account.name for made in shares for lobby in made.lobbies for account in lobby.accounts]
    assert sorted(accounts) == sorted(NAMES)
    counts = [sum(len(lobby.accounts) for lobby in made.lobbies) for made in shares]
    assert max(counts) - min(counts) <= 1
    for unique in ("host.name", "host.data_dir", "log.file", "metrics.port"):
        table, key = unique.split(".")
        assert len({str(getattr(getattr(made, table), key)) for made in shares}) == workers
    assert settings.limits.tables <= sum(made.limits.tables for made in shares) < settings.limits.tables + workers
    assert {made.store for made in shares} == {settings.store}
    for made in shares:
        (lobby,) = made.lobbies
        assert sorted((*(account.name for account in lobby.accounts), *lobby.own_accounts)) == sorted(NAMES)


@pytest.mark.parametrize("worker", ["0/2", "3/2", "x", "1/", "-1/2"])
def test_only_workers_that_exist(tmp_path, worker):
    with pytest.raises(UsageError):
        run.share_of(config.load(configuration(tmp_path)), worker)


def scripted(code):
    return lambda number: [sys.executable, "-c", code]


@pytest.mark.parametrize(("code", "starts"), [(0, 1), (78, 1), (77, 1), (2, 1)])
async def test_what_ended_for_good_is_not_started_again(tmp_path, code, starts):
    parent = fleet.Fleet(config.load(configuration(tmp_path)), 2, scripted(f"raise SystemExit({code})"))
    assert await asyncio.wait_for(parent.run(), 120) == code
    assert [worker.starts for worker in parent.workers.values()] == [starts, starts]


async def test_a_crashed_worker_is_started_again_until_it_ends(tmp_path):
    code = f"""
import os, pathlib
mark = pathlib.Path({str(tmp_path)!r}, "crashed")
if not mark.exists():
    mark.touch()
    os.kill(os.getpid(), 9)
"""
    parent = fleet.Fleet(config.load(configuration(tmp_path)), 1, scripted(code))
    assert await asyncio.wait_for(parent.run(), 120) == 0
    assert parent.workers[1].starts == 2


async def test_with_fail_fast_a_worker_without_its_lobby_at_the_start_ends_the_others(tmp_path):
    """A worker that finds it unreachable after a crash is restarted."""
    settings = config.load(configuration(tmp_path))
    commands = {1: "raise SystemExit(75)", 2: "import time; time.sleep(60)"}
    parent = fleet.Fleet(settings, 2, lambda number: scripted(commands[number])(number), fail_fast=True)
    assert await asyncio.wait_for(parent.run(), 120) == 75
    mark = tmp_path / "starts"
    code = f"import sys; file = open({str(mark)!r}, 'a'); file.write('x'); sys.exit((1, 75, 0)[file.tell() - 1])"
    parent = fleet.Fleet(settings, 1, scripted(code), fail_fast=True)
    assert await asyncio.wait_for(parent.run(), 120) == 0


async def test_a_worker_that_cannot_be_started_is_tried_again_and_costs_no_other(tmp_path, monkeypatch):
    """No memory, no process left: it passes."""
    starts, start = [], asyncio.create_subprocess_exec

    async def scarce(*command, **options):
        starts.append(command)
        if len(starts) == 1:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return await start(*command, **options)

    monkeypatch.setattr(fleet.asyncio, "create_subprocess_exec", scarce)
    parent = fleet.Fleet(config.load(configuration(tmp_path)), 2, scripted("raise SystemExit(0)"))
    assert await asyncio.wait_for(parent.run(), 120) == 0
    assert len(starts) == 3


async def test_a_signal_while_a_worker_is_being_started_ends_it(tmp_path, monkeypatch):
    create = asyncio.create_subprocess_exec

    async def interrupted(*command, **options):
        process = await create(*command, **options)
        parent.interrupt()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", interrupted)
    parent = fleet.Fleet(config.load(configuration(tmp_path)), 1, scripted("import time; time.sleep(60)"))
    assert await asyncio.wait_for(parent.run(), 120) == 0


def test_exit_codes_of_signals_are_those_of_a_shell():
    assert [fleet.exit_code(code) for code in (None, 0, 78, -9)] == [0, 0, 78, 137]


async def test_workers_play_and_one_command_reaches_them_all(tmp_path):
    names = NAMES[:3]
    async with FakeLobby({name: name * 3 for name in names}, grant_ms=60_000, hands=1) as lobby:
        file = configuration(tmp_path, lobby.url, names, metrics=False)
        settings = config.load(file)
        schema.upgrade(settings.store)
        parent = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bothost", "run", "--config", str(file), "--workers", "2"
        )
        try:
            status = await until_all_connected(settings)
            assert [worker["status"]["host"] for worker in status["workers"]] == ["many-1", "many-2"]
            assert "worker 2" in as_text(status)
            os.kill(status["workers"][1]["pid"], signal.SIGKILL)
            status = await until_all_connected(settings, restarts=1)
            said = await asyncio.to_thread(ask, settings.host.data_dir, "drain")
            assert said == {"draining": True, "at_most_s": 60.0}
            assert await asyncio.wait_for(parent.wait(), 120) == 0
        finally:
            if parent.returncode is None:
                parent.terminate()
                parent.terminate()
                await asyncio.wait_for(parent.wait(), 120)


async def test_an_account_of_a_worker_that_does_not_answer_is_not_called_unknown(tmp_path):
    def refuse(account):
        raise UsageError(f"there is no account {account!r}")

    settings = config.load(configuration(tmp_path))
    parent = fleet.Fleet(settings, 2, scripted(""))
    first = Control(socket_path(fleet.folder(settings.host.data_dir, 1)), {"pause": refuse})
    await first.start()
    with pytest.raises(UsageError, match="worker 2 does not answer"):
        await parent.forward("pause", account="home/bob")
    alone = fleet.Fleet(settings, 1, scripted(""))
    with pytest.raises(UsageError, match="there is no account 'home/bob'"):
        await alone.forward("pause", account="home/bob")
    await first.aclose()


async def test_all_workers_are_asked_at_once(tmp_path):
    """So several workers that hang cost no longer than one."""
    settings = config.load(configuration(tmp_path))
    parent, asked = fleet.Fleet(settings, 3, scripted("")), asyncio.Barrier(3)

    async def status():
        await asked.wait()
        return {"health": []}

    folders = [fleet.folder(settings.host.data_dir, number) for number in parent.workers]
    controls = [Control(socket_path(folder), {"status": status}) for folder in folders]
    for control in controls:
        await control.start()
    try:
        found = await parent.status()
    finally:
        for control in controls:
            await control.aclose()
    assert [worker["status"] for worker in found["workers"]] == 3 * [{"health": []}]


def hold(settings, accounts, name, folder):
    """An identity of this folder holds the leases of accounts, for minutes."""
    identity = Identity.of(folder, name)
    keys = [("home", account) for account in accounts]
    with Store.open(settings.store) as store:
        assert Leases(store, identity.holder, 600.0).round((), keys, take_over=False).taken == set(keys)
    return identity


async def test_leases_of_killed_workers_are_free_before_others_start(tmp_path):
    """Those of a process that runs stay, and those of another machine."""
    settings = config.load(configuration(tmp_path))
    schema.upgrade(settings.store)
    data_dir = settings.host.data_dir
    hold(settings, ["ada"], "many-1", fleet.folder(data_dir, 1)).close()
    hold(settings, ["bob"], "many", data_dir).close()
    hold(settings, ["dan"], "many-1", tmp_path / "elsewhere" / "worker-1").close()
    running = hold(settings, ["cyd"], "many-2", fleet.folder(data_dir, 2))
    parent = fleet.Fleet(settings, 1, scripted("raise SystemExit(0)"))
    assert await asyncio.wait_for(parent.run(), 120) == 0
    running.close()
    with Store.open(settings.store) as store, store.begin() as connection:
        assert set(connection.execute(sa.select(leases.c.account)).scalars()) == {"cyd", "dan"}


def leave_rows(settings):
    """Hands in the spools of a single host and of four workers that have ended. Returns their ids."""
    rng, left = random.Random(5), []
    for spool in ("spool/many", *(f"worker-{number}/spool/many-{number}" for number in range(1, 5))):
        hand = sample_hand(rng)
        ended = Spool(settings.host.data_dir / spool, COLUMNS)
        ended.append({table: rows for table, _, rows in chunks_of(hand)})
        ended.close()
        left.append(hand[0].game_id)
    return set(left)


def logged(settings):
    with Store.open(settings.store) as store, store.begin() as connection:
        return set(connection.execute(sa.select(games.c.game_id)).scalars())


async def test_what_more_workers_left_in_their_spools_is_in_the_database_before_fewer_start(tmp_path):
    settings = config.load(configuration(tmp_path))
    schema.upgrade(settings.store)
    left = leave_rows(settings)
    code = f"import pathlib; raise SystemExit(any(pathlib.Path({str(tmp_path)!r}).rglob('*.spool')))"
    parent = fleet.Fleet(settings, 2, scripted(code))
    assert await asyncio.wait_for(parent.run(), 120) == 0
    assert [worker.starts for worker in parent.workers.values()] == [1, 1]
    assert logged(settings) == left


async def test_what_workers_left_in_their_spools_is_in_the_database_before_a_single_host_plays(tmp_path):
    settings = config.load(configuration(tmp_path))
    schema.upgrade(settings.store)
    left = leave_rows(settings)
    log = open_log(settings)
    assert log.recovered and logged(settings) == left
    await log.aclose()


async def test_a_worker_whose_parent_died_while_it_started_drains():
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await parent.wait()
    drained = asyncio.Event()
    await asyncio.wait_for(fleet.drain_without_parent(parent.pid, drained.set), 120)
    assert drained.is_set()


async def until_all_connected(settings, restarts=0):
    async with asyncio.timeout(120):
        while True:
            try:
                status = await asyncio.to_thread(ask, settings.host.data_dir, "status")
            except UsageError:
                status = {"workers": []}
            statuses = [worker["status"] for worker in status["workers"]]
            accounts = [a["connected"] for made in statuses if made for a in made["accounts"]]
            again = sum(worker["restarts"] for worker in status["workers"])
            if len(accounts) == 3 and all(accounts) and again == restarts:
                return json.loads(json.dumps(status))
            await asyncio.sleep(0.2)
