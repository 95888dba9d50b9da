"""``bothost export``, as a person types it."""

import asyncio
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bothost import rules
from bothost.cli import main
from bothost.cli.hand_query import moment
from bothost.config import load
from bothost.errors import UsageError
from bothost.store import DecisionLog
from bothost.testing.sample_rows import played_hand


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    path.write_text('[store]\nurl = "sqlite:///log.db"\n')
    monkeypatch.setenv("BOTHOST_CONFIG", str(path))
    assert main(["db", "upgrade"]) == 0

    async def fill() -> None:
        log = DecisionLog.open(load().store, "test", tmp_path / "spool")
        for seed in range(6):
            await log.submit(played_hand(rules.game("doudizhu"), seed, account="ada" if seed % 2 else "bob"))
        await log.aclose()

    asyncio.run(fill())
    return path


def test_both_formats_filtered_and_summed_up(config, capsys, tmp_path):
    capsys.readouterr()
    assert main(["export", "--out", str(tmp_path / "a"), "--since", "1h", "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert (info["hands"], info["format"]) == (6, "parquet")
    assert pq.read_table(tmp_path / "a" / "data").num_rows == info["rows"]
    assert main(["export", "--out", str(tmp_path / "b"), "--player", "ada", "--format", "jsonl", "--no-view-json"]) == 0
    assert "at 3 seats" in capsys.readouterr().out
    assert main(["export", "--out", str(tmp_path / "c"), "--until", "1h"]) == 0
    said = capsys.readouterr().out
    assert "0 decisions at 0 seats" in said and "no hand that has ended matches" in said


@pytest.mark.parametrize("format_", ["botzone", "minari"])
def test_whole_hands_of_which_there_are_none(config, capsys, tmp_path, format_):
    capsys.readouterr()
    assert main(["export", "--format", format_, "--until", "1h", "--out", str(tmp_path / "none")]) == 0
    assert capsys.readouterr().out == "no hands\n"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--format", "csv"], "parquet"),
        (["--since", "yesterday"], "7d"),
        (["--since", "5d", "--until", "7d"], "exchange --since and --until"),
        (["--split", "1,2"], "0.8,0.1,0.1"),
        (["--split", "1,1,1"], "0.8,0.1,0.1"),
        (["--raw", "--pseudonyms"], "--raw"),
        (["--lobby", "hom"], "no lobby 'hom' is configured or in the log\n  fix: did you mean 'home'?"),
        (["--game", "doudizu", "--format", "botzone"], "no game is called 'doudizu'\n  fix: did you mean 'doudizhu'?"),
        (["--player", "aad"], "no logged hand has a player 'aad'\n  fix: did you mean 'ada'?"),
        (["--player", "nobody"], "no logged hand has a player 'nobody'\n  fix: list hands with their players"),
        (["--strategy", "randm"], "there is no strategy 'randm'\n  fix: did you mean 'random'?"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_fix(config, capsys, tmp_path, arguments, word):
    assert main(["export", "--out", str(tmp_path / "out"), *arguments]) == 2
    error = capsys.readouterr().err
    assert word in error
    assert "Traceback" not in error
    assert not (tmp_path / "out").exists()


def test_times_are_dates_times_or_ages():
    assert moment("1970-01-02") == 86_400_000_000
    assert moment("1970-01-01T01:00:00+01:00") == 0
    assert moment("1970-01-01T00:00:01.5") == 1_500_000
    assert moment("2d") < moment("1d") < moment("90m")
    assert moment(f"{'9' * 400}w") == moment("99999999999d") == 0
    with pytest.raises(UsageError):
        moment("soon")
