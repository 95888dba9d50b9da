"""deep-mc plays whole hands over a real websocket, at the level that its route asks for, with every value logged."""

import array

import bothost_baselines
import bothost_deep_mc
from bothost.config import RouteSettings
from bothost.plugins import weights
from bothost_deep_mc.decide import DeepMc


async def test_every_decision_is_logged_with_its_values_and_model(kit):
    route = RouteSettings(strategy="deep-mc", level=2)
    async with kit.lobby():
        settings = kit.settings(wishes=("doudizhu",), accounts=3, tables=2, routes=(route,))
        async with kit.running(settings, bothost_deep_mc, bothost_baselines) as host:
            await kit.until(lambda: host.runner.counters.hands >= 6 and host.runner.counters.decisions > 50)
    assert host.runner.counters.fallbacks == {}
    rows = kit.rows("SELECT strategy, model_sha256, encoder_version, legal, value, action_values FROM decisions")
    assert len(rows) == host.runner.counters.decisions > 50
    assert {row.strategy for row in rows} == {"deep-mc"}
    assert {row.model_sha256 for row in rows} == {weights.find(DeepMc, "level-2").sha256}
    assert {row.encoder_version for row in rows} == {1}
    for row in rows:
        values = array.array("f", row.action_values)
        assert len(values) == len(array.array("i", row.legal)) and row.value == max(values)
        assert min(values) >= -1.0 and max(values) <= 1.0
