"""Experts other than the rule player: a search, and the players of logged games.

Both return decisions as self-play does, with the expert's move in second place for the regularizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bothost import Trajectory
from bothost.rules import Game, View, search
from bothost_deep_mc.branches import merged_roles, play_round
from bothost_deep_mc.encode import ROLES, Candidates, Seen, encode, roles
from bothost_deep_mc.selfplay import Bits, Decisions, Nets, PlayOptions, utility

SEARCH: dict[str, Any] = {"playout": "rule", "others": "policy", "widening": 1.0}
"""Options of the search: the rule player makes the playouts and decides for the other seats."""

AT_ONCE = 1000
"""Hands played at once."""

MOST = 250_000
"""Logged decisions that are kept, about 3 kB each. A retraining of an hour draws a few million with replacement."""


class ExpertMove(NamedTuple):
    """One position with the move that was played and the expert's move."""

    role: str
    seat: int
    position: Bits
    moves: Bits
    """(2 + others, cells): the move played, the expert's, and others."""


def expert_move(
    candidates: Candidates, seat: int, played: int, expert: int, others: int, seen: Seen, rng: np.random.Generator
) -> ExpertMove:
    """The sample of one position. ``played`` and ``expert`` are indices into its moves."""
    rows = [played, expert, *rng.integers(len(candidates.moves), size=others)]
    moves = candidates.moves[rows][:, : seen.move].astype(np.uint8)
    role = ROLES[int(roles(candidates.positions)[0])]
    return ExpertMove(role, seat, candidates.positions[0].astype(np.uint8), moves)


def searched(
    game: Game, nets: Nets, hands: int, iterations: int, *, others: int, seen: Seen, seed: int
) -> dict[str, Decisions]:
    """A search's choice for one random decision of each of ``hands`` hands that the networks play."""
    rng = np.random.default_rng([seed, 2])
    found: list[tuple[ExpertMove, float]] = []
    for hand in range(hands):
        state = game.new_state(int(rng.integers(2**31)))
        kept: list[tuple[int, View, Candidates, int]] = []
        while not state.terminal:
            seat = state.to_act[0]
            legal = state.legal(seat)
            best = 0
            if len(legal) > 1:
                view = state.view(seat)
                asked = encode([view], [legal], seen.position)
                best = _best(nets, asked, seen)
                if view.phase == "play":
                    kept.append((seat, view, asked, best))
            state.apply(seat, int(legal[best]))
        if not kept:
            continue
        seat, view, asked, best = kept[int(rng.integers(len(kept)))]
        expert = int(np.searchsorted(view.legal(), by_search(view, iterations, seed + hand)))
        found.append((expert_move(asked, seat, best, expert, others, seen, rng), state.returns[seat]))
    return _gathered(found)


def by_search(view: View, iterations: int, seed: int) -> int:
    """The most visited action of a search."""
    tree = search(view, seed, **SEARCH)
    tree.run(iterations=iterations)
    return max(tree.root_actions, key=lambda found: (found[1], found[2]))[0]


def logged(
    trajectories: Iterable[Trajectory], *, others: int, seen: Seen, seed: int, most: int = MOST
) -> dict[str, Decisions]:
    """The logged decisions among several moves, with the logged move as the expert's. Fallbacks are left out.

    Of more than ``most`` decisions so many are drawn, all equally likely: memory does not grow with the log.
    """
    rng = np.random.default_rng([seed, 3])
    found: list[tuple[ExpertMove, float]] = []
    count = 0
    for hand in trajectories:
        if hand.game.name != "doudizhu":
            continue
        base = float(hand.game.rules.get("base", 1))
        for step in hand.steps:
            if step.own and len(step.legal) > 1:
                count += 1
                place = int(rng.integers(count)) if count > most else len(found)  # reservoir sampling
                if place >= most:
                    continue
                played = int(np.searchsorted(step.legal, step.action))
                asked = encode([step.view], [step.legal], seen.position)
                move = expert_move(asked, hand.seat, played, played, others, seen, rng)
                found[place : place + 1] = [(move, hand.scores[hand.seat] / base)]
    return _gathered(found)


def played_by(
    game: Game, nets: Nets, hands: int, *, others: int, wide: Seen, seen: Seen, seed: int
) -> dict[str, Decisions]:
    """What ``logged`` returns for a log of ``hands`` hands in which networks play themselves without exploration.

    ``wide``: the cells that these networks see. ``seen``: the cells that the learning networks see, at most as many.
    """
    rng = np.random.default_rng([seed, 4])
    options, parts = PlayOptions(epsilon=0.0, others=others), []
    for begin in range(0, hands, AT_ONCE):
        count, number = min(AT_ONCE, hands - begin), int(rng.integers(2**63))
        found = play_round(game, nets, options, hands=count, seed=number, seen=wide, keep_expert=True).decisions
        parts.append({role: _own(part, seen) for role, part in found.items()})
    return merged_roles(parts)


def _own(part: Decisions, seen: Seen) -> Decisions:
    """Decisions with the played move as the expert's."""
    moves = part.moves[:, :, : seen.move].copy()
    moves[:, 1] = moves[:, 0]
    return Decisions(part.positions[:, : seen.position].copy(), moves, part.returns)


def _best(nets: Nets, asked: Candidates, seen: Seen) -> int:
    net = nets[ROLES[int(roles(asked.positions)[0])]]
    return int(net.evaluate(asked.positions, np.ascontiguousarray(asked.moves[:, : seen.move]), asked.offsets).argmax())


def _gathered(found: Sequence[tuple[ExpertMove, float]]) -> dict[str, Decisions]:
    """The decisions by role, with the utilities of these scores."""
    out = {}
    for role in dict.fromkeys(one.role for one, _ in found):
        moves, scores = zip(*(pair for pair in found if pair[0].role == role), strict=True)
        positions = np.stack([one.position for one in moves])
        returns = utility(np.array(scores, np.float32), role)
        out[role] = Decisions(positions, np.stack([one.moves for one in moves]), returns)
    return out


def some(decisions: Mapping[str, Decisions], count: int, rng: np.random.Generator) -> dict[str, Decisions]:
    """Draw about ``count`` decisions with replacement, from each role in proportion to its decisions."""
    total = sum(len(part.returns) for part in decisions.values())
    out = {}
    for role, part in decisions.items():
        share = round(count * len(part.returns) / total)
        if share:
            out[role] = part.take(rng.integers(len(part.returns), size=share))
    return out
