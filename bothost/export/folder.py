"""The folder of an export: claimed, filled file by file, finished; or continued after a kill.

::

    data/part-00000.parquet …   complete files alone: each is written aside, synced and renamed
    meta/info.json              the manifest, written last: with it the export is finished
    meta/plan.json              while it runs: what was asked for, and when
    meta/hands.bin              while it runs: the hands, 16 bytes of game id and one of seat each, in order
    meta/part-00000.json …      while it runs: what is in a complete file

The hands are listed before the first row is read, so that hands which end meanwhile change nothing: the second half of
an export that was killed holds the very bytes that the first run would have written. All names are made here; nothing
of the log's contents becomes part of a path.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

from bothost.errors import UsageError
from bothost.store.reader import Key

KEY_BYTES = 17
_OTHER = "Name a new or empty folder with --out."


class ExportFolder:
    """A claimed folder; locked until ``close``. Made by :meth:`claim`."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self.data = path / "data"
        self.meta = path / "meta"
        self._lock = lock

    @classmethod
    def claim(cls, path: Path) -> Self:
        """Take a folder that is new, empty, or holds an unfinished export.

        Raises UsageError for every other: nothing that is not ours is ever overwritten or followed through a link.
        """
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise UsageError(f"{path} is not a folder", advice=_OTHER)
        path.mkdir(parents=True, exist_ok=True)
        meta, data = path / "meta", path / "data"
        if (meta / "info.json").exists():
            raise UsageError(f"{path} holds a finished export already", advice=_OTHER)
        if any(path.iterdir()) and not (meta / "lock").is_file():
            raise UsageError(f"{path} is not empty, and what it holds is no export of ours", advice=_OTHER)
        for folder in (meta, data):
            if folder.is_symlink():
                raise UsageError(f"{folder} is a link", advice=_OTHER)
            folder.mkdir(exist_ok=True)
        lock = os.open(meta / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise UsageError(f"another export is writing to {path} now") from error
        return cls(path, lock)

    def close(self) -> None:
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------------------- the plan

    def plan(self) -> dict[str, Any] | None:
        """What the unfinished export was asked for, None where there is none."""
        path = self.meta / "plan.json"
        return dict(json.loads(path.read_text())) if path.exists() else None

    def write_plan(self, plan: dict[str, Any], hands: Iterable[Key]) -> None:
        """List the hands, then note what was asked for."""
        with self._aside(self.meta / "hands.bin") as file:
            for game_id, seat in hands:
                file.write(game_id + seat.to_bytes(1, "big"))
        with self._aside(self.meta / "plan.json") as file:
            file.write(_json(plan))

    def hands(self) -> int:
        """How many hands are listed."""
        return (self.meta / "hands.bin").stat().st_size // KEY_BYTES

    def keys(self, start: int, stop: int) -> Iterator[Key]:
        """The listed hands from number ``start`` to before ``stop``."""
        with (self.meta / "hands.bin").open("rb") as file:
            file.seek(start * KEY_BYTES)
            for _ in range(start, stop):
                entry = file.read(KEY_BYTES)
                if len(entry) < KEY_BYTES:
                    return
                yield entry[:16], entry[16]

    # ------------------------------------------------------------------------------------------------------ the files

    def finished_part(self, number: int, suffix: str) -> dict[str, Any] | None:
        """What is in a file that is complete already."""
        note = self.meta / f"part-{number:05d}.json"
        if note.exists() and (self.data / f"part-{number:05d}{suffix}").exists():
            return dict(json.loads(note.read_text()))
        return None

    @contextlib.contextmanager
    def part(self, number: int, suffix: str) -> Iterator[BinaryIO]:
        """Write a file; it appears under its name when it is complete and on the disk."""
        with self._aside(self.data / f"part-{number:05d}{suffix}") as file:
            yield file

    def note_part(self, number: int, contents: dict[str, Any]) -> None:
        """Remember that a file is complete, and what is in it."""
        with self._aside(self.meta / f"part-{number:05d}.json") as file:
            file.write(_json(contents))

    def finish(self, info: dict[str, Any]) -> None:
        """Write the manifest, then clear away what was for resuming."""
        with self._aside(self.meta / "info.json") as file:
            file.write(_json(info))
        for path in (*self.meta.glob("part-*.json"), self.meta / "hands.bin", self.meta / "plan.json"):
            path.unlink()
        (self.meta / "lock").unlink()

    @contextlib.contextmanager
    def _aside(self, path: Path) -> Iterator[BinaryIO]:
        aside = path.with_name(f".{path.name}.partial")
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)


def sha256_of(path: Path) -> str:
    """Of a file's content, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _json(data: Any) -> bytes:
    return json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"
