"""Read files of records: plain or gzip, UTF-8, line by line, with size limits."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from bothost.errors import UsageError

MAX_LINE = 16 * 2**20
"""Most bytes of one line."""
MAX_DOCUMENT = 256 * 2**20
"""Most bytes of a file with one JSON document."""
GZIP = b"\x1f\x8b"


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the non-empty lines with their numbers, from 1. Raises UsageError if the file cannot be read."""
    number = 0
    try:
        with _opened(path) as file:
            while raw := file.readline(MAX_LINE + 1):
                number += 1
                if len(raw) > MAX_LINE:
                    raise UsageError(f"{path}, line {number}: a line of more than {MAX_LINE >> 20} MiB")
                if text := raw.decode().strip():
                    yield number, text
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{path}: the compressed file is damaged after line {number}: {error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}, line {number}: this is not UTF-8 text") from None


def document(path: Path) -> bytes:
    """Read the whole file. Raises UsageError."""
    try:
        with _opened(path) as file:
            data = file.read(MAX_DOCUMENT + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{path}: the compressed file is damaged: {error}") from None
    if len(data) > MAX_DOCUMENT:
        raise UsageError(f"{path} holds more than {MAX_DOCUMENT >> 20} MiB", advice="write one match per line instead")
    return data


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    return gzip.open(path) if packed else path.open("rb")  # type: ignore[return-value]
