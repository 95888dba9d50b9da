"""A hundred matches of each game under Botzone's own judges, which are programs. ::

    BOTHOST_BOTZONE_LOCAL=~/botzone-local BOTHOST_BOTZONE_MAHJONG=~/Chinese-Standard-Mahjong \\
        pytest -m long tests/lobbies/botzone/test_official_judges.py -s

The variables name checkouts of github.com/ailab-pku/botzone-local and ailab-pku/Chinese-Standard-Mahjong. The judges of
Reversi and mahjong are compiled: they need g++, libjsoncpp-dev and libboost-dev.

In the mode "keep-running" each seat is a process of ``bothost play`` for a whole match. In the mode "one-shot" the same
command starts anew for every turn; here that is a new call of its function, and a process in one match of twenty.
"""

import io
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter

import pytest

from bothost.cli.play_botzone import serve
from bothost.lobbies.botzone.program import KEEP_RUNNING
from bothost.plugins import Plugins

from .. import real_servers

MATCHES = int(os.environ.get("BOTHOST_BOTZONE_MATCHES", "100"))
FIRST = int(os.environ.get("BOTHOST_BOTZONE_FIRST", "0"))
"""Number of the first match. A run that was cut short goes on from there."""
PROCESSES_EVERY = 20
PLAYERS = {
    "Reversi": ("rule-othello", "random"),
    "FightTheLandlord": ("rule-doudizhu", "random", "rhcp-doudizhu"),
    "FightTheLandlord2": ("rule-doudizhu", "rhcp-doudizhu", "random"),
    "Chinese-Standard-Mahjong": ("rule-mahjong", "simple-mahjong", "rule-mahjong", "random"),
}
"""Strategies of the seats, random ones among them: they reach positions that good play does not."""


def compiled(source, folder, *more):
    """The judge that these C++ sources make."""
    headers = folder / "headers" / "jsoncpp"
    headers.mkdir(parents=True, exist_ok=True)
    (headers / "json.h").write_text("#include <json/json.h>\n")  # where the platform has the library's header
    target = folder / source.stem
    flags = ["-O2", "-w", "-D_BOTZONE_ONLINE", f"-I{folder / 'headers'}", "-I/usr/include/jsoncpp", *more]
    subprocess.run(["g++", *flags, str(source), "-o", str(target), "-ljsoncpp"], check=True)
    return [str(target)]


def judge_of(name, folder):
    """The command of a game's judge."""
    if name == "Chinese-Standard-Mahjong":
        root = real_servers.source_of("BOTHOST_BOTZONE_MAHJONG")
        algorithm = root / "fan-calculator-usage" / "ChineseOfficialMahjongHelper" / "Classes" / "mahjong-algorithm"
        (folder / "headers").mkdir()
        (folder / "headers" / "MahjongGB").symlink_to(algorithm)
        return compiled(root / "judge" / "main.cpp", folder, "-std=c++17")
    judges = real_servers.source_of("BOTHOST_BOTZONE_LOCAL") / "botzone" / "online" / "game"
    if name == "Reversi":
        return compiled(judges / "Reversi.cpp", folder)
    return [sys.executable, str(next(judges.glob(f"{name}.py*")))]


class Staying:
    """A seat that is a process of ``bothost play``, for the whole match."""

    def __init__(self, strategy, game):
        command = [sys.executable, "-m", "bothost", "play", strategy, "--stdio", "--dialect", "botzone", "--game", game]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([*command, "--move-ms", "1000"], stdin=pipe, stdout=pipe, text=True)
        self._first = True

    def answer(self, requests, responses):
        whole = {"requests": requests, "responses": responses}
        self._process.stdin.write(json.dumps(whole if self._first else requests[-1]) + "\n")
        self._process.stdin.flush()
        self._first = False
        line = self._process.stdout.readline()
        assert self._process.stdout.readline().strip() == KEEP_RUNNING
        return json.loads(line)["response"]

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(20) == 0


class Anew:
    """A seat whose program starts anew for every turn."""

    plugins = None

    def __init__(self, strategy, game, process):
        self._strategy, self._game, self._process = strategy, game, process
        Anew.plugins = Anew.plugins or Plugins.load()

    def answer(self, requests, responses):
        line = json.dumps({"requests": requests, "responses": responses}) + "\n"
        if self._process:
            options = ["--stdio", "--dialect", "botzone", "--game", self._game, "--one-shot"]
            command = [sys.executable, "-m", "bothost", "play", self._strategy, *options]
            out = subprocess.run(command, input=line, stdout=subprocess.PIPE, text=True, check=True).stdout
        else:
            made = self.plugins.strategies[self._strategy]
            found = io.StringIO()
            serve(
                made(made.Options(), None),
                io.StringIO(line),
                found,
                game=self._game,
                move_ms=1000.0,
                keep_running=False,
            )
            out = found.getvalue()
        return json.loads(out)["response"]

    def close(self):
        pass


def play(judge, seats, seed):
    """One match. Returns the judge's last output, and the log."""
    log, initdata = [], {"seed": str(seed), "srand": seed}
    heard = [([], []) for _ in seats]
    while True:
        turn = json.dumps({"log": log, "initdata": initdata})
        done = subprocess.run(judge, input=turn + "\n", capture_output=True, text=True, check=True)
        output = json.loads(done.stdout)
        if output["command"] == "finish":
            return output, log
        initdata = output.get("initdata", initdata)
        log.append({"output": output, "verdict": "OK"})
        answers = {}
        for seat, request in output["content"].items():
            requests, responses = heard[int(seat)]
            requests.append(request)
            responses.append(seats[int(seat)].answer(requests, responses))
            answers[seat] = {"verdict": "OK", "response": responses[-1]}
        log.append(answers)


def refused(output):
    """What the judge says of a move that it refuses; None if it accepted all."""
    display = output.get("display") or {}
    if any(display.get("errored") or ()):
        return display["errored"]
    if display.get("action") not in (None, "HU", "HUANG"):
        return display
    return display.get("errorInfo") or display.get("err")


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("mode", ["keep-running", "one-shot"])
@pytest.mark.parametrize("game", PLAYERS)
def test_the_judge_accepts_every_move(game, mode, tmp_path):
    judge = judge_of(game, tmp_path)
    ends, turns, began = Counter(), 0, time.monotonic()
    for number in range(FIRST, MATCHES):
        names = list(PLAYERS[game])
        random.Random(number).shuffle(names)
        if mode == "keep-running":
            seats = [Staying(name, game) for name in names]
        else:
            seats = [Anew(name, game, number % PROCESSES_EVERY == 0 and seat == 0) for seat, name in enumerate(names)]
        output, log = play(judge, seats, number)
        for seat in seats:
            seat.close()
        assert refused(output) is None, (number, names, log[-3:], output)
        ends[str((output.get("display") or {}).get("action") or "finished")] += 1
        turns += sum(len(each) for each in log[1::2])
    seconds = time.monotonic() - began
    print(f"{game}, {mode}: {MATCHES - FIRST} matches, {turns} responses, none refused; {dict(ends)}; {seconds:.0f} s")
