"""Botzone's records in all their forms become whole hands, and what does not fit our rules is named."""

import copy
import gzip
import json
from pathlib import Path

import pytest
from botzone_matches import (
    GAMES,
    SHARED,
    competition_text,
    doudizhu_match,
    flower_steps,
    mahjong_steps,
    match_log,
    reversi_match,
)

from bothost.imports.botzone import match, read
from bothost.imports.files import MAX_LINE
from bothost.imports.job import import_files
from bothost.imports.rebuild import Origin, play
from bothost.imports.turns import Turn, record

ORIGIN = Origin(lobby="imported", format="botzone", file="", line=0)
NO_JSON = "this is neither JSON nor the text of a competition"
REAL = [path for path in SHARED.glob("mcr_*")] if SHARED.is_dir() else []


def check(*paths: Path):
    return import_files(None, "botzone", paths, ORIGIN)


def judge_log(game: dict) -> dict:
    return {
        "prevalent_wind": 0,
        "wall": game["wall"].split(),
        "steps": mahjong_steps(game),
        "result": {"score": game["scores"]},
    }


def test_all_real_games_of_mahjong_as_judge_logs(tmp_path: Path):
    path = tmp_path / "games.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(judge_log(game)) + "\n" for game in GAMES)
    report = check(path)
    assert (report.imported, report.broken) == (len(GAMES), [])
    for game, found in zip(GAMES, read(path), strict=True):
        state = play(found.record).state
        assert list(state.returns) == game["scores"]
        assert state.deal["wall"] == game["wall"].split()


def test_a_match_log_without_a_wall_gives_the_same_hand():
    for game in GAMES[::9]:
        from_steps = match(judge_log(game))
        from_logs = match(match_log(mahjong_steps(game), _id="5f" + "0" * 22))
        assert from_logs.actions == from_steps.actions
        assert from_logs.scores == from_steps.scores
        again = play(from_logs).state
        assert list(again.returns) == game["scores"]
        views = zip(play(from_steps).moves, play(from_logs).moves, strict=True)
        assert all(a[1].to_bytes() == b[1].to_bytes() for a, b in views)


@pytest.mark.parametrize("seed", range(3))
def test_flowers_are_laid_in_the_deal_and_later(seed):
    steps, state = flower_steps(seed)
    assert any("BUHUA" in step["content"][0] for step in steps[:-1] if "content" in step)
    found = match(match_log(steps))
    assert list(found.actions) == list(state.actions)
    told, known = ([event.split()[:2] for event in each.events(0)] for each in (play(found).state, state))
    assert told == known


def test_the_text_of_the_competitions(tmp_path: Path):
    path = tmp_path / "games.txt"
    path.write_text("\n".join(competition_text(game, f"{number:024x}") for number, game in enumerate(GAMES)))
    report = check(path)
    assert (report.imported, report.broken) == (len(GAMES), [])
    for game, found in zip(GAMES, read(path), strict=True):
        assert found.record.actions == match(judge_log(game)).actions


@pytest.mark.skipif(not REAL, reason="the originals lie beside the author's checkout only")
def test_the_original_files():
    report = check(*REAL)
    assert (report.imported, report.broken, report.games) == (44, [], {"mahjong": 44})


@pytest.mark.parametrize("bidding", [False, True])
def test_dou_dizhu(bidding):
    for seed in range(12):
        told, state = doudizhu_match(seed, bidding=bidding)
        found = match(json.loads(json.dumps(told)))
        assert [(seat, action) for seat, action in found.actions] == list(state.actions)
        assert found.deal == state.deal
        assert play(found).state.returns == state.returns
        assert [who.player for who in found.players] == ["id-ada", "id-ben", "id-cat"]
        assert found.players[0].name == "ada" and found.players[0].bot


def test_a_player_may_be_called_anything(tmp_path: Path):
    told = reversi_match()
    told["players"] = [
        {"type": "user", "user": {"_id": "5f01", "name": "一\u3000人"}},
        {"type": "user", "user": {"_id": "5f02", "name": "\U0001f469\u200d\U0001f680"}},
    ]
    path = tmp_path / "match.json"
    path.write_text(json.dumps(told))
    (found,) = read(path)
    assert [(who.player, who.name) for who in found.record.players] == [
        ("5f01", "一 人"),
        ("5f02", "\U0001f469\U0001f680"),
    ]
    assert check(path).imported == 1


def test_one_hand_of_dou_dizhu_may_be_unknown():
    told, state = doudizhu_match(1)
    for entry in told["logs"][::2]:
        if (asked := entry["output"]["content"].get("2")) and isinstance(asked, dict):
            asked.pop("own", None)
    assert match(told).deal == state.deal


@pytest.mark.parametrize(
    ("seat", "response", "said"),
    [("2", [], "seat 2 is not asked"), ("0", [99], "not legal there"), ("0", [-1], "not legal there")],
)
def test_a_response_of_dou_dizhu_that_cannot_be_is_named(seat, response, said):
    told, _ = doudizhu_match(3)
    told["logs"][1] = {seat: {"verdict": "OK", "response": response}}
    with pytest.raises(ValueError, match=said):
        match(told)


def test_a_square_that_is_not_on_the_board_is_named():
    told = reversi_match()
    for square in ({"x": 8, "y": 0}, {"x": -1, "y": 0}, "0 8"):
        told["logs"][1]["0"]["response"] = square
        with pytest.raises(ValueError, match="there is no square"):
            match(told)


def test_reversi_and_one_document_over_many_lines(tmp_path: Path):
    path = tmp_path / "match.json"
    path.write_text(json.dumps(reversi_match(), indent=1))
    (found,) = read(path)
    assert play(found.record).state.returns == (1.0, -1.0)
    assert found.record.started_us == 0x55555555 * 1_000_000
    path.write_text(json.dumps([reversi_match(), reversi_match()["logs"]], indent=1))
    assert check(path).imported == 2
    path.write_text(json.dumps([reversi_match(), " " * MAX_LINE]))
    assert check(path).imported == 1, "one line that is longer than a line may be where there are others"


def test_a_damaged_line_costs_no_other_line(tmp_path: Path):
    path = tmp_path / "matches.jsonl"
    text = json.dumps(reversi_match())
    for number in range(3):
        broken = [text] * 3
        broken[number] = text[:-9]
        path.write_text("\n".join(broken))
        report = check(path)
        assert (report.imported, report.already) == (1, 1)
        assert [(each.line, each.reason) for each in report.broken] == [(number + 1, NO_JSON)]
    path.write_bytes(text.encode() + b"\n\xff\n")
    report = check(path)
    assert report.imported == 1 and [each.line for each in report.broken] == [2]
    path.write_text(json.dumps(reversi_match(), indent=1)[:-9])
    assert [(each.line, each.reason) for each in check(path).broken] == [(1, NO_JSON)]


def test_what_does_not_fit_is_named():
    told, _ = doudizhu_match(3)
    cases = []
    for damage in range(5):
        bad = copy.deepcopy(told)
        logs = bad["logs"]
        if damage == 0:
            logs[-1]["output"]["content"] = (
                {"0": -9, "1": 1, "2": 1} if logs[-1]["output"]["content"]["0"] > 0 else {"0": 9, "1": -1, "2": -1}
            )
        elif damage == 1:
            del logs[-3:]
        elif damage == 2:
            logs[1]["0"]["response"] = [0, 1, 52]
        elif damage == 3:
            logs[0]["output"]["content"]["0"]["own"][0] = logs[0]["output"]["content"]["0"]["own"][1]
        else:
            logs[1]["0"]["verdict"] = "TLE"
        try:
            play(match(bad))
        except ValueError as error:
            cases.append(str(error))
    assert len(cases) == 5
    words = ("the record's scores are", "not over after", "not legal there", "not the 54 cards", "did not answer")
    for said, word in zip(cases, words, strict=True):
        assert word in said


def test_a_claim_that_nobody_could_make_is_named():
    log = judge_log(GAMES[0])
    answers = [step["answers"] for step in log["steps"] if "answers" in step]
    answers[3] = ["PASS"] * 4
    answers[3][1] = "GANG"
    log["steps"] = [{"answers": answers.pop(0)} if "answers" in step else step for step in log["steps"]]
    with pytest.raises(ValueError, match="round 3"):
        match(log)


def test_nonsense_is_listed_and_nothing_is_raised(tmp_path: Path):
    path = tmp_path / "nonsense.jsonl"
    lines = [
        "{}",
        "[]",
        "7",
        '"x"',
        '{"logs": 7}',
        '{"logs": [7]}',
        '{"steps": 1, "wall": 2}',
        '{"logs": [{"output": 1}]}',
    ]
    path.write_text("\n".join(lines))
    found = list(read(path))
    assert [each.line for each in found] == list(range(1, len(lines) + 1))
    assert all(each.record is None and each.why for each in found)
    path.write_text("no json at all")
    assert [each.why for each in read(path)] == [NO_JSON]
    assert record([Turn({0: {"x": -1, "y": -1}}, {0: {"x": 5, "y": 3}})], initdata={}, scores=None).actions == (
        (0, "f4"),
    )
