"""``bothost reproduce mahjong-ppo``: every variant under every seed, and when each first reached a score."""

import numpy as np
import pytest

from bothost import ReproductionRun
from bothost.errors import ConfigError
from experiments.mahjong_ppo import (
    VARIANTS,
    WINDOW,
    MahjongPpoReproduction,
    final_scores,
    hands_to,
    smoothed,
)
from experiments.mahjong_ppo import Options as ReproduceOptions


def test_the_reproduction_trains_every_variant_with_every_seed(tmp_path):
    settled = ReproduceOptions(seeds=1, iterations=1, hands=2, training={"ppo": {"epochs": 1}})
    run = ReproductionRun(out=tmp_path, play=lambda *_args, **_more: {}, record=lambda *_args, **_more: None, seed=5)
    made = MahjongPpoReproduction(settled).run(run, lambda *_: None)
    assert all(len(table.rows) == len(VARIANTS) == 4 for table in made.tables) and (tmp_path / "curves.png").is_file()
    assert '{"ppo":{"epochs":1}}' in made.notes[1], "what was not pure or not the first stage is told"
    assert sorted(p.name for p in tmp_path.glob("?-?")) == [f"{v}-5" for v in "abcd"]
    again = MahjongPpoReproduction(settled).run(run, lambda *_: None)
    assert again.figures == made.figures
    assert final_scores(np.array([[0.0, 0.0, 0.0, 0.0, 5.0]])) == [5.0]
    with pytest.raises(ConfigError, match=r"options\.hands"):
        MahjongPpoReproduction(ReproduceOptions(training={"hands": 0})).run(run, lambda *_: None)


def test_a_reproduction_tells_when_a_score_was_first_reached_over_a_whole_window():
    late, never = np.r_[np.full(WINDOW, 0.0), np.full(WINDOW, 4.0)], np.r_[30.0, np.zeros(2 * WINDOW - 1)]
    curves = np.array([late, never])
    assert smoothed(curves)[0, :WINDOW].max() == 0.0 and smoothed(curves)[0, -1] == 4.0
    assert smoothed(curves)[1, 0] == 30.0 and smoothed(curves)[1, WINDOW - 1] == 3.0
    assert hands_to(curves, 2.0, 8) == [8 * (WINDOW + WINDOW // 2), 8 * WINDOW]
    assert hands_to(curves, 4.0, 8) == [8 * 2 * WINDOW] and hands_to(curves, 5.0, 8) == []
