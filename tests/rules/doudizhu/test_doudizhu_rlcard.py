"""Legal plays against RLCard, the independent implementation whose action set we use."""

import warnings

import numpy as np
import pytest

from bothost.rules import doudizhu, game

GAME = game("doudizhu")


@pytest.fixture(scope="module")
def rlcard_game():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from rlcard.games.doudizhu import Game
    return Game


def compare(rlcard_game, positions: int, seed: int) -> None:
    """Random hands, half of the steps taken at random, half by the longest play, so that late positions occur too."""
    ids: dict[str, int] = {}
    rng = np.random.default_rng(seed)
    checked = 0
    while checked < positions:
        theirs = rlcard_game()
        theirs.np_random = np.random.RandomState(int(rng.integers(2**31)))
        shown, seat = theirs.init_game()
        hands = ["".join(p.initial_hand) for p in theirs.players]
        bottom = shown["seen_cards"]
        for card in bottom:
            hands[0] = hands[0].replace(card, "", 1)
        ours = GAME.state_from_deal({"hands": hands, "bottom": bottom, "first": 0})
        while not theirs.is_over():
            actions = shown["actions"]
            for cards in actions:
                if cards not in ids:
                    ids[cards] = 0 if cards == "pass" else doudizhu.readings(cards)[0]
            assert ours.to_act == (seat,)
            assert ours.legal(seat).tolist() == sorted(ids[c] for c in actions)
            checked += 1
            chosen = actions[rng.integers(len(actions))] if rng.random() < 0.5 else max(actions, key=len)
            ours.apply(seat, ids[chosen])
            shown, seat = theirs.step(chosen)
        assert ours.terminal
        assert (ours.returns[0] > 0) == (theirs.winner_id == 0)


def test_action_set_is_rlcards(rlcard_game):
    from rlcard.games.doudizhu.utils import ACTION_2_ID

    ours = {doudizhu.move(a).cards or "pass" for a in range(doudizhu.NUM_RLCARD_ACTIONS)}
    assert ours == set(ACTION_2_ID)


def test_legal_plays_are_rlcards(rlcard_game):
    compare(rlcard_game, positions=10_000, seed=1)


@pytest.mark.long
def test_legal_plays_are_rlcards_long(rlcard_game):
    compare(rlcard_game, positions=1_000_000, seed=2)
