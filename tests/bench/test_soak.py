import io
import json
import random
import sqlite3
from contextlib import closing

import pytest
import typer

from bothost.bench import soak


def test_every_answer_of_a_soak_is_logged(tmp_path):
    timing = ["--tables=2", "--rate=200", "--warm=0.25", "--seconds=0.5", "--report=0.125", "--hands=1"]
    who = ["--tables=2", "--accounts=2", "--strategies=random,mahjong-ppo"]
    lines = io.StringIO()
    samples, figures = soak.play(tmp_path, lines, timing, who)
    assert [json.loads(line) for line in lines.getvalue().splitlines()] == samples and len(samples) == 4
    assert all(sample["rss_mb"] > 10 and sample["fds"] > 3 and sample["tables"] <= 2 for sample in samples)
    assert figures["rows_logged"] == figures["answers"] > 100
    assert figures["tables_played"] > 2
    assert figures["fallbacks"] == 0
    assert set(soak.deciding_times(tmp_path / "bench.db", 0.0)) == {"random", "mahjong-ppo"}


def test_a_soak_leaves_samples_slopes_and_a_plot(tmp_path, monkeypatch):
    sample = dict.fromkeys(soak.TRENDS, 5.0)

    def play(folder, lines, timing, who):
        with closing(sqlite3.connect(folder / "bench.db")) as connection:
            connection.execute("CREATE TABLE decisions (strategy, at_us, elapsed_ms)")
            rows = [("a", second * 1_000_000, 9.0 if second < 10 else second % 2) for second in range(60)]
            connection.executemany("INSERT INTO decisions VALUES (?, ?, ?)", rows)
            connection.commit()
        return [{"at_s": at_s, **sample, "rss_mb": at_s} for at_s in range(60)], {"cpu_share": 0.5}

    monkeypatch.setattr(soak, "play", play)
    figures = soak.command(tmp_path, minutes=1.0, warm=1 / 6, every=1.0)
    assert figures["rss_mb"]["slope_per_h"] == 3600.0 and figures["p99_ms"]["slope_per_h"] == 0.0
    assert figures["strategies"]["a"]["decisions"] == 50 and figures["strategies"]["a"]["p99"] == 1.0
    assert json.loads((tmp_path / "soak.json").read_text()) == figures
    assert (tmp_path / "soak.png").read_bytes().startswith(b"\x89PNG")
    assert not list(tmp_path.glob("soak-*"))


def test_a_soak_too_short_for_its_warm_up_is_refused(tmp_path):
    with pytest.raises(typer.BadParameter):
        soak.command(tmp_path, minutes=10.0, warm=10.0)


@pytest.mark.parametrize("slope", [0.0, 7.5])
def test_the_interval_covers_the_slope(slope):
    covered = 0
    for seed in range(100):
        rng = random.Random(seed)
        samples = [{"at_s": t, "x": 100.0 + slope * t / 3600.0 + rng.gauss(0.0, 2.0)} for t in range(0, 2700, 10)]
        fit = soak.trend(samples, "x")
        covered += fit["slope_low"] <= slope <= fit["slope_high"]
    assert 88 <= covered <= 100
