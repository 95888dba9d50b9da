"""Moves of Dou Dizhu and tiles of mahjong in words. Features are named with them, as reasons of a choice show them."""

from __future__ import annotations

NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
RANKS = {"T": "10", "J": "jack", "Q": "queen", "K": "king", "A": "ace", "B": "small joker", "R": "big joker"}
SUITS = {"W": "characters", "T": "bamboos", "B": "dots"}
HONOURS = {
    "F1": "the east wind",
    "F2": "the south wind",
    "F3": "the west wind",
    "F4": "the north wind",
    "J1": "the red dragon",
    "J2": "the green dragon",
    "J3": "the white dragon",
}
KINDS = {
    "pass": "passes",
    "solo": "plays a single card",
    "pair": "plays a pair",
    "trio": "plays three of a rank",
    "trio_solo": "plays three of a rank with a card",
    "trio_pair": "plays three of a rank with a pair",
    "solo_chain": "plays a chain of single cards",
    "pair_chain": "plays a chain of pairs",
    "trio_chain": "plays a chain of threes",
    "plane_solo": "plays a chain of threes with cards",
    "plane_pair": "plays a chain of threes with pairs",
    "quad_solo": "plays four of a rank with two cards",
    "quad_pair": "plays four of a rank with two pairs",
    "bomb": "plays a bomb",
    "rocket": "plays the rocket",
}
"""Kinds of moves of Dou Dizhu, as ``bothost.rules.doudizhu`` names them."""


def move_words(move: str) -> str:
    """An abstract move of Dou Dizhu in words: ``333*`` is three 3s with a card."""
    if move == "pass":
        return "a pass"
    if move == "BR":
        return "both jokers"
    cards = [card for card in move if card != "*"]
    ranks = list(dict.fromkeys(cards))
    copies, stars = len(cards) // len(ranks), move.count("*")
    if len(ranks) == 1:
        rank = RANKS.get(ranks[0], ranks[0])
        body = f"a {rank}" if copies == 1 else f"{NUMBERS[copies]} {_plural(rank)}"
        body = f"a pair of {_plural(rank)}" if copies == 2 else body
        body = f"an {rank}" if copies == 1 and rank in ("ace", "8") else body
    else:
        kind = {1: "a chain of single cards", 2: "a chain of pairs", 3: "a chain of threes", 4: "a chain of fours"}[
            copies
        ]
        body = f"{kind} from {RANKS.get(ranks[0], ranks[0])} to {RANKS.get(ranks[-1], ranks[-1])}"
    if not stars:
        return body + (" (a bomb)" if len(ranks) == 1 and copies == 4 else "")
    return f"{body} with {_kickers(stars, len(ranks), copies)}"


def _kickers(stars: int, ranks: int, copies: int) -> str:
    groups = ranks * (2 if copies == 4 else 1)
    if stars == groups:
        return "a card" if stars == 1 else f"{NUMBERS[stars] if stars < 7 else stars} cards"
    return "a pair" if groups == 1 else f"{NUMBERS[groups] if groups < 7 else groups} pairs"


def _plural(rank: str) -> str:
    return rank + ("es" if rank.endswith("x") else "s")


def tile_words(tile: str) -> str:
    """A tile of mahjong in words: ``W3`` is the 3 of characters."""
    return HONOURS.get(tile) or f"the {tile[1]} of {SUITS[tile[0]]}"


def counted(number: int, what: str) -> str:
    """``1 card``, ``2 cards``."""
    return f"{number} {what}{'s' * (number != 1)}"
