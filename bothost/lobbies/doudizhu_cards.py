"""Translates between a lobby's numbers for the 54 cards and the game's ranks. Each lobby numbers them its own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bothost import rules
from bothost.lobbies.frames import Mismatch
from bothost.rules import doudizhu
from bothost.rules.game import View

_ORDER = {rank: place for place, rank in enumerate(doudizhu.RANKS)}


class Numbering:
    """How a lobby numbers the cards. ``rank_of`` maps a number to a letter of ``doudizhu.RANKS``."""

    def __init__(self, rank_of: Callable[[int], str]) -> None:
        self.rank_of = rank_of

    def text(self, cards: Iterable[int]) -> str:
        """Canonical text of cards, ascending."""
        return "".join(sorted(map(self.rank_of, cards), key=_ORDER.__getitem__))

    def pick(self, hand: Iterable[int], ranks: str) -> list[int]:
        """Cards of a hand with these ranks. Raises ValueError if the hand lacks one."""
        left = sorted(hand)
        picked = []
        for rank in ranks:
            card = next((card for card in left if self.rank_of(card) == rank), None)
            if card is None:
                raise ValueError(f"the hand has too few cards of rank {rank}")
            left.remove(card)
            picked.append(card)
        return picked

    def readings(self, cards: Iterable[int], game: rules.Game) -> list[str]:
        """Notations of the plays that consist of exactly these cards; empty if there are none."""
        try:
            return [game.notation(action) for action in doudizhu.readings(self.text(cards))]
        except ValueError:
            return []


def fold_first(view: View, events: Iterable[str]) -> str:
    """Fold the first of these events that the rules accept. Returns it. Raises Mismatch."""
    refusal = "the cards form no legal play"
    for event in events:
        try:
            view.observe(event)
            return event
        except ValueError as error:
            refusal = f"{event}: {error}"
    raise Mismatch(refusal)
