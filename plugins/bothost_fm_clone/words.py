"""Descriptions of features for reasons. Every feature of every game has one."""

from __future__ import annotations

from functools import cache

from bothost.rules import doudizhu

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
WHO = {"next": "the next player", "previous": "the previous player", "opposite": "the player opposite"}


@cache
def phrase(game: str, name: str) -> str:
    """A feature's description. If it is about the player, it is a clause without subject."""
    return {"doudizhu": _doudizhu, "othello": _othello, "mahjong": _mahjong}[game](name)


@cache
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


def _doudizhu(name: str) -> str:
    known = set(doudizhu.abstract_names())
    for start, words in (
        ("holds ", "holds "),
        ("to beat ", "has to beat "),
        ("unseen ", "an enemy may still hold "),
        ("leaves ", "keeps "),
        ("is ", "plays "),
    ):
        if name.startswith(start) and name.removeprefix(start) in known:
            return words + move_words(name.removeprefix(start))
    if name.startswith("to beat the "):
        return f"the move to beat is the {name.split()[3]} player's"
    for who, words in WHO.items():
        if name.startswith(f"{who} passed on "):
            move, _, when = name.removeprefix(f"{who} passed on ").partition(" with ")
            return f"{words} passed on {move_words(move)}" + (f" while holding {when}" if when else "")
        if name.startswith(f"{who} has "):
            return f"{words} has {name.removeprefix(f'{who} has ')} left"
    if name.startswith("plays from "):
        rank = name.removeprefix("plays from ")
        return f"plays {RANKS.get(rank, rank)} as the lowest rank"
    plain = {
        "leads": "leads freely",
        "is landlord": "is the landlord",
        "is next after the landlord": "plays right after the landlord",
        "is before the landlord": "plays right before the landlord",
        "is highest": "no other player can hold a higher move of its kind",
        "leaves 0 cards": "goes out",
        "leaves 0 plays": "needs no further play",
        "plays 0 cards": "plays no card",
        "plays a pass": "passes",
    }
    if name in plain:
        return plain[name]
    if name.startswith("leaves "):
        return "keeps " + name.removeprefix("leaves ")
    if name.startswith("plays a "):
        return KINDS[name.removeprefix("plays a ")]
    return name


def _othello(name: str) -> str:
    first, _, rest = name.partition(" ")
    if first in ("own", "enemy"):
        return f"{'holds' if first == 'own' else 'the opponent holds'} {rest}"
    if first == "empty":
        return f"{rest} is empty"
    if first == "leaves" and rest.split(" ")[0] in ("own", "enemy", "empty"):
        return "after it, " + _othello(rest)
    if name.startswith("leaves ") and rest.endswith(("replies", "reply")) and rest[0].isdigit():
        return f"leaves the opponent {rest}"
    if first == "is" and (len(rest) == 2 and rest[0] in "abcdefgh"):
        return f"plays {rest}"
    return {"is pass": "passes", "is on no square: it passes": "places no disc"}.get(
        name, name.replace("is on ", "plays on ")
    )


def _mahjong(name: str) -> str:
    for start, clause in (("holds a pair of ", "holds a pair: "), ("holds three ", "holds three times ")):
        if name.startswith(start):
            return clause + tile_words(name.removeprefix(start))
    if name.startswith("of a tile of which "):
        return f"of its tile, {name.split(' ')[5]} lie open"
    if name.startswith("of "):
        return f"the tile is {tile_words(name.removeprefix('of '))}"
    words = name.split(" ")
    tiles = [tile_words(word) if _is_tile(word) else word for word in words]
    out = " ".join(tiles)
    for who, long in WHO.items():
        if words[0] == who:
            out = long + out.removeprefix(who)
    return (
        out.replace("has 1 melds", "has one meld")
        .replace("needs 1 tiles", "needs one tile")
        .replace(" 0 melds", " no meld")
    )


def _is_tile(word: str) -> bool:
    return len(word) == 2 and word[0] in "WTBFJ" and word[1].isdigit()


def tile_words(tile: str) -> str:
    """A tile of mahjong in words: ``W3`` is the 3 of characters."""
    return HONOURS.get(tile) or f"the {tile[1]} of {SUITS[tile[0]]}"
