"""Append-only files that hold rows while the database is unavailable. Later they are replayed in order.

The spool has a folder for each host name, with one slot per writing process: ``0/``, ``1/``, …. The process holds a
file lock on its slot. A process that opens the spool takes its host's first free slot, and all slots with rows that
dead processes left. A slot holds segments
``0000000000000001.spool``, …. A segment is a magic line, then frames::

    length  u32 little-endian   of the payload
    crc     u32 little-endian   CRC-32 of the payload
    payload                     msgpack: the first frame {table: [column, …]}, all others [table, [row, …]]

A crash may truncate the last frame of a segment, which was never acknowledged. If intact frames follow, it is damage:
they are read, and the segment is set aside for a person.
``append`` returns when the operating system has the bytes, so they survive a kill of the process; with ``sync`` they
are on disk. A segment is deleted once all its rows are committed to the database. If the process is killed in between,
it is replayed again, which does nothing because of the primary keys.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bothost.errors import StoreError

MAGIC = b"bothost spool 1\n"
SEGMENT_BYTES = 4 << 20
"""A segment is replayed in one transaction, so its size limits how long new rows wait."""
FRAME_ROWS = 500
HEAD_BYTES = 8
ROWS_BEGIN = b"\x92"
"""First byte of the payload of rows: a msgpack array of two."""

Rows = Sequence[Sequence[Any]]
Frame = tuple[str, tuple[str, ...], list[list[Any]]]
"""Table, columns, rows."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Slot:
    """One process's part of the spool, held while this object is open."""

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder = folder
        self._lock = lock

    def segments(self) -> list[Path]:
        """The segments, oldest first."""
        return sorted(self.folder.glob("*.spool"))

    def close(self) -> None:
        os.close(self._lock)


def take_slots(folder: Path, others: Sequence[Path] = ()) -> list[Slot]:
    """Take the first free slot of a host's spool, and all slots with rows whose process has ended.

    The first one is for the caller's own rows. The others may lie in the folder of another host: a host that was
    renamed, as a container without a fixed name is, takes over its rows. They may also lie in the spools ``others``.
    Raises OSError if a folder is not writable, or its file system has no locks.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    while (own := _take(folder / str(number))) is None:
        number += 1
    left = {path.parent for spool in (folder.parent, *others) for path in spool.glob("*/*/*.spool")} - {own.folder}
    return [own, *(slot for path in sorted(left) if (slot := _take(path)) is not None)]


def _take(folder: Path) -> Slot | None:
    folder.mkdir(exist_ok=True)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # another process holds it
        os.close(lock)
        return None
    except OSError:
        os.close(lock)
        raise
    return Slot(folder, lock)


class Spool:
    """The spool of one process. Not thread-safe: it belongs to the writer thread.

    ``rows`` is the number of rows in the spool, including those of earlier processes.
    """

    def __init__(
        self,
        folder: Path,
        columns: Mapping[str, tuple[str, ...]],
        *,
        others: Sequence[Path] = (),
        sync: bool = False,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._columns = columns
        self._sync = sync
        self._segment_bytes = segment_bytes
        self._slots = take_slots(folder, others)
        self._own = self._slots[0]
        self._file: int | None = None
        self._path: Path | None = None
        self._size = 0
        known = [path.stem for path in self._own.folder.glob("*.*")]  # also those that were set aside
        self._next = 1 + max((int(stem) for stem in known if stem.isdecimal()), default=0)
        self.rows = sum(_count(path) for path in self._waiting())

    def append(self, groups: Mapping[str, Rows]) -> None:
        """Append the rows of each table, all or none.

        Raises OSError if the disk is full, and TypeError or ValueError for values that msgpack cannot encode.
        """
        frames = bytearray()
        for table, rows in groups.items():
            for start in range(0, len(rows), FRAME_ROWS):
                frames += _frame([table, rows[start : start + FRAME_ROWS]])
        if self._file is None or self._size + len(frames) > self._segment_bytes:
            self._open_segment()
        assert self._file is not None
        try:
            _write_all(self._file, frames)
            if self._sync:
                os.fdatasync(self._file)
        except OSError:
            self._cut_back()
            raise
        self._size += len(frames)
        self.rows += sum(map(len, groups.values()))

    def oldest(self) -> Path | None:
        """Return the segment to replay next; None if there is none. ``drop`` it once its rows are committed."""
        waiting = self._waiting()
        if waiting and waiting[0] == self._path:
            self.seal()
        return waiting[0] if waiting else None

    def frames(self, path: Path) -> Iterator[Frame]:
        """Yield the frames of a segment.

        Raises SpoolDamaged, also for unknown tables and columns, because their names go into SQL statements.
        """
        for table, columns, rows in frames_of(path):
            if not set(columns) <= set(self._columns.get(table, ())):
                raise SpoolDamaged(f"{path} holds rows with unknown columns of {table!r}")
            yield table, columns, rows

    def drop(self, path: Path, rows: int) -> None:
        """Delete a segment; ``rows`` of it are in the database now."""
        path.unlink()
        self.rows = max(0, self.rows - rows)

    def set_aside(self, path: Path, rows: int) -> None:
        """Rename a damaged segment so that a person can look at it; ``rows`` of it are in the database now."""
        path.rename(path.with_suffix(".damaged"))
        self.rows = max(0, self.rows - rows)

    def keep_rejected(self, lines: Sequence[str]) -> None:
        """Append rows that the database refuses, as text, to ``rejected.log`` in the slot."""
        with (self._own.folder / "rejected.log").open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(line + "\n" for line in lines)

    def seal(self) -> None:
        """End the segment that is being written."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def close(self) -> None:
        """Release the slots. The rows stay for the next process."""
        self.seal()
        for slot in self._slots:
            slot.close()

    def _waiting(self) -> list[Path]:
        """Segments in the order of replay: leftovers of other processes, which are older, before our own."""
        return [path for slot in (*self._slots[1:], self._own) for path in slot.segments()]

    def _open_segment(self) -> None:
        self.seal()
        path = self._own.folder / f"{self._next:016d}.spool"
        self._next += 1  # also after a failure: a disk that lets no file be removed leaves this one behind
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            head = MAGIC + _frame({table: list(columns) for table, columns in self._columns.items()})
            _write_all(file, head)
        except OSError:
            os.close(file)
            with contextlib.suppress(OSError):
                path.unlink()
            raise
        self._file, self._path, self._size = file, path, len(head)
        if self._sync:
            _sync_folder(self._own.folder)

    def _cut_back(self) -> None:
        """After a failed write, remove the bytes that were not acknowledged. If that fails too, end the segment."""
        assert self._file is not None
        try:
            os.ftruncate(self._file, self._size)
        except OSError:
            self.seal()


class SpoolDamaged(StoreError):
    """Bytes of a segment have changed, or it holds no frames."""


def frames_of(path: Path) -> Iterator[Frame]:
    """Yield the frames of a segment. A truncated tail is skipped.

    Raises SpoolDamaged for any other damage, after all frames that are intact.
    """
    data = path.read_bytes()
    if data[: len(MAGIC)] != MAGIC and not MAGIC.startswith(data):
        raise SpoolDamaged(f"{path} is not a spool segment")
    columns: dict[str, list[str]] | None = None
    damaged: int | None = None
    at = len(MAGIC)
    while at < len(data):
        payload = _payload(data, at)
        if payload is None:
            following = _next_frame(data, at + 1)
            if following is None and _is_cut(data, at):
                break
            damaged = at if damaged is None else damaged
            if following is None or columns is None:
                break
            at = following
            continue
        try:
            content = _decode(payload)
            if columns is None:
                columns = content
            else:
                table, rows = content
                yield table, tuple(columns[table]), rows
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            raise SpoolDamaged(f"{path} holds an invalid frame at byte {at}: {error}") from error
        at += HEAD_BYTES + len(payload)
    if damaged is not None:
        raise SpoolDamaged(f"{path} is damaged at byte {damaged}")


def _count(path: Path) -> int:
    rows = 0
    with contextlib.suppress(SpoolDamaged):
        for _, _, frame in frames_of(path):
            rows += len(frame)
    return rows


def _frame(content: object) -> bytes:
    payload = _encode(content)
    return len(payload).to_bytes(4, "little") + zlib.crc32(payload).to_bytes(4, "little") + payload


def _payload(data: bytes, at: int) -> bytes | None:
    """The payload of the frame that begins at this byte; None if no intact frame does.

    Zeros, which a file system may put in place of lost pages, are no frame, although the checksum of no byte is 0.
    """
    if _is_cut(data, at):
        return None
    payload = data[at + HEAD_BYTES : at + HEAD_BYTES + _u32(data, at)]
    return payload if payload and zlib.crc32(payload) == _u32(data, at + 4) else None


def _is_cut(data: bytes, at: int) -> bool:
    """Whether the segment ends before the frame that begins at this byte, by its length."""
    return at + HEAD_BYTES + _u32(data, at) > len(data)


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _next_frame(data: bytes, start: int) -> int | None:
    """Where the next intact frame with rows begins; None: there is none, as behind a truncated frame."""
    at = data.find(ROWS_BEGIN, start + HEAD_BYTES)
    while at >= 0 and _payload(data, at - HEAD_BYTES) is None:
        at = data.find(ROWS_BEGIN, at + 1)
    return at - HEAD_BYTES if at >= 0 else None


def _write_all(file: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
