"""Everyone against everyone on duplicate deals, as a table and a plot of strengths with 95 % intervals.

python benchmarks/round_robin.py pairing phase-ppo:level-{1,2,3,4,5} --deals 600 --out docs/research/phase-ppo

writes ``OUT.json``, ``OUT.png`` and prints the table in Markdown. ``--against A B`` adds matches of the contestants
against others, which do not count for the strengths. Finished deals are kept in ``--journals`` and not played again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from itertools import combinations
from pathlib import Path

from bothost.arena.run import MatchSpec, run_match
from bothost.cli.arena import build

Z95 = 1.959964


def match(args, one, other, deals):
    """Figures of a match from the first one's side, with half the width of the interval of ``wp``."""
    spec = MatchSpec(game=args.game, rules={}, contestants=(one, other), options=({}, {}), deals=deals, seed=args.seed)
    made = [(s.name, s.version, s.model and s.model.sha256) for s in build(spec)[1]]
    name = hashlib.sha256(json.dumps([args.game, one, other, args.seed, made]).encode()).hexdigest()[:16]
    args.journals.mkdir(parents=True, exist_ok=True)
    figures = run_match(spec, build, journal=args.journals / f"{name}.jsonl")
    print(f"{one} {figures['wp']:.3f} {figures['ci95']} {other}", file=sys.stderr, flush=True)
    low, high = figures["ci95"]
    return {key: figures[key] for key in ("wp", "ci95", "mean_lead", "deals")} | {"half": (high - low) / 2}


def strength(of, pairs):
    """Mean win rate over all the others, with half the width of its 95 % interval, matches taken as independent."""
    mine = [(m["wp"] if of == a else 1.0 - m["wp"], m["half"] / Z95) for (a, b), m in pairs.items() if of in (a, b)]
    wp = sum(w for w, _ in mine) / len(mine)
    return wp, Z95 * math.sqrt(sum(error**2 for _, error in mine)) / len(mine)


def markdown(contestants, pairs, strengths, others):
    """Rows against columns, in percent."""
    columns = [*contestants, *dict.fromkeys(b for _, b in others)]
    lines = ["| | strength | " + " | ".join(columns) + " |", "|---|---|" + "---|" * len(columns)]
    for row in contestants:
        cells = []
        for column in columns:
            m = pairs.get((row, column)) or others.get((row, column))
            back = pairs.get((column, row))
            if m:
                cells.append(f"{100 * m['wp']:.1f} ± {100 * m['half']:.1f}")
            else:
                cells.append(f"{100 * (1 - back['wp']):.1f} ± {100 * back['half']:.1f}" if back else "")
        wp, half = strengths[row]
        lines.append(f"| {row} | {100 * wp:.1f} ± {100 * half:.1f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def plot(strengths, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 1 + 0.4 * len(strengths)), layout="constrained")
    axes = figure.subplots()
    names = list(strengths)
    axes.errorbar(
        [100 * strengths[n][0] for n in names], names, xerr=[100 * strengths[n][1] for n in names], fmt="o", capsize=4
    )
    axes.set_xlabel("wins against the others, %, with 95 % intervals")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game")
    parser.add_argument("contestants", nargs="+")
    parser.add_argument("--against", nargs="*", default=[])
    parser.add_argument("--deals", type=int, default=600)
    parser.add_argument("--against-deals", type=int, help="of the matches against others; default: as many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--journals", type=Path, default=Path("runs/round-robin"))
    args = parser.parse_args()
    pairs = {(b, a): match(args, b, a, args.deals) for a, b in combinations(args.contestants, 2)}
    others = {
        (a, b): match(args, a, b, args.against_deals or args.deals) for a in args.contestants for b in args.against
    }
    strengths = {name: strength(name, pairs) for name in args.contestants}
    record = {
        "game": args.game,
        "seed": args.seed,
        "strengths": {name: {"wp": wp, "ci95": [wp - half, wp + half]} for name, (wp, half) in strengths.items()},
        "matches": [{"a": a, "b": b} | m for (a, b), m in (pairs | others).items()],
    }
    args.out.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
    plot(strengths, args.out.with_suffix(".png"))
    print(markdown(args.contestants, pairs, strengths, others))


if __name__ == "__main__":
    main()
