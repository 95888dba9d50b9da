"""Othello against published counts, OpenSpiel, and a slow obvious oracle."""

import random
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bothost import rules
from bothost.rules import othello

PERFT = [1, 4, 12, 56, 244, 1396, 8200, 55092, 390216, 3005288, 24571284]


@pytest.mark.parametrize(("depth", "leaves"), list(enumerate(PERFT)))
def test_perft_equals_the_published_counts(depth: int, leaves: int):
    assert rules.othello_perft(depth) == leaves


@pytest.mark.parametrize("depth", [-1, 15, 2**70])
def test_perft_depth_is_bounded(depth: int):
    with pytest.raises(ValueError, match=r"0 \.\. 14"):
        rules.othello_perft(depth)


def flipped(board: dict[tuple[int, int], str], x: int, y: int, own: str) -> list[tuple[int, int]]:
    """Discs that `own` at (x, y) turns over, square by square as the rule book says it."""
    if (x, y) in board:
        return []
    found = []
    for dx in (-1, 0, 1):
        for dy in (-1, 0, 1):
            run, cx, cy = [], x + dx, y + dy
            while (dx, dy) != (0, 0) and board.get((cx, cy), own) != own:
                run.append((cx, cy))
                cx, cy = cx + dx, cy + dy
            if run and board.get((cx, cy)) == own:
                found += run
    return found


def oracle_moves(board: dict[tuple[int, int], str], own: str) -> list[int]:
    return [8 * y + x for y in range(8) for x in range(8) if flipped(board, x, y, own)]


def squares(text: str) -> dict[tuple[int, int], str]:
    return {(i % 8, i // 8): c for i, c in enumerate(text) if c != "-"}


def text(board: dict[tuple[int, int], str]) -> str:
    return "".join(board.get((i % 8, i // 8), "-") for i in range(64))


boards = st.tuples(
    st.lists(st.sampled_from("XO-"), min_size=64, max_size=64).map("".join),
    st.integers(0, 1),
)


@settings(max_examples=120, deadline=None)
@given(boards, st.randoms(use_true_random=False))
def test_random_positions_equal_the_oracle(place: tuple[str, int], rng: random.Random):
    game = rules.game("othello")
    start, turn = place
    board = squares(start)
    either = oracle_moves(board, "X") or oracle_moves(board, "O")
    if not either:
        with pytest.raises(ValueError, match="neither side"):
            game.state_from_deal({"board": start, "turn": turn})
        return
    state = game.state_from_deal({"board": start, "turn": turn})
    while not state.terminal:
        own, other = "XO"[turn], "OX"[turn]
        legal = oracle_moves(board, own)
        assert state.to_act == (turn,)
        assert list(state.legal(turn)) == (legal or [64])
        action = rng.choice(legal or [64])
        state.apply(turn, action)
        if action != 64:
            x, y = action % 8, action // 8
            board |= dict.fromkeys([*flipped(board, x, y, own), (x, y)], own)
        turn = 1 - turn
        assert state.view(0).to_json()["board"] == text(board)
        assert state.terminal == (not oracle_moves(board, own) and not oracle_moves(board, other))
    margin = text(board).count("X") - text(board).count("O")
    assert state.returns == (float(np.sign(margin)), float(-np.sign(margin)))


def test_games_equal_open_spiel():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pyspiel = pytest.importorskip("pyspiel")
    theirs_game, ours_game = pyspiel.load_game("othello"), rules.game("othello")
    rng = random.Random(4)
    for _ in range(150):
        theirs, ours = theirs_game.new_initial_state(), ours_game.new_state(0)
        while not theirs.is_terminal():
            seat = theirs.current_player()
            assert ours.to_act == (seat,)
            assert ours.legal(seat).tolist() == theirs.legal_actions()
            action = rng.choice(theirs.legal_actions())
            word = theirs.action_to_string(seat, action)
            assert ours_game.notation(action) in word
            theirs.apply_action(action)
            ours.apply(seat, action)
        assert ours.terminal
        assert list(ours.returns) == theirs.returns()


def test_notation_is_column_then_row():
    game = rules.game("othello")
    assert [game.notation(a) for a in game.new_state(1).legal(0)] == ["d3", "c4", "f5", "e6"]
    assert game.notation(64) == "pass"
    assert game.parse("h8") == 63
    for bad in ["i1", "a9", "a0", "D3", "", "d", "d33", "PASS"]:
        with pytest.raises(ValueError, match="a move is"):
            game.parse(bad)


def test_a_forced_pass_is_the_only_action():
    # White (O) on turn cannot move; black can.
    board = "XO" + "-" * 62
    state = rules.game("othello").state_from_deal({"board": board, "turn": 1})
    assert state.legal(1).tolist() == [64]
    state.apply(1, 64)
    assert state.events(0)[-1] == "pass 1"
    assert state.legal(0).tolist() == [2]
    state.apply(0, 2)
    assert state.events(1)[-2:] == ["move 0 c1", "reveal -"]
    assert state.returns == (1.0, -1.0)


@pytest.mark.parametrize("told", [{}, {"depth": 3}, {"weights": {"mobility": 0, "edges": 70}}])
def test_judgements_of_many_positions_are_those_of_each(told):
    game, rng, rows = rules.game("othello"), np.random.default_rng(2), []
    for plies in [0, 5, 20, 40, 53, 56] * 3:
        state = game.new_state(0)
        for _ in range(plies):
            if not state.terminal:
                state.apply(state.to_act[0], int(rng.choice(state.view(state.to_act[0]).legal())))
        if not state.terminal:
            view = state.view(state.to_act[0])
            rows.append((np.flatnonzero(view.encode("squares")), view.legal(), othello.judge(view, **told)))
    features, moves, expected = zip(*rows, strict=True)
    found = othello.judgements(sparse(features), sparse(moves), **told)
    at_once = [
        value for legal, judged in zip(moves, expected, strict=True) for value in map(judged.get, legal.tolist())
    ]
    assert len(at_once) > 60
    np.testing.assert_allclose(found, at_once, rtol=1e-6)


def test_judgements_of_a_pass_are_0_and_of_what_is_no_position_are_refused():
    start = np.flatnonzero(rules.game("othello").new_state(0).view(0).encode("squares"))
    assert othello.judgements(sparse([start]), sparse([[64]])).tolist() == [0.0]
    for features, moves, told in (
        ([[192]], [[3]], {}),
        ([start], [[65]], {}),
        ([start], [[3], [4]], {}),
        ([start], [[19]], {"weights": {"luck": 1}}),
        ([start], [[19]], {"depth": 0}),
    ):
        with pytest.raises(ValueError, match=r"too large|differ in length|luck|depth"):
            othello.judgements(sparse(features), sparse(moves), **told)


def sparse(rows):
    """Offsets and items."""
    offsets = np.cumsum([0, *map(len, rows)])
    return offsets.astype(np.int64), np.concatenate([np.asarray(row) for row in rows]).astype(np.int32)


def test_discs_score_gives_the_empty_squares_to_the_winner():
    deal = {"board": "XO" + "-" * 62, "turn": 0}
    state = rules.game("othello", preset="discs").state_from_deal(deal)
    state.apply(0, 2)
    assert state.returns == (64.0, -64.0)


def test_random_plies_differ_by_seed_and_leave_something_to_play():
    game = rules.game("othello", random_plies=20)
    deals = [game.new_state(seed).deal for seed in range(50)]
    assert len({deal["board"] for deal in deals}) > 45
    assert all(64 - deal["board"].count("-") <= 24 for deal in deals)


def test_a_board_alone_is_a_snapshot():
    game = rules.game("othello")
    state = game.new_state(0)
    for move in ["d3", "c3", "c4"]:
        state.apply(state.to_act[0], game.parse(move))
    full = state.view(1)
    told = {"seat": 1, "board": full.to_json()["board"], "turn": 1}
    view = game.view_from_snapshot(told)
    assert view.legal().tolist() == full.legal().tolist()
    assert view.record() is None
    assert game.view_from_json(view.to_json()) == view
    assert game.view_from_bytes(view.to_bytes()) == view
    assert view.sample_state(1).view(1) == view
    while not state.terminal:
        seat = state.to_act[0]
        state.apply(seat, int(state.legal(seat)[0]))
        view.observe(state.events(1)[-1 if not state.terminal else -2])
    view.observe("reveal -")
    assert view.terminal
    assert view.record() is None
    assert state.view(1).record() is not None


def test_blocks_show_the_board_from_the_own_side():
    state = rules.game("othello").new_state(0)
    own, enemy, legal = state.view(0).encode("board")
    assert own[4, 3] == own[3, 4] == 1
    assert own.sum() == 2
    assert enemy[3, 3] == enemy[4, 4] == 1
    assert np.flatnonzero(legal).tolist() == state.legal(0).tolist()
    other = state.view(1).encode("board")
    assert np.array_equal(other[0], enemy)
    assert not other[2].any()
    features = state.view(0).encode("squares").reshape(64, 3)
    assert (features.sum(axis=1) == 1).all()
    assert np.array_equal(features[:, 0], own.reshape(64))
    assert np.array_equal(features[:, 1], enemy.reshape(64))
    turned = state.view(0).encode_actions("turned", np.array([19, 64], np.int32))
    assert np.flatnonzero(turned[0, 0]).tolist() == [19]
    assert np.flatnonzero(turned[0, 1]).tolist() == [27]
    assert not turned[1].any()
