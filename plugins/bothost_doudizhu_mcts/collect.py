"""Collects records by self-play: searches every position, and saves the visits and values of its moves.

Hand number i of a collection depends on (seed, i, options) only: its deal, the players' styles, and every search. So
any number of threads can play hands (the search runs without the GIL), and an interrupted collection can continue.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
from msgspec import Meta

from bothost import ReportProgress, Trainer, TrainingRun
from bothost.errors import UsageError
from bothost.rules import ActionArray, Game, PlayerModel, State, View, doudizhu, game, search
from bothost.training import checkpoint
from bothost_doudizhu_mcts import players, records
from bothost_doudizhu_mcts.ahead import in_order
from bothost_doudizhu_mcts.evaluated import LeafValues, search_on
from bothost_doudizhu_mcts.options import PlayOptions
from bothost_doudizhu_mcts.records import Batch

Style = Literal["best", "drawn", "rule"]
"""How a seat plays a hand: the search's best move, a move drawn by visits (for variety), or the rule player's. Every
position is searched in any case."""
STYLES: tuple[Style, ...] = ("best", "drawn", "rule")
Weight = Annotated[float, Meta(ge=0)]
HANDS_PER_FILE = 100


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the collection."""

    records: Annotated[int, Meta(ge=1)] | None = None
    """Total number of records, including those of earlier runs. None: until the time is over."""
    iterations: Annotated[int, Meta(ge=1)] = 1000
    """Iterations of the search in each position."""
    workers: Annotated[int, Meta(ge=1)] | None = None
    """Hands played at the same time. None: one per core."""
    preset: str = "rlcard"
    """Preset of the game's rules."""
    evaluator: str = ""
    """Address of the strategy that values the leaves, such as "doudizhu-mcts". Empty: playouts. If its version has a
    model of players, the searches count on it."""
    search: dict[str, Any] = {}
    """Options of ``bothost.rules.search`` that override those of play."""
    styles: tuple[Weight, Weight, Weight] = (0.5, 0.25, 0.25)
    """Shares of the seats that play the best move, a move drawn by visits, and the rule player's move."""
    forced_share: Annotated[float, Meta(ge=0, le=1)] = 0.25
    """Share of the positions with a single legal move that are also searched."""
    contested: Annotated[float, Meta(ge=0, le=2)] | None = None
    """Search only positions where the evaluator's two best moves differ by at most so much, within 0 and 2. In others
    its best move counts as the search's. None: search all positions."""
    exports: str | None = None
    """Folder of a ``bothost export``. Convert its logged games to records instead of playing."""

    def __post_init__(self) -> None:
        if not sum(self.styles) > 0:
            raise ValueError("one of styles must be positive")
        if self.contested is not None and not self.evaluator:
            raise ValueError("contested needs an evaluator")
        table = game("doudizhu", preset=self.preset)  # raises ValueError for an unknown one, as the search does
        state, options = table.new_state(0), self.of_search(table, evaluated=bool(self.evaluator))
        search(state.view(state.to_act[0]), 0, **options)
        if options["leaf"] == "evaluator" and not self.evaluator:
            raise ValueError("the leaf evaluator needs an evaluator")

    def of_search(self, table: Game, *, evaluated: bool) -> dict[str, Any]:
        """Options of each search: those of play, and the overriding ones."""
        return PlayOptions().of_search(table, "play", evaluated=evaluated) | self.search


class Collector(Trainer):
    """Collect records by self-play: searches of every position."""

    name = "doudizhu-mcts"
    Options: ClassVar[type[msgspec.Struct]] = Options
    evaluators: ClassVar[tuple[str, ...]] = ("evaluator",)

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        if self.options.exports is not None:
            return convert(Path(self.options.exports), run.out)
        if run.minutes is None and self.options.records is None:
            raise UsageError("this collection has no stopping condition", advice="give --minutes M or --records N")
        return Collection(self.options, run).go_on(report)


class Collection:
    """A folder of records, to which new ones are added."""

    def __init__(self, options: Options, run: TrainingRun) -> None:
        """Raises UsageError if the folder has records, and the run does not resume them or has other settings."""
        self.options = options
        self.run = run
        evaluator = run.evaluators.get("evaluator")
        self.player = SelfPlay(options, run.seed, evaluator, players.load(evaluator.model) if evaluator else None)
        self.hands, self.records, self.seconds = 0, 0, 0.0
        self.made: dict[str, Any] = {"command": run.command, "seed": run.seed, "options": _plain(options)}
        if not run.resume:
            checkpoint.check_empty(run.out)
        for path in records.files(run.out):
            _, made, rows = records.made(path)
            if made.get("seed") != run.seed or _what(made.get("options", {})) != _what(self.made["options"]):
                raise UsageError(
                    f"{path} was collected with other settings: {made.get('command')}",
                    advice="give the same seed and options",
                )
            self.hands = max(self.hands, int(made["first"]) + int(made["hands"]))
            self.records += rows
            self.seconds += float(made["seconds"])

    def go_on(self, report: ReportProgress) -> dict[str, Any]:
        """Collect until the time is over or there are enough records."""
        self.run.out.mkdir(parents=True, exist_ok=True)
        batch, first, started = Batch(), self.hands, time.monotonic()
        for played in self._play():
            batch.extend(played)
            self.hands += 1
            self._tell(report, len(batch), time.monotonic() - started)
            if self.hands - first == HANDS_PER_FILE:
                started = self._write(batch, first, started)
                batch, first = Batch(), self.hands
        if self.hands > first:
            self._write(batch, first, started)
        return {
            "out": str(self.run.out),
            "records": self.records,
            "hands": self.hands,
            "minutes": round(self.seconds / 60, 2),
        }

    def _play(self) -> Iterator[Batch]:
        """Yield hands in order until it is time to stop."""
        start, workers = time.monotonic(), self.options.workers or os.cpu_count() or 1
        end = start + 60 * self.run.minutes - self.seconds if self.run.minutes is not None else float("inf")
        left = float("inf") if self.options.records is None else self.options.records - self.records
        numbers = itertools.takewhile(lambda _: time.monotonic() < end, itertools.count(self.hands))
        with (
            ThreadPoolExecutor(workers) as pool,
            closing(in_order(lambda n: pool.submit(self.player.hand, n), numbers, 2 * workers)) as hands,
        ):
            while left > 0 and (batch := next(hands, None)) is not None:
                left -= len(batch)
                yield batch

    def _write(self, batch: Batch, first: int, started: float) -> float:
        now = time.monotonic()
        made = self.made | {"first": first, "hands": self.hands - first, "seconds": round(now - started, 2)}
        records.write(self.run.out / f"records-{first:07d}.parquet", batch, self.player.game.rules, made)
        self.records += len(batch)
        self.seconds += now - started
        return now

    def _tell(self, report: ReportProgress, waiting: int, seconds: float) -> None:
        done, seconds = self.records + waiting, self.seconds + seconds
        note = f"{done:,} records of {self.hands:,} hands, {done / max(seconds, 1e-9):,.0f}/s"
        if self.options.records is not None:
            report(min(done, self.options.records), note, self.options.records)
        elif self.run.minutes is not None:
            report(int(seconds), note, int(60 * self.run.minutes))


def _plain(options: Options) -> dict[str, Any]:
    """The options as plain JSON, as they are read from a file."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(options))
    return plain


def _what(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that hands depend on."""
    return {name: value for name, value in options.items() if name not in ("records", "workers")}


class SelfPlay:
    """Plays hands and searches their positions."""

    def __init__(
        self,
        options: Options,
        seed: int,
        evaluator: LeafValues | None = None,
        players: PlayerModel | None = None,
    ) -> None:
        self.options, self.seed, self.evaluator = options, seed, evaluator
        self.game = game("doudizhu", preset=options.preset)
        self.search = options.of_search(self.game, evaluated=evaluator is not None)
        self.players = players
        self.deals = min(int(self.search["belief"]), options.iterations)

    def hand(self, number: int) -> Batch:
        """Play hand ``number`` of the collection. Thread-safe."""
        rng = np.random.default_rng([self.seed, number])
        state, deal, batch = self.game.new_state(int(rng.integers(2**63))), f"{self.seed}-{number}", Batch()
        shares = np.array(self.options.styles) / sum(self.options.styles)
        styles: list[Style] = [STYLES[i] for i in rng.choice(len(STYLES), size=self.game.num_seats, p=shares)]
        while not state.terminal:
            seat = state.to_act[0]
            self._turn(state, seat, styles[seat], deal, rng, batch)
        return batch

    def _turn(self, state: State, seat: int, style: Style, deal: str, rng: np.random.Generator, batch: Batch) -> None:
        view = state.view(seat)
        legal = view.legal()
        search_seed = int(rng.integers(2**63))
        if len(legal) == 1 and rng.random() >= self.options.forced_share:
            state.apply(seat, int(legal[0]))
            return
        if (clear := self._clear_best(view, legal)) is not None:
            state.apply(seat, doudizhu.rule_choice(view)[0] if style == "rule" else clear)
            return
        tree = search(view, search_seed, self.players, **self.search)
        if self.deals:
            tree.resample_determinizations(self.deals)
        search_on(tree, self.evaluator, iterations=self.options.iterations)
        moves = tree.root_actions
        batch.add(deal, seat, view.to_bytes(), moves)
        state.apply(seat, _choose(view, moves, style, rng))

    def _clear_best(self, view: View, legal: ActionArray) -> int | None:
        """The evaluator's best move if it is better by more than ``contested``; None: search."""
        if self.options.contested is None or self.evaluator is None or len(legal) == 1:
            return None
        values = self.evaluator.action_values([view], [legal])[0]
        second, first = np.sort(values)[-2:]
        return int(legal[values.argmax()]) if first - second > self.options.contested else None


def _choose(view: View, moves: Sequence[tuple[int, int, float]], style: Style, rng: np.random.Generator) -> int:
    if style == "rule":
        return doudizhu.rule_choice(view)[0]
    visits = np.array([visits for _, visits, _ in moves], np.float64)
    if style == "drawn":
        return moves[int(rng.choice(len(moves), p=visits / visits.sum()))][0]
    return moves[int(visits.argmax())][0]


def convert(exports: Path, out: Path) -> dict[str, Any]:
    """Write records of logged games to ``out``, one file for each file of the export and rules."""
    if out.is_dir() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty", advice="name another folder")
    total, number = 0, 0
    for rules, batch in records.from_export(exports):
        out.mkdir(parents=True, exist_ok=True)
        records.write(out / f"logged-{number:05d}.parquet", batch, rules, {"exports": str(exports)})
        total, number = total + len(batch), number + 1
    return {"out": str(out), "records": total}
