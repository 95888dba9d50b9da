"""Penalties of features, by families."""

import numpy as np
import pytest

from bothost_fm_clone.penalties import ALONE, EVEN, LEAST, MOST, Penalties, families, family
from bothost_fm_clone.sight import sight

GAMES = ("doudizhu", "mahjong", "othello")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("holds an ace", "holds three 3s"),
        ("keeps a pair of 5s", "keeps a pair of kings"),
        ("plays a chain of pairs from 3 to 7", "plays a chain of pairs from 10 to ace"),
        ("the next player has 1 card left", "the next player has 17 cards left"),
        ("after it, holds a1", "after it, holds h8"),
        ("leaves the opponent 1 reply", "leaves the opponent 12 replies"),
        ("the tile is the 3 of dots", "the tile is the red dragon"),
    ],
)
def test_names_that_differ_in_numbers_cards_squares_or_tiles_are_one_family(one, other):
    assert family(one) == family(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("holds an ace", "keeps an ace"),
        ("holds a pair of 5s", "holds a chain of pairs from 3 to 7"),
        ("splits a pair", "splits a trio"),
        ("the next player has 1 card left", "the previous player has 1 card left"),
        ("after it, holds a1", "after it, the opponent holds a1"),
    ],
)
def test_other_names_are_other_families(one, other):
    assert family(one) != family(other)


@pytest.mark.parametrize("game", GAMES)
def test_every_pair_has_a_penalty(game):
    penalties, names, candidates = Penalties.of(game), families(game), len(sight(game).positions)
    every, last = np.arange(-1, len(names)), np.arange(candidates, len(names))
    held = penalties.between(every, last)
    assert held.shape == (len(every), len(last)) and held.min() >= LEAST and held.max() <= MOST
    features = [(candidates,), (0, candidates), (candidates, len(names) - 1)]
    assert penalties.each(features).tolist() == [held[0, 0], held[1, 0], held[candidates + 1, -1]]


def test_what_many_players_go_by_is_held_back_least():
    names = families("doudizhu")
    penalties = Penalties.of("doudizhu")
    number, leads = names.index(family("strength of the cards kept")), names.index("leads freely")
    rare = names.index(family("has to beat a chain of pairs from 3 to 7"))
    for common in [(number,), (leads, number)]:
        assert 4 * penalties.each([common]) < penalties.each([(rare, number)])
    assert ALONE not in names


def test_even_penalties_are_alike():
    penalties = Penalties.even("othello")
    assert set(penalties.each([(300,), (0, 300), (300, 301)]).tolist()) == {EVEN}
