"""How decisions explain themselves to a person."""

import json

import pytest

from bothost import rules
from bothost.cli import main
from bothost.cli.reasons import explanation, remarks
from bothost.config import load
from bothost.store import DecisionRecord
from bothost.testing.sample_rows import played_hand, write_rows

STATS = {
    "reasons": [
        {"features": ["holds 333*", "one card left on the left"], "weight": 1.4189},
        {"features": ["leads"], "weight": -0.2},
        {"features": ["landlord"], "weight": 0.1},
    ],
    "drawn": True,
    "policy": "sampled",
}


def test_reasons_are_lines_of_features_that_hold_together():
    assert explanation(STATS, 2) == [
        "because holds 333* and one card left on the left  +1.42",
        "and     leads                                     -0.20",
        "… 1 more reasons",
    ]
    assert len(explanation(STATS, 3)) == 3
    assert remarks(STATS) == "drawn: true, policy: sampled"
    assert explanation({"reason": "weak"}, 5) == [] and remarks({"reason": "weak"}) == "reason: weak"


@pytest.mark.parametrize(
    "odd",
    [
        None,
        "text",
        {"reasons": "many"},
        {"reasons": [3, {"features": [], "weight": 1}, {"features": "x", "weight": 1}]},
        {"reasons": [{"features": ["x"], "weight": "heavy"}, {"features": ["x"], "weight": True}]},
        {"reasons": [{"features": ["x"], "weight": float("nan")}]},
    ],
)
def test_what_is_no_reason_is_not_shown_as_one(odd):
    assert explanation(odd, 5) == []
    assert isinstance(remarks(odd), str)


def test_what_a_plugin_wrote_cannot_move_the_terminal():
    lines = explanation({"reasons": [{"features": ["\x1b[31mred"], "weight": 1}]}, 5)
    assert "\x1b" not in "".join(lines) + remarks({"note": "\x1b[31m"})


def test_a_hand_and_a_replay_show_the_reasons(tmp_path, monkeypatch, capsys):
    path = tmp_path / "config.toml"
    path.write_text('[store]\nurl = "sqlite:///log.db"\n')
    monkeypatch.setenv("BOTHOST_CONFIG", str(path))
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["db", "upgrade"]) == 0
    rows = played_hand(rules.game("doudizhu"), 3)
    decisions = [row for row in rows if isinstance(row, DecisionRecord)]
    decisions[0].stats = json.dumps(STATS)
    write_rows(load().store, tmp_path, [rows])
    capsys.readouterr()
    assert main(["games", "show", rows[0].game_id.hex()]) == 0
    text = capsys.readouterr().out
    assert "because holds 333* and one card left on the left  +1.42" in text and "policy: sampled" in text
    assert main(["replay", decisions[0].id.hex(), "--model", "rule-doudizhu"]) == 0
    text = capsys.readouterr().out
    assert f"{decisions[0].notation} (logged)\n  because holds 333*" in text
    assert main(["replay", decisions[0].id.hex(), "--model", "rule-doudizhu", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["logged"]["reasons"] == STATS["reasons"] and found["again"]["reasons"] is None
    assert main(["replay", decisions[1].id.hex(), "--model", "rule-doudizhu"]) == 0
    assert "because" not in capsys.readouterr().out
