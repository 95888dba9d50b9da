"""Print results on stdout, and errors with their fix on stderr; with ``--json`` as JSON."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec
import typer

from bothost.errors import BothostError, ConfigError, ConfigErrors, raised_at
from bothost.errors import printable as printable

_USAGE = 2
_OS_ADVICE = {
    errno.ENOSPC: "make room on the disk",
    errno.EACCES: "let this user read and write it, and its folder",
}
"""Number of a system's error → what to do."""
SHORTEST_NAME = 12
"""Width to which the longest word of a column of names may be cut."""


def emit(data: Any, as_json: bool, text: str = "") -> None:
    """Print ``data`` as JSON, or ``text`` for people."""
    typer.echo(to_json(data) if as_json else text)


def to_json(data: Any) -> str:
    """Indented JSON of plain data and msgspec structs; secrets come out redacted, paths as text."""
    return json.dumps(msgspec.to_builtins(data, enc_hook=str), indent=2, ensure_ascii=False)


def table(
    rows: Sequence[Sequence[object]],
    header: Sequence[str] = (),
    *,
    optional: Sequence[str] = (),
    names: Collection[str] = (),
) -> str:
    """Aligned columns, two spaces apart; no lines, so that it can be piped. Chinese characters are two columns wide.

    If a table is wider than the terminal, ``optional`` columns without a cell are left out, and cells continue on the
    next line, between words. If that is not enough, the other ``optional`` columns are left out, in their order. Long
    words in the columns ``names`` are cut.
    """
    from rich.cells import cell_len, set_cell_size

    columns = [list(map(str, column)) for column in zip(*([header, *rows] if header else rows), strict=True)]
    widths = [max(map(cell_len, column)) for column in columns]
    if columns and sys.stdout.isatty():
        columns, widths = _fitted(columns, widths, shutil.get_terminal_size().columns, optional, names)
    lines = []
    for row in zip(*columns, strict=True):
        for parts in zip_longest(*map(_wrapped, row, widths), fillvalue=""):
            lines.append("  ".join(map(set_cell_size, parts, widths)).rstrip())
    return "\n".join(lines)


def _fitted(
    columns: list[list[str]], widths: list[int], room: int, optional: Sequence[str], names: Collection[str]
) -> tuple[list[list[str]], list[int]]:
    """The columns to show and their widths. The one with the most to spare shrinks first."""
    spare = [width - _least(column, column[0] in names) for column, width in zip(columns, widths, strict=True)]
    over = sum(widths) + 2 * (len(widths) - 1) - room
    empty = [name for name, *cells in columns if name in optional and not any(cells)]
    least = [*empty, *optional] if over > sum(spare) else empty if over > 0 else []
    if least:
        nth = [column[0] for column in columns].index(least[0])
        columns, widths = ([*items[:nth], *items[nth + 1 :]] for items in (columns, widths))
        return _fitted(columns, widths, room, [name for name in optional if name != least[0]], names)
    widths = list(widths)
    for _ in range(min(over, sum(spare))):
        nth = spare.index(max(spare))
        widths[nth], spare[nth] = widths[nth] - 1, spare[nth] - 1
    return columns, widths


def _least(column: Sequence[str], cut: bool) -> int:
    """The least width of a column: that of its longest word, or less where words may be cut."""
    from rich.cells import cell_len

    longest = max((cell_len(word) for cell in column for word in _words(cell)), default=0)
    return min(longest, SHORTEST_NAME) if cut else longest


def _words(cell: str) -> list[str]:
    """The parts between which a cell may be broken. A date and its time are one."""
    return re.split(r"(?<!\d)\s+|\s+(?!\d)", cell.strip())


def _wrapped(cell: str, width: int) -> list[str]:
    """The lines of a cell."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(cell) <= width:
        return [cell]
    lines: list[str] = []
    for word in _words(cell):
        if lines and cell_len(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word if cell_len(word) <= width else set_cell_size(word, width - 1) + "…")
    return lines


def counted(number: int, noun: str) -> str:
    """``1 hand``, ``1,234 hands``, ``2 matches``."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def _lines(text: str) -> str:
    return "\n".join(map(printable, text.splitlines()))


def report(error: BaseException, *, as_json: bool = False) -> int:
    """Tell about an error on stderr, without traceback and without secrets, and return the exit code."""
    from bothost.logs import Redactor

    redact = Redactor.from_environment()
    if type(error).__name__ == "NoArgsIsHelpError":  # a noun without its verb: its help, no complaint
        typer.echo(str(error), err=True)
        return _USAGE
    if isinstance(error, BothostError):
        parts = error.errors if isinstance(error, ConfigErrors) else (error,)
        code = error.exit_code
    elif _is_usage(error):
        parts, code = (BothostError(error.format_message(), advice=_usage_advice(error)),), _USAGE  # type: ignore[attr-defined]
    elif isinstance(error, OSError):
        parts, code = (BothostError(_os_error(error), advice=_OS_ADVICE.get(error.errno or 0, "")),), 1
    else:
        parts, code = (_bug(error),), 1
    if os.environ.get("BOTHOST_DEBUG"):
        typer.echo(redact("".join(traceback.format_exception(error))), err=True)
    if as_json:
        typer.echo(redact(to_json({"exit_code": code, "errors": [_plain(part) for part in parts]})), err=True)
    else:
        for part in parts:
            typer.echo(_lines(redact(f"error: {part}")), err=True)
            if part.advice:
                typer.echo(_lines(redact(f"  fix: {part.advice}")), err=True)
    return code


def warn(text: str) -> None:
    """A line on stderr that does not stop anything."""
    typer.echo(f"warning: {text}", err=True)


def note_earlier(earlier: int, deals: int, where: Path, option: str) -> None:
    """Say on stderr how many deals of a match or a tournament were not played now."""
    if earlier:
        advice = f"if a strategy's code has changed, raise its version or name another {option}"
        typer.echo(f"{earlier} of {deals} deals are from an earlier run in {where}; {advice}", err=True)


def is_terminal() -> bool:
    """Whether a person watches: progress bars and live tables only then."""
    return sys.stderr.isatty()


@contextmanager
def progress(total: int | None, title: str) -> Iterator[Callable[..., None]]:
    """A progress bar on stderr where a person watches, else nothing. Yields ``advance(done, note="", total=None)``.

    With ``BOTHOST_PROGRESS=json`` in the environment each call is one JSON line on stderr instead, for programs.
    """
    if os.environ.get("BOTHOST_PROGRESS") == "json":
        given = total
        yield lambda done, note="", total=None: typer.echo(
            json.dumps({"progress": title, "done": done, "total": total or given, "note": note}), err=True
        )
        return
    if not is_terminal():
        yield lambda done, note="", total=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total, note="")
        yield lambda done, note="", total=None: bar.update(task, completed=done, note=note, total=total)


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar for work that reports ``(done, total)``."""
    with progress(None, title) as advance:
        yield lambda done, total: advance(done, total=total)


def _plain(error: BothostError) -> dict[str, Any]:
    where: dict[str, Any] = {}
    if isinstance(error, ConfigError):
        where = {"file": error.file, "line": error.line, "key": error.key, "value": error.value}
    return {"type": type(error).__name__, "message": str(error), "advice": error.advice, **where}


def _is_usage(error: BaseException) -> bool:
    """Whether it comes from the command line parser, which older Typer takes from click and newer brings along."""
    return any(cls.__name__ == "ClickException" for cls in type(error).__mro__)


def _usage_advice(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return f"see {context.command_path} --help" if context is not None else "see bothost --help"


def _os_error(error: OSError) -> str:
    name = f"{error.filename}: " if error.filename else ""
    return f"{name}{error.strerror or error}"


def _bug(error: BaseException) -> BothostError:
    at = raised_at(error)
    where = f" ({at})" if at is not None else ""
    advice = "this is a bug in bothost or a plugin; BOTHOST_DEBUG=1 shows the whole trace"
    return BothostError(f"{type(error).__name__}: {error}{where}", advice=advice)
