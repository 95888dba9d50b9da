"""OpenSpiel's games at the embedded lobby: whole hands, every decision logged, exported and rebuilt."""

import pytest

from bothost import rules
from bothost.plugins import Plugins

pytest.importorskip("pyspiel")


@pytest.mark.parametrize("name", ["tic_tac_toe", "go(board_size=9)", "backgammon"])
async def test_whole_hands(kit, name):
    Plugins.load()
    wishes = (f"openspiel:{name}",)
    async with kit.lobby() as server, kit.running(kit.settings(wishes=wishes, accounts=2)) as host:
        await kit.until(lambda: host.runner.counters.hands >= 2)
        assert server.lobby.playing.hands_played >= 1
    assert host.runner.counters.fallbacks == {}
    decisions = kit.count("decisions")
    assert decisions == host.runner.counters.decisions > 0
    assert kit.count("outcomes WHERE kind = 'acknowledged'") == decisions
    game = rules.game(*wishes)
    for logged_game, action, view in kit.rows("SELECT game, action, view FROM decisions"):
        assert logged_game == game.name
        assert game.view_from_bytes(view).is_legal(action)
