"""The shape of what `bothost bench mahjong --json` prints; the figures are no test's business."""

import pytest

from bothost.bench import mahjong as bench
from bothost.bench import rules as rates


def test_report_has_every_figure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rates, "RUNS", 1)
    monkeypatch.setattr(rates, "SECONDS", 0.01)
    monkeypatch.setattr(rates, "BATCH", 64)
    monkeypatch.setattr(bench, "TRAINING", {**bench.TRAINING, "hands": 2, "iterations": 2})
    report = bench.command(hands=1)
    assert set(report) == {
        "env_steps_per_s",
        "rule_choices_per_s",
        "rule_hands_per_s",
        "lookahead_per_s",
        "encode_per_s",
        "train_samples_per_s",
        "train_samples_per_s_bf16",
    }
    assert all(figure > 0 for figure in report.values())
