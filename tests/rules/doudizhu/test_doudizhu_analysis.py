"""Hand analysis: fewest plays against the oracle, partitions, and their values."""

import random
from collections import Counter

import pytest

from bothost.rules import doudizhu, game

GAME = game("doudizhu")
DECK = [r for r in doudizhu.RANKS for _ in range(4 if r not in "BR" else 1)]


def canonical(cards):
    return "".join(sorted(cards, key=doudizhu.RANKS.index))


def deals(size, count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        yield canonical(rng.sample(DECK, size))


def narrow_hands(count, seed):
    """Small hands of few ranks: planes, fours, kickers of every sort."""
    rng = random.Random(seed)
    for _ in range(count):
        low = rng.randint(0, 9)
        pool = [c for c in DECK if low <= doudizhu.RANKS.index(c) <= low + rng.randint(2, 5)]
        yield canonical(rng.sample(pool, min(len(pool), rng.randint(1, 10))))


def test_fewest_plays_is_the_oracles(oracle):
    for hand in [*narrow_hands(40, 1), *deals(4, 20, 2)]:
        assert doudizhu.fewest_plays(hand) == oracle.fewest_plays(hand, GAME.rules, {}), hand


@pytest.mark.parametrize(
    ("hand", "plays"),
    [
        ("", 0),
        ("BR", 1),
        ("34567", 1),
        ("333777999", 2),  # a trio is broken up: 7773 and 99933
        ("345555666777", 2),  # the fourth 5 is no kicker of its own plane
        ("3334445556667778889J", 2),
        ("33334444", 2),
        ("3344556677899", 3),  # 3456789 leaves 34567 and 9, not a second 3456789
    ],
)
def test_known_hands(hand, plays):
    assert doudizhu.fewest_plays(hand) == plays


@pytest.mark.parametrize("partition", [doudizhu.shortest_partition, doudizhu.best_partition])
def test_partitions_use_every_card_once_in_legal_plays(partition):
    for hand in [*deals(20, 60, 3), *deals(17, 40, 4), *narrow_hands(100, 5)]:
        plays = [doudizhu.move(a) for a in partition(hand)]
        assert Counter(hand) == sum((Counter(p.cards) for p in plays), Counter())
        assert not any(p.needs and p.needs != ("same_rank_kickers",) for p in plays)
        if partition is doudizhu.shortest_partition:
            assert len(plays) == doudizhu.fewest_plays(hand)
        else:
            assert len(plays) >= doudizhu.fewest_plays(hand)


def test_stronger_hands_are_worth_more():
    assert doudizhu.hand_value("2222BR") > doudizhu.hand_value("AAAA2B") > doudizhu.hand_value("345789")
    assert doudizhu.hand_value("34567") > doudizhu.hand_value("34569")
    assert doudizhu.landlord_win_probability("34567899TAA222BR5") > 0.7
    assert doudizhu.landlord_win_probability("33456789TJQK45678") < 0.45


@pytest.mark.parametrize("cards", ["33333", "X", "3" * 30, DECK])
def test_what_is_no_hand_is_refused(cards):
    for function in (doudizhu.fewest_plays, doudizhu.hand_value, doudizhu.best_partition):
        with pytest.raises(ValueError):
            function("".join(cards))


def test_rule_choice_needs_a_view_that_is_asked():
    state = GAME.new_state(1)
    with pytest.raises(ValueError, match="not asked"):
        doudizhu.rule_choice(state.view(1))
    with pytest.raises(TypeError):
        doudizhu.rule_choice(game("othello").new_state(1).view(0))
    with pytest.raises(ValueError, match="not one of Dou Dizhu"):
        doudizhu.move(10**9)
