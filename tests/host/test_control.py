"""The control socket."""

import asyncio
import socket
import stat
import threading

import pytest

from bothost.errors import BothostError, SchemaOutdated, StoreUnavailable, UsageError
from bothost.host import launch, recovery
from bothost.host.control import Control, HostRunning, ask, socket_path
from bothost.host.leases import Identity
from bothost.plugins import Plugins
from bothost.testing.hosting import Hosting


async def test_commands_are_answered_and_unknown_ones_told(tmp_path):
    control = Control(socket_path(tmp_path), {"status": lambda: {"tables": 3}})
    await control.start()
    try:
        assert await asyncio.to_thread(ask, tmp_path, "status") == {"tables": 3}
        with pytest.raises(UsageError, match="unknown command 'fly'"):
            await asyncio.to_thread(ask, tmp_path, "fly")
        assert stat.S_IMODE(control.path.stat().st_mode) == 0o600
    finally:
        await control.aclose()
    assert not control.path.exists()


async def test_arguments_reach_a_command_and_wrong_ones_are_refused(tmp_path):
    def pause(account):
        if account == "nobody":
            raise UsageError("there is no account 'nobody'", advice="did you mean 'somebody'?")
        return {"paused": account}

    control = Control(socket_path(tmp_path), {"pause": pause})
    await control.start()
    try:
        assert await asyncio.to_thread(lambda: ask(tmp_path, "pause", account="home/ada")) == {"paused": "home/ada"}
        for arguments, words in (
            ({"account": "nobody"}, "no account"),
            ({}, "account"),
            ({"account": "x", "b": "y"}, "b"),
        ):
            with pytest.raises(UsageError, match=words) as caught:
                await asyncio.to_thread(lambda given=arguments: ask(tmp_path, "pause", **given))
            assert caught.value.advice == ("did you mean 'somebody'?" if words == "no account" else "")
    finally:
        await control.aclose()


async def test_two_hosts_in_one_data_dir_are_refused_but_a_stale_socket_is_not(tmp_path):
    first = Control(socket_path(tmp_path), {})
    await first.start()
    with pytest.raises(HostRunning) as caught:
        await Control(socket_path(tmp_path), {}).start()
    assert "data_dir" in caught.value.advice
    await first.aclose()
    socket_path(tmp_path).touch()  # as after a kill: the file stays
    second = Control(socket_path(tmp_path), {})
    await second.start()
    await second.aclose()


async def test_a_socket_that_cannot_be_made_is_named(tmp_path):
    with pytest.raises(BothostError, match=r"^control socket .*xxx") as caught:
        await Control(tmp_path / ("x" * 200), {}).start()
    assert "data_dir" in caught.value.advice


def test_without_a_host_the_command_line_says_how_to_start_one(tmp_path):
    for is_left in (False, True):  # by a host that was killed
        if is_left:
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(socket_path(tmp_path)))
        with pytest.raises(UsageError) as caught:
            ask(tmp_path, "status")
        assert str(caught.value) == f"no host runs in {tmp_path}" and caught.value.exit_code == 1
        assert "bothost run" in caught.value.advice


async def test_a_host_that_is_refused_leaves_the_others_socket_alone(tmp_path):
    kit = Hosting(tmp_path)
    other = Identity.of(tmp_path, "other")
    path = socket_path(tmp_path)
    path.touch()  # it is about to listen
    with pytest.raises(HostRunning):
        async with launch.opened(kit.settings(), Plugins.load(entry_points=False)):
            pass
    assert path.exists()
    other.close()


async def test_a_host_that_is_starting_says_so(tmp_path, monkeypatch):
    """Nothing is told to drain that then goes on."""
    kit, opening, go_on = Hosting(tmp_path), threading.Event(), threading.Event()

    def slow(*_args, **_options):
        opening.set()
        assert go_on.wait(30)
        raise StoreUnavailable("gone")

    monkeypatch.setattr(launch.Store, "open", slow)

    async def start():
        async with launch.opened(kit.settings(), Plugins.load(entry_points=False)):
            pass

    starting = asyncio.create_task(start())
    assert await asyncio.to_thread(opening.wait, 30)
    for command in ("status", "drain"):
        with pytest.raises(UsageError, match="starting"):
            await asyncio.to_thread(ask, tmp_path, command)
    go_on.set()
    with pytest.raises(StoreUnavailable):
        await starting


async def test_a_patient_host_waits_for_its_database_and_refuses_a_wrong_one(tmp_path, monkeypatch):
    answers = [StoreUnavailable("away"), StoreUnavailable("away"), SchemaOutdated("old")]

    def next_answer(*_args, **_options):
        raise answers.pop(0)

    monkeypatch.setattr(launch.Store, "open", next_answer)
    monkeypatch.setattr(recovery, "AWAY_S", 0.0)
    with pytest.raises(SchemaOutdated):
        async with launch.opened(Hosting(tmp_path).settings(), Plugins.load(entry_points=False), patient=True):
            pass
    assert not answers


def test_a_host_that_ends_before_it_answers_is_one_error(tmp_path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(socket_path(tmp_path)))
        listening.listen()
        ending = threading.Thread(target=lambda: listening.accept()[0].close())
        ending.start()
        with pytest.raises(UsageError):
            ask(tmp_path, "status")
        ending.join()


def test_a_long_path_has_a_short_socket(tmp_path):
    assert len(str(socket_path(tmp_path / ("x" * 200)))) < 108


@pytest.mark.parametrize("line", [b"\n", b"[]\n", b"{\n", b'{"command": 1}\n', b"\xff\n"])
async def test_garbage_is_answered_not_raised(tmp_path, line):
    control = Control(socket_path(tmp_path), {"status": dict})
    await control.start()
    try:
        reader, writer = await asyncio.open_unix_connection(control.path)
        writer.write(line)
        assert b"error" in await asyncio.wait_for(reader.readline(), 30)
        writer.close()
    finally:
        await control.aclose()
