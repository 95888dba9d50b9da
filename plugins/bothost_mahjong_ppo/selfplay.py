"""Hands of the learner against the opponents of a curriculum.

The learner has seat i mod 4 of hand i, and further seats where it plays itself. The decisions of one seat in a hand are
one trajectory. Its only reward is the score at the end. The hands depend only on the seed, the learner and the
opponents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from bothost.inference import legal_masks
from bothost.rules import ActionArray, Game, State, View, mahjong
from bothost.training.ppo import Batch, Float, PpoOptions, generalized_advantages
from bothost.training.rollout import Choice, choose
from bothost_mahjong_ppo.encode import ACTIONS, PACKED, PACKED_STATE, REWARD_SCALE, choices, encode_packed_into
from bothost_mahjong_ppo.model import OBSERVATION
from bothost_mahjong_ppo.oracle import encode_hidden

Seats = tuple[str, str, str]
CURRICULUM: tuple[Seats, ...] = (
    ("random", "random", "random"),
    ("random", "random", "simple"),
    ("rule", "rule", "rule"),
    ("rule", "past", "past"),
    ("rule", "self", "self"),
)
"""Opponents by stage. The source has the first two. The strong rule player replaces average people. ``past`` is a past
version of the learner. ``self`` is the learner, which learns from these seats too."""


def stage_after(stage: int, scores: Sequence[float], *, window: int, least: float) -> int:
    """The next stage, given the mean ``scores`` a hand of all updates at this stage.

    It advances when the mean of the last ``window`` scores is at least ``least``.
    """
    if stage + 1 == len(CURRICULUM) or len(scores) < window:
        return stage
    return stage + (sum(scores[-window:]) / window >= least)


class Opponents(NamedTuple):
    """The players of the other three seats, in turn order after the learner, and the model of ``past`` players."""

    seats: Seats
    past: torch.nn.Module | None = None


class Hands(NamedTuple):
    """Played hands."""

    batch: Batch
    """The learner's decisions in the order of play."""
    scores: Float
    """Of each of the learner's seats in each hand, in points."""


Scripted = Callable[[State, int, np.random.Generator], int]


def _random(state: State, seat: int, rng: np.random.Generator) -> int:
    return int(rng.choice(state.legal(seat)))


def _rule(state: State, seat: int, rng: np.random.Generator) -> int:
    return mahjong.rule_choice(state.view(seat))[0]


def _simple(state: State, seat: int, rng: np.random.Generator) -> int:
    return mahjong.rule_choice(state.view(seat), simple=True)[0]


SCRIPTED: dict[str, Scripted] = {"random": _random, "rule": _rule, "simple": _simple}


class SelfPlayHand:
    """A running hand."""

    def __init__(self, state: State, learner: int, opponents: Opponents) -> None:
        self.state = state
        self.player = {(learner + 1 + i) % 4: name for i, name in enumerate(opponents.seats)}
        self.decisions: dict[int, list[int]] = {
            seat: [] for seat in range(4) if self.player.get(seat, "self") == "self"
        }
        """Indices of the learner's decisions by seat."""

    def advance(self, rng: np.random.Generator) -> int | None:
        """Play until a network must decide. Returns its seat, or None at the end of the hand."""
        while not self.state.terminal:
            seat = self.state.to_act[0]
            scripted = SCRIPTED.get(self.player.get(seat, ""))
            if scripted is None:
                return seat
            self.state.apply(seat, scripted(self.state, seat, rng))
        return None


def observe(
    positions: Sequence[tuple[State, int]], share: float, rng: np.random.Generator, out: Float | None = None
) -> tuple[Float, np.ndarray]:
    """Observations (n, 3760) of deciding seats with a share of the hidden features, and masks (n, 193) of `choices`.

    ``out``: where to write the observations.
    """
    views = [state.view(seat) for state, seat in positions]
    legal = [view.legal() for view in views]
    observations = observed(views, legal, out)
    for (state, seat), out in zip(positions, observations, strict=True):
        out[PACKED_STATE + PACKED :] = encode_hidden(state, seat, share, rng)
    return observations, legal_masks(choices(views, legal), ACTIONS)


def observed(views: Sequence[View], legal: Sequence[ActionArray], out: Float | None = None) -> Float:
    """Observations (n, 3760) without hidden features, in ``out`` if it is given."""
    if out is None:
        out = np.empty((len(views), OBSERVATION), np.float32)
    encode_packed_into(views, legal, out[:, :PACKED_STATE], out[:, PACKED_STATE : PACKED_STATE + PACKED])
    out[:, PACKED_STATE + PACKED :] = 0.0
    return out


class Buffer:
    """Memory for observations, kept from one iteration to the next: memory that the system has to find costs more time
    than what is written there."""

    def __init__(self) -> None:
        self.rows = np.empty((0, OBSERVATION), np.float32)

    def reserve(self, used: int, n: int) -> Float:
        """Where ``n`` rows belong after the ``used`` ones."""
        if used + n > len(self.rows):
            rows = np.empty((2 * (used + n), OBSERVATION), np.float32)
            rows[:used] = self.rows[:used]
            self.rows = rows
        return self.rows[used : used + n]


class _Memory:
    """The learner's decisions in the order of play."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.masks: list[np.ndarray] = []
        self.choices: list[Choice] = []
        self.size = 0

    def add(self, legal: np.ndarray, choice: Choice) -> range:
        """Append decisions whose observations are written. Returns their indices."""
        self.masks.append(legal)
        self.choices.append(choice)
        self.size += len(legal)
        return range(self.size - len(legal), self.size)

    def batch(self, hands: Sequence[SelfPlayHand], options: PpoOptions) -> Batch:
        """The samples in the order of play, with advantages and targets."""
        values = np.concatenate([choice.values for choice in self.choices])
        advantages, returns = np.empty_like(values), np.empty_like(values)
        for hand in hands:
            for seat, rows in hand.decisions.items():
                if not rows:
                    continue  # the seat never decided
                rewards = np.zeros((len(rows), 1), np.float32)
                rewards[-1] = hand.state.returns[seat] * REWARD_SCALE
                dones = np.zeros((len(rows), 1), np.bool_)
                dones[-1] = True
                made = generalized_advantages(
                    rewards,
                    values[rows, None],
                    dones,
                    np.zeros(1, np.float32),
                    gamma=options.gamma,
                    gae_lambda=options.gae_lambda,
                )
                advantages[rows], returns[rows] = made[0][:, 0], made[1][:, 0]
        fields = (
            self.buffer.rows[: self.size],
            np.concatenate(self.masks),
            np.concatenate([choice.actions for choice in self.choices]),
            np.concatenate([choice.log_probs for choice in self.choices]),
            advantages,
            returns,
        )
        return Batch(*(torch.from_numpy(field) for field in fields))


Group = Sequence[tuple[SelfPlayHand, int]]
"""Hands with the seat that is asked."""
Decide = Callable[[Group], Sequence[int]]
"""The learner's actions in a group."""


def new_hands(game: Game, opponents: Opponents, hands: int, seed: int) -> list[SelfPlayHand]:
    """Hands at their beginning."""
    return [SelfPlayHand(game.new_state((seed + i) % 2**63), i % 4, opponents) for i in range(hands)]


def play_out(table: Sequence[SelfPlayHand], opponents: Opponents, decide: Decide, rng: np.random.Generator) -> Float:
    """Play all hands at once to their ends. Returns the scores of the learner's seats, hand by hand."""
    running = list(table)
    while running:
        asked = [(hand, seat) for hand in running if (seat := hand.advance(rng)) is not None]
        running = [hand for hand, _ in asked]
        own = [(hand, seat) for hand, seat in asked if seat in hand.decisions]
        past = [(hand, seat) for hand, seat in asked if seat not in hand.decisions]
        if own:
            _apply(own, decide(own))
        if past:
            assert opponents.past is not None
            observations, legal = observe([(hand.state, seat) for hand, seat in past], 0.0, rng)
            _apply(past, choose(opponents.past, observations, legal, rng).actions.tolist())
    return np.array([hand.state.returns[seat] for hand in table for seat in hand.decisions], np.float32)


def _apply(group: Group, actions: Sequence[int]) -> None:
    for (hand, seat), action in zip(group, actions, strict=True):
        hand.state.apply(seat, action)


def play(
    game: Game,
    learner: torch.nn.Module,
    opponents: Opponents,
    hands: int,
    seed: int,
    options: PpoOptions,
    share: float = 0.0,
    buffer: Buffer | None = None,
) -> Hands:
    """Play ``hands`` hands at once. The learner draws its actions and gets ``share`` of the hidden features.

    ``buffer``: memory for the observations of the result, to be used again after that. None: its own.
    """
    rng = np.random.default_rng([seed, 1])
    table = new_hands(game, opponents, hands, seed)
    memory = _Memory(buffer or Buffer())

    def decide(group: Group) -> Sequence[int]:
        positions = [(hand.state, seat) for hand, seat in group]
        observations, legal = observe(positions, share, rng, memory.buffer.reserve(memory.size, len(group)))
        choice = choose(learner, observations, legal, rng)
        for (hand, seat), at in zip(group, memory.add(legal, choice), strict=True):
            hand.decisions[seat].append(at)
        actions: list[int] = choice.actions.tolist()
        return actions

    scores = play_out(table, opponents, decide, rng)
    return Hands(memory.batch(table, options), scores)
