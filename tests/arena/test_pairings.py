"""Who meets whom: every format, at tables of two, three and four."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from bothost.arena.pairings import advancing, gauntlet, knockout, round_robin, swiss


@pytest.mark.parametrize(("entered", "size", "matches"), [(5, 2, 10), (5, 3, 10), (5, 4, 5)])
def test_in_a_round_robin_all_meet_equally_often(entered, size, matches):
    round_ = round_robin(entered, size)
    assert len(round_.matches) == matches
    met = Counter(pair for group in round_.matches for pair in combinations(group, 2))
    assert len(met) == entered * (entered - 1) // 2
    assert len(set(met.values())) == 1


def test_in_a_gauntlet_the_first_plays_every_match():
    assert gauntlet(4, 2).matches == ((0, 1), (0, 2), (0, 3))
    assert gauntlet(4, 3).matches == ((0, 1, 2), (0, 1, 3), (0, 2, 3))


def test_knockout_seeds_favourites_against_outsiders_and_gives_them_the_byes():
    assert knockout(range(8), 2).matches == ((0, 7), (1, 6), (2, 5), (3, 4))
    assert knockout(range(5), 2) == (((1, 4), (2, 3)), (0,))


def test_knockout_tables_deal_seeds_back_and_forth_and_end_in_pairs():
    assert knockout(range(8), 4).matches == ((0, 3, 4, 7), (1, 2, 5, 6))
    assert knockout(range(7), 3) == (((1, 4, 5), (2, 3, 6)), (0,))
    assert knockout([3, 5], 4).matches == ((3, 5),)


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("entered", range(2, 20))
def test_a_knockout_ends_with_one(entered, size):
    alive = list(range(entered))
    for _ in range(entered):
        if len(alive) == 1:
            break
        round_ = knockout(alive, size)
        assert sorted([*round_.byes, *(who for group in round_.matches for who in group)]) == alive
        alive = sorted([*round_.byes, *(who for group in round_.matches for who in group[: advancing(len(group))])])
    assert alive == [0]


def test_swiss_rounds_bring_neighbours_together_and_nobody_twice():
    met: Counter[frozenset[int]] = Counter()
    for _ in range(7):  # as many rounds as eight contestants have opponents
        round_ = swiss(range(8), met, Counter(), 2)
        assert sorted(who for group in round_.matches for who in group) == list(range(8))
        met.update(frozenset(group) for group in round_.matches)
    assert len(met) == 28
    assert set(met.values()) == {1}


def test_swiss_allows_a_second_meeting_when_none_is_left():
    met = Counter({frozenset(pair): 1 for pair in combinations(range(4), 2)})
    assert len(swiss(range(4), met, Counter(), 2).matches) == 2


def test_the_lowest_rest_and_nobody_rests_twice():
    byes: Counter[int] = Counter()
    for expected in (4, 3, 2):
        round_ = swiss([0, 1, 2, 3, 4], {}, byes, 2)
        assert round_.byes == (expected,)
        byes.update(round_.byes)


def test_swiss_tables_of_four_mix_those_who_have_not_met():
    met = Counter({frozenset(pair): 1 for group in ((0, 1, 2, 3), (4, 5, 6, 7)) for pair in combinations(group, 2)})
    first, second = swiss(range(8), met, Counter(), 4).matches
    assert first == (0, 4, 5, 6) or len(set(first) & {0, 1, 2, 3}) == 2
    assert sorted(first + second) == list(range(8))
