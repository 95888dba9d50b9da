"""``bothost import``: recorded games of others into the decision log."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from bothost.cli import options, output
from bothost.cli.output import counted
from bothost.errors import UsageError

if TYPE_CHECKING:
    from bothost.imports.job import Report

SHOWN = 20
"""Broken records that are listed for people; `--json` has all of them."""


def command(
    format_: Annotated[str, typer.Argument(metavar="FORMAT", help="botzone, or jsonl: our own, for any game.")],
    files: Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help="Files of records, plain or gzip.")],
    lobby: Annotated[
        str, typer.Option(help="Lobby under which the hands are logged, and the players known.")
    ] = "imported",
    names: Annotated[
        str,
        typer.Option("--players", help="Names by seat, as in A,B,C, for records that name no players."),
    ] = "",
    consents: Annotated[
        bool, typer.Option("--consent", help="You have the right to let strategies imitate these players.")
    ] = False,
    reason: Annotated[str, typer.Option(help="What gives you that right; kept with each hand.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the records; write nothing.")] = False,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Bring recorded games of others into the log: players, hands, and every decision, rebuilt by our rules.

    A hand is written as a whole or not at all, and once: the same record again changes nothing. Records that do not fit
    our rules, and files that cannot be read, are listed with file, line and reason, and the exit code is 1.
    """
    from bothost.imports.job import READERS, import_files
    from bothost.imports.rebuild import Origin
    from bothost.store import Store

    if format_ not in READERS:
        raise UsageError(f"there is no format {format_!r}", advice=f"formats: {', '.join(READERS)}")
    if reason and not consents:
        raise UsageError("--reason says why the players may be imitated", advice="add --consent")
    for text, option in ((lobby, "--lobby"), (names, "--players"), (reason, "--reason")):
        if not text.isprintable() or (option == "--lobby" and not text):
            raise UsageError(f"{option} {text!r} is no name")
    _ = options.plugins(config).games  # the games of plugins are known from here on
    origin = Origin(
        lobby=lobby,
        format=format_,
        file="",
        line=0,
        names=tuple(map(str.strip, names.split(","))),
        consents=consents,
        reason=reason,
    )
    opening = nullcontext() if dry_run else Store.open(options.settings(config).store)
    with opening as store, output.progress(None, "import") as advance:
        report = import_files(store, format_, files, origin, on_record=advance)
    output.emit(
        {**msgspec.to_builtins(report), "written": not dry_run}, json, _summary(report, lobby, consents, dry_run)
    )
    if report.broken:
        raise typer.Exit(1)


def _summary(report: Report, lobby: str, consents: bool, dry_run: bool) -> str:
    games = ", ".join(f"{count:,} of {game}" for game, count in sorted(report.games.items()))
    decisions = counted(report.decisions, "decision")
    verb = "would be imported" if dry_run else "imported"
    lines = [f"{counted(report.imported, 'hand')} {verb}" + (f" ({games}; {decisions})" if games else "")]
    if report.already:
        lines.append(f"{counted(report.already, 'hand')} already in the log")
        if consents:
            command = f"bothost games consent PLAYER --lobby {quote(lobby)}"
            lines.append(f"  their consent is unchanged; to record it: {command}")
    if report.broken:
        broken = len(report.broken) + report.unlisted
        lines.append(f"{counted(broken, 'record')} left out:")
        lines += [
            f"  {output.printable(each.file)}:{each.line}: {output.printable(each.reason)}"
            for each in report.broken[:SHOWN]
        ]
        if broken > SHOWN:
            listed = f"the first {len(report.broken):,}" if report.unlisted else "all"
            lines.append(f"  … and {broken - SHOWN:,} more: --json lists {listed}")
    if report.imported and not dry_run:
        lines.append(f"see them: bothost games list --lobby {quote(lobby)}")
    return "\n".join(lines)
