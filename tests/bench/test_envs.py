"""The benchmark of the environments reports every figure and divides by the faster peer."""

import pytest

from bothost.bench import envs as bench
from bothost.bench import rules as rates


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rates, "RUNS", 1)
    monkeypatch.setattr(rates, "SECONDS", 0.01)
    monkeypatch.setattr(bench, "BATCH", 16)


def test_without_peers():
    report = bench.command(peers=False)
    assert set(report) == {"doudizhu", "othello"}
    for figures in report.values():
        assert set(figures) == {"turn_env", "seat_env", "batch_env"}
        assert all(figure > 0 for figure in figures.values())


def test_with_peers():
    pytest.importorskip("pyspiel")
    pytest.importorskip("rlcard")
    report = bench.command()
    assert {"rlcard", "open_spiel"} <= set(report["doudizhu"])
    for figures in report.values():
        fastest = max(figures.get("rlcard", 0.0), figures["open_spiel"])
        assert figures["batch_env_ratio"] == pytest.approx(figures["batch_env"] / fastest)
