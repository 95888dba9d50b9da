"""What a strategy plugin implements.

A :class:`Strategy` is a class: it declares what it plays, how it runs and which options it takes. The host makes one
instance per resolved address and options (in each worker), and asks it for a :class:`Player` per seat and hand table.
``decide`` is synchronous and never runs on the event loop.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

import msgspec

from bothost.errors import UsageError
from bothost.rules.game import ActionArray, FloatArray, Game, View

Execution = Literal["inline", "thread", "process"]
"""Where ``decide`` runs.

inline   in one worker thread that all inline strategies share, batched across tables: for what takes microseconds
thread   in a pool of worker threads: for what releases the GIL (native search, model inference)
process  in a worker process of its own: guarantees against crash, GIL-hold and leak hold only here

Inline or thread, a hang costs a fallback: the worker is abandoned and the strategy quarantined for new tables.
"""


class Decision(msgspec.Struct, kw_only=True):
    """One model decision. Arrays over actions are aligned with the ``legal`` that ``decide`` received."""

    action: int
    policy: Sequence[float] | None = None
    """Probability of each legal action."""
    values: Sequence[float] | None = None
    """Expected return of each legal action."""
    value: float | None = None
    """Expected return of the position for this seat."""
    phase: str | None = None
    """None: the view's phase."""
    stats: Mapping[str, Any] | None = None
    """Search statistics, or reasons: what a person reads in ``bothost games show``. JSON values only."""
    model_sha256: str | None = None
    encoder_version: int | None = None
    wait_ms: float | None = None
    """The host sends the move no earlier than so long after it was asked, though always before the deadline: the tempo
    of a person. Matches in the arena ignore it."""


class Budget(msgspec.Struct, frozen=True):
    """Time that a decision may take."""

    deadline: float
    """Monotonic time, seconds, by which ``decide`` must have returned; infinity where there is no clock."""
    bank_ms: float = 0.0
    """What the table's clock holds beyond this action."""

    def left_ms(self) -> float:
        """Milliseconds left now, never negative."""
        return max(0.0, (self.deadline - time.monotonic()) * 1000.0)


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """What a player is told about its table."""

    lobby: str
    table: str
    game: Game
    seat: int
    seed: int
    """Seed of all randomness of this player at this hand; logged."""
    level: str | None = None
    attributes: Mapping[str, Any] = {}
    """The table's attributes as the lobby tells them (room, rated, level, …)."""


class Model(msgspec.Struct, frozen=True):
    """A resolved model version: what ``NAME:ALIAS`` stands for."""

    strategy: str
    version: str
    sha256: str
    path: str | None
    """Directory of the model's files; None for strategies without a model."""
    files: Mapping[str, str] = {}
    """File name → sha256. The registry verified them."""
    encoder_version: int | None = None
    """Version of the encoder that the model was trained with."""


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a strategy that has none."""


class Player(ABC):
    """One seat at one table, for one hand. Called by one thread at a time, with one exception: ``quick``."""

    @abstractmethod
    def decide(self, view: View, legal: ActionArray, budget: Budget) -> Decision:
        """Choose one of ``legal`` (int32, ascending, not empty). The view must not be kept or changed."""

    def observe(self, events: Sequence[str]) -> None:
        """Events of this seat since the last call, oldest first; before ``decide``, where ``Strategy.wants_events``.

        After a reconnect some may be missing, and the view holds them all: a player that keeps a state of its own must
        see that ``view.seq`` is what it expects.
        """
        return None

    def quick(self, view: View, legal: ActionArray) -> Decision | None:
        """The cheap policy for when ``decide`` is late or fails: within a millisecond or so. None: there is none.

        It may be called, in another thread, while a ``decide`` of this player that was given up still runs: read what
        it needs from ``view`` and from what never changes, and rely on nothing that ``decide`` is in the middle of.
        """
        return None

    def replay(self, view: View, legal: ActionArray, stats: Mapping[str, Any]) -> Decision | None:
        """Make a logged decision again, whose ``Decision.stats`` these were: for what a clock cut short.

        The decisions of a hand are replayed in order. None (as here): ``decide`` without a clock comes out the same.
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
    games: ClassVar[tuple[str, ...]]
    levels: ClassVar[tuple[str, ...]] = ()
    """Levels that ``NAME:LEVEL`` and the table's wish may name, weakest first."""
    execution: ClassVar[Execution] = "inline"
    api_version: ClassVar[int] = 1
    """The plugin API that the strategy was written for."""
    deterministic: ClassVar[bool] = True
    """Whether equal seeds and events give equal decisions (without a clock)."""
    needs_search_thread: ClassVar[bool] = False
    """Whether a decision occupies a core for its whole budget: admitted by ``limits.search_threads``."""
    wants_events: ClassVar[bool] = False
    """Whether its players are told events (``Player.observe``); views hold them anyway."""
    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    """Schema of ``options`` in a route, a frozen msgspec Struct that forbids unknown fields."""

    evaluators: ClassVar[tuple[str, ...]] = ()
    """Options that hold the address of an :class:`Evaluator`, "" for none. It is resolved and made as routes are, and
    handed to ``use_evaluator``."""

    def __init__(self, options: Any, model: Model | None = None) -> None:
        self.options = options
        self.model = model

    def use_evaluator(self, option: str, evaluator: Evaluator) -> None:
        """What the option, one of ``evaluators``, names; before the first player is asked for."""
        return None

    @classmethod
    def supports(cls, game: Game) -> bool:
        """Whether this strategy plays this game under these very rules."""
        return plays(cls.games, game.name)

    @abstractmethod
    def player(self, table: Table) -> Player:
        """A player for one seat and hand."""

    def decide_many(self, requests: Sequence[Request]) -> list[Decision]:
        """Decide for several tables at once; strategies that batch inference override it."""
        return [r.player.decide(r.view, r.legal, r.budget) for r in requests]

    @classmethod
    def trainer(cls) -> type[Trainer] | Mapping[str, type[Trainer]] | None:
        """What ``bothost train NAME`` runs; None: it learns nothing. Imported only when it is asked for.

        A mapping where training has stages, in their order, each of which ``bothost train NAME STAGE`` runs.
        """
        return None

    @classmethod
    def reproduction(cls) -> type[Reproduction] | None:
        """A plugin's own experiment, which ``bothost reproduce NAME`` runs; None: there is none.

        bothost's own experiments are in the repository's folder ``experiments/``.
        """
        return None

    def close(self) -> None:
        """No more players will be asked for."""
        return None


class Evaluator(Strategy):
    """A strategy that can tell what actions are worth, for the searches of others to build on."""

    @abstractmethod
    def action_values(self, views: Sequence[View], legal: Sequence[ActionArray]) -> Sequence[FloatArray]:
        """Of each view, whose seat is asked, the expected utility of each of its ``legal`` actions: float32, within
        [-1, 1], for the side of that seat; twice its chance to win less one where hands are won or lost.

        One inference for all of them. Called by many threads at once.
        """


class PlayerMove(msgspec.Struct, frozen=True):
    """One decision of anybody at a logged table, rebuilt from the events of a hand whose cards were revealed."""

    game: Game
    """The same object for all hands under equal rules."""
    game_id: str
    """In hexadecimal. The moves of a hand follow one another."""
    split: str
    """"train", "val" or "test": by hash of the hand, the same as in exports."""
    player: str
    """Who decided: our account's name, or the lobby's id of the player."""
    seat: int
    view: View
    """What the seat knew. The consumer's own copy."""
    legal: ActionArray
    action: int
    started_us: int
    """When the hand started, microseconds since 1970, UTC."""
    scores: tuple[float, ...] | None
    """Of all seats, at the end of the hand; None where it was aborted."""


class PlayerLog(Protocol):
    """Logged hands as the decisions of those who sat at them, bots and people alike, and who agreed to be imitated.

    Nobody else's decisions come out of it. Left out are also hands that were not revealed or that the log does not hold
    whole, what our own seats did without their player having chosen it (fallbacks, the lobby's moves after a
    time-out), and hands of other players from which they were away at some time, as far as the lobby told.
    """

    def players(self, game: str) -> Mapping[str, int]:
        """Who agreed, with the number of closed hands of the game that they played, the most first."""
        ...

    def moves(self, game: str, players: Collection[str] = (), *, split: str | None = None) -> Iterator[PlayerMove]:
        """Decisions of these players (none named: of all who agreed), hand after hand in the order of their ids.

        Memory does not grow with their number. Calls and forced moves are decisions too. Raises UsageError where a
        named player is unknown or did not agree.
        """
        ...

    def thinking_ms(self, game: str, players: Collection[str]) -> Iterator[float]:
        """How long these players thought, milliseconds, move by move, where everybody else was a bot of ours."""
        ...

    def lineage(self) -> dict[str, Any]:
        """What was read so far, for the lineage of a model, JSON values only: the query, and of each pass the hands,
        the moves, what was left out and why, and a sha256 of what came out."""
        ...


class TrainingRun(msgspec.Struct, frozen=True, kw_only=True):
    """One training, as the command line asks for it."""

    out: Path
    """Folder of everything that it writes."""
    seed: int = 0
    minutes: float | None = None
    """Time to train in all, in earlier runs too that this one resumes; None: as the trainer's options say."""
    resume: bool = False
    """Go on from the last checkpoint in ``out``."""
    command: str = ""
    """The command line, for the lineage of what comes out."""
    log: PlayerLog | None = None
    """The host's log, where ``Trainer.learns_from_log``."""
    players: tuple[str, ...] = ()
    """Whom to imitate, where the command line names anybody."""
    evaluators: Mapping[str, Evaluator] = {}
    """Option of ``Trainer.evaluators`` → the strategy that it names."""


class ReportProgress(Protocol):
    """Tells whoever watches how far a long job has come."""

    def __call__(self, done: int, note: str = "", total: int | None = None) -> None: ...


class LoggedStep(msgspec.Struct, frozen=True):
    """One logged decision of a trajectory."""

    view: View
    """What the seat knew. The consumer's own copy."""
    legal: ActionArray
    action: int
    policy: FloatArray | None
    """The strategy's probabilities of ``legal``, float32; not of a temperature that it may have drawn with."""
    stats: Mapping[str, Any]
    own: bool
    """Whether the strategy decided; False for a fallback, of which nobody knows the probability."""
    model_sha256: str | None
    values: FloatArray | None = None
    """The strategy's values of ``legal``, float32."""


class Trajectory(msgspec.Struct, frozen=True):
    """The decisions of one seat in one closed hand, in order, refused ones left out."""

    game: Game
    game_id: str
    seat: int
    scores: tuple[float, ...]
    """Of all seats, at the end of the hand."""
    steps: tuple[LoggedStep, ...]


class LoggedGames(Protocol):
    """Logged hands, frozen in an export: reading it again gives the same."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Of the export: rows, hands, splits, query, sha256 of its files."""
        ...

    def trajectories(self, split: str = "train") -> Iterator[Trajectory]:
        """The hands of a split ("train", "val", "test"), one after another, in the order of their ids."""
        ...


class Trainer(ABC):
    """Makes models of a strategy, offline."""

    name: ClassVar[str]
    """Of the strategy."""
    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    """Schema of the options, a frozen msgspec Struct that forbids unknown fields."""
    evaluators: ClassVar[tuple[str, ...]] = ()
    """Options that hold the address of a strategy that values actions; "" for none."""
    learns_from_log: ClassVar[bool] = False
    """Whether what players did is read from the host's log (``TrainingRun.log``)."""

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        """Train, and write models into ``run.out / "weights"`` as a package ships them, with their manifest.

        Returns figures for people, JSON values only. Killed at any moment, it can be resumed.
        """

    def retrain(
        self, run: TrainingRun, games: LoggedGames, start: Model | None, report: ReportProgress
    ) -> dict[str, Any]:
        """As ``train``, from logged hands; ``start``: the model to go on from, None: from nothing.

        The model that shall become the challenger is the manifest's ``champion``. Where ``learns_from_log``,
        ``run.log`` reads what everybody did at the hands of ``games``; ``run.players``: whom to imitate, if anybody.
        """
        raise UsageError(f"{self.name} does not learn from logged hands", advice=f"bothost train {self.name}")

    def gains(
        self, log: PlayerLog, lineage: Mapping[str, Any], challenger: Model, champion: Model
    ) -> Iterator[float] | None:
        """What makes a challenger better than the champion, where it is not winning: of each of many hands of the log
        that neither has learnt from a number within [-1, 1], above 0 where the challenger was better.

        ``lineage``: the challenger's. None: a match decides. Where ``learns_from_log`` only.
        """
        return None


class Contestant(msgspec.Struct, frozen=True):
    """One side of a match."""

    address: str
    """``NAME``, ``NAME:ALIAS`` or ``exec:COMMAND``."""
    options: Mapping[str, Any] = {}
    weights: Path | None = None
    """Folder with the ``manifest.json`` that a training wrote, where the address's alias (default: ``champion``) is
    looked up; None: as everywhere, in the registry and in the strategy's package."""


class PlayMatch(Protocol):
    """Plays a match on duplicate deals and returns its figures, which are those of ``bothost arena --json``.

    With ``each_deal`` they have one more, ``scores``: A's share of wins of every deal, for figures over the same deals
    of several matches. A match that was begun in an earlier run of the same folder goes on where it was.
    """

    def __call__(
        self,
        game: str,
        contestants: Sequence[Contestant],
        *,
        deals: int,
        seed: int = 0,
        ms: float | None = None,
        rules: Mapping[str, Any] | None = None,
        each_deal: bool = False,
    ) -> dict[str, Any]: ...


class RecordGames(Protocol):
    """Lets strategies play and writes their hands to a log, in the folder of the run, as a host does.

    Hands that an earlier run has logged are not played again.
    """

    def __call__(
        self,
        game: str,
        players: Mapping[str, Contestant],
        *,
        hands: int,
        seed: int = 0,
        rules: Mapping[str, Any] | None = None,
        report: ReportProgress | None = None,
    ) -> PlayerLog:
        """``players``: name → who plays; each sits at equally many hands. All of them agree to be imitated."""
        ...


class ReproductionRun(msgspec.Struct, frozen=True, kw_only=True):
    """One reproduction, as the command line asks for it."""

    out: Path
    """Folder of everything that it writes; it exists, and may hold what an interrupted run left."""
    play: PlayMatch
    record: RecordGames
    full: bool = False
    """At the source's size, not at one that fits two cores and some minutes."""
    seed: int = 0
    workers: int = 1
    """Processes to use where work can be spread."""
    command: str = ""
    """The command line, for the lineage of what comes out."""


class ResultTable(msgspec.Struct, frozen=True):
    """A table of results."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """As people read them; the numbers themselves stand in ``Reproduced.figures``."""


class Reproduced(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a reproduction."""

    figures: Mapping[str, Any]
    """Numbers with their names, JSON values only."""
    tables: tuple[ResultTable, ...]
    plots: tuple[str, ...] = ()
    """File names within ``ReproductionRun.out``."""
    notes: tuple[str, ...] = ()
    """What a reader must know of how it was done: sizes, machine, what differs from the source."""


class Reproduction(ABC):
    """An experiment: the tables of a source made again, an ablation or a comparison."""

    name: ClassVar[str]
    """Name of the experiment, as in ``bothost reproduce NAME``."""
    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    """Schema of the options, a frozen msgspec Struct that forbids unknown fields."""

    def __init__(self, options: Any) -> None:
        self.options = options

    @abstractmethod
    def run(self, run: ReproductionRun, report: ReportProgress) -> Reproduced:
        """Run the experiment and write its plots into ``run.out``. Killed at any moment, it can be run again.

        The command line prints the tables and writes them, with the figures, to ``results.md`` and ``results.json``.
        """
