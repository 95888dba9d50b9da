"""Learns how strong players move: the probability of each legal play, from hands that a teacher plays against itself.

The result is a version with the networks of ``start`` and a new model of players. It takes some minutes. So it does not
resume.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import torch
from msgspec import Meta
from torch import Tensor, nn

from bothost import Evaluator, ReportProgress, Trainer, TrainingRun
from bothost.errors import UsageError
from bothost.rules import ActionArray, FloatArray, View
from bothost.training import checkpoint
from bothost.training.checkpoint import Progress
from bothost.training.limits import Count, Positive, Share
from bothost.training.loop import set_learning_rate
from bothost_doudizhu_mcts import players
from bothost_doudizhu_mcts.evaluated import address_of
from bothost_doudizhu_mcts.model import Networks, publish
from bothost_doudizhu_mcts.source import Options as DistilOptions
from bothost_doudizhu_mcts.source import Source

CARDS, SITUATION, ANALYSIS = "compact", "situation", "move_analysis"
"""The blocks of the inputs."""
SEEN_CARDS = 3 * 54
"""The first cells of ``CARDS``: the hand, the unseen cards and the play to beat."""
POSITION, MOVE, HIDDEN = SEEN_CARDS + 33, 141, 32
"""Cells of a position, cells of a move (all of ``ANALYSIS`` but the rule player's choice), and hidden units."""
GATHERED = 8192
"""Positions that are played at a time."""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the imitation."""

    teacher: Annotated[str, Meta(min_length=1)] = "deep-mc"
    """Address of the strategy whose moves are learned."""
    start: str = "doudizhu-mcts"
    """Version whose networks the new version has."""
    positions: Annotated[int, Meta(ge=100)] = 1_000_000
    """Positions with several legal moves."""
    held_out: Annotated[float, Meta(gt=0, lt=1)] = 0.02
    """Share of the positions, the last ones, that are held out for measurements."""
    epochs: Count = 3
    """Passes over the positions."""
    batch: Count = 512
    """Positions of a gradient step."""
    learning_rate: Positive = 3e-3
    """Initial learning rate. It falls linearly to 0 at the end."""
    hands: Count = 256
    """Hands played at the same time."""
    random_moves: Share = 0.05
    """Share of the moves that are drawn from all legal ones, so that there are positions of bad play, too."""


class PlayerNet(nn.Module):
    """Positions (P, 195), moves (M, 141) and their positions (M,) → logits (M,). See ``player_model.h``."""

    def __init__(self) -> None:
        super().__init__()
        self.position = nn.Linear(POSITION, HIDDEN)
        self.move = nn.Linear(MOVE, HIDDEN, bias=False)
        self.output = nn.Linear(HIDDEN, 1, bias=False)
        self.linear = nn.Linear(MOVE, 1, bias=False)

    def forward(self, positions: Tensor, moves: Tensor, owner: Tensor) -> Tensor:
        hidden = torch.relu(self.position(positions)[owner] + self.move(moves))
        logits: Tensor = (self.output(hidden) + self.linear(moves)).squeeze(1)
        return logits

    def parameters_by_name(self) -> dict[str, Tensor]:
        """The parameters as ``bothost.rules.doudizhu.PlayerModel`` takes them."""
        return {
            "position": self.position.weight.detach().T.contiguous(),
            "bias": self.position.bias.detach(),
            "move": self.move.weight.detach().T.contiguous(),
            "output": self.output.weight.detach()[0],
            "linear": self.linear.weight.detach()[0],
        }


class Moves(NamedTuple):
    """What a teacher played. The cells of the inputs are packed into bits."""

    positions: npt.NDArray[np.uint8]
    """(n, …)"""
    moves: npt.NDArray[np.uint8]
    """(m, …): the legal moves of all positions."""
    ends: npt.NDArray[np.int64]
    """(n,): the end of each position's moves."""
    chosen: npt.NDArray[np.int64]
    """(n,): the index of the played move among the position's."""

    def batch(self, rows: npt.NDArray[np.int64]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Positions, moves and owners as ``PlayerNet`` takes them, and the indices of the played moves."""
        begins = np.concatenate([[0], self.ends])[rows]
        counts = self.ends[rows] - begins
        offsets = np.cumsum(counts) - counts
        owner = np.repeat(np.arange(len(rows)), counts)
        moves = np.arange(counts.sum()) + (begins - offsets)[owner]
        cells = (_cells(self.positions[rows], POSITION), _cells(self.moves[moves], MOVE))
        return *cells, torch.from_numpy(owner), torch.from_numpy(offsets + self.chosen[rows])


def _cells(packed: npt.NDArray[np.uint8], count: int) -> Tensor:
    return torch.from_numpy(np.unpackbits(packed, axis=1, count=count)).float()


def gather(teacher: Evaluator, options: Options, seed: int, report: ReportProgress) -> Moves:
    """Play hands with the teacher until there are enough positions."""
    source = Source(
        teacher, DistilOptions(hands=options.hands, random_moves=options.random_moves, rule_seats=0.0), seed
    )
    parts: list[Moves] = []
    for number in range(-(-options.positions // GATHERED)):
        report(number * GATHERED, "positions are played", options.positions)
        most = min(GATHERED, options.positions - number * GATHERED)
        parts.append(_packed(source.positions(np.random.default_rng([seed, number]), most)))
    sizes = [part.ends[-1] for part in parts]
    ends = [part.ends + before for part, before in zip(parts, np.cumsum([0, *sizes[:-1]]), strict=True)]
    positions, moves, _, chosen = (np.concatenate(field) for field in zip(*parts, strict=True))
    return Moves(positions, moves, np.concatenate(ends), chosen)


def _packed(played: list[tuple[View, ActionArray, FloatArray]]) -> Moves:
    positions = np.stack([np.concatenate([v.encode(CARDS)[:SEEN_CARDS], v.encode(SITUATION)]) for v, _, _ in played])
    moves = np.concatenate([v.encode_actions(ANALYSIS, legal)[:, :MOVE] for v, legal, _ in played])
    return Moves(
        np.packbits(positions.astype(np.bool_), axis=1),
        np.packbits(moves.astype(np.bool_), axis=1),
        np.cumsum([len(legal) for _, legal, _ in played]),
        np.array([values.argmax() for _, _, values in played]),
    )


def log_probabilities(logits: Tensor, owner: Tensor, positions: int) -> Tensor:
    """The log of the softmax (M,) over the moves of each position."""
    most = torch.full((positions,), -torch.inf).scatter_reduce(0, owner, logits.detach(), "amax")
    shifted = logits - most[owner]
    return shifted - torch.zeros(positions).index_add(0, owner, shifted.exp()).log()[owner]


class Imitator(Trainer):
    """Learn how strong players move, for the model of players."""

    name = "doudizhu-mcts"
    Options: ClassVar[type[msgspec.Struct]] = Options
    evaluators: ClassVar[tuple[str, ...]] = ("teacher",)
    starts_with_version: ClassVar[bool] = True

    def train(self, run: TrainingRun, report: ReportProgress) -> dict[str, Any]:
        options: Options = self.options
        if run.minutes is not None or run.resume:
            raise UsageError("this training is limited by positions, and not resumed", advice="give --positions N")
        checkpoint.check_empty(run.out)
        torch.set_num_threads(1)
        torch.manual_seed(run.seed)
        started = time.monotonic()
        teacher = run.evaluators["teacher"]
        found = gather(teacher, options, run.seed, report)
        count = len(found.ends)
        learnt = min(max(1, round(count * (1 - options.held_out))), count - 1)
        net = PlayerNet()
        figures = fit(net, found, learnt, options, run.seed, report)
        progress = Progress(
            samples=learnt, seconds=time.monotonic() - started, seed=run.seed, options=msgspec.to_builtins(options)
        )
        run.out.mkdir(parents=True, exist_ok=True)
        file = run.out / players.FILE
        checkpoint.save_tensors(net.parameters_by_name(), file)
        nets = Networks()
        nets.start_with(run.start)
        minutes = round(progress.seconds / 60, 2)
        told = {"positions": learnt, "minutes": minutes, **figures, "teacher": address_of(teacher)}
        publish(run, progress, nets, told, file)
        return {"out": str(run.out), **told}


def fit(
    net: PlayerNet, found: Moves, learnt: int, options: Options, seed: int, report: ReportProgress
) -> dict[str, float]:
    """Learn from the first ``learnt`` positions, and measure on the others.

    ``log_loss``: minus the mean log probability of the played move. ``top1``: how often it is the most probable one.
    """
    optimizer = torch.optim.Adam(net.parameters(), lr=options.learning_rate)
    steps = [part for epoch in range(options.epochs) for part in _epoch(learnt, options.batch, seed, epoch)]
    for step, rows in enumerate(steps):
        set_learning_rate(optimizer, options.learning_rate * (1 - step / len(steps)))
        positions, moves, owner, chosen = found.batch(rows)
        loss = -log_probabilities(net(positions, moves, owner), owner, len(rows))[chosen].mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % 100 == 0:
            report(step, f"log-loss {float(loss.detach()):.3f}", len(steps))
    return _measured(net, found, np.arange(learnt, len(found.ends)))


def _epoch(learnt: int, batch: int, seed: int, epoch: int) -> Iterator[npt.NDArray[np.int64]]:
    order = np.random.default_rng([seed, 1, epoch]).permutation(learnt)
    return (order[begin : begin + batch] for begin in range(0, learnt, batch))


def _measured(net: PlayerNet, found: Moves, rows: npt.NDArray[np.int64]) -> dict[str, float]:
    loss, right = 0.0, 0
    with torch.no_grad():
        for part in np.array_split(rows, -(-len(rows) // GATHERED)):
            positions, moves, owner, chosen = found.batch(part)
            logs = log_probabilities(net(positions, moves, owner), owner, len(part))
            best = torch.full((len(part),), -torch.inf).scatter_reduce(0, owner, logs, "amax")
            loss -= float(logs[chosen].sum())
            right += int((logs[chosen] == best).sum())
    return {"log_loss": round(loss / len(rows), 4), "top1": round(right / len(rows), 4)}
