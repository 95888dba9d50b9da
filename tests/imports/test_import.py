"""Imported hands are hands of the log: shown, rebuilt, exported and imitated as any other, and written once."""

import gzip
import json
import math
import os
from collections import Counter
from pathlib import Path

import pytest
from botzone_matches import GAMES, SHORTEST, doudizhu_match, mahjong_steps
from other_writer import another_writer

from bothost import rules
from bothost.cli import main
from bothost.config import load
from bothost.errors import UsageError
from bothost.export.job import export
from bothost.export.options import ExportOptions
from bothost.export.parquet import ParquetExporter
from bothost.imports.job import import_files
from bothost.imports.rebuild import Origin
from bothost.retrain.players import Players
from bothost.store import Store, consent
from bothost.store.engine import sqlite_path
from bothost.store.hand_report import report
from bothost.store.query import HandQuery
from bothost.store.reader import counts, iter_hands, iter_timelines
from bothost.testing.nim import NIM, NimState

OTHELLO = {
    "game": "othello",
    "players": ["ada", {"player": "ben", "name": "Ben", "bot": False}],
    "actions": [[number % 2, move] for number, move in enumerate(SHORTEST.split())],
    "scores": [1, -1],
    "started": "2026-05-01T12:00:00Z",
}


@pytest.fixture
def store(any_settings):
    with Store.open(any_settings) as opened:
        yield opened


def matches(path: Path, hands: int = 4) -> Path:
    path.write_text("\n".join(json.dumps(doudizhu_match(seed)[0]) for seed in range(hands)))
    return path


def bring(store: Store, format_: str, *paths: Path, **origin):
    made = Origin(**{"lobby": "imported", "format": format_, "file": "", "line": 0, **origin})
    return import_files(store, format_, paths, made)


def lines(path: Path, *hands: object) -> Path:
    path.write_text("\n".join(hand if isinstance(hand, str) else json.dumps(hand) for hand in hands) + "\n")
    return path


def test_hands_come_into_the_log_of_a_host_that_writes(settings, tmp_path: Path):
    with Store.open(settings) as store, another_writer(sqlite_path(settings.url)):
        assert bring(store, "jsonl", lines(tmp_path / "one.jsonl", OTHELLO)).imported == 1


def test_every_seat_is_logged_as_a_host_would_have(store, tmp_path: Path):
    game = GAMES[0]
    log = {"prevalent_wind": 0, "wall": game["wall"].split(), "steps": mahjong_steps(game)}
    done = bring(store, "botzone", lines(tmp_path / "one.jsonl", log), names=("ada", "ben", "cat", "dan"))
    assert (done.imported, done.games) == (1, {"mahjong": 1})
    timelines = list(iter_timelines(store, iter_hands(store)))
    assert [(t.hand.game.seat, t.hand.game.account, t.hand.game.host) for t in timelines] == [
        (seat, name, "import") for seat, name in enumerate(("ada", "ben", "cat", "dan"))
    ]
    for timeline in timelines:
        told = report(timeline)
        assert told["problems"] == []
        assert told["scores"] == game["scores"] and told["deal"]["wall"] == game["wall"].split()
        assert timeline.decisions and {row.strategy for row in timeline.decisions} == {"imported"}
        about = json.loads(timeline.hand.game.attributes)["imported"]
        assert (about["format"], about["file"], about["line"]) == ("botzone", "one.jsonl", 1)
    assert sum(len(t.decisions) for t in timelines) == done.decisions


def test_the_same_record_again_changes_nothing(store, tmp_path: Path):
    path = matches(tmp_path / "matches.jsonl")
    assert bring(store, "botzone", path, path).imported == 4
    before = counts(store)
    again = bring(store, "botzone", path, consents=True, names=("x", "y", "z"))
    assert (again.imported, again.already, again.broken) == (0, 4, [])
    assert counts(store) == before
    assert bring(store, "botzone", path, lobby="elsewhere").imported == 4


def test_broken_records_are_listed_and_leave_nothing_behind(store, tmp_path: Path):
    bad = [
        "{not json",
        {**OTHELLO, "scores": [-1, 1]},
        {**OTHELLO, "actions": OTHELLO["actions"][:-1]},
        {**OTHELLO, "actions": [[1, "e6"]]},
        {**OTHELLO, "actions": [[0, "a1"]]},
        {**OTHELLO, "game": "chess"},
        {**OTHELLO, "rules": {"board": 10}},
        {**OTHELLO, "plyers": []},
        {"game": "doudizhu", "actions": []},
        {"game": "doudizhu", "deal": {"hands": ["3"]}, "actions": []},
        {**OTHELLO, "players": ["a", "b", "c"]},
        {**OTHELLO, "started": "2999-01-01T00:00:00Z"},
        {**OTHELLO, "players": ["a\x1b[31m"]},
        {**OTHELLO, "away": [2]},
        {**OTHELLO, "started": "1960-01-01T00:00:00Z"},
        {**OTHELLO, "players": [" ", "ben"]},
        {**OTHELLO, "players": [{"player": "ada", "name": " "}]},
        {**OTHELLO, "players": ["a" * 201]},
    ]
    done = bring(store, "jsonl", lines(tmp_path / "some.jsonl", OTHELLO, *bad))
    assert done.imported == 1 and [each.line for each in done.broken] == list(range(2, len(bad) + 2))
    words = ["malformed", "under our rules", "not over after 8", "seat 1 is not asked", "not legal there", "chess"]
    words += ["board", "plyers", "neither `deal` nor `seed`", "deal", "does not have", "future", "cannot be shown"]
    words += ["names seats that othello does not have", "before 1970", "cannot be shown", "cannot be shown", "<= 200"]
    for each, word in zip(done.broken, words, strict=True):
        assert word in each.reason, (word, each.reason)
    assert counts(store)["games"] == 2 and counts(store)["decisions"] == 9


def test_a_name_from_the_command_line_follows_the_same_rule(store, tmp_path: Path):
    done = bring(store, "jsonl", lines(tmp_path / "one.jsonl", {**OTHELLO, "players": []}), names=("a" * 201, "ben"))
    assert done.imported == 0 and "longer than 200 characters" in done.broken[0].reason


def test_a_game_that_gives_no_scores_is_a_broken_record(store, tmp_path: Path, monkeypatch):
    rules.register_game(NIM)
    try:
        state = rules.game("nim").new_state(1)
        while not state.terminal:
            state.apply(state.to_act[0], 0)
        monkeypatch.setattr(NimState, "returns", property(lambda state: (math.nan, 0.0)))
        hand = {"game": "nim", "deal": state.deal, "actions": state.actions}
        done = bring(store, "jsonl", lines(tmp_path / "nim.jsonl", hand))
    finally:
        rules.forget_game("nim")
    assert done.imported == 0 and "not a finite number for each seat" in done.broken[0].reason
    assert counts(store)["games"] == 0


def test_hands_of_every_game_by_deal_and_by_seed(store, tmp_path: Path):
    made = []
    for name in ("doudizhu", "mahjong", "othello", "pairing"):
        game = rules.game(name)
        for number in range(4):
            state = game.new_state(number)
            while not state.terminal:
                seat = state.to_act[-1]
                state.apply(seat, int(state.legal(seat)[number % len(state.legal(seat))]))
            said = [[seat, game.notation(action) if number % 2 else action] for seat, action in state.actions]
            deal = {"seed": number} if number < 2 else {"deal": state.deal}
            made.append({"game": name, **deal, "actions": said, "scores": list(state.returns), "id": str(number)})
    done = bring(store, "jsonl", lines(tmp_path / "all.jsonl", *made))
    assert done.broken == [] and done.games == dict.fromkeys(("doudizhu", "mahjong", "othello", "pairing"), 4)
    for timeline in iter_timelines(store, iter_hands(store)):
        assert report(timeline)["problems"] == []


def test_only_players_with_consent_are_imitated(store, tmp_path: Path):
    bring(store, "botzone", matches(tmp_path / "matches.jsonl"))
    log = Players(store)
    assert log.players("doudizhu") == {}
    with pytest.raises(UsageError, match="has not agreed"):
        next(log.moves("doudizhu", ["id-ada"]))
    consent.record(store, "imported", "id-ada", granted=True)
    moves = list(log.moves("doudizhu", ["id-ada"]))
    assert log.players("doudizhu") == {"id-ada": 4} and {move.player for move in moves} == {"id-ada"}
    bring(store, "botzone", tmp_path / "matches.jsonl", lobby="agreed", consents=True)
    agreed = Players(store, HandQuery(lobbies=("agreed",)))
    assert agreed.players("doudizhu") == {"id-ada": 4, "id-ben": 4, "id-cat": 4}
    found = list(agreed.moves("doudizhu"))
    assert len(found) == counts(store)["decisions"] // 2
    assert Counter(move.player for move in found)["id-ada"] == len(moves)
    consent.record(store, "agreed", "id-ben", granted=False)
    assert "id-ben" not in agreed.players("doudizhu")


def test_they_are_exported(store, tmp_path: Path):
    import pyarrow.parquet as pq

    done = bring(store, "botzone", matches(tmp_path / "matches.jsonl"), consents=True)
    options = ExportOptions()
    info = export(store, HandQuery(), tmp_path / "out", ParquetExporter(), options)
    assert (info["rows"], info["hands"], info["views_not_decoded"]) == (done.decisions, 12, 0)
    table = pq.read_table(tmp_path / "out" / "data")
    assert set(table["host"].to_pylist()) == {"import"} and set(table["consents"].to_pylist()) == {True}


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    (tmp_path / "config.toml").write_text('[store]\nurl = "sqlite:///log.db"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["db", "upgrade"]) == 0
    path = str(lines(tmp_path / "hands.jsonl", OTHELLO, {**OTHELLO, "id": "2"}))
    assert main(["import", "jsonl", path, "--dry-run"]) == 0
    assert "2 hands would be imported (2 of othello; 18 decisions)" in capsys.readouterr().out
    assert main(["import", "jsonl", path, "--consent", "--reason", "they wrote so"]) == 0
    assert "2 hands imported" in capsys.readouterr().out
    assert main(["games", "list", "--lobby", "imported", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(hand["winners"], hand["started"][:10]) for hand in listed] == [(["ada"], "2026-05-01")] * 2
    assert main(["games", "show", listed[0]["id"]]) == 0
    assert "ben" in (shown := capsys.readouterr().out.lower()) and "e6" in shown
    assert main(["games", "show", listed[0]["id"], "--json"]) == 0
    decision = json.loads(capsys.readouterr().out)[0]["decisions"][0]["id"]
    assert main(["replay", decision]) in (0, 1)
    assert "imported" in capsys.readouterr().out
    assert main(["replay", decision, "--model", "rule-othello"]) == 0
    lines(tmp_path / "bad.jsonl", "{}")
    assert main(["import", "jsonl", path, str(tmp_path / "bad.jsonl"), "--consent"]) == 1
    said = capsys.readouterr().out
    assert "2 hands already in the log" in said and "1 record left out:" in said
    assert "bad.jsonl:1: Object missing required field" in said
    for wrong in (["import", "pgn", path], ["import", "jsonl", "none"], ["import", "jsonl", path, "--reason", "x"]):
        assert main(wrong) == 2
    assert main(["games", "forget", "ben", "--yes"]) == 0
    with Store.open(load().store) as store:
        assert counts(store)["games"] == 0


def test_of_an_imported_hand_every_seat_is_replayed_and_a_seat_may_have_no_name(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / "config.toml").write_text('[store]\nurl = "sqlite:///log.db"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["db", "upgrade"]) == 0
    state = rules.game("mahjong").new_state(1)
    while not state.terminal:
        state.apply(state.to_act[0], int(state.legal(state.to_act[0])[0]))
    path = lines(tmp_path / "hands.jsonl", {"game": "mahjong", "deal": state.deal, "actions": state.actions})
    assert main(["import", "jsonl", str(path), "--players", ",bob,,dan"]) == 0
    capsys.readouterr()
    assert main(["games", "list", "--json"]) == 0
    (hand,) = json.loads(capsys.readouterr().out)
    assert hand["players"] == ["seat-0", "bob", "seat-2", "dan"]
    assert main(["replay", hand["id"], "--model", "rule-mahjong", "--json"]) == 0
    seats = Counter(item["seat"] for item in json.loads(capsys.readouterr().out))
    assert seats == Counter(seat for seat, _ in state.actions)


@pytest.mark.parametrize(
    ("content", "line", "why"),
    [
        (b"\x1f\x8b\x08garbage", 1, "damaged"),
        (gzip.compress(b"{}\n" * 10_000)[:-20], 2, "damaged"),
        (b"\xff\xfe{}\n", 1, "UTF-8"),
        (b"[" * (17 * 2**20), 1, "16 MiB"),
    ],
    ids=["no gzip", "cut gzip", "other encoding", "long line"],
)
def test_a_file_that_cannot_be_read_is_listed_and_the_next_one_is_read(store, tmp_path: Path, content, line, why):
    bad, good = tmp_path / "bad.jsonl", lines(tmp_path / "good.jsonl", OTHELLO)
    bad.write_bytes(content)
    report = bring(store, "jsonl", bad, good)
    last = report.broken[-1]
    assert last.file == str(bad) and last.line >= line
    assert why in last.reason and "the rest of the file is left out" in last.reason
    assert report.imported == 1


def test_a_file_may_begin_with_a_byte_order_mark(store, tmp_path: Path):
    path = tmp_path / "hands.jsonl"
    path.write_text(json.dumps(OTHELLO), encoding="utf-8-sig")
    assert bring(store, "jsonl", path).imported == 1
    path.write_text(json.dumps(doudizhu_match(1)[0], indent=2), encoding="utf-8-sig")
    assert bring(store, "botzone", path).imported == 1


def test_the_name_of_a_file_need_not_be_utf_8(store, tmp_path: Path):
    path = lines(tmp_path / os.fsdecode(b"x\xff.jsonl"), OTHELLO)
    assert bring(store, "jsonl", path).imported == 1


def test_json_that_is_nested_too_deeply_is_a_broken_record(store, tmp_path: Path):
    path = tmp_path / "hands.jsonl"
    path.write_text("[" * 100_000)
    assert [each.line for each in bring(store, "jsonl", path).broken] == [1]
    assert len(bring(store, "botzone", path).broken) == 1
