"""Hands of the learner against three others, and the curriculum of these.

The learner sits in seat i mod 4 of hand i. All its decisions of a hand are one trajectory, whose only reward is the
score at the end. What is played is a function of the seed, the learner and the opponents alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from bothost.rules import Game, State, mahjong
from bothost.training.ppo import Batch, Float, PpoOptions, generalized_advantages
from bothost.training.rollout import choose
from bothost_mahjong_ppo.decide import REWARD_SCALE
from bothost_mahjong_ppo.encode import ACTIONS, PROSPECT, STATE, encode_prospects, encode_state
from bothost_mahjong_ppo.model import OBSERVATION, PROSPECTS
from bothost_mahjong_ppo.oracle import encode_hidden

Seats = tuple[str, str, str]
CURRICULUM: tuple[Seats, ...] = (
    ("random", "random", "random"),
    ("random", "random", "simple"),
    ("rule", "rule", "rule"),
    ("rule", "past", "past"),
)
"""Opponents by stage: the first two are the source's; the strong rule player stands for average people; ``past`` is a
past version of the learner."""


def stage_after(stage: int, scores: Sequence[float], *, window: int, least: float) -> int:
    """The stage of the curriculum after updates whose mean scores at this stage were ``scores``, in points a hand:
    one further once the mean of the last ``window`` of them is at least ``least``."""
    if stage + 1 == len(CURRICULUM) or len(scores) < window:
        return stage
    return stage + (sum(scores[-window:]) / window >= least)


class Opponents(NamedTuple):
    """Who has the other three seats, from the learner's next one on, and past versions for those who are ``past``."""

    seats: Seats
    past: torch.nn.Module | None = None


class Hands(NamedTuple):
    """Played hands."""

    batch: Batch
    """The learner's decisions, hand by hand."""
    scores: Float
    """(hands,): the learner's, in points."""
    wins: int
    """Hands that the learner won."""


Scripted = Callable[[State, int, np.random.Generator], int]


def _random(state: State, seat: int, rng: np.random.Generator) -> int:
    return int(rng.choice(state.legal(seat)))


def _rule(state: State, seat: int, rng: np.random.Generator) -> int:
    return mahjong.rule_choice(state.view(seat))[0]


def _simple(state: State, seat: int, rng: np.random.Generator) -> int:
    return mahjong.rule_choice(state.view(seat), simple=True)[0]


SCRIPTED: dict[str, Scripted] = {"random": _random, "rule": _rule, "simple": _simple}


class _Hand:
    """One hand under way."""

    def __init__(self, state: State, learner: int, opponents: Opponents) -> None:
        self.state, self.learner = state, learner
        self.player = {(learner + 1 + i) % 4: name for i, name in enumerate(opponents.seats)}
        self.decisions: list[int] = []

    def advance(self, rng: np.random.Generator) -> int | None:
        """Play until a network is asked: its seat; None: the hand is over."""
        while not self.state.terminal:
            seat = self.state.to_act[0]
            scripted = SCRIPTED.get(self.player.get(seat, ""))
            if scripted is None:
                return seat
            self.state.apply(seat, scripted(self.state, seat, rng))
        return None


def observe(state: State, seat: int, out: Float, share: float, rng: np.random.Generator) -> np.ndarray:
    """The observation (6836,) of a seat that is asked, with a share of the hidden features; returns what is legal."""
    view = state.view(seat)
    legal = view.legal()
    encode_state(view, out[:STATE])
    encode_prospects(view, legal, out[STATE : STATE + PROSPECTS].reshape(ACTIONS, PROSPECT))
    out[STATE + PROSPECTS :] = encode_hidden(state, seat, share, rng)
    return legal


class _Memory:
    """The learner's decisions in the order in which they were made."""

    def __init__(self) -> None:
        self.observations: list[Float] = []
        self.masks: list[np.ndarray] = []
        self.numbers: list[tuple[int, float, float]] = []

    def batch(self, hands: Sequence[_Hand], options: PpoOptions) -> Batch:
        """The samples, hand by hand, with advantages and targets."""
        order = np.concatenate([np.array(hand.decisions, np.int64) for hand in hands])
        values = np.array([value for _, _, value in self.numbers], np.float32)
        advantages, returns = np.empty_like(values), np.empty_like(values)
        for hand in hands:
            rows = hand.decisions
            if not rows:  # the hand was over before the learner was asked
                continue
            rewards = np.zeros((len(rows), 1), np.float32)
            rewards[-1] = hand.state.returns[hand.learner] * REWARD_SCALE
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
        actions = np.array([action for action, _, _ in self.numbers], np.int64)
        log_probs = np.array([log_prob for _, log_prob, _ in self.numbers], np.float32)
        fields = (np.stack(self.observations), np.stack(self.masks), actions, log_probs, advantages, returns)
        return Batch(*(torch.from_numpy(field[order]) for field in fields))


def play(
    game: Game,
    learner: torch.nn.Module,
    opponents: Opponents,
    hands: int,
    seed: int,
    options: PpoOptions,
    share: float = 0.0,
) -> Hands:
    """Play ``hands`` hands at once; the learner draws its actions, and is given ``share`` of the hidden features."""
    rng = np.random.default_rng([seed, 1])
    table = [_Hand(game.new_state((seed + i) % 2**63), i % 4, opponents) for i in range(hands)]
    memory = _Memory()
    running = list(table)
    while running:
        asked = [(hand, seat) for hand in running if (seat := hand.advance(rng)) is not None]
        running = [hand for hand, _ in asked]
        for own in (True, False):
            group = [(hand, seat) for hand, seat in asked if (seat == hand.learner) == own]
            if group:
                model = learner if own else opponents.past
                assert model is not None
                _decide(group, model, memory if own else None, share if own else 0.0, rng)
    scores = np.array([hand.state.returns[hand.learner] for hand in table], np.float32)
    return Hands(memory.batch(table, options), scores, int((scores > 0).sum()))


def _decide(
    group: Sequence[tuple[_Hand, int]],
    model: torch.nn.Module,
    memory: _Memory | None,
    share: float,
    rng: np.random.Generator,
) -> None:
    observations = np.empty((len(group), OBSERVATION), np.float32)
    masks = np.zeros((len(group), ACTIONS), np.bool_)
    for (hand, seat), out, mask in zip(group, observations, masks, strict=True):
        mask[observe(hand.state, seat, out, share, rng)] = True
    choice = choose(model, observations, masks, rng)
    for i, (hand, seat) in enumerate(group):
        if memory is not None:
            hand.decisions.append(len(memory.numbers))
            memory.observations.append(observations[i])
            memory.masks.append(masks[i])
            memory.numbers.append((int(choice.actions[i]), float(choice.log_probs[i]), float(choice.values[i])))
        hand.state.apply(seat, int(choice.actions[i]))
