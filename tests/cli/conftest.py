"""Commands in this process, in a folder of their own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bothost import cli


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, without a configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BOTHOST_CONFIG", raising=False)


@pytest.fixture
def run(elsewhere: None, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command: its words → exit code, output, errors."""

    def command(*argv: object) -> tuple[int, str, str]:
        code = cli.main([str(argument) for argument in argv])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return command


@pytest.fixture
def run_tests() -> Callable[..., str]:
    """Runs the tests of a scaffold as its author would: its folder, and more folders to import from → output.

    They need none of pytest's plugins, which take longer to import than such tests to run.
    """

    def command(folder: Path, *places: Path) -> str:
        path = os.pathsep.join([*map(str, places), *filter(None, sys.path)])
        environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)]
        done = subprocess.run(line, capture_output=True, text=True, env=environment, timeout=200, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return command
