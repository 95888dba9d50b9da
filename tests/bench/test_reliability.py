"""The campaign of SIGKILLs: it continues, shares the kills out, and fails where an invariant is broken."""

import json
from contextlib import nullcontext

import pytest
import typer

from benchmarks import reliability

FIGURES = {"kills": 10, "db_outages": 2, "lobby_restarts": 1, "plugin_faults": 5, "moves": 1000, "rows_lost": 0}
FIGURES |= {"rows_doubled": 0, "illegal_moves": 0, "missed_deadlines": 0, "recoveries_s": [1.0, 1.5, 3.0]}


@pytest.fixture
def played(monkeypatch):
    rounds = []

    def play(number, minutes, url, standby):
        rounds.append({"round": number, "database": "sqlite" if url is None else "postgresql", **FIGURES})
        return rounds[-1]

    monkeypatch.setattr(reliability, "play_round", play)
    monkeypatch.setattr(reliability, "temporary_postgres", lambda: nullcontext("server"))
    monkeypatch.setattr(reliability, "new_database", lambda server, name: f"{server}/{name}")
    return rounds


def test_it_continues_and_gives_postgresql_its_share(played, tmp_path, capsys):
    out = tmp_path / "results.jsonl"
    reliability.campaign(kills=40, out=out, plot=tmp_path / "plot.png")
    assert len(played) == 4
    with out.open("a") as file:
        file.write('{"round": 5, "kil')  # killed while it wrote
    reliability.campaign(kills=100, out=out)
    assert [done["round"] for done in played] == list(range(1, 11))
    assert [json.loads(line) for line in out.read_text().splitlines()] == played
    assert sum(done["database"] == "postgresql" for done in played) == 3
    assert "| older | sqlite | 70 | 14 | 7 | 35 | 7,000 | 0 | 0 | 0 | 0 | 1.50 |" in capsys.readouterr().out
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_each_commit_with_and_without_a_standby_is_counted_apart():
    later = {"database": "sqlite", "commit": "1234567", **FIGURES}
    rounds = [{"database": "sqlite", **FIGURES}, later, {**later, "standby": True}] * 2
    lines = reliability.summary(rounds).splitlines()[2:]
    names = ["older", "1234567", "1234567 with a standby"]
    assert [line.split(" | ")[:3] for line in lines] == [[f"| {name}", "sqlite", "20"] for name in names]


def test_a_broken_invariant_ends_it_with_an_error(played, tmp_path, monkeypatch):
    monkeypatch.setitem(FIGURES, "rows_lost", 1)
    with pytest.raises(typer.Exit) as ended:
        reliability.campaign(kills=10, out=tmp_path / "results.jsonl")
    assert ended.value.exit_code == 1


def test_a_round_plays_under_faults(tmp_path, monkeypatch):
    monkeypatch.setattr(reliability, "PER_MINUTE", {"kill": 6.0})
    done = reliability.play_round(1, 0.1, None, standby=True)
    assert done["recovery_s_max"] > 0 and done["standby"]
    assert done["kills"] == 1 and len(done["recoveries_s"]) == 1 and done["moves"] > 0
    assert reliability.wrong(done) == {}
