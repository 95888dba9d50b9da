"""One seat of a game as a Gymnasium environment; strategies play the others."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle

from bothost.envs.actions import ActionSet, MaskArray, Numbering, block_of, box_of, game_of, render_mode_of
from bothost.envs.order import ResetNeeded
from bothost.errors import PluginError, UsageError
from bothost.plugins import Plugins
from bothost.rules import FloatArray, Game, State, View
from bothost.strategy import Budget, Player, Strategy, Table
from bothost.tables.fallback import checked

NO_CLOCK = Budget(deadline=math.inf)
MOST_SKIPPED = 1000
"""Hands in a row that may end before the learner is asked."""


class SeatEnv(gymnasium.Env[FloatArray, int], EzPickle):
    """The learner has one seat. An episode is a hand, from its first decision of that seat to the end.

    An observation is the encoder block of the seat's view. ``info["action_mask"]`` and ``action_masks()`` (which
    sb3-contrib calls) have 1 for each legal action. The reward is the score of the seat, at the end of the hand.

    ``opponents``: the address of a strategy, or a strategy, for all other seats; or a sequence with one for each other
    seat, in the order of the seats. They see their own views alone, and play without a clock. ``seat``: where the
    learner sits; None: a seat that each reset draws. Hands that end before the learner is asked are not episodes.

    ``illegal_reward``: an action that is not legal ends the episode with this reward, and with
    ``info["illegal_action"]``. None: ``step`` raises ValueError. What is pickled or copied starts without a hand.

    ``game``, ``block`` and ``actions`` are those of :class:`bothost.envs.TurnEnv`. Raises UsageError for what the game
    does not have, BothostError for an opponent that cannot be made, PluginError if one plays an illegal action or none.
    """

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        game: Game | str,
        opponents: str | Strategy | Sequence[str | Strategy] = "random",
        *,
        seat: int | None = 0,
        block: str | None = None,
        actions: Numbering = "ids",
        illegal_reward: float | None = -1.0,
        plugins: Plugins | None = None,
        render_mode: str | None = None,
    ) -> None:
        EzPickle.__init__(
            self,
            game,
            opponents,
            seat=seat,
            block=block,
            actions=actions,
            illegal_reward=illegal_reward,
            plugins=plugins,
            render_mode=render_mode,
        )
        self.game = game_of(game)
        if seat is not None and not 0 <= seat < self.game.num_seats:
            raise UsageError(f"{self.game.name} has no seat {seat}", advice=f"take 0 to {self.game.num_seats - 1}")
        self.render_mode = render_mode_of(render_mode)
        self.illegal_reward = illegal_reward
        self.action_set = ActionSet(self.game, actions)
        self._block = block_of(self.game, block)
        self.observation_space: spaces.Box = box_of(self._block)  # type: ignore[assignment]  # of any dtype
        self.action_space = spaces.Discrete(self.action_set.n)  # type: ignore[assignment]  # its ints are numpy's
        self._wanted_seat = seat
        self._opponents = _strategies(self.game, opponents, plugins or Plugins.load())
        self._hand: _Hand | None = None

    @property
    def view(self) -> View:
        """What the learner's seat knows."""
        return self._playing().views[self._playing().learner]

    @property
    def seat(self) -> int:
        """Where the learner sits in this hand."""
        return self._playing().learner

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Deal a hand and play it up to the learner's first decision."""
        super().reset(seed=seed)
        for _ in range(MOST_SKIPPED):
            self._close_hand()
            seat = self._wanted_seat
            learner = int(self.np_random.integers(self.game.num_seats)) if seat is None else seat
            self._hand = _Hand(self.game, learner, self._opponents, int(self.np_random.integers(2**63)))
            self._hand.play_others()
            if not self._hand.state.terminal:
                return self._observe()
        raise UsageError(
            f"seat {self._wanted_seat} of {self.game.name} was not asked in {MOST_SKIPPED} hands",
            advice="take another seat or other rules",
        )

    def step(self, action: int) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        hand = self._playing()
        if hand.state.terminal or hand.abandoned:
            raise ResetNeeded("the hand is over")
        number = operator.index(action)
        try:
            chosen = self.action_set.action(number, self.view.legal())
        except ValueError:
            if self.illegal_reward is None:
                raise
            hand.abandoned = True
            observation, info = self._observe()
            return observation, self.illegal_reward, True, False, {**info, "illegal_action": True}
        hand.apply(hand.learner, chosen)
        hand.play_others()
        ended = hand.state.terminal
        reward = float(hand.state.returns[hand.learner]) if ended else 0.0
        observation, info = self._observe()
        if ended:
            info["returns"] = hand.state.returns
        return observation, reward, ended, False, info

    def action_masks(self) -> MaskArray:
        """Shape (actions,): 1 for each legal action; all 0 after the end."""
        return self.action_set.mask(self.view.legal())

    def render(self) -> str | None:
        """With ``render_mode="ansi"``: the events that the learner's seat received, one a line."""
        if self.render_mode != "ansi":
            return None
        return "\n".join(self._playing().state.events(self.seat))

    def close(self) -> None:
        self._close_hand()
        for strategy in {id(each): each for each in self._opponents}.values():
            strategy.close()

    def _observe(self) -> tuple[FloatArray, dict[str, Any]]:
        return self.view.encode(self._block.name), {"action_mask": self.action_masks(), "seat": self.seat}

    def _playing(self) -> _Hand:
        if self._hand is None:
            raise ResetNeeded("no hand was dealt yet")
        return self._hand

    def _close_hand(self) -> None:
        if self._hand is not None:
            self._hand.close()
            self._hand = None


class _Hand:
    """A hand under way: each seat folds its own events, as at a table."""

    def __init__(self, game: Game, learner: int, opponents: Sequence[Strategy], seed: int) -> None:
        self.learner = learner
        self.abandoned = False
        self.state: State = game.new_state(seed)
        self.views = [game.new_view(seat) for seat in range(game.num_seats)]
        self.strategies: dict[int, Strategy] = {}
        self.players: dict[int, Player] = {}
        others = [seat for seat in range(game.num_seats) if seat != learner]
        seeds = np.random.default_rng(seed).integers(2**63, size=len(others))
        for seat, strategy, own_seed in zip(others, opponents, seeds, strict=True):
            self.strategies[seat] = strategy
            table = Table(lobby="env", table="env", game=game, seat=seat, seed=int(own_seed))
            self.players[seat] = strategy.player(table)
        self._fold()

    def apply(self, seat: int, action: int) -> None:
        self.state.apply(seat, action)
        self._fold()

    def play_others(self) -> None:
        """Play until the learner is asked, or to the end. Of seats that decide at once, the lowest goes first."""
        while (asked := self.state.to_act) and asked[0] != self.learner:
            seat = asked[0]
            view = self.views[seat]
            name, decision = self.strategies[seat].name, self.players[seat].decide(view, view.legal(), NO_CLOCK)
            try:
                action = int(checked(decision).action)
            except TypeError as error:
                raise PluginError(name, str(error)) from error
            if not view.is_legal(action):
                raise PluginError(name, f"it chose {action} at {view.game.name}, which is not legal")
            self.apply(seat, action)

    def close(self) -> None:
        for player in self.players.values():
            player.close()

    def _fold(self) -> None:
        for seat, view in enumerate(self.views):
            news = self.state.events(seat, view.seq)
            view.observe_all(news)
            if news and seat in self.strategies and self.strategies[seat].wants_events:
                self.players[seat].observe(news)


def _strategies(game: Game, opponents: str | Strategy | Sequence[str | Strategy], plugins: Plugins) -> list[Strategy]:
    """One strategy for each seat but the learner's; equal addresses share one."""
    others = game.num_seats - 1
    wanted = [opponents] * others if isinstance(opponents, str | Strategy) else list(opponents)
    if len(wanted) != others:
        raise UsageError(
            f"{len(wanted)} opponents for {others} seats",
            advice="name one for each other seat, or one address for all",
        )
    made = {address: plugins.resolve(address).make() for address in wanted if isinstance(address, str)}
    strategies = [made[each] if isinstance(each, str) else each for each in wanted]
    for strategy in strategies:
        if not strategy.supports(game):
            raise UsageError(f"{strategy.name} does not play {game.name} under these rules")
    return strategies
