"""Remove hands from finished exports: rewrite the files without them, and the manifest with new checksums."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bothost.errors import UsageError
from bothost.export.botzone import FILE as MATCHES
from bothost.export.folder import aside, readable
from bothost.export.minari import NAMESPACE
from bothost.messages import Json
from bothost.plugins.weights import sha256_of
from bothost.store.query import NAMES

_AGAIN = "delete that folder, forget the player without it, then export again"


def forget(folder: Path, game_ids: Collection[bytes], names: Collection[str] = ()) -> int:
    """Remove the hands with these ids from the export in ``folder``, and ``names`` from its query.

    Returns the number of removed rows. Each file is replaced in one step, the manifest last, so that an interrupted
    call can be repeated. Raises UsageError unless the folder holds a finished export in Parquet or JSONL.
    """
    info_path = folder / "meta" / "info.json"
    if (kind := _whole(folder)) is not None:
        raise UsageError(_fixed(folder, kind), advice=_AGAIN)
    if (folder / "meta" / "plan.json").is_file():
        raise UsageError(f"{folder} holds an unfinished export", advice="continue the export, or delete its folder")
    try:
        info = dict(json.loads(info_path.read_bytes()))
        entries = [dict(entry) for entry in info["files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{folder} holds no export: {error}", advice="name a folder that `bothost export` wrote"
        ) from error
    if info.get("format") not in ("parquet", "jsonl"):
        raise UsageError(_fixed(folder, str(info.get("format"))), advice=_AGAIN)
    unwanted = {key.hex() for key in game_ids}
    before = sum(int(entry["rows"]) for entry in entries)
    splits: Counter[str] = Counter()
    forgotten: set[str] = set()
    for entry in entries:
        path = folder / "data" / Path(str(entry["file"])).name
        if path.is_symlink() or not path.is_file():
            raise UsageError(f"{path} is missing or not a regular file")
        parquet = info["format"] == "parquet"
        try:
            hands, gone, kept = _parquet(path, unwanted, names) if parquet else _jsonl(path, unwanted)
        except (pa.ArrowException, ValueError, LookupError) as error:
            advice = "delete this export, and export again"
            raise UsageError(f"{path} is damaged: {error}", advice=advice) from error
        splits.update(kept)
        forgotten |= gone
        entry |= {"rows": kept.total(), "hands": hands, "bytes": path.stat().st_size, "sha256": sha256_of(path)}
    left = sum(int(entry["rows"]) for entry in entries)
    info |= {"files": entries, "rows": left, "hands": sum(entry["hands"] for entry in entries)}
    info |= {"splits": dict(sorted(splits.items())), "forgotten_hands": info.get("forgotten_hands", 0) + len(forgotten)}
    query = info.get("query", {})
    info["query"] = without(query, names)
    if left != before or info["query"] != query:
        with aside(info_path) as file:
            file.write(readable(info))
    return before - left


def _whole(folder: Path) -> str | None:
    """The format of an export without a manifest."""
    if (folder / MATCHES).is_file():
        return "botzone"
    return "minari" if (folder / NAMESPACE / "namespace_metadata.json").is_file() else None


def _fixed(folder: Path, kind: str) -> str:
    return f"{folder} holds an export in the format {kind}, from which hands cannot be removed"


def without(query: Json, names: Collection[str]) -> Json:
    """Return the query without the names of forgotten players."""
    lists = {key: query[key] for key in NAMES if query.get(key)}
    return query | {key: ["forgotten" if name in names else name for name in known] for key, known in lists.items()}


def _parquet(path: Path, unwanted: set[str], names: Collection[str]) -> tuple[int, set[str], Counter[str]]:
    """Rewrite one file. Returns (hands that stay, removed hands, rows that stay by split)."""
    gone: set[str] = set()
    hands: set[tuple[str, int]] = set()
    splits: Counter[str] = Counter()
    values = pa.array(sorted(unwanted), pa.string())
    with ExitStack() as stack:
        file = stack.enter_context(pq.ParquetFile(path))
        metadata = file.schema_arrow.metadata or {}
        about = {k.decode(): v.decode() for k, v in metadata.items() if k.startswith(b"bothost.")}
        query = json.loads(about.get("bothost.query", "{}"))
        writer = None
        if _ids(file) & unwanted or without(query, names) != query:
            out_file = stack.enter_context(aside(path))
            writer = pq.ParquetWriter(out_file, file.schema_arrow, compression="zstd", store_schema=False)
        for batch in file.iter_batches():
            table = pa.Table.from_batches([batch])
            out = pc.is_in(table["game_id"], value_set=values)
            gone.update(table.filter(out)["game_id"].unique().to_pylist())
            table = table.filter(pc.invert(out))
            hands.update(zip(table["game_id"].to_pylist(), table["seat"].to_pylist(), strict=True))
            splits.update(table["split"].to_pylist())
            if writer is not None and table.num_rows:
                writer.write_table(table)
        if writer is not None:
            if query:
                about["bothost.query"] = json.dumps(without(query, names), sort_keys=True)
            contents = json.loads(about.get("bothost.contents", "{}"))
            contents |= {"rows": splits.total(), "splits": dict(sorted(splits.items()))}
            about["bothost.contents"] = json.dumps(contents, sort_keys=True)
            writer.add_key_value_metadata(about)
            writer.close()
    return len(hands), gone, splits


def _ids(file: pq.ParquetFile) -> set[str]:
    found: set[str] = set()
    for batch in file.iter_batches(columns=["game_id"]):
        found.update(batch["game_id"].unique().to_pylist())
    return found


def _jsonl(path: Path, unwanted: set[str]) -> tuple[int, set[str], Counter[str]]:
    gone: set[str] = set()
    hands: set[tuple[str, int]] = set()
    splits: Counter[str] = Counter()
    with path.open("rb") as file:
        changed = any(json.loads(line).get("game_id") in unwanted for line in file)
    with path.open("rb") as file, aside(path) if changed else nullcontext() as out:
        for line in file:
            row = json.loads(line)
            if row.get("game_id") in unwanted:
                gone.add(row["game_id"])
                continue
            if "game_id" in row:
                hands.add((row["game_id"], row["seat"]))
                splits[row["split"]] += 1
            if out is not None:
                out.write(line)
    return len(hands), gone, splits
