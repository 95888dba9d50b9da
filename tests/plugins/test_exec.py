"""Programs as strategies: they play whole games, and whatever they do wrong costs them one move."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stopwatch import fastest, seconds

import bothost_openspiel
from bothost import Budget, Decision, PluginError, ProtocolError, Request, Table, exec_protocol, rules
from bothost.arena.match import play_deals
from bothost.plugins import Plugins
from bothost.strategy import decide_all
from bothost.testing.check_strategy import check_strategy
from bothost_exec.options import Options
from bothost_exec.process import Background, Process, StderrLog
from bothost_exec.strategy import Exec

ROOT = Path(__file__).parents[2]
GAME = rules.game("claims")
SEEDS = itertools.count(100)

BOT = """
import json, os, sys, time
def say(**message):
    print(json.dumps(message), flush=True)
decisions, resumed = 0, []
for line in sys.stdin:
    m = json.loads(line)
    if m["type"] == "open":
        resumed.append(m.get("resumed", False))
    elif m["type"] == "hello":
        say(type="hello", version=1, name="bot", games={games})
    elif m["type"] == "decide":
        decisions += 1
        {act}
        say(type="action", id=m["id"], action=m["legal"][0])
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Exec]]:
    made: list[Exec] = []

    def make(act: str = "pass", games: str = '["*"]', **options: Any) -> Exec:
        file = tmp_path / f"bot{len(made)}.py"
        file.write_text(BOT.format(act=act, games=games))
        made.append(Exec(Options(command=(sys.executable, "-S", str(file)), **options)))
        return made[-1]

    yield make
    for strategy in made:
        strategy.close()


def table(seat: int = 0, seed: int = 1) -> Table:
    return Table(lobby="l", table="t", game=GAME, seat=seat, seed=seed)


def request(strategy: Exec, ms: float = 60_000.0, player: Any = None, seed: int = 3) -> Request:
    state = GAME.new_state(seed)
    seat = state.to_act[0]
    view = state.view(seat)
    player = player or strategy.player(table(seat))
    return Request(player, view, view.legal(), Budget(time.monotonic() + ms / 1000.0))


def moved_on(one: Request) -> Request:
    """The same player at another position: an answer to the last one is not given again."""
    return request(one.player.strategy, player=one.player, seed=next(SEEDS))


def decide(one: Request, ms: float = 60_000.0) -> Any:
    return one.player.decide(one.view, one.legal, Budget(time.monotonic() + ms / 1000.0))


def test_a_strategy_played_as_a_program_plays_whole_games() -> None:
    address = f"exec:{sys.executable} -m bothost play random --stdio"
    report = check_strategy(address, games=[GAME], hands=5, budget_ms=20_000, options={"pool": 1, "start_ms": 60_000})
    report.require()
    assert report.decisions > 20


@pytest.mark.parametrize("game", ["claims", "pairing", "doudizhu"])
def test_the_python_example_plays_whole_games(game: str) -> None:
    file = ROOT / "examples" / "exec" / "random_bot.py"
    address = f"exec:{sys.executable} -S {file}"
    check_strategy(address, games=[game], hands=2, budget_ms=20_000, options={"pool": 1, "start_ms": 60_000}).require()


def test_in_the_arena_the_start_of_a_program_is_not_its_thinking_time(tmp_path: Path) -> None:
    program = tmp_path / "slow_start.py"
    program.write_text("import time; time.sleep(2)" + BOT.format(act="pass", games='["*"]'))
    strategy = Exec(Options(command=(sys.executable, "-S", str(program)), pool=1, start_ms=60_000))
    try:
        (deal,) = play_deals(rules.game("othello"), [strategy], [(0, 0)], [0], seed=1, ms=1500)
    finally:
        strategy.close()
    assert deal.hands[0].decisions[0] > 20 and deal.hands[0].late == (0,)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_the_c_example_plays_whole_games(tmp_path: Path) -> None:
    source, program = ROOT / "examples" / "exec" / "first_bot.c", tmp_path / "first_bot"
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source)], check=True)
    for game in ("claims", "pairing"):
        check_strategy(f"exec:{program}", games=[game], hands=3, budget_ms=20_000, options={"pool": 1}).require()


def test_the_documentation_shows_every_message() -> None:
    text = (ROOT / "docs" / "reference" / "exec-protocol.md").read_text()
    seen = set()
    for side, block in re.findall(r"```json (host|program)\n(.*?)\n```", text, flags=re.S):
        decode = exec_protocol.decode_for_program if side == "host" else exec_protocol.decode_for_host
        for line in block.splitlines():
            message = decode(line)
            seen.add(type(message))
            assert set(json.loads(line)) - {"type"} <= set(message.__struct_fields__)
    assert seen == set((exec_protocol.ToProgram | exec_protocol.ToHost).__args__)
    for option in Options.__struct_fields__:
        if option.endswith("_ms") and option != "unclocked_ms":
            assert option in text


def test_what_a_program_adds_is_kept(start: Callable[..., Exec]) -> None:
    extra = "policy=[1.0] + [0.0] * (len(m['legal']) - 1), value=2.5, stats={'reason': 'first'}"
    act = f"say(type='action', id=m['id'], action=m['legal'][0], {extra}); continue"
    one = request(start(act))
    decision = decide(one)
    assert (decision.value, decision.stats, sum(decision.policy)) == (2.5, {"reason": "first"}, 1.0)


@pytest.mark.parametrize(
    ("act", "error"),
    [
        ("sys.exit(3)", "exit code 3$"),
        (
            "raise RuntimeError('ouch\\x1b[31m' * 99)",
            r"exit code 1; last on stderr: RuntimeError: ouch\\x1b\[31m.{150,300}$",
        ),
        ("sys.exit('\\n\\nno\\ttime')", r"exit code 1; last on stderr: no\\ttime$"),
        ("os.kill(os.getpid(), 9)", "exit code -9"),
        ("sys.stdout.write('half'); sys.stdout.flush(); sys.exit('ouch')", "exit code 1; last on stderr: ouch$"),
        ("print('thinking')", "write debug output to stderr"),
        ('os.write(1, b\'{"type":"error","id":1,"message":"\\xe9"}\\n\')', "an invalid line .*utf-8"),
        ("print('x' * 200_000)", "more than 65536 bytes"),
        ("say(type='hello', version=1, name='b', games=[])", "a second hello"),
        ("say(type='action', id='one', action='x')", "an invalid line"),
        ('print(\'{"type":"hello","x":\' + \'[\' * 9999, flush=True)', "an invalid line"),
        ("[say(type='action', id=-n, action='x') for n in range(5000)]", "without a request"),
    ],
)
def test_a_program_that_dies_costs_one_move_and_starts_again(start: Callable[..., Exec], act: str, error: str) -> None:
    """It misbehaves at the second decision of each process: every other decision fails."""
    strategy = start(f"if decisions == 2: {act}", max_line_bytes=65536, pool=1)
    one = request(strategy)
    began = time.monotonic()
    for _ in range(2):
        one = moved_on(one)
        assert decide(one).action in one.legal
        one = moved_on(one)
        with pytest.raises(PluginError, match=error):
            decide(one)
    assert time.monotonic() - began < 10


def test_restarts_are_bounded(start: Callable[..., Exec]) -> None:
    one = request(start("sys.exit('ouch')", max_restarts=1))
    died = "died 2 times in 60 s; last on stderr: ouch"
    for error in ("exit code 1", "exit code 1", died, died):
        with pytest.raises(PluginError, match=error):
            decide(one)


def test_a_program_whose_answer_the_lobby_refused_is_asked_for_another(start: Callable[..., Exec]) -> None:
    one = request(start("if decisions == 3: m['legal'] = first\n        first = m['legal']"))
    for left in (one.legal, one.legal[1:]):
        assert decide(Request(one.player, one.view, left, one.budget)).action == left[0]
    with pytest.raises(ProtocolError, match="not legal"):
        decide(Request(one.player, one.view, one.legal[2:], one.budget))


@pytest.mark.parametrize(
    ("act", "error"),
    [
        ("say(type='action', id=m['id'], action='nonsense'); continue", "not legal"),
        ("say(type='error', id=m['id'], message='no idea'); continue", "no idea"),
        ("say(type='action', id=m['id'], action=m['legal'][0], policy=[0.5]); continue", "policy of 1"),
    ],
)
def test_a_bad_answer_does_not_end_the_program(start: Callable[..., Exec], act: str, error: str) -> None:
    one = request(start(f"if decisions == 1: {act}"))
    with pytest.raises(Exception, match=error):
        decide(one)
    assert decide(one).action in one.legal
    assert len(one.player.program.starts) == 1


def test_the_name_of_a_program_is_one_line_in_errors() -> None:
    hello = json.dumps({"type": "hello", "version": 1, "name": "evil\n\x1b[2J", "games": ["chess"]})
    strategy = Exec(Options(command=(sys.executable, "-S", "-c", f"print({hello!r}, flush=True); input()")))
    with pytest.raises(PluginError, match=r"evil\\n\\x1b\[2J does not play claims"):
        decide(request(strategy))
    strategy.close()


def test_a_late_answer_is_dropped_and_the_next_one_counts(start: Callable[..., Exec]) -> None:
    one = request(start("if decisions % 3 == 2: time.sleep(1.0)"))  # of the three decisions of each attempt

    def late() -> float:
        nonlocal one
        decide(one)
        one = moved_on(one)
        with pytest.raises(TimeoutError):
            began = time.monotonic()
            decide(one, ms=200)
        took = time.monotonic() - began
        assert decide(one).action in one.legal
        one = moved_on(one)
        return took

    assert fastest(late, 0.2) < 0.2, "gives up before the deadline"
    assert len(one.player.program.starts) == 1


def test_a_program_that_hangs_is_killed_and_started_again(start: Callable[..., Exec]) -> None:
    one = request(start("if decisions == 2: time.sleep(60)", hang_ms=100))
    decide(one)
    one = moved_on(one)
    with pytest.raises(TimeoutError):
        decide(one, ms=100)
    time.sleep(0.2)
    assert decide(one).action in one.legal
    assert len(one.player.program.starts) == 2


def test_a_program_that_never_says_hello(tmp_path: Path) -> None:
    strategy = Exec(Options(command=("sleep", "60"), start_ms=200.0))
    try:
        with pytest.raises(PluginError, match="sent no hello") as caught:
            decide(request(strategy))
        assert "flush stdout" in caught.value.advice, "most often it was said, and waits in a buffer"
    finally:
        strategy.close()


def test_a_program_that_does_not_exist_or_plays_other_games(start: Callable[..., Exec]) -> None:
    strategy = Exec(Options(command=("/there/is/no/such/bot",)))
    with pytest.raises(PluginError, match="no such program"):
        decide(request(strategy))
    strategy.close()
    with pytest.raises(PluginError, match="does not play claims; it plays chess"):
        decide(request(start(games='["chess"]')))


def test_a_program_may_play_a_family_of_games(start: Callable[..., Exec]) -> None:
    Plugins.load(entry_points=False, modules=[bothost_openspiel])
    game = rules.game("openspiel:tic_tac_toe")
    view = game.new_state(1).view(0)
    player = start(games='["openspiel:*"]').player(Table(lobby="l", table="t", game=game, seat=0, seed=1))
    assert decide(Request(player, view, view.legal(), Budget(math.inf))).action in view.legal()


def test_a_check_without_a_game_plays_those_that_the_program_names(tmp_path: Path) -> None:
    bot = tmp_path / "bot.py"

    def check(played: str, *games: str) -> tuple[set[str], list[str]]:
        bot.write_text(BOT.format(act="pass", games=played))
        report = check_strategy(f"exec:{sys.executable} {bot}", games=games, hands=1, options={"pool": 1})
        failed = [finding.detail for finding in report.findings if not finding.ok]
        return {finding.game for finding in report.findings if finding.game}, failed

    assert check('["othello"]') == ({"othello"}, [])
    games, failed = check('["chess"]', "othello")
    assert games == {"othello"} and "does not play othello; it plays chess" in failed[0]
    games, failed = check('["chess"]')
    assert len(games) == len(failed) > 3


def test_a_check_says_why_a_program_does_not_start_and_tries_no_other_game(tmp_path: Path) -> None:
    bot = tmp_path / "bot.py"
    bot.write_text("import numpyy")
    report = check_strategy(f"exec:{sys.executable} {bot}", hands=1)
    (failed,) = [finding for finding in report.findings if not finding.ok]
    assert failed.detail.endswith("exit code 1; last on stderr: ModuleNotFoundError: No module named 'numpyy'")
    assert failed.advice.endswith(f"{sys.executable} {bot}")


def test_a_game_that_a_shared_program_does_not_play_fails_alone(start: Callable[..., Exec]) -> None:
    strategy = start("if m['table'] == '1' and decisions == 3: sys.exit(1)", games='["claims"]', pool=1)
    one, game = request(strategy), rules.game("pairing")
    decide(one)
    view = game.new_state(1).view(0)
    other = strategy.player(Table(lobby="l", table="u", game=game, seat=0, seed=1))
    wrong = Request(other, view, view.legal(), one.budget)
    with pytest.raises(PluginError, match="does not play pairing; it plays claims"):
        decide(wrong)
    decide(one := moved_on(one))
    with pytest.raises(PluginError, match="exit code 1"):
        decide(one := moved_on(one))
    assert decide(one).action in one.legal, "the next process plays on"


def test_a_program_that_does_not_read_is_ended(start: Callable[..., Exec]) -> None:
    strategy = start("time.sleep(60)", pool=1, max_line_bytes=4096)
    one = request(strategy)
    one.player.opened.result(60)
    with pytest.raises(TimeoutError):
        decide(one, ms=300)
    for _ in range(200):
        one.player.observe(["x" * 1000] * 4)
    with pytest.raises((PluginError, TimeoutError)):
        decide(one, ms=300)
    assert len(one.player.program.starts) == 2


async def test_a_request_fails_when_its_process_is_ended_though_the_answer_is_in_the_pipe(tmp_path: Path) -> None:
    wrote = tmp_path / "wrote"
    bot = tmp_path / "bot.py"
    act = f"say(type='action', id=m['id'], action=m['legal'][0]); open({str(wrote)!r}, 'w'); continue"
    bot.write_text(BOT.format(act=act, games='["*"]'))
    background = Background()
    command = Options(command=(sys.executable, "-S", str(bot)))
    process = await Process.start(command, "bot", StderrLog(), background)
    process.send(exec_protocol.HostHello(version=exec_protocol.VERSION, host="test"))
    assert (await process.hello).name == "bot"
    question = exec_protocol.Decide(id=1, table="t", seq=0, phase="play", legal=("x",), view={})
    asked = asyncio.ensure_future(process.ask(question))
    await asyncio.sleep(0)
    deadline = time.monotonic() + 60
    while not wrote.exists() and time.monotonic() < deadline:
        time.sleep(0.01)  # noqa: ASYNC251 - the loop must not read the answer
    process.end("it is not needed")
    with pytest.raises(PluginError, match="bot: it is not needed"):
        await asked
    await background.finish()


async def test_a_process_that_has_ended_fails_a_request_at_once(tmp_path: Path) -> None:
    """Its program may end between two requests, while another one starts."""
    bot = tmp_path / "bot.py"
    bot.write_text("raise SystemExit('ouch')")
    background = Background()
    process = await Process.start(Options(command=(sys.executable, "-S", str(bot))), "bot", StderrLog(), background)
    for _ in range(2):
        with pytest.raises(PluginError, match="exit code 1; last on stderr: ouch"):
            async with asyncio.timeout(60):
                await process.ask(exec_protocol.Decide(id=1, table="t", seq=0, phase="play", legal=("x",), view={}))
    await background.finish()


def test_a_pool_shares_its_processes_and_they_think_together(start: Callable[..., Exec]) -> None:
    strategy = start("time.sleep(0.2)", pool=2)
    requests = [request(strategy) for _ in range(4)]
    assert len({one.player.program for one in requests}) == 2
    assert len(decide_all(strategy, requests)) == 4
    own = start("time.sleep(0.4)")
    apart = [request(own) for _ in range(4)]
    for one in apart:
        one.player.opened.result(60)

    def together() -> float:
        nonlocal apart
        apart = [moved_on(one) for one in apart]
        return seconds(lambda: decide_all(own, apart))

    assert fastest(together, 1.2) < 1.2, "one after the other they need 1.6 s"


def test_an_answer_does_not_wait_for_a_slower_one(start: Callable[..., Exec]) -> None:
    strategy = start("if m['table'] == '1': time.sleep(1.0)")
    requests = [request(strategy) for _ in range(3)]
    order = [index for index, _ in strategy.decide_many(requests)]
    assert sorted(order) == [0, 1, 2] and order[-1] == 0


def test_one_bad_table_in_a_batch_keeps_no_other_from_its_answer(start: Callable[..., Exec]) -> None:
    strategy = start("if m['table'] == '2': sys.exit(1)")
    requests = [request(strategy) for _ in range(3)]
    with pytest.raises(PluginError, match="exit code 1"):
        decide_all(strategy, requests)
    for one in (requests[0], requests[2]):
        assert decide(one).action in one.legal
    assert strategy.next_id() == 4, "the third program was asked once"
    made = dict(strategy.decide_many([request(strategy), request(strategy)]))
    assert {type(each) for each in made.values()} == {Decision}


def test_a_program_that_fails_in_a_batch_is_asked_once(start: Callable[..., Exec]) -> None:
    strategy = start("say(type='error', id=m['id'], message='no idea'); continue")
    ((index, error),) = strategy.decide_many([request(strategy)])
    assert index == 0 and isinstance(error, PluginError) and "no idea" in str(error)
    assert strategy.next_id() == 2


def test_a_restarted_program_is_told_its_tables_again(start: Callable[..., Exec]) -> None:
    answer = "say(type='action', id=m['id'], action=m['legal'][0], stats={'resumed': resumed}); continue"
    strategy = start(f"if m['id'] == 2: sys.exit(1)\n        {answer}", pool=1)
    one = request(strategy)
    assert decide(one).stats == {"resumed": [False]}
    with pytest.raises(PluginError):
        decide(moved_on(one))
    assert decide(moved_on(one)).stats == {"resumed": [True]}


def test_stderr_is_logged_and_bounded(start: Callable[..., Exec], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bothost.exec")
    one = request(start("for n in range(20000): print('thinking', n, file=sys.stderr)"))
    decide(one, ms=20_000)
    deadline = time.monotonic() + 60
    while not caplog.records and time.monotonic() < deadline:
        time.sleep(0.01)
    assert 1 <= len(caplog.records) <= 21 and "thinking 0" in caplog.text
    one.player.close()  # the program ends, and with it what is not shown
    while " more lines" not in caplog.text and time.monotonic() < deadline:
        time.sleep(0.01)
    assert " more lines" in caplog.text


async def test_lines_that_are_left_out_are_reported_when_no_other_follows(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bothost.exec")
    lines = StderrLog(window_s=0.5)
    lines.log("bot", [b"thinking"] * 25)
    assert caplog.messages[-1] == "bot: thinking"
    await asyncio.sleep(1.0)
    assert caplog.messages[-1] == "bot: 5 more lines" and len(caplog.messages) == 21


def test_programs_see_no_tokens_and_end_with_their_table(
    start: Callable[..., Exec], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOTHOST_HOME_TOKEN", "planted")
    stats = "stats={'pid': os.getpid(), 'seen': 'planted' in str(os.environ)}"
    one = request(start(f"say(type='action', id=m['id'], action=m['legal'][0], {stats}); continue"))
    told = decide(one).stats
    assert told["seen"] is False
    one.player.close()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.kill(told["pid"], 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    pytest.fail("the program outlived its table")
