"""The benchmark of the decision log runs, counts its rows, and tells what DESIGN promises."""

import pytest

from bothost.bench.log import command


def test_figures(tmp_path):
    figures = command(rows=2000, batch=200, repeats=1, folder=tmp_path, postgresql=None)
    sqlite = figures["sqlite"]
    assert sqlite["ratio"] == pytest.approx(sqlite["rows_per_s"] / sqlite["raw_rows_per_s"], abs=0.002)
    assert sqlite["before_send_rows_per_s"] > 0
    assert sqlite["submit_us_per_row"] < 10
    assert figures["postgresql"] == "absent"
    assert list(tmp_path.iterdir()) == []
