"""``bothost arena``: what a match prints, and what it says when a contestant fails."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bothost import cli

pytestmark = pytest.mark.usefixtures("elsewhere")


def test_deals_of_an_earlier_run_are_reported(run):
    words = ("othello", "random", "first-legal", "--journal", "match.jsonl", "-n")
    code, _, err = run("arena", *words, "2")
    assert code == 0 and "earlier run" not in err
    code, _, err = run("arena", *words, "3")
    assert code == 0
    assert "2 of 3 deals are from an earlier run in match.jsonl; if a strategy's code has changed, raise its" in err
    assert "name another --journal" in err


def test_three_contestants_at_dou_dizhu_have_figures_each(run):
    code, out, _ = run("arena", "doudizhu", "random", "first-legal", "random", "-n", "2")
    assert code == 0
    for name in "ABC":
        assert f"{name}'s score a hand " in out and f"{name}'s win rate " in out and f"{name}'s ms a move " in out
        assert f"{name} wins as landlord " in out and f"{name} wins as peasant " in out
    assert "A wins  " not in out and "A's points a hand" not in out


def test_the_deal_in_rate_of_a_player_that_never_won_is_printed(run):
    code, out, _ = run("arena", "mahjong", "random", "first-legal", "-n", "1")
    assert code == 0
    assert "B's fan a win" not in out and "B's deal-in rate" in out


MINE = """
import time
from bothost import Decision, Player, Strategy, hookimpl

class MinePlayer(Player):
    def decide(self, view, legal, budget):
        {body}

class Mine(Strategy):
    name = "mine"
    version = "1"
    games = ("othello",)

    def player(self, table):
        return MinePlayer()

@hookimpl
def bothost_strategies():
    return [Mine]
"""


def _mine(tmp_path: Path, monkeypatch, body):
    (tmp_path / "plugins").mkdir(mode=0o755)
    (tmp_path / "plugins" / f"mine_{tmp_path.name}.py").write_text(MINE.format(body=body))  # modules stay imported
    (tmp_path / "config.toml").write_text('[host]\nplugins_dir = "plugins"\n')
    monkeypatch.setenv("BOTHOST_CONFIG", str(tmp_path / "config.toml"))


def test_a_contestant_that_fails_is_named_with_what_to_do(tmp_path, monkeypatch, run):
    _mine(tmp_path, monkeypatch, "return int(legal[0])")
    code, _, err = run("arena", "othello", "random", "mine", "-n", "1")
    assert code == 1
    assert "error: B (mine): decide returned int" in err
    assert "fix: return bothost.Decision(action=int(…)); bothost plugin check mine; a tournament counts errors" in err


def test_late_answers_are_counted(tmp_path, monkeypatch, capsys, run):
    _mine(tmp_path, monkeypatch, "time.sleep(0.01); return Decision(action=int(legal[0]))")
    code, out, _ = run("arena", "othello", "mine", "first-legal", "-n", "1", "--ms", "1")
    assert code == 0 and re.search(r"^late answers +A \d+", out, flags=re.M)
    assert cli.main(["tournament", "othello", "mine", "first-legal", "-n", "2", "--ms", "1"]) == 0
    assert re.search(r"^late answers: A \d+", capsys.readouterr().out, flags=re.M)


def test_a_seed_is_not_negative(capsys):
    for words in (
        ("arena", "othello", "random", "random", "-n", "1", "--seed", "-1"),
        ("plugin", "check", "random", "--seed", "-1"),
        ("model", "promote", "phase-ppo:r1", "--seed", "-1"),
    ):
        assert cli.main(list(words)) == 2
        assert "--seed" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("arena", "#", "random", "random", "-n1"), ("games", "generate", "#", "-n1")])
def test_a_game_whose_plugin_failed_is_explained(run, words):
    Path("plugins.d").mkdir()
    Path("plugins.d/broken_nim.py").write_text("from bothost import hookimp\n")
    Path("config.toml").write_text('[host]\nplugins_dir = "plugins.d"\n')
    words = [word.replace("#", "broken-nim") for word in words]
    code, _, err = run(*words, *(("--player", "ada=random") if words[0] == "games" else ()), "--config", "config.toml")
    assert code == 2 and "no game is called 'broken-nim'" in err
    assert "plugin broken_nim failed to load: ImportError: cannot import name 'hookimp'" in err
