"""Commands in this process, in a folder of their own."""

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
