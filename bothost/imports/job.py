"""Import files into the log, with one transaction per hand, and report invalid records."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from bothost.imports import botzone, json_lines
from bothost.imports.files import UnreadableFile
from bothost.imports.rebuild import Origin, play, rows, seated
from bothost.imports.record import BadRecord, HandRecord, ReadRecord, Records
from bothost.store.models import TABLE_OF, games
from bothost.store.records import IMPORT_HOST, Record
from bothost.store.store import Store

READERS: dict[str, Callable[[Path], Records]] = {"botzone": botzone.read, "jsonl": json_lines.read}
"""Format → its reader."""
MOST_LISTED = 100_000
"""Records that were left out, of which the report says why. A file of kilobytes may unpack to millions."""


class Broken(msgspec.Struct, frozen=True):
    """A record that was left out."""

    file: str
    line: int
    reason: str


class Report(msgspec.Struct):
    """The result of an import."""

    imported: int = 0
    """Number of imported hands."""
    decisions: int = 0
    already: int = 0
    """Hands that the log already had."""
    broken: list[Broken] = []
    unlisted: int = 0
    """Number of records that were left out beside those of ``broken``."""
    games: dict[str, int] = {}
    """Game → hands imported."""
    first: str = ""
    """Id of the first hand imported."""

    def leave_out(self, file: Path, line: int, reason: str) -> None:
        """Report a record that is not imported."""
        if len(self.broken) < MOST_LISTED:
            self.broken.append(Broken(str(file), line, reason))
        else:
            self.unlisted += 1


def import_files(
    store: Store | None,
    format_: str,
    paths: Sequence[Path],
    origin: Origin,
    *,
    on_record: Callable[[int], None] = lambda done: None,
) -> Report:
    """Import the records of files. Without a store, only check them.

    The rest of a file that cannot be read is left out, as one broken record. Raises StoreUnavailable while the database
    is unavailable. Written hands stay, and the same call continues.
    """
    report = Report()
    known = set() if store is None else _known(store, origin.lobby)
    done = 0
    for path in paths:
        name = os.fsencode(path.name).decode(errors="replace")  # it need not be UTF-8
        try:
            for found in READERS[format_](path):
                done += 1
                here = msgspec.structs.replace(origin, file=name, line=found.line)
                try:
                    _take(store, found, here, report, known)
                except BadRecord as error:
                    report.leave_out(path, found.line, str(error))
                on_record(done)
        except UnreadableFile as error:
            report.leave_out(path, error.line, f"{error}; the rest of the file is left out")
    return report


def _known(store: Store, lobby: str) -> set[str]:
    """Return the names of the hands that were imported into this lobby before."""
    query = sa.select(games.c.hand).distinct().where(games.c.lobby == lobby, games.c.host == IMPORT_HOST)
    with store.begin() as connection:
        return set(connection.execute(query).scalars())


def _take(store: Store | None, found: ReadRecord, origin: Origin, report: Report, known: set[str]) -> None:
    """Import one record. Raises BadRecord."""
    record = found.record
    if record is None:
        raise BadRecord(found.why)
    name = record.digest()
    if name in known:
        report.already += 1
        return
    played = play(record)
    made = rows(record, played, origin)
    if store is not None and not _write(store, record, made, played.game.num_seats, origin):
        report.already += 1
        return
    known.add(name)
    report.imported += 1
    report.decisions += len(played.moves)
    report.games[played.game.name] = report.games.get(played.game.name, 0) + 1
    report.first = report.first or made[0].game_id.hex()  # type: ignore[union-attr]


def _write(store: Store, record: HandRecord, made: Sequence[Record], seats: int, origin: Origin) -> bool:
    """Write all rows of a hand in one transaction. Returns False if the log already has the hand."""
    infos, _ = seated(record, seats, origin)
    named = (origin.lobby, infos[0].player, origin.format, record.digest())
    columns = (games.c.lobby, games.c.account, games.c.table, games.c.hand)
    known = sa.select(games.c.game_id).where(*(c == value for c, value in zip(columns, named, strict=True))).limit(1)
    groups: dict[sa.Table, list[dict[str, object]]] = {}
    for row in made:
        groups.setdefault(TABLE_OF[type(row)], []).append(msgspec.structs.asdict(row))
    try:
        with store.begin(writes=True) as connection:
            if connection.execute(known).first() is not None:
                return False
            for table, values in groups.items():
                connection.execute(table.insert(), values)
    except IntegrityError:  # another import wrote it at the same time
        return False
    return True
