"""A signal that comes before there is anything to drain."""

import asyncio


async def test_a_host_that_is_told_to_drain_before_it_began_ends_at_once(kit):
    async with kit.lobby() as server:
        host = kit.host(kit.settings())
        host.interrupt()
        await asyncio.wait_for(host.run(), 30)
        assert not server.lobby.tables and host.runner.counters.hands == 0
