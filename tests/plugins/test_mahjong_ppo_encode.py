"""What the network of mahjong-ppo sees: versions of the encoding, packed prospects, and how tiles lie."""

import numpy as np
import pytest
from mahjong_positions import positions

from bothost import rules
from bothost.rules import mahjong
from bothost_mahjong_ppo.encode import (
    ACTIONS,
    KINDS,
    MOVE_OF,
    ORDER_START,
    PACKED,
    PACKED_STATE,
    PLAIN,
    PROSPECT,
    ROWS,
    TILE_OF,
    WIN,
    encode,
    encode_packed_into,
    tile_context,
)

GAME = rules.game("mahjong")


def test_rows_that_are_all_ones_or_zeros_are_one_number():
    state, seat = positions(1)[20]
    view = state.view(seat)
    out = encode([view], [view.legal()], 2)[0][0]
    assert set(np.unique(out)) <= {0.0, 1.0}
    tiles = view.encode("tiles")
    np.testing.assert_array_equal(out[: 13 * 136], tiles[:13].reshape(-1))
    np.testing.assert_array_equal(out[13 * 136 : 13 * 136 + 20].reshape(5, 4), tiles[13:].mean(axis=2))
    ahead = view.encode("look_ahead_3")
    np.testing.assert_array_equal(out[PLAIN : PLAIN + 272], ahead[:2].reshape(-1))
    np.testing.assert_array_equal(out[PLAIN + 272 :].reshape(46, 4), ahead[2:].mean(axis=2))


def test_the_first_versions_of_the_encoding_differ_in_the_look_ahead_of_actions_alone():
    state, seat = positions(1)[20]
    view = state.view(seat)
    legal = view.legal()
    (first, rule), (second, weighted) = (encode([view], [legal], version) for version in (1, 2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(rule[0, legal, :18], view.encode_actions("prospect", legal))
    np.testing.assert_array_equal(weighted[0, legal, :18], view.encode_actions("appraisal", legal))
    assert rule.shape == weighted.shape == (1, ACTIONS, 20) and first.shape == (1, ORDER_START)
    assert not np.array_equal(rule, weighted)
    with pytest.raises(KeyError):
        encode([view], [legal], 4)


def test_the_last_version_adds_the_discards_in_order_and_leaves_out_the_planners_answer():
    for state, seat in positions(1)[20:40]:
        view = state.view(seat)
        legal = view.legal()
        (before, with_answer), (now, prospects) = (encode([view], [legal], version) for version in (2, 3))
        np.testing.assert_array_equal(now[:, :ORDER_START], before)
        np.testing.assert_array_equal(now[0, ORDER_START:], view.encode("order").reshape(-1))
        numbers = with_answer[0, legal, :18]
        np.testing.assert_allclose(prospects[0, legal, 0], 6 * numbers[:, 0], rtol=1e-6)
        np.testing.assert_array_equal(prospects[0, legal, 1:16], numbers[:, 2:17])
        np.testing.assert_array_equal(prospects[0, legal, 16:24], view.encode_actions("action", legal)[:, :8])
        assert not prospects[0, np.setdiff1d(np.arange(ACTIONS), legal)].any()


HAND = "W1 W1 W2 W3 W9 T4 T5 T6 B8 B9 F1 F1 J1 J2"


def test_how_a_tile_lies():
    known = {"seat": 0, "phase": "turn", "actor": 0, "hand": HAND.split()}
    view = GAME.view_from_snapshot({**known, "discards": [[], ["W2", "F1"], ["W1"], []]})
    actions = np.array([2 + mahjong.TILES.index(tile) for tile in ("W1", "W3", "F1")])
    tiles = view.encode("tiles")[None]
    first, third, wind = tile_context(tiles, np.zeros(3, np.int64), actions) * 4
    assert first.tolist() == [0, 0, 2, 1, 1, 0, 0, 1, 2, 3, 0, 0, 0, 0, 1, 0, 4, 0]
    assert third[:5].tolist() == [2, 1, 1, 0, 0]
    assert wind.tolist() == [0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4]
    no_tile = tile_context(tiles, np.zeros(1, np.int64), np.array([0]))
    assert not no_tile.any()


def test_every_action_has_its_move_and_tile():
    for state, seat in positions(1):
        legal = state.legal(seat)
        one_hot = state.view(seat).encode_actions("action", legal)
        np.testing.assert_array_equal(one_hot[:, :8].argmax(axis=1), MOVE_OF[legal])
        with_tile = one_hot[:, 8:].any(axis=1)
        np.testing.assert_array_equal(TILE_OF[legal], np.where(with_tile, one_hot[:, 8:].argmax(axis=1), 34))


def test_packed_states_and_prospects_are_those_of_the_legal_actions():
    views = [state.view(seat) for state, seat in positions()]
    legal = [view.legal() for view in views]
    packed = np.full((len(views), PACKED), np.nan, np.float32)
    states = np.full((len(views), PACKED_STATE), np.nan, np.float32)
    encode_packed_into(views, legal, states, packed)
    of_states, prospects = encode(views, legal)
    np.testing.assert_array_equal(states[:, :ORDER_START], of_states[:, :ORDER_START])
    one_hot = np.eye(KINDS + 1, dtype=np.float32)[states[:, ORDER_START:].astype(int)][:, :, 1:]
    np.testing.assert_array_equal(one_hot.reshape(len(views), -1), of_states[:, ORDER_START:])
    rows, numbers = packed[:, : ROWS * PROSPECT].reshape(-1, ROWS, PROSPECT), packed[:, ROWS * PROSPECT :]
    unpacked = np.zeros_like(prospects)
    for i, actions in enumerate(legal):
        assert numbers[i].tolist() == [*(actions + 1), *[0] * (ROWS - len(actions))]
        unpacked[i, actions] = rows[i, : len(actions)]
        assert not rows[i, len(actions) :].any()
    np.testing.assert_array_equal(unpacked, prospects)


@pytest.mark.parametrize("preset", ["botzone", "shared-wall", "open-mahjong", "false-win"])
def test_no_position_has_more_legal_actions_than_are_packed(preset):
    game, rng = rules.game("mahjong", preset=preset), np.random.default_rng(1)
    most = claims = 0
    for seed in range(300):
        state = game.new_state(seed)
        while not state.terminal:
            seat = state.to_act[0]
            legal = state.legal(seat)
            most, claims = max(most, len(legal)), max(claims, len(legal) if legal[0] == 0 else 0)
            # Mostly claims and kongs, never a win: hands with many melds and long games.
            rare = legal[legal >= 2 + 34]
            others = legal[legal != WIN]
            state.apply(seat, int(rng.choice(rare if len(rare) and rng.random() < 0.5 else others)))
    assert most in (14, 15) and claims >= 4


def test_a_hand_of_fourteen_kinds_that_could_win_fits():
    hand = "W1 W4 W7 T2 T5 T8 B3 B6 B9 F1 F2 F3 F4 J1"  # lesser honours and knitted tiles
    view = GAME.view_from_snapshot({"seat": 0, "phase": "turn", "actor": 0, "hand": hand.split()})
    legal = view.legal()
    assert len(legal) == 15 and WIN in legal
    packed = np.empty((1, PACKED), np.float32)
    encode_packed_into([view], [legal], np.empty((1, PACKED_STATE), np.float32), packed)
    assert packed[0, ROWS * PROSPECT :].tolist() == [*(legal + 1), 0]


def test_more_legal_actions_than_fit_are_an_error():
    view = GAME.new_state(4).view(0)
    with pytest.raises(ValueError, match="17 legal actions; packed prospects hold at most 16"):
        encode_packed_into(
            [view], [np.arange(17)], np.empty((1, PACKED_STATE), np.float32), np.empty((1, PACKED), np.float32)
        )
