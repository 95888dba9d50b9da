"""``bothost reproduce doudizhu-mcts``: what it plays, and that it goes on where it was."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bothost import Contestant, Reproduced, ReproductionRun
from bothost.plugins import Plugins
from experiments.doudizhu_mcts import DoudizhuReproduction

PLUGINS = Plugins.load()


def test_the_reproduction_plays_every_row_and_goes_on_where_it_was(tmp_path: Path) -> None:
    asked: list[tuple[Contestant, Contestant, int]] = []

    def play(
        game: str, contestants: tuple[Contestant, Contestant], *, deals: int, each_deal: bool = False, **_: object
    ) -> dict[str, object]:
        asked.append((*contestants, deals))
        figures = {"deals": deals, "wp": 0.6, "ci95": (0.5, 0.7), "landlord_wp": 0.5, "peasant_wp": 0.7}
        stronger = contestants[0].options.get("iterations") == 20
        scores = {"scores": [0.5, 1.0, 1.0] if stronger else [0.5, 0.5, 0.0]} if each_deal else {}
        return {**figures, **scores, "ms_per_move": {"A": 1.0, "B": 0.1}}

    def made_with(**more: object) -> Reproduced:
        options = msgspec.convert(
            {"deals": 10, "ladder_deals": 3, "iterations": [10, 20], **more}, DoudizhuReproduction.Options
        )
        run = ReproductionRun(out=tmp_path, play=play, record=None)  # type: ignore[arg-type]
        return DoudizhuReproduction(options).run(run, lambda done, note="", total=None: None)

    made = made_with()
    assert (tmp_path / "win_rates.png").stat().st_size > 1000
    first, second = made.figures["ladder"]
    assert (first["step"], first["gain"], second["step"], second["gain"]) == (10, None, 20, 0.5)
    low, high = second["gain_ci95"]  # of 0, 0.5 and 1: 4.303 · 0.5 / √3
    assert (low, high) == (pytest.approx(-0.7421, abs=1e-4), pytest.approx(1.7421, abs=1e-4))
    assert "+0.500 (-0.742 … +1.742)" in made.tables[1].rows[1]
    assert {b.address for _, b, _ in asked} == {"rhcp-doudizhu"}
    assert max(deals for *_, deals in asked) == 10

    made = made_with(ladder_against="before")
    assert [(step["step"], step["before"]) for step in made.figures["ladder"]] == [(20, 10)]
    assert {b.address for _, b, _ in asked} == {"rhcp-doudizhu", "doudizhu-mcts"}
    for a, b, _ in asked:  # every option that it plays with is one
        for side in (a, b):
            PLUGINS.resolve(side.address, side.options)
