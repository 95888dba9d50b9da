"""What a host logged of its tables gives everybody's decisions back, of those who agreed to be imitated."""

import json

import pytest

from bothost.messages import HandStarted
from bothost.retrain.players import Players
from bothost.store import Store, consent


@pytest.mark.parametrize(("game", "accounts"), [("doudizhu", 3), ("pairing", 2)])
async def test_every_decision_of_our_accounts_comes_back_once(kit, game, accounts):
    async with (
        kit.lobby() as _,
        kit.running(kit.settings(wishes=(game,), accounts=accounts, consents=("ada",))) as host,
    ):
        await kit.until(lambda: host.runner.counters.hands >= 3 * accounts)
    with Store.open(kit.store_settings) as store:
        log = Players(store)
        assert set(log.players(game)) == {"ada"}
        consent.record(store, "home", "bob", granted=True)
        for player in ("ada", "bob"):
            moves = moves_of(log, game, player)
            assert len(moves) > 10 and moves == decisions_of(kit, player)
        assert all("views" not in why for read in log.lineage()["read"] for why in read["left_out"])


def decisions_of(kit, player):
    """What our account decided itself at hands whose reveal it saw; a drain may take it away before."""
    revealed = "SELECT game_id FROM events WHERE events LIKE '%reveal%'"
    of_player = f"decisions JOIN games USING (game_id, seat) WHERE account = '{player}'"
    rows = kit.rows(f"SELECT view, action FROM {of_player} AND fallback IS NULL AND game_id IN ({revealed})")
    return sorted((row.view, row.action) for row in rows)


def moves_of(log, game, player):
    return sorted((move.view.to_bytes(), move.action) for move in log.moves(game, [player]))


@pytest.mark.parametrize(("leaves", "stays"), [("ada", "bob"), ("bob", "ada")])
async def test_what_the_lobby_plays_for_an_account_that_left_is_not_its_play(kit, leaves, stays):
    """A drain comes when a hand is dealt, and one account has heard of it and the other not yet: that one leaves at
    once, and the lobby plays its seat to the end."""
    async with kit.lobby() as _, kit.running(kit.settings(wishes=("pairing",), accounts=2)) as host:
        await kit.until(lambda: host.runner.counters.hands >= 2)
        accounts = {account.name: account for account in host.accounts}
        on_their_way = held_back(accounts[leaves], HandStarted)
        await kit.until(lambda: on_their_way and plays(accounts[stays], on_their_way[0].table))
    left = on_their_way[0].table
    [row] = kit.rows(f"""SELECT * FROM games JOIN game_ends USING (game_id, seat) WHERE "table" = '{left}'""")
    assert row.account == stays and row.scores is not None and json.loads(row.away) == [1 - row.seat]
    with Store.open(kit.store_settings) as store:
        for player in ("ada", "bob"):
            consent.record(store, "home", player, granted=True)
        log = Players(store)
        for player in ("ada", "bob"):
            assert moves_of(log, "pairing", player) == decisions_of(kit, player) != []
        gone, there = (next(r for r in log.lineage()["read"] if r["players"] == [p]) for p in (leaves, stays))
        why = "moves of players who were away"
        assert gone["left_out"][why] > 10 and why not in there["left_out"]
        hands = kit.count("games JOIN game_ends USING (game_id, seat)")
        assert log.players("pairing") == {stays: (hands + 1) // 2, leaves: hands // 2}


def plays(account, table):
    return table in account.tables.sessions and account.tables.sessions[table].hand is not None


def held_back(account, kind):
    """What the account is not told any more from the next event of this kind on: it is still on its way."""
    events, tell = [], account.event

    def hold(event, now):
        if events or isinstance(event, kind):
            events.append(event)
        else:
            tell(event, now)

    account.event = hold
    return events


async def test_a_robots_decisions_come_back_by_its_recorded_consent(kit):
    async with (
        kit.lobby(robots_after_s=0.0),
        kit.running(kit.settings(wishes=("othello",), accounts=1, consents=("ada",))) as host,
    ):
        await kit.until(lambda: host.runner.counters.hands >= 2)
    with Store.open(kit.store_settings) as store:
        log = Players(store)
        assert {move.player for move in log.moves("othello")} == {"ada"}
        robots = {name for (text,) in kit.rows("SELECT players FROM games") for name in _others(text)}
        for robot in robots:
            consent.record(store, "home", robot, granted=True)
        assert {move.player for move in log.moves("othello", robots)} == robots != set()


def _others(text):
    return {player["player"] for player in json.loads(text)} - {"ada"}
