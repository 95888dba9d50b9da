"""What an environment observes, and how it numbers actions."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from bothost import rules
from bothost.config import nearest
from bothost.errors import UsageError
from bothost.plugins import Plugins
from bothost.rules import ActionArray, Block, Game
from bothost.rules import doudizhu as doudizhu_rules

Numbering = Literal["ids", "abstract"]
MaskArray = npt.NDArray[np.int8]

DEFAULT_BLOCKS = {"doudizhu": "compact", "mahjong": "tiles", "othello": "board", "pairing": "features"}
"""The encoder block that is observed unless another is named; of a plugin's game its first view block."""

MOST_NATIVE_MASK = 512
"""``VecEnv.legal_mask`` fills masks of at most this many actions."""


def game_of(game: Game | str) -> Game:
    """The game, made with its default rules where only its name is given. A plugin may bring it."""
    if not isinstance(game, str):
        return game
    try:
        return rules.game(game)
    except UsageError:
        Plugins.load()
        return rules.game(game)


def block_of(game: Game, name: str | None) -> Block:
    """The view block of this name, or the game's default. Raises UsageError if there is none."""
    views = {each: block for each, block in game.blocks.items() if block.of == "view"}
    if not views:
        raise UsageError(f"{game.name} has no encoder of views", advice="give the game a block with of = 'view'")
    wanted = name or DEFAULT_BLOCKS.get(game.name, next(iter(views)))
    if wanted not in views:
        raise UsageError(f"{game.name} has no view block {wanted!r}", advice=nearest(wanted, views))
    return views[wanted]


def render_mode_of(mode: str | None) -> str | None:
    """The mode, checked. Raises UsageError."""
    if mode not in (None, "ansi"):
        raise UsageError(f"there is no render mode {mode!r}", advice='take "ansi"')
    return mode


def box_of(block: Block) -> spaces.Box:
    """Observations of a block. Blocks declare no bounds, so the space has none."""
    return spaces.Box(-np.inf, np.inf, block.shape, np.float32)


class ActionSet:
    """The numbers 0 to ``n - 1`` that a learner chooses from, and the game's action ids that they stand for.

    ``ids``: the game's own ids, which the log, exports and strategies use. Mahjong has 193, Othello 65, pairing 58 and
    Dou Dizhu 27,472 or more: there each combination of kickers is an action of its own.

    ``abstract``, for Dou Dizhu: the 309 moves without their kickers (``333*``), then the calls. The kickers are the
    lowest that are legal: those of the legal action with the smallest id. A policy head of 309 outputs suffices, and
    a learner gives up only the choice of kickers. Rules with space shuttles have no such numbering.

    The alternative, a list of the legal actions with features of each (blocks whose ``of`` is "action"), suits networks
    that value one action at a time. It fits no fixed action space; use ``bothost.rules.vec_env`` for it.
    """

    def __init__(self, game: Game, numbering: Numbering = "ids") -> None:
        self.numbering = numbering
        self._number_of: npt.NDArray[np.int32] | None = None
        if numbering == "ids":
            self.n = game.num_actions
        elif numbering == "abstract":
            self._number_of = _abstract_numbers(game)
            self.n = int(self._number_of.max()) + 1
        else:
            raise UsageError(f"there is no numbering {numbering!r}", advice="take 'ids' or 'abstract'")

    def mask(self, legal: ActionArray) -> MaskArray:
        """Shape (n,): 1 for each action that may be chosen."""
        out = np.zeros(self.n, np.int8)
        out[self._numbers(legal)] = 1
        return out

    def action(self, number: int, legal: ActionArray) -> int:
        """The action id that a number stands for. Raises ValueError if it is not legal now."""
        fitting = legal[self._numbers(legal) == number]
        if not len(fitting):
            raise ValueError(f"action {number} is not legal now: choose among those that the action mask allows")
        return int(fitting[0])

    def masks(self, env: rules.VecEnv, out: npt.NDArray[np.bool_]) -> None:
        """``mask`` of every environment into ``out``, shape (env.n, n)."""
        if self._number_of is None and self.n <= MOST_NATIVE_MASK:
            env.legal_mask(out)
            return
        out[:] = False
        out[_owners(env), self._numbers(env.legal_ids)] = True

    def actions(self, env: rules.VecEnv, numbers: npt.NDArray[np.integer]) -> ActionArray:
        """``action`` of every environment, shape (env.n,). Raises ValueError if a number is not legal."""
        if numbers.shape != (env.n,) or numbers.dtype.kind not in "iu":
            raise ValueError(f"{numbers.size} actions for {env.n} environments: give an integer for each")
        if self._number_of is None:
            outside = np.flatnonzero((numbers < 0) | (numbers >= self.n))  # to the environment, -1 means: skip me
            if len(outside):
                raise ValueError(f"environment {outside[0]}: action {numbers[outside[0]]} is not legal now")
            return np.ascontiguousarray(numbers, np.int32)  # the environment checks the rest
        owners = _owners(env)
        fitting = np.flatnonzero(self._numbers(env.legal_ids) == numbers[owners])
        found, first = np.unique(owners[fitting], return_index=True)
        if len(found) < env.n:
            bad = int(np.setdiff1d(np.arange(env.n), found)[0])
            raise ValueError(f"environment {bad}: action {numbers[bad]} is not legal now")
        return np.ascontiguousarray(env.legal_ids[fitting[first]])

    def _numbers(self, ids: ActionArray) -> ActionArray:
        return ids if self._number_of is None else self._number_of[ids]


def _owners(env: rules.VecEnv) -> npt.NDArray[np.int64]:
    """The environment of each entry of ``legal_ids``."""
    return np.repeat(np.arange(env.n), np.diff(env.legal_offsets))


def _abstract_numbers(game: Game) -> npt.NDArray[np.int32]:
    """Shape (num_actions,): the number of each action id; -1 where the rules lack it."""
    if game.name != "doudizhu":
        raise UsageError(f"{game.name} has no abstract actions", advice="take 'ids'; only doudizhu has both")
    if game.rules["shuttles"]:
        raise UsageError("space shuttles have no abstract form", advice="take 'ids', or rules without shuttles")
    numbers = doudizhu_rules.abstract_map()[: game.num_actions].astype(np.int32)
    calls = [int(i) for i in np.flatnonzero(numbers < 0) if doudizhu_rules.move(int(i)).kind == "call"]
    numbers[calls] = np.arange(len(calls)) + doudizhu_rules.NUM_ABSTRACT_ACTIONS
    return numbers
