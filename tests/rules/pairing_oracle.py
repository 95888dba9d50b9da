"""The four-colour pairing game once more: slow, obvious, and sharing nothing with the native core.

Cards are strings (``g7``), hands and the pool are sorted lists, the deck is a list with its top first, and the rules
are read from the options that a game reports. Every event is recomputed from the whole hand.
"""

from __future__ import annotations

from typing import Any

COLOURS = "grwb"
CARDS = [f"{colour}{rank}" for colour in COLOURS for rank in range(1, 14)]
PHASES = ["A", "B", "discard1", "discard2", "pairing", "final"]
ACTIONS = CARDS + [f"enter:{phase}" for phase in PHASES]


class Oracle:
    """One hand under ``rules`` from ``deal`` (both as a native game gives them)."""

    def __init__(self, rules: dict[str, Any], deal: dict[str, Any]) -> None:
        self.rules = rules
        self.hands = [list(hand) for hand in deal["hands"]]
        self.pool = list(deal["pool"])
        self.deck = list(deal["deck"])
        self.libraries: list[list[str]] = [list(library) for library in deal.get("libraries", [[], []])]
        self.discards: list[str] = list(deal.get("discards", []))
        self.charges = [dict(zip("AB", charges, strict=True)) for charges in deal.get("charges", self._dealt_charges())]
        self.bonus_before = list(deal.get("scores", [0, 0]))
        self.before = [list(library) for library in self.libraries]
        self.mover: int | None = deal.get("to_move", 0)
        self.turn: int = deal.get("turn", 0)
        self.discards_used: int = deal.get("discards_used", 0)
        self.phase = "init"
        self.selected: list[str] = []
        self.replaced: list[str] = []
        self.log: list[list[str]] = [[], []]

    def _dealt_charges(self) -> list[list[int]]:
        return [[self.rules["skill_a"], self.rules["skill_b"]] for _ in range(2)]

    # what may be done

    def match(self) -> bool:
        return any(card[0] == lying[0] for card in self.hands[self.mover] for lying in self.pool)

    def discard_possible(self) -> bool:
        draws = self.rules["discard_to_hand"] + self.rules["discard_to_pool"]
        return not self.match() and self.discards_used < self.rules["discards"] and len(self.deck) >= draws

    def legal(self) -> list[str]:
        """Notations of the mover's legal actions, in the order of their ids."""
        if self.mover is None:
            return []
        hand = self.hands[self.mover]
        if self.phase == "init":
            found = [f"enter:{phase}" for phase in self.open_phases()]
        elif self.selected:
            same = self.phase != "B"
            found = [card for card in self.pool if not same or card[0] == self.selected[0][0]]
        elif self.phase == "pairing" and self.match():
            found = [card for card in hand if any(card[0] == lying[0] for lying in self.pool)]
        else:
            found = hand
        return sorted(found, key=ACTIONS.index)

    def open_phases(self) -> list[str]:
        phases = []
        if self.charges[self.mover]["A"] and self.deck:
            phases.append("A")
        if self.charges[self.mover]["B"] and self.pool:
            phases.append("B")
        if self.rules["preset"] == "four-phase" or self.match():
            phases.append("pairing")
        elif self.discard_possible():
            phases.append("discard1" if self.discards_used == 0 else "discard2")
        else:
            phases.append("final")
        return phases

    # what it does

    def apply(self, action: str) -> None:
        assert action in self.legal(), action
        if action.startswith("enter:"):
            self.phase = action.removeprefix("enter:")
            self.tell(self.mover, f"enter {self.mover} {self.phase}")
            return
        self.selected.append(action)
        pairs = self.phase == "B" or (self.phase == "pairing" and self.match())
        if len(self.selected) < (2 if pairs else 1):
            self.tell(self.mover, f"select {self.mover} {action}")
            return
        card, *rest = self.selected
        self.selected = []
        self.execute(card, rest)
        if self.mover is None:
            self.tell_all("reveal")

    def execute(self, card: str, rest: list[str]) -> None:
        me = self.mover
        if self.phase == "A":
            self.charges[me]["A"] -= 1
            self.hands[me].remove(card)
            self.deck.append(card)
            self.replaced.append(card)
            self.tell(me, f"replace {me} {card}")
            self.tell(1 - me, f"replace {me} ?")
            self.draw_to_hand(1)
            self.go_on("init")
        elif rest:
            kind = "force" if self.phase == "B" else "pair"
            ends = self.phase == "pairing"
            if not ends:
                self.charges[me]["B"] -= 1
            self.hands[me].remove(card)
            self.pool.remove(rest[0])
            self.libraries[me] += [card, rest[0]]
            self.tell_all(f"{kind} {me} {card} {rest[0]}")
            if self.rules["refill"]:
                self.draw_to_pool(min(self.rules["pool"] - len(self.pool), len(self.deck)))
            self.go_on(None if ends else "init")
        elif self.discard_possible():
            phase = "init" if self.rules["preset"] == "seven-phase" else "pairing"
            self.discard("discard", card)
            self.discards_used += 1
            self.draw_to_hand(self.rules["discard_to_hand"])
            self.draw_to_pool(self.rules["discard_to_pool"])
            self.go_on(phase)
        else:
            self.discard("final", card)
            self.go_on(None)

    def discard(self, kind: str, card: str) -> None:
        self.hands[self.mover].remove(card)
        self.discards.append(card)
        self.tell_all(f"{kind} {self.mover} {card}")

    def draw_to_hand(self, n: int) -> None:
        if n <= 0:
            return
        drawn, self.deck = self.deck[:n], self.deck[n:]
        self.hands[self.mover] += drawn
        self.tell(self.mover, f"draw {self.mover} {' '.join(drawn)}")
        self.tell(1 - self.mover, f"draw {self.mover} {' '.join('?' * n)}")

    def draw_to_pool(self, n: int) -> None:
        if n <= 0:
            return
        drawn, self.deck = self.deck[:n], self.deck[n:]
        self.pool += drawn
        self.tell_all(f"refill - {' '.join(drawn)}")

    def go_on(self, phase: str | None) -> None:
        """To ``phase`` of the same turn, or (None) to the next turn."""
        if phase is not None and self.hands[self.mover]:
            self.phase = phase
            return
        self.phase = "init"
        self.turn += 1
        self.discards_used = 0
        if self.hands[1 - self.mover]:
            self.mover = 1 - self.mover
        elif not self.hands[self.mover]:
            self.mover = None

    # what it is worth

    def score(self, seat: int) -> int:
        """From the whole library: the points of its cards, and the sets that they make."""
        return self.bonus_before[seat] + self.value(self.libraries[seat]) - self.value(self.before[seat])

    def value(self, library: list[str]) -> int:
        points = sum(self.rules["points"][int(card[1:]) - 1] for card in library)
        fours = sum(all(f"{colour}{rank}" in library for colour in COLOURS) for rank in range(1, 14))
        sixes = sum(sum(card[0] == colour for card in library) // self.rules["colour_set"] for colour in COLOURS)
        return points + fours * self.rules["rank_bonus"] + sixes * self.rules["colour_bonus"]

    # who is told

    def tell(self, seat: int, event: str) -> None:
        self.log[seat].append(event)

    def tell_all(self, event: str) -> None:
        self.tell(0, event)
        self.tell(1, event)
