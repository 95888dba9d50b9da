"""``bothost db``: upgrade, status, backup, restore, as a person types them."""

import json
from pathlib import Path

import pytest

from bothost.cli import main
from bothost.store.schema import REVISIONS


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    path.write_text('[store]\nurl = "sqlite:///var/log.db"\n')
    monkeypatch.setenv("BOTHOST_CONFIG", str(path))
    return path


def test_a_database_is_made_inspected_copied_and_brought_back(config, capsys, tmp_path):
    assert main(["db", "upgrade"]) == 0
    assert f"none → {REVISIONS[-1]}" in capsys.readouterr().out
    assert main(["db", "upgrade", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["before"] == REVISIONS[-1]
    assert main(["db", "status", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["decisions"], found["games"]) == (REVISIONS[-1], 0, 0)
    assert main(["db", "status"]) == 0
    assert "decisions" in capsys.readouterr().out
    assert main(["db", "backup", str(tmp_path / "copy.db")]) == 0
    (tmp_path / "var" / "log.db").unlink()
    for end in ("-wal", "-shm"):
        (tmp_path / "var" / f"log.db{end}").unlink(missing_ok=True)
    assert main(["db", "restore", str(tmp_path / "copy.db")]) == 0
    assert main(["db", "status"]) == 0


def test_without_a_database_the_way_out_is_named(config, capsys):
    assert main(["db", "status"]) == 75
    error = capsys.readouterr().err
    assert "no database" in error
    assert "bothost db upgrade" in error
    assert "Traceback" not in error


def test_a_backup_refuses_to_overwrite(config, capsys, tmp_path):
    main(["db", "upgrade"])
    (tmp_path / "copy.db").touch()
    assert main(["db", "backup", str(tmp_path / "copy.db")]) == 1
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "copy.db").stat().st_size == 0


@pytest.mark.parametrize("time", ["0001-01-01T00:00+05:00", "9999-12-31T23:59:59-05:00", "yesterday"])
def test_a_time_that_is_none_in_utc_is_named(config, capsys, time):
    assert main(["db", "prune", "--before", time]) == 2
    assert f"{time!r} is no time" in capsys.readouterr().err
