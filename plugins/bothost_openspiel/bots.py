"""OpenSpiel's bots as strategies for OpenSpiel's games."""

from __future__ import annotations

import math
import time
from typing import Annotated, Any

import msgspec
import numpy as np
import pyspiel

from bothost import Budget, Decision, Player, Strategy, Table
from bothost.rules import ActionArray, Game, View
from bothost_openspiel.game import SpielGame, SpielView

SHARE_OF_BUDGET = 0.8
"""Share of the remaining time that the search uses."""
TRIAL = 10
"""Number of simulations for measuring the time of one."""
ROOT_SEEDS = 2**31 - 1


class _SpielStrategy(Strategy):
    version = "1"
    games = ("openspiel:*",)

    @classmethod
    def supports(cls, game: Game) -> bool:
        return isinstance(game, SpielGame)


def spiel_of(view: View) -> Any:
    """A copy of OpenSpiel's state of a view."""
    assert isinstance(view, SpielView)  # ensured by ``supports``
    return view.spiel.clone()


class RandomPlayer(Player):
    """OpenSpiel's uniform random bot."""

    def __init__(self, seat: int, seed: int) -> None:
        self._bot = pyspiel.make_uniform_random_bot(seat, seed % ROOT_SEEDS)

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        action = int(self._bot.step(spiel_of(view)))
        return Decision(action=action if action in legal else int(legal[0]))  # the lobby may have refused it


class SpielRandom(_SpielStrategy):
    """OpenSpiel's ``uniform_random``."""

    name = "openspiel-random"

    def player(self, table: Table) -> RandomPlayer:
        return RandomPlayer(table.seat, table.seed)


class MctsOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    simulations: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] = 1000
    """Simulations per move; fewer if the time is short."""
    rollouts: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    """Rollouts per leaf."""
    uct_c: Annotated[float, msgspec.Meta(ge=0.0, le=1000.0)] = 2.0
    """Exploration constant of UCT."""
    memory_mb: Annotated[int, msgspec.Meta(ge=1, le=65_536)] = 200
    """Memory limit of the tree."""


class MctsPlayer(Player):
    """Starts a new search for each move. Its seed depends on the table and the number of steps."""

    def __init__(self, options: MctsOptions, seed: int) -> None:
        self._options = options
        self._seed = seed

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        state, seed = spiel_of(view), (self._seed + view.seq) % ROOT_SEEDS
        root = self._search(state, seed, self._affordable(state, seed, budget))
        found = {child.action: child for child in root.children}
        visits = np.array([found[a].explore_count if a in found else 0 for a in legal.tolist()], float)
        if not visits.any():  # the time was enough for the root alone
            return self.quick(view, legal)
        best = int(root.best_child().action)
        action = best if best in legal else int(legal[visits.argmax()])  # the lobby has refused the best
        stats = {"simulations": int(root.explore_count)}
        return Decision(action=action, policy=(visits / visits.sum()).tolist(), stats=stats)

    def _affordable(self, state: Any, seed: int, budget: Budget) -> int:
        """The number of simulations that the clock allows. OpenSpiel's own time limit would always use all the time."""
        wanted = self._options.simulations
        if math.isinf(budget.deadline) or wanted <= TRIAL:
            return wanted
        start = time.perf_counter()
        self._search(state, seed, TRIAL)
        each_ms = (time.perf_counter() - start) * 1000.0 / TRIAL
        return max(1, min(wanted, int(budget.left_ms() * SHARE_OF_BUDGET / each_ms)))

    def _search(self, state: Any, seed: int, simulations: int) -> Any:
        """Run a new search, and return its root."""
        options = self._options
        evaluator = pyspiel.RandomRolloutEvaluator(options.rollouts, seed)
        solve = True  # proven wins and losses
        bot = pyspiel.MCTSBot(
            state.get_game(), evaluator, options.uct_c, simulations, options.memory_mb, solve, seed, False
        )
        return bot.mcts_search(state.clone())

    def quick(self, view: View, legal: ActionArray) -> Decision:
        return Decision(action=int(legal[(self._seed + view.seq) % len(legal)]))


class SpielMcts(_SpielStrategy):
    """OpenSpiel's Monte-Carlo tree search (UCT with random rollouts)."""

    name = "openspiel-mcts"
    execution = "process"  # the search holds the GIL
    needs_search_thread = True
    Options = MctsOptions

    def player(self, table: Table) -> MctsPlayer:
        return MctsPlayer(self.options, table.seed)
