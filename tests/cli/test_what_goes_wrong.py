"""What an operator meets on a bad day: one clear message with the fix, the right exit code, no traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bothost import cli

SECRETS = {"BOTHOST_HOME_TOKEN": "planted-right", "BOTHOST_LOBBY_TOKENS": "bot:planted-right"}


def bothost(*argv: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("BOTHOST_")}
    command = [sys.executable, "-m", "bothost", *argv]
    done = subprocess.run(
        command, cwd=cwd, env={**clean, **env}, capture_output=True, text=True, timeout=100, check=False
    )
    assert "Traceback" not in done.stdout + done.stderr
    assert "planted" not in done.stdout + done.stderr
    return done


@pytest.fixture
def port() -> Iterator[int]:
    """A port that something else listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BOTHOST_CONFIG", raising=False)
    assert cli.main(["init"]) == 0
    return tmp_path


def change(folder: Path, old: str, new: str) -> None:
    file = folder / "config.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


def expect(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    assert "error: " in done.stderr and "fix: " in done.stderr
    for word in words:
        assert word in done.stderr


def test_no_configuration(tmp_path: Path) -> None:
    expect(bothost("run", cwd=tmp_path), 78, "config.toml", "bothost init")


def test_a_configuration_that_nobody_may_read(folder: Path) -> None:
    (folder / "config.toml").unlink()
    (folder / "config.toml").mkdir()
    expect(bothost("run", cwd=folder), 78, "is not a file")


def test_no_database_then_no_token_then_no_lobby(folder: Path) -> None:
    change(folder, "127.0.0.1:8765", "127.0.0.1:9")
    expect(bothost("run", cwd=folder), 75, "no database", "bothost db upgrade")
    assert cli.main(["db", "upgrade"]) == 0
    expect(bothost("run", cwd=folder), 78, "BOTHOST_HOME_DOUDIZHU_MCTS_TOKEN")
    expect(bothost("run", "--fail-fast", cwd=folder, **SECRETS), 75, "home", "ws://127.0.0.1:9/ws")


def test_a_strategy_that_is_not_there(folder: Path) -> None:
    assert cli.main(["db", "upgrade"]) == 0
    change(folder, 'strategy = "random"', 'strategy = "randm"')
    change(folder, 'strategy = "deep-mc"', 'strategy = "exec:nonesuch"')
    lines = (folder / "config.toml").read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if '"exec:nonesuch"' in line)
    expected = f"config.toml:{number}: route[1].strategy: exec:nonesuch: there is no program", "did you mean 'random'?"
    expect(bothost("run", cwd=folder, **SECRETS), 78, *expected)


def test_a_port_in_use(folder: Path, port: int) -> None:
    done = bothost("lobby", "serve", "--port", str(port), cwd=folder, **SECRETS)
    expect(done, 78, str(port), "in use")


def test_a_token_file_that_is_not_there(folder: Path) -> None:
    assert cli.main(["db", "upgrade"]) == 0
    change(folder, "tables = 2", 'token = { file = "bot.token" }')
    expect(bothost("run", cwd=folder), 78, "bot.token", "No such file")
