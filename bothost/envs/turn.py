"""A game as PettingZoo's agent environment cycle: one seat acts at a time."""

from __future__ import annotations

import copy
import operator
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle, seeding
from pettingzoo import AECEnv

from bothost.envs.actions import ActionSet, MaskArray, Numbering, block_of, box_of, game_of, render_mode_of
from bothost.envs.order import ResetNeeded
from bothost.rules import Block, FloatArray, Game, State, View


class TurnEnv(AECEnv, EzPickle):  # type: ignore[misc]  # pettingzoo has no types
    """Every seat is an agent, ``player_0`` to ``player_N``. An episode is a hand.

    An observation is ``{"observation": the block of the agent's view, "action_mask": 1 for each legal action}``. The
    mask is zero for an agent that is not asked. The rewards are the scores of the hand, at its end.

    Simultaneous decisions, such as claims in mahjong, are asked one after another, lowest seat first. No agent sees the
    decisions of the others. ``step`` raises ValueError for an action that is not legal;
    ``pettingzoo.utils.wrappers.TerminateIllegalWrapper`` ends the hand instead. ``step`` raises ResetNeeded before the
    first ``reset`` and after the last step of a hand. ``copy.deepcopy`` copies the hand, too; pickling does not.

    ``game``: a game, or the name of one with its default rules. ``block``: the encoder block to observe; None:
    ``DEFAULT_BLOCKS``. ``actions``: see :class:`ActionSet`. Raises UsageError for what the game does not have.
    """

    def __init__(
        self,
        game: Game | str,
        *,
        block: str | None = None,
        actions: Numbering = "ids",
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        EzPickle.__init__(self, game, block=block, actions=actions, render_mode=render_mode)
        self.game = game_of(game)
        self.metadata = {"name": f"{self.game.name}_v0", "render_modes": ["ansi"], "is_parallelizable": False}
        self.render_mode = render_mode_of(render_mode)
        self.possible_agents = [f"player_{seat}" for seat in range(self.game.num_seats)]
        self.agents: list[str] = []
        self.action_set = ActionSet(self.game, actions)
        observed = block_of(self.game, block)
        self._block = observed.name
        self._observations = {agent: self._space_of(observed) for agent in self.possible_agents}
        self._actions = {agent: spaces.Discrete(self.action_set.n) for agent in self.possible_agents}
        self._random, _ = seeding.np_random()
        self._state: State = self.game.new_state(0)

    def observation_space(self, agent: str) -> spaces.Dict:
        return self._observations[agent]

    def action_space(self, agent: str) -> spaces.Discrete:
        return self._actions[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Deal a hand. Equal seeds deal equal sequences of hands; None continues the sequence."""
        if seed is not None:
            self._random, _ = seeding.np_random(seed)
        self._state = self.game.new_state(int(self._random.integers(2**63)))
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._skip_agent_selection = None
        self._select()

    def observe(self, agent: str) -> dict[str, FloatArray | MaskArray]:
        view = self.view(agent)
        return {"observation": view.encode(self._block), "action_mask": self.action_set.mask(view.legal())}

    def action_masks(self) -> MaskArray:
        """The mask of the agent that is asked, as sb3-contrib wants it."""
        return self.action_set.mask(self.view(self._asked()).legal())

    def view(self, agent: str) -> View:
        """What the agent's seat may know."""
        return self._state.view(self.possible_agents.index(agent))

    def step(self, action: int | None) -> None:
        agent = self._asked()
        if not self.agents:
            raise ResetNeeded("the hand is over")
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        if action is None:
            raise ValueError(f"{agent} is asked: None is no action")
        seat = self.possible_agents.index(agent)
        self._state.apply(seat, self.action_set.action(operator.index(action), self._state.legal(seat)))
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        if self._state.terminal:
            for other, score in zip(self.possible_agents, self._state.returns, strict=True):
                self.rewards[other] = float(score)
                self.terminations[other] = True
        self._select()
        self._accumulate_rewards()

    def render(self) -> str | None:
        """With ``render_mode="ansi"``: the events that the asked seat received, one a line."""
        if self.render_mode != "ansi":
            return None
        return "\n".join(self._state.events(self.possible_agents.index(self._asked())))

    def close(self) -> None:
        return None

    def __deepcopy__(self, memo: dict[int, Any]) -> TurnEnv:
        made = memo[id(self)] = type(self).__new__(type(self))
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    def _asked(self) -> str:
        if not hasattr(self, "agent_selection"):
            raise ResetNeeded("no hand was dealt yet")
        return str(self.agent_selection)

    def _select(self) -> None:
        """The lowest seat that may act; after the end seat 0, as all agents step once more."""
        seats = self._state.to_act
        self.agent_selection = self.possible_agents[seats[0] if seats else 0]

    def _space_of(self, block: Block) -> spaces.Dict:
        mask = spaces.Box(0, 1, (self.action_set.n,), np.int8)
        return spaces.Dict({"observation": box_of(block), "action_mask": mask})
