"""Read files of records: plain or gzip, UTF-8, line by line, with size limits."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

MAX_LINE = 16 * 2**20
"""Most bytes of one line."""
MAX_DOCUMENT = 256 * 2**20
"""Most bytes of a file with one JSON document."""
GZIP = b"\x1f\x8b"
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)


class UnreadableFile(Exception):
    """A file cannot be read from this line on."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the non-empty lines with their numbers, from 1. Raises UnreadableFile."""
    number = 0
    try:
        with _opened(path) as file:
            while raw := file.readline(MAX_LINE + 1):
                number += 1
                if len(raw) > MAX_LINE:
                    raise UnreadableFile(number, f"a line of more than {MAX_LINE >> 20} MiB")
                if text := raw.decode("utf-8-sig").strip():
                    yield number, text
    except _DAMAGED as error:
        raise UnreadableFile(number + 1, f"the compressed file is damaged: {error}") from None
    except UnicodeDecodeError:
        raise UnreadableFile(number, "this is not UTF-8 text") from None


def document(path: Path) -> bytes:
    """Read the whole file. Raises UnreadableFile."""
    try:
        with _opened(path) as file:
            data = file.read(MAX_DOCUMENT + 1)
    except _DAMAGED as error:
        raise UnreadableFile(1, f"the compressed file is damaged: {error}") from None
    if len(data) > MAX_DOCUMENT:
        raise UnreadableFile(1, f"it holds more than {MAX_DOCUMENT >> 20} MiB; write one match per line instead")
    return data.removeprefix(codecs.BOM_UTF8)


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    return gzip.open(path) if packed else path.open("rb")  # type: ignore[return-value]
