"""How many games each method needs of a player, from one crowd.

``python -m experiments.fm_clone.few_games GAME FOLDER``. Players of random styles are the crowd. Eight others are
cloned from 20 to 1,000 of their games, after the crowd and alone, by the clone's method and by others. All see the same
decisions; all but ``plain FM`` and ``MLP 256`` also see the candidates' features. ``--plain`` leaves out the features
that the styled players' own code goes by. Each measurement is a line of a file; the same command continues. It ends
with means, and differences to the clone with 95 % intervals over players. LightGBM takes part if it is installed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bothost.training.factorization import Samples, SparseRows
from bothost.training.statistics import mean_half95
from bothost_baselines.styled_doudizhu import STYLES
from bothost_fm_clone.attributes import DOUDIZHU_JUDGEMENTS, OTHELLO_JUDGED_TWICE, OTHELLO_JUDGEMENTS
from bothost_fm_clone.encode import encoding
from bothost_fm_clone.fit import score
from bothost_fm_clone.samples import decisions
from bothost_fm_clone.sight import Sight, sight
from experiments.fm_clone.contestants import contestants
from experiments.fm_clone.styles import StyledGames, random_styles

SIZES = (20, 50, 200, 1000)
TESTED, MOST_TESTED = 0.75, 1500
CROWD = {"doudizhu": (200, 6000), "othello": (200, 1500)}
"""Players and hands of the crowd."""
STYLED: dict[str, dict[str, Any]] = {
    "doudizhu": {name: STYLES[name] for name in ("blocker", "loner", "bomber", "short-first")},
    "othello": {name: {"style": name, "temperature": 0.5} for name in ("edges-first", "mobile", "careless", "deep")},
}


def copied(game: str, name: str) -> bool:
    """Whether the styled players' own code goes by a feature: plays or replies left, what the rest of a hand is worth,
    the highest of a kind, discs beside empty squares, judgements of a move, and comparisons of these."""
    if game == "doudizhu":
        others = name.startswith(("no other player can", "needs no further")) or name in DOUDIZHU_JUDGEMENTS
        return others or (name.startswith("keeps") and ("play" in name or "worth" in name))
    return "repl" in name or "beside empty" in name or name in {*OTHELLO_JUDGEMENTS, *OTHELLO_JUDGED_TWICE}


def main() -> None:
    """Measure what is not measured yet, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("game", choices=sorted(CROWD))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plain", action="store_true")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--alone", action="store_true", help="without a crowd only")
    where.add_argument("--after", action="store_true", help="after the crowd only")
    parser.add_argument("--others", type=int, default=0, help="clone eight players drawn by this seed instead")
    parser.add_argument("--crowd", type=int, help="hands that the crowd plays")
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
    players, hands = CROWD[game][0], told.crowd or CROWD[game][1]
    styles = StyledGames(game, random_styles(game, players, 7), hands, 1)
    crowd = None if told.alone else decisions(styles.moves(game), encoding(game))
    cloned: dict[str, Any] = {**STYLED[game], **random_styles(game, 4, 99)}
    if told.others:
        cloned = random_styles(game, 8, told.others)
    made = decisions(games_of(game, cloned, 6 if told.others else 3).moves(game), encoding(game))
    methods = contestants(game)
    methods = [method for method in methods if not told.methods or method.name in told.methods]
    wanted = [after for after in (True, False) if not (told.alone if after else told.after)]
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
                for after in wanted:
                    if (method.name, after, size, player, draw) in done or time.monotonic() > until:
                        continue
                    if after and crowd is not None and method.name not in begun:
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
                        **asdict(found),
                        "cpu_s": round(time.process_time() - began, 2),
                    }


def games_of(game: str, cloned: dict[str, dict[str, Any]], seed: int) -> StyledGames:
    """Enough games of these players for the largest size, and for tests."""
    seats = 3 if game == "doudizhu" else 2
    return StyledGames(game, cloned, int(1.1 * max(SIZES) / TESTED * len(cloned) / seats), seed)


def _leave_out(game: str) -> None:
    """Let every method see no feature that the styled players' own code goes by."""
    gone = np.array([copied(game, name) for name in sight(game).choices])
    seen: Callable[[Sight, Samples], Samples] = Sight.seen

    def without(self: Sight, samples: Samples) -> Samples:
        full = seen(self, samples)
        assert full.alternatives is not None
        rows = full.alternatives
        kept = ~gone[rows.items]
        return replace(full, alternatives=SparseRows.of_items(len(rows), rows.row_of[kept], rows.items[kept]))

    Sight.seen = without  # type: ignore[method-assign]


def _print(cells: Sequence[dict[str, Any]]) -> None:
    """Means, and the clone's gain: first the mean over a player's draws, then over players with a 95 % interval."""
    keyed = {(c["method"], c["crowd"], c["games"], c["player"], c["draw"]): c for c in cells}
    for crowd in (True, False):
        for what, scale in (("top1", 100.0), ("log_loss", 1.0), ("cpu_s", 1.0)):
            print(f"\n{what}, {'after the crowd' if crowd else 'alone'}: mean; the clone's gain ± 95 % (players)")
            for method in dict.fromkeys(c["method"] for c in cells):
                row = [f"{method:22}"]
                for size in SIZES:
                    both: dict[str, list[tuple[float, float]]] = {}
                    for key, cell in keyed.items():
                        own = keyed.get(("clone", *key[1:]))
                        if key[:3] == (method, crowd, size) and own is not None:
                            both.setdefault(cell["player"], []).append((scale * own[what], scale * cell[what]))
                    if both:
                        means = [np.mean(pairs, axis=0) for pairs in both.values()]
                        mean, half = mean_half95([float(own - other) for own, other in means])
                        average = float(np.mean([other for _, other in means]))
                        row.append(f"{size}: {average:.3f} ({mean:+.3f} ± {half:.3f}, {len(both)})")
                print("  ".join(row))


if __name__ == "__main__":
    main()
