"""Decision phases against one flat space of composite actions, trained on the same budget under several seeds.

Each seed has three trainings by the same PPO. The flat space and the phases train for equal CPU time of one core. The
phases also train for as many updates as the flat space made. Updates of both kinds have equally many hands and gradient
steps. A flat decision replaces about three phase decisions, so there are fewer. Neither learns from decisions with one
legal action. Both networks are computed natively. With ``network`` candidates both see the inputs per action. Only the
network of the phases can score each action from its own: a flat one would have 3,588 × 32 of them. After each part of a
budget the two play each other, and each plays the rule player.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, Literal, NamedTuple

import msgspec

from bothost import ReportProgress, Reproduced, ReproductionRun, ResultTable
from bothost.rules import game
from bothost.training import checkpoint
from bothost.training.loop import version_at
from bothost.training.metrics import read
from bothost.training.model_pool import ModelPool
from bothost.training.ppo import PpoOptions
from bothost.training.rollout import RolloutTask, SelfPlayOptions
from bothost.training.statistics import mean_half95
from bothost_phase_ppo.encode import BLOCKS, REWARD_SCALE, SIZES, TURNS
from bothost_phase_ppo.model import NETWORKS, PhaseNet
from bothost_phase_ppo.train import train
from experiments.phase_ppo.duel import Duel, duel
from experiments.phase_ppo.flat import COMPOSITES, FlatPairing


class Meeting(NamedTuple):
    """The matches after one part of a budget, as win rates of the first side."""

    phases_over_flat: Duel
    phases_over_rule_player: Duel
    flat_over_rule_player: Duel


Meetings = Mapping[str, list[list[Meeting]]]
"""Budget → per seed the matches after each of ``PARTS``."""
PARTS = (0.25, 0.5, 0.75, 1.0)
"""Shares of the budget after which they play."""
SAME_TIME, SAME_HANDS = "equal CPU time", "equal hands and steps"
SHORT = "phases-as-many-updates"


class DecompositionOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the comparison."""

    seeds: int = 5
    """Trainings of each kind."""
    cpu_minutes: float = 2.5
    """CPU minutes of one core for each training."""
    full_cpu_minutes: float = 60.0
    """CPU minutes for each training with --full."""
    deals: int = 400
    """Deals of a match; each is played with the seats both ways round."""
    environments: int = 64
    """Hands played at once, of either kind."""
    network: Literal["candidates", "source"] = "candidates"
    """What the networks see, as in training."""

    @property
    def version(self) -> int:
        """Encoder version of the networks."""
        return 1 if self.network == "source" else 2

    def __post_init__(self) -> None:
        if not 1 <= self.seeds <= 1000 or self.deals < 2 or self.environments < 2:
            raise ValueError("seeds must be within 1 and 1000, deals and environments at least 2")
        if not min(self.cpu_minutes, self.full_cpu_minutes) > 0.0:
            raise ValueError("minutes must be positive")


class Kind(msgspec.Struct, frozen=True):
    """One of the two action spaces."""

    model: Callable[[], PhaseNet]
    """Makes a network with new parameters."""
    task: RolloutTask
    horizon: int
    """Decisions per environment and update: about 200 hands of 64 environments, for either kind."""
    minibatch: int
    """Samples per gradient step: eight steps an epoch."""


def kinds(environments: int, version: int) -> dict[str, Kind]:
    """Both action spaces, with updates of about equally many hands, for an encoder version."""

    def kind(model: Callable[[], PhaseNet], game_: Any, horizon: int) -> Kind:
        task = RolloutTask(game_, BLOCKS[version], TURNS, reward_scale=REWARD_SCALE, skip_forced=True)
        return Kind(model, task, horizon, environments * horizon // 8)

    flat = functools.partial(PhaseNet, COMPOSITES, inputs=SIZES[version])
    return {"phases": kind(NETWORKS[version], game("pairing"), 80), "flat": kind(flat, FlatPairing(), 40)}


def compare(options: DecompositionOptions, run: ReproductionRun, report: ReportProgress) -> Reproduced:
    """Run the trainings that an earlier run in the folder did not finish, then play the matches."""
    minutes = options.full_cpu_minutes if run.full else options.cpu_minutes
    meetings: Meetings = {SAME_TIME: [], SAME_HANDS: []}
    updates: dict[str, list[int]] = {"phases": [], "flat": []}
    for number in range(options.seeds):
        pair = Pair(options, run.out / "decomposition", run.seed + number)
        for step, name in enumerate(updates):
            report(3 * number + step, f"{name}, seed {pair.seed}", 3 * options.seeds)
            updates[name].append(pair.train(name, name, minutes=minutes))
        report(3 * number + 2, f"phases for as many updates, seed {pair.seed}", 3 * options.seeds)
        pair.train("phases", SHORT, iterations=updates["flat"][-1])
        meetings[SAME_TIME].append([pair.meet("phases", part, "seconds") for part in PARTS])
        meetings[SAME_HANDS].append([pair.meet(SHORT, part, "samples") for part in PARTS])
    plot_meetings(meetings, run.out / "decomposition.png")
    return Reproduced(
        figures={
            "decomposition": {
                budget: [[{name: duel._asdict() for name, duel in m._asdict().items()} for m in seed] for seed in found]
                for budget, found in meetings.items()
            },
            "updates": updates,
            "cpu_minutes": minutes,
            "deals_of_a_decomposition_match": options.deals,
        },
        tables=tuple(_table(budget, found) for budget, found in meetings.items()),
        plots=("decomposition.png",),
        notes=(
            f"Phases against composite actions: {options.seeds} seeds, {minutes:g} minutes of one core for each "
            f"training; {mean(updates['phases']):.0f} updates with phases, {mean(updates['flat']):.0f} flat ones; "
            f"{options.deals} deals a match and seed. Means over seeds, with 95 % intervals of Student's t.",
        ),
    )


class Pair:
    """The trainings of one seed, in folders of their own."""

    def __init__(self, options: DecompositionOptions, folder: Path, seed: int) -> None:
        self.seed = seed
        self._options = options
        self._folder = folder
        self._kinds = kinds(options.environments, options.version)

    def train(self, kind: str, name: str, *, minutes: float | None = None, iterations: int | None = None) -> int:
        """Train a kind in the folder of ``name``, or continue there. Returns the number of updates."""
        wanted, out = self._kinds[kind], self._out(name)
        settings = SelfPlayOptions(
            iterations=iterations,
            environments=self._options.environments,
            horizon=wanted.horizon,
            checkpoint_every=5,
            ppo=PpoOptions(minibatch=wanted.minibatch),
        )
        run = checkpoint.take_up(out, seed=self.seed, minutes=minutes)
        progress = train(settings, wanted.task, wanted.model, run, lambda *_, **__: None, clock=time.process_time)
        return progress.iteration

    def meet(self, phases: str, part: float, of: Literal["samples", "seconds"]) -> Meeting:
        """Matches between the phases (folder ``phases``), the flat space and the rule player, after that part of the
        trainings."""
        ours, theirs = self._taken("phases", phases, part, of), self._taken("flat", "flat", part, of)
        pairs = ((ours, theirs), (ours, None), (theirs, None))
        deals, version = self._options.deals, self._options.version
        return Meeting(*(duel(first, second, deals, self.seed, version=version) for first, second in pairs))

    def _taken(self, kind: str, name: str, part: float, of: Literal["samples", "seconds"]) -> PhaseNet:
        out, model = self._out(name), self._kinds[kind].model()
        whole = read(out / "metrics.jsonl")[-1][of]
        ModelPool(out / "pool").load(version_at(out, part * whole, of)[0], model)
        return model

    def _out(self, name: str) -> Path:
        return self._folder / f"{name}-{self.seed}"


def plot_meetings(meetings: Meetings, path: Path) -> None:
    """Win rates by the spent share of the budget: means over the seeds with intervals, and every seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    percent = [100 * part for part in PARTS]
    for axes, (budget, found) in zip(figure.subplots(1, len(meetings), sharey=True), meetings.items(), strict=True):
        for shift, name in zip((-1.0, 0.0, 1.0), Meeting._fields, strict=True):
            rates = _rates(found, name)
            means = [mean_half95(column) for column in zip(*rates, strict=True)]
            places = [x + shift for x in percent]
            (line,) = axes.plot(places, [rate for rate, _ in means], label=_words(name))
            color = line.get_color()
            axes.errorbar(
                places, [rate for rate, _ in means], [half for _, half in means], fmt="none", capsize=4, color=color
            )
            for seed in rates:
                axes.plot(places, seed, ".", color=color, alpha=0.4)
        axes.axhline(0.5, color="grey", linewidth=1)
        axes.set_title(budget)
        axes.set_xlabel("training, % of its budget")
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("win rate")
    figure.axes[0].legend()
    figure.savefig(path, dpi=120)


def _rates(found: list[list[Meeting]], name: str) -> list[list[float]]:
    """Per seed the win rates of one kind of match after each of ``PARTS``."""
    return [[getattr(meeting, name).wins for meeting in seed] for seed in found]


def _words(name: str) -> str:
    return name.replace("_", " ")


def _table(budget: str, found: list[list[Meeting]]) -> ResultTable:
    """Per kind of match: the mean at every part, and every seed at the end."""

    def cell(values: Sequence[float]) -> str:
        rate, half = mean_half95(values)
        return f"{rate:.3f}" if math.isnan(half) else f"{rate:.3f} ± {half:.3f}"

    rows = []
    for name in Meeting._fields:
        at_end = [getattr(seed[-1], name) for seed in found]
        means = [cell(column) for column in zip(*_rates(found, name), strict=True)]
        rows.append((_words(name), *means, ", ".join(f"{match.wins:.3f} ± {match.wins_ci95:.3f}" for match in at_end)))
    header = ("win rate", *(f"at {part:.0%}" for part in PARTS), "every seed at the end")
    return ResultTable(f"Phases and composite actions, {budget}, 95 %", header, tuple(rows))
