"""``bothost db``: the database's schema, backups, old rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from bothost.cli import options, output
from bothost.cli.hand_query import moment
from bothost.store import backup as backups
from bothost.store import schema
from bothost.store.engine import shown, sqlite_path
from bothost.store.partitions import EPOCH

app = typer.Typer(no_args_is_help=True, help="The database: schema, backups, old rows.")


@app.command()
def upgrade(config: options.Config = None, json: options.Json = False) -> None:
    """Create the database, or bring its schema up to date."""
    store = options.settings(config).store
    before, after = schema.upgrade(store)
    where = shown(store.url)
    if before == after:
        text = f"{where} has schema {after}, up to date"
    else:
        text = f"{where}: schema {before or 'none'} → {after}"
    output.emit({"url": where, "before": before, "after": after}, json, text)


@app.command()
def status(config: options.Config = None, json: options.Json = False) -> None:
    """Show the schema's version, the size and the number of rows. Exit code 78 if an upgrade is needed."""
    from bothost.store.reader import counts, size
    from bothost.store.store import Store

    store = options.settings(config).store
    with Store.open(store) as opened:
        found = {"url": shown(store.url), "schema": schema.REVISIONS[-1], **counts(opened), "bytes": size(opened)}
    output.emit(found, json, output.table(list(found.items())))


@app.command()
def prune(
    before: Annotated[
        str, typer.Option(help="Delete the hands that started before: a date, a time (UTC), or an age such as 90d.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without it, only count.")] = False,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Delete old hands with their events and decisions, while hosts write. Without --yes, only count them."""
    from bothost.store import retention

    store = options.settings(config).store
    pruned = retention.prune(store, EPOCH + timedelta(microseconds=moment(before)), dry_run=not yes)
    found = {"before": pruned.before.isoformat(), "deleted": yes, "rows": pruned.rows, "partitions": pruned.partitions}
    rows = [(name, f"{count:,}") for name, count in pruned.rows.items()]
    rows += [("partitions dropped whole", f"{len(pruned.partitions):,}")] if pruned.partitions else []
    lines = [output.table(rows)]
    if not any(pruned.rows.values()) and not pruned.partitions:
        lines.append(f"no hand started before {pruned.before:%Y-%m-%d %H:%M} UTC: there is nothing to delete")
    elif not yes:
        lines.append("nothing was deleted: to delete these rows, add --yes")
    output.emit(found, json, "\n".join(lines))


@app.command()
def backup(
    to: Annotated[Path | None, typer.Argument(help="New file; default: beside the database, with the time.")] = None,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Copy the SQLite database to a new file, while hosts write."""
    store = options.settings(config).store
    if to is None:
        path = sqlite_path(store.url)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        to = path.with_name(f"{path.stem}-{stamp}.db") if path is not None else Path("backup.db")
    with output.bar("backup") as progress:
        size = backups.back_up(store, to, progress=progress)
    output.emit({"file": str(to), "bytes": size}, json, f"{to}: {size:,} bytes")


@app.command()
def restore(
    source: Annotated[Path, typer.Argument(help="A file that `bothost db backup` wrote.")],
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Restore the SQLite database from a backup. Never overwrites a database."""
    store = options.settings(config).store
    with output.bar("restore") as progress:
        size = backups.restore(store, source, progress=progress)
    where = str(sqlite_path(store.url))
    output.emit({"file": where, "bytes": size}, json, f"{where}: {size:,} bytes; now run: bothost db upgrade")
