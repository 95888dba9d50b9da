"""The folder of an export. An interrupted export can be continued.

::

    data/part-00000.parquet …   complete files only: each is written to a temporary name, synced and renamed
    meta/info.json              the manifest, written last: its presence means that the export is finished
    meta/plan.json              while it runs: the request, and its time
    meta/hands.bin              while it runs: the hands in order, 16 bytes of game id and 1 of seat each
    meta/part-00000.json …      while it runs: the contents of a complete file

The hands are listed before the first row is read. So hands that end meanwhile change nothing, and a continued export
has the same bytes as an uninterrupted one. No path contains data of the log.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Self

from bothost.errors import UsageError
from bothost.locking import lock_if_possible
from bothost.store.reader import Key

_KEY = struct.Struct("16sB")
"""A hand in ``hands.bin``."""
_OTHER = "name a new or empty folder with --out"


class ExportFolder:
    """A claimed folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path / "data"
        self.meta = path / "meta"

    @classmethod
    @contextmanager
    def claim(cls, path: Path) -> Iterator[Self]:
        """Claim a folder that is new, empty, or holds an unfinished export. It is locked until the block ends.

        Raises UsageError for any other, so that no foreign file is overwritten and no link is followed.
        """
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise UsageError(f"{path} is not a folder", advice=_OTHER)
        path.mkdir(parents=True, exist_ok=True)
        claimed = cls(path)
        claimed._check_unfinished()
        if any(path.iterdir()) and not (claimed.meta / "lock").is_file():
            raise UsageError(f"{path} is not empty and does not hold an export", advice=_OTHER)
        for folder in (claimed.meta, claimed.data):
            if folder.is_symlink():
                raise UsageError(f"{folder} is a link", advice=_OTHER)
            folder.mkdir(exist_ok=True)
        lock = os.open(claimed.meta / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                lock_if_possible(lock, claimed.meta / "lock")
            except BlockingIOError as error:
                raise UsageError(f"another export is writing to {path} now") from error
            claimed._check_unfinished()  # again: the export that held the lock may have ended meanwhile
            yield claimed
        finally:
            os.close(lock)

    def _check_unfinished(self) -> None:
        if (self.meta / "info.json").exists():
            raise UsageError(f"{self.path} holds a finished export already", advice=_OTHER)

    # ------------------------------------------------------------------------------------------------------- the plan

    def plan(self) -> dict[str, Any] | None:
        """Return the plan of the unfinished export; None if there is none. Raises UsageError for a damaged one."""
        path = self.meta / "plan.json"
        try:
            return dict(json.loads(path.read_text())) if path.exists() else None
        except (ValueError, TypeError):
            raise UsageError(f"{path} is damaged: the export cannot be continued", advice=_OTHER) from None

    def write_plan(self, plan: dict[str, Any], hands: Iterable[Key]) -> None:
        """Write the list of hands, then the plan. Files of an export without a plan are of other hands."""
        for path in self.data.iterdir():
            path.unlink()
        with aside(self.meta / "hands.bin") as file:
            for game_id, seat in hands:
                file.write(_KEY.pack(game_id, seat))
        with aside(self.meta / "plan.json", 0o600) as file:
            file.write(readable(plan))

    def hands(self) -> int:
        """Return the number of listed hands."""
        return (self.meta / "hands.bin").stat().st_size // _KEY.size

    def keys(self, start: int, stop: int) -> Iterator[Key]:
        """The listed hands ``start`` … ``stop`` - 1."""
        with (self.meta / "hands.bin").open("rb") as file:
            file.seek(start * _KEY.size)
            return _KEY.iter_unpack(file.read((stop - start) * _KEY.size))

    # ------------------------------------------------------------------------------------------------------ the files

    def finished_part(self, number: int, suffix: str) -> dict[str, Any] | None:
        """Return the contents of a complete file, or None."""
        note = self.meta / f"part-{number:05d}.json"
        if note.exists() and (self.data / f"part-{number:05d}{suffix}").exists():
            return dict(json.loads(note.read_text()))
        return None

    def note_part(self, number: int, contents: dict[str, Any]) -> None:
        """Record that a file is complete, with its contents."""
        with aside(self.meta / f"part-{number:05d}.json") as file:
            file.write(readable(contents))

    def finish(self, info: dict[str, Any]) -> None:
        """Write the manifest, which appears once the files for resuming are gone: one holds the key of pseudonyms.

        A kill between the two lets the export start again.
        """
        with aside(self.meta / "info.json") as file:
            file.write(readable(info))
            file.flush()
            for path in (*self.meta.glob("part-*.json"), self.meta / "plan.json", self.meta / "hands.bin"):
                path.unlink()
        (self.meta / "lock").unlink()


@contextmanager
def aside(path: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """Write a file, or a new version of it. It has its name once it is complete and synced. An error removes it.

    Raises UsageError while another process writes it.
    """
    building = path.with_name(f".{path.name}.partial")
    handle = os.open(building, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        if not _locked(handle, building):
            raise UsageError(f"another process writes {path} now", advice="wait until it has ended")
    except BaseException:
        os.close(handle)
        raise
    os.ftruncate(handle, 0)  # what a killed process left
    try:
        with naming(path), os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        building.rename(path)
    except BaseException:
        building.unlink(missing_ok=True)
        raise


def _locked(handle: int, path: Path) -> bool:
    """Lock an open file, unless another process has locked it, or has given it another name meanwhile."""
    try:
        lock_if_possible(handle, path)
        return os.path.samestat(os.fstat(handle), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors of the system name a path: that of a full disk does not say which."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def readable(data: Any) -> bytes:
    """Encode data as JSON for people."""
    return json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False).encode() + b"\n"
