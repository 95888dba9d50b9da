"""phase-ppo plays whole hands over a real websocket, at the level that its route asks for."""

import array
import json

import bothost_baselines
import bothost_phase_ppo
from bothost.config import RouteSettings
from bothost.plugins import weights
from bothost_phase_ppo.decide import PhasePpo


async def test_every_model_decision_is_logged_with_its_phase_policy_value_and_model(kit):
    route = RouteSettings(strategy="phase-ppo", level=5)
    async with kit.lobby():
        settings = kit.settings(wishes=("pairing",), accounts=2, tables=4, routes=(route,))
        async with kit.running(settings, bothost_phase_ppo, bothost_baselines) as host:
            await kit.until(lambda: host.runner.counters.hands >= 8)
    assert host.runner.counters.fallbacks == {}
    rows = kit.rows("SELECT phase, strategy, model_sha256, encoder_version, policy, value, stats FROM decisions")
    assert len(rows) == host.runner.counters.decisions > 200
    assert {"init", "pairing", "A", "B"} <= {row.phase for row in rows}
    assert {row.strategy for row in rows} == {"phase-ppo"}
    assert {row.model_sha256 for row in rows} == {weights.find(PhasePpo, "level-5").sha256}
    assert {row.encoder_version for row in rows} == {2}
    playouts = [json.loads(row.stats)["playouts"] for row in rows if row.stats]
    assert len(playouts) > 100 and set(playouts) <= {0, 256} and 256 in playouts, "0 where time was short"
    assert all(row.value is not None and abs(sum(array.array("f", row.policy)) - 1.0) < 1e-3 for row in rows)
