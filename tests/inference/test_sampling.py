import numpy as np
import pytest

from bothost import rules
from bothost.inference import choose, draw

VIEW = rules.game("doudizhu").new_state(1).view(0)
POLICY = np.array([0.2, 0.5, 0.0, 0.3], np.float32)


def shares(temperature, draws=4000):
    found = [choose(POLICY, temperature, seed, VIEW) for seed in range(draws)]
    return np.bincount(found, minlength=len(POLICY)) / draws


def test_at_temperature_0_the_most_probable_action_is_chosen():
    assert shares(0.0, 20).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_actions_are_drawn_by_the_tempered_policy(temperature):
    expected = POLICY ** (1 / temperature)
    assert shares(temperature) == pytest.approx(expected / expected.sum(), abs=0.03)


def test_extreme_temperatures_stay_finite():
    assert shares(1e-3, 20).tolist() == [0, 1, 0, 0]
    assert shares(100.0)[2] == 0.0  # what the policy rules out is never drawn


def test_what_is_drawn_depends_on_seed_and_view_alone():
    other = rules.game("doudizhu").new_state(2).view(0)
    mine, again, elsewhere = ([draw(np.ones(8), seed, view) for seed in range(50)] for view in (VIEW, VIEW, other))
    assert mine == again != elsewhere
    assert draw(np.ones(8), -1, VIEW) == draw(np.ones(8), 2**64 - 1, VIEW)  # logged seeds are signed
