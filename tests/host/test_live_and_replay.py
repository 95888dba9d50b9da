"""What was decided live is decided again from the log (Akagi#279: strategies that differed live and in replay)."""

import time

import numpy as np
import pytest

import bothost.rules as rules
import bothost_baselines
from bothost.config import RouteSettings
from bothost.plugins import Plugins
from bothost.strategy import Budget, Table


@pytest.mark.parametrize(("game", "strategy"), [("doudizhu", "rule-doudizhu"), ("othello", "rule-othello")])
async def test_a_deterministic_strategy_decides_in_replay_as_it_did_live(kit, game, strategy):
    settings = {"wishes": (game,), "routes": (RouteSettings(strategy=strategy),)}
    async with kit.lobby(robots_after_s=0.0), kit.running(kit.settings(**settings), bothost_baselines) as host:
        await kit.until(lambda: host.runner.counters.hands >= 4)
    made = Plugins.load(modules=[bothost_baselines]).resolve(strategy, {}).make()
    rows = kit.rows(
        "SELECT d.view, d.legal, d.action, d.state_hash, g.seed, d.seat FROM decisions d "
        "JOIN games g USING (game_id, seat) WHERE d.fallback IS NULL"
    )
    assert len(rows) > 20
    for data, legal, action, state_hash, seed, seat in rows:
        played = rules.game(game)
        view = played.view_from_bytes(data)
        actions = view.legal()
        np.testing.assert_array_equal(actions, np.frombuffer(legal, "<i4"))
        assert view.hash() % 2**64 == state_hash % 2**64
        player = made.player(Table(lobby="home", table="t", game=played, seat=seat, seed=seed))
        assert player.decide(view, actions, Budget(time.monotonic() + 60)).action == action
