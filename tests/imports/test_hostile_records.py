"""Records that somebody damaged: each is imported or listed, and nothing is raised."""

import copy
import gzip
import json
import random
from pathlib import Path

import pytest
from botzone_matches import GAMES, competition_text, doudizhu_match, mahjong_steps, match_log, reversi_match

from bothost import rules
from bothost.cli import main
from bothost.imports import job
from bothost.imports.job import import_files
from bothost.imports.rebuild import Origin

WRONG = [None, -1, 10**30, 2**31, 1.5, "", "x", [], {}, [[]], {"a": 1}, True, "0 9 9", "2 W1", "3 9 PLAY W1", [0, 99]]
ROUNDS = 25


def places(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def damaged(value, rng: random.Random):
    """The same with something else, or nothing, at one of its places."""
    value = copy.deepcopy(value)
    *outer, last = rng.choice([path for path in places(value) if path])
    at = value
    for key in outer:
        at = at[key]
    if rng.random() < 0.8:
        at[last] = rng.choice(WRONG)
    else:
        del at[last]
    return value


def own(name: str) -> dict:
    state = rules.game(name).new_state(1)
    while not state.terminal:
        seat = state.to_act[0]
        state.apply(seat, int(state.legal(seat)[0]))
    actions = [list(action) for action in state.actions]
    return {"game": name, "deal": state.deal, "actions": actions, "scores": list(state.returns), "players": ["a"]}


def take(format_: str, path: Path) -> int:
    origin = Origin(lobby="x", format=format_, file="", line=0)
    report = import_files(None, format_, [path], origin)
    assert all(each.reason for each in report.broken)
    return report.imported + report.already + len(report.broken)


@pytest.mark.parametrize(
    ("format_", "records"),
    [
        ("botzone", lambda: [doudizhu_match(3)[0], doudizhu_match(4, bidding=True)[0], reversi_match()]),
        ("botzone", lambda: [{"wall": GAMES[0]["wall"].split(), "steps": mahjong_steps(GAMES[0])}]),
        ("botzone", lambda: [match_log(mahjong_steps(GAMES[5]))]),
        ("jsonl", lambda: [own(name) for name in ("doudizhu", "mahjong", "othello", "pairing")]),
    ],
    ids=["matches", "judge-log", "match-log", "jsonl"],
)
def test_damaged_records(tmp_path: Path, format_, records):
    rng = random.Random(7)
    path = tmp_path / "records.jsonl"
    made = [damaged(record, rng) for record in records() for _ in range(ROUNDS)]
    path.write_text("".join(json.dumps(record) + "\n" for record in made))
    assert take(format_, path) >= len(made)


def test_damaged_text(tmp_path: Path):
    rng = random.Random(7)
    whole = competition_text(GAMES[3], "5" * 24)
    path = tmp_path / "match.txt"
    for _ in range(ROUNDS):
        text = list(whole)
        text[rng.randrange(8, len(text))] = rng.choice("0123456789WTBFJ Player\n")
        path.write_text("".join(text))
        assert take("botzone", path) >= 1


@pytest.mark.parametrize("more", [{"create_time": 1e308}, {"scores": [10**400, 0, 0]}])
def test_numbers_beyond_all_bounds(tmp_path: Path, more):
    path = tmp_path / "match.json"
    path.write_text(json.dumps(doudizhu_match(3)[0] | more))
    assert take("botzone", path) == 1


def test_a_file_of_millions_of_broken_lines_takes_no_memory(tmp_path: Path, monkeypatch, capsys):
    """A gzip file of 6 KB may have three million, and each took 200 bytes."""
    monkeypatch.setattr(job, "MOST_LISTED", 50)
    path = tmp_path / "records.jsonl.gz"
    path.write_bytes(gzip.compress(b"x\n" * 120))
    report = import_files(None, "jsonl", [path], Origin(lobby="x", format="jsonl", file="", line=0))
    assert (len(report.broken), report.unlisted) == (50, 70)
    assert main(["import", "jsonl", str(path), "--dry-run"]) == 1
    said = capsys.readouterr().out
    assert "120 records left out:" in said and "--json lists the first 50" in said
