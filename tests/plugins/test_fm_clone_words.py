"""Features in words: every feature of every game has some of its own, and none is in notation."""

import re

import pytest

from bothost_fm_clone.sight import sight
from bothost_fm_clone.words import move_words, tile_words

RAW = {
    "doudizhu": r"\*|_|\b([3-9TJQKA2BR])\1(?! points)|\b[3-9TJQKA2]{3,}\b|\b(holds?|keeps|beat|plays) [3-9TJQKA2BR]+$",
    "othello": r"_|^(own|enemy|empty) ",
    "mahjong": r"_|\b[WTBFJ][1-9]\b",
}
"""What only notation has: moves and tiles as codes, underscores."""


@pytest.mark.parametrize("game", sorted(RAW))
def test_every_feature_has_words_of_its_own(game):
    known = sight(game)
    names = (*known.positions, *known.choices)
    assert [name for name in names if re.search(RAW[game], name)] == []
    assert len(set(names)) == len(names)


def test_notation_would_be_noticed():
    for game, raw in (
        ("doudizhu", "holds 333*"),
        ("doudizhu", "an enemy may still hold 77"),
        ("mahjong", "holds W3"),
        ("othello", "own d3"),
    ):
        assert re.search(RAW[game], raw)


def test_words_are_those_of_a_player():
    assert move_words("BR") == "both jokers"
    assert move_words("333*") == "three 3s with a card"
    assert move_words("34567") == "a chain of single cards from 3 to 7"
    assert tile_words("F1") == "the east wind"
    assert "the next player passed on a pair of 9s while holding two cards" in sight("doudizhu").positions
    assert "after it, the opponent holds d3" in sight("othello").choices
    assert "the player opposite discarded the east wind" in sight("mahjong").positions
