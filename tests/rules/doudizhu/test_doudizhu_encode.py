"""Encoder blocks by hand: every plane of a small position, the compact vector, candidates."""

import numpy as np
import pytest

from bothost.rules import Oracle, doudizhu, game

GAME = game("doudizhu")
X = {rank: i for i, rank in enumerate(doudizhu.RANKS)}
DEAL = {"hands": ["33334444BR2222555", "66777788889999TTT", "TJJJJQQQQKKKKAAAA"], "bottom": "566", "first": 0}
TYPE_ROW = {"solo": 4, "trio_solo": 7, "bomb": 12, "rocket": 13, "pair": 5, "trio_pair": 8}


def play(words, deal=DEAL):
    state = GAME.state_from_deal(deal)
    for word in words.split():
        (seat,) = state.to_act
        state.apply(seat, GAME.parse(word))
    return state


def cards_plane(cards):
    """Rows 0-3 of a plane: [count - 1, rank]."""
    plane = np.zeros((15, 15), np.float32)
    for rank in set(cards):
        plane[cards.count(rank) - 1, X[rank]] = 1
    return plane


def move_plane(cards, row, landlord):
    plane = cards_plane(cards)
    if row is not None:
        plane[row, :] = 1
    if landlord:
        plane[14, :] = 1
    return plane


def count_plane(count):
    plane = np.zeros(225, np.float32)
    plane[:count] = 1
    return plane.reshape(15, 15)


def test_planes_of_a_small_position():
    """The landlord led 66, the next seat 77, the previous seat passed; the landlord looks."""
    view = play("66 77 pass").view(0)
    planes = view.encode("planes")
    assert planes.shape == (29, 15, 15) and planes.dtype == np.float32
    expected = np.zeros_like(planes)
    hand = "33334444BR22225555"
    deck = "".join(r * (4 if r not in "BR" else 1) for r in doudizhu.RANKS)
    unseen = "".join(r * (deck.count(r) - (hand + "6677").count(r)) for r in doudizhu.RANKS)
    expected[0] = cards_plane(hand)
    expected[1] = cards_plane(unseen)
    expected[3] = cards_plane("66")
    expected[4] = cards_plane("77")
    expected[6] = move_plane("77", TYPE_ROW["pair"], landlord=False)
    expected[7] = cards_plane("566")
    expected[8], expected[9], expected[10] = count_plane(18), count_plane(15), count_plane(17)
    expected[11] = move_plane("", None, landlord=False)  # the pass
    expected[12] = move_plane("77", TYPE_ROW["pair"], landlord=False)
    expected[13] = move_plane("66", TYPE_ROW["pair"], landlord=True)
    np.testing.assert_array_equal(planes, expected)


def test_planes_are_relative_to_the_seat():
    view = play("66 77 pass").view(2)
    planes = view.encode("planes")
    np.testing.assert_array_equal(planes[3], np.zeros((15, 15)))  # it has played nothing
    np.testing.assert_array_equal(planes[4], cards_plane("66"))  # next: the landlord
    np.testing.assert_array_equal(planes[5], cards_plane("77"))
    np.testing.assert_array_equal(planes[8:11], [count_plane(17), count_plane(18), count_plane(15)])


def test_the_candidate_fills_plane_2():
    view = play("66 77 pass").view(0)
    actions = view.legal()
    whole = view.encode_actions("planes_with_move", actions)
    single = view.encode_actions("move_plane", actions)
    base = view.encode("planes")
    for action, planes, candidate in zip(actions, whole, single, strict=True):
        move = doudizhu.move(action)
        expected = move_plane(move.cards, TYPE_ROW.get(move.kind), landlord=True)
        np.testing.assert_array_equal(candidate, expected)
        np.testing.assert_array_equal(planes[2], expected)
        np.testing.assert_array_equal(np.delete(planes, 2, axis=0), np.delete(base, 2, axis=0))


@pytest.mark.parametrize(
    ("move", "row"),
    [
        ("3", 4),
        ("33", 5),
        ("333", 6),
        ("3334", 7),
        ("33344", 8),
        ("34567", 9),
        ("334455", 10),
        ("333444", 11),
        ("33344456", 11),
        ("3334445566", 11),
        ("333345", 7),
        ("33334455", 8),
        ("3333", 12),
        ("BR", 13),
    ],
)
def test_type_rows(move, row):
    view = play("").view(0)
    plane = view.encode_actions("move_plane", np.array([GAME.parse(move)], np.int32))[0]
    assert np.flatnonzero(plane[4:14].any(axis=1)).tolist() == [row - 4]
    assert plane[row].all() and plane[14].all()


def test_the_last_18_moves_newest_first():
    words = "3 T J 2 pass pass 4 6 J 2 pass pass 5 7 Q 2 pass pass 44 77 QQ pass"
    state = play(words)
    planes = state.view(1).encode("planes")
    recent = words.split()[::-1][:18]
    for plane, word in zip(planes[11:], recent, strict=True):
        assert plane[:4].sum() == (0 if word == "pass" else 1)
        if word != "pass":
            assert plane[len(word) - 1, X[word[0]]] == 1


def test_calls_are_no_moves_and_the_bottom_is_unknown_while_bidding():
    g = game("doudizhu", preset="bidding")
    state = g.state_from_deal(DEAL)
    state.apply(0, g.parse("bid1"))
    planes = state.view(1).encode("planes")
    assert not planes[6:8].any() and not planes[11:].any()
    compact = state.view(1).encode("compact")
    calls = compact[9 * 54 + 60 + 15 + 4 :][:18].reshape(3, 6)
    assert calls.tolist() == [[0] * 6, [0] * 6, [0, 1, 0, 0, 0, 0]]  # previous seat said bid1
    assert compact[9 * 54 + 60 + 15 :][:4].tolist() == [0, 0, 0, 1]
    actions = state.legal(1)
    assert state.view(1).encode_actions("move_cards", actions)[:, 54:].argmax(1).tolist() == [0, 2, 3]


def vector(cards):
    out = np.zeros(54, np.float32)
    for rank in doudizhu.RANKS[:13]:
        out[4 * X[rank] : 4 * X[rank] + cards.count(rank)] = 1
    out[52], out[53] = cards.count("B"), cards.count("R")
    return out


def test_compact_vector():
    view = play("66 77 pass BR").view(1)
    compact = view.encode("compact")
    cards = compact[: 9 * 54].reshape(9, 54)
    hand = "66778888" + "9999" + "TTT"
    for i, expected in ((0, hand), (2, "BR"), (3, "566"), (4, "77"), (5, ""), (6, "66BR"), (7, ""), (8, "BR")):
        np.testing.assert_array_equal(cards[i], vector(expected))
    counts = compact[9 * 54 :][:60].reshape(3, 20)
    assert counts.argmax(1).tolist() == [15 - 1, 17 - 1, 16 - 1] and counts.sum() == 3
    bombs = compact[9 * 54 + 60 :][:15]
    assert bombs.argmax() == 1 and bombs.sum() == 1
    assert compact[9 * 54 + 75 :][:4].tolist() == [0, 1, 0, 0]  # next after the landlord
    assert compact[-1] == 0
    recent = view.encode("recent_moves")
    np.testing.assert_array_equal(recent[:4], [vector("BR"), vector(""), vector("77"), vector("66")])
    assert not recent[4:].any()


def analysis(view, words):
    """Rows of the block move_analysis as dicts of what their cells tell."""
    actions = np.array([GAME.parse(word) for word in words], np.int32)
    out = []
    for row in view.encode_actions("move_analysis", actions):
        parts = np.split(row, np.cumsum([54, 11, 21, 18, 15, 12, 1, 8, 1]))
        names = ("rest", "plays", "cards", "kind", "rank", "length", "stands", "behind", "wins", "choice")
        out.append(dict(zip(names, parts, strict=True)))
    return out


def test_move_analysis_of_a_small_position():
    """The landlord holds 33334444 BR 22225555 and the move to beat is 77."""
    view = play("66 77 pass").view(0)
    passed, twos, bomb, rocket = analysis(view, ("pass", "22", "3333", "BR"))
    np.testing.assert_array_equal(passed["rest"], vector("33334444BR22225555"))
    np.testing.assert_array_equal(bomb["rest"], vector("4444BR22225555"))
    assert [row["cards"].argmax() for row in (passed, twos, bomb, rocket)] == [18, 16, 14, 16]
    # A lower bound of the fewest plays, which are 3.
    assert bomb["plays"].argmax() == 2 < doudizhu.fewest_plays("4444BR22225555")
    assert not any(passed[name].any() for name in ("kind", "rank", "length", "stands"))
    assert (twos["kind"].argmax(), twos["rank"].argmax(), twos["length"].argmax()) == (2, X["2"], 0)
    # Fours of eights and more are unseen, and both jokers are in the own hand.
    assert (twos["stands"], bomb["stands"], rocket["stands"]) == (0, 0, 1)
    every = analysis(view, [view.notation(int(a)) for a in view.legal()])
    chosen = [view.notation(int(a)) for a, row in zip(view.legal(), every, strict=True) if row["choice"]]
    assert chosen == [view.notation(doudizhu.rule_choice(view)[0])]
    assert all((np.diff(row["behind"]) <= 0).all() for row in every)
    assert any(not row["behind"].any() for row in every)


def test_move_analysis_does_not_depend_on_which_moves_are_asked_for():
    view = play("66 77 pass").view(0)
    legal = view.legal()
    whole = view.encode_actions("move_analysis", legal)
    np.testing.assert_array_equal(view.encode_actions("move_analysis", legal[2:4]), whole[2:4])
    waiting = play("66 77").view(0)
    assert not waiting.asked
    assert not waiting.encode_actions("move_analysis", legal)[:, -10:].any()


def test_move_analysis_of_calls():
    g = game("doudizhu", preset="bidding")
    view = g.state_from_deal(DEAL).view(0)
    rows = view.encode_actions("move_analysis", view.legal())
    choice = doudizhu.rule_choice(view)[0]
    assert np.flatnonzero(rows[:, -1]).tolist() == np.flatnonzero(view.legal() == choice).tolist()
    assert not rows[:, 54 + 11 + 21 : 54 + 11 + 21 + 46].any()
    np.testing.assert_array_equal(rows[0, :54], vector("33334444BR2222555"))


def test_oracle_shows_the_others_hands():
    state = play("66 77 pass")
    others = Oracle(state, 0).encode("others")
    np.testing.assert_array_equal(others, [vector("66778888" + "9999" + "TTT"), vector(DEAL["hands"][2])])


def test_batch_environment_encodes_what_the_views_do():
    from bothost.rules import vec_env

    env = vec_env(GAME, 5, seed=3)
    planes = np.empty((5, 29, 15, 15), np.float32)
    env.encode("planes", planes)
    for i in range(5):
        view = GAME.state_from_deal(env.deal(i)).view(0)
        np.testing.assert_array_equal(planes[i], view.encode("planes"))
