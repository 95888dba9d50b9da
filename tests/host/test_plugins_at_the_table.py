"""What plugins hear at a live table: events where they want them, and the three notifying hooks."""

import functools
import sys
import threading

from bothost import Decision, Player, Strategy
from bothost.config import RouteSettings
from bothost.testing.hosting import RandomStrategy


class FoldingPlayer(Player):
    """Keeps a view of its own from the events that it is told, and compares."""

    def __init__(self, table, faults):
        self.view = table.game.new_view(table.seat)
        self.faults = faults

    def observe(self, events):
        self.view.observe_all(events)

    def decide(self, view, legal, budget):
        if self.view.to_bytes() != view.to_bytes():
            self.faults.append(f"{self.view.seq} events told, {view.seq} seen")
        return Decision(action=int(legal[0]))


class Folding(Strategy):
    name = "folding"
    version = "1"
    games = ("*",)
    wants_events = True
    faults: list[str] = []  # noqa: RUF012 (what the test reads)

    def player(self, table):
        return FoldingPlayer(table, self.faults)


async def test_a_strategy_that_wants_events_is_told_all_of_them_before_it_decides(kit):
    async with (
        kit.lobby(),
        kit.running(
            kit.settings(wishes=("pairing",), accounts=2, routes=(RouteSettings(strategy="folding"),)),
            kit.module("folding_plugin", Folding),
        ) as host,
    ):
        await kit.until(lambda: host.runner.counters.hands >= 4)
    assert Folding.faults == []
    assert host.runner.counters.fallbacks == {}


async def test_a_player_is_closed_although_its_hand_ended_while_it_was_made(kit):
    """A program of an operator, or a strategy's process, would keep the hand for ever."""
    making, go_on = threading.Event(), threading.Event()
    made, closed = [], []

    class Slow(RandomStrategy):
        name, execution = "slow", "thread"

        def player(self, table):
            making.set()
            assert go_on.wait(30)
            made.append(super().player(table))
            made[-1].close = functools.partial(closed.append, made[-1])
            return made[-1]

    async with (
        kit.lobby(),
        kit.running(
            kit.settings(wishes=("othello",), accounts=2, routes=(RouteSettings(strategy=Slow.name),)),
            kit.module("slow_plugin", Slow),
        ) as host,
    ):
        await kit.until(making.is_set, 20)
        for account in host.accounts:
            account.seeking.pause()
            for table in list(account.tables.sessions):
                account.tables.leave_table(table, "a test")
        assert not host.runner.open_hands()
        go_on.set()
        await kit.until(lambda: made)
        await kit.until(lambda: closed == made, 10)


async def test_hooks_hear_of_every_hand_and_decision_and_cannot_harm(kit):
    heard = []

    def bothost_table_opened(table):
        heard.append(("opened", table.table, table.seat))
        raise RuntimeError("a listener's fault")

    def bothost_decision_made(event):
        heard.append(("made", event.table.table, event.table.seat, event.decision.action, threading.current_thread()))

    def bothost_table_closed(event):
        heard.append(("closed", event.table.table, event.table.seat, event.scores))

    hooks = {name: function for name, function in locals().items() if name.startswith("bothost_")}
    async with (
        kit.lobby(),
        kit.running(kit.settings(wishes=("pairing",), accounts=2), kit.module("listener", **hooks)) as host,
    ):
        await kit.until(lambda: host.runner.counters.hands >= 4)
    kinds = [notice[0] for notice in heard]
    assert kinds.count("opened") == kinds.count("closed") == kit.count("games")
    assert kinds.count("made") == host.runner.counters.decisions
    assert any(notice[0] == "closed" and notice[3] is not None for notice in heard)
    assert threading.main_thread() not in [notice[4] for notice in heard if notice[0] == "made"]


async def test_a_program_plays_at_a_live_table(kit, tmp_path):
    """`exec:` from end to end: lobby, host, process."""
    import bothost_exec

    bot = tmp_path / "bot.py"
    bot.write_text(
        """
import json, sys
events = {}
for line in sys.stdin:
    m = json.loads(line)
    if m["type"] == "hello":
        print(json.dumps({"type": "hello", "version": 1, "name": "bot", "games": ["*"]}), flush=True)
    elif m["type"] == "open":
        events[m["table"]] = 0
    elif m["type"] == "event":
        events[m["table"]] += 1
    elif m["type"] == "decide":
        stats = {"events": events[m["table"]], "seq": m["seq"]}
        answer = {"type": "action", "id": m["id"], "action": m["legal"][-1], "stats": stats}
        print(json.dumps(answer), flush=True)
"""
    )
    address = f"exec:{sys.executable} -S {bot}"
    async with (
        kit.lobby(),
        kit.running(
            kit.settings(wishes=("pairing",), accounts=2, routes=(RouteSettings(strategy=address),)), bothost_exec
        ) as host,
    ):
        await kit.until(lambda: host.runner.counters.hands >= 2)
    assert host.runner.counters.fallbacks == {}
    import msgspec

    told = [msgspec.json.decode(stats) for (stats,) in kit.rows("SELECT stats FROM decisions")]
    assert told and all(stats["events"] == stats["seq"] for stats in told)
