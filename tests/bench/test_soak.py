import json
import random

import pytest
import typer

from bothost.bench import soak


def test_a_short_soak_logs_every_answer_and_leaves_samples_and_a_plot(tmp_path):
    figures = soak.command(tmp_path, tables=20, minutes=0.06, rate=120.0, accounts=2, hands=1, every=0.24, warm=0.005)
    samples = [json.loads(line) for line in (tmp_path / "soak.jsonl").read_text().splitlines()]
    assert len(samples) == 15
    assert all(sample["rss_mb"] > 10 and sample["fds"] > 3 and sample["tables"] <= 20 for sample in samples)
    assert figures["rows_logged"] == figures["answers"] > 300
    assert figures["tables_played"] > 20
    assert figures["fallbacks"] == 0
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
