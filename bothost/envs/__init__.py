"""The games as environments of PettingZoo and Gymnasium, for training code that is not ours. Extra ``envs``.

- :class:`TurnEnv`: PettingZoo AEC. Every seat is an agent.
- :class:`SeatEnv`: Gymnasium. The learner has one seat, and strategies of your choice have the others.
- :class:`BatchEnv`: a Gymnasium vector environment. Many hands are stepped at once in native code.

All three observe an encoder block of the seat's view, so hidden cards never reach a learner. They number actions as
:class:`ActionSet` says. The reward is the score of the hand, at its end.
"""

from __future__ import annotations

try:
    import gymnasium as _gymnasium
    import pettingzoo as _pettingzoo
except ImportError as error:
    raise ImportError(f'bothost.envs needs {error.name}: pip install "bothost[envs]"') from error

from bothost.envs.actions import ActionSet
from bothost.envs.batch import BatchEnv, BatchPolicy
from bothost.envs.order import ResetNeeded
from bothost.envs.seat import SeatEnv
from bothost.envs.turn import TurnEnv

del _gymnasium, _pettingzoo

__all__ = ["ActionSet", "BatchEnv", "BatchPolicy", "ResetNeeded", "SeatEnv", "TurnEnv"]
