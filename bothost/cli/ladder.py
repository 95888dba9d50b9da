"""``bothost ladder``: ratings of strategies and of the opponents that they met."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bothost.cli import options, output
from bothost.cli.hand_query import check_names

if TYPE_CHECKING:
    from bothost.ladder.report import GameLadder
    from bothost.store import Store
    from bothost.store.ratings import Scope

WIDEST = 12
"""Contestants that a matrix shows in the terminal."""


def command(
    game: Annotated[str | None, typer.Option("--game", help="Show this game only.")] = None,
    own: Annotated[bool, typer.Option("--own", help="Count also hands that our accounts played alone.")] = False,
    journal: Annotated[
        list[Path] | None,
        typer.Option(
            help="Journal of `bothost arena`, or the folder of a tournament: count its deals. May be repeated."
        ),
    ] = None,
    min_hands: Annotated[int, typer.Option(min=1, help="Leave out contestants of fewer hands.")] = 1,
    matrix: Annotated[bool, typer.Option("--matrix", help="Show who won how often against whom.")] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(dir_okay=False, callback=options.in_folder, help="Write the ladder to this Markdown file."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(dir_okay=False, callback=options.in_folder, help="Draw it: a .png, .svg or .pdf file."),
    ] = None,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild",
            help="Forget the ratings; count every hand of the log again, and the journals that --journal names.",
        ),
    ] = False,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Rate every strategy, by version and level, and every opponent, from logged hands and arena matches.

    Counts the hands that are new since the last call, then shows the ladder. A rating is OpenSkill's estimate: 25 ± 16
    for a newcomer. Contestants stand in the order of the lower ends of their intervals.
    """
    from bothost.ladder import journals, report
    from bothost.ladder import picture as drawing
    from bothost.store import Store
    from bothost.store.query import HandQuery

    if picture is not None:
        drawing.check(picture)
    settings, plugins = options.settings(config), options.plugins(config)
    paths = journals.files(journal or [])
    scope: Scope = "all" if own else "others"
    with Store.open(settings.store) as store:
        check_names(store, settings, plugins, HandQuery(games=() if game is None else (game,)))
        hands, deals, left_out = _count(store, scope, paths, rebuild=rebuild)
        found = report.ladders(store, scope, game=game, min_hands=min_hands)
    few = f"no one has {output.counted(min_hands, 'hand')} yet"
    none = few if found else "no one is rated yet" if game is None else f"no one is rated in {game}"
    _write(found, markdown, picture, none)
    data = {
        "scope": scope,
        "counted": {"hands": hands, "deals": deals, "left_out": dict(sorted(left_out.items()))},
        "games": {each.game: report.as_json(each) for each in found},
    }
    text = "\n".join([_readable(found, matrix, few) or none, _counted(hands, deals, left_out, own)])
    output.emit(data, json, text)


def _write(found: Sequence[GameLadder], markdown: Path | None, picture: Path | None, none: str) -> None:
    """Write the files that were asked for. ``none``: why a picture would be empty."""
    from bothost.ladder import picture as drawing
    from bothost.ladder import report

    if markdown is not None:
        markdown.write_text(report.markdown(found), encoding="utf-8")
    if picture is not None and not drawing.draw(found, picture):
        output.warn(f"{picture} is not drawn: {none}")


def _count(store: Store, scope: Scope, paths: Sequence[Path], *, rebuild: bool) -> tuple[int, int, dict[str, int]]:
    """Count what is new: hands of the log, deals of journals, and hands that are left out, by reason."""
    from bothost.ladder import journals
    from bothost.ladder.logged import LoggedOutcomes
    from bothost.ladder.update import Ladder, clear

    ladder = Ladder(store, scope)
    before = ladder.hands
    if rebuild:
        clear(store, scope)
        ladder = Ladder(store, scope)
    logged = LoggedOutcomes(store, scope)
    with output.progress(None, "ladder") as advance:
        hands = ladder.count(logged, on_counted=advance)
        deals = sum(ladder.count(journals.outcomes(path)) for path in paths)
    if (gone := before - ladder.hands) > 0:
        output.warn(
            f"{gone:,} of {before:,} results of contestants no longer count: their hands were deleted from the "
            "log, or their journals are not named with --journal"
        )
    return hands, deals, logged.left_out


def _counted(hands: int, deals: int, left_out: dict[str, int], own: bool) -> str:
    text = f"{output.counted(hands, 'new hand')} and {output.counted(deals, 'new deal')} counted"
    if left_out:
        text += "; left out: " + ", ".join(f"{count:,} {why}" for why, count in sorted(left_out.items()))
    if left_out.get("among our own accounts") and not own:
        text += "\n  --own counts those among our own accounts too, in a ladder of their own"
    return text


def _readable(found: Sequence[GameLadder], with_matrix: bool, few: str) -> str:
    from bothost.ladder import report

    parts = []
    for ladder in found:
        if not ladder.standings:
            parts.append(f"{ladder.game}\n  {few}\n")
            continue
        lines = [tuple(map(output.printable, row)) for row in report.rows(ladder.standings)]
        parts.append(f"{ladder.game}\n{output.table(lines, report.HEADER)}")
        parts += [f"  {role.label}: {role.rating.mu:.1f} (a player starts with 25)" for role in ladder.roles]
        if with_matrix and ladder.pairs:
            shown = report.matrix(ladder)[:WIDEST]
            columns = [str(place) for place in range(1, len(shown) + 1)]
            cells = [tuple(map(output.printable, row[: len(shown) + 1])) for row in shown]
            parts.append(output.table(cells, ("WINS AGAINST", *columns), optional=columns[::-1]))
        parts.append("")
    return "\n".join(parts)
