"""The control socket."""

import asyncio
import stat

import pytest

from bothost.errors import UsageError
from bothost.host.control import Control, HostRunning, ask, socket_path


async def test_commands_are_answered_and_unknown_ones_told(tmp_path):
    control = Control(socket_path(tmp_path), {"status": lambda: {"tables": 3}})
    await control.start()
    try:
        assert await asyncio.to_thread(ask, tmp_path, "status") == {"tables": 3}
        with pytest.raises(UsageError, match="no command 'fly'"):
            await asyncio.to_thread(ask, tmp_path, "fly")
        assert stat.S_IMODE(control.path.stat().st_mode) == 0o600
    finally:
        await control.aclose()
    assert not control.path.exists()


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


def test_without_a_host_the_command_line_says_how_to_start_one(tmp_path):
    with pytest.raises(UsageError) as caught:
        ask(tmp_path, "status")
    assert "bothost run" in caught.value.advice


def test_a_long_path_has_a_short_socket(tmp_path):
    assert len(str(socket_path(tmp_path / ("x" * 200)))) < 108


@pytest.mark.parametrize("line", [b"\n", b"[]\n", b"{\n", b'{"command": 1}\n', b"\xff\n"])
async def test_garbage_is_answered_not_raised(tmp_path, line):
    control = Control(socket_path(tmp_path), {"status": dict})
    await control.start()
    try:
        reader, writer = await asyncio.open_unix_connection(control.path)
        writer.write(line)
        assert b"error" in await asyncio.wait_for(reader.readline(), 5)
        writer.close()
    finally:
        await control.aclose()
