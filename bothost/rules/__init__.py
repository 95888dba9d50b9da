"""Games: rules, views, encoders and batch environments.

:func:`game` makes a :class:`Game` with fixed rules; :func:`vec_env` plays many hands of it at once. Native games come
from the core in ``bothost/native``. :func:`register_game` adds games written in plain Python under their name.
"""

from __future__ import annotations

import copyreg
import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bothost.errors import PluginError, UsageError
from bothost.native import _native, register_test_games
from bothost.rules.game import ActionArray, Block, FloatArray, Game, Json, State, VecEnv, View, fnv1a

__all__ = [
    "ActionArray",
    "Block",
    "FloatArray",
    "Game",
    "GameFactory",
    "Json",
    "NativeView",
    "Oracle",
    "PlayerModel",
    "Search",
    "State",
    "VecEnv",
    "View",
    "fnv1a",
    "game",
    "games",
    "legal_many",
    "othello_perft",
    "presets",
    "register_game",
    "search",
    "vec_env",
]

NativeView = _native.View
Oracle = _native.Oracle
PlayerModel = _native.PlayerModel
Search = _native.Search
othello_perft = _native.othello_perft


@dataclass(frozen=True)
class GameFactory:
    """A game that a plugin brings."""

    name: str
    """Unique among all games. A name that ends with a colon is a family of games: for ``openspiel:chess``, the ``make``
    of ``openspiel:`` is called with ``"chess"``."""
    make: Callable[..., Game]
    """Called with the rules' options as keywords. Raises ValueError for an unknown option or value."""
    presets: tuple[str, ...] = ()
    """Values of ``make(preset=…)``, the default first. Empty: the only preset is ``default``; ``make`` gets none."""
    members: tuple[str, ...] = ()
    """Full names of the games of a family that lists show. ``make`` may accept others."""


# Games of plugins, by name. The only state of this module; it is filled while plugins load.
_factories: dict[str, GameFactory] = {}


def register_game(factory: GameFactory) -> None:
    """Register a plain-Python game by its name. Raises UsageError if another game already has that name."""
    known = _factories.get(factory.name)
    if factory.name in _native.games() or (known is not None and known != factory):
        raise UsageError(f"another game already has the name {factory.name!r}", advice="rename one of them")
    _factories[factory.name] = factory


def forget_game(name: str) -> None:
    """Undo ``register_game``. Raises KeyError if no game of this name was registered."""
    del _factories[name]


def games(*, plugins: bool = True, testing: bool = False) -> tuple[str, ...]:
    """Names of all games, sorted. A family is listed by its ``members``.

    ``plugins=False`` lists only the games of bothost itself. ``testing=True`` adds games that only exist to test the
    game contract; they are not in the wheel.
    """
    if testing:
        register_test_games()
    brought = [name for factory in _factories.values() for name in _listed(factory)] if plugins else []
    return tuple(sorted([*_native.games(testing=testing), *brought]))


def _listed(factory: GameFactory) -> tuple[str, ...]:
    return factory.members if factory.name.endswith(":") else (factory.name,)


def _factory(name: str) -> GameFactory | None:
    """The factory of the game of this name; None if it is not a plugin's."""
    family, colon, _ = name.partition(":")
    return _factories.get(family + colon)


def presets(name: str) -> tuple[str, ...]:
    """Names of a game's presets, the default first. Raises UsageError for an unknown game."""
    if factory := _factory(name):
        return factory.presets or ("default",)
    _require_native(name)
    return tuple(_native.presets(name))


def game(name: str, /, **options: Any) -> Game:
    """A game with fixed rules: ``game("doudizhu", preset="rlcard", bidding="none")``.

    ``game(g.name, **g.rules)`` returns an equal game. Raises UsageError for an unknown game, ValueError for an unknown
    option or a value out of range, PluginError if a plugin's factory returns no game, or one that has another name.
    """
    if factory := _factory(name):
        if not factory.presets and options.get("preset") == "default":
            del options["preset"]
        _, colon, member = name.partition(":")
        made = factory.make(member, **options) if colon else factory.make(**options)
        if not hasattr(made, "new_state"):
            raise PluginError(name, f"its factory returned {made!r}, no game", advice="return a bothost.rules.Game")
        known = str(getattr(made, "name", ""))
        if _factory(known) is None and known not in _native.games(testing=True):  # a log with this name is unreadable
            raise PluginError(name, f"its game is named {known!r}, but is not found so", advice=f"name it {name!r}")
        return made
    _require_native(name)
    return _native.make_game(name, options)


def _again(name: str, options: Json) -> Any:
    return game(name, **options)


# A native game that is sent to another process is made again there.
copyreg.pickle(_native.Game, lambda sent: (_again, (sent.name, sent.rules)))  # type: ignore[type-abstract]


def vec_env(game: Game, n: int, seed: int = 0) -> VecEnv:
    """``n`` hands of ``game`` stepped at once; environment ``i`` plays stream ``i`` of ``seed``.

    A game in plain Python may have a method ``vec_env(n, seed)``. Raises UsageError if it has none.
    """
    if isinstance(game, _native.Game):
        return _native.VecEnv(game, n, seed)  # type: ignore[abstract]  # its members are native
    make: Callable[[int, int], VecEnv] | None = getattr(game, "vec_env", None)
    if make is None:
        raise UsageError(f"{game.name} has no batch environment", advice="give the game a method vec_env(n, seed)")
    return make(n, seed)


def search(root: View, seed: int = 0, players: PlayerModel | None = None, **options: Any) -> Search:
    """A tree search from a view whose seat is asked: information-set UCT over sampled full states.

    ``players``: a model of how players of this game move, such as :class:`bothost.rules.doudizhu.PlayerModel`.

    All options have defaults:

    - ``leaf``: "rollout" plays leaves to the end; "evaluator" waits for values through ``feed``.
    - ``playout``: "random", or "rule" for the game's own policy, if it has one; Dou Dizhu has.
    - ``playout_noise``: chance that a step of a rule playout is random.
    - ``others``: "tree" chooses for the other seats by UCT; "policy" by the game's policy and their cards in the deal.
    - ``belief``: deals that are weighted by how well they explain the others' actions; 0: deals are uniform.
    - ``widening``: a node of n visits considers the widening x sqrt(n + 1) actions that the policy prefers; 0: all.
    - ``utility``: "sign" for win or loss; "points" for returns / ``points_scale``, clamped.
    - ``points_scale``: points that count as 1.
    - ``exploration``: C of UCT, for utilities in [-1, 1].
    - ``prior_visits``: visits that an evaluator's value counts for.
    - ``mixing``: share of a playout in the value of an evaluated leaf.
    - ``leaf_batch``: iterations that wait for values at once.
    - ``leaf_moves``: most actions of a leaf that are valued, those that the policy prefers; the others count as the
      worst of them. 0: all.
    - ``threads``: trees with one thread each, for playouts only.
    - ``max_nodes``: limit of the tree.

    The search is deterministic under a seed with a limit of iterations. Raises ValueError for a seat that is not asked
    or an option out of range, UsageError for a game that is not native.

    Sources: Kocsis and Szepesvari, "Bandit based Monte-Carlo planning" (2006); Cowling, Powley, Whitehouse,
    "Information set Monte Carlo tree search" (2012).
    """
    if not isinstance(root, _native.View):
        raise UsageError(f"{root.game.name} cannot be searched", advice="use a game of the native core")
    return Search(root, seed, options, players)


def legal_many(views: Sequence[View]) -> tuple[ActionArray, npt.NDArray[np.int64]]:
    """Legal actions of many views at once: (ids, offsets); view i may do ``ids[offsets[i]:offsets[i + 1]]``."""
    if all(isinstance(view, _native.View) for view in views):
        return _native.legal_many(views)  # type: ignore[arg-type]
    legal = [view.legal() for view in views]
    return np.concatenate(legal), np.cumsum([0, *map(len, legal)])


def _require_native(name: str) -> None:
    if name in _native.games(testing=True):
        return
    register_test_games()
    if name in _native.games(testing=True):
        return
    known = games()
    members = {each.partition(":")[2].partition("(")[0]: each for each in known if ":" in each}
    spellings = {**members, **{each: each for each in known}}
    near = difflib.get_close_matches(name, spellings, n=1)
    advice = f"did you mean {spellings[near[0]]!r}?" if near else f"known games: {', '.join(known)}"
    raise UsageError(f"no game is called {name!r}", advice=advice)
