"""The classes that a strategy plugin implements.

A :class:`Strategy` subclass declares the games it plays, how it runs and its options. Each worker makes one instance
per address and options, and asks it for one :class:`Player` per seat and hand. ``decide`` is synchronous and never
runs on the event loop.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import AsyncGeneratorType, CoroutineType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import msgspec

from bothost.errors import BothostError, UsageError
from bothost.rules.game import ActionArray, FloatArray, Game, View

if TYPE_CHECKING:
    from bothost.reproduction import Reproduction

Execution = Literal["inline", "thread", "process"]
"""Where ``decide`` runs.

inline   in one worker thread shared by all inline strategies, batched across tables: for decisions of microseconds
thread   in a pool of worker threads: for code that releases the GIL (native search, model inference)
process  in its own worker process: only this mode contains crashes, code that holds the GIL, and memory leaks

If an inline or thread strategy hangs, a fallback moves. The host abandons the worker and quarantines the strategy.
"""


MAX_STATS_BYTES = 1 << 20
"""Size of ``Decision.stats`` as JSON. The log does not take larger ones."""


class Decision(msgspec.Struct, kw_only=True):
    """A player's decision. ``policy`` and ``values`` are aligned with the ``legal`` that ``decide`` received."""

    action: int
    """One of ``legal``."""
    policy: Sequence[float] | None = None
    """Probability of each legal action."""
    values: Sequence[float] | None = None
    """Expected return of each legal action."""
    value: float | None = None
    """Expected return of the position for this seat."""
    phase: str | None = None
    """None: the view's phase."""
    stats: Mapping[str, Any] | None = None
    """Search statistics or reasons, shown by ``bothost games show``. JSON values only, at most 1 MiB."""
    model_sha256: str | None = None
    """Sha256 of the model that decided, for the log. None: the model of the table."""
    encoder_version: int | None = None
    """Version of the encoder that the model sees, for the log."""
    wait_ms: float | None = None
    """The host sends the move no earlier than so long after it was asked, though always before the deadline: the tempo
    of a person. Matches in the arena ignore it."""


class Budget(msgspec.Struct, frozen=True):
    """Time that a decision may take."""

    deadline: float
    """Monotonic time in seconds by which ``decide`` must return; infinity without a clock."""
    bank_ms: float = 0.0
    """The reserve of the table's clock, in addition to the time for this action."""

    def left_ms(self) -> float:
        """Milliseconds left now, never negative."""
        return max(0.0, (self.deadline - time.monotonic()) * 1000.0)


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """What a player knows about its table."""

    lobby: str
    table: str
    game: Game
    seat: int
    seed: int
    """Seed of all randomness of this player at this hand; logged."""
    level: str | None = None
    attributes: Mapping[str, Any] = {}
    """The table's attributes as the lobby reports them (room, rated, level, …)."""


class Model(msgspec.Struct, frozen=True):
    """A model version that ``NAME:ALIAS`` resolves to."""

    strategy: str
    version: str
    sha256: str
    path: str | None
    """Directory of the model's files; None for strategies without a model."""
    files: Mapping[str, str] = {}
    """File name → sha256. The registry verified them."""
    encoder_version: int | None = None
    """Version of the encoder that the model was trained with."""

    @property
    def label(self) -> str:
        """Strategy, version and sha256, for statistics and lineages."""
        return f"{self.strategy}:{self.version} {self.sha256}"


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a strategy, trainer or adapter that has none."""


class Player(ABC):
    """One seat at one table, for one hand. Called by one thread at a time, with one exception: ``quick``."""

    def prepare(self) -> None:
        """Wait until the player can decide, such as until its program has started.

        Arena, tournaments and the conformance kit call it before their clock runs. A host does not wait.
        """
        return None

    @abstractmethod
    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        """Choose one of ``legal`` (int32, ascending, not empty). Do not keep or change the view."""

    def observe(self, events: Sequence[str]) -> None:
        """Receive the events of this seat since the last call, oldest first.

        Called before ``decide`` if ``Strategy.wants_events``. After a reconnect some events may be missing, but the
        view includes them: a player that keeps its own state must check ``view.seq``.
        """
        return None

    def quick(self, view: View, legal: ActionArray) -> Decision | None:
        """Choose an action within about a millisecond, for when ``decide`` is late or fails. None: not supported.

        It may run in another thread while an abandoned ``decide`` of this player still runs. So it must use only the
        view and immutable data, and no state that ``decide`` changes.
        """
        return None

    def replay(self, view: View, legal: ActionArray, stats: Mapping[str, Any]) -> Decision | None:
        """Repeat a logged decision that a clock cut short. ``stats``: its logged ``Decision.stats``.

        The decisions of a hand are replayed in order. None (the default): call ``decide`` without a clock instead.
        """
        return None

    def close(self) -> None:
        """The hand is over, or the table is gone."""
        return None


class Request(msgspec.Struct, frozen=True):
    """One of the requests of ``Strategy.decide_many``."""

    player: Player
    view: View
    legal: ActionArray
    budget: Budget


def plays(games: Collection[str], name: str) -> bool:
    """Whether declared ``games`` contain a game: by its name, by ``FAMILY:*``, or by ``*``."""
    family, colon, _ = name.partition(":")
    return name in games or "*" in games or (bool(colon) and f"{family}:*" in games)


class Strategy(ABC):
    """Base class of strategies; register the class with the hook ``bothost_strategies``."""

    name: ClassVar[str]
    """Lower-case words joined by hyphens; unique among the plugins."""
    version: ClassVar[str]
    """Of the strategy's code; the log and the journals of matches keep it. Raise it when decisions change."""
    games: ClassVar[tuple[str, ...]]
    """Games that it plays: names, ``FAMILY:*`` for a family, or ``*`` for any."""
    levels: ClassVar[tuple[str, ...]] = ()
    """Levels that ``NAME:LEVEL`` and the table's ``level`` may name, weakest first."""
    review_options: ClassVar[Mapping[str, Any]] = {}
    """Options that reviews and hints in the browser add, as they have more time than a table."""
    execution: ClassVar[Execution] = "inline"
    api_version: ClassVar[int] = 1
    """The plugin API that the strategy was written for."""
    deterministic: ClassVar[bool] = True
    """Whether equal seeds and events give equal decisions (without a clock)."""
    needs_search_thread: ClassVar[bool] = False
    """Whether a decision occupies a core for its whole budget: admitted by ``limits.search_threads``."""
    wants_events: ClassVar[bool] = False
    """Whether the host calls ``Player.observe``. Views include all events in any case."""
    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    """Schema of ``options`` in a route, a frozen msgspec Struct that forbids unknown fields."""

    evaluators: ClassVar[tuple[str, ...]] = ()
    """Options that hold the address of an :class:`Evaluator`, or "". It is resolved like the address of a route and
    passed to ``use_evaluator``."""

    def __init__(self, options: Any, model: Model | None = None) -> None:
        self.options = options
        self.model = model

    def use_evaluator(self, option: str, evaluator: Evaluator) -> None:
        """Receive the evaluator that ``option``, one of ``evaluators``, names. Called before ``player``."""
        return None

    @classmethod
    def supports(cls, game: Game) -> bool:
        """Whether this strategy plays this game with these rules."""
        return plays(cls.games, game.name)

    @abstractmethod
    def player(self, table: Table) -> Player:
        """Make a player for one seat and hand."""

    def decide_many(self, requests: Sequence[Request]) -> list[Decision] | Iterator[tuple[int, Decision | Exception]]:
        """Decide for several tables at once; strategies that batch inference override it.

        Returns the decisions in the order of the requests, which is that of their deadlines. A generator may yield
        (index of the request, decision) instead, in any order: the host uses each as soon as it comes. It may yield the
        exception of a request that failed. If it raises one, the host asks the players that are left one by one.
        """
        return [r.player.decide(r.view, r.legal, r.budget) for r in requests]

    @classmethod
    def trainer(cls) -> type[Trainer] | Mapping[str, type[Trainer]] | None:
        """Return the trainer that ``bothost train NAME`` runs; None: it does not learn. Import the trainer here.

        If training has stages, return a mapping in their order; ``bothost train NAME STAGE`` runs one.
        ``bothost train NAME --help`` shows the first line of each trainer's docstring, and the strings under the
        fields of its ``Options``.
        """
        return None

    @classmethod
    def reproduction(cls) -> type[Reproduction] | None:
        """Return the plugin's experiment that ``bothost reproduce NAME`` runs; None: there is none.

        The experiments of bothost itself are in the repository's folder ``experiments/``.
        """
        return None

    def close(self) -> None:
        """Free resources. ``player`` is not called afterwards."""
        return None


def decide_all(strategy: Strategy, requests: Sequence[Request]) -> list[Decision]:
    """What ``decide_many`` decides, in the order of the requests. Raises BothostError unless it is one for each.

    Raises the exception that a generator yields.
    """
    made = strategy.decide_many(requests)
    if is_async(made):
        raise BothostError(f"decide_many {IS_ASYNC}")
    pairs = list(made if isinstance(made, Iterator) else enumerate(made))
    by_index = dict(pair for pair in pairs if isinstance(pair, tuple))
    decisions: list[Decision] = []
    for _, decision in sorted(by_index.items()):
        if isinstance(decision, Exception):
            raise decision
        decisions.append(decision)
    if len(pairs) != len(requests) or by_index.keys() != set(range(len(requests))):
        advice = "return a list with one for each, or yield (index of the request, decision); the first index is 0"
        raise BothostError(f"decide_many did not decide each of {len(requests)} requests once", advice=advice)
    return decisions


IS_ASYNC = "is an async function: write it with def, without async"
"""Follows the name of a method for which ``is_async`` is true."""


def is_async(made: object) -> bool:
    """Whether a plugin's method returned what must be awaited. Closes it, or Python would warn that nobody did."""
    if isinstance(made, CoroutineType):
        made.close()
    return isinstance(made, CoroutineType | AsyncGeneratorType)


class Evaluator(Strategy):
    """A strategy that values actions, for the searches of other strategies."""

    @abstractmethod
    def action_values(self, views: Sequence[View], legal: Sequence[ActionArray]) -> Sequence[FloatArray]:
        """Return, for each view, the expected utility of each of its ``legal`` actions: float32, within [-1, 1].

        The utility is for the side of the view's seat, which must act: 2 * P(win) - 1 in games that are won or lost.
        Run one inference for all views. Called by many threads at once.
        """


class PlayerMove(msgspec.Struct, frozen=True):
    """One decision of any player at a logged table, rebuilt from the events of a revealed hand."""

    game: Game
    """The same object for all hands with equal rules."""
    game_id: str
    """Hexadecimal. The moves of a hand are consecutive."""
    split: str
    """"train", "val" or "test": by hash of the hand, the same as in exports."""
    player: str
    """The player who decided: our account's name, or the lobby's id of the player."""
    seat: int
    view: View
    """What the seat knew. The consumer's own copy."""
    legal: ActionArray
    action: int
    started_us: int
    """When the hand started, microseconds since 1970, UTC."""
    scores: tuple[float, ...] | None
    """Scores of all seats at the end of the hand; None if it was aborted."""


class PlayerLog(Protocol):
    """The decisions of players (bots and people) in logged hands, if they agreed to be imitated.

    It excludes hands that were not revealed or are incomplete in the log. It excludes moves of our seats that their
    strategy did not choose (fallbacks, the lobby's moves after a timeout), and hands during which another player was
    reported away.
    """

    def players(self, game: str) -> Mapping[str, int]:
        """Return each player who agreed → number of closed hands of the game, most first."""
        ...

    def moves(self, game: str, players: Collection[str] = (), *, split: str | None = None) -> Iterator[PlayerMove]:
        """Yield decisions of these players (default: all who agreed), hand by hand in the order of their ids.

        Memory is constant. Calls and forced moves are included. Raises UsageError if a named player is unknown or did
        not agree.
        """
        ...

    def thinking_ms(self, game: str, players: Collection[str]) -> Iterator[float]:
        """How long these players thought, milliseconds, move by move, where everybody else was a bot of ours."""
        ...

    def lineage(self) -> dict[str, Any]:
        """Return what was read so far, for the lineage of a model; JSON values only.

        It holds the query and, for each pass, the hands, the moves, what was excluded and why, and a sha256 of the
        moves.
        """
        ...


class TrainingRun(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of one training."""

    out: Path
    """Output folder."""
    seed: int = 0
    minutes: float | None = None
    """Total training time, including earlier runs that this one resumes; None: the trainer's options decide."""
    resume: bool = False
    """Continue from the last checkpoint in ``out``."""
    command: str = ""
    """The command line, for the lineage of the models."""
    log: PlayerLog | None = None
    """The host's log, if ``Trainer.learns_from_log``."""
    players: tuple[str, ...] = ()
    """Players to imitate; empty: the trainer chooses."""
    evaluators: Mapping[str, Evaluator] = {}
    """Option of ``Trainer.evaluators`` → the strategy that it names."""
    start: Model | None = None
    """The version to begin with, if ``Trainer.starts_with_version``. None: begin with fresh parameters."""


class ReportProgress(Protocol):
    """Reports the progress of a long job: ``done`` of ``total`` units."""

    def __call__(self, done: int, note: str = "", total: int | None = None) -> None: ...


class LoggedStep(msgspec.Struct, frozen=True):
    """One logged decision of a trajectory."""

    view: View
    """What the seat knew. The consumer's own copy."""
    legal: ActionArray
    action: int
    policy: FloatArray | None
    """The strategy's probabilities of ``legal``, float32, before any sampling temperature."""
    stats: Mapping[str, Any]
    own: bool
    """Whether the strategy decided; False for a fallback, whose probability is unknown."""
    model_sha256: str | None
    values: FloatArray | None = None
    """The strategy's values of ``legal``, float32."""


class Trajectory(msgspec.Struct, frozen=True):
    """The decisions of one seat in one closed hand, in order, without rejected ones."""

    game: Game
    game_id: str
    seat: int
    scores: tuple[float, ...]
    """Scores of all seats at the end of the hand."""
    steps: tuple[LoggedStep, ...]


class LoggedGames(Protocol):
    """Logged hands in an export. Every read returns the same hands."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The manifest of the export: rows, hands, splits, query, sha256 of its files."""
        ...

    def trajectories(self, split: str = "train") -> Iterator[Trajectory]:
        """Yield the trajectories of a split ("train", "val", "test"), in the order of the hands' ids."""
        ...


class Trainer(ABC):
    """Trains models of a strategy."""

    name: ClassVar[str]
    """Name of the strategy."""
    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    """Schema of the options, a frozen msgspec Struct that forbids unknown fields."""
    evaluators: ClassVar[tuple[str, ...]] = ()
    """Options that hold the address of an :class:`Evaluator`, or ""."""
    starts_with_version: ClassVar[bool] = False
    """Whether the option ``start`` names a version of the strategy, such as ``v7`` or ``phase-ppo:level-2``; empty:
    none. It is resolved like the address of a route and passed as ``TrainingRun.start``."""
    learns_from_log: ClassVar[bool] = False
    """Whether it learns from players' moves in the host's log (``TrainingRun.log``)."""

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        """Train, and write the models with their manifest into ``run.out / "weights"``, in the format of packages.

        Returns figures to show, JSON values only. It must be resumable when killed at any time.
        """

    def retrain(
        self, run: TrainingRun, games: LoggedGames, start: Model | None, report: ReportProgress
    ) -> dict[str, Any]:
        """Train from logged hands. ``start``: the model to continue from; None: train from scratch.

        The alias ``champion`` of the manifest names the challenger. If ``learns_from_log``, ``run.log`` reads all
        players' moves in the hands of ``games``, and ``run.players`` names the players to imitate.
        """
        raise UsageError(f"{self.name} does not learn from logged hands", advice=f"bothost train {self.name}")

    def gains(
        self, log: PlayerLog, lineage: Mapping[str, Any], challenger: Model, champion: Model
    ) -> Iterator[float] | None:
        """Compare a challenger with the champion by something else than wins. None: a match decides.

        Yields one number within [-1, 1] for each logged hand that neither model has learnt from, above 0 if the
        challenger was better. ``lineage``: that of the challenger. Called only if ``learns_from_log``.
        """
        return None
