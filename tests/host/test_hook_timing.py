"""When the notifying hooks fire, one test each. The tests watch where the host fires a hook, not the hooks' thread."""

import pytest

from bothost.host.account_tables import AccountTables
from bothost.host.hooks import HookThread
from bothost.host.recorder import Recorder
from bothost.testing.hosting import RandomPlayer, RandomStrategy


class Listed(RandomPlayer):
    """Writes down when it is asked."""

    def __init__(self, table, moments):
        super().__init__(table.seed)
        self._key = (table.table, table.seat)
        self._moments = moments

    def decide(self, view, legal, budget):
        self._moments.append(("decide", self._key))
        return super().decide(view, legal, budget)


@pytest.fixture
async def moments(kit, monkeypatch):
    """What happened in a few hands, in order: (what, detail)."""
    found = []

    class Strategy(RandomStrategy):
        name = "listed"

        def player(self, table):
            return Listed(table, found)

    def listen(owner, name, note):
        method = getattr(owner, name)

        def noted(self, *args, **kwargs):
            if (moment := note(self, *args, **kwargs)) is not None:
                found.append(moment)
            return method(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, noted)

    def fired(hooks, name, **arguments):
        if name == "bothost_table_opened":
            return name, (arguments["table"].table, arguments["table"].seat)
        event = arguments["event"]
        if name == "bothost_table_closed":
            return name, event.game_id
        return name, (event.table.table, event.table.seat, event.request_id)

    listen(HookThread, "fire", fired)
    listen(AccountTables, "act", lambda tables, act, sent: ("act", (act.table, act.request_id)))
    listen(Recorder, "hand_closed", lambda recorder, event: ("logged", event.hand.game_id.hex()))
    kit.strategies = (Strategy,)
    listener = kit.module("listener", bothost_decision_made=lambda event: None)
    async with kit.lobby(), kit.running(kit.settings(), listener) as host:
        await kit.until(lambda: host.runner.counters.hands >= 3)
    return found


async def test_table_opened_fires_before_the_first_decision_is_asked_for(moments):
    asked = {detail for what, detail in moments if what == "decide"}
    assert len(asked) >= 3
    for key in asked:
        assert moments.index(("bothost_table_opened", key)) < moments.index(("decide", key))


async def test_decision_made_fires_after_the_move_was_handed_to_the_connection(moments):
    made = [(at, detail) for at, (what, detail) in enumerate(moments) if what == "bothost_decision_made"]
    assert len(made) > 20
    for at, (table, _, request) in made:
        what, detail = moments[at - 1]
        assert what == "act" and detail == (table, request), "the move leaves right before"
    assert len(made) == sum(what == "act" for what, _ in moments)


async def test_table_closed_fires_once_after_the_result_was_logged(moments):
    closed = [detail for what, detail in moments if what == "bothost_table_closed"]
    assert len(closed) == len(set(closed)) == sum(what == "bothost_table_opened" for what, _ in moments)
    for game_id in closed:
        assert moments.index(("logged", game_id)) < moments.index(("bothost_table_closed", game_id))
