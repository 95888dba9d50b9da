"""Many hands at once as a Gymnasium vector environment, without Python code per hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.utils import EzPickle
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from bothost import rules
from bothost.envs.actions import ActionSet, Numbering, block_of, box_of, game_of
from bothost.envs.order import ResetNeeded
from bothost.errors import UsageError
from bothost.rules import ActionArray, FloatArray, Game, VecEnv

BatchPolicy = Callable[[VecEnv, npt.NDArray[np.int64]], ActionArray]
"""Takes the batch and the numbers of m environments in it; returns a legal action id of each, int32, shape (m,)."""

BoolArray = npt.NDArray[np.bool_]
MOST = 1 << 20
"""Most environments of a batch."""
Step = tuple[FloatArray, npt.NDArray[np.float64], BoolArray, BoolArray, dict[str, Any]]


class BatchEnv(VectorEnv[FloatArray, npt.NDArray[np.integer], npt.NDArray[Any]], EzPickle):
    """``n`` hands stepped at once on top of ``bothost.rules.vec_env``.

    An observation, shape (n, \\*block), is the encoder block of each asked seat. ``info["action_mask"]``, and
    ``action_masks()``, bool, shape (n, actions), say what is legal; ``info["seat"]``, shape (n,), who is asked. The
    reward is the score of the hand, at its end. ``step`` raises ValueError for an action that is not legal.

    ``opponents``: who decides for the other seats.

    - None: the learner, too (self-play). Every step is a decision of the seat ``info["seat"]``; the reward is that of
      the seat that acted last. ``info["returns"]``, shape (n, seats), has the scores of all seats.
    - "random": uniform over the legal actions. "rule": the native rule player of a batch, which ``pairing`` has.
    - a function: see :data:`BatchPolicy`, for example a frozen copy of the learner.

    ``seat``: where the learner sits if there are opponents; None: in environment i it is seat i modulo the seats.

    A hand that ends is followed by the next deal within the same step (``AutoresetMode.SAME_STEP``). Hands are never
    truncated, so nothing needs their last position: ``info`` has no ``final_obs``. Hands that end before the learner
    is asked are left out. With ``copy=False`` all arrays are overwritten by the next step. What is pickled or copied
    starts without hands: ``step`` raises ResetNeeded before the first ``reset``.

    ``game``, ``block`` and ``actions`` are those of :class:`bothost.envs.TurnEnv`. Raises UsageError for what the game
    does not have.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        game: Game | str,
        n: int,
        opponents: Literal["random", "rule"] | BatchPolicy | None = None,
        *,
        seat: int | None = None,
        block: str | None = None,
        actions: Numbering = "ids",
        copy: bool = True,
    ) -> None:
        if not 1 <= n <= MOST:
            raise UsageError(f"a batch has 1 to {MOST:,} environments, not {n:,}")
        EzPickle.__init__(self, game, n, opponents, seat=seat, block=block, actions=actions, copy=copy)
        self.game = game_of(game)
        self.num_envs = n
        self.action_set = ActionSet(self.game, actions)
        self.copy = copy
        self._block = block_of(self.game, block)
        self.single_observation_space = box_of(self._block)
        self.single_action_space = spaces.Discrete(self.action_set.n)
        self.observation_space = batch_space(self.single_observation_space, n)
        self.action_space = batch_space(self.single_action_space, n)
        self._rows = np.arange(n)
        if seat is not None and not 0 <= seat < self.game.num_seats:
            raise UsageError(f"{self.game.name} has no seat {seat}", advice=f"take 0 to {self.game.num_seats - 1}")
        self._learner = self._rows % self.game.num_seats if seat is None else np.full(n, seat)
        self._observation = np.zeros((n, *self._block.shape), np.float32)
        self._mask = np.zeros((n, self.action_set.n), np.bool_)
        self._policy = self._policy_of(opponents)
        self._env = rules.vec_env(self.game, n, 0)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Deal ``n`` hands. Equal seeds give equal sequences of deals."""
        if options and "reset_mask" in options:
            raise UsageError("single environments cannot be reset", advice="call reset() without reset_mask")
        super().reset(seed=seed)
        self._env = rules.vec_env(self.game, self.num_envs, int(self.np_random.integers(2**63)))
        none = np.zeros(self.num_envs, np.bool_)
        self._play_others(np.zeros((self.num_envs, self.game.num_seats)), none)
        return self._observe({})

    def step(self, actions: npt.NDArray[np.integer]) -> Step:
        if self._np_random is None:
            raise ResetNeeded("no hand was dealt yet")
        env = self._env
        acted = env.seat.astype(np.int64)
        env.step(self.action_set.actions(env, np.asarray(actions)))
        done = env.done.copy()
        returns = env.returns.astype(np.float64)
        self._play_others(returns, done)
        rewards = returns[self._rows, acted]
        observation, info = self._observe({"returns": returns})
        return observation, rewards, done, np.zeros(self.num_envs, np.bool_), info

    def action_masks(self) -> BoolArray:
        """Shape (n, actions): what each asked seat may do."""
        return self._mask.copy() if self.copy else self._mask

    @property
    def batch(self) -> VecEnv:
        """The hands themselves, for other encoder blocks of the same positions."""
        return self._env

    def _observe(self, info: dict[str, Any]) -> tuple[FloatArray, dict[str, Any]]:
        self._env.encode(self._block.name, self._observation)
        self.action_set.masks(self._env, self._mask)
        info |= {"action_mask": self.action_masks(), "seat": self._env.seat.copy()}
        return self._observation.copy() if self.copy else self._observation, info

    def _play_others(self, returns: npt.NDArray[np.float64], done: BoolArray) -> None:
        """Let the opponents decide until the learner is asked everywhere; note the scores of hands that end.

        In an environment that is ``done`` the learner was not asked since, so another end counts for nothing.
        """
        if self._policy is None:
            return
        env = self._env
        while len(rows := np.flatnonzero(env.seat != self._learner)):
            actions = np.full(self.num_envs, -1, np.int32)
            actions[rows] = self._policy(env, rows)
            env.step(actions)
            ended = env.done & ~done
            returns[ended] = env.returns[ended]
            done |= ended

    def _policy_of(self, opponents: Literal["random", "rule"] | BatchPolicy | None) -> BatchPolicy | None:
        if opponents is None or callable(opponents):
            return opponents
        if opponents == "random":
            return self._random_actions
        if opponents == "rule":
            return _rule_actions
        raise UsageError(
            f"a batch cannot be played by {opponents!r}",
            advice='take "random", "rule", a function, or SeatEnv, which takes any strategy',
        )

    def _random_actions(self, env: VecEnv, rows: npt.NDArray[np.int64]) -> ActionArray:
        first, counts = env.legal_offsets[rows], env.legal_offsets[rows + 1] - env.legal_offsets[rows]
        drawn = (self.np_random.random(len(rows)) * counts).astype(np.int64)
        actions: ActionArray = env.legal_ids[first + drawn]
        return actions


def _rule_actions(env: VecEnv, rows: npt.NDArray[np.int64]) -> ActionArray:
    try:
        return env.rule_actions(rows)
    except ValueError as error:
        raise UsageError(str(error), advice='take "random", or SeatEnv and a strategy') from error
