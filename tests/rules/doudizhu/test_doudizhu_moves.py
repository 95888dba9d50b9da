"""The universe of moves: counts, notation, kickers, abstract moves."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bothost.rules import doudizhu, game, presets

GAME = game("doudizhu")
WIDE = game("doudizhu", preset="douzero")

# Table of the DouZero paper (Zha et al. 2021, appendix): the plays of RLCard's action set.
PAPER = {
    "pass": 1,
    "solo": 15,
    "pair": 13,
    "trio": 13,
    "trio_solo": 182,
    "trio_pair": 156,
    "solo_chain": 36,
    "pair_chain": 52,
    "trio_chain": 45,
    "plane_solo": 21822,
    "plane_pair": 2939,
    "quad_solo": 1326,
    "quad_pair": 858,
    "bomb": 13,
    "rocket": 1,
}


def needed(notation: str) -> set[str]:
    return set(doudizhu.move(WIDE.parse(notation)).needs)


def test_counts_are_those_of_the_paper():
    kinds = Counter(doudizhu.move(a).kind for a in range(doudizhu.NUM_RLCARD_ACTIONS))
    assert kinds == PAPER
    assert sum(PAPER.values()) == doudizhu.NUM_RLCARD_ACTIONS == GAME.num_actions


def test_every_action_reads_back_from_its_notation():
    for action in range(WIDE.num_actions):
        assert WIDE.parse(WIDE.notation(action)) == action


@given(st.integers(0, doudizhu.NUM_RLCARD_ACTIONS - 1), st.randoms())
def test_order_of_cards_does_not_matter(action, random):
    cards = list(doudizhu.move(action).cards)
    random.shuffle(cards)
    assert GAME.parse("".join(cards) or "pass") == action


def test_douzero_26_unsorted_jokers_are_still_a_rocket():
    assert GAME.parse("RB") == GAME.parse("BR")
    assert doudizhu.kind_of("RB") == "rocket"
    view = GAME.view_from_snapshot({"seat": 0, "hand": "R3B", "landlord": 0, "counts": [3, 5, 5], "last": [2, "2222"]})
    assert [view.notation(a) for a in view.legal()] == ["pass", "BR"]


def test_douzero_43_jokers_are_no_kickers_unless_the_table_says_so():
    for play in ("333444BR", "4444BR"):
        with pytest.raises(ValueError, match="no action under these rules"):
            GAME.parse(play)
        assert needed(play) == {"rocket_kickers"}
    assert needed("3334445B") == set()  # one joker is a kicker like any other card
    hand = "333444BR"
    narrow = GAME.view_from_snapshot({"seat": 0, "hand": hand, "landlord": 0, "counts": [8, 5, 5]})
    wide = WIDE.view_from_snapshot({"seat": 0, "hand": hand, "landlord": 0, "counts": [8, 5, 5]})
    assert "333444BR" not in {narrow.notation(a) for a in narrow.legal()}
    assert "333444BR" in {wide.notation(a) for a in wide.legal()}


@pytest.mark.parametrize(
    ("notation", "needs"),
    [
        ("33344455", {"same_rank_kickers"}),  # a pair as two solos
        ("444455", {"same_rank_kickers"}),
        ("333444555777", {"same_rank_kickers"}),  # a distant trio
        ("3334445556667777", {"same_rank_kickers", "bomb_kickers", "neighbour_kickers"}),
        ("3334445556669999", {"same_rank_kickers", "bomb_kickers"}),
        ("333444555+666", {"same_rank_kickers", "neighbour_kickers"}),
        ("33334444", {"shuttles"}),
    ],
)
def test_what_kickers_need(notation, needs):
    assert needed(notation) == needs


def test_cards_with_two_readings():
    """333444555666 is four trios in a row; with wide kickers also three with the others as wings."""
    assert [GAME.notation(a) for a in doudizhu.readings("333444555666") if a < GAME.num_actions] == ["333444555666"]
    assert [WIDE.notation(a) for a in doudizhu.readings("333444555666")] == [
        "333444555666",
        "444555666+333",
        "333444555+666",
    ]
    assert doudizhu.move(WIDE.parse("333555444+666")).kind == "plane_solo"
    with pytest.raises(ValueError, match="not a move"):
        WIDE.parse("333444+555666")


@pytest.mark.parametrize(
    "bad", ["", "34", "3B", "33334", "X", "333333", "QKA23", "BR3", "bid4", "BB", "3" * 100, "+", "3+"]
)
def test_nonsense_is_refused(bad):
    with pytest.raises(ValueError):
        GAME.parse(bad) if bad != "3+" else WIDE.parse("+3+")


def test_abstract_moves():
    names = doudizhu.abstract_names()
    assert len(names) == len(set(names)) == doudizhu.NUM_ABSTRACT_ACTIONS
    abstract = doudizhu.abstract_map()
    assert set(abstract[: GAME.num_actions]) == set(range(doudizhu.NUM_ABSTRACT_ACTIONS))
    assert abstract[GAME.parse("3334")] == abstract[GAME.parse("333K")] == names.index("333*")
    assert abstract[GAME.parse("33344")] == names.index("333**")
    assert abstract[GAME.parse("333444BK")] == names.index("333444**")
    assert abstract[WIDE.parse("333444BR")] == names.index("333444**")
    assert abstract[WIDE.parse("33334444")] == -1
    for action in range(GAME.num_actions):
        move = doudizhu.move(action)
        assert names[abstract[action]].rstrip("*") == (move.body or "pass")
        assert names[abstract[action]].count("*") == len(move.cards) - len(move.body)


def test_ids_mean_the_same_under_all_rules():
    for preset in presets("doudizhu"):
        other = game("doudizhu", preset=preset)
        assert all(other.notation(a) == GAME.notation(a) for a in range(0, GAME.num_actions, 97))
