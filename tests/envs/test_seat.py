"""One seat against strategies: Gymnasium's checker passes, and the opponents are those that were asked for."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from bothost import Decision, Player, Strategy, rules
from bothost.envs import ResetNeeded, SeatEnv
from bothost.errors import BothostError, PluginError, UsageError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:gymnasium")  # of observations without bounds


@pytest.mark.parametrize("game", rules.games(plugins=False))
def test_the_checker_of_gymnasium_passes(game):
    check_env(SeatEnv(game), skip_render_check=True)


def episode(env: SeatEnv, seed: int | None = None) -> tuple[float, dict]:
    _, info = env.reset(seed=seed)
    while True:
        _, reward, ended, truncated, info = env.step(int(np.flatnonzero(info["action_mask"])[0]))
        assert not truncated
        if ended:
            return reward, info


class Spy(Strategy):
    """First legal action; remembers the views."""

    name, version, games = "spy", "1", ("*",)
    wants_events = True

    def __init__(self, options=None, model=None, illegal: bool = False) -> None:
        super().__init__(options, model)
        self.seats: list[int] = []
        self.events = 0
        self.closed = 0
        self.illegal = illegal

    def player(self, table):
        spy = self

        class Sits(Player):
            def decide(self, view, legal, budget):
                assert view.seat == table.seat
                assert view.asked
                spy.seats.append(view.seat)
                return Decision(action=-1 if spy.illegal else int(legal[0]))

            def observe(self, events):
                spy.events += len(events)

            def close(self):
                spy.closed += 1

        return Sits()


class _Silent(Player):
    def decide(self, view, legal, budget):
        pass


class Mute(Strategy):
    name, version, games = "mute", "1", ("*",)

    def player(self, table):
        return _Silent()


def test_the_opponents_have_the_other_seats():
    one, two = Spy(), Spy()
    env = SeatEnv("doudizhu", [one, two], seat=1)
    reward, info = episode(env, seed=1)
    assert set(one.seats) == {0}
    assert set(two.seats) == {2}
    assert one.events > 0
    assert reward == info["returns"][1]
    env.close()
    assert one.closed == two.closed == 1


def test_addresses_name_opponents_and_the_seat_may_change():
    env = SeatEnv("othello", "rule-othello", seat=None)
    seats = set()
    for seed in range(8):
        env.reset(seed=seed)
        seats.add(env.seat)
        assert env.view.asked
    assert seats == {0, 1}
    losses = sum(episode(env, seed)[0] < 0 for seed in range(4))
    assert losses >= 3  # the first legal action loses to rule-othello


def test_equal_seeds_give_equal_episodes():
    def rewards(seed: int) -> list[float]:
        env = SeatEnv("pairing", "random")
        return [episode(env, seed if i == 0 else None)[0] for i in range(3)]

    assert rewards(7) == rewards(7)
    assert rewards(7) != rewards(8)


@pytest.mark.parametrize("send", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_has_the_same_opponents_and_starts_without_a_hand(send):
    env = SeatEnv("doudizhu", ["rule-doudizhu", "random"], seat=2, actions="abstract", illegal_reward=None)
    env.reset(seed=5)
    sent = send(env)
    with pytest.raises(ResetNeeded):
        sent.step(0)
    assert episode(sent, seed=7)[1]["returns"] == episode(env, seed=7)[1]["returns"]
    assert sent.action_space == env.action_space and sent.seat == 2
    sent.reset()
    with pytest.raises(ValueError, match="not legal now"):
        sent.step(int(np.flatnonzero(sent.action_masks() == 0)[0]))


def test_an_illegal_action_ends_the_episode_or_raises():
    env = SeatEnv("othello")
    env.reset(seed=1)
    _, reward, ended, _, info = env.step(0)
    assert (reward, ended, info["illegal_action"]) == (-1.0, True, True)
    with pytest.raises(UsageError, match="the hand is over"):
        env.step(19)
    strict = SeatEnv("othello", illegal_reward=None)
    strict.reset(seed=1)
    with pytest.raises(ValueError, match="action 0 is not legal"):
        strict.step(0)


def test_hands_that_end_before_the_learner_is_asked_are_left_out():
    """At one stone the first seat wins at once."""
    from bothost.testing.nim import Nim

    with pytest.raises(UsageError, match="seat 1 of nim was not asked"):
        SeatEnv(Nim(stones=1), seat=1).reset(seed=1)


def test_masks_are_where_sb3_contrib_looks():
    env = SeatEnv("othello")
    _, info = env.reset(seed=1)
    assert np.array_equal(env.action_masks(), info["action_mask"])
    assert env.action_masks().sum() == 4


def test_errors():
    with pytest.raises(BothostError, match="rule-othelo"):
        SeatEnv("othello", "rule-othelo")
    with pytest.raises(UsageError, match="rule-othello does not play pairing"):
        SeatEnv("pairing", "rule-othello")
    with pytest.raises(UsageError, match="1 opponents for 2 seats"):
        SeatEnv("doudizhu", ["random"])
    with pytest.raises(UsageError, match="othello has no seat 2"):
        SeatEnv("othello", seat=2)
    with pytest.raises(UsageError, match=r"Call reset\(\)|no hand was dealt"):
        SeatEnv("othello").step(0)
    for number in ("d3", 19.5):
        env = SeatEnv("othello")
        env.reset(seed=1)
        with pytest.raises(TypeError, match="interpreted as an integer"):
            env.step(number)
    with pytest.raises(UsageError, match="no render mode 'human'"):
        SeatEnv("othello", render_mode="human")
    with pytest.raises(PluginError, match="mute: decide returned NoneType, not a Decision"):
        episode(SeatEnv("othello", Mute(Mute.Options())), seed=1)
    with pytest.raises(PluginError, match="spy: it chose -1"):
        episode(SeatEnv("othello", Spy(illegal=True)), seed=1)


def test_wrappers_of_gymnasium_work():
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.wrappers.FlattenObservation(SeatEnv("othello")))
    observation, info = env.reset(seed=1)
    assert observation.shape == (192,)
    ended = False
    while not ended:
        _, _, ended, _, info = env.step(int(np.flatnonzero(info["action_mask"])[0]))
    assert info["episode"]["l"] > 20
