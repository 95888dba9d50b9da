"""Games of many players with random styles: a crowd that is varied enough to say in which ways players differ.

The styled players of ``bothost_baselines`` play as at a table, without a host. A hand takes milliseconds. Styles
are drawn by a seed; equal seeds give equal games. At mahjong some players go by the policy of ``mahjong-ppo`` instead
of the rule player's look-aheads.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import bothost_mahjong_ppo
from bothost import Budget, Model, Player, PlayerMove, Strategy, Table, rules
from bothost.rules import ActionArray, View
from bothost.rules.mahjong import TILES
from bothost_baselines.styled_doudizhu import StyledDoudizhu
from bothost_baselines.styled_othello import StyledOthello
from bothost_mahjong_ppo.decide import MahjongPpo, PlayOptions

STYLED: Mapping[str, type[Strategy]] = {"doudizhu": StyledDoudizhu, "othello": StyledOthello}
Chooser = Callable[[View, ActionArray], int]
Indices = npt.NDArray[np.integer]
FloatArray = npt.NDArray[np.floating]
SPREAD = {
    "doudizhu": {
        "aggression": 10.0,
        "bombs": 25.0,
        "length": 4.0,
        "ranks": 2.0,
        "pairs": 12.0,
        "chains": 8.0,
        "kickers": 8.0,
        "control": 5.0,
        "help": 40.0,
        "feed": 40.0,
        "block": 8.0,
    },
    "mahjong": {"caution": 0.3, "claims": 0.08, "honours": 0.06, "terminals": 0.06, "drawn": 0.06},
    "othello": {"mobility": 1.0, "frontier": 1.2, "corners": 1.0, "stability": 1.0, "danger": 0.8, "edges": 1.0},
}
"""Of each habit the standard deviation between players."""
SPARSE = 0.5
"""Chance that a player has a habit of its own."""


def random_styles(game: str, count: int, seed: int) -> dict[str, dict[str, Any]]:
    """Options of ``count`` styled players, by name."""
    rng = np.random.default_rng([seed, len(game)])
    out: dict[str, dict[str, Any]] = {}
    for number in range(count):
        own: dict[str, Any] = {}
        for habit, spread in SPREAD[game].items():
            if rng.random() < SPARSE:
                usual = 1.0 if game == "othello" and habit != "edges" else 0.0
                own[habit] = round(float(usual + spread * rng.normal()), 2)
        if game == "doudizhu":
            own["bombs_from"] = int(rng.integers(0, 4))
            own["sees_wins"] = bool(rng.random() < 0.8)
            own["temperature"] = round(float(rng.choice([0.0, 1.0, 3.0])), 1)
        elif game == "mahjong":
            own["weighted"] = round(float(rng.random()), 2)
            own["temperature"] = round(float(rng.choice([0.01, 0.04, 0.1, 0.2])), 2)
        else:
            own["greed"] = round(float(rng.choice([0.0, 0.0, 5.0, 15.0])), 1)
            own["depth"] = int(rng.integers(1, 4))
            own["temperature"] = round(float(rng.choice([0.3, 0.5, 1.0])), 1)
        out[f"{game}-{seed}-{number}"] = own
    return out


def trained_styles(count: int, seed: int) -> dict[str, dict[str, Any]]:
    """Options of ``count`` players of mahjong who go by the policy of ``mahjong-ppo``, by name."""
    rng = np.random.default_rng([seed, count])
    out: dict[str, dict[str, Any]] = {}
    for number in range(count):
        habits = {habit: spread * rng.normal() for habit, spread in SPREAD["mahjong"].items() if rng.random() < SPARSE}
        own: dict[str, Any] = {habit: round(float(size), 3) for habit, size in habits.items()}
        own["temperature"] = round(float(rng.choice([0.0, 0.3, 0.6, 1.0])), 1)
        out[f"mahjong-ppo-{seed}-{number}"] = {"trained": True, **own}
    return out


class StyledMahjong:
    """A player of mahjong who weighs what the two look-aheads say of each action, with likings of its own.

    It takes every win. ``weighted``: the share of the acceptance-weighted look-ahead. The likings are shares of the
    best action's worth: ``caution`` for a point that a discard may cost, beside the expected loss; ``claims`` for a
    claim; ``honours``, ``terminals`` and ``drawn`` for discarding such a tile. ``temperature``: of the softmax that it
    draws from.
    """

    def __init__(self, options: Mapping[str, float], seed: int) -> None:
        self._options = options
        self._seed = seed

    def choose(self, view: View, legal: ActionArray) -> int:
        action = view.encode_actions("action", legal)
        kind, tile = action[:, :8].argmax(axis=1), action[:, 8:].argmax(axis=1)
        wins = np.flatnonzero(kind == 1)
        if len(wins):
            return int(legal[wins[0]])
        liking = self._worth(view, legal) + self._likings(view, legal, kind, tile)
        if self._options["temperature"]:
            draw = np.random.default_rng([self._seed, view.hash() & 0x7FFFFFFF])
            liking = liking + self._options["temperature"] * draw.gumbel(size=len(liking))
        return int(legal[int(np.argmax(liking))])

    def _worth(self, view: View, legal: ActionArray) -> FloatArray:
        plain, weighted = (view.encode_actions(block, legal) for block in ("prospect", "appraisal"))
        share = self._options["weighted"]
        worth: FloatArray = (1 - share) * plain[:, 17] + share * weighted[:, 17]
        return worth

    def _likings(self, view: View, legal: ActionArray, kind: Indices, tile: Indices) -> FloatArray:
        own, discards = self._options, kind == 2
        liking = own.get("claims", 0.0) * np.isin(kind, (3, 4, 5))
        liking += own.get("honours", 0.0) * (discards & (tile >= 27))
        liking += own.get("terminals", 0.0) * (discards & (tile < 27) & np.isin(tile % 9, (0, 8)))
        if "drawn" in own and (drawn := view.to_json()["drawn"]) in TILES:
            liking += own["drawn"] * (discards & (tile == TILES.index(drawn)))
        if "caution" in own:
            liking -= own["caution"] * view.encode_actions("prospect", legal)[:, 16] * discards
        return liking


class TrainedMahjong(StyledMahjong):
    """A player of mahjong who goes by the policy of ``mahjong-ppo``, with likings of its own.

    Its likings are those of ``StyledMahjong`` by ``NATS``. ``temperature``: of the policy.
    """

    NATS = 15.0
    """What a liking of the best action's whole worth adds to an action's logarithmic probability."""

    def __init__(self, options: Mapping[str, float], player: Player, seed: int) -> None:
        super().__init__(options, seed)
        self._player = player

    def _worth(self, view: View, legal: ActionArray) -> FloatArray:
        policy = self._player.decide(view, legal, Budget(math.inf)).policy
        assert policy is not None  # the network always has one
        return np.log(np.maximum(np.array(policy, np.float64), 1e-9))

    def _likings(self, view: View, legal: ActionArray, kind: Indices, tile: Indices) -> FloatArray:
        return self.NATS * super()._likings(view, legal, kind, tile)


@dataclass(frozen=True)
class StyledGames:
    """A ``PlayerLog`` of games that are played when they are read: the players take turns at common tables."""

    game: str
    styles: Mapping[str, Mapping[str, Any]]
    hands: int
    seed: int = 0

    def players(self, game: str) -> Mapping[str, int]:
        return dict.fromkeys(self.styles, self.hands)

    def moves(self, game: str, players: Collection[str] = (), *, split: str | None = None) -> Iterator[PlayerMove]:
        if game != self.game:
            return
        own = rules.game(game)
        made = {name: player_at(game, options) for name, options in self.styles.items()}
        names, rng = list(made), np.random.default_rng(self.seed)
        for hand in range(self.hands):
            sitting = [names[n] for n in rng.choice(len(names), own.num_seats, replace=len(names) < own.num_seats)]
            wanted = [not players or name in players for name in sitting]
            if not any(wanted):
                continue
            yield from self._hand(own, hand, sitting, wanted, made, split)

    def _hand(
        self,
        own: rules.Game,
        hand: int,
        sitting: Sequence[str],
        wanted: Sequence[bool],
        made: Mapping[str, Callable[[Table], Chooser]],
        split: str | None,
    ) -> Iterator[PlayerMove]:
        game_id = hashlib.sha256(f"{self.game} {self.seed} {hand}".encode()).hexdigest()[:32]
        part = "test" if int(game_id[:8], 16) % 10 == 0 else "train"
        if split is not None and part != split:
            return
        seed = int(game_id[:15], 16)
        state = own.new_state(seed)
        seats = [
            made[name](Table(lobby="styles", table=game_id, game=own, seat=seat, seed=seed))
            for seat, name in enumerate(sitting)
        ]
        while not state.terminal:
            seat = state.to_act[0]
            view = state.view(seat)
            legal = view.legal()
            action = int(legal[0])
            if len(legal) > 1:
                action = seats[seat](view, legal)
            if wanted[seat]:
                yield PlayerMove(own, game_id, part, sitting[seat], seat, view, legal, action, 0, None)
            state.apply(seat, action)

    def thinking_ms(self, game: str, players: Collection[str]) -> Iterator[float]:
        """No times are known."""
        return iter(())

    def lineage(self) -> dict[str, Any]:
        return {"styles": dict(self.styles), "hands": self.hands, "seed": self.seed}


def player_at(game: str, options: Mapping[str, Any]) -> Callable[[Table], Chooser]:
    """Makes a player at a table."""
    if options.get("trained"):
        return lambda table: TrainedMahjong(options, _trained().player(table), table.seed).choose
    if game == "mahjong":
        return lambda table: StyledMahjong(options, table.seed).choose
    strategy = STYLED[game](STYLED[game].Options(**options))

    def made(table: Table) -> Chooser:
        player = strategy.player(table)

        def choose(view: View, legal: ActionArray) -> int:
            decision = player.quick(view, legal)
            assert decision is not None  # styled players always have one
            return decision.action

        return choose

    return made


@cache
def _trained() -> Strategy:
    """The champion of ``mahjong-ppo``."""
    package = Path(next(iter(bothost_mahjong_ppo.__path__))) / "weights"
    manifest = json.loads((package / "manifest.json").read_text())
    version = manifest["aliases"]["champion"]
    told = manifest["versions"][version]
    model = Model("mahjong-ppo", version, "", str(package / version), told["files"], told["encoder_version"])
    return MahjongPpo(PlayOptions(), model)
