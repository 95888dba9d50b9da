"""Find the line numbers of keys in a TOML file, for error messages. tomllib does not report them.

It finds headers and keys at the start of lines. For other keys it returns the line of the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = r"[A-Za-z0-9_-]+"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*\]")
_KEY = re.compile(rf"\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")


def line_numbers(text: str) -> dict[str, int]:
    """Return dotted key with indices (``lobby[0].account[1].tables``) → line number, from 1."""
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            table = _enter(header[2], repeated=header[1] == "[[", counts=counts)
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            name = re.sub(r"\s", "", key[1])
            found.setdefault(f"{table}.{name}" if table else name, number)
    return found


def _enter(name: str, *, repeated: bool, counts: dict[str, int]) -> str:
    """Return the path of a header. A repeated table on the way means the last one with that name."""
    path = ""
    parts = [part.strip() for part in name.split(".")]
    for place, part in enumerate(parts):
        path = f"{path}.{part}" if path else part
        if repeated and place == len(parts) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = f"{path}[{counts[path]}]"
    return path


def find_line(lines: Mapping[str, int], key: str) -> int | None:
    """Return the line of ``key`` or of the innermost enclosing table or key; None if there is none."""
    while key:
        if key in lines:
            return lines[key]
        key = re.sub(r"(\.[^.\[\]]*|\[\d+\]|^[^.\[\]]*)$", "", key)
    return None
