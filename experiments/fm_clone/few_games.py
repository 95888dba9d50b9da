"""How many games each method needs of a player, from one crowd.

``python -m experiments.fm_clone.few_games GAME FOLDER``. Players of random styles are the crowd. Eight others are
cloned from 20 to 1,000 of their games, after the crowd and alone, by the clone's method and by others. All see the same
decisions; all but ``plain FM`` and ``MLP 256`` also see the candidates' features. ``--plain`` leaves out the features
that the styled players' own code goes by. Each measurement is a line of a file; the same command continues. It ends
with means, and differences to the clone with 95 % intervals over players and draws. LightGBM takes part if it
is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bothost.training.factorization import Samples, SparseRows
from bothost.training.statistics import mean_half95
from bothost_baselines.styled_doudizhu import STYLES
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.fit import score
from bothost_fm_clone.learn import SharedOptions, crowd_of, grow_shared, player_of
from bothost_fm_clone.samples import Decisions, decisions
from bothost_fm_clone.shared import SharedClone
from bothost_fm_clone.sight import Sight, sight
from experiments.fm_clone import compare
from experiments.fm_clone.styles import StyledGames, random_styles

SIZES = (20, 50, 200, 1000)
TESTED, MOST_TESTED = 0.75, 1500
CROWD = {"doudizhu": (200, 6000), "othello": (200, 1500)}
"""Players and hands of the crowd."""
ALONE = (
    SharedOptions(quadratic=0, rectified=0, passes=10, rate=0.1, decay=3e-3, combinations=0),
    SharedOptions(quadratic=8, rectified=16, passes=8, rate=0.03, decay=1e-2, combinations=0),
    SharedOptions(quadratic=16, rectified=32, passes=8, rate=0.02, decay=1e-2, combinations=0),
)
"""What the clone's method chooses among without a crowd, on left-out hands."""
STYLED: dict[str, dict[str, Any]] = {
    "doudizhu": {name: STYLES[name] for name in ("blocker", "loner", "bomber", "short-first")},
    "othello": {name: {"style": name, "temperature": 0.5} for name in ("edges-first", "mobile", "careless", "deep")},
}


def copied(game: str, name: str) -> bool:
    """Whether the styled players' own code goes by a feature: plays or replies left, the highest of a kind, discs
    beside empty squares, and comparisons of these."""
    if game == "doudizhu":
        return name == "is highest" or (name.startswith("leaves") and ("play" in name))
    return "repl" in name or "beside empty" in name


class Shared:
    """The clone's own method."""

    name = "clone"

    def __init__(self, game: str) -> None:
        self._own = encoding(game)

    def crowd(self, some: Decisions) -> SharedClone:
        options = SharedOptions(combinations=60)
        clone = SharedClone.blank(self._own, options.quadratic, options.rectified, 1)
        growing = some.samples.take(np.arange(min(60_000, len(some))))
        for number in range(1, 4):
            clone = grow_shared(clone, growing, options, 1, number).clone
        return crowd_of(clone, some, options, 1, fresh=True)

    def player(self, some: Decisions, crowd: SharedClone | None, seed: int) -> SharedClone:
        if crowd is not None:
            return player_of(crowd, some, seed)[0]
        out = some.parts < compare.LEFT_OUT
        if not out.any() or out.all():
            out = some.hands == some.hands[0]
        rest, left = some.where(~out), some.where(out).samples

        def loss(options: SharedOptions) -> float:
            return score(self._alone(rest, options, seed).probabilities_of(left), left).log_loss

        return self._alone(some, min(ALONE, key=loss), seed)

    def _alone(self, some: Decisions, options: SharedOptions, seed: int) -> SharedClone:
        blank = SharedClone.blank(self._own, options.quadratic, options.rectified, seed)
        return crowd_of(blank, some, options, seed, fresh=True)

    def odds(self, model: SharedClone, samples: Samples) -> SparseRows:
        return model.probabilities_of(samples)


class Learned:
    """A method of ``compare``, with all features of the position, and of the candidates where it can use them."""

    def __init__(self, known: Sight, learner: compare.Learner) -> None:
        self.name = learner.name
        self._sight, self._learner = known, learner

    @classmethod
    def all(cls, game: str) -> list[Learned]:
        """A network with the candidates' features and one without, and the plain factorization machine."""
        own, known = encoding(game), sight(game)
        wide = replace(own, features=known.positions, leaves=known.choices)
        return [
            cls(known, compare.network(wide, "MLP 256", (256,), afterstates=True, epochs=15)),
            cls(known, compare.network(wide, "MLP 256", (256,), epochs=15)),
            cls(known, compare.machine(wide, 32)),
        ]

    def crowd(self, some: Decisions) -> Any:
        return self.player(some, None, 0)

    def player(self, some: Decisions, crowd: Any, seed: int) -> Any:
        return self._learner.learn(some.with_samples(self._sight.seen(some.samples)), crowd, seed)

    def odds(self, model: Any, samples: Samples) -> SparseRows:
        return self._learner.predict(model)(self._sight.seen(samples))


class Boosted:
    """Gradient boosting (LightGBM) that ranks the candidates; after a crowd it adds trees to the crowd's."""

    name = "LightGBM"

    def __init__(self, game: str) -> None:
        self._sight = sight(game)

    def crowd(self, some: Decisions) -> Any:
        return self._fitted(some.where(np.arange(len(some)) < 30_000), None, 150)

    def player(self, some: Decisions, crowd: Any, seed: int) -> Any:
        return self._fitted(some, crowd, 60 if crowd is not None else 80)

    def odds(self, model: Any, samples: Samples) -> SparseRows:
        matrix, _ = _matrix(self._sight, samples)
        raw = model.predict(matrix, raw_score=True)
        begin = samples.legal.offsets[:-1]
        raw = np.exp(raw - np.repeat(np.maximum.reduceat(raw, begin), np.diff(samples.legal.offsets)))
        odds = raw / np.repeat(np.add.reduceat(raw, begin), np.diff(samples.legal.offsets))
        return SparseRows(samples.legal.offsets, odds)

    def _fitted(self, some: Decisions, begin: Any, trees: int) -> Any:
        import lightgbm  # type: ignore[import-not-found, import-untyped, unused-ignore]

        matrix, label = _matrix(self._sight, some.samples)
        options = {"objective": "binary", "learning_rate": 0.1, "num_leaves": 31, "verbose": -1, "num_threads": 1}
        if len(some) < 2000:
            options |= {"min_data_in_leaf": 10, "learning_rate": 0.05}
        return lightgbm.train(options, lightgbm.Dataset(matrix, label), trees, init_model=begin)


def _matrix(known: Sight, samples: Samples) -> tuple[Any, Any]:
    """A sparse row for each candidate of each decision, and whether it was chosen."""
    from scipy.sparse import csr_matrix, hstack  # type: ignore[import-untyped]

    seen = known.seen(samples)
    assert seen.alternatives is not None
    lengths = np.diff(seen.legal.offsets)
    position = seen.features.take(np.repeat(np.arange(len(seen)), lengths))
    parts = [
        csr_matrix((np.ones(len(rows.items), np.float32), rows.items, rows.offsets), (len(rows), width))
        for rows, width in ((position, len(known.positions)), (seen.alternatives, len(known.choices)))
    ]
    return hstack(parts, format="csr"), (seen.legal.items == np.repeat(seen.labels, lengths)).astype(np.float32)


def main() -> None:
    """Measure what is not measured yet, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("game", choices=sorted(CROWD))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--others", type=int, default=0, help="clone eight players drawn by this seed instead")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--methods", nargs="*", default=[])
    told = parser.parse_args()
    torch.set_num_threads(1)
    until = time.monotonic() + 60 * told.minutes
    told.folder.mkdir(parents=True, exist_ok=True)
    path = told.folder / f"{told.game}{'-plain' * told.plain}.jsonl"
    cells = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for cell in _measured(told, cells, until):
        cells.append(cell)
        with path.open("a") as file:
            file.write(json.dumps(cell) + "\n")
    _print(cells)


def _measured(told: argparse.Namespace, cells: Sequence[dict[str, Any]], until: float) -> Iterator[dict[str, Any]]:
    game = told.game
    if told.plain:
        _leave_out(game)
    players, hands = CROWD[game]
    crowd = decisions(StyledGames(game, random_styles(game, players, 7), hands, 1).moves(game), encoding(game))
    cloned: dict[str, Any] = {**STYLED[game], **random_styles(game, 4, 99)}
    if told.others:
        cloned = random_styles(game, 8, told.others)
    seats = 3 if game == "doudizhu" else 2
    total = int(1.1 * max(told.sizes) / TESTED * len(cloned) / seats)
    made = decisions(StyledGames(game, cloned, total, 6 if told.others else 3).moves(game), encoding(game))
    methods: list[Shared | Learned | Boosted] = [Shared(game), *Learned.all(game)]
    if importlib.util.find_spec("lightgbm"):
        methods.append(Boosted(game))
    done = {(c["method"], c["crowd"], c["games"], c["player"], c["draw"]) for c in cells}
    begun: dict[str, Any] = {}
    for draw, size in itertools.product(range(told.draws), told.sizes):
        for player in cloned:
            mine = made.where(made.players == player)
            tested = mine.where(mine.parts >= TESTED)
            tested = tested.where(np.arange(len(tested)) < MOST_TESTED)
            open_ = np.unique(mine.hands[mine.parts < TESTED])
            drawn = np.random.default_rng([draw, size]).choice(open_, size, replace=False)
            some = mine.where(np.isin(mine.hands, drawn))
            for method in methods:
                if told.methods and method.name not in told.methods:
                    continue
                for after in (True, False):
                    if (method.name, after, size, player, draw) in done or time.monotonic() > until:
                        continue
                    if after and method.name not in begun:
                        began = time.process_time()
                        begun[method.name] = method.crowd(crowd)
                        print(method.name, "crowd", round(time.process_time() - began), "s", flush=True)
                    began = time.process_time()
                    model = method.player(some, begun[method.name] if after else None, draw)
                    found = score(method.odds(model, tested.samples), tested.samples)
                    yield {
                        "method": method.name,
                        "crowd": after,
                        "games": size,
                        "player": player,
                        "draw": draw,
                        "top1": found.top1,
                        "log_loss": found.log_loss,
                        "decisions": found.decisions,
                        "cpu_s": round(time.process_time() - began, 2),
                    }


def _leave_out(game: str) -> None:
    """Let every method see no feature that the styled players' own code goes by."""
    known = sight(game)
    gone = np.array([copied(game, name) for name in known.choices])
    seen: Callable[[Sight, Samples], Samples] = Sight.seen

    def without(self: Sight, samples: Samples) -> Samples:
        full = seen(self, samples)
        assert full.alternatives is not None
        rows = full.alternatives
        kept = ~gone[rows.items]
        row = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))[kept]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(np.bincount(row, minlength=len(rows)), out=offsets[1:])
        return replace(full, alternatives=SparseRows(offsets, rows.items[kept]))

    Sight.seen = without  # type: ignore[method-assign]


def _print(cells: Sequence[dict[str, Any]]) -> None:
    keyed = {(c["method"], c["crowd"], c["games"], c["player"], c["draw"]): c for c in cells}
    for crowd in (True, False):
        for what, scale in (("top1", 100.0), ("log_loss", 1.0)):
            print(f"\n{what}, {'after the crowd' if crowd else 'alone'}: mean; the clone's gain ± 95 % (n)")
            for method in dict.fromkeys(c["method"] for c in cells):
                row = [f"{method:22}"]
                for size in SIZES:
                    own = [
                        (c[what], keyed[("clone", *key[1:])][what])
                        for key, c in keyed.items()
                        if key[:3] == (method, crowd, size) and ("clone", *key[1:]) in keyed
                    ]
                    if own:
                        mean, half = mean_half95([scale * (mine - other) for other, mine in own])
                        average = scale * float(np.mean([other for other, _ in own]))
                        row.append(f"{size}: {average:.3f} ({mean:+.3f} ± {half:.3f}, {len(own)})")
                print("  ".join(row))


if __name__ == "__main__":
    main()
