"""What an operator asks of a running host: pause an account, resume it, release a quarantine."""

import asyncio
import re

import pytest

from bothost import config
from bothost.cli.status import as_text
from bothost.errors import UsageError
from bothost.host import commands, fleet
from bothost.host.control import Control, socket_path


async def test_a_paused_account_plays_its_tables_to_their_end_and_takes_no_others(kit):
    async with kit.lobby(), kit.running(kit.settings()) as host:
        ask = commands.of(lambda: host)
        await kit.until(lambda: host.seated and all(account.tables.sessions for account in host.accounts))
        ada = host.accounts[0]
        assert ask["pause"]("home/ada")["paused"] and ask["status"]()["accounts"][0]["paused"]
        await kit.until(lambda: not ada.tables.sessions)
        assert not ada.slots.reserved and ada.connection.connected and not ada.finished
        await asyncio.sleep(0.3)
        assert not ada.tables.sessions and not ada.slots.reserved
        assert not ask["resume"]("home/ada")["paused"]
        await kit.until(lambda: ada.tables.sessions)


def test_a_host_that_starts_says_so():
    with pytest.raises(UsageError, match="starting"):
        commands.of(lambda: None)["status"]()


async def test_an_account_that_is_not_there_is_refused_with_the_nearest(kit):
    async with kit.lobby(), kit.running(kit.settings()) as host:
        ask = commands.of(lambda: host)
        await kit.until(lambda: host.accounts)
        with pytest.raises(UsageError, match="no account 'home/adda'") as caught:
            ask["pause"]("home/adda")
        assert "did you mean 'home/ada'" in caught.value.advice
        with pytest.raises(UsageError, match="no strategy 'test-random' is in quarantine"):
            ask["release"]("test-random")
        (loaded,) = host.plans.loaded
        host.plans.quarantine(loaded, "a\x1b[1m test")
        status = ask["status"]()
        assert status["strategies"][0]["quarantined"]
        (line,) = [line for line in as_text(status).splitlines() if "quarantined" in line]
        assert re.search(r"test-random +route\[0\] +quarantined for \d+ s more: a\\x1b\[1m test$", line)
        assert ask["release"](loaded.address) == {"strategy": loaded.address, "released": 1}
        assert not ask["status"]()["strategies"][0]["quarantined"]


async def test_the_parent_of_several_workers_asks_the_one_that_has_the_account(tmp_path):
    (tmp_path / "config.toml").write_text(f'[host]\ndata_dir = "{tmp_path}"\n')
    parent = fleet.Fleet(config.load(tmp_path / "config.toml"), 2, lambda number: ["true"])

    def pause_of(number):
        def pause(account):
            if account != f"home/{number}":
                raise UsageError(f"there is no account {account!r}")
            return {"worker": number}

        return pause

    controls = [Control(socket_path(fleet.folder(tmp_path, n)), {"pause": pause_of(n)}) for n in (1, 2)]
    for control in controls:
        await control.start()
    try:
        assert await parent.forward("pause", account="home/2") == {"worker": 2}
        with pytest.raises(UsageError, match="home/3"):
            await parent.forward("pause", account="home/3")
    finally:
        for control in controls:
            await control.aclose()
