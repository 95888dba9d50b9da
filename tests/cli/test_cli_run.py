"""run, demo, status and drain as an operator meets them: exit codes, one clear message, no traceback."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import msgspec
import pytest

from bothost import children, cli, config
from bothost.cli import init
from bothost.cli import run as run_command
from bothost.cli.demo import demo_settings, farewell
from bothost.cli.status import as_text, is_well
from bothost.errors import ConfigError, UsageError
from bothost.host.control import ask
from bothost.host.leases import Identity
from bothost.host.signals import TWICE_S
from bothost.store import schema

CONFIG = """
[host]
data_dir = "var"
drain_timeout_s = 5
[[lobby]]
name = "home"
adapter = "embedded"
url = "ws://127.0.0.1:{port}/ws"
allow_same_table = true
min_move_ms = 5
[[lobby.account]]
name = "ada"
[[lobby.account.wish]]
game = "othello"
[[lobby.account]]
name = "bob"
[[lobby.account.wish]]
game = "othello"
[[route]]
strategy = "{strategy}"
"""
TOKENS = {"BOTHOST_HOME_ADA_TOKEN": "planted-token-of-ada", "BOTHOST_HOME_BOB_TOKEN": "planted-token-of-bob"}


class Shell:
    def __init__(self, folder, stack):
        self.folder, self._stack = folder, stack
        self.env = {key: value for key, value in os.environ.items() if not key.startswith("BOTHOST")} | TOKENS

    def reserved_port(self):
        """A port that the system gives to nobody else. What reuses addresses may listen there."""
        reserved = self._stack.enter_context(socket.socket())
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        return reserved.getsockname()[1]

    def configure(self, strategy="random", **env):
        self.port = self.reserved_port()
        (self.folder / "config.toml").write_text(CONFIG.format(port=self.port, strategy=strategy))
        self.env |= env

    def make_database(self):
        schema.upgrade(config.load(self.folder / "config.toml").store)

    def hurry(self):
        """Writes the example configuration, without pauses for people to follow."""
        init.write(self.folder / "config.toml")
        text = (self.folder / "config.toml").read_text()
        assert "min_move_ms = 100" in text
        (self.folder / "config.toml").write_text(text.replace("min_move_ms = 100", "min_move_ms = 1"))

    def start(self, *args):
        line = [sys.executable, "-m", "bothost", *args]
        return subprocess.Popen(
            line, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *args):
        process = self.start(*args)
        out, err = process.communicate(timeout=250)
        assert "Traceback" not in err
        assert "planted-token" not in out + err
        return process.returncode, out, err


def until_it_answers(shell, process, found):
    """Waits until the host that runs in the folder ``var`` has what is looked for in its status."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        with contextlib.suppress(UsageError):  # it is not up yet
            if found(ask(shell.folder / "var", "status")):
                return
        time.sleep(0.05)
    raise TimeoutError


def until_served(port, process):
    """Waits until the pages beside this process answer."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://127.0.0.1:{port}/")
        time.sleep(0.05)
    raise TimeoutError


def status_at_a_table(shell):
    """What ``bothost status --json`` prints when the host has a table. Between two tables it has none."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        code, out, err = shell.run("status", "--json")
        assert code == 0, err
        if (status := json.loads(out))["tables"] >= 1:
            return status
    raise TimeoutError


@pytest.fixture
def shell(tmp_path):
    with contextlib.ExitStack() as stack:
        yield Shell(tmp_path, stack)


def test_a_demo_without_any_configuration_plays_until_ctrl_c_and_says_what_to_do_next(shell, monkeypatch):
    demo = shell.start("demo")
    until_it_answers(shell, demo, lambda status: status["decisions"])
    demo.send_signal(signal.SIGINT)
    out, err = demo.communicate(timeout=60)
    assert demo.returncode == 0, err
    assert "Try next" in out and "Traceback" not in err
    assert "draining" in (shell.folder / "var" / "demo.log").read_text() and "draining" not in err
    assert "decisions in" in out and "bothost games list" in out
    assert (shell.folder / "var" / "bothost.db").exists()
    monkeypatch.chdir(shell.folder)
    assert cli.main(["games", "list"]) == 0  # it wrote a configuration


def test_a_demo_counts_hands_and_tells_json(shell):
    shell.hurry()
    code, out, _err = shell.run("demo", "--hands", "3", "--game", "othello", "--json")
    status = json.loads(out)
    assert code == 0
    assert status["finished_hands"] >= 3 and status["decisions"] > 20
    assert status["log"]["queue"] == 0
    assert status["fallbacks"] == {}


def test_a_demo_shows_any_game_with_robots_in_the_empty_seats(shell):
    """Two accounts play a game for three."""
    shell.configure()
    code, out, _err = shell.run("demo", "--game", "doudizhu", "--hands", "1", "--json")
    status = json.loads(out)
    assert code == 0
    assert [score["game"] for score in status["scores"]] == ["doudizhu"]


def test_a_demo_plays_the_game_of_a_plugin_and_counts_each_finished_hand_once(shell):
    """Both seats of every hand are ours."""
    shell.configure()
    (shell.folder / "plugins.d").mkdir()
    plugin = shell.folder / "plugins.d" / "heaps.py"
    plugin.write_text(
        "from bothost import hookimpl\nfrom bothost.testing.nim import make_nim\n\n"
        "@hookimpl\ndef bothost_games():\n    yield 'nim', make_nim\n"
    )
    code, out, err = shell.run("demo", "--game", "nim", "--hands", "4", "--no-web", "--json")
    assert code == 0, err
    status = json.loads(out)
    (score,) = status["scores"]
    assert score["game"] == "nim" and status["finished_hands"] >= 4 and score["hands"] == 2 * status["finished_hands"]


@pytest.mark.parametrize(
    "plugin", ["", "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"]
)
def test_a_host_plays_on_when_nobody_reads_its_stderr_any_more(shell, plugin):
    """As in ``bothost run 2>&1 | tee`` when tee is killed, or when the terminal is gone. ``plugin``: one that hangs."""
    shell.configure()
    shell.make_database()
    (shell.folder / "plugins.d").mkdir()
    (shell.folder / "plugins.d" / "hangs.py").write_text(plugin)
    shell.env.pop("PYTHONUNBUFFERED", None)
    host = shell.start("run")
    try:
        until_it_answers(shell, host, lambda status: status["accounts"])
        host.stderr.close()
        tried = ask(shell.folder / "var", "status")["accounts"][0]["reconnects"]
        until_it_answers(shell, host, lambda status: status["accounts"][0]["reconnects"] > tried)  # each logs a line
        host.send_signal(signal.SIGTERM)
        assert host.wait(60) == 0
    finally:
        host.kill()
        host.stdout.close()


def test_a_demo_without_a_finished_hand_says_so():
    text = farewell(config.Settings(), {"decisions": 7, "finished_hands": 0, "fallbacks": {}, "scores": []})
    assert "7 decisions in 0 finished hands" in text and "no hand was finished" in text and "GAME" not in text
    assert "Try next" in text and "bothost retrain" not in text, "phase-ppo decided in no hand"
    assert cli.main(["demo", "--hands", "0"]) == cli.main(["demo", "--seconds", "-1"]) == 2


def test_a_demo_gives_accounts_with_one_token_a_token_each(tmp_path):
    (tmp_path / "config.toml").write_text(CONFIG.format(port=9, strategy="random"))
    env = {"BOTHOST_HOME_TOKEN": "planted-shared"}
    settings = demo_settings(config.load(tmp_path / "config.toml", env))
    ada, bob = (account.token.reveal() for account in settings.lobbies[0].accounts)
    assert len({ada, bob, "planted-shared"}) == 3
    settings = demo_settings(config.load(tmp_path / "config.toml", env | {"BOTHOST_HOME_ADA_TOKEN": "planted-ada"}))
    assert settings.lobbies[0].accounts[0].token.reveal() == "planted-ada"


def test_a_demo_plays_at_no_lobby_of_others(tmp_path):
    real = '[[lobby]]\nname = "real"\nadapter = "botzone"\nurl = "https://lobby.example/"\n'
    real += '[[lobby.account]]\nname = "me"\n[[route]]\nlobby = "real"\nstrategy = "deep-mc"\n'
    both = config.parse(CONFIG.format(port=9, strategy="random") + real, base=tmp_path)
    settings = demo_settings(both)
    assert [lobby.name for lobby in settings.lobbies] == ["home"]
    assert "deep-mc" not in [route.strategy for route in settings.routes]
    with pytest.raises(ConfigError, match="no account plays at a lobby of the adapter embedded"):
        demo_settings(config.parse(real, base=tmp_path))


def test_a_demo_of_an_unknown_game_names_the_nearest(shell, monkeypatch, capsys):
    shell.configure()
    monkeypatch.chdir(shell.folder)
    assert cli.main(["demo", "--game", "majong"]) == 2
    assert "mahjong" in capsys.readouterr().err


def test_robots_fill_a_demo_only_where_our_accounts_do_not():
    file = Path(__file__).parents[2] / "config.toml"
    settings = config.load(file)
    for game in ("doudizhu", "mahjong", "pairing", "othello", "claims"):
        assert demo_settings(settings, (game,)).lobby_server.robots_after_s is None
    few = msgspec.structs.replace(settings.lobbies[0], accounts=settings.lobbies[0].accounts[:2])
    few_settings = msgspec.structs.replace(settings, lobbies=(few,))
    assert demo_settings(few_settings, ("doudizhu",)).lobby_server.robots_after_s
    alone = msgspec.structs.replace(settings.lobbies[0], allow_same_table=False)
    apart = msgspec.structs.replace(settings, lobbies=(alone,))
    assert demo_settings(apart, ("pairing",)).lobby_server.robots_after_s


def test_a_host_plays_is_asked_for_its_status_killed_replaced_by_its_standby_and_drained(shell):
    shell.configure()
    shell.env["BOTHOST_LOBBY_TOKENS"] = "ada:planted-token-of-ada,bob:planted-token-of-bob"
    shell.make_database()
    lobby = shell.start("lobby", "serve", "--port", str(shell.port))
    host = shell.start("run")
    standby: subprocess.Popen[str] | None = None
    try:
        until_it_answers(shell, host, lambda status: status["decisions"])
        standby = shell.start("run", "--standby")
        status = status_at_a_table(shell)
        assert status["decisions"] > 0
        assert {account["account"] for account in status["accounts"]} == {"ada", "bob"}
        code, out, _err = shell.run("status")
        assert code == 0 and "home/ada" in out and "connected" in out
        assert "is paused" in shell.run("account", "pause", "home/ada")[1]
        assert "home/ada" in shell.run("account", "pause", "home/adda")[2]
        assert "paused" in shell.run("status")[1]
        assert shell.run("account", "resume", "home/ada")[0] == 0
        assert "quarantine" in shell.run("plugin", "release", "random")[2]
        assert standby.poll() is None, "it waits"
        host.kill()
        until_it_answers(shell, standby, lambda status: status["decisions"])
        assert shell.run("drain")[0] == 0
        _out, err = standby.communicate(timeout=90)
        assert standby.returncode == 0, err
        assert "planted-token" not in err
    finally:
        for process in (host, standby, lobby):
            if process is not None:
                process.kill()
                process.communicate()


def test_the_second_ctrl_c_quits_with_the_exit_code_of_ctrl_c(shell):
    shell.configure()
    file = shell.folder / "config.toml"
    text = file.read_text().replace("min_move_ms = 5", "min_move_ms = 1000")
    file.write_text(text.replace("drain_timeout_s = 5", "drain_timeout_s = 90"))
    shell.env["BOTHOST_LOBBY_TOKENS"] = "ada:planted-token-of-ada,bob:planted-token-of-bob"
    shell.make_database()
    lobby = shell.start("lobby", "serve", "--port", str(shell.port))
    host = shell.start("run")
    try:
        until_it_answers(shell, host, lambda status: status["tables"] and status["decisions"])
        host.send_signal(signal.SIGINT)
        until_it_answers(shell, host, lambda status: status["draining"])
        time.sleep(2 * TWICE_S)
        host.send_signal(signal.SIGINT)
        _out, err = host.communicate(timeout=90)
        assert host.returncode == 130, err
        (line,) = [line for line in err.splitlines() if " quit " in line]
        assert "tables=1" in line and "the next start resumes them" in line
    finally:
        for process in (host, lobby):
            process.kill()
            process.communicate()


def test_pages_beside_a_host_come_back_when_their_process_is_killed_and_end_with_it(shell):
    shell.configure()
    port = shell.reserved_port()
    with (shell.folder / "config.toml").open("a") as file:
        file.write(f"[web]\nenabled = true\nport = {port}\n")
    shell.make_database()
    host = shell.start("run")
    try:
        until_served(port, host)
        (pages,) = children.descendants(host.pid)
        os.kill(pages, signal.SIGKILL)
        until_served(port, host)
        assert pages not in children.descendants(host.pid)
        host.terminate()
        _out, err = host.communicate(timeout=90)
        assert host.returncode == 0 and "web_crashed" in err and "code=-9" in err
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{port}/")
    finally:
        host.kill()
        host.communicate()


def test_a_standby_finds_wrong_settings_before_it_waits(shell):
    shell.configure(strategy="randon")
    shell.make_database()
    playing = Identity.of(shell.folder / "var", "host")
    code, _out, err = shell.run("run", "--standby")
    playing.close()
    assert code == 78 and "randon" in err


def test_a_standby_with_several_processes_is_refused(shell):
    shell.configure()
    code, _out, err = shell.run("run", "--standby", "--workers", "2")
    assert code == 2 and "--workers" in err


def test_a_reload_that_comes_before_the_host_listens_does_not_end_it(tmp_path, monkeypatch):
    before = signal.getsignal(signal.SIGHUP)
    monkeypatch.setattr(run_command.config, "find", lambda file: os.kill(os.getpid(), signal.SIGHUP) or file)
    try:
        assert cli.main(["run", "--config", str(tmp_path / "nowhere.toml")]) == 78
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("text", ["", '[[lobby]]\nname = "home"\nadapter = "embedded"\nurl = "ws://127.0.0.1:1/ws"\n'])
def test_a_host_without_an_account_says_so(tmp_path, capsys, text):
    (tmp_path / "config.toml").write_text(text)
    assert cli.main(["run", "--config", str(tmp_path / "config.toml")]) == 78
    assert "no account" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["run", "run --workers 2", "web"])
def test_a_process_with_secrets_is_hidden_from_others_before_it_reads_them(tmp_path, monkeypatch, words):
    hidden = []
    monkeypatch.setattr(children, "hide", lambda: hidden.append(words))
    assert cli.main([*words.split(), "--config", str(tmp_path / "nowhere.toml")]) == 78
    assert hidden


def test_the_check_of_a_status_fails_where_health_does():
    well, ill = {"health": []}, {"health": ["no account is connected"]}
    assert is_well(well) and not is_well(ill)
    assert is_well({"workers": [{"status": well}, {"status": well}]})
    assert not is_well({"workers": [{"status": well}, {"status": ill}]})
    assert not is_well({"workers": [{"status": well}, {"status": None}]})


def test_a_status_counts_seats_and_calls_them_so():
    """Three accounts that played two hands together are six seats; ``games list`` has two lines for them."""
    model = {"strategy": "random", "version": "1", "model_sha256": None, "routes": [0], "hands": 3}
    score = {"game": "doudizhu", "strategy": "random", "version": "1", "hands": 6, "mean_score": 0.0}
    status = {
        "host": "h", "draining": False, "uptime_s": 1.0, "tables": 3, "decisions": 90, "hands": 6, "aborted": 0,
        "fallbacks": {}, "log": {"rows": 0, "queue": 0, "spool": 0}, "health": [], "rss_bytes": None, "stages": {},
        "registry": None, "accounts": [], "models": [model], "scores": [score], "strategies": [],
    }  # fmt: skip
    lines = [" ".join(line.split()) for line in as_text(status).splitlines()]
    assert {"seats played 6 (0 aborted)", "doudizhu random 1 6 seats mean score +0.000"} <= set(lines)
    assert any(line.endswith("route[0] at 3 seats") for line in lines)


@pytest.mark.parametrize("command", ["status", "status --check", "drain"])
def test_without_a_host_status_says_how_to_start_one(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    assert cli.main(command.split()) == 1
    assert "bothost run" in capsys.readouterr().err


def test_a_database_without_schema_is_refused_with_the_command_that_mends_it(shell):
    shell.configure()
    code, _out, err = shell.run("run")
    assert code in (75, 78)
    assert "bothost db upgrade" in err


def test_a_strategy_that_is_not_there_is_told_before_anything_starts(shell):
    shell.configure(strategy="randon")
    shell.make_database()
    code, _out, err = shell.run("run")
    assert code == 78
    assert "randon" in err and "random" in err


@pytest.mark.parametrize("more", [(), ("--workers", "2")])
def test_an_unreachable_lobby_with_fail_fast_is_75(shell, more):
    shell.configure()
    shell.make_database()
    code, _out, err = shell.run("run", "--fail-fast", *more)
    assert code == 75
    assert f"127.0.0.1:{shell.port}" in err


def test_a_refused_token_is_77(shell):
    shell.configure()
    shell.env["BOTHOST_LOBBY_TOKENS"] = "ada:something-else,bob:also-something-else"
    shell.make_database()
    lobby = shell.start("lobby", "serve", "--port", str(shell.port))
    try:
        code, _out, err = shell.run("run")
        assert code == 77
        assert "home/ada" in err
    finally:
        lobby.kill()
        lobby.communicate()


def test_a_demo_takes_free_ports_where_its_own_are_taken(shell):
    shell.hurry()
    with socket.socket() as lobby, socket.socket() as web:
        for taken, port in ((lobby, 8765), (web, 8770)):
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            path = shell.folder / "config.toml"
            path.write_text(path.read_text().replace(f"port = {port}", f"port = {taken.getsockname()[1]}"))
        web_port = web.getsockname()[1]
        code, out, _err = shell.run("demo", "--hands", "1", "--game", "pairing", "--json")
    status = json.loads(out)
    assert code == 0 and status["decisions"] > 0
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", status["web"]) and f":{web_port}/" not in status["web"]


def test_a_demo_scores_each_strategy_and_level_by_its_game(shell):
    shell.hurry()
    code, out, _err = shell.run("demo", "--hands", "8", "--game", "pairing", "--no-web")
    assert code == 0
    assert re.search(r"^pairing +phase-ppo:level-[13] +\d+ +[+-]\d+\.\d\d", out, flags=re.M)
    assert "GAME" in out and "95 % INTERVAL" in out and "bothost retrain phase-ppo" in out


def test_a_game_that_no_account_wishes_is_played_on_the_routes_of_all(shell):
    shell.configure()
    code, out, _err = shell.run("demo", "--hands", "1", "--game", "pairing", "--no-web", "--json")
    assert code == 0
    assert {score["game"] for score in json.loads(out)["scores"]} == {"pairing"}
