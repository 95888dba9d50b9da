"""The shape of what `bothost bench rules --json` prints; the figures are no test's business."""

import pytest

from bothost.bench import rules as bench


def test_report_has_every_figure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bench, "RUNS", 1)
    monkeypatch.setattr(bench, "SECONDS", 0.01)
    monkeypatch.setattr(bench, "BATCH", 64)
    report = bench.command(peers=False)
    assert set(report["doudizhu"]) == {"moves_per_s", "games_per_s", "legal_moves_20_per_s", "samples_per_s"}
    assert set(report["mahjong"]) == {"games_per_s", "shanten_per_s", "fan_per_s"}
    assert set(report["pairing"]) == {"steps_per_s"}
    assert set(report["othello"]) == {"moves_per_s"}
    assert all(figure > 0 for game in report.values() for figure in game.values())
