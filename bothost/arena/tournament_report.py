"""The report of a tournament: JSON figures, a text table, and one self-contained HTML page.

The page has no script and loads no other resource. Its content security policy forbids both.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bothost.arena.lineup import letter
from bothost.arena.standings import Estimate, Pair, crosstable
from bothost.arena.tournament import Standing, TournamentRun
from bothost.messages import Json

LEVEL = 0.05
"""Pairs with a smaller corrected p-value are marked as significant."""

COUNTED = {"illegal": "illegal actions", "failed": "errors", "late": "late answers"}
"""What the first legal action was played for: field of ``MatchResult`` → its name for people."""

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem; color: #1d2430; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #d9dee6; text-align: right; white-space: nowrap; }
th:first-child, td:first-child, .text { text-align: left; }
thead th { border-bottom: 2px solid #8a94a3; font-weight: 600; }
.count { color: #5c6675; } .won { background: #d9f0de; } .lost { background: #f8dcdc; } code { word-break: break-all; }
svg text { font: 13px system-ui, sans-serif; fill: currentColor; }
@media (prefers-color-scheme: dark) {
  body { background: #14181f; color: #dfe5ee; } th, td { border-color: #333c49; }
  .won { background: #1d4429; } .lost { background: #552626; } .count { color: #97a3b4; }
}
"""


def figures(run: TournamentRun) -> Json:
    """The figures of ``bothost tournament --json``."""
    tournament = run.tournament
    spec = tournament.spec
    names = spec.match.contestants
    table = crosstable(tournament.results)
    return {
        "game": run.game.name,
        "rules": dict(run.game.rules),
        "format": spec.format,
        "table": spec.table,
        "deals": spec.match.deals,
        "seed": spec.match.seed,
        "ms": spec.match.ms,
        "contestants": {letter(who): text for who, text in enumerate(run.described)},
        "hands": sum(result.hands for result in tournament.results),
        "standings": [
            {
                "rank": row.rank,
                "contestant": letter(row.who),
                "address": names[row.who],
                "matches": row.matches,
                "score": _plain(row.score),
                "points": _plain(row.points),
                "tournament_points": row.tournament_points,
                "buchholz": row.buchholz,
                **{kind: _count(run, kind, row.who) for kind in COUNTED},
            }
            for row in tournament.standings()
        ],
        "pairs": [
            {
                "a": letter(a),
                "b": letter(b),
                "score": _plain(pair.score),
                "deals": pair.deals,
                "p_value": pair.p_value,
                "p_holm": pair.p_holm,
                "better": _better(a, b, pair),
            }
            for (a, b), pair in sorted(table.items())
        ],
        "rounds": [
            {
                "matches": [
                    {
                        "contestants": [letter(who) for who in result.group],
                        "scores": {letter(who): result.score(who) for who in result.group},
                        "deals": len(result.points[result.group[0]]),
                    }
                    for result in tournament.results
                    if result.round == number
                ],
                "byes": [letter(who) for who in round_.byes],
            }
            for number, round_ in enumerate(tournament.rounds)
        ],
    }


def _count(run: TournamentRun, kind: str, who: int) -> int:
    return sum(getattr(result, kind).get(who, 0) for result in run.tournament.results)


def trouble(run: TournamentRun) -> list[str]:
    """Lines such as ``errors: A 251, C 250``, for what the first legal action was played for."""
    lines = []
    for kind, name in COUNTED.items():
        counts = [(letter(who), _count(run, kind, who)) for who in range(run.tournament.entered)]
        if found := ", ".join(f"{who} {count}" for who, count in counts if count):
            lines.append(f"{name}: {found}")
    return lines


def _plain(estimate: Estimate | None) -> Json | None:
    return None if estimate is None else {"mean": estimate.mean, "ci95": estimate.ci95 and list(estimate.ci95)}


def _better(a: int, b: int, pair: Pair) -> str | None:
    if pair.p_holm >= LEVEL:
        return None
    return letter(a if pair.score.mean > 0.5 else b)


def percent(estimate: Estimate | None) -> str:
    """``54.2 ± 1.3``, in per cent. An interval that ends at 0 or 100 has its ends: ``100.0 (39.8 … 100.0)``."""
    if estimate is None:
        return ""
    mean = f"{100 * estimate.mean:.1f}"
    if estimate.ci95 is None:
        return mean
    low, high = (100 * end for end in estimate.ci95)
    inside = low > 0.0 and high < 100.0
    return f"{mean} ± {(high - low) / 2:.1f}" if inside else f"{mean} ({low:.1f} … {high:.1f})"


def number(estimate: Estimate | None) -> str:
    """``+0.24 ± 0.05``."""
    if estimate is None:
        return ""
    half = estimate.half()
    return f"{estimate.mean:+.2f}" + (f" ± {half:.2f}" if half is not None else "")


def standing_rows(run: TournamentRun) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows of the standings."""
    spec = run.tournament.spec
    extra: tuple[str, ...] = {"swiss": ("match points", "Buchholz"), "knockout": ("rounds won",)}.get(spec.format, ())
    rows = []
    for row in run.tournament.standings():
        ranked = (f"{row.tournament_points:g}", f"{row.buchholz:g}")[: len(extra)]
        rows.append(
            (
                str(row.rank),
                f"{letter(row.who)} {spec.match.contestants[row.who]}",
                percent(row.score),
                number(row.points),
                *ranked,
                str(row.matches),
            )
        )
    return ("", "contestant", "wins, %", "points a hand", *extra, "matches"), rows


def crosstable_rows(run: TournamentRun) -> tuple[tuple[str, ...], list[tuple[tuple[str, str], ...]]]:
    """Header and rows of the crosstable, in the order of the standings.

    A cell is (text, ``won`` | ``lost`` | ""): the share of wins of the row over the column, and whether the difference
    is significant.
    """
    order = [standing.who for standing in run.tournament.standings()]
    table = crosstable(run.tournament.results)
    rows = []
    for row in order:
        cells = [(f"{letter(row)} {run.spec.contestants[row]}", "")]
        for column in order:
            pair = table.get((min(row, column), max(row, column)))
            if row == column or pair is None:
                cells.append(("", ""))
                continue
            score = pair.score if row < column else pair.score.reversed()
            mark = "" if pair.p_holm >= LEVEL else "won" if score.mean > 0.5 else "lost"
            cells.append((percent(score) + ("*" if mark else ""), mark))
        rows.append(tuple(cells))
    return ("", *(letter(who) for who in order)), rows


def page(run: TournamentRun, command: str) -> str:
    """The HTML report."""
    spec = run.tournament.spec
    title = f"{run.game.name}: {spec.format} of {run.tournament.entered}"
    header, rows = standing_rows(run)
    cross_header, cross = crosstable_rows(run)
    rules = ", ".join(f"{key} = {value}" for key, value in run.game.rules.items())
    clock = "no clock" if spec.match.ms is None else f"{spec.match.ms:g} ms a decision"
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>",
        f'<p class="count">{spec.match.deals} deals a match, each played in every lineup; {escape(clock)}; '
        f"seed {spec.match.seed}; {sum(result.hands for result in run.tournament.results)} hands.<br>"
        f"Rules: {escape(rules) or 'the default'}.</p>",
        "<h2>Standings</h2>",
        _table(header, [[(cell, "text" if i == 1 else "") for i, cell in enumerate(row)] for row in rows]),
        _plot(run, run.tournament.standings()),
        "<h2>Crosstable</h2><p>Share of wins of the row over the column in %, with the 95 % interval over deals. "
        f"Marked (*): the difference is significant at {LEVEL:g} (two-sided t test, Holm's correction for "
        f"{len(crosstable(run.tournament.results))} pairs).</p>",
        _table(cross_header, cross),
        "<h2>Rounds</h2>",
        *(_round(run, nth) for nth in range(len(run.tournament.rounds))),
        "<h2>Contestants</h2>",
        _table(
            ("", "address, version or model, options", *COUNTED.values()),
            [
                [(letter(who), ""), (described, "text"), *((str(_count(run, kind, who)), "") for kind in COUNTED)]
                for who, described in enumerate(run.described)
            ],
        ),
        f"<h2>Repeat it</h2><p><code>{escape(command)}</code></p></body></html>\n",
    ]
    return "\n".join(parts)


def _table(header: Sequence[str], rows: Sequence[Sequence[tuple[str, str]]]) -> str:
    marks = [mark for _, mark in rows[0]] if rows else [""] * len(header)  # a header stands as its column does
    head = "".join(f'<th class="{mark}">{escape(cell)}</th>' for cell, mark in zip(header, marks, strict=True))
    body = "".join(
        "<tr>" + "".join(f'<td class="{mark}">{escape(text)}</td>' for text, mark in row) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _round(run: TournamentRun, nth: int) -> str:
    spec, round_ = run.tournament.spec, run.tournament.rounds[nth]
    rows = [
        [
            (" – ".join(f"{letter(who)} {spec.match.contestants[who]}" for who in result.group), "text"),
            (" – ".join(f"{100 * result.score(who):.1f}" for who in result.group), ""),
            (str(len(result.points[result.group[0]])), ""),
        ]
        for result in run.tournament.results
        if result.round == nth
    ]
    byes = f"<p>Bye: {escape(', '.join(letter(who) for who in round_.byes))}.</p>" if round_.byes else ""
    return f"<h3>Round {nth + 1}</h3>{_table(('match', 'wins, %', 'deals'), rows)}{byes}"


def _plot(run: TournamentRun, standings: Sequence[Standing]) -> str:
    """Scores with their intervals, drawn as SVG."""
    rows = [standing for standing in standings if standing.score is not None]
    left, width, height = 260, 760, 26
    ends = [end for row in rows if row.score for end in (row.score.ci95 or (row.score.mean,) * 2)]
    low, high = max(0.0, min([*ends, 0.45])), min(1.0, max([*ends, 0.55]))

    def x(share: float) -> float:
        return left + (min(max(share, low), high) - low) / (high - low) * (width - left - 60)

    drawn = [
        f'<line x1="{x(0.5):.1f}" y1="0" x2="{x(0.5):.1f}" y2="{height * len(rows)}" stroke="#8a94a3" '
        'stroke-dasharray="3 3"/>'
    ]
    for nth, row in enumerate(rows):
        assert row.score is not None
        y = height * (nth + 0.5)
        name = f"{letter(row.who)} {run.spec.contestants[row.who]}"
        name = name if len(name) <= 34 else name[:33] + "…"
        first, last = row.score.ci95 or (row.score.mean, row.score.mean)
        drawn += [
            f'<text x="0" y="{y + 4:.1f}">{escape(name)}</text>',
            f'<line x1="{x(first):.1f}" y1="{y:.1f}" x2="{x(last):.1f}" y2="{y:.1f}" stroke="#2f6fdb" '
            'stroke-width="2"/>',
            f'<circle cx="{x(row.score.mean):.1f}" cy="{y:.1f}" r="4" fill="#2f6fdb"/>',
            f'<text x="{x(last) + 8:.1f}" y="{y + 4:.1f}">{100 * row.score.mean:.1f}</text>',
        ]
    size = f'viewBox="0 0 {width} {height * max(1, len(rows))}" width="{width}"'
    picture = f'<svg {size} role="img" aria-label="Share of wins with 95 % intervals">{"".join(drawn)}</svg>'
    return f'<div class="wide">{picture}</div>'  # a phone scrolls it: its text would be too small to read
