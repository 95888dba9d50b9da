"""``bothost reproduce deep-mc``: how many samples the regularizer and the reduction loss save.

It compares plain deep Monte-Carlo with either loss and with both. Every training starts from nothing, without
imitation, branches or games against the expert, under several seeds. The regularizer's expert is a strong player or the
rule player. The strong player's logged hands replace half of the self-play and count as samples. The rule player is
asked at every decision. The win rate against the rule player is measured during training, in both roles of the same
deals. Minutes are the process's own CPU time, so that other work on the machine does not count.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, ClassVar, Literal

import msgspec

import bothost_deep_mc
from bothost import ReportProgress, Reproduced, Reproduction, ReproductionRun, ResultTable
from bothost.errors import UsageError
from bothost.rules import game
from bothost.training import checkpoint
from bothost.training.action_values import NativeActionValues
from bothost.training.loop import check_options
from bothost.training.metrics import read
from bothost.training.publish import WEIGHTS
from bothost_deep_mc.encode import ROLES
from bothost_deep_mc.engine import PRESET
from bothost_deep_mc.experts import played_by
from bothost_deep_mc.model import DeepMcNet, begin_with, sizes_of
from bothost_deep_mc.options import Options as TrainOptions
from bothost_deep_mc.selfplay import Decisions
from bothost_deep_mc.train import DeepMcTrainer, ExtraDecisions, some_of, train

TARGETS = (0.4, 0.45, 0.5, 0.55, 0.6, 0.7)
"""Win rates for which samples and minutes are reported."""
CLAIMED = 0.6
"""Share of plain's samples that the whole method may need, by the source's claim."""
HANDS = 256
"""Hands of a round of self-play."""
SETTLED = "experiment.json"
"""File with the options of the trainings in a folder."""
PACKAGED = Path(bothost_deep_mc.__file__).parent / "weights"
REGULARIZED: Mapping[str, Mapping[str, Any]] = {
    "rule": {"expert": "rule", "expert_weight": 2.0},
    "logged": {
        "expert": "logged",
        "expert_weight": 120.0,
        "expert_margin": 0.2,
        "parity": 0.65,
        "hands": HANDS // 2,
        "logged_share": 0.85,
        "play": {"others": 7},
    },
}
"""Options of the trainings with the regularizer, by expert. Logged decisions replace half of the hands. The champion
wins 65 % against the rule player."""

Curve = Sequence[Mapping[str, float]]


class ExperimentOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the reproduction."""

    seeds: int = 3
    """Trainings of each kind."""
    rounds: int = 80
    """Rounds of each training: 256 hands of self-play, or half of them and as many logged hands."""
    full_rounds: int = 20000
    """Rounds of each training with --full."""
    expert: Literal["logged", "rule"] = "logged"
    """The regularizer's expert: the player of the logged hands, or the rule player."""
    player: str = "champion"
    """Shipped version that plays the logged hands against itself."""
    logged_hands: int = 8000
    """Logged hands, played anew under each seed."""
    regularizer: dict[str, Any] = {}
    """Options of the trainings with the regularizer; they replace the experiment's own."""
    reduction_weight: float = 0.001
    """α_s of the trainings with the reduction loss."""
    training: dict[str, Any] = {}
    """Options of all trainings; they replace the experiment's own."""

    def __post_init__(self) -> None:
        if min(self.seeds, self.rounds, self.full_rounds, self.logged_hands) < 1:
            raise ValueError("seeds, rounds and logged_hands must be positive")
        if "expert" in self.regularizer:
            raise ValueError("the expert is named by expert=, not by regularizer.expert=")


class DeepMcReproduction(Reproduction):
    """Trains each kind under each seed and reports the samples and minutes to each win rate."""

    name = "deep-mc"
    Options: ClassVar[type[msgspec.Struct]] = ExperimentOptions

    options: ExperimentOptions

    def run(self, run: ReproductionRun, report: ReportProgress) -> Reproduced:
        rounds = self.options.full_rounds if run.full else self.options.rounds
        trainings = {kind: self._training(given, rounds) for kind, given in self._kinds().items()}
        log = Log(self.options) if self.options.expert == "logged" else None
        self._keep_to(run.out / SETTLED, rounds, log)
        curves: dict[str, list[Curve]] = {}
        jobs = [(kind, run.seed + seed) for seed in range(self.options.seeds) for kind in trainings]
        for done, (kind, seed) in enumerate(jobs):
            report(done, f"{kind}, seed {seed}", len(jobs))
            out, training = run.out / f"{kind.replace(' ', '-').replace('+', 'with')}-{seed}", trainings[kind]
            more = some_of(log.hands(seed, training), training) if log and training.expert == "logged" else None
            curves.setdefault(kind, []).append(_curve(training, out, seed, more))
        reached = {kind: first_reached(found) for kind, found in curves.items()}
        plot_curves(curves, run.out / "win_rates.png")
        return Reproduced(
            figures={
                "reached": reached,
                "last": {kind: [curve[-1]["win_rate"] for curve in found] for kind, found in curves.items()},
                "samples": {kind: [curve[-1]["samples"] for curve in found] for kind, found in curves.items()},
                **{
                    f"{unit}_of_{name}_over_plain": ratios(reached, kind, unit)
                    for name, kind in (("both", "+ both"), ("regularizer", "+ regularizer"))
                    for unit in ("samples", "minutes")
                },
                "claimed": CLAIMED,
                "rounds": rounds,
                "seeds": self.options.seeds,
                "expert": self.options.expert,
                **(log.figures() if log else {}),
            },
            tables=tuple(table_of(curves, reached, unit) for unit in ("samples", "minutes")),
            plots=("win_rates.png",),
            notes=(
                f"{self.options.seeds} trainings of each kind, {rounds} rounds each, measured every fifth; minutes are "
                "CPU time of one core, without the measurements'.",
                "Mean ± standard deviation over seeds of when the win rate, averaged over three measurements, first "
                "was there; how many seeds got there where it is not all.",
                *(log.notes() if log else ()),
            ),
        )

    def _kinds(self) -> dict[str, dict[str, Any]]:
        regularizer = {**REGULARIZED[self.options.expert], **self.options.regularizer}
        reduction = {"reduction_weight": self.options.reduction_weight}
        return {
            "plain": {},
            "+ regularizer": regularizer,
            "+ reduction": reduction,
            "+ both": regularizer | reduction,
        }

    def _training(self, kind: Mapping[str, Any], rounds: int) -> TrainOptions:
        """Options of one kind's trainings. Raises ConfigError for wrong ones."""
        nothing = dict.fromkeys(
            ("bidding_share", "imitation", "expert_share", "expert_weight", "reduction_weight"), 0.0
        )
        given: dict[str, Any] = {"iterations": rounds, "hands": HANDS, "minibatch": 512, "branches": 0, **nothing}
        given |= {"evaluate_every": 5, "evaluation_deals": 150, **kind}
        options: TrainOptions = check_options(DeepMcTrainer, given | self.options.training)
        return options

    def _keep_to(self, file: Path, rounds: int, log: Log | None) -> None:
        """Raises UsageError if the folder holds trainings with other options, which would be continued."""
        settled = msgspec.to_builtins(self.options) | {"rounds": rounds, "player": log.player if log else ""}
        for name in ("seeds", "full_rounds"):  # more seeds may be added
            del settled[name]
        asked = msgspec.json.decode(msgspec.json.encode(settled))
        if not file.exists():
            file.write_bytes(msgspec.json.format(msgspec.json.encode(asked)) + b"\n")
            return
        try:
            held = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UsageError(f"{file} cannot be read: {error}", advice="name another --out") from error
        other = sorted(key for key in asked.keys() | held.keys() if asked.get(key) != held.get(key))
        if other:
            raise UsageError(
                f"{file.parent} holds this reproduction with another {', '.join(other)}", advice="name another --out"
            )


class Log:
    """Hands that a strong player played against itself, in place of a log."""

    def __init__(self, options: ExperimentOptions) -> None:
        """Raises UsageError for a version that deep-mc does not ship."""
        known = msgspec.json.decode((PACKAGED / "manifest.json").read_bytes())
        self.player = known["aliases"].get(options.player, options.player)
        if self.player not in known["versions"]:
            advice = f"one of {', '.join([*known['aliases'], *known['versions']])}"
            raise UsageError(f"deep-mc ships no version {options.player!r}", advice=advice)
        file = PACKAGED / self.player / WEIGHTS
        self._count = options.logged_hands
        sizes = sizes_of(file)
        model = DeepMcNet(sizes)
        begin_with(file, model)
        self._nets = {role: NativeActionValues(model.of(role)) for role in ROLES}
        self._wide = sizes.seen
        self._made: dict[int, dict[str, Decisions]] = {}
        self._decisions: list[int] = []
        self._seconds: list[float] = []

    def hands(self, seed: int, training: TrainOptions) -> dict[str, Decisions]:
        """The hands of a seed, encoded for such trainings. Only the last seed's are kept."""
        if seed not in self._made:
            began = time.process_time()
            table = game("doudizhu", preset=PRESET)
            others, seen = training.play.others, training.seen
            found = played_by(table, self._nets, self._count, others=others, wide=self._wide, seen=seen, seed=seed)
            self._made = {seed: found}
            self._decisions.append(sum(len(part.returns) for part in found.values()))
            self._seconds.append(time.process_time() - began)
        return self._made[seed]

    def figures(self) -> dict[str, Any]:
        """The player, its hands, and the CPU seconds of each seed."""
        return {
            "player": self.player,
            "logged_hands": self._count,
            "logged_decisions": self._decisions,
            "logged_cpu_seconds": [round(seconds, 2) for seconds in self._seconds],
        }

    def notes(self) -> tuple[str, ...]:
        """These figures in words."""
        return (
            f"The expert is deep-mc:{self.player} in {self._count:,} hands against itself, which stand for a log. "
            f"Playing their {mean(self._decisions):,.0f} decisions ({mean(self._seconds):.0f} s of one core) does not "
            "count. Decisions that a training learns from count as samples, and learning from them as minutes.",
        )


def _curve(options: TrainOptions, out: Path, seed: int, extra: ExtraDecisions | None) -> Curve:
    """Measurements of one training, which continues an earlier run's."""
    train(options, checkpoint.take_up(out, seed=seed), lambda *_, **__: None, extra=extra)
    return [record for record in read(out / "metrics.jsonl") if "landlord" in record]


def _smoothed(curve: Curve) -> list[float]:
    """Each measurement's win rate averaged with the two before it."""
    rates = [record["win_rate"] for record in curve]
    return [mean(rates[max(0, i - 2) : i + 1]) for i in range(len(rates))]


def first_reached(curves: Sequence[Curve]) -> dict[str, dict[str, list[float]]]:
    """By win rate in percent: samples and minutes of each training that reached it."""
    out = {}
    for target in TARGETS:
        first = [next((r for r, w in zip(c, _smoothed(c), strict=True) if w >= target), None) for c in curves]
        found = [record for record in first if record is not None]
        out[f"{100 * target:.0f}"] = {
            "samples": [record["samples"] for record in found],
            "minutes": [round(record["cpu_seconds"] / 60, 3) for record in found],
        }
    return out


def ratios(reached: Mapping[str, Any], kind: str, unit: str) -> dict[str, float]:
    """A kind's need as a share of plain's, for win rates that all trainings of both reached."""
    out = {}
    for target in reached["plain"]:
        plain, other = reached["plain"][target][unit], reached[kind][target][unit]
        if plain and len(plain) == len(other):
            out[target] = round(mean(other) / mean(plain), 3)
    return out


def table_of(curves: Mapping[str, Sequence[Curve]], reached: Mapping[str, Any], unit: str) -> ResultTable:
    form = ",.0f" if unit == "samples" else ".2f"

    def cell(kind: str, target: str) -> str:
        found = reached[kind][target][unit]
        if not found:
            ends = [curve[-1] for curve in curves[kind]]
            return f"> {min(end['samples'] if unit == 'samples' else end['cpu_seconds'] / 60 for end in ends):{form}}"
        spread = f" ± {stdev(found):{form}}" if len(found) > 1 else ""
        some = f" ({len(found)} of {len(curves[kind])})" if len(found) < len(curves[kind]) else ""
        return f"{mean(found):{form}}{spread}{some}"

    targets = list(reached["plain"])
    rows = tuple(
        (
            kind,
            *(cell(kind, target) for target in targets),
            f"{100 * mean(c[-1]['win_rate'] for c in curves[kind]):.1f}",
        )
        for kind in curves
    )
    header = ("", *(f"{target} %" for target in targets), "last, %")
    return ResultTable(f"{unit.capitalize()} to a win rate against the rule player", header, rows)


def plot_curves(curves: Mapping[str, Sequence[Curve]], path: Path) -> None:
    """Win rates over samples and over minutes, one line a training."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 7), layout="constrained")
    panels = figure.subplots(2, 1)
    for axes, unit, scale in zip(panels, ("samples", "cpu_seconds"), (1.0, 60.0), strict=True):
        for number, (kind, found) in enumerate(curves.items()):
            for seed, curve in enumerate(found):
                x = [record[unit] / scale for record in curve]
                axes.plot(x, _smoothed(curve), color=f"C{number}", linewidth=1, label=kind if seed == 0 else None)
        axes.set_xlabel("samples" if unit == "samples" else "minutes of one core")
        axes.set_ylabel("win rate against the rule player")
        axes.grid(alpha=0.3)
    panels[0].legend(fontsize="small")
    figure.savefig(path, dpi=120)
