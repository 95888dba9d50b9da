"""RLlib's columns: one transition per live decision, with the names of RLlib's offline data.

An episode is one (game, seat). Its observations are all view blocks of the game's encoder, flattened and joined in the
order of their names. The reward is the hand's score, with the last transition. ``action_prob`` is the action's share of
the logged policy. Most bots play its most probable action, so for importance weights it is not what they played by.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bothost.export.hands import HandPage
from bothost.export.views import Decoder
from bothost.rules.game import FloatArray, Game
from bothost.store.logged_games import GameCache

FIELDS = [
    pa.field("eps_id", pa.string()),
    pa.field("t", pa.int32()),
    pa.field("obs", pa.list_(pa.float32())),
    pa.field("new_obs", pa.list_(pa.float32())),
    pa.field("actions", pa.int32()),
    pa.field("rewards", pa.float32()),
    pa.field("terminateds", pa.bool_()),
    pa.field("truncateds", pa.bool_()),
    pa.field("action_prob", pa.float32()),
    pa.field("action_logp", pa.float32()),
]
"""All null in rows of decisions that were not played."""
ROUNDING = 1e-5
"""How much more than 1 a probability in float32 may be."""


def columns_of(page: HandPage, hands: list[int], arrays: dict[str, pa.Array], games: GameCache) -> dict[str, pa.Array]:
    """Return the columns for rows. ``hands``: the index of each row's hand; a hand's decisions are in order."""
    names = ("played", "view", "legal", "policy", "action")
    columns: dict[str, list[Any]] = {name: arrays[name].to_pylist() for name in names}
    rows: list[dict[str, Any]] = [{} for _ in hands]
    episodes: dict[int, list[int]] = {}
    for row, hand in enumerate(hands):
        if columns["played"][row]:
            episodes.setdefault(hand, []).append(row)
    for hand, members in episodes.items():
        _fill(rows, members, page, hand, columns, Decoder(games.get(*page.games[hand])))
    return {field.name: pa.array([row.get(field.name) for row in rows], field.type) for field in FIELDS}


def _fill(
    rows: list[dict[str, Any]],
    members: list[int],
    page: HandPage,
    hand: int,
    columns: dict[str, list[Any]],
    decoder: Decoder,
) -> None:
    (game_id, seat), scores, score = page.keys[hand], page.scores[hand], page.score_of(hand) or 0.0
    seen = [observation(decoder, columns["view"][row]) for row in members]
    for t, row in enumerate(members):
        last = t == len(members) - 1
        probability = _probability(columns["legal"][row], columns["policy"][row], columns["action"][row])
        rows[row] = {
            "eps_id": f"{game_id.hex()}-{seat}",
            "t": t,
            "obs": seen[t],
            # The log has no view of the end of a hand, and RLlib ignores this value.
            "new_obs": seen[t] if last else seen[t + 1],
            "actions": columns["action"][row],
            "rewards": score if last else 0.0,
            "terminateds": last and scores is not None,
            "truncateds": last and scores is None,
            "action_prob": probability,
            "action_logp": math.log(probability) if probability else None,
        }


def view_blocks(game: Game) -> list[str]:
    """Return the sorted names of a game's view blocks."""
    return sorted(name for name, block in game.blocks.items() if block.of == "view")


def observation(decoder: Decoder, data: bytes, blocks: Sequence[str] | None = None) -> FloatArray | None:
    """Return view blocks of a logged view, float32, shape (sum of their sizes,); None if it cannot be decoded.

    ``blocks``: names in order; None: all.
    """
    view = decoder.view(data)
    if view is None or decoder.game is None:
        return None
    if blocks is None:
        blocks = view_blocks(decoder.game)
    if not blocks:
        return np.zeros(0, np.float32)
    return np.concatenate([np.asarray(view.encode(name), np.float32).ravel() for name in blocks])


def _probability(legal: list[int], policy: list[float] | None, action: int) -> float | None:
    """Return the logged probability of an action; None if there is none. A plugin may have logged other numbers."""
    if policy is None or action not in legal[: len(policy)]:
        return None
    probability = policy[legal.index(action)]
    return probability if 0.0 <= probability <= 1.0 + ROUNDING else None
