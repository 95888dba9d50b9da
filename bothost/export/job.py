"""One export, from the query to the manifest."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from bothost.errors import StoreError, UsageError
from bothost.export.base import Exporter
from bothost.export.folder import ExportFolder, aside
from bothost.export.hands import HandPage
from bothost.export.options import ExportOptions
from bothost.export.rows import Contents, schema_of, tables
from bothost.export.views import versions
from bothost.plugins.weights import sha256_of
from bothost.store import schema
from bothost.store.consent import recorded
from bothost.store.logged_games import GameCache
from bothost.store.query import NAMES, HandQuery
from bothost.store.reader import iter_keys
from bothost.store.store import Store

EXPORT_VERSION = 1
"""Version of the columns and the manifest. Increased when either changes incompatibly."""
PAGE_HANDS = 1000
OBSERVED_HANDS = 10
"""Hands of a page with RLlib's columns: the observations of one hand of mahjong may take 10 MB."""

Progress = Callable[[int, int], None]
"""Called with the number of exported hands and the total."""


class HandsDeleted(StoreError):
    """Hands of an unfinished export are no longer in the log."""


class OtherRequest(UsageError):
    """The folder holds an unfinished export that another request or another release started."""


def export(
    store: Store,
    query: HandQuery,
    out: Path,
    exporter: Exporter,
    options: ExportOptions,
    *,
    request: Mapping[str, Any] | None = None,
    progress: Progress = lambda done, total: None,
) -> dict[str, Any]:
    """Export the closed hands that match ``query`` to the folder ``out``. Returns the manifest.

    An unfinished export of the same request in ``out`` is continued. ``request`` is what the user typed: it identifies
    a request whose query changes with time ("the last 7 days"). Memory is constant. Raises UsageError for a folder with
    other contents, HandsDeleted, and StoreUnavailable while the database is unavailable (call again to continue).
    """
    query = msgspec.structs.replace(query, closed=True)
    with ExportFolder.claim(out) as folder:
        plan = _plan(folder, store, query, exporter, options, request)
        if options.pseudonym_key is not None:
            options = msgspec.structs.replace(options, pseudonym_key=plan["pseudonym_key"])
        run = _Run(store, folder, exporter, options, plan)
        total, size = folder.hands(), options.hands_per_file
        parts = []
        for number, start in enumerate(range(0, total, size)):
            progress(start, total)
            part = folder.finished_part(number, exporter.suffix)
            parts.append(part or run.write(number, start, min(start + size, total), progress))
        progress(total, total)
        info = run.info(parts)
        folder.finish(info)
        return info


def _plan(
    folder: ExportFolder,
    store: Store,
    query: HandQuery,
    exporter: Exporter,
    options: ExportOptions,
    request: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Load the folder's plan, or make one."""
    chosen = msgspec.to_builtins(options)
    chosen["pseudonyms"] = chosen.pop("pseudonym_key") is not None
    asked = {
        "export_version": EXPORT_VERSION,
        "schema": schema.REVISIONS[-1],
        "format": exporter.name,
        "query": msgspec.to_builtins(query),
        "options": chosen,
        "columns": {field.name: str(field.type) for field in schema_of(options)},
    }
    plan: dict[str, Any] = {
        "asked": asked,
        "request": asked["query"] if request is None else dict(request),
        "created_us": time.time_ns() // 1000,
        "pseudonym_key": options.pseudonym_key,
    }
    plan = json.loads(json.dumps(plan, sort_keys=True))  # normalize as when it is read back
    old = folder.plan()
    if old is None:
        folder.write_plan(plan, iter_keys(store, query))
        return plan
    if [old.get("request"), {**old.get("asked", {}), "query": 0}] != [plan["request"], {**plan["asked"], "query": 0}]:
        advice = "repeat that command to finish it, or name another folder with --out"
        raise OtherRequest(f"{folder.path} holds an unfinished export of another request", advice=advice)
    return old


class _Run:
    """Writes the files of one export."""

    def __init__(
        self, store: Store, folder: ExportFolder, exporter: Exporter, options: ExportOptions, plan: dict[str, Any]
    ) -> None:
        self._store, self._folder, self._exporter, self._options, self._plan = store, folder, exporter, options, plan
        self._consents = recorded(store)
        self._games = GameCache()

    def write(self, number: int, start: int, stop: int, progress: Progress) -> dict[str, Any]:
        """Write the file of the hands ``start`` … ``stop`` - 1. Returns its contents."""
        contents = Contents()
        games: dict[str, Any] = {}
        total = self._folder.hands()

        def pages() -> Iterator[HandPage]:
            keys = self._folder.keys(start, stop)
            done, size = start, OBSERVED_HANDS if self._options.rllib else PAGE_HANDS
            while page := list(islice(keys, size)):
                hands = HandPage.read(self._store, page, self._options, self._consents)
                if len(hands) != len(page):
                    raise HandsDeleted("hands of this export were deleted from the log; start it again in a new folder")
                for played, rules in hands.games:
                    if played not in games:
                        game = self._games.get(played, rules)
                        games[played] = None if game is None else versions(game)
                yield hands
                done += len(page)
                progress(done, total)

        def metadata() -> dict[str, str]:
            whole = {**self._about(), "contents": contents.as_json(), "games": games, "part": number}
            return {
                f"bothost.{name}": msgspec.json.encode(value, order="sorted").decode() for name, value in whole.items()
            }

        name = f"data/part-{number:05d}{self._exporter.suffix}"
        path = self._folder.path / name
        with aside(path) as file:
            rows = tables(self._store, pages(), self._options, self._games, contents)
            self._exporter.write(file, schema_of(self._options), rows, metadata)
        part = {
            "file": name,
            "hands": stop - start,
            "bytes": path.stat().st_size,
            "sha256": sha256_of(path),
            "games": games,
            **contents.as_json(),
        }
        self._folder.note_part(number, part)
        return part

    def info(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        """The manifest: the request and the results."""
        splits: Counter[str] = Counter()
        games: dict[str, Any] = {}
        for part in parts:
            splits.update(part["splits"])
            games |= part["games"]
        encoders = sorted({tuple(pair) for part in parts for pair in part["encoders"]})
        return {
            **self._about(),
            "rows": sum(part["rows"] for part in parts),
            "hands": sum(part["hands"] for part in parts),
            "splits": dict(sorted(splits.items())),
            "games": dict(sorted(games.items())),
            "encoders": [{"strategy": strategy, "encoder_version": version} for strategy, version in encoders],
            "views_not_decoded": sum(part["views_not_decoded"] for part in parts),
            "files": [{name: part[name] for name in ("file", "rows", "hands", "bytes", "sha256")} for part in parts],
        }

    def _about(self) -> dict[str, Any]:
        asked = dict(self._plan["asked"])
        if self._options.pseudonym_key is not None:
            query = asked["query"]
            named = {key: [self._options.name_of(p) for p in query[key]] for key in NAMES if key in query}
            asked["query"] = {**query, **named}
        return {**asked, "created_us": self._plan["created_us"]}
