"""Live play: one native search per hand. Its tree is reused from decision to decision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

import msgspec
import numpy as np

from bothost import Budget, Decision, Evaluator, Model, ModelError, Player, Table, Trainer
from bothost.rules import ActionArray, FloatArray, Game, NativeView, Search, View, doudizhu, search
from bothost_doudizhu_mcts import players
from bothost_doudizhu_mcts.encode import supports
from bothost_doudizhu_mcts.evaluated import LeafValues, address_of, search_on
from bothost_doudizhu_mcts.network import Network
from bothost_doudizhu_mcts.options import DEFAULT_ITERATIONS, PlayOptions
from bothost_doudizhu_mcts.ponder import Pondering
from bothost_doudizhu_mcts.timing import Stopwatch, allotted_ms

SLICE = 250
"""Iterations between two checks whether the choice can still change."""
SHOWN = 8
"""Number of candidates in the statistics."""


class DoudizhuMcts(Evaluator):
    """Plays Dou Dizhu by information-set UCT over sampled hands.

    ``values`` and ``value`` of its decisions are utilities of its side in [-1, 1]: with the utility ``win``, twice the
    estimated chance to win less one; with ``points``, points over 12 bases. An action without visits has the lowest
    value of the visited ones. ``policy`` is the share of visits.
    """

    name = "doudizhu-mcts"
    version = "1"
    games = ("doudizhu",)
    execution = "thread"
    needs_search_thread = True
    evaluators = ("evaluator",)
    Options: ClassVar[type[msgspec.Struct]] = PlayOptions

    options: PlayOptions

    def __init__(self, options: PlayOptions, model: Model | None = None) -> None:
        super().__init__(options, model)
        self.network = self._network(model)
        self.players = players.load(model) if options.player_model == "on" else None
        """Of the others, for a search."""
        self.evaluator: Evaluator | None = None

    def use_evaluator(self, option: str, evaluator: Evaluator) -> None:
        self.evaluator = evaluator

    def _network(self, model: Model | None) -> Network | None:
        if self.options.cnn == "off":
            return None
        if model is not None:
            return Network(model)
        if self.options.cnn == "only":
            raise ModelError("cnn = only needs a network", advice="leave the option out, or train a network")
        return None

    def action_values(self, views: Sequence[View], legal: Sequence[ActionArray]) -> Sequence[FloatArray]:
        """The network's values of the actions, without a search."""
        if self.network is None:
            raise ModelError("doudizhu-mcts has no network to value moves", advice='use cnn = "on", and train one')
        return self.network.action_values(views, legal)

    @classmethod
    def supports(cls, game: Game) -> bool:
        """Dou Dizhu with any rules, if the game has the encoder blocks in the version of the models."""
        return game.name in cls.games and supports(game)

    @classmethod
    def trainer(cls) -> Mapping[str, type[Trainer]]:
        from bothost_doudizhu_mcts.collect import Collector
        from bothost_doudizhu_mcts.distil import Distiller
        from bothost_doudizhu_mcts.imitate import Imitator
        from bothost_doudizhu_mcts.train import Fitter

        return {"distil": Distiller, "players": Imitator, "collect": Collector, "fit": Fitter}

    def player(self, table: Table) -> DoudizhuMctsPlayer:
        return DoudizhuMctsPlayer(self, table)


class Thought(msgspec.Struct):
    """The search of a hand, and its present root."""

    search: Search
    options: dict[str, Any]
    seed: int
    told: int
    """Length of the history at its root."""
    evaluator: LeafValues | None
    """Values its leaves; None: playouts."""
    action: int | None = None
    """The action that was played at its root."""


class DoudizhuMctsPlayer(Player):
    """Keeps the tree of the hand."""

    def __init__(self, strategy: DoudizhuMcts, table: Table) -> None:
        self.network = strategy.network
        self.players = strategy.players
        self.evaluator = strategy.evaluator
        if self.evaluator is not None and not self.evaluator.supports(table.game):
            self.evaluator = None
        self.options = strategy.options
        self.table = table
        self.thought: Thought | None = None
        self.pondering: Pondering | None = None

    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        return self._decide(view, legal, budget, self._stop_pondering(), None)

    def replay(self, view: View, legal: ActionArray, stats: Mapping[str, Any]) -> Decision | None:
        """Repeat the search with the logged iterations, deals and pondering. None for statistics of other players."""
        if not isinstance(stats.get("iterations"), int):
            return None
        pondered, thought = int(stats.get("pondered", 0)), self.thought
        if pondered and thought is not None and thought.action is not None:
            thought.search.commit(thought.action)
            search_on(thought.search, thought.evaluator, iterations=pondered)
        return self._decide(view, legal, Budget(math.inf), pondered, stats)

    def _decide(
        self, view: View, legal: ActionArray, budget: Budget, pondered: int, logged: Mapping[str, Any] | None
    ) -> Decision:
        """``logged``: the statistics of a decision that is repeated."""
        told: dict[str, Any] = {"pondered": pondered} if pondered else {}
        known = view.to_json()
        only = _without_search(view, legal, known["hand"])
        if only is not None:
            action, reason = only
            return Decision(action=action, stats={"reason": reason, "iterations": 0, **told})
        ms = allotted_ms(budget, leads=known["last"] is None, cards=len(known["hand"]), max_ms=self.options.max_ms)
        network = self.network if view.phase == "play" else None
        if network is not None and self.options.cnn == "only":
            return _by_network(legal, network, network.values(view, legal))
        watch = self._watch(ms)
        thought, reused = self._think_of(view, known)
        if logged is None:
            self._run(thought, watch)
        else:
            _run_again(thought, watch, logged)
        decision = _decision(view, legal, thought, watch)
        if isinstance(thought.evaluator, Evaluator):
            told = {**told, "evaluator": address_of(thought.evaluator)}
        elif isinstance(thought.evaluator, Network):
            decision.model_sha256, decision.encoder_version = thought.evaluator.model.sha256, Network.version
        thought.action = decision.action
        decision.stats = {**(decision.stats or {}), "reused_visits": reused, **told}
        if self.options.ponder and logged is None and watch.done > 0:
            thought.search.commit(decision.action)
            self.pondering = Pondering(thought.search, thought.evaluator)
        return decision

    def quick(self, view: View, legal: ActionArray) -> Decision:
        return Decision(action=_by_rules(view, legal))

    def close(self) -> None:
        self._stop_pondering()
        self.thought = None

    def _stop_pondering(self) -> int:
        """Stop pondering. Returns its number of iterations."""
        if self.pondering is None:
            return 0
        done = self.pondering.stop()
        self.pondering = None
        return done

    def _think_of(self, view: View, known: dict[str, Any]) -> tuple[Thought, int]:
        """The search with its root at this view, and the number of reused visits."""
        native = cast(NativeView, view)
        evaluator = (self.evaluator or self.network) if self.options.evaluates(view.phase) else None
        options = self.options.of_search(view.game, view.phase, evaluated=evaluator is not None)
        history: Sequence[tuple[int, str]] = known["history"]
        old = self.thought
        if (
            self.options.reuse
            and old is not None
            and old.action is not None
            and old.options == options
            and known["complete"]
            and len(history) > old.told
        ):
            since = np.array([view.parse(play) for _, play in history[old.told :]], dtype=np.int32)
            old.search.advance(native, since)
            reused = sum(visits for _, visits, _ in old.search.root_actions)
            self.thought = msgspec.structs.replace(old, told=len(history), action=None)
            return self.thought, reused
        seed = (self.table.seed + 0x9E3779B97F4A7C15 * view.seq) % 2**63
        self.thought = Thought(search(view, seed, self.players, **options), options, seed, len(history), evaluator)
        return self.thought, 0

    def _watch(self, ms: float) -> Stopwatch:
        return Stopwatch(ms, self.options.iterations or (DEFAULT_ITERATIONS if math.isinf(ms) else math.inf))

    def _run(self, thought: Thought, watch: Stopwatch) -> None:
        """Search until the time or the iterations are over, or no other action can get more visits."""
        tree = thought.search
        if self.options.belief > 0 and math.isinf(watch.ms):
            tree.resample_determinizations(min(self.options.belief, int(watch.iterations)))
        while not watch.over():
            before = tree.iterations
            slice_of = int(min(SLICE, watch.iterations - watch.done))
            search_on(tree, thought.evaluator, iterations=slice_of, ms=watch.left_ms(), batch=self.options.leaf_batch)
            watch.done += tree.iterations - before
            if tree.iterations - before < slice_of:  # there is no time for another batch of leaves
                break
            first, second = _most_visited(tree)
            if first - second > watch.left_iterations():
                break


def _run_again(thought: Thought, watch: Stopwatch, logged: Mapping[str, Any]) -> None:
    if logged.get("deals"):
        thought.search.resample_determinizations(logged["deals"])
    while watch.done < logged["iterations"]:  # use the same slices, because they end batches of leaves
        slice_of = min(SLICE, logged["iterations"] - watch.done)
        search_on(thought.search, thought.evaluator, iterations=slice_of)
        watch.done += slice_of


def _without_search(view: View, legal: ActionArray, hand: str) -> tuple[int, str] | None:
    """A decision that needs no search, with its reason; None if there is none."""
    if len(legal) == 1:
        return int(legal[0]), "only move"
    if view.phase == "play":
        for action in doudizhu.readings(hand):
            if action in legal:
                return int(action), "last play"
    return None


def _by_rules(view: View, legal: ActionArray) -> int:
    action = doudizhu.rule_choice(view)[0]
    return action if action in legal else int(legal[0])


def _most_visited(tree: Search) -> tuple[int, int]:
    visits = sorted((n for _, n, _ in tree.root_actions), reverse=True)
    return visits[0], visits[1]


def _by_network(legal: ActionArray, network: Network, values: FloatArray) -> Decision:
    """The move with the highest value, without a search."""
    best = int(values.argmax())
    return Decision(
        action=int(legal[best]),
        values=values.tolist(),
        value=float(values[best]),
        stats={"reason": "the network's best", "iterations": 0},
        model_sha256=network.model.sha256,
        encoder_version=network.version,
    )


def _decision(view: View, legal: ActionArray, thought: Thought, watch: Stopwatch) -> Decision:
    """The action with the most visits; among equals the one with the highest value."""
    found = {action: (n, value) for action, n, value in thought.search.root_actions}
    # The search knows actions that the lobby has refused here; legal does not contain them.
    visits, values = np.array([found[int(action)] for action in legal], dtype=np.float64).T
    total = visits.sum()
    if total == 0:
        action = _by_rules(view, legal)
        late = {"deals": thought.search.deals, "seed": thought.seed}
        return Decision(action=action, stats={"reason": "no time to search", "iterations": watch.done, **late})
    values = np.where(visits > 0, values, values[visits > 0].min())
    order = np.lexsort((-values, -visits))
    best = int(order[0])
    stats = {
        "iterations": watch.done,
        "nodes": thought.search.nodes,
        "deals": thought.search.deals,
        "trust": round(thought.search.tempering_exponent, 3),
        "seed": thought.seed,
        "ms": round(watch.elapsed_ms, 2),
        "candidates": {
            view.notation(int(legal[i])): [int(visits[i]), round(float(values[i]), 3)]
            for i in order[:SHOWN]
            if visits[i] > 0
        },
    }
    return Decision(
        action=int(legal[best]),
        policy=(visits / total).tolist(),
        values=values.tolist(),
        value=float(values[best]),
        stats=stats,
    )
