"""Exports: every decision of a closed hand once, readable by everybody, the same bytes after any interruption."""

import copy
import errno
import fcntl
import json
import os
import random
from collections import defaultdict
from pathlib import Path
from typing import ClassVar

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from bothost import rules
from bothost.errors import UsageError
from bothost.export import job
from bothost.export import rows as exported_rows
from bothost.export.folder import aside
from bothost.export.job import export
from bothost.export.jsonl import JsonLinesExporter
from bothost.export.minari import export_episodes
from bothost.export.options import ExportOptions
from bothost.export.parquet import ParquetExporter
from bothost.plugins.weights import sha256_of
from bothost.retrain.dataset import Dataset
from bothost.store import DecisionRecord, OutcomeRecord, Store
from bothost.store.query import HandQuery
from bothost.testing.sample_rows import played_hand, write_rows

SCORED = HandQuery(scored=True)


def exported(out: Path):
    """The exported rows. Pandas is imported by the processes alone that need it: each process collects all tests."""
    import pandas as pd

    return pd.read_parquet(out / "data")


def run(store, out: Path, exporter=None, query=SCORED, **options) -> dict:
    chosen = ExportOptions(**{"hands_per_file": 7, **options})
    return export(store, query, out, exporter or ParquetExporter(), chosen)


def decisions(hands) -> list[DecisionRecord]:
    return [row for rows in hands for row in rows if isinstance(row, DecisionRecord)]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_every_decision_of_closed_hands_is_there_once_with_its_values(store, played, tmp_path):
    info = run(store, tmp_path / "out")
    expected = decisions(played[2:])
    found = exported(tmp_path / "out")
    assert info["rows"] == len(found) == len(expected)
    assert list(found["id"]) == [d.id.hex() for d in expected]
    for row, logged in zip(found.itertuples(), expected, strict=True):
        assert row.game_id == logged.game_id.hex()
        assert row.view == logged.view
        assert row.legal.tobytes() == logged.legal
        assert row.policy.tobytes() == logged.policy
        assert row.action_values is None
        assert (row.seat, row.seq, row.action, row.notation) == (
            logged.seat,
            logged.seq,
            logged.action,
            logged.notation,
        )
        assert row.state_hash == logged.state_hash
        assert row.at.value // 1000 == logged.at_us
        assert json.loads(row.view_json) == rules.game("doudizhu").view_from_bytes(logged.view).to_json()
    assert found["rejected"].sum() == 1
    assert found.loc[found["rejected"], "id"].item() == played[2][2].id.hex()


def test_outcome_and_player_are_those_of_the_seat(store, played, tmp_path):
    run(store, tmp_path / "out")
    found = exported(tmp_path / "out").groupby("game_id")
    for rows in played[2:]:
        game, scores = rows[0], json.loads(next(r.scores for r in rows if hasattr(r, "scores")))
        mine = found.get_group(game.game_id.hex())
        assert set(mine["outcome"]) == {np.float32(scores[game.seat])}
        assert set(mine["player"]) == {game.account}
        assert [p["player"] for p in json.loads(game.players) if p["seat"] != game.seat] == list(
            mine["opponents"].iloc[0]
        )


def test_who_was_away_is_told_where_it_was_recorded(store, played, tmp_path):
    run(store, tmp_path / "out")
    import polars as pl

    found = pl.read_parquet(f"{tmp_path}/out/data/*.parquet").group_by("game_id").agg(pl.col("away").unique())
    away = dict(found.iter_rows())
    assert [away[rows[0].game_id.hex()] for rows in played[2:6]] == [[None], [[]], [[0, 2]], [None]]
    run(store, tmp_path / "lines", JsonLinesExporter())
    lines = [line for p in sorted((tmp_path / "lines" / "data").iterdir()) for line in p.read_text().splitlines()]
    assert {row["game_id"]: [row["away"]] for row in map(json.loads, lines)} == away


def test_polars_duckdb_and_pandas_read_the_same(store, tmp_path):
    import polars as pl

    info = run(store, tmp_path / "out")
    pattern = f"{tmp_path}/out/data/*.parquet"
    frame = pl.read_parquet(pattern)
    assert frame.height == info["rows"]
    assert frame["legal"].dtype == pl.List(pl.Int32)
    counted = duckdb.sql(f"SELECT split, count(*), sum(len(legal)) FROM '{pattern}' GROUP BY split ORDER BY split")
    by_split = frame.group_by("split").agg(pl.len().alias("n"), pl.col("legal").list.len().sum()).sort("split")
    assert counted.fetchall() == by_split.rows()
    assert dict((row[0], row[1]) for row in counted.fetchall()) == info["splits"]
    matrix = np.stack(exported(tmp_path / "out")["view"].map(len).to_numpy())
    assert matrix.min() > 0


def test_the_manifest_is_in_the_folder_and_in_every_footer(store, tmp_path):
    info = run(store, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "meta" / "info.json").read_text()) == info
    assert sorted(p.name for p in (tmp_path / "out" / "meta").iterdir()) == ["info.json"]
    assert info["hands"] == 28
    assert len(info["files"]) == 4
    blocks = {name: block.version for name, block in rules.game("doudizhu").blocks.items()}
    assert info["games"]["doudizhu"]["blocks"] == blocks
    for file in info["files"]:
        path = tmp_path / "out" / file["file"]
        assert sha256_of(path) == file["sha256"]
        footer = pq.read_metadata(path)
        assert footer.num_rows == file["rows"]
        assert json.loads(footer.metadata[b"bothost.query"]) == json.loads(json.dumps(info["query"]))
        assert json.loads(footer.metadata[b"bothost.contents"])["rows"] == file["rows"]
        assert footer.row_group(0).column(0).compression == "ZSTD"


def test_a_hand_is_in_one_split_and_shares_are_kept(store, tmp_path):
    run(store, tmp_path / "out")
    found = exported(tmp_path / "out")
    assert found.groupby("game_id")["split"].nunique().eq(1).all()
    options = ExportOptions(split=(0.7, 0.2, 0.1))
    drawn = [options.split_of("home", f"table-{i}", "1") for i in range(4000)]
    assert [drawn.count(s) / 4000 for s in ("train", "val", "test")] == pytest.approx([0.7, 0.2, 0.1], abs=0.03)


class Killed(BaseException):
    """As a kill, it runs past every handler of errors."""


@pytest.mark.parametrize("exporter", [ParquetExporter, JsonLinesExporter])
def test_an_interrupted_export_ends_with_the_same_bytes(store, tmp_path, exporter, monkeypatch):
    monkeypatch.setattr(job.time, "time_ns", lambda: 10**18)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run(store, whole, exporter())
    rng = random.Random(2)

    class Dying(exporter):
        def write(self, file, schema, tables, metadata):
            super().write(file, schema, tables, metadata)
            if rng.random() < 0.6:
                file.flush()
                raise Killed

    for _ in range(50):
        try:
            run(store, broken, Dying())
            break
        except Killed:
            assert not (broken / "meta" / "info.json").exists()
    assert contents(broken) == contents(whole)


@pytest.mark.parametrize("nth", range(6))
def test_no_kill_leaves_the_key_of_pseudonyms_in_a_finished_export(store, tmp_path, monkeypatch, nth):
    out, unlink, gone = tmp_path / "out", Path.unlink, []

    def dying(path, missing_ok=False):
        if len(gone) == nth:
            raise Killed
        gone.append(path.name)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(job.time, "time_ns", lambda: 10**18)
    run(store, tmp_path / "whole", pseudonym_key="k")
    with monkeypatch.context() as context, pytest.raises(Killed):
        context.setattr(Path, "unlink", dying)
        run(store, out, pseudonym_key="k")
    plan = out / "meta" / "plan.json"
    assert plan.exists() != ("plan.json" in gone) and not (plan.exists() and (out / "meta" / "info.json").exists())
    assert not plan.exists() or plan.stat().st_mode & 0o077 == 0
    if not (out / "meta" / "info.json").exists():
        run(store, out, pseudonym_key="k")
    assert not plan.exists()
    assert {p.name: p.read_bytes() for p in (out / "data").iterdir()} == {
        p.name: p.read_bytes() for p in (tmp_path / "whole" / "data").iterdir()
    }


def test_a_full_disk_is_named(store, tmp_path):
    class Full(ParquetExporter):
        def write(self, *_):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OSError) as caught:
        run(store, tmp_path / "out", Full())
    assert caught.value.filename == str(tmp_path / "out" / "data" / "part-00000.parquet")
    assert list((tmp_path / "out" / "data").iterdir()) == [], "the space is free again"


@pytest.mark.parametrize(
    ("plan", "why"), [("{", "plan.json is damaged"), ("3", "plan.json is damaged"), ("{}", "another")]
)
def test_a_plan_that_cannot_be_read_is_named(store, tmp_path, plan, why):
    (tmp_path / "out" / "data").mkdir(parents=True)
    (tmp_path / "out" / "meta").mkdir()
    (tmp_path / "out" / "meta" / "lock").touch()
    (tmp_path / "out" / "meta" / "plan.json").write_text(plan)
    with pytest.raises(UsageError, match=why):
        run(store, tmp_path / "out")


def test_an_unfinished_export_is_not_mixed_with_another(store, tmp_path):
    class Dying(ParquetExporter):
        def write(self, *_):
            raise Killed

    with pytest.raises(Killed):
        run(store, tmp_path / "out", Dying())
    with pytest.raises(UsageError, match="of another request"):
        run(store, tmp_path / "out", rllib=True)
    run(store, tmp_path / "out")


def test_an_export_that_ended_while_another_began_is_not_overwritten(store, tmp_path, monkeypatch):
    out = tmp_path / "out"
    lock = fcntl.flock

    def ended_meanwhile(file: int, how: int) -> None:
        (out / "meta" / "info.json").write_text("{}")
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", ended_meanwhile)
    with pytest.raises(UsageError, match="finished export already"):
        run(store, out)
    assert (out / "meta" / "info.json").read_text() == "{}" and not [*(out / "data").iterdir()]


def test_two_that_write_one_file_do_not_mix(tmp_path):
    path = tmp_path / "matches.jsonl"
    (tmp_path / ".matches.jsonl.partial").write_bytes(b"of a process that was killed")
    with aside(path) as first:
        first.write(b"one")
        first.flush()
        with pytest.raises(UsageError, match="another process writes"), aside(path):
            pass
        first.write(b" file")
    assert path.read_bytes() == b"one file" and [*tmp_path.iterdir()] == [path]


def test_foreign_folders_and_links_are_refused(store, tmp_path):
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("x")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("foreign", "file", "link"):
        with pytest.raises(UsageError) as caught:
            run(store, tmp_path / name)
        assert caught.value.advice
    run(store, tmp_path / "done")
    before = contents(tmp_path / "done")
    with pytest.raises(UsageError, match="finished"):
        run(store, tmp_path / "done")
    assert contents(tmp_path / "done") == before
    assert (tmp_path / "foreign" / "thesis.tex").read_text() == "years of work"
    assert list((tmp_path / "real").iterdir()) == []


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (HandQuery(players=("ada",), scored=True), lambda hands: hands[3::2]),
        (HandQuery(closed=True), lambda hands: hands[1:]),
        (HandQuery(games=("pairing",)), lambda hands: []),
        (HandQuery(until_us=1_700_000_000_000_000 + 5 * 60_000_000, scored=True), lambda hands: hands[2:5]),
    ],
)
def test_queries(store, played, tmp_path, query, rows):
    info = run(store, tmp_path / "out", query=query)
    assert info["rows"] == len(decisions(rows(played)))


def test_pseudonyms_hide_every_name_and_keep_who_is_who(store, played, tmp_path):
    run(store, tmp_path / "open")
    names = {p["player"] for rows in played for p in json.loads(rows[0].players)}
    query = HandQuery(scored=True, players=("ada", "bob"), opponents=tuple(sorted(names)))
    run(store, tmp_path / "hidden", pseudonym_key="k", query=query)
    shown, hidden = (exported(tmp_path / name) for name in ("open", "hidden"))
    pairs = defaultdict(set)
    for real, masked in zip(shown.itertuples(), hidden.itertuples(), strict=True):
        pairs[real.player].add(masked.player)
        for a, b in zip(real.opponents, masked.opponents, strict=True):
            pairs[a].add(b)
    assert all(len(masked) == 1 for masked in pairs.values())
    written = b"".join(path.read_bytes() for path in (tmp_path / "hidden").rglob("*") if path.is_file())
    assert b'"players"' in written, "the query is there"
    assert not [name for name in names if f'"{name}"'.encode() in written]
    assert names.isdisjoint([*hidden["account"], *hidden["player"]])
    with pytest.raises(UsageError):
        ExportOptions(raw=True, pseudonym_key="k")


def test_jsonl_has_one_object_per_decision(store, played, tmp_path):
    info = run(store, tmp_path / "out", JsonLinesExporter())
    lines = [line for p in sorted((tmp_path / "out" / "data").iterdir()) for line in p.read_text().splitlines()]
    assert len(lines) == info["rows"]
    row = json.loads(lines[0])
    logged = decisions(played[2:])[0]
    assert row["legal"] == np.frombuffer(logged.legal, "<i4").tolist()
    assert row["stats"] == {"reason": "drawn at random"}
    assert row["view_json"]["seat"] == logged.seat
    assert row["at"].endswith("Z")


def test_rllib_columns_are_transitions_of_what_was_played(store, played, tmp_path):
    run(store, tmp_path / "out", rllib=True)
    found = exported(tmp_path / "out")
    assert found.loc[found["rejected"], "eps_id"].isna().all()
    game = rules.game("doudizhu")
    for _, episode in found[~found["rejected"]].groupby("eps_id"):
        assert list(episode["t"]) == list(range(len(episode)))
        assert list(episode["terminateds"]) == [False] * (len(episode) - 1) + [True]
        assert not episode["truncateds"].any()
        assert episode["rewards"].sum() == episode["outcome"].iloc[0]
        for now, later in zip(episode["new_obs"].iloc[:-1], episode["obs"].iloc[1:], strict=True):
            assert np.array_equal(now, later)
        view = game.view_from_bytes(episode["view"].iloc[0])
        blocks = sorted(name for name, block in game.blocks.items() if block.of == "view")
        assert np.array_equal(episode["obs"].iloc[0], np.concatenate([view.encode(b).ravel() for b in blocks]))
        row = episode.iloc[0]
        assert row["action_prob"] == pytest.approx(1 / len(row["legal"]))


@pytest.mark.parametrize("logged", [-0.5, 7.5, float("nan"), float("inf")])
def test_what_a_plugin_logged_as_a_probability_may_be_none(settings, tmp_path, logged):
    rows = played_hand(rules.game("doudizhu"), 1, started_us=10**15)
    for row in decisions([rows])[1:]:
        row.policy = np.full(len(row.legal) // 4, logged, "<f4").tobytes()
    write_rows(settings, tmp_path, [rows])
    with Store.open(settings) as store:
        run(store, tmp_path / "out", rllib=True)
    found = exported(tmp_path / "out")
    assert found["action_prob"].notna().tolist() == [True] + [False] * (len(found) - 1)
    assert found["action_logp"].notna().tolist() == found["action_prob"].notna().tolist()


@pytest.mark.parametrize("why", ["replaced", "server_acted", "superseded", "a shadow's"])
def test_a_move_that_was_not_played_is_in_no_transition_and_no_trajectory(settings, tmp_path, why):
    rows = played_hand(rules.game("doudizhu"), 1, started_us=10**15)
    made = decisions([rows])
    if why in ("server_acted", "superseded"):  # not every lobby reports whom it moved for
        dropped = made.pop(1)
        rows.append(OutcomeRecord(dropped.id, why, None, dropped.at_us))
    else:  # the lobby asked again before the first answer was sent, or a shadow decided
        dropped = copy.copy(made[1])
        dropped.id = bytes(16)
        made[1].attempt, dropped.role = (1, "live") if why == "replaced" else (0, "shadow")
        rows.append(dropped)
    write_rows(settings, tmp_path, [rows])
    with Store.open(settings) as store:
        run(store, tmp_path / "out", rllib=True)
        found = exported(tmp_path / "out")
        for columns in (found["eps_id"].isna(), ~found["played"]):
            assert found.loc[columns, "id"].tolist() == [dropped.id.hex()]
        assert found["t"].dropna().tolist() == list(range(len(made)))
        dataset = Dataset.make(store, SCORED, tmp_path / "dataset", "random")
        (trajectory,) = [t for split in ("train", "val", "test") for t in dataset.trajectories(split)]
        assert [step.action for step in trajectory.steps] == [row.action for row in made]
        pytest.importorskip("minari")
        info = export_episodes(store, SCORED, tmp_path / "episodes")
        assert info["datasets"]["bothost/doudizhu-v0"]["steps"] == len(made)


def test_observations_come_in_small_tables_whatever_the_size_of_a_file(store, played, tmp_path, monkeypatch):
    """They are large: those of the first thousand hands of mahjong would take 17 GB."""
    monkeypatch.setattr(exported_rows, "TABLE_BYTES", 1 << 20)

    class Sizes(JsonLinesExporter):
        seen: ClassVar[list[int]] = []

        def write(self, file, schema, tables, metadata) -> None:
            self.seen.extend(table.nbytes for table in tables)

    run(store, tmp_path / "out", Sizes(), rllib=True, view_json=False, hands_per_file=len(played))
    assert len(Sizes.seen) >= 3
    assert max(Sizes.seen) < 0.6 * sum(Sizes.seen)


def test_views_of_unknown_games_are_exported_undecoded(store, tmp_path, monkeypatch):
    def unknown(name: str, **options: object):
        raise KeyError(name)

    monkeypatch.setattr(rules, "game", unknown)
    info = export(store, SCORED, tmp_path / "out", ParquetExporter(), ExportOptions())
    assert info["views_not_decoded"] == info["rows"] > 0
    assert info["games"] == {"doudizhu": None}


@pytest.mark.parametrize("split", [(0.5, 0.5, 0.5), (1.2, -0.1, -0.1)])
def test_splits_that_are_none_are_refused(split):
    with pytest.raises(UsageError):
        ExportOptions(split=split)
