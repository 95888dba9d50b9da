"""After ``games forget`` no file holds the player: each is read as raw bytes."""

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bothost import cli
from bothost.config import StoreSettings
from bothost.errors import StoreError
from bothost.store import Store, consent, erase
from bothost.store.decision_log import chunks_of
from bothost.store.models import COLUMNS
from bothost.store.spool import Spool
from bothost.testing.sample_rows import sample_hand, write_rows

PLAYER, SHOWN, KEPT = "guest-mallory", "Mällory Ψ", "guest-mallory-2"
OLD = 1_700_000_000_000_000
SPELLINGS = [PLAYER.encode(), SHOWN.encode(), json.dumps(SHOWN)[1:-1].encode()]


def hand(rng: random.Random, player: str, shown: str):
    rows = sample_hand(rng, started_us=OLD)
    players = [{"player": "ada", "seat": 0}, {"player": player, "name": shown, "seat": 1}]
    rows[0].players = json.dumps(players, ensure_ascii=False)
    return rows


def holders(folder: Path) -> set[str]:
    """The files that name the player. The other player's name begins with the same letters."""
    found = set()
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes().replace(KEPT.encode(), b"")
            if any(spelling in content for spelling in SPELLINGS):
                found.add(str(path.relative_to(folder)))
    return found


@pytest.fixture
def site(tmp_path):
    """A host that met the player: in its log, spool, memos, exports and log files."""
    config = tmp_path / "config.toml"
    config.write_text(
        '[host]\ndata_dir = "var"\n[store]\nurl = "sqlite:///log.db"\n[log]\nfile = "host.log"\n'
        '[[lobby]]\nname = "home"\nadapter = "embedded"\nurl = "ws://127.0.0.1:1/ws"\n'
    )
    assert cli.main(["db", "upgrade", "--config", str(config)]) == 0
    settings = StoreSettings(url=f"sqlite:///{tmp_path}/log.db")
    rng = random.Random(3)
    stays = [hand(rng, KEPT, "Other") for _ in range(30)]
    goes = [hand(rng, PLAYER, SHOWN) for _ in range(30)]
    write_rows(settings, tmp_path / "var", [rows for pair in zip(goes, stays, strict=True) for rows in pair])
    out = tmp_path / "exports"
    named = ["--player", PLAYER, "--player", KEPT]
    assert cli.main(["export", "--out", str(out), "--no-view-json", *named, "--config", str(config)]) == 0

    spool = Spool(tmp_path / "var" / "spool" / "local%2e1", COLUMNS)
    of_worker = Spool(tmp_path / "var" / "worker-2" / "spool" / "local%2e1-2", COLUMNS)
    for each in (spool, of_worker):
        each.append({table: rows for table, _, rows in chunks_of(hand(rng, PLAYER, SHOWN))})
    of_worker.close()
    spool.keep_rejected([f"games no such column: {[PLAYER, SHOWN, 3]!r}"])
    spool.close()
    (tmp_path / "var" / "spool" / "local%2e1" / "0" / "0000000000000000.damaged").write_bytes(b"\x93" + PLAYER.encode())
    begun = tmp_path / "var" / "retrain" / "fm-clone-1" / "request.json"  # interrupted before its dataset was begun
    begun.parent.mkdir(parents=True)
    begun.write_text(json.dumps({"strategy": "fm-clone", "query": {"players": [PLAYER]}, "options": {}}))
    (tmp_path / "var" / "play" / "room").mkdir(parents=True)
    for name in ("host.log", "host.log.1", "host-2.log", "host-2.log.3", "var/play/room/host-1.log"):
        lines = [{"event": "hand_began", "players": [PLAYER, KEPT]}, {"event": f"said\n{SHOWN}: hi"}]
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Store.open(settings) as store:
        store.remember("home", "ada", {"asked": {"table-1": {"by": PLAYER}}})
        store.remember("home", "bob", {"asked": {"table-2": {"by": KEPT}}})
        consent.record(store, "home", PLAYER, granted=True)
        consent.record(store, "home", KEPT, granted=True)
    return tmp_path, settings, config


def test_no_file_names_a_forgotten_player(site, capsys):
    folder, settings, config = site
    # A connection that stays open keeps the write-ahead log, as a running host does.
    with closing(sqlite3.connect(folder / "log.db")) as host:
        host.execute("SELECT count(*) FROM games").fetchone()
        assert cli.main(["db", "status", "--config", str(config)]) == 0
        host.execute("UPDATE games SET attributes = '{\"x\":1}' WHERE players LIKE ?", (f"%{PLAYER}%",))
        host.commit()
        before = holders(folder)
        assert {"log.db", "log.db-wal", "host.log", "host-2.log.3", "exports/meta/info.json"} <= before
        assert {Path(name).suffix for name in before} >= {".spool", ".damaged", ".parquet"}
        capsys.readouterr()
        words = ["games", "forget", PLAYER, "--exports", str(folder / "exports"), "--yes", "--json"]
        assert cli.main([*words, "--config", str(config)]) == 0
        done = json.loads(capsys.readouterr().out)
        assert done["hands"] == 32 and len(done["masked"]) == 7
        assert holders(folder) == set()
    assert holders(folder) == set()
    with Store.open(settings) as store:
        assert store.memo("home", "ada") == {} and store.memo("home", "bob")
        assert list(consent.recorded(store)) == [("home", KEPT)]
    lines = [json.loads(line) for line in (folder / "host.log").read_text().splitlines()]
    assert lines[0]["players"] == ["-" * len(PLAYER), KEPT], "the rest of a line stays"
    exported = json.loads((folder / "exports" / "meta" / "info.json").read_text())
    assert exported["query"]["players"] == ["forgotten", KEPT] and exported["forgotten_hands"] == 30
    with closing(sqlite3.connect(folder / "log.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("SELECT count(*) FROM games").fetchone() == (30,)


def test_nothing_is_deleted_while_rows_wait_in_a_running_hosts_spool(site, capsys):
    folder, settings, config = site
    running = Spool(folder / "var" / "spool" / "local%2e1", COLUMNS)
    try:
        assert cli.main(["games", "forget", PLAYER, "--yes", "--config", str(config)]) == 2
        assert "stop it" in capsys.readouterr().err
        with Store.open(settings) as store, store.begin() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM games").scalar() == 61, "with the worker's"
    finally:
        running.close()


def test_a_reader_that_holds_the_log_is_reported(site, monkeypatch):
    folder, settings, _ = site
    monkeypatch.setattr(erase, "WAIT_S", 0.2)
    with closing(sqlite3.connect(folder / "log.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM games").fetchone()
        with pytest.raises(StoreError, match="another process reads"):
            erase.rewrite_database(settings)
    erase.rewrite_database(settings)
    assert (folder / "log.db-wal").exists() is False or (folder / "log.db-wal").stat().st_size == 0


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"by": "12", "n": 112}', '{"by": "--", "n": 112}'),
        ("by 12: 3.12", "by --: 3.--"),
        ("twelve\\n12 left", "twelve\\n-- left"),
        ("a12 12b 12_", "a12 12b 12_"),
    ],
)
def test_names_are_masked_as_whole_words(tmp_path, text, left):
    file = tmp_path / "host.log"
    file.write_text(text)
    erase.mask_files({"12"}, [file, tmp_path / "missing"])
    assert file.read_text() == left


def test_an_export_carries_the_consent_of_now_and_that_of_the_hand(site):
    folder, settings, config = site
    with Store.open(settings) as store:
        consent.record(store, "home", "ada", granted=False)
        consent.record(store, "away", "bob", granted=False)
    rng = random.Random(5)
    hands = [sample_hand(rng, started_us=OLD, account=account) for account in ("ada", "ada", "bob")]
    for rows, mark in zip(hands, (True, None, True), strict=True):
        rows[0].players = json.dumps(
            [{"player": rows[0].account, "seat": 0} | ({} if mark is None else {"consents": mark})]
        )
    write_rows(settings, folder / "var", hands)
    out = folder / "new"
    assert cli.main(["export", "--out", str(out), "--format", "jsonl", "--no-view-json", "--config", str(config)]) == 0
    exported = {}
    for line in (out / "data" / "part-00000.jsonl").read_text().splitlines():
        row = json.loads(line)
        exported[row.get("game_id")] = (row.get("consents"), row.get("consented"))
    found = [exported[rows[0].game_id.hex()] for rows in hands]
    assert found == [(False, True), (False, None), (True, True)], "what was recorded at this lobby counts"
