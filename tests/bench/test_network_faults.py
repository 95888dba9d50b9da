"""Faults of the network: the proxy does what it says, and a host behind it loses and doubles nothing."""

import asyncio
import random

import pytest

from benchmarks import network_faults, rolling_upgrade
from bothost.testing.faulty_network import FaultyNetwork
from bothost.testing.postgres import new_database


@pytest.fixture
async def echo():
    """A server that sends back what it gets; yields its port and its open connections."""
    writers = []

    async def serve(reader, writer):
        writers.append(writer)
        try:
            while data := await reader.read(1000):
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writers.remove(writer)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1], writers
    server.close()


async def asked(connection, text):
    reader, writer = connection
    writer.write(text)
    return await reader.readexactly(len(text))


async def test_a_slow_network_changes_no_byte(echo):
    port, _ = echo
    text = random.Random(1).randbytes(5_000)
    async with FaultyNetwork(port, random.Random(2)) as network:
        connection = await asyncio.open_connection("127.0.0.1", network.port)
        with network.slow():
            assert await asked(connection, text) == text
        connection[1].close()


async def test_a_partition_holds_back_what_arrives_after_it(echo):
    port, _ = echo
    async with FaultyNetwork(port, random.Random(2)) as network:
        connection = await asyncio.open_connection("127.0.0.1", network.port)
        assert await asked(connection, b"one") == b"one"
        with network.partition():
            late = await asyncio.open_connection("127.0.0.1", network.port)
            waiting = [asyncio.create_task(asked(each, b"two")) for each in (connection, late)]
            _, pending = await asyncio.wait(waiting, timeout=0.1)
            assert len(pending) == 2
        assert await asyncio.gather(*waiting) == [b"two", b"two"]
        connection[1].close()
        late[1].close()


async def test_a_reset_is_seen_by_both_sides_and_a_half_open_connection_by_the_server_alone(echo):
    port, writers = echo
    async with FaultyNetwork(port, random.Random(2)) as network:
        reader, writer = connection = await asyncio.open_connection("127.0.0.1", network.port)
        assert await asked(connection, b"one") == b"one"
        network.half_open()
        while writers:  # noqa: ASYNC110 (the server's coroutine empties it)
            await asyncio.sleep(0.01)
        writer.write(b"two")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.2)
        network.reset()
        with pytest.raises(ConnectionResetError):
            await reader.read(1)
        writer.transport.abort()


@pytest.mark.long
def test_a_host_behind_bad_networks_loses_and_doubles_nothing(postgres_url, monkeypatch):
    monkeypatch.setattr(network_faults, "PER_MINUTE", {"lobby reset": 6.0, "database reset": 6.0})
    done = network_faults.play_round(1, 0.1, new_database(postgres_url, "network_faults"))
    assert {name: done[name] for name in network_faults.WRONG} == dict.fromkeys(network_faults.WRONG, 0)
    assert done["moves"] > 0 and sorted(done["recoveries_s"]) == ["database reset", "lobby reset"]
    assert "| lobby reset | 1 |" in network_faults.summary([done])


@pytest.mark.long
@pytest.mark.timeout(600)
def test_hosts_of_this_release_replace_one_another(tmp_path, monkeypatch):
    """``benchmarks/rolling_upgrade.py`` itself; without an older release there is no refusal to see."""
    monkeypatch.setattr(rolling_upgrade, "PLAY_S", 3.0)
    monkeypatch.setattr(rolling_upgrade, "REFUSED", 0)
    upgrade = rolling_upgrade.Upgrade(tmp_path, "bothost", f"sqlite:///{tmp_path}/log.db")

    async def none():
        return ""

    monkeypatch.setattr(upgrade, "refused", none)
    done = asyncio.run(upgrade.run())
    assert {name: done[name] for name in rolling_upgrade.WRONG} == dict.fromkeys(rolling_upgrade.WRONG, 0)
