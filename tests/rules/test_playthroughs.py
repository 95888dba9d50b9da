"""Golden playthroughs: no registered game and preset is left without one, and each comes out the same again."""

from pathlib import Path

import pytest

from bothost import rules
from bothost.testing.playthrough import differences, file_name, main

FOLDER = Path(__file__).parent / "playthroughs"
ALL = [(name, preset) for name in rules.games(plugins=False, testing=True) for preset in rules.presets(name)]


@pytest.mark.parametrize(("name", "preset"), ALL)
def test_playthrough_comes_out_again(name: str, preset: str):
    change = differences(name, preset, FOLDER)
    assert not change, f"{change}\nIf that is meant: python -m bothost.testing.playthrough {name}:{preset} --write"


def test_every_file_belongs_to_a_game():
    assert {p.name for p in FOLDER.iterdir()} == {file_name(name, preset) for name, preset in ALL}


def test_command_prints_one_and_names_the_unknown(capsys: pytest.CaptureFixture[str]):
    assert main(["othello"]) == 0
    assert "action   0: e6 (44)" in capsys.readouterr().out
    assert main(["othelo"]) == 2
    assert "'othello'" in capsys.readouterr().err
    assert main(["othello:fast"]) == 2
    assert "standard" in capsys.readouterr().err
