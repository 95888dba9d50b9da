"""The vector environment steps the same hands as single states, for the learner's decisions alone."""

import copy
import pickle

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from bothost import rules
from bothost.envs import BatchEnv, ResetNeeded
from bothost.errors import UsageError

N = 12


def first_legal(mask):
    return mask.argmax(axis=1)


@pytest.mark.parametrize("game", rules.games(plugins=False))
@pytest.mark.parametrize("opponents", [None, "random"])
def test_observations_and_masks_are_those_of_the_asked_views(game, opponents):
    env = BatchEnv(game, N, opponents)
    observations, info = env.reset(seed=1)
    played = [rules.game(game).state_from_deal(env.batch.deal(i)) for i in range(N)] if opponents is None else []
    rng = np.random.default_rng(2)
    for _ in range(30):
        assert observations in env.observation_space
        assert np.array_equal(info["action_mask"], env.action_masks())
        for i, state in enumerate(played):
            view = state.view(int(info["seat"][i]))
            assert np.array_equal(observations[i], view.encode(BLOCKS[game]))
            assert np.array_equal(np.flatnonzero(info["action_mask"][i]), view.legal())
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in info["action_mask"]])
        for i, state in enumerate(played):
            state.apply(int(info["seat"][i]), int(actions[i]))
        acted = info["seat"]
        observations, rewards, done, truncated, info = env.step(actions)
        assert not truncated.any()
        assert np.array_equal(rewards, info["returns"][np.arange(N), acted])
        assert not rewards[~done].any()
        for i, state in enumerate(played):
            assert state.terminal == done[i]
            if done[i]:
                assert np.allclose(info["returns"][i], state.returns)
                played[i] = rules.game(game).state_from_deal(env.batch.deal(i))


BLOCKS = {"doudizhu": "compact", "mahjong": "tiles", "othello": "board", "pairing": "features"}


@pytest.mark.parametrize("opponents", ["random", lambda env, rows: env.legal_ids[env.legal_offsets[rows]]])
def test_only_the_learner_is_asked(opponents):
    env = BatchEnv("doudizhu", N, opponents, actions="abstract")
    _, info = env.reset(seed=3)
    ended = 0
    for _ in range(60):
        assert np.array_equal(info["seat"], np.arange(N) % 3)
        _, rewards, done, _, info = env.step(first_legal(info["action_mask"]))
        assert (rewards[done] != 0).all()
        ended += int(done.sum())
    assert ended > N
    fixed = BatchEnv("doudizhu", N, "random", seat=2)
    assert set(fixed.reset(seed=1)[1]["seat"]) == {2}


def test_the_native_rule_player_beats_random_play():
    env = BatchEnv("pairing", 32, "rule")
    _, info = env.reset(seed=1)
    rng, scores = np.random.default_rng(1), []
    for _ in range(200):
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in info["action_mask"]])
        _, rewards, done, _, info = env.step(actions)
        scores += rewards[done].tolist()
    assert len(scores) > 50
    assert np.mean(scores) < -5


def test_equal_seeds_give_equal_rollouts():
    def rollout(seed: int) -> np.ndarray:
        env = BatchEnv("mahjong", 4, "random")
        _, info = env.reset(seed=seed)
        out = []
        for _ in range(20):
            observations, *_, info = env.step(first_legal(info["action_mask"]))
            out.append(observations)
        return np.stack(out)

    assert np.array_equal(rollout(1), rollout(1))
    assert not np.array_equal(rollout(1), rollout(2))


@pytest.mark.parametrize("send", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_starts_without_hands(send):
    env = BatchEnv("pairing", N, "rule", seat=1)
    env.reset(seed=5)
    sent = send(env)
    with pytest.raises(ResetNeeded):
        sent.step(first_legal(sent.action_masks()))
    for each in (env, sent):
        each.reset(seed=6)
    assert np.array_equal(env.step(first_legal(env.action_masks()))[0], sent.step(first_legal(sent.action_masks()))[0])


def test_without_copies_the_arrays_are_reused():
    env = BatchEnv("othello", 2, copy=False)
    first, info = env.reset(seed=1)
    second, *_ = env.step(first_legal(info["action_mask"]))
    assert first is second
    copied = BatchEnv("othello", 2)
    first, info = copied.reset(seed=1)
    second, *_ = copied.step(first_legal(info["action_mask"]))
    assert not np.array_equal(first, second)


def test_it_says_how_it_resets():
    env = BatchEnv("othello", 2)
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    with pytest.raises(UsageError, match="single environments cannot be reset"):
        env.reset(options={"reset_mask": np.ones(2, bool)})


def test_errors():
    env = BatchEnv("othello", 2)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="environment 0: action 0 is not legal"):
        env.step(np.zeros(2, int))
    abstract = BatchEnv("doudizhu", 2, actions="abstract")
    abstract.reset(seed=1)
    with pytest.raises(ValueError, match="environment 0: action 0 is not legal"):
        abstract.step(np.zeros(2, int))
    for either in (env, abstract):
        for wrong in (np.zeros(3, int), np.zeros((2, 1), int), np.full(2, 19.5)):
            with pytest.raises(ValueError, match="actions for 2 environments: give an integer for each"):
                either.step(wrong)
        for outside in (-1, either.action_set.n, 2**32 + 19):
            with pytest.raises(ValueError, match=f"environment 0: action {outside} is not legal now"):
                either.step(np.full(2, outside))
    for number in (0, -1, 10**9):
        with pytest.raises(UsageError, match="1 to 1,048,576 environments"):
            BatchEnv("othello", number)
    with pytest.raises(UsageError, match="cannot be played by 'rule-othello'"):
        BatchEnv("othello", 2, "rule-othello")
    with pytest.raises(UsageError, match="no rule player"):
        BatchEnv("othello", 2, "rule").reset(seed=1)
    with pytest.raises(UsageError, match="othello has no seat 7"):
        BatchEnv("othello", 2, seat=7)
