"""Rounds of self-play, and branches of their hands: one decision is changed, and the rest is played again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from bothost.rules import ActionArray, FloatArray, Game, vec_env
from bothost_deep_mc.encode import BEHIND, CHOICE, ROLES, IntArray, Seen
from bothost_deep_mc.selfplay import (
    Bools,
    Chosen,
    Decisions,
    Kept,
    Nets,
    Pairs,
    PlayOptions,
    Round,
    SelfPlayTable,
    best_of,
    utility,
)

Samples = TypeVar("Samples", Decisions, Pairs)


def play_round(
    game: Game,
    nets: Nets,
    options: PlayOptions,
    *,
    hands: int,
    seed: int,
    seen: Seen,
    expert_share: float = 0.0,
    imitate: bool = False,
    keep_expert: bool = False,
    branches: int = 0,
) -> Round:
    """Play ``hands`` hands, and play each again ``branches`` times with one decision changed.

    A branch teaches only how much better one move was than the other. In ``expert_share`` of the hands, one side plays
    the expert's moves. With ``imitate`` both sides do in all hands, and the networks learn from these decisions.
    """
    rng = np.random.default_rng([seed, 0])
    experts = np.zeros((hands, 2), np.bool_)
    experts[np.arange(hands), rng.integers(2, size=hands)] = rng.random(hands) < expert_share
    experts |= imitate

    def begin(rng: np.random.Generator) -> SelfPlayTable:
        env = vec_env(game, hands, seed)
        kept = {"imitate": imitate, "keep_expert": keep_expert}
        return SelfPlayTable(env, nets, options, rng, experts=experts, seen=seen, **kept)

    table = begin(rng)
    turns = [BranchPoints(hands, seen) for _ in range(branches)]
    script: list[ActionArray] = []
    kept: dict[str, list[Kept]] = {role: [] for role in ROLES}
    while table.going.any():
        actions = np.full(hands, -1, np.int32)
        decided = table.choose(table.going, actions)
        for role, chosen in decided:
            if (found := table.keep(chosen)) is not None:
                kept[role].append(found)
        for turn in turns:
            for role, chosen in decided:
                turn.consider(table, role, chosen, len(script))
        table.step(actions)
        script.append(actions)
    pairs: list[dict[str, Pairs]] = []
    asked = table.asked
    for number, turn in enumerate(turns):
        rng = np.random.default_rng([seed, 1, number])
        again = begin(rng)
        play_branch(again, turn, script)
        pairs.append(turn.pairs(table.returns, again.returns))
        asked += again.asked
    return Round(
        _settled(kept, table.returns, 1.0 if imitate else options.trace),
        merged_roles(pairs),
        hands * (1 + branches),
        asked,
        float(np.mean(table.agreed)) if table.agreed else 0.0,
    )


class BranchPoints:
    """One decision of each hand to change. All decisions of the hand are equally likely."""

    def __init__(self, hands: int, seen: Seen) -> None:
        self._seen = np.zeros(hands, np.int64)
        self.step = np.full(hands, -1, np.int64)
        """The step of the decision. -1: the hand has none."""
        self.action = np.full(hands, -1, np.int32)
        """The action to play instead."""
        self._role = np.full(hands, -1, np.int8)
        self._seat = np.zeros(hands, np.int8)
        self._positions = np.zeros((hands, seen.position), np.uint8)
        self._moves = np.zeros((hands, 2, seen.move), np.uint8)

    def consider(self, table: SelfPlayTable, role: str, chosen: Chosen, step: int) -> None:
        """Replace earlier choices by some of these decisions: reservoir sampling of one decision per hand."""
        learnt = np.flatnonzero(chosen.own | table.imitate)
        self._seen[chosen.rows[learnt]] += 1
        taken = learnt[table.rng.random(len(learnt)) * self._seen[chosen.rows[learnt]] < 1.0]
        if role == "bidder" or not len(taken):
            return
        part, rows = chosen.candidates, chosen.rows[taken]
        other = alternatives(chosen, table.options.temperature, table.rng)[taken]
        self.step[rows], self._role[rows] = step, ROLES.index(role)
        local = other - part.offsets[taken]
        self.action[rows] = table.env.legal_ids[table.env.legal_offsets[rows] + local]
        self._seat[rows] = table.env.seat[rows]
        self._positions[rows] = part.positions[taken]
        both = np.stack([chosen.played[taken], other], axis=1)
        self._moves[rows] = part.moves[both][:, :, : self._moves.shape[2]]

    def pairs(self, returns: FloatArray, again: FloatArray) -> dict[str, Pairs]:
        """The pairs by role, from the returns (hands, 3) of the first hands and of the branches."""
        out = {}
        for number, role in enumerate(ROLES):
            rows = np.flatnonzero((self._role == number) & (self.step >= 0))
            if len(rows):
                both = np.stack([r[rows, self._seat[rows]] for r in (returns, again)], axis=1)
                out[role] = Pairs(self._positions[rows], self._moves[rows], utility(both, role))
        return out


def alternatives(chosen: Chosen, temperature: float, rng: np.random.Generator) -> IntArray:
    """Another move (n,) for each decision, drawn by a softmax of scores (Gumbel-max).

    Scores are the network's values where it decided, otherwise the rule player's preferences.
    """
    part = chosen.candidates
    scores = chosen.values / temperature
    if part.moves.shape[1] > CHOICE:
        by_rules = -part.moves[:, BEHIND].sum(axis=1)
        scores = np.where(np.repeat(chosen.own, np.diff(part.offsets)), scores, by_rules)
    scores = scores + rng.gumbel(size=len(scores))
    scores[chosen.played] = -np.inf
    return best_of(scores.astype(np.float32), part.offsets)


def play_branch(table: SelfPlayTable, turn: BranchPoints, script: list[ActionArray]) -> None:
    """Play the hands of ``script`` again, each with its changed decision."""
    table.going &= turn.step >= 0
    step = 0
    while table.going.any():
        actions = np.full(table.env.n, -1, np.int32)
        if step < len(script):
            as_before: Bools = table.going & (step < turn.step)
            actions[as_before] = script[step][as_before]
        changed = table.going & (step == turn.step)
        actions[changed] = turn.action[changed]
        table.choose(table.going & (step > turn.step), actions)
        table.step(actions)
        step += 1


def _settled(kept: dict[str, list[Kept]], returns: FloatArray, trace: float) -> dict[str, Decisions]:
    out = {}
    for role, parts in kept.items():
        if not parts:
            continue
        out[role] = Decisions(
            np.concatenate([part.positions for part in parts]),
            np.concatenate([part.moves for part in parts]),
            np.concatenate(traced(parts, utility(returns, role), trace)),
        )
    return out


def traced(parts: Sequence[Kept], ends: FloatArray, trace: float) -> list[FloatArray]:
    """The λ-returns of decisions in the order of play, with λ = ``trace``.

    ``ends`` (hands, seats): utilities at the end of the hands.
    """
    later, found = ends.copy(), []
    for part in reversed(parts):
        who = part.rows, part.seats
        found.append(later[who])
        later[who] = (1.0 - trace) * part.values + trace * later[who]
    return found[::-1]


def merged_roles(parts: Iterable[Mapping[str, Samples]]) -> dict[str, Samples]:
    """Merge all parts by role."""
    parts = list(parts)
    return {
        role: type(found[0])(*(np.concatenate(fields) for fields in zip(*found, strict=True)))
        for role in ROLES
        if (found := [part[role] for part in parts if role in part])
    }


def win_rates(game: Game, nets: Nets, *, deals: int, seed: int, seen: Seen) -> tuple[float, float]:
    """Win rates of the networks against the rule player, as landlord and as peasants, on the same deals."""
    rates = []
    for side in (0, 1):
        experts = np.zeros((deals, 2), np.bool_)
        experts[:, 1 - side] = True
        table = SelfPlayTable(
            vec_env(game, deals, seed),
            nets,
            PlayOptions(epsilon=0.0),
            np.random.default_rng(0),
            experts=experts,
            seen=seen,
        )
        landlord = np.full(deals, -1)
        while table.going.any():
            actions = np.full(deals, -1, np.int32)
            for role, chosen in table.choose(table.going, actions):
                if role == "landlord":
                    landlord[chosen.rows] = table.env.seat[chosen.rows]
            table.step(actions)
        won = np.sign(table.returns[np.arange(deals), landlord])
        rates.append(float(((won if side == 0 else -won) + 1).mean() / 2))
    return rates[0], rates[1]
