"""A whole host in a lobby that misbehaves: it goes on playing, and every move that the lobby received has its row."""

import pytest

from bothost.lobbies.embedded import protocol as wire
from bothost.testing.fault_lobby import FaultLobby, Faults

TOKENS = {"ada": "adaadaada"}


@pytest.mark.parametrize(
    "faults",
    [
        Faults(duplicate=0.3, garbage=0.2, stale_game_over=True),
        Faults(drop_after=5, zero_clock=True),
        Faults(silence_after=5),
        Faults(dead_after=5),
        Faults(oversize_after=5),
        Faults(restart_after=5),
        Faults(lose=0.03, reorder=0.03),
    ],
    ids=repr,
)
async def test_the_host_plays_on(kit, faults):
    settings = {"grant_ms": 1000, "bank_ms": 0, "hello_s": 5.0}
    async with FaultLobby(TOKENS, faults=faults, robots=True, seed=3, **settings) as lobby:
        kit.url = lobby.url
        async with kit.running(kit.settings(wishes=("claims",), accounts=1)) as host:
            await kit.until(lambda: host.runner.counters.hands >= 10)
        counted = [f for f in faults.__struct_fields__ if f.endswith("_after") and getattr(faults, f) is not None]
        assert lobby.struck == [f for f in counted if f != "restart_down_s"]
        acts = {(act.table, act.id) for act in lobby.said_by("ada", wire.Act)}
    logged = {tuple(row) for row in kit.rows("SELECT \"table\", request_id FROM decisions WHERE role = 'live'")}
    assert acts <= logged
    doubled = kit.rows(
        "SELECT count(*) FROM decisions GROUP BY game_id, seat, seq, substep, attempt, role HAVING count(*) > 1"
    )
    assert doubled == []
