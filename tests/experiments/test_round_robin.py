"""``bothost reproduce round-robin``: what it plays, and the strengths it finds."""

from __future__ import annotations

import msgspec
import pytest

from bothost import ReproductionRun
from experiments.round_robin import Rate, RoundRobin, RoundRobinOptions, both_ways, strength

WINS = {"ada": 0.5, "bob": 0.7, "cyd": 0.8, "rule": 0.6}
"""Who wins more often: the difference is the win rate above one half."""


def test_everyone_meets_everyone_and_the_others_do_not_count(tmp_path):
    asked = []

    def play(game, sides, *, deals, seed):
        one, other = (side.address for side in sides)
        asked.append((one, other))
        wp = 0.5 + WINS[one] - WINS[other]
        return {"wp": wp, "ci95": (wp - 0.03, wp + 0.03), "mean_lead": 1.0, "deals": deals}

    options = RoundRobinOptions(contestants=("ada", "bob", "cyd"), against=("rule",), deals=5)
    made = RoundRobin(options).run(
        ReproductionRun(out=tmp_path, play=play, record=lambda *a, **k: None), lambda *a, **k: None
    )
    assert set(asked) == {
        ("bob", "ada"),
        ("cyd", "ada"),
        ("cyd", "bob"),
        ("ada", "rule"),
        ("bob", "rule"),
        ("cyd", "rule"),
    }
    found = {name: strength["wp"] for name, strength in made.figures["strengths"].items()}
    assert found == pytest.approx({"ada": 0.25, "bob": 0.55, "cyd": 0.7})
    assert made.tables[0].rows[0] == ("ada", "25.0 ± 2.1", "", "30.0 ± 3.0", "20.0 ± 3.0", "40.0 ± 3.0")
    assert (tmp_path / "strengths.png").stat().st_size > 1000


def test_a_match_counts_for_both_sides():
    assert both_ways({("a", "b"): Rate(0.75, 0.1)}) == {("a", "b"): Rate(0.75, 0.1), ("b", "a"): Rate(0.25, 0.1)}
    assert strength([Rate(0.5, 0.3), Rate(0.7, 0.4)]) == pytest.approx((0.6, 0.25))


@pytest.mark.parametrize("wrong", [{"contestants": ["ada"]}, {"contestants": ["ada", "ada"]}, {"deals": 1}])
def test_options_are_checked(wrong):
    with pytest.raises(msgspec.ValidationError, match="at least"):
        msgspec.convert(wrong, RoundRobinOptions)
