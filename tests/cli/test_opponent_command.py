"""``bothost opponent``: notes, and where they are shown."""

import asyncio
import json

import pytest

from bothost import rules
from bothost.cli import main
from bothost.config import load
from bothost.store import DecisionLog, Store, notes
from bothost.store.records import ChatRecord
from bothost.testing.sample_rows import played_hand

CONFIG = """
[store]
url = "sqlite:///log.db"
[[lobby]]
name = "home"
adapter = "embedded"
url = "ws://127.0.0.1:1/ws"
"""


@pytest.fixture
def hand(tmp_path, monkeypatch, capsys):
    (tmp_path / "config.toml").write_text(CONFIG)
    monkeypatch.setenv("BOTHOST_CONFIG", str(tmp_path / "config.toml"))
    assert main(["db", "upgrade"]) == 0
    rows = played_hand(rules.game("doudizhu"), 3, seat=0, started_us=1_700_000_000_000_000)
    game = rows[0]
    game.lobby = "home"
    game.players = json.dumps(
        [{"player": name, "seat": at, "name": name} for at, name in enumerate(("ada", "bob", "cyd"))]
    )
    rows.append(ChatRecord(b"c" * 16, game.game_id, game.seat, "bob", "well played \x1b[31m", game.started_us + 1))

    async def fill():
        log = DecisionLog.open(load().store, "test", tmp_path / "spool")
        await log.submit(rows)
        await log.aclose()

    asyncio.run(fill())
    capsys.readouterr()
    return game.game_id.hex()


def out(capsys, *argv):
    assert main(list(argv)) == 0
    return capsys.readouterr().out


def test_a_note_is_kept_and_shown_with_the_hands(hand, capsys):
    assert "slow in the endgame" in out(capsys, "opponent", "note", "bob", "slow in the endgame")
    assert out(capsys, "opponent", "note", "bob", "\x1b[31mbluffs").count("\n") == 3
    listed = json.loads(out(capsys, "opponent", "list", "--json"))
    assert [(note["player"], note["number"], note["lobby"]) for note in listed] == [
        ("bob", 1, "home"),
        ("bob", 2, "home"),
    ]
    for argv in (["games", "list", "--opponent", "bob"], ["games", "show", hand], ["games", "show", hand, "--events"]):
        shown = out(capsys, *argv)
        assert "note about bob at home: slow in the endgame" in shown and "\x1b" not in shown
    assert "note about" not in out(capsys, "games", "list", "--opponent", "cyd")
    assert json.loads(out(capsys, "games", "show", hand, "--json"))[0]["notes"][0]["text"] == "slow in the endgame"


def test_what_was_said_is_shown_as_text(hand, capsys):
    for argv in (["games", "show", hand], ["games", "show", hand, "--events"]):
        shown = out(capsys, *argv)
        assert "bob: well played" in shown and "\x1b" not in shown
    assert json.loads(out(capsys, "games", "show", hand, "--json"))[0]["chat"][0]["player"] == "bob"


def test_a_note_is_deleted_by_its_number_and_with_the_player(hand, capsys):
    for text in ("one", "two"):
        out(capsys, "opponent", "note", "bob", text)
    assert "one" not in out(capsys, "opponent", "note", "bob", "--delete", "1")
    assert main(["opponent", "note", "bob", "--delete", "1"]) == 2
    assert "no note 1 about bob" in capsys.readouterr().err
    out(capsys, "games", "forget", "bob", "--yes")
    with Store.open(load().store) as store:
        assert notes.listed(store) == []
        with store.begin() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM chat").scalar() == 0


@pytest.mark.parametrize(
    "argv", [["bob", ""], ["bob", "x" * 2001], ["bob", "text", "--delete", "1"], ["bob", "text", "--lobby", "hom"]]
)
def test_what_is_no_note_is_refused(hand, capsys, argv):
    assert main(["opponent", "note", *argv]) == 2
    assert "fix:" in capsys.readouterr().err
