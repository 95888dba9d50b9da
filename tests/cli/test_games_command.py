"""``bothost games``: hands listed, and one shown so that a person can follow it."""

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from bothost import rules
from bothost.cli import main
from bothost.config import load
from bothost.store import DecisionLog, DecisionRecord, EventsRecord
from bothost.testing.sample_rows import played_hand


@pytest.fixture(scope="module")
def hands():
    game = rules.game("doudizhu")
    made = [
        played_hand(game, seed, seat=seed % 3, started_us=1_700_000_000_000_000 + seed * 10**9) for seed in range(4)
    ]
    decisions = [row for row in made[3] if isinstance(row, DecisionRecord)]
    decisions[0].fallback, decisions[0].strategy = "late", "random"
    made[2][0].account = "evil\x1b[31m"
    made[1].pop()
    made[3][-1].away = "[1]"
    return made


@pytest.fixture
def config(hands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> Path:
    path = tmp_path / "config.toml"
    path.write_text('[store]\nurl = "sqlite:///log.db"\n')
    monkeypatch.setenv("BOTHOST_CONFIG", str(path))
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["db", "upgrade"]) == 0
    _add(*hands)
    capsys.readouterr()
    return path


def test_one_line_a_hand_the_newest_first(config, hands, capsys):
    assert main(["games", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [rows[0].game_id.hex()[:12] for rows in hands[::-1]]
    assert "live" in lines[3]
    assert "\x1b" not in "".join(lines)
    assert main(["games", "list", "--closed", "-n", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [item["id"] for item in found] == [hands[3][0].game_id.hex(), hands[2][0].game_id.hex()]
    for item in found:
        assert set(item["winners"]) | set(item["opponents"]) == set(item["players"])
        assert {name for name, score in zip(item["players"], item["scores"], strict=True) if score > 0} == set(
            item["winners"]
        )


@pytest.mark.parametrize("scores", ["[null,0.0,0.0]", "[NaN,0.0,0.0]", "[-Infinity,0.0,0.0]"])
def test_a_hand_whose_scores_are_no_numbers_has_none(config, hands, scores, capsys, tmp_path):
    """Version 0.1.0 logged them."""
    with closing(sqlite3.connect(tmp_path / "log.db")) as log, log:
        log.execute("UPDATE game_ends SET scores = ? WHERE game_id = ?", (scores, hands[3][0].game_id))
    assert main(["games", "list", "--json"]) == 0
    first, second, *_ = json.loads(capsys.readouterr().out)
    assert (first["scores"], first["winners"]) == (None, []) and second["winners"]
    assert main(["games", "list"]) == main(["games", "show", first["id"]]) == 0
    for shape in ("parquet", "jsonl"):
        assert main(["export", "--format", shape, "--out", str(tmp_path / shape)]) == 0


def test_a_name_that_is_mistyped_is_no_name_without_hands(config, hands, capsys):
    for option, mistyped, near in (
        ("--lobby", "hom", "home"),
        ("--game", "doudizu", "doudizhu"),
        ("--strategy", "rule-doudizu", "rule-doudizhu"),
    ):
        assert main(["games", "list", option, mistyped]) == 2
        assert f"did you mean {near!r}?" in capsys.readouterr().err
    for option, known in (("--game", "othello"), ("--strategy", "phase-ppo"), ("--player", "nobody")):
        assert main(["games", "list", option, known]) == 0
        assert capsys.readouterr() == ("no hands\n", "")


def test_a_reader_that_goes_away_ends_the_command_silently(config, hands):
    reader, writer = os.pipe()
    os.close(reader)
    show = [sys.executable, "-m", "bothost", "games", "show", hands[3][0].game_id.hex()]
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(show, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


def _seats(*, days=0, reports=True, table=0, later_us=0):
    """The rows of both our seats at one hand of pairing, which starts so much after the first."""
    made = []
    for seat, name in enumerate(("ada", "bob")):
        started_us = 1_800_000_000_000_000 + days * 86_400_000_000 + seat * 40_000_000 + later_us
        rows = played_hand(rules.game("pairing"), days + table, seat=seat, started_us=started_us)
        rows[0].account, rows[0].table = name, f"t{table}"
        told = [{"player": one, "seat": at} for at, one in enumerate(("ada", "bob"))]
        rows[0].players = json.dumps(told) if reports else "[]"
        made.append(rows)
    return made


def test_the_seats_of_ours_at_one_hand_are_one_line(config, hands, capsys):
    ada, bob = _seats()
    ada[-1].scores, ada[-1].reason = None, "handed over"
    bob[-1].scores = "[-5.0, 5.0]"
    made = [row for rows in (ada, bob) for row in rows if isinstance(row, DecisionRecord)]
    made[0].fallback = made[-1].fallback = "late"
    _add(ada, bob)
    assert main(["games", "list", "--game", "pairing", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["winners"], found["opponents"], found["scores"]) == (["bob"], ["ada"], [-5.0, 5.0])
    assert (found["decisions"], found["fallbacks"]) == (len(made), 2)
    assert [item["account"] for item in found["seats"]] == ["ada", "bob"]


def test_no_seat_lacks_where_the_seats_of_several_hands_alternate(config, hands, capsys):
    for table in range(5):
        _add(*_seats(table=table, later_us=table * 1_000_000))
    assert main(["games", "list", "--game", "pairing", "-n", "1", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [seat["account"] for seat in found["seats"]] == ["ada", "bob"]


def test_hands_of_one_millisecond_have_longer_ids_in_the_list(config, hands, capsys):
    _add(*(_seats(table=table)[0] for table in range(2)))
    assert main(["games", "list", "--game", "pairing"]) == 0
    shown = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert len(set(shown)) == 2 and all(len(one) > 12 for one in shown)
    for one in shown:
        assert main(["games", "show", one]) == 0


def test_lists_and_hands_fit_a_terminal_of_80_columns(config, hands, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for rows in hands:
        hand = rows[0].game_id.hex()
        for argv in (["list"], ["list", "--seats"], ["show", hand], ["show", hand, "--events"]):
            assert main(["games", *argv]) == 0
            lines = Text.from_ansi(capsys.readouterr().out).plain.splitlines()
            assert max(map(cell_len, lines)) <= 80
            if argv[0] == "list":
                assert re.search(r" 2023-11-14 \d\d:\d\d  ", lines[1])


def test_hands_of_one_name_on_two_days_are_two_lines(config, hands, capsys):
    days = [_seats(days=day) for day in (0, 1)]
    _add(*days[0], *days[1])
    assert main(["games", "list", "--game", "pairing", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [[seat["id"] for seat in item["seats"]] for item in found] == [
        [rows[0].game_id.hex() for rows in day] for day in days[::-1]
    ]


def test_a_hand_of_a_lobby_that_names_no_players_has_a_winner(config, hands, capsys):
    rows = played_hand(rules.game("othello"), 7, seat=1, started_us=1_800_000_000_000_000)
    rows[0].players, rows[0].account = "[]", "ada"
    _add(rows)
    assert main(["games", "list", "-n", "1", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["players"] == ["seat 0", "ada"]
    assert found["winners"] == ["ada" if found["scores"][1] > 0 else "seat 0"]
    assert found["opponents"] == [name for name in found["players"] if name not in found["winners"]]


def test_our_accounts_at_one_hand_are_named_although_the_lobby_names_no_players(config, hands, capsys):
    ada, bob = _seats(reports=False)
    ada[-1].scores = bob[-1].scores = "[-1.0, 1.0]"
    _add(ada, bob)
    assert main(["games", "list", "--game", "pairing", "--json"]) == 0
    (hand,) = json.loads(capsys.readouterr().out)
    assert (hand["players"], hand["winners"], hand["opponents"]) == (["ada", "bob"], ["bob"], ["ada"])


def test_seats_are_listed_the_newest_first(config, hands, capsys):
    assert main(["games", "list", "--seats"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [rows[0].game_id.hex()[:12] for rows in hands[::-1]]
    assert "live" in lines[3]
    assert "\x1b" not in "".join(lines)
    assert main(["games", "list", "--seats", "--closed", "-n", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [item["id"] for item in found] == [hands[3][0].game_id.hex(), hands[2][0].game_id.hex()]
    assert found[0]["fallbacks"] == 1
    assert found[0]["decisions"] == sum(isinstance(row, DecisionRecord) for row in hands[3])
    assert main(["games", "list", "--game", "pairing"]) == 0
    assert capsys.readouterr().out == "no hands\n"


def test_a_hand_is_written_down_with_what_the_bot_considered(config, hands, capsys):
    rows = hands[0]
    assert main(["games", "show", rows[0].game_id.hex()[:20]]) == 0
    text = capsys.readouterr().out
    moves = re.findall(r"^ +(\d+)  (\S+) +(\S+)(.*)$", text, flags=re.M)
    assert [int(number) for number, *_ in moves] == list(range(1, len(moves) + 1)) and len(moves) > 10
    own = [move for move in moves if move[1] == rows[0].account]
    made = [row for row in rows if isinstance(row, DecisionRecord)]
    assert [notation for _, _, notation, _ in own] == [row.notation for row in made]
    for row, (*_, considered) in zip(made, own, strict=True):
        expected = "the only legal action" if len(row.legal) == 4 else "drawn at random"
        assert expected in considered
    assert all(not move[3].strip() for move in moves if move[1] != rows[0].account)
    assert all(f"seat {seat}: " in text for seat in range(3))


def test_a_hand_is_shown_with_deal_events_decisions_and_reasons(config, hands, capsys):
    rows = hands[3]
    assert main(["games", "show", "--events", rows[0].game_id.hex()[:20]]) == 0
    text = capsys.readouterr().out
    for row in rows:
        if isinstance(row, EventsRecord):
            assert all(line in text for line in row.events.split("\n"))
        if isinstance(row, DecisionRecord):
            assert f"▸ {row.notation}" in text
    assert "fallback: late" in text
    assert "reason: drawn at random" in text
    assert "hands 0: " in text
    assert re.findall(r"seat (\d): .*, away: the lobby may have moved", text) == ["1"]
    assert "warning" not in text
    assert text.index("deal 0") < text.index("▸") < text.index("reveal")


def test_the_same_as_json(config, hands, capsys):
    assert main(["games", "show", hands[0][0].game_id.hex(), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    logged = [row for row in hands[0] if isinstance(row, DecisionRecord)]
    assert [item["id"] for item in found["decisions"]] == [row.id.hex() for row in logged]
    assert all(sum(action["chosen"] for action in item["actions"]) == 1 for item in found["decisions"])
    assert found["deal"]["hands"]
    assert found["problems"] == [] and found["away"] == []
    assert found["decisions"][0]["outcomes"] == [{"kind": "sent", "detail": None}]


def test_a_damaged_log_is_said_to_be_so(config, hands, capsys):
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(config.parent / "log.db")) as db:
        db.execute("DELETE FROM events WHERE game_id = ? AND seq > 0", (hands[0][0].game_id,))
        db.execute("UPDATE games SET game = 'unheard-of' WHERE game_id = ?", (hands[2][0].game_id,))
        db.commit()
    assert main(["games", "show", hands[0][0].game_id.hex()]) == 0
    assert "is not logged" in capsys.readouterr().out
    assert main(["games", "show", hands[2][0].game_id.hex()]) == 0
    text = capsys.readouterr().out
    assert "not installed" in text
    assert "\x1b[31m" not in text


@pytest.mark.parametrize(
    ("prefix", "word"), [("ffff", "no hand"), ("018", "several"), ("xyz", "not an id"), ("", "not an id")]
)
def test_ids_that_name_no_hand_or_several(config, capsys, prefix, word):
    assert main(["games", "show", prefix]) == 2
    error = capsys.readouterr().err
    assert word in error
    assert "fix:" in error


def _add(*hands):
    async def fill() -> None:
        log = DecisionLog.open(load().store, "test", load().host.data_dir / "spool")
        for rows in hands:
            await log.submit(rows)
        await log.aclose()

    asyncio.run(fill())


def test_several_seats_of_one_hand_are_no_ambiguity(config, capsys):
    game = rules.game("doudizhu")
    seats = [played_hand(game, 9, seat=seat, started_us=1_800_000_000_000_000) for seat in range(2)]
    prefix = seats[0][0].game_id[:12]
    for seat, rows in enumerate(seats):
        game_id = prefix + bytes([seat]) + rows[0].game_id[13:]
        for row in rows:
            if hasattr(row, "game_id"):
                row.game_id = game_id
    _add(*seats)
    capsys.readouterr()
    assert main(["games", "show", prefix.hex()]) == 0
    assert seats[0][0].table in capsys.readouterr().out
    assert main(["games", "show", prefix.hex(), "--json"]) == 0
    assert [item["seat"] for item in json.loads(capsys.readouterr().out)] == [0, 1]
    _add(played_hand(game, 10, seat=0, started_us=1_799_999_999_000_000))
    assert main(["games", "show", prefix.hex()[:5]]) == 2
    named = re.findall(r"[0-9a-f]{32}", capsys.readouterr().err)
    assert len(named) == 2 and sum(name.startswith(prefix.hex()) for name in named) == 1, "each hand once"


def test_a_beginning_of_several_decisions_is_not_replayed(config, hands, capsys):
    first, second = [row.id.hex() for row in hands[0] if isinstance(row, DecisionRecord)][:2]
    assert main(["replay", first[:8]]) == 2
    error = capsys.readouterr().err
    assert "several decisions begin with" in error and first in error and second in error
    assert main(["replay", first, "--model", "first-legal"]) == 0
    assert first in capsys.readouterr().out


def test_a_strategy_of_another_game_cannot_replay_a_hand(config, hands, capsys):
    assert main(["replay", hands[0][0].game_id.hex(), "--model", "rule-mahjong"]) == 2
    assert "rule-mahjong does not play doudizhu" in capsys.readouterr().err
    since = ("--all-since", "2020-01-01", "--strategy", "rule-doudizhu")
    assert main(["replay", *since, "--model", "rule-mahjong"]) == 0
    assert capsys.readouterr().out == "no decisions\n"


def test_a_player_is_forgotten_in_the_log_and_in_exports(config, hands, capsys, tmp_path):
    out = tmp_path / "exports"
    assert main(["export", "--out", str(out), "--no-view-json"]) == 0
    player = json.loads(hands[0][0].players)[1]["player"]
    mine = {rows[0].game_id.hex() for rows in hands if player in rows[0].players}
    capsys.readouterr()
    assert main(["games", "forget", f"{player}x", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["hands"] == 0 and f"did you mean {player!r}?" in printed.err
    assert main(["games", "forget", player, "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["hands"] == len(mine) >= 1 and not found["deleted"] and not printed.err
    assert main(["games", "forget", player, "--exports", str(out), "--yes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["deleted"] and found["rows_in_exports"][str(out)] > 0
    assert json.loads((out / "meta" / "info.json").read_text())["forgotten_hands"] >= 1
    assert main(["games", "list", "--player", player]) == 0
    assert capsys.readouterr().out == "no hands\n"
    assert main(["games", "list", "--json"]) == 0
    assert {item["id"] for item in json.loads(capsys.readouterr().out)} == {
        rows[0].game_id.hex() for rows in hands
    } - mine
    assert main(["db", "status", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    left = [row for rows in hands if rows[0].game_id.hex() not in mine for row in rows]
    assert counts["decisions"] == sum(isinstance(row, DecisionRecord) for row in left)
    assert counts["outcomes"] == sum(type(row).__name__ == "OutcomeRecord" for row in left)


def test_a_hand_at_which_two_of_our_bots_sat_is_forgotten_as_one(config, capsys):
    game, at = rules.game("doudizhu"), 1_800_000_000_000_000
    seats = [played_hand(game, seat, seat=seat, account=f"bot-{seat}", started_us=at) for seat in (0, 1)]
    for rows in seats:
        rows[0].table, rows[0].players = "table-7", json.dumps([{"player": "wang", "seat": 2}])
    _add(*seats)
    assert main(["games", "list", "--player", "wang", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 1
    assert main(["games", "forget", "wang"]) == 0
    assert capsys.readouterr().out == "1 hand would be deleted: add --yes\n"
    assert main(["games", "forget", "wang", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hands"] == 1
    assert main(["games", "list", "--player", "wang"]) == 0
    assert capsys.readouterr().out == "no hands\n"


def test_a_consent_of_nobody_is_recorded_with_a_warning(config, hands, capsys):
    """A revocation with a typing error would leave the player's consent as it is."""
    game = hands[0][0]
    player = next(each["player"] for each in json.loads(game.players) if each["seat"] != game.seat)
    with closing(sqlite3.connect(config.with_name("log.db"))) as log, log:
        log.execute("UPDATE games SET players = ?", [json.dumps([{"player": player, "name": "Bob", "seat": 9}])])

    def warned(name):
        assert main(["games", "consent", name, "--lobby", game.lobby, "--revoke"]) == 0
        return capsys.readouterr().err

    assert warned(player) == warned(game.account) == ""
    err = warned(f"{player}x")
    assert f"no logged hand at {game.lobby} has a player {player}x; did you mean" in err
    assert warned(f"{player}x") == "", "it is known now"
    assert f"repeat this with the id {player}" in warned("Bob")


def test_consent_is_recorded_listed_revoked_and_forgotten(config, hands, capsys):
    def told(*args):
        code = main(["games", *args])
        out, err = capsys.readouterr()
        return code, out, err

    assert told("consent")[1] == "no consent is recorded\n"
    code, _, err = told("consent", "guest-7")
    assert code == 2 and "which lobby?" in err and "--lobby" in err
    away = '[[lobby]]\nname = "away"\nadapter = "embedded"\nurl = "ws://127.0.0.1:1/ws"\n'
    before = config.read_text()
    config.write_text(before + away.replace("away", "home"))
    code, out, _ = told("consent", "guest-7", "--reason", "a letter")
    assert code == 0 and re.search(r"guest-7 +home +granted +20\d\d-.* +a letter\n", out)
    assert told("consent", "evil\x1b[31m", "--lobby", "home")[0] == 2
    code, _, err = told("consent", "guest-8", "--lobby", "hom", "--revoke")
    assert code == 2 and "no lobby 'hom'" in err and "did you mean 'home'?" in err
    config.write_text(before + away)
    assert told("consent", "guest-8", "--lobby", "away", "--revoke")[0] == 0
    assert told("consent", "guest-7", "--lobby", "home")[0] == 0, "the log has hands of this lobby"
    config.write_text(before + away.replace("away", "home"))
    found = json.loads(told("consent", "--json")[1])
    assert [(one["player"], one["lobby"], one["kind"]) for one in found] == [
        ("guest-8", "away", "revoked"),
        ("guest-7", "home", "granted"),
    ]
    assert [one["player"] for one in json.loads(told("consent", "--lobby", "home", "--json")[1])] == ["guest-7"]
    assert told("consent", "guest-7", "--revoke")[0] == 0
    assert "revoked" in told("consent", "--lobby", "home")[1]
    assert told("consent", "--revoke")[0] == 2
    assert told("forget", "guest-7")[0] == 0
    assert len(json.loads(told("consent", "--json")[1])) == 2
    assert told("forget", "guest-7", "--yes")[0] == 0
    assert [one["player"] for one in json.loads(told("consent", "--json")[1])] == ["guest-8"]
