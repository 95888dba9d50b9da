"""Strategies in processes: what would take a host with it costs only their own tables a fallback."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from structlog.testing import capture_logs

import bothost.rules as rules
from bothost.children import resident_bytes
from bothost.config import LimitSettings, RouteSettings, WishSettings
from bothost.host.process import HostFault, ProcessFailed, ProcessLate, ProcessLimits, ProcessStrategy
from bothost.host.process_messages import LENGTH, decode_request, frame
from bothost.plugins import Plugins
from bothost.strategy import Budget, Table
from bothost.testing import misbehaving

change = msgspec.structs.replace
found = Plugins.load(modules=[misbehaving])


@pytest.fixture
def remote():
    made = []

    def make(address, options=None, memory_mb=2048):
        made.append(ProcessStrategy(found.resolve(address, options or {}), ProcessLimits(memory_mb << 20)))
        return made[-1]

    yield make
    for strategy in made:
        strategy.close()


def position(game="doudizhu"):
    made = rules.game(game)
    state = made.new_state(seed=3)
    seat = state.to_act[0]
    return Table(lobby="l", table="t", game=made, seat=seat, seed=7), state.view(seat)


def decide(player, view, seconds=60.0):
    return player.decide(view, view.legal(), Budget(time.monotonic() + seconds))


@pytest.mark.parametrize(
    ("address", "game"), [("random", "doudizhu"), ("random", "pairing"), ("rule-doudizhu", "doudizhu")]
)
def test_a_process_decides_as_the_strategy_does_in_the_host(remote, address, game):
    table, view = position(game)
    here = decide(found.resolve(address, {}).make().player(table), view)
    there = decide(remote(address).player(table), view)
    assert there.action == here.action and there.stats == here.stats
    for name in ("policy", "values"):
        ours, theirs = getattr(here, name), getattr(there, name)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_allclose(theirs, ours, rtol=1e-6)


def test_a_decision_that_is_refused_in_the_host_is_refused_in_a_process(remote):
    table, view = position()
    with pytest.raises(ProcessFailed, match="action is float, not int"):
        decide(remote("misbehaving-fraction").player(table), view)


def test_a_process_that_holds_the_gil_is_killed_at_the_deadline_and_replaced(remote):
    table, view = position()
    strategy = remote("misbehaving-gil", {"after": 1, "seconds": 600})
    player = strategy.player(table)
    decide(player, view)
    pid, began = strategy.pid, time.monotonic()
    with pytest.raises(ProcessLate):
        decide(player, view, 0.3)
    assert time.monotonic() - began < 30, "of 600 s"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert decide(player, view).action == view.legal()[0], "the next process knows nothing of the decisions before"
    assert strategy.starts == 2


def test_a_process_that_is_ended_while_its_thread_waits_has_no_successor(remote):
    """As when the thread is given up: nobody would end the next one."""
    table, view = position()
    strategy = remote("misbehaving-gil", {"seconds": 600})
    player = strategy.player(table)
    ending = threading.Timer(0.5, strategy.close)
    ending.start()
    with pytest.raises(ProcessFailed):
        decide(player, view)
    ending.join()
    assert strategy.pid is None and strategy.starts == 1
    with pytest.raises(ProcessFailed, match="was closed"):
        decide(player, view)


def test_a_request_that_never_reached_the_process_costs_one_decision(remote):
    """Other tables took its time: the process has not heard of this one yet, nor of its events."""
    table, view = position()
    strategy = remote("random")
    player = strategy.player(table)
    player.observe(["first"])
    with pytest.raises(ProcessLate, match="other tables"):
        decide(player, view, -1.0)
    asked = []
    ask = strategy.ask

    def noted(message, deadline):
        asked.append(decode_request(message[LENGTH.size :]))
        return ask(message, deadline)

    strategy.ask = noted
    player.observe(["second"])
    assert decide(player, view).action in view.legal()
    assert decide(player, view).action in view.legal()
    assert strategy.starts == 1
    assert [(what.events, what.table is not None) for what in asked] == [(["first", "second"], True), ([], False)]


def test_a_process_that_is_still_starting_costs_one_decision():
    table, view = position()
    strategy = ProcessStrategy(found.resolve("random", {}), ProcessLimits(), wait=False)
    try:
        player = strategy.player(table)
        with pytest.raises(ProcessLate, match="still starting"):
            decide(player, view, 0.01)
        assert decide(player, view).action in view.legal()
    finally:
        strategy.close()


def test_a_process_that_dies_costs_one_decision(remote):
    table, view = position()
    strategy = remote("misbehaving-dies", {"after": 1})
    player = strategy.player(table)
    decide(player, view)
    with pytest.raises(ProcessFailed, match="ended with code 1"):
        decide(player, view)
    assert decide(player, view).action in view.legal()


def test_a_segfault_costs_one_decision(remote, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, view = position()
    strategy = remote("misbehaving-segfault", {"after": 1})
    player = strategy.player(table)
    decide(player, view)
    with pytest.raises(ProcessFailed, match=f"ended with code -{signal.SIGSEGV.value}"):
        decide(player, view)
    assert decide(player, view).action in view.legal()
    assert strategy.starts == 2 and list(tmp_path.iterdir()) == [], "no core file"


def test_a_process_that_does_not_stay_up_is_not_started_for_ever(remote):
    table, view = position()
    strategy = remote("misbehaving-dies")
    player = strategy.player(table)
    for _ in range(8):
        with pytest.raises(ProcessFailed):
            decide(player, view)
    assert strategy.starts == 5


def test_a_process_that_leaks_is_killed_above_its_limit(remote):
    table, view = position()
    small = remote("random")
    decide(small.player(table), view)
    base_mb = resident_bytes(small.pid) >> 20
    strategy = remote("misbehaving-leak", memory_mb=base_mb + 40)
    player = strategy.player(table)
    with pytest.raises(ProcessFailed, match="MiB"):
        for _ in range(200):
            decide(player, view)
    assert strategy.starts == 2


def test_a_process_that_is_too_large_before_it_is_ready_is_killed(remote):
    strategy = remote("random", memory_mb=1)
    assert strategy.pid is None
    with pytest.raises(ProcessFailed, match="MiB"):
        strategy.await_ready(time.monotonic() + 60.0)
    assert strategy.pid is None and strategy.starts == 2


def test_a_plugin_that_raises_or_prints_keeps_its_process(remote):
    table, view = position()
    strategy = remote("misbehaving-flood")
    assert decide(strategy.player(table), view).action in view.legal()
    raising = remote("misbehaving-crash")
    with pytest.raises(ProcessFailed):
        decide(raising.player(table), view)
    assert raising.starts == strategy.starts == 1


def test_a_process_ends_with_a_host_that_is_killed_even_while_it_holds_the_gil():
    """The host is killed while it waits for a decision that takes ten minutes."""
    code = """
import os, threading, time
from bothost.host.process import ProcessLimits, ProcessStrategy
from bothost.host.process_messages import LENGTH, decode_request, frame
from bothost.plugins import Plugins
from bothost.testing import misbehaving
from bothost import rules
from bothost.strategy import Budget, Table
game = rules.game("doudizhu")
state = game.new_state(seed=3)
view = state.view(state.to_act[0])
found = Plugins.load(modules=[misbehaving])
strategy = ProcessStrategy(found.resolve("misbehaving-gil", {"seconds": 600}), ProcessLimits())
player = strategy.player(Table(lobby="l", table="t", game=game, seat=state.to_act[0], seed=7))
threading.Timer(0.5, lambda: os.kill(os.getpid(), 9)).start()
print(strategy.pid, flush=True)
player.decide(view, view.legal(), Budget(time.monotonic() + 120))
"""
    host = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert host.returncode == -9, host.stderr
    end = time.monotonic() + 60
    while resident_bytes(int(host.stdout)) and time.monotonic() < end:
        time.sleep(0.02)
    assert resident_bytes(int(host.stdout)) == 0


def test_a_process_does_not_get_the_host_s_secrets(remote, monkeypatch):
    monkeypatch.setenv("BOTHOST_HOME_TOKEN", "planted")
    strategy = remote("random")
    environment = Path(f"/proc/{strategy.pid}/environ").read_bytes()
    assert b"planted" not in environment and b"PATH=" in environment


@pytest.mark.parametrize(
    "bad", ["misbehaving-gil", "misbehaving-dies", "misbehaving-segfault", "misbehaving-process-leak"]
)
async def test_at_the_table_a_bad_process_costs_its_own_tables_fallbacks_and_nobody_else_anything(kit, bad):
    routes = (
        RouteSettings(game="othello", strategy=bad, fallback="test-random"),
        RouteSettings(strategy="test-random"),
    )
    wishes = (WishSettings(game="othello"), WishSettings(game="doudizhu", attributes={"grant_ms": 60_000}))
    async with kit.lobby(grant_ms=1200, bank_ms=0, lag_ms=10_000):  # a busy machine has the time for an answer
        settings = kit.settings(wishes=wishes, tables=2, routes=routes, margin_ms=600.0)
        limits = LimitSettings(tables=100, quarantine_after=3, process_memory_mb=128)
        settings = change(settings, limits=limits)
        async with kit.running(settings, misbehaving) as host:
            await kit.until(lambda: host.runner.counters.fallbacks["quarantined"] > 0)
            await kit.until(lambda: host.runner.counters.hands >= 4)
            # A busy machine may take longer to end a process than its tables have time; the thread comes back from it.
            await kit.until(lambda: not host.runner.workers.abandoned)
    assert kit.count("decisions WHERE game = 'doudizhu' AND fallback IS NOT NULL") == 0
    if bad != "misbehaving-process-leak":  # which decides, until it is too big
        assert kit.count(f"decisions WHERE strategy = '{bad}'") == 0
    assert kit.count("outcomes WHERE kind IN ('rejected', 'server_acted')") == 0


async def test_at_the_table_a_process_that_floods_its_output_plays_on(kit, capfd):
    async with kit.lobby():
        made = kit.settings(wishes=("othello",), routes=(RouteSettings(strategy="misbehaving-process-flood"),))
        async with kit.running(made, misbehaving) as host:
            await kit.until(lambda: host.runner.counters.hands >= 2)
    assert host.runner.counters.fallbacks == {}
    assert "thinking" not in "".join(capfd.readouterr())


LOOSE = """
from bothost import Decision, Player, Strategy, hookimpl

class LastPlayer(Player):
    def decide(self, view, legal, budget):
        return Decision(action=int(legal[-1]), stats={"why": "the last"})

class Last(Strategy):
    name, version, games, execution = "loose-last", "1", ("*",), "process"

    def player(self, table):
        return LastPlayer()

@hookimpl
def bothost_strategies():
    return [Last]
"""


def test_a_loose_plugin_runs_in_a_process_too(tmp_path):
    (tmp_path / "loose_last_plugin.py").write_text(LOOSE)
    plugins = Plugins.load(tmp_path)
    strategy = ProcessStrategy(plugins.resolve("loose-last", {}), ProcessLimits(plugins_dir=tmp_path))
    table, view = position()
    decision = decide(strategy.player(table), view)
    strategy.close()
    assert decision.action == view.legal()[-1] and decision.stats == {"why": "the last"}


def test_a_process_keeps_the_tempo_of_its_decisions_and_survives_statistics_that_are_no_json(tmp_path):
    endless = "self.stats = {'again': getattr(self, 'stats', 1)}; self.stats['again'] = self.stats; "
    source = LOOSE.replace("loose-last", "loose-tempo").replace("return", endless + "return", 1)
    source = source.replace('{"why": "the last"}', "self.stats if budget.bank_ms else None, wait_ms=150")
    (tmp_path / "loose_tempo_plugin.py").write_text(source)
    strategy = ProcessStrategy(Plugins.load(tmp_path).resolve("loose-tempo", {}), ProcessLimits(plugins_dir=tmp_path))
    table, view = position()
    player, deadline = strategy.player(table), time.monotonic() + 60.0
    assert player.decide(view, view.legal(), Budget(deadline)).wait_ms == 150.0
    endless = player.decide(view, view.legal(), Budget(deadline, 1.0))
    assert endless.action == view.legal()[-1] and "RecursionError" in endless.stats["error"]
    assert player.decide(view, view.legal(), Budget(deadline)).wait_ms == 150.0 and strategy.starts == 1
    strategy.close()


def test_what_nobody_can_log_costs_no_move_in_a_process_either(tmp_path):
    stats = "(['x' * 2**27], {1: 2**64}, ['no mapping'])[int(budget.bank_ms)]"
    wrong = f"stats={stats}, value=10**400, policy='likely', values=[object()]"
    source = LOOSE.replace("loose-last", "loose-wordy").replace('stats={"why": "the last"}', wrong)
    (tmp_path / "loose_wordy_plugin.py").write_text(source)
    strategy = ProcessStrategy(Plugins.load(tmp_path).resolve("loose-wordy", {}), ProcessLimits(plugins_dir=tmp_path))
    table, view = position()
    player, deadline = strategy.player(table), time.monotonic() + 60.0
    for bank_ms, logged in enumerate(("more than 1048576", "{'1': 18446744073709551616}", "['no mapping']")):
        decision = player.decide(view, view.legal(), Budget(deadline, bank_ms))
        assert decision.action == view.legal()[-1] and logged in str(decision.stats)
        assert (decision.policy, decision.values, decision.value) == (None, None, None)
    assert strategy.starts == 1
    strategy.close()


def test_an_error_in_the_process_names_its_line(tmp_path):
    source = LOOSE.replace("loose-last", "loose-raising").replace("return Decision(", "raise RuntimeError('ouch') #")
    (tmp_path / "loose_raising_plugin.py").write_text(source)
    plugins = Plugins.load(tmp_path)
    strategy = ProcessStrategy(plugins.resolve("loose-raising", {}), ProcessLimits(plugins_dir=tmp_path))
    table, view = position()
    with pytest.raises(ProcessFailed, match=r"^RuntimeError: ouch \(loose_raising_plugin.py:6\)$"):
        decide(strategy.player(table), view)
    strategy.close()


LATE = """
from bothost import Decision, Player, Strategy, hookimpl

class Listener(Player):
    def __init__(self):
        self.heard = []

    def observe(self, events):
        self.heard += events

    def decide(self, view, legal, budget):
        return Decision(action=int(legal[-1]), stats={"heard": self.heard})

class Late(Strategy):
    name, version, games, execution, wants_events, tries = "loose-late", "1", ("*",), "process", True, 0

    def player(self, table):
        self.tries += 1
        if self.tries == 1:
            raise ConnectionError("the server is not up yet")
        return Listener()

@hookimpl
def bothost_strategies():
    return [Late]
"""


def test_a_process_makes_a_player_again_that_could_not_be_made(tmp_path):
    """As the host does for strategies in threads. All later decisions of the hand were AssertionErrors."""
    (tmp_path / "loose_late_plugin.py").write_text(LATE)
    strategy = ProcessStrategy(Plugins.load(tmp_path).resolve("loose-late", {}), ProcessLimits(plugins_dir=tmp_path))
    table, view = position()
    player = strategy.player(table)
    player.observe(["first"])
    with pytest.raises(ProcessFailed, match="the server is not up yet"):
        decide(player, view)
    player.observe(["second"])
    assert decide(player, view).stats == {"heard": ["first", "second"]}
    player.observe(["third"])
    assert decide(player, view).stats == {"heard": ["first", "second", "third"]}
    assert strategy.starts == 1
    strategy.close()


def test_the_error_of_a_process_that_dies_as_it_starts_has_the_end_of_its_stderr(tmp_path):
    """As when native code that the plugin imports aborts."""
    (tmp_path / "loose_dying_plugin.py").write_text(LOOSE.replace("loose-last", "loose-dying"))
    plugins = Plugins.load(tmp_path)
    (tmp_path / "loose_dying_plugin.py").write_text(
        "import os; os.write(2, b'x' * 200_000 + b'\\nlibfast.so: no such file\\n'); os._exit(3)"
    )
    with capture_logs() as logs:
        strategy = ProcessStrategy(plugins.resolve("loose-dying", {}), ProcessLimits(plugins_dir=tmp_path))
    strategy.close()
    (line,) = [line for line in logs if line["event"] == "process_not_started"]
    assert re.match(r"the process ended with code 3; last on stderr: x+\\nlibfast.so: no such file$", line["error"])
    assert len(line["error"]) < 600


def test_attributes_that_cannot_be_sent_are_not_the_strategys_fault(remote):
    """MessagePack has no integer of 65 bits."""
    table, view = position()
    strategy = remote("random")
    player = strategy.player(change(table, attributes={"huge": 2**64}))
    with pytest.raises(HostFault, match="cannot be sent"):
        decide(player, view)
    assert strategy.starts == 1, "the process is well"
    assert decide(strategy.player(table), view).action in view.legal()


def test_after_a_request_that_was_not_sent_the_next_one_introduces_the_table(remote, monkeypatch):
    table, view = position()
    strategy = remote("random")
    player = strategy.player(table)
    asked = []

    def encoded(ask):
        asked.append(ask)
        if len(asked) == 1:
            raise HostFault("cannot be sent")
        return frame(ask)

    monkeypatch.setattr("bothost.host.process.encoded", encoded)
    player.observe(["first"])
    with pytest.raises(HostFault):
        decide(player, view)
    assert decide(player, view).action in view.legal()
    assert [(ask.events, ask.table is not None) for ask in asked] == [(["first"], True), (["first"], True)]


async def test_a_fault_of_the_host_never_quarantines(kit, monkeypatch):
    def faulty(ask):
        raise HostFault("the request cannot be sent")

    monkeypatch.setattr("bothost.host.process.encoded", faulty)
    routes = (RouteSettings(strategy="misbehaving-gil", options={"after": 100_000}),)
    async with kit.lobby(), kit.running(kit.settings(routes=routes), misbehaving) as host:
        await kit.until(lambda: host.runner.counters.fallbacks["error"] >= 20)
        (loaded,) = [one for one in host.plans.loaded if one.name == "misbehaving-gil"]
        assert loaded.quarantined_until == 0.0 and not loaded.failures
