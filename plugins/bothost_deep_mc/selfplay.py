"""Self-play of many hands at once in the batch environment, with one inference per role and step.

A round plays the first hand of every environment to its end. It depends only on the networks and a seed, so a resumed
training continues exactly. ``branches`` plays its deals again with one decision changed, which compares two moves on
the same deal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from bothost import ModelError
from bothost.rules import ActionArray, FloatArray, VecEnv
from bothost.training.action_values import NativeActionValues
from bothost.training.limits import NotNegative, Positive, Share
from bothost_deep_mc.encode import CHOICE, ROLES, Candidates, IntArray, Seen, encode_rows, roles
from bothost_deep_mc.habits import habits

Bits = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Nets = Mapping[str, NativeActionValues]
"""By role."""

STAKES = 6.0
"""Points, in bases, of a caller's return of ±1: three points for the landlord, doubled."""


class PlayOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of exploration and of the kept samples."""

    epsilon: Share = 0.01
    """Probability that a decision is a random legal move."""
    others: Annotated[int, Meta(ge=0)] = 3
    """Random moves of each position that are kept beside the one played, for the regularizer."""
    temperature: Positive = 0.1
    """Temperature of the draw among the other moves of a branch: weights are exp(value / temperature)."""
    habits: NotNegative = 0.0
    """Largest strength of the habits of the expert's side in hands without bidding (``bothost_deep_mc.habits``). 0: it
    plays the rule player's moves. With 6, ``v7-level-3`` won 84 % of the hands."""
    trace: Share = 1.0
    """λ of the returns. 1: Monte-Carlo returns. Less: bootstrap from the values of the same seat's later moves, which
    is less noisy (Sarsa(λ); Sutton and Barto, Reinforcement Learning, chapter 12)."""


class Decisions(NamedTuple):
    """Decisions of one network with their returns."""

    positions: Bits
    """(n, inputs)."""
    moves: Bits
    """(n, k, cells): the move played, the expert's, and others. Without an expert: the move played alone."""
    returns: FloatArray
    """(n,): utilities of the side that moved."""

    def take(self, rows: IntArray) -> Decisions:
        """Those of ``rows``, in this order."""
        return Decisions(self.positions[rows], self.moves[rows], self.returns[rows])


class Pairs(NamedTuple):
    """Two moves of one position, each played out in the same deal."""

    positions: Bits
    """(n, inputs)."""
    moves: Bits
    """(n, 2, cells)."""
    returns: FloatArray
    """(n, 2)."""


class Round(NamedTuple):
    """The samples of a round, by role."""

    decisions: dict[str, Decisions]
    pairs: dict[str, Pairs]
    hands: int
    """Hands played, including branches."""
    asked: int
    """Decisions among more than one legal move, of all seats."""
    agreement: float
    """Share of the network's choices that were the expert's."""


class Chosen(NamedTuple):
    """The decisions of one role at one step."""

    rows: IntArray
    candidates: Candidates
    played: IntArray
    """(n,): indices into the moves."""
    values: FloatArray
    own: Bools
    """(n,): whether the network decided, and not the expert."""


class Kept(NamedTuple):
    """Decisions whose returns are not known yet."""

    rows: IntArray
    seats: npt.NDArray[np.int8]
    positions: Bits
    moves: Bits
    values: FloatArray
    """(n,): of the moves played."""


def first_of(flags: Bools, offsets: IntArray) -> IntArray:
    """The index of the first flag in each segment ``offsets[i]`` to ``offsets[i + 1]``. Each must have one."""
    found = np.flatnonzero(flags)
    return found[np.searchsorted(found, offsets[:-1])]


def best_of(values: FloatArray, offsets: IntArray) -> IntArray:
    """The index of the largest value in each segment, the first of equals. No segment may be empty.

    Raises ModelError for values that are not numbers, as those of networks that diverged.
    """
    top = np.maximum.reduceat(values, offsets[:-1])
    if np.isnan(top).any():
        raise ModelError("the networks' values are no longer numbers", advice="lower the learning rate, and begin anew")
    return first_of(values == np.repeat(top, np.diff(offsets)), offsets)


class SelfPlayTable:
    """Running hands: how they are decided, and which samples are kept."""

    def __init__(
        self,
        env: VecEnv,
        nets: Nets,
        options: PlayOptions,
        rng: np.random.Generator,
        *,
        experts: Bools,
        imitate: bool = False,
        keep_expert: bool = False,
        seen: Seen,
    ) -> None:
        """``experts`` (n, 2): in which hands the landlord's side, and the peasants', play the expert's moves.

        ``imitate``: keep the expert's decisions too. ``keep_expert``: keep what the regularizer needs. ``seen``: how
        much the networks see.
        """
        self.env, self.nets, self.options, self.rng = env, nets, options, rng
        self.experts, self.imitate, self.keep_expert, self.seen = experts, imitate, keep_expert, seen
        self.habits = habits(rng, env.n, options.habits) if options.habits and not imitate else None
        self.going = np.ones(env.n, np.bool_)
        self.returns = np.zeros((env.n, 3), np.float32)
        self.asked = 0
        self.agreed: list[float] = []

    def step(self, actions: ActionArray) -> None:
        """Apply actions and record the hands that end."""
        self.env.step(actions)
        ended = self.env.done & self.going
        self.returns[ended] = self.env.returns[ended]
        self.going &= ~ended

    def choose(self, free: Bools, actions: ActionArray) -> list[tuple[str, Chosen]]:
        """Set the actions of the environments ``free``. Returns the decisions among several moves."""
        offsets, ids = self.env.legal_offsets, self.env.legal_ids
        counts = np.diff(offsets)
        only = np.flatnonzero(free & (counts == 1))
        actions[only] = ids[offsets[only]]
        rows = np.flatnonzero(free & (counts > 1))
        if not len(rows):
            return []
        self.asked += len(rows)
        analysis = self.keep_expert or bool(self.experts.any()) or self.seen.move > CHOICE
        every = encode_rows(self.env, rows, analysis=analysis, inputs=self.seen.position)
        found = []
        role_of = roles(every.positions)
        owner = np.repeat(role_of, np.diff(every.offsets))
        for number, role in enumerate(ROLES):
            chosen = role_of == number
            if not chosen.any():
                continue
            counts_here = np.diff(every.offsets)[chosen]
            part = Candidates(
                every.positions[chosen],
                every.moves[owner == number],
                np.concatenate([[0], np.cumsum(counts_here)]),
            )
            decided = self._decide(role, rows[chosen], part)
            local = decided.played - part.offsets[:-1]
            actions[decided.rows] = ids[offsets[decided.rows] + local]
            found.append((role, decided))
        return found

    def _decide(self, role: str, rows: IntArray, part: Candidates) -> Chosen:
        own = ~self.experts[rows, 0 if role == "landlord" else 1]
        if role == "bidder":
            own = ~self.experts[rows].all(axis=1)
        values = self._values(role, part, own)
        played = best_of(values, part.offsets)
        if part.moves.shape[1] > CHOICE:
            expert = first_of(part.moves[:, CHOICE] == 1, part.offsets)
            if own.any():
                self.agreed.append(float((played == expert)[own].mean()))
            if self.habits is not None:
                weights = np.repeat(self.habits[rows], np.diff(part.offsets), axis=0)
                expert = best_of(np.einsum("ij,ij->i", part.moves, weights), part.offsets)
            played = np.where(own, played, expert)
        lost = self.rng.random(len(rows)) < self.options.epsilon
        anything = part.offsets[:-1] + (self.rng.random(len(rows)) * np.diff(part.offsets)).astype(np.int64)
        return Chosen(rows, part, np.where(lost, anything, played), values, own)

    def _values(self, role: str, part: Candidates, own: Bools) -> FloatArray:
        """The network's values of the moves in positions that it decides; 0 elsewhere."""
        counts = np.diff(part.offsets)
        asked = np.repeat(own, counts)
        values = np.zeros(len(asked), np.float32)
        if own.any():
            moves = np.ascontiguousarray(part.moves[asked, : self.seen.move])
            offsets = np.concatenate([[0], np.cumsum(counts[own])])
            values[asked] = self.nets[role].evaluate(part.positions[own], moves, offsets)
        return values

    def keep(self, decided: Chosen) -> Kept | None:
        """The samples of one role's decisions."""
        learnt = np.flatnonzero(decided.own | self.imitate)
        if not len(learnt):
            return None
        part, rows = decided.candidates, decided.rows[learnt]
        kept = [decided.played[learnt]]
        if self.keep_expert:
            begin, counts = part.offsets[learnt], np.diff(part.offsets)[learnt]
            kept.append(first_of(part.moves[:, CHOICE] == 1, part.offsets)[learnt])
            for _ in range(self.options.others):
                kept.append(begin + (self.rng.random(len(learnt)) * counts).astype(np.int64))
        moves = part.moves[np.stack(kept, axis=1)][:, :, : self.seen.move]
        values = decided.values[decided.played[learnt]]
        return Kept(rows, self.env.seat[rows].copy(), _bits(part.positions[learnt]), _bits(moves), values)


def _bits(x: FloatArray) -> Bits:
    return x.astype(np.uint8)


def utility(returns: FloatArray, role: str) -> FloatArray:
    """Utilities (n,) within [-1, 1] of returns in bases: ±1 for won or lost, and scaled points for a caller."""
    if role == "bidder":
        points: FloatArray = np.clip(returns / STAKES, -1.0, 1.0).astype(np.float32)
        return points
    won: FloatArray = np.sign(returns).astype(np.float32)
    return won
