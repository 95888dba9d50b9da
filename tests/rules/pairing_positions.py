"""Rule sets and positions of the four-colour pairing game, for its tests."""

from __future__ import annotations

from typing import Any

from pairing_oracle import CARDS

from bothost import rules

RULE_SETS: list[dict[str, Any]] = [
    {},
    {"preset": "four-phase"},
    {"hand": 4, "pool": 5, "skill_a": 3, "skill_b": 2},
    {"preset": "four-phase", "hand": 6, "pool": 4, "deck": 12, "skill_a": 2, "skill_b": 0, "discard_to_hand": 2},
    {"refill": False, "pool": 3, "discards": 1, "points": list(range(13)), "rank_bonus": 3},
    {"preset": "four-phase", "pool": 0, "colour_set": 2, "colour_bonus": 1, "discard_to_pool": 4},
    {"hand": 20, "pool": 12, "discard_to_hand": 0, "discard_to_pool": 0, "skill_a": 4, "skill_b": 7},
]


def position(**changes: Any) -> dict[str, Any]:
    """A small position under way; cards that are named nowhere lie in the libraries, seat 0's first."""
    deal: dict[str, Any] = {
        "hands": [["g1", "r2"], ["w3", "b4"]],
        "pool": ["g5", "w6"],
        "deck": ["r7", "b8", "r9"],
        "aside": [],
        "discards": [],
        "charges": [[1, 1], [1, 1]],
        "scores": [0, 0],
        "to_move": 0,
        "turn": 12,
        "discards_used": 0,
    }
    deal.update(changes)
    named = {card for hand in deal["hands"] for card in hand}
    named.update(deal["pool"], deal["deck"], deal["aside"], deal["discards"])
    rest = [card for card in CARDS if card not in named]
    deal["libraries"] = [rest[: len(rest) // 2], rest[len(rest) // 2 :]]
    return deal


def play(state: rules.State, *actions: str) -> None:
    for action in actions:
        state.apply(state.to_act[0], state.view(0).parse(action))


def legal_words(state: rules.State) -> list[str]:
    return [state.game.notation(action) for action in state.legal(state.to_act[0])]
