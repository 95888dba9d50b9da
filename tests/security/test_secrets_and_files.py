"""Secrets stay out of what is printed, and files out of the reach of other users."""

import asyncio
import contextlib
import gzip
import json
import os
import resource
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from bothost import cli
from bothost.config import load
from bothost.errors import BothostError, ConfigError, UsageError
from bothost.host.control import socket_path
from bothost.lobbies.base import Account, LobbyAdapter, NoOptions
from bothost.logs import Redactor
from bothost.messages import Authenticate, HttpRequest, HttpResult
from bothost.testing.adapter_driver import AdapterDriver

LOBBY = '[[lobby]]\nname = "home"\nadapter = "embedded"\nurl = "{url}"\n[[lobby.account]]\nname = "ada"\n'


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (LOBBY.format(url="ws://ada:planted@localhost:1/ws"), "lobby[0].url"),
        (LOBBY.format(url="ws://localhost:1/ws?room=1&access_token=planted"), "lobby[0].url"),
        (LOBBY.format(url="ws://planted@localhost:1/ws"), "lobby[0].url"),
        (LOBBY.format(url="ws://localhost:1/ws?room=1;token=planted"), "lobby[0].url"),
        (LOBBY.format(url="ws://localhost:1/ws#token=planted"), "lobby[0].url"),
        (LOBBY.format(url="ws://ada:planted@[localhost:1/ws"), "lobby[0].url"),
        (
            LOBBY.format(url="ws://localhost:1/ws") + '[lobby.options]\nchat = { urls = ["http://ada:planted@h/"] }\n',
            "lobby[0].options.chat.urls[0]",
        ),
        ('[[route]]\nstrategy = "llm-player"\noptions = { url = "h://h?auth=planted" }\n', "route[0].options.url"),
        ('[store]\nurl = "postgresql+psycopg://ada:planted@localhost/x"\n', "store.url"),
        ('[store]\nurl = "postgresql+psycopg://localhost/x?password=planted"\n', "store.url"),
    ],
)
def test_a_url_with_a_secret_is_refused_and_not_printed(tmp_path, text, key, capsys):
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(file)
    assert refused.value.key == key and "planted" not in str(refused.value) + refused.value.advice
    for words in (["config", "show"], ["doctor"], ["config", "lint"]):
        assert cli.main([*words, "--config", str(file)]) == 78
        printed = capsys.readouterr()
        assert "planted" not in printed.out + printed.err


def test_a_url_without_a_secret_is_not_refused(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(
        LOBBY.format(url="ws://localhost:1/ws?room=1&lang=en") + '[lobby.options]\nchat_url = "http://h/?room=1"\n'
    )
    assert load(file).lobbies[0].url.endswith("lang=en")


def test_files_are_for_this_user_alone(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('[store]\nurl = "sqlite:///var/b.db"\n')
    previous = os.umask(0o022)
    try:
        assert cli.main(["db", "upgrade", "--config", str(config)]) == 0
        hands = ["games", "generate", "claims", "--hands", "2", "--seed", "1", "--player", "ada=random"]
        cli.main([*hands, "--player", "bob=random", "--config", str(config)])
        cli.main(["export", "--out", str(tmp_path / "exports"), "--config", str(config)])
        after = os.umask(0o022)
    finally:
        os.umask(previous)
    assert after == 0o022, "the command line leaves the mask as it was"
    made = [path for folder in ("var", "exports") for path in (tmp_path / folder).rglob("*")]
    assert any(path.suffix == ".db" for path in made)
    assert [path for path in (tmp_path / "var", *made) if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_names_of_accounts_are_no_secrets():
    redact = Redactor.from_environment(
        {"BOTHOST_LOBBY_TOKENS": "mallory:tok-planted,ada:tok-other", "BOTHOST_X_PASSWORD": "a:secret"}
    )
    assert redact("mallory sent tok-planted and tok-other") == "mallory sent [redacted] and [redacted]"
    assert redact("it said a:secret") == "it said [redacted]"


def test_escape_sequences_of_a_lobby_do_not_reach_the_terminal(capsys, monkeypatch):
    def refuse(*_args, **_more):
        raise BothostError("the lobby says \x1b]0;planted\x07\x1b[2J", advice="see \x1b[31m")

    monkeypatch.setattr("bothost.cli.lobby.options.plugins", refuse)
    assert cli.main(["lobby", "list"]) != 0
    printed = capsys.readouterr().err
    assert "\x1b" not in printed and "\x07" not in printed and "\\x1b]0;planted" in printed


def test_a_long_data_dir_has_its_control_socket_in_a_private_folder(tmp_path, monkeypatch):
    short = Path(tempfile.mkdtemp(dir="/tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    place = socket_path(tmp_path / ("x" * 200))
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700 and place.parent.parent == short


@pytest.mark.parametrize("trap", ["link", "open", "file"])
def test_a_folder_that_another_user_could_have_made_is_refused(tmp_path, monkeypatch, trap):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"bothost-{os.getuid()}"
    if trap == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    elif trap == "open":
        folder.mkdir()
        folder.chmod(0o777)
    else:
        folder.write_text("")
    with pytest.raises(UsageError, match="not a private folder"):
        socket_path(tmp_path / ("x" * 200))


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
async def test_a_check_of_a_lobby_stops_reading_an_endless_answer(encoding):
    """64 MB of zeros are 64 kB of gzip."""
    part = gzip.compress(bytes(64 << 20), 9) if encoding == "gzip" else bytes(64 << 10)
    answered: asyncio.Future[HttpResult] = asyncio.get_running_loop().create_future()

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            while not answered.done():
                writer.write(part)
                await writer.drain()
        writer.close()

    class Asks(LobbyAdapter):
        name = "asks"

        def feed(self, item):
            if isinstance(item, HttpResult):
                answered.set_result(item)
                return []
            return [HttpRequest(1, "GET", self.account.url)]

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with server, AdapterDriver(Asks(Account(name="ada", url=url), NoOptions())) as driver:
        driver.do(Authenticate())
        answer = await asyncio.wait_for(answered, 20)
    assert (answer.status, answer.body) == (0, b"DecodingError")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10, "kilobytes"


@pytest.mark.parametrize("day", ["01", "99999999999999999999"])
def test_the_doctor_reads_no_endless_answer_and_doubts_the_date(tmp_path, day):
    file = tmp_path / "config.toml"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        file.write_text(LOBBY.format(url=f"ws://127.0.0.1:{listening.getsockname()[1]}/"))

        def serve():
            with contextlib.suppress(OSError), listening.accept()[0] as client:
                client.sendall(f"HTTP/1.1 200 OK\r\nDate: Mon, {day} Jan 2024 00:00:00 GMT\r\n\r\n".encode())
                while True:
                    client.sendall(bytes(1 << 20))

        threading.Thread(target=serve, daemon=True).start()
        command = [sys.executable, "-m", "bothost", "doctor", "--json", "--config", file]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert checks["lobby home"]["status"] == "ok" and ("home" in checks["clock"]["detail"]) == (day == "01")
