"""PettingZoo's own tests pass for every game, and agents observe no more than their seats may know."""

import copy
import pickle
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test, seed_test
from pettingzoo.utils import turn_based_aec_to_parallel
from pettingzoo.utils.wrappers import TerminateIllegalWrapper

from bothost import rules
from bothost.envs import ResetNeeded, TurnEnv
from bothost.errors import UsageError
from bothost.rules import doudizhu
from bothost.testing.nim import Nim

GAMES = [*rules.games(plugins=False), Nim()]


@pytest.fixture(autouse=True)
def advice_of_pettingzoo_is_no_error():
    """It prefers bounded, undivided observations, and masks of agents that are not asked to have an action."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def name(game) -> str:
    return game if isinstance(game, str) else game.name


@pytest.mark.parametrize("game", GAMES, ids=name)
def test_the_tests_of_pettingzoo_pass(game):
    api_test(TurnEnv(game), num_cycles=200)
    seed_test(lambda: TurnEnv(game), num_cycles=60)


def test_a_game_of_a_plugin_is_found_by_its_name():
    pytest.importorskip("pyspiel")
    code = "from bothost.envs import TurnEnv; print(TurnEnv('openspiel:tic_tac_toe').possible_agents)"
    made = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True
    )  # where no plugin is loaded yet
    assert made.stdout == b"['player_0', 'player_1']\n"


def test_abstract_actions_pass_too():
    api_test(TurnEnv("doudizhu", actions="abstract"), num_cycles=200)
    api_test(TurnEnv(rules.game("doudizhu", preset="bidding"), actions="abstract"), num_cycles=200)


@pytest.mark.parametrize("game", ["othello", "mahjong"])
def test_turns_can_be_taken_through_the_parallel_interface(game):
    parallel_api_test(turn_based_aec_to_parallel(TurnEnv(game)), num_cycles=100)


def play(env: TurnEnv, seed: int, choose=lambda mask: int(np.flatnonzero(mask)[0])) -> dict[str, float]:
    """One hand; the rewards of the last step."""
    env.reset(seed=seed)
    while not any(env.terminations.values()):
        env.step(choose(env.observe(env.agent_selection)["action_mask"]))
    return dict(env.rewards)


@pytest.mark.parametrize("game", rules.games(plugins=False))
def test_agents_observe_their_views_alone(game):
    """Another deal that fits what a seat has seen gives that seat the same observation."""
    env = TurnEnv(game)
    env.reset(seed=3)
    block = env.game.blocks[
        {"doudizhu": "compact", "mahjong": "tiles", "othello": "board", "pairing": "features"}[game]
    ]
    for _ in range(5):
        agent = env.agent_selection
        seen = env.observe(agent)
        other_deal = env.view(agent).sample_state(seed=9)
        seat = env.possible_agents.index(agent)
        assert np.array_equal(seen["observation"], other_deal.view(seat).encode(block.name))
        assert np.flatnonzero(seen["action_mask"]).tolist() == other_deal.legal(seat).tolist()
        env.step(int(np.flatnonzero(seen["action_mask"])[-1]))


def test_the_rewards_are_the_scores_of_the_hand():
    rewards = play(TurnEnv("doudizhu"), seed=1)
    assert set(rewards) == {"player_0", "player_1", "player_2"}
    assert rewards["player_0"] == -2 * rewards["player_1"] != 0


def test_equal_seeds_deal_equal_hands():
    env = TurnEnv("pairing")
    env.reset(seed=5)
    first = [env.observe("player_0")["observation"]]
    env.reset()
    first.append(env.observe("player_0")["observation"])
    env.reset(seed=5)
    assert np.array_equal(env.observe("player_0")["observation"], first[0])
    env.reset()
    assert np.array_equal(env.observe("player_0")["observation"], first[1])
    assert not np.array_equal(*first)


@pytest.mark.parametrize("game", GAMES, ids=name)
def test_a_deep_copy_goes_on_from_the_same_position(game):
    env = TurnEnv(game)
    env.reset(seed=5)
    env.step(int(np.flatnonzero(env.action_masks())[0]))
    agent, copied = env.agent_selection, copy.deepcopy(env)
    seen = env.observe(agent)
    env.step(int(np.flatnonzero(seen["action_mask"])[0]))
    for part, values in copied.observe(agent).items():
        assert np.array_equal(values, seen[part]), part
    while not any(env.terminations.values()):
        env.step(int(np.flatnonzero(env.action_masks())[0]))
    while not any(copied.terminations.values()):
        copied.step(int(np.flatnonzero(copied.action_masks())[0]))
    assert copied.rewards == env.rewards
    env.reset()
    copied.reset()
    assert np.array_equal(env.action_masks(), copied.action_masks()), "the next deal is the same, too"


@pytest.mark.parametrize("game", [*rules.games(plugins=False), rules.game("doudizhu", bidding="score")], ids=name)
def test_what_is_pickled_starts_without_a_hand(game):
    env = TurnEnv(game)
    env.reset(seed=5)
    sent = pickle.loads(pickle.dumps(env))
    with pytest.raises(ResetNeeded):
        sent.step(0)
    assert sent.game.rules == env.game.rules and play(sent, seed=7) == play(env, seed=7)


def test_an_illegal_action_is_refused_and_the_wrapper_ends_the_hand():
    env = TurnEnv("othello")
    env.reset(seed=1)
    with pytest.raises(ValueError, match="action 0 is not legal now"):
        env.step(0)
    wrapped = TerminateIllegalWrapper(env, illegal_reward=-5)
    wrapped.reset(seed=1)
    wrapped.step(0)
    assert wrapped.rewards["player_0"] == -5
    assert all(wrapped.terminations.values())


def test_an_abstract_action_takes_the_lowest_legal_kickers():
    env = TurnEnv("doudizhu", actions="abstract")
    assert env.action_space("player_0").n == doudizhu.NUM_ABSTRACT_ACTIONS
    game = env.game
    legal = np.array(sorted(game.parse(move) for move in ("333K", "3334", "333A", "4")), np.int32)
    number = doudizhu.abstract_map()[game.parse("333K")]
    assert env.action_set.mask(legal).sum() == 2
    assert env.action_set.action(int(number), legal) == game.parse("3334")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"game": "othello", "actions": "abstract"}, "othello has no abstract actions"),
        ({"game": rules.game("doudizhu", preset="botzone"), "actions": "abstract"}, "space shuttles"),
        ({"game": "othello", "actions": "slots"}, "no numbering 'slots'"),
        ({"game": "othello", "block": "bord"}, "no view block 'bord'"),
        ({"game": "othelo"}, "no game is called 'othelo'"),
        ({"game": "othello", "render_mode": "human"}, "no render mode 'human'"),
    ],
)
def test_errors_say_what_the_game_lacks(options, message):
    with pytest.raises(UsageError, match=message):
        TurnEnv(**options)


def test_an_action_is_an_integer():
    env = TurnEnv("othello")
    env.reset(seed=1)
    with pytest.raises(TypeError, match="interpreted as an integer"):
        env.step(19.5)


@pytest.mark.parametrize("call", [lambda env: env.step(0), TurnEnv.action_masks, TurnEnv.render])
def test_without_a_hand_reset_is_needed(call):
    env = TurnEnv("pairing", render_mode="ansi")
    with pytest.raises(gymnasium.error.ResetNeeded, match="no hand was dealt yet") as caught:
        call(env)
    assert isinstance(caught.value, UsageError) and caught.value.advice == "call reset() first"


def test_after_the_last_step_of_a_hand_reset_is_needed():
    env = TurnEnv("pairing", render_mode="ansi")
    play(env, seed=1)
    while env.agents:
        env.step(None)
    with pytest.raises(gymnasium.error.ResetNeeded, match="the hand is over"):
        env.step(0)
    assert env.render(), "the hand can still be looked at"


def test_rendering_shows_what_the_asked_seat_received():
    env = TurnEnv("pairing", render_mode="ansi")
    env.reset(seed=1)
    assert env.render().splitlines() == rules.game("pairing").replay(
        env.view("player_0").sample_state(1).deal, []
    ).events(0)
