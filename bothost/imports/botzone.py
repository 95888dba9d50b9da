"""Botzone's records: match logs (JSON), logs of its mahjong judge, and the text of its mahjong competitions.

- A *match log* is the download of a match's page: ``[{"output": {"command": "request", "content": {"0": …}}},
  {"0": {"response": …}}, …]``, alone or as ``logs`` of an object with ``players``, ``initdata`` and ``scores``.
- A *judge log* of mahjong is an object with ``wall``, ``prevalent_wind`` and ``steps``: the same requests and answers.
- The *text* of the competitions begins with ``Match ID``; each line is one player's action (``mahjong_text``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from bothost.imports import mahjong_text, turns
from bothost.imports.files import UnreadableFile, document, lines
from bothost.imports.record import BadRecord, HandRecord, ReadRecord, Records
from bothost.lobbies.frames import NOT_JSON, plain_text
from bothost.messages import PlayerInfo

_ID = re.compile(r"[!-~]{1,200}")


def read(path: Path) -> Records:
    """Yield the matches of a file in any of the three forms."""
    start = _first_lines(path)
    if start and start[0].startswith("Match"):
        yield from mahjong_text.read(lines(path))
    elif not (start and _is_json(start[0])) and (whole := _json(document(path))) is not None:
        yield from _found(1, whole)
    elif start and not any(map(_is_json, start)):
        yield from _found(1, None)
    else:  # a match on each line, of which the first may be damaged
        for number, text in lines(path):
            yield from _found(number, _json(text))


def _first_lines(path: Path) -> list[str]:
    """The first two lines, or those of them that can be read: a document may be one line that is too long."""
    found: list[str] = []
    with suppress(UnreadableFile):
        found.extend(text for _, text in islice(lines(path), 2))
    return found


def _is_json(text: str) -> bool:
    return _json(text) is not None


def _json(text: str | bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except NOT_JSON:
        return None


def _found(line: int, value: Any) -> Iterator[ReadRecord]:
    """Yield the matches of one JSON value: one match, or a list. None: it is not JSON."""
    if value is None:
        yield ReadRecord(line, None, "this is neither JSON nor the text of a competition")
        return
    several = isinstance(value, list) and not any(isinstance(each, dict) and "output" in each for each in value)
    for each in value if several and value else [value]:
        try:
            yield ReadRecord(line, match(each))
        except BadRecord as error:
            yield ReadRecord(line, None, str(error))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            yield ReadRecord(line, None, f"this is not a match of Botzone: {type(error).__name__}: {error}")


def match(value: Any) -> HandRecord:
    """Convert a match from decoded JSON. Raises BadRecord."""
    if isinstance(value, list):
        value = {"logs": value}
    if not isinstance(value, dict):
        raise BadRecord("this is neither a match log nor a judge log of Botzone")
    if "steps" in value:
        return _judge_log(value)
    logs = value.get("logs", value.get("log"))
    if isinstance(logs, str):
        logs = _json(logs)
    if not isinstance(logs, list) or not logs:
        raise BadRecord("the match has no `logs`")
    asked, scores = _turns(logs)
    made = turns.record(
        asked, initdata=_initdata(value.get("initdata")), scores=_numbers(value.get("scores")) or scores
    )
    source = str(value.get("_id") or value.get("id") or "")
    if source and not _ID.fullmatch(source):
        raise BadRecord("the match has an id that is not one word")
    return msgspec.structs.replace(
        made, source=source, players=_players(value.get("players")), started_us=_started(value, source)
    )


def _turns(logs: list[Any]) -> tuple[list[turns.Turn], tuple[float, ...] | None]:
    """Requests with their responses, and the scores at the end."""
    asked: list[turns.Turn] = []
    scores: tuple[float, ...] | None = None
    for number, entry in enumerate(logs):
        if not isinstance(entry, dict):
            raise BadRecord(f"entry {number} of the log is not an object")
        output = entry.get("output")
        if isinstance(output, dict):
            content = output.get("content")
            if output.get("command") == "finish":
                scores = _numbers(content)
            elif isinstance(content, dict):
                asked.append(turns.Turn({int(seat): _decoded(request) for seat, request in content.items()}, {}))
        elif asked:
            for seat, answer in entry.items():
                if isinstance(answer, dict) and seat.isdigit():
                    verdict = answer.get("verdict", "OK")
                    if verdict not in ("OK", "", None):
                        raise BadRecord(f"seat {seat} did not answer in entry {number}: {str(verdict)[:40]}")
                    asked[-1].responses[int(seat)] = _decoded(answer.get("response"))
    return asked, scores


def _judge_log(value: dict[str, Any]) -> HandRecord:
    asked: list[turns.Turn] = []
    scores: tuple[float, ...] | None = None
    for step in value["steps"]:
        if "answers" in step:
            asked[-1].responses.update(enumerate(step["answers"]))
        elif step["judge"] == "request":
            asked.append(turns.Turn(dict(enumerate(step["content"])), {}))
        else:
            scores = _numbers(step["content"])
    result = value.get("result") or {}
    return turns.record(asked, initdata={"walltiles": value["wall"]}, scores=scores or _numbers(result.get("score")))


def _decoded(message: Any) -> Any:
    """Decode a request or response that is JSON in a string."""
    if isinstance(message, str) and message[:1] in "{[":
        inner = _json(message)
        return message if inner is None else inner
    return message


def _initdata(value: Any) -> dict[str, Any]:
    value = _json(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) else {}


def _numbers(value: Any) -> tuple[float, ...] | None:
    """Scores by seat: a list, or an object with the seats as keys."""
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value, key=int)]
    if not isinstance(value, list) or not value:
        return None
    return tuple(float(number) for number in value)


def _players(value: Any) -> tuple[PlayerInfo, ...]:
    """The players with an id or a name."""
    found = []
    for seat, who in enumerate(value if isinstance(value, list) else ()):
        named = who
        bot: bool | None = None
        if isinstance(who, dict):
            bot = who["type"] == "bot" if "type" in who else "bot" in who
            named = who.get("bot") or who.get("user") or who
        shown = ""
        if isinstance(named, dict):
            shown = str(named.get("name") or "")
            shown = shown if shown.isprintable() else plain_text(shown)  # such as an emoji of several characters
            named = named.get("_id") or named.get("id") or shown
        if isinstance(named, str) and named and len(named) <= 200:
            found.append(PlayerInfo(named, seat, (shown or named)[:200], bot))
    return tuple(found)


def _started(value: dict[str, Any], source: str) -> int | None:
    """The creation time of the match: its own field, or the first four bytes of its MongoDB id."""
    for name in ("create_time", "createTime", "time"):
        created = value.get(name)
        if isinstance(created, int | float) and created > 0:
            return int(created * (1e6 if created < 1e11 else 1e3))
    if re.fullmatch(r"[0-9a-f]{24}", source):
        return int(source[:8], 16) * 1_000_000
    return None
