"""Features in words: every feature of every game has some of its own, and none is a raw name."""

import re

import pytest

from bothost_fm_clone.sight import sight
from bothost_fm_clone.words import phrase

RAW = {
    "doudizhu": r"\*|_|\b([3-9TJQKA2BR])\1|\b[3-9TJQKA2]{3,}\b|\b(unseen|holds|leaves|to beat|is) [3-9TJQKA2BR]+$",
    "othello": r"_|^(own|enemy|empty|leaves own|leaves enemy|leaves empty|is) ",
    "mahjong": r"_|\b[WTBFJ][1-9]\b",
}
"""What only raw names have: moves in notation, tiles as codes, underscores."""


@pytest.mark.parametrize("game", sorted(RAW))
def test_every_feature_has_words_of_its_own(game):
    known = sight(game)
    names = (*known.positions, *known.choices)
    words = [phrase(game, name) for name in names]
    assert [(name, word) for name, word in zip(names, words, strict=True) if re.search(RAW[game], word)] == []
    assert len(set(words)) == len(names)


def test_raw_names_would_be_noticed():
    for game, raw in (
        ("doudizhu", "holds 333*"),
        ("doudizhu", "unseen 77"),
        ("mahjong", "holds W3"),
        ("othello", "own d3"),
    ):
        assert re.search(RAW[game], raw)


@pytest.mark.parametrize(
    ("game", "name", "words"),
    [
        ("doudizhu", "holds BR", "holds both jokers"),
        ("doudizhu", "is 333*", "plays three 3s with a card"),
        ("doudizhu", "leaves 34567", "keeps a chain of single cards from 3 to 7"),
        (
            "doudizhu",
            "next passed on 99 with two cards",
            "the next player passed on a pair of 9s while holding two cards",
        ),
        ("othello", "leaves enemy d3", "after it, the opponent holds d3"),
        ("mahjong", "opposite discarded F1", "the player opposite discarded the east wind"),
    ],
)
def test_words_are_those_of_a_player(game, name, words):
    assert phrase(game, name) == words
