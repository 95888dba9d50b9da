"""``bothost lobby``, run as a user runs it."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from bothost import children, cli
from bothost.cli.lobby import try_lobby
from bothost.config import StoreSettings
from bothost.store import Store
from bothost.store.leases import Leases
from bothost.testing.fake_othello_platform import FakeOthelloPlatform
from bothost.testing.small_lobby import fake as small_lobby

TOKENS = "ada:planted-secret-1,bob:planted-secret-2"


def bothost_apart(*args, env=None, cwd=None):
    """The command in a process of its own."""
    command = [sys.executable, "-m", "bothost", *args]
    return subprocess.run(command, env=environment(env), cwd=cwd, capture_output=True, text=True, timeout=120)


def environment(env=None):
    return {key: value for key, value in os.environ.items() if not key.startswith("BOTHOST")} | (env or {})


@pytest.fixture
def bothost(monkeypatch, capsys):
    """The command in this process, which is much sooner done."""

    def run(*args, env=None, cwd):
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("BOTHOST")]:
                patch.delenv(name)
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            patch.chdir(cwd)
            code = cli.main(args)
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess(args, code, out, err)

    return run


@pytest.fixture(scope="module")
def lobby(tmp_path_factory):
    """A lobby that `bothost lobby serve` runs: its announcement."""
    command = [sys.executable, "-m", "bothost", "lobby", "serve", "--port", "0", "--json"]
    env = environment({"BOTHOST_LOBBY_TOKENS": TOKENS, "PYTHONUNBUFFERED": "1"})
    running = subprocess.Popen(
        command,
        env=env,
        cwd=tmp_path_factory.mktemp("lobby"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = []
    while (line := running.stdout.readline()) and line.rstrip() != "}":
        lines.append(line)
    assert line, running.communicate()[1]
    yield json.loads("".join(lines) + "}")
    running.send_signal(signal.SIGTERM)
    output, errors = running.communicate(timeout=90)
    assert running.returncode == 0, errors
    assert "planted-secret" not in output + errors
    assert "Traceback" not in errors


def test_serve_then_check(lobby, tmp_path, bothost):
    assert lobby["accounts"] == ["ada", "bob"]
    assert "doudizhu" in lobby["games"]
    env = {"BOTHOST_EMBEDDED_TOKEN": "planted-secret-1"}
    checked = bothost("lobby", "check", "embedded", "--url", lobby["url"], "--json", env=env, cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    report = json.loads(checked.stdout)
    assert report["player"] == "ada"
    assert all(report[step] is True for step in ("connect", "log in", "list tables", "ping"))
    env = {"BOTHOST_EMBEDDED_TOKEN": "planted-secret-9"}
    refused = bothost("lobby", "check", "embedded", "--url", lobby["url"], env=env, cwd=tmp_path)
    assert refused.returncode == 77
    assert "refuses the credentials" in refused.stderr
    assert "planted-secret" not in refused.stderr


def test_a_configured_lobby_is_checked_by_its_name(lobby, tmp_path, bothost):
    (tmp_path / "config.toml").write_text(
        f'[[lobby]]\nname = "home"\nadapter = "embedded"\nurl = "{lobby["url"]}"\n[[lobby.account]]\nname = "bob"\n'
    )
    checked = bothost("lobby", "check", "home", env={"BOTHOST_HOME_TOKEN": "planted-secret-2"}, cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "player: bob" in checked.stdout


def test_a_check_names_the_client_as_the_host_does(tmp_path, bothost):
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up():
            with server.accept()[0] as client:
                asked.append(client.recv(4096))

        listening = threading.Thread(target=hang_up)
        listening.start()
        (tmp_path / "config.toml").write_text(
            f'[[lobby]]\nname = "home"\nadapter = "open_mahjong"\nurl = "ws://127.0.0.1:{server.getsockname()[1]}"\n'
            'user_agent = "our-bots (ada@example.org)"\n[[lobby.account]]\nname = "bob"\n'
        )
        assert bothost("lobby", "check", "home", env={"BOTHOST_HOME_TOKEN": "x"}, cwd=tmp_path).returncode == 75
        listening.join()
    assert b"our-bots (ada@example.org)" in asked[0]


def test_a_misspelt_option_is_named_with_the_nearest_one(tmp_path, bothost):
    (tmp_path / "config.toml").write_text(
        '[[lobby]]\nname = "home"\nadapter = "embedded"\nurl = "ws://127.0.0.1:1/ws"\n'
        '[lobby.options]\nhello_timeout = 3\n[[lobby.account]]\nname = "bob"\n'
    )
    refused = bothost("lobby", "check", "home", env={"BOTHOST_HOME_TOKEN": "x"}, cwd=tmp_path)
    assert refused.returncode == 78
    assert "options.hello_timeout" in refused.stderr and "hello_timeout_s" in refused.stderr


def test_list_tells_every_adapter(tmp_path, bothost):
    listed = bothost("lobby", "list", "--json", cwd=tmp_path)
    (embedded,) = [a for a in json.loads(listed.stdout) if a["name"] == "embedded"]
    assert embedded["acks_moves"] is True
    assert "embedded" in bothost("lobby", "list", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("args", "env", "code", "said"),
    [
        (("serve",), {}, 78, "BOTHOST_LOBBY_TOKENS"),
        (("serve",), {"BOTHOST_LOBBY_TOKENS": "planted-secret"}, 78, "name:token"),
        (("serve", "--port", "99999"), {"BOTHOST_LOBBY_TOKENS": TOKENS}, 2, "65535"),
        (("serve", "--host", "203.0.113.7"), {"BOTHOST_LOBBY_TOKENS": TOKENS}, 78, "name an address of this machine"),
        (("check", "embeded", "--url", "ws://127.0.0.1:1/ws"), {}, 2, "embedded"),
        (("check", "embedded"), {}, 2, "--url"),
        (("check", "embedded", "--url", "ws://127.0.0.1:1/ws"), {}, 78, "BOTHOST_EMBEDDED_CHECK_TOKEN"),
        (("check", "embedded", "--url", "ws://127.0.0.1:1/ws"), {"BOTHOST_EMBEDDED_TOKEN": "x"}, 75, "reached"),
        (("check", "embedded", "--url", "gopher://x"), {"BOTHOST_EMBEDDED_TOKEN": "x"}, 75, "gopher"),
    ],
)
def test_errors_are_one_message_with_a_fix(args, env, code, said, tmp_path, bothost):
    run = bothost_apart if args[0] == "serve" else bothost
    failed = run("lobby", *args, env=env, cwd=tmp_path)
    assert failed.returncode == code, failed.stderr
    assert said in failed.stderr
    assert "fix:" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert "planted-secret" not in failed.stderr


def test_the_tokens_of_all_accounts_are_hidden_from_the_bots_of_this_user(tmp_path, monkeypatch):
    """They could read them in its environment, and take the seats of others."""
    hidden = []
    monkeypatch.setattr(children, "hide", lambda: hidden.append("hidden"))
    monkeypatch.delenv("BOTHOST_LOBBY_TOKENS", raising=False)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["lobby", "serve"]) == 78 and hidden == ["hidden"]


def test_a_taken_port_is_named(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        failed = bothost_apart("lobby", "serve", "--port", port, env={"BOTHOST_LOBBY_TOKENS": TOKENS}, cwd=tmp_path)
    assert failed.returncode == 78
    assert f"127.0.0.1:{port}" in failed.stderr


def test_check_takes_the_account_s_own_variable(lobby, tmp_path, bothost):
    env = {"BOTHOST_EMBEDDED_BOB_TOKEN": "planted-secret-2", "BOTHOST_EMBEDDED_TOKEN": "planted-secret-9"}
    args = ("lobby", "check", "embedded", "--url", lobby["url"], "--account", "bob", "--json")
    checked = bothost(*args, env=env, cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["player"] == "bob"
    assert "is disconnected" in checked.stderr, "one connection per account: say so"


async def test_check_does_not_wait_for_what_the_adapter_cannot_do():
    async with small_lobby.FakeSmallLobby() as lobby:
        adapter = small_lobby.SmallLobby(small_lobby.accounts(lobby)[0], None)
        report = await try_lobby(adapter, 60.0)
    assert report["log in"] is True and report["list tables"] == report["ping"] == "the adapter does not do this"


async def test_check_uses_the_password_and_registers_nobody(tmp_path, bothost):
    async with FakeOthelloPlatform() as lobby:
        lobby.add("ada", "planted-secret-1")
        (tmp_path / "config.toml").write_text(
            f'[[lobby]]\nname = "oth"\nadapter = "othello_platform"\nurl = "{lobby.url}"\n'
            '[lobby.options]\nregister = true\n[[lobby.account]]\nname = "new"\n'
        )
        direct = ("othello_platform", "--url", lobby.url, "--account", "ada")
        env = {"BOTHOST_OTHELLO_PLATFORM_ADA_PASSWORD": "planted-secret-1"}
        checked = await asyncio.to_thread(bothost, "lobby", "check", *direct, env=env, cwd=tmp_path)
        assert checked.returncode == 0, checked.stderr
        env = {"BOTHOST_OTH_NEW_PASSWORD": "planted-secret-2"}
        refused = await asyncio.to_thread(bothost, "lobby", "check", "oth", env=env, cwd=tmp_path)
        assert refused.returncode == 77, refused.stderr
        assert "if the account is new, bothost run registers it" in refused.stderr
    assert set(lobby.accounts.passwords) == {"ada"}
    assert "planted-secret" not in checked.stdout + checked.stderr + refused.stderr


def test_check_does_not_disconnect_a_running_host(lobby, tmp_path, bothost):
    (tmp_path / "config.toml").write_text(
        f'[[lobby]]\nname = "home"\nadapter = "embedded"\nurl = "{lobby["url"]}"\n[[lobby.account]]\nname = "bob"\n'
        f'[store]\nurl = "sqlite:///{tmp_path}/bothost.db"\n'
    )
    assert bothost("db", "upgrade", cwd=tmp_path).returncode == 0
    with Store.open(StoreSettings(url=f"sqlite:///{tmp_path}/bothost.db")) as store:
        Leases(store, "host-7", 60.0).round((), [("home", "bob")], take_over=False)
    env = {"BOTHOST_HOME_TOKEN": "planted-secret-2"}
    refused = bothost("lobby", "check", "home", env=env, cwd=tmp_path)
    assert refused.returncode == 2 and "host-7 uses account 'bob'" in refused.stderr
    assert bothost("lobby", "check", "home", "--kick", env=env, cwd=tmp_path).returncode == 0
