"""Hands taken out of finished exports: the files without them, and a manifest that is true again."""

import json

import duckdb
import pyarrow.parquet as pq
import pytest

from bothost.errors import UsageError
from bothost.export.botzone import export_matches
from bothost.export.forget import forget
from bothost.export.job import export
from bothost.export.jsonl import JsonLinesExporter
from bothost.export.minari import export_episodes
from bothost.export.options import ExportOptions
from bothost.export.parquet import ParquetExporter
from bothost.plugins.weights import sha256_of
from bothost.store.query import HandQuery

SCORED = HandQuery(scored=True)


@pytest.fixture(params=[ParquetExporter, JsonLinesExporter])
def exported(request, store, tmp_path):
    options = ExportOptions(hands_per_file=7)
    export(store, SCORED, tmp_path / "out", request.param(), options)
    return tmp_path / "out"


def info(folder):
    return json.loads((folder / "meta" / "info.json").read_text())


def game_ids(folder):
    reader = "read_parquet" if info(folder)["format"] == "parquet" else "read_json"
    query = f"SELECT game_id, count(*) FROM {reader}('{folder}/data/*') GROUP BY 1"
    return dict(duckdb.sql(query).fetchall())


def test_the_rows_of_the_hands_go_and_the_manifest_says_so(exported):
    before, rows = info(exported), game_ids(exported)
    gone = sorted(rows)[3:9]
    assert forget(exported, [bytes.fromhex(key) for key in gone]) == sum(rows[key] for key in gone)
    after = info(exported)
    assert game_ids(exported) == {key: count for key, count in rows.items() if key not in gone}
    assert after["rows"] == sum(game_ids(exported).values()) == sum(after["splits"].values())
    assert after["hands"] == before["hands"] - 6 and after["forgotten_hands"] == 6
    for entry in after["files"]:
        assert entry["sha256"] == sha256_of(exported / entry["file"])
        assert entry["bytes"] == (exported / entry["file"]).stat().st_size
    assert {k: v for k, v in after.items() if k in ("query", "schema", "columns")} == {
        k: v for k, v in before.items() if k in ("query", "schema", "columns")
    }
    assert not list(exported.rglob(".*"))


def test_files_without_them_are_left_as_they_are_and_again_changes_nothing(exported):
    before = {path: path.read_bytes() for path in exported.rglob("*") if path.is_file()}
    assert forget(exported, [bytes(16)]) == 0
    assert {path: path.read_bytes() for path in exported.rglob("*") if path.is_file()} == before
    gone = [bytes.fromhex(sorted(game_ids(exported))[0])]
    assert forget(exported, gone) > 0
    once = {path: path.read_bytes() for path in exported.rglob("*") if path.is_file()}
    assert forget(exported, gone) == 0
    assert {path: path.read_bytes() for path in exported.rglob("*") if path.is_file()} == once


@pytest.mark.parametrize("exporter", [ParquetExporter, JsonLinesExporter])
def test_the_query_loses_the_names_and_the_rest_of_the_manifest_stays(store, played, tmp_path, exporter):
    guests = sorted({p["player"] for rows in played for p in json.loads(rows[0].players)} - {"ada", "bob"})
    query = HandQuery(scored=True, players=("ada", "bob"), opponents=tuple(guests))
    export(store, query, tmp_path / "out", exporter(), ExportOptions())
    before = info(tmp_path / "out")
    forget(tmp_path / "out", [bytes.fromhex(sorted(game_ids(tmp_path / "out"))[0])], ["ada", guests[0]])
    after = info(tmp_path / "out")
    assert after["query"]["players"] == ["forgotten", "bob"]
    assert after["query"]["opponents"] == ["forgotten", *guests[1:]]
    (part,) = (tmp_path / "out" / "data").iterdir()
    if exporter is ParquetExporter:
        footer = pq.read_metadata(part).metadata
        assert json.loads(footer[b"bothost.query"]) == after["query"]
        contents = json.loads(footer[b"bothost.contents"])
        assert (contents["rows"], contents["splits"]) == (after["rows"], after["splits"])
        assert contents["encoders"] == [list(each.values()) for each in before["encoders"]]


def test_all_hands_of_a_file_may_go_and_it_can_still_be_read(exported):
    keys = [bytes.fromhex(key) for key in game_ids(exported)]
    forget(exported, keys)
    assert info(exported)["rows"] == 0 and info(exported)["hands"] == 0
    for entry in info(exported)["files"]:
        if entry["file"].endswith(".parquet"):
            assert pq.read_table(exported / entry["file"]).num_rows == 0


@pytest.mark.parametrize("damage", ["none", "json", "outside"])
def test_what_is_no_export_is_not_touched(tmp_path, damage):
    (tmp_path / "meta").mkdir()
    if damage == "json":
        (tmp_path / "meta" / "info.json").write_text("[]")
    if damage == "outside":
        (tmp_path / "secret").write_text("{}")
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "secret").symlink_to(tmp_path / "secret")
        entry = {"file": "../secret", "rows": 1}
        (tmp_path / "meta" / "info.json").write_text(json.dumps({"format": "jsonl", "files": [entry]}))
    with pytest.raises(UsageError):
        forget(tmp_path, [bytes(16)])


def test_an_export_that_cannot_be_changed_is_named_with_what_to_do(store, tmp_path):
    pytest.importorskip("minari")
    pytest.importorskip("h5py")
    export_matches(store, SCORED, tmp_path / "botzone")
    export_episodes(store, SCORED, tmp_path / "minari")
    for kind in ("botzone", "minari"):
        with pytest.raises(UsageError, match=f"holds an export in the format {kind}, from which") as caught:
            forget(tmp_path / kind, [bytes(16)])
        assert "delete that folder" in caught.value.advice and "export again" in caught.value.advice


def test_an_unfinished_export_is_named(tmp_path):
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "plan.json").write_text("{}")
    with pytest.raises(UsageError, match="holds an unfinished export"):
        forget(tmp_path, [bytes(16)])


def test_a_damaged_file_is_named_and_left_as_it_is(exported):
    path = exported / info(exported)["files"][0]["file"]
    path.write_bytes(path.read_bytes()[:-20])
    before = path.read_bytes()
    with pytest.raises(UsageError, match=f"{path.name} is damaged"):
        forget(exported, [bytes(16)])
    assert path.read_bytes() == before and len(list(path.parent.iterdir())) == len(info(exported)["files"])
