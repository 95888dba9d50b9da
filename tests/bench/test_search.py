"""The shape of what `bothost bench search --json` prints; the figures are no test's business."""

import pytest

from bothost.bench import search as bench


def test_report_has_every_figure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bench, "RUNS", 1)
    monkeypatch.setattr(bench, "SECONDS", 0.01)
    report = bench.command(deadlines=3, ms=2.0)
    assert {"rollouts_per_s", "nodes_per_s", "overrun_ms_p99", "timer_overrun_ms_p99", "cnn_ms_1", "cnn_ms_8"} <= set(
        report
    )
    assert report["rollouts_per_s"] > 0
    assert report["nodes_per_s"] > 0
    assert report["overrun_ms_p99"] >= 0
