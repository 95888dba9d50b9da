"""The native core. Use it through :mod:`bothost.rules`; the contracts stand in :mod:`bothost.rules.game`."""

from abc import ABCMeta
from collections.abc import Sequence
from typing import Any, SupportsIndex, final

import numpy as np
import numpy.typing as npt

from bothost.rules import game as contract
from bothost.rules.game import ActionArray, FloatArray, Json, Rows

_Indices = npt.NDArray[np.int32]
_Offsets = npt.NDArray[np.int64]

def games(testing: bool = False) -> list[str]:
    """Names of the native games; those that only test the contract when asked for."""

def register_game(entry: object, /) -> None:
    """Add the game of another extension module, from its capsule "bothost.GameEntry"."""

def presets(name: str, /) -> list[str]:
    """Presets of a native game, the default first."""

def make_game(name: str, options: Json, /) -> Game: ...
def othello_afterstates(features: Rows, legal: Rows, /) -> Rows: ...
def othello_choose(
    view: View, depth: SupportsIndex, solve_from: SupportsIndex, nodes: SupportsIndex, /
) -> tuple[int, float, int, bool, int]: ...
def othello_judge(
    view: View, depth: SupportsIndex, solve_from: SupportsIndex, nodes: SupportsIndex, weights: dict[str, Any], /
) -> list[tuple[int, float]]: ...
def othello_judgements(
    features: Rows,
    legal: Rows,
    depth: SupportsIndex,
    solve_from: SupportsIndex,
    nodes: SupportsIndex,
    weights: dict[str, Any],
    /,
) -> npt.NDArray[np.float32]: ...
def legal_many(views: Sequence[View]) -> tuple[ActionArray, _Offsets]: ...
def othello_perft(depth: SupportsIndex, /) -> int:
    """Leaves of the Othello game tree after ``depth`` plies (0 .. 14); a pass is a ply, a finished game one leaf."""

# These are made by the core alone, as classes without a constructor.

class Block(contract.Block, metaclass=ABCMeta): ...

class View(contract.View, metaclass=ABCMeta):
    __hash__: None  # type: ignore[assignment]

class State(contract.State, metaclass=ABCMeta): ...

@final
class Oracle:
    """Features of the hidden truth, for trainers: they need a State, which no strategy at a table ever holds."""

    def __init__(self, state: State, seat: SupportsIndex) -> None: ...
    def encode(self, block: str, out: FloatArray | None = None) -> FloatArray:
        """Write an oracle block into ``out`` (made when absent) and return it."""

class Game(contract.Game, metaclass=ABCMeta):
    def view_json(self, data: bytes) -> str: ...

class VecEnv(contract.VecEnv, metaclass=ABCMeta):
    def __init__(self, game: Game, n: SupportsIndex, seed: SupportsIndex) -> None: ...

class PlayerModel:
    """How players of a game move, for ``Search``."""

class Search:
    """See ``bothost.rules.search``."""

    def __init__(self, root: View, seed: int, options: Json, players: PlayerModel | None = None) -> None: ...
    def run(self, iterations: int | None = None, ms: float | None = None) -> bool:
        """Run for this many iterations or milliseconds, whichever ends first. Releases the GIL.

        True when done; False when leaves wait for ``feed`` (only with ``leaf="evaluator"``).
        """

    def feed(self, values: FloatArray) -> None:
        """Values in [-1, 1] of every action that the leaves ask about, in order, for the seat that acts there.

        Shape (sum of the leaves' numbers of actions,). Raises ValueError on another length.
        """

    def advance(self, root: View, actions: ActionArray) -> None:
        """Move the root along these actions (int32) to the view ``root``, and keep the tree below it."""

    def commit(self, action: SupportsIndex) -> None:
        """The root's seat has played this action: search only below it until ``advance`` (pondering)."""

    def resample_determinizations(self, deals: SupportsIndex) -> None:
        """Sample and resample this many deals now. A replay repeats a search that had time for only so many."""

    @property
    def leaves(self) -> list[tuple[View, ActionArray]]:
        """The leaves that wait, each with the actions that are asked about."""

    @property
    def root_actions(self) -> list[tuple[int, int, float]]:
        """(action, visits, value) of every legal action of the root, ascending by action."""

    @property
    def iterations(self) -> int: ...
    @property
    def nodes(self) -> int: ...
    @property
    def deals(self) -> int:
        """Deals that were weighted by their likelihood at this root (option ``belief``)."""
    @property
    def tempering_exponent(self) -> float:
        """The exponent of the probabilities in those weights, within (0, 1]; 0 before resampling. More deals give a
        larger exponent: see ``native/search/resampling.h``."""

def mahjong_fans() -> list[tuple[str, str, int]]: ...
def mahjong_distances(hand: npt.NDArray[np.uint8], melds: int, /) -> tuple[int, int, int, int, int]: ...
def mahjong_useful_tiles(hand: npt.NDArray[np.uint8], melds: int, shape: int, /) -> tuple[int, int]: ...
def mahjong_shanten_many(hands: npt.NDArray[np.uint8], melds: int, /) -> npt.NDArray[np.int8]: ...
def mahjong_fan_many(
    standing: npt.NDArray[np.uint8], melds: npt.NDArray[np.uint8], wins: npt.NDArray[np.uint8], /
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.uint8]]: ...
def mahjong_rule_choice(view: View, simple: bool, acceptance_weighted: bool, /) -> tuple[int, str, float]: ...
def mahjong_branches(
    state: State, seat: SupportsIndex, actions: _Offsets, acceptance_weighted: bool, draws: int, weights: FloatArray, /
) -> FloatArray: ...

_Prospect = tuple[float, float, int, int, int, list[int], list[int], list[int]]

def mahjong_look_ahead(view: View, depth: int, /) -> tuple[_Prospect, list[tuple[int, _Prospect]], int]: ...
def mahjong_dangers(view: View, /) -> npt.NDArray[np.float64]: ...
def mahjong_luck(state: State, weights: FloatArray, /) -> npt.NDArray[np.float64]: ...
def mahjong_luck_inputs(state: State, /) -> tuple[FloatArray, npt.NDArray[np.int8], npt.NDArray[np.int16]]: ...
def doudizhu_move(action: SupportsIndex, /) -> tuple[str, str, str, int, int, int]: ...
def doudizhu_readings(cards: str, /) -> list[int]: ...
def doudizhu_abstract_map() -> npt.NDArray[np.int16]: ...
def doudizhu_abstract_names() -> list[str]: ...
def doudizhu_fewest_plays(cards: str, /) -> int: ...
def doudizhu_hand_value(cards: str, /) -> int: ...
def doudizhu_partition(cards: str, shortest: bool, /) -> list[int]: ...
def doudizhu_landlord_win_probability(cards: str, /) -> float: ...
def doudizhu_rule_choice(view: View, /) -> tuple[int, str]: ...
def doudizhu_log_likelihood(view: View, deal: State, exponent: float, players: PlayerModel | None, /) -> float: ...
def doudizhu_afterstates(features: Rows, legal: Rows, /) -> Rows: ...
def doudizhu_judgements(features: Rows, legal: Rows, /) -> npt.NDArray[np.float32]: ...
def doudizhu_rhcp_choice(view: View, /) -> tuple[int, str]: ...
def doudizhu_habits() -> list[str]: ...
def pairing_rule_choice(
    view: View, deny: float, keep: float, promise: float, force_from: float, /
) -> tuple[int, str]: ...
def pairing_rule_returns(
    view: View, deals: SupportsIndex, seed: SupportsIndex, actions: ActionArray | None, /
) -> FloatArray: ...

class DoudizhuPlayers(PlayerModel):
    """See :class:`bothost.rules.doudizhu.PlayerModel`."""

    def __init__(self, parameters: Sequence[FloatArray], /) -> None: ...
    def probabilities(self, view: View, /) -> FloatArray: ...

@final
class DoudizhuStyle:
    """See :class:`bothost.rules.doudizhu.Style`."""

    def __init__(self, options: dict[str, Any], /) -> None: ...
    def choose(self, view: View, mood: SupportsIndex, /) -> tuple[int, int, dict[str, float]]: ...

@final
class Mlp:
    """A small network on one thread: rectified hidden layers, and outputs that are logits and, last, a value.

    ``widths``: inputs, those of the hidden layers (multiples of 16), actions + 1. With ``bf16`` products are of
    bfloat16 and sums of float32. ``kernels`` names one of ``network_kernels()``; "": the fastest. Raises ValueError
    where the processor lacks it. Its face for trainers is ``bothost.training.fused``.

    With ``features`` a scorer of ``hidden`` units (a multiple of 16) adds to the logit of each action. Observations
    then have ``features`` more numbers for each action, and the last of ``widths`` is actions + 1 + hidden.
    """

    def __init__(
        self, widths: Sequence[int], bf16: bool = False, kernels: str = "", features: int = 0, hidden: int = 0
    ) -> None: ...
    @property
    def kernels(self) -> str: ...
    def load(self, parameters: Sequence[FloatArray], /) -> None:
        """Take a weight (outputs, inputs) and a bias (outputs,) of each layer.

        With a scorer, its weights (hidden, features) and (hidden,) follow.
        """

    def forward(self, observations: FloatArray, /) -> FloatArray:
        """Outputs (n, actions + 1) of observations (n, inputs + actions · features)."""

    def act(
        self, observations: FloatArray, masks: npt.NDArray[np.bool_], uniform: FloatArray, /
    ) -> tuple[_Offsets, FloatArray, FloatArray]:
        """Draw legal actions (n,) by numbers in [0, 1): they, their log-probabilities, and values.

        Raises ValueError for a row without a legal action.
        """

    def gradients(
        self,
        observations: FloatArray,
        masks: npt.NDArray[np.bool_],
        actions: _Offsets,
        log_probs: FloatArray,
        advantages: FloatArray,
        returns: FloatArray,
        into: Sequence[FloatArray],
        clip: float,
        value_coef: float,
        entropy_coef: float,
        kl_coef: float,
        /,
    ) -> tuple[float, float, float, float, float]:
        """Add the gradients of PPO's objective to ``into``, laid out as the parameters; returns the objective's terms.

        These are means: policy, value, entropy, approximate KL divergence, clipped fraction. Raises ValueError for an
        action that is not legal, TypeError if an array of ``into`` is not float32 and C-contiguous.
        """

class ActionValues:
    """A network of values Q(s, a) on one thread; its face for trainers is ``bothost.training.action_values``.

    ``trunk``: inputs of positions and widths of hidden layers; ``head``: inputs of moves and widths of hidden layers;
    hidden widths are multiples of 16. ``kernels`` as in ``Mlp``. Positions (n, inputs), moves (m, features); position i
    has the moves ``offsets[i]`` to ``offsets[i + 1]``.
    """

    def __init__(self, trunk: Sequence[int], head: Sequence[int], kernels: str = "") -> None: ...
    @property
    def kernels(self) -> str: ...
    def load(self, parameters: Sequence[FloatArray], /) -> None:
        """Take the parameters, in the order of ``ActionValueNet.in_order``."""

    def evaluate(self, positions: FloatArray, moves: FloatArray, offsets: _Offsets, /) -> FloatArray:
        """Values (m,)."""

    def forward(self, positions: FloatArray, moves: FloatArray, offsets: _Offsets, /) -> tuple[FloatArray, FloatArray]:
        """Values (m,) and the last hidden layer (m, width); keeps what ``backward`` needs."""

    def backward(self, values: FloatArray, representations: FloatArray, into: Sequence[FloatArray], /) -> None:
        """Add the gradients of the parameters, given those of what the last ``forward`` returned.

        Raises TypeError if an array of ``into`` is not float32 and C-contiguous.
        """

def network_kernels() -> list[str]: ...

@final
class FactorizationMachine:
    """See :mod:`bothost.training.factorization`."""

    def __init__(
        self, features: int, classes: int, factors: int, shared: bool, seed: SupportsIndex, deviation: float, /
    ) -> None: ...
    def train(
        self,
        features: Rows,
        legal: Rows,
        labels: _Indices,
        order: _Offsets,
        rate: float,
        factor_decay: float,
        weight_decay: float,
        /,
    ) -> float: ...
    def probabilities(self, features: Rows, legal: Rows, /) -> FloatArray: ...
    def pair_losses(
        self, features: Rows, legal: Rows, labels: _Indices, reading: str, /
    ) -> tuple[float, _Indices, _Indices, list[npt.NDArray[np.float64]]]: ...
    def parameters(self) -> dict[str, FloatArray]: ...
    def load(self, name: str, values: FloatArray, /) -> None: ...

@final
class ConditionalMachine:
    """See :mod:`bothost.training.conditional`."""

    def __init__(
        self,
        positions: int,
        choices: int,
        players: int,
        classes: int,
        quadratic: int,
        rectified: int,
        embedded: int,
        seed: SupportsIndex,
        deviation: float,
        /,
    ) -> None: ...
    def train(
        self,
        features: Rows,
        legal: Rows,
        choices: Rows,
        players: _Indices,
        labels: _Indices,
        order: _Offsets,
        rate: float,
        decay: float,
        batch: int,
        players_only: bool,
        /,
    ) -> float: ...
    def probabilities(self, features: Rows, legal: Rows, choices: Rows, players: _Indices, /) -> FloatArray: ...
    def pair_losses(
        self, features: Rows, legal: Rows, choices: Rows, players: _Indices, labels: _Indices, /
    ) -> tuple[float, _Indices, _Indices, npt.NDArray[np.float64]]: ...
    def anchor(self) -> None: ...
    def parameters(self) -> dict[str, FloatArray]: ...
    def load(self, name: str, values: FloatArray, /) -> None: ...

def extend_choices(
    positions: int, choices: int, pairs: _Indices, features: Rows, legal: Rows, own: Rows, /
) -> Rows: ...
def return_free_memory() -> None:
    """Return freed pages that the allocator keeps to the system; nothing with allocators other than glibc's."""

def limit_arenas(arenas: int, /) -> None:
    """Let at most so many arenas of the allocator serve all threads; nothing with allocators other than glibc's."""

def take_short_turns() -> None:
    """Let the calling thread run soon when it wakes up, for a short time each; nothing on systems without that."""

def linear_loss(
    weights: FloatArray,
    bias: FloatArray,
    alternatives: FloatArray,
    features: Rows,
    legal: Rows,
    own: Rows,
    labels: _Indices,
    /,
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """See :mod:`bothost.training.logistic`. Sum of the cross-entropies, and its gradient by weights, bias and
    alternatives, flat."""

def linear_probabilities(
    weights: FloatArray, bias: FloatArray, alternatives: FloatArray, features: Rows, legal: Rows, own: Rows, /
) -> FloatArray: ...
