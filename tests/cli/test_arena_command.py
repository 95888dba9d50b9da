"""``bothost arena``: what a match prints, and what it says when a contestant fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from bothost import cli


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BOTHOST_CONFIG", raising=False)


def run(capsys, *words):
    code = cli.main(["arena", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_deals_of_an_earlier_run_are_reported(capsys):
    words = ("othello", "random", "first-legal", "--journal", "match.jsonl", "-n")
    code, _, err = run(capsys, *words, "2")
    assert code == 0 and "earlier run" not in err
    code, _, err = run(capsys, *words, "3")
    assert code == 0
    assert "2 of 3 deals are from an earlier run in match.jsonl; if a strategy's code has changed, raise its" in err
    assert "name another --journal" in err


def test_a_seed_is_not_negative(capsys):
    for words in (
        ("arena", "othello", "random", "random", "-n", "1", "--seed", "-1"),
        ("plugin", "check", "random", "--seed", "-1"),
        ("model", "promote", "phase-ppo:r1", "--seed", "-1"),
    ):
        assert cli.main(list(words)) == 2
        assert "--seed" in capsys.readouterr().err
