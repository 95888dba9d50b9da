"""What a host logged of its tables gives everybody's decisions back, of those who agreed to be imitated."""

import pytest

import bothost.rules as rules
from bothost.retrain.players import Players
from bothost.store import Store, consent


@pytest.mark.parametrize(("game", "accounts"), [("doudizhu", 3), ("pairing", 2)])
async def test_every_decision_of_our_accounts_comes_back_once(kit, game, accounts):
    async with (
        kit.lobby() as _,
        kit.running(kit.settings(wishes=(game,), accounts=accounts, consents=("ada",))) as host,
    ):
        await kit.until(lambda: host.floor.tally.hands >= 3 * accounts)
    with Store.open(kit.store_settings) as store:
        log = Players(store, rules.game)
        assert set(log.players(game)) == {"ada"}
        consent.record(store, "home", "bob", granted=True)
        for player in ("ada", "bob"):
            # A drain may take a player away before it heard of a hand that another account of ours plays to its end
            # (the lobby's server plays for the one who left), or, when its time is over, before the reveal.
            own = {row.game_id.hex() for row in kit.rows(f"SELECT game_id FROM games WHERE account = '{player}'")}
            revealed = "SELECT game_id FROM events WHERE events LIKE '%reveal%'"
            of_player = f"decisions JOIN games USING (game_id, seat) WHERE account = '{player}'"
            rows = kit.rows(f"SELECT view, action FROM {of_player} AND fallback IS NULL AND game_id IN ({revealed})")
            found = [move for move in log.moves(game, [player]) if move.game_id in own]
            moves = [(move.view.to_bytes(), move.action) for move in found]
            assert len(moves) > 10 and sorted(moves) == sorted((row.view, row.action) for row in rows)
        assert all("views" not in why for read in log.lineage()["read"] for why in read["left_out"])


async def test_a_robots_decisions_come_back_by_its_recorded_consent(kit):
    async with (
        kit.lobby(robots_after_s=0.0),
        kit.running(kit.settings(wishes=("othello",), accounts=1, consents=("ada",))) as host,
    ):
        await kit.until(lambda: host.floor.tally.hands >= 2)
    with Store.open(kit.store_settings) as store:
        log = Players(store, rules.game)
        assert {move.player for move in log.moves("othello")} == {"ada"}
        robots = {name for (text,) in kit.rows("SELECT players FROM games") for name in _others(text)}
        for robot in robots:
            consent.record(store, "home", robot, granted=True)
        assert {move.player for move in log.moves("othello", robots)} == robots != set()


def _others(text):
    import json

    return {player["player"] for player in json.loads(text)} - {"ada"}
