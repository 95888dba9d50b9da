"""Logging: structlog for bothost, the standard library for other packages, one pipeline for both.

A record is rendered to text (message, values, exception) and then passes :class:`Redactor`. Nothing else writes logs.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import io
import json
import logging
import logging.handlers
import os
import re
import sys
import threading
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TextIO
from urllib.parse import quote

REDACTED = "[redacted]"
_SHORTEST = 4
"""Shorter values are not redacted: they would match ordinary words."""
_WORD = r"token|password|passwd|secret|api[_-]?key|access[_-]?key|session[_-]?id"
_GAP = r"\s{0,8}+"
# Lobbies choose much of what is logged. Every pattern starts at a fixed word and uses possessive quantifiers, so
# matching takes linear time.
_PATTERNS = (
    # Authorization: Bearer abc · 'Authorization': 'Bearer abc' · cookies
    (
        rf"(?i)((?:proxy-)?authorization|set-cookie|cookie|x-api-key|x-auth-token)"
        rf"(\\?['\"]?{_GAP}[:=,]{_GAP}b?\\?['\"]?)[^'\"\r\n\\]++",
        r"\1\2",
    ),
    (r"(?i)\b(bearer|basic)(\s{1,8}+)(?!redacted)[A-Za-z0-9._~+/=-]{6,}+", r"\1\2"),
    # token=abc in URLs and console logs · "token": "abc" in JSON, also within a string · token='abc' in reprs
    (rf"(?i)({_WORD})(\\?['\"]?{_GAP}[:=]{_GAP}b?\\\")(?!\[redacted\])(?:[^\"\\]|\\(?!\"))*+", r"\1\2"),
    (rf"(?i)({_WORD})(\\?['\"]?{_GAP}[:=]{_GAP}b?\")(?!\[redacted\])(?:[^\"\\]|\\.)*+", r"\1\2"),
    (rf"(?i)({_WORD})(\\?['\"]?{_GAP}[:=]{_GAP}b?')(?!\[redacted\])(?:[^'\\]|\\.)*+", r"\1\2"),
    (rf"(?i)({_WORD}|\bauth)(=)(?!\[redacted\])[^\s&;,'\"<>)\]}}]++", r"\1\2"),
    # scheme://user:password@host
    (r"(://[^\s/:@'\"]{0,256}+)(:)(?!\[redacted\])[^\s/@'\"]{1,256}+(?=@)", r"\1\2"),
)
MAX_VALUE = 4096
"""Most characters of one logged value."""
MAX_TEXT = 256 * 1024
"""Most characters of one log line, with its traceback."""


class Redactor:
    """Replaces known secrets, and text that looks like a secret, with ``[redacted]``. Call it with a text."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: set[str] = set()
        self._values: re.Pattern[str] | None = None
        self._patterns = [(re.compile(pattern), keep) for pattern, keep in _PATTERNS]
        self.add(secrets)

    @classmethod
    def from_environment(cls, env: Mapping[str, str] = os.environ) -> Redactor:
        """Return a redactor that knows the secrets in bothost's environment variables."""
        names = [n for n in env if n.startswith("BOTHOST_") and n.endswith(("TOKEN", "TOKENS", "PASSWORD", "SECRET"))]
        return cls(part for n in names for part in (tokens_of(env[n]) if n.endswith("TOKENS") else [env[n]]))

    def add(self, secrets: Iterable[str]) -> None:
        """Redact these values as well, also as they are encoded in URLs, JSON and basic authentication."""
        for value in secrets:
            if len(value) >= _SHORTEST:
                encoded = base64.b64encode(value.encode()).decode()
                in_json = (json.dumps(value, ensure_ascii=ascii)[1:-1] for ascii in (True, False))
                self._known |= {value, quote(value, safe=""), *in_json, repr(value)[1:-1], encoded}
        if self._known:
            longest_first = sorted(self._known, key=len, reverse=True)
            self._values = re.compile("|".join(map(re.escape, longest_first)))

    def __call__(self, text: str) -> str:
        if self._values is not None:
            text = self._values.sub(REDACTED, text)
        for pattern, keep in self._patterns:
            text = pattern.sub(keep + REDACTED, text)
        return text


def tokens_of(accounts: str) -> list[str]:
    """The tokens of ``name:token,name:token``. Names are not redacted: a log must show who attacked."""
    return [entry.partition(":")[2] or entry for entry in accounts.split(",")]


class _Formatter(logging.Formatter):
    """Renders with another formatter, then redacts."""

    def __init__(self, inner: logging.Formatter, redact: Redactor) -> None:
        super().__init__()
        self._inner = inner
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return _shortened(self._redact(self._inner.format(record)), MAX_TEXT)


class _LogFile(logging.handlers.RotatingFileHandler, logging.handlers.WatchedFileHandler):
    """A file that rotates. A host, its standby, its pages and a lobby may share it: each follows when one rotates."""

    def __init__(self, path: Path, rotate_bytes: int, keep: int) -> None:
        super().__init__(path, "a", rotate_bytes, keep, encoding="utf-8")
        self.dev, self.ino = -1, -1

    def shouldRollover(self, record: logging.LogRecord) -> bool:
        self.reopenIfNeeded()
        return bool(super().shouldRollover(record))


def _quiet(handler: logging.Handler) -> logging.Handler:
    """Make a handler's failures not print the record, which is not redacted yet, and end nothing."""

    def handle_error(record: logging.LogRecord) -> None:
        kind = sys.exc_info()[0]
        with contextlib.suppress(OSError, ValueError):  # stderr itself may be gone
            sys.stderr.write(f"a log record of {record.name} could not be written: {kind.__name__ if kind else '?'}\n")

    handler.handleError = handle_error  # type: ignore[method-assign]
    return handler


def configure(
    *,
    level: str = "info",
    format: Literal["console", "json"] = "console",
    file: Path | None = None,
    rotate_bytes: int = 10 * 1024 * 1024,
    keep: int = 5,
    secrets: Iterable[str] = (),
    stream: TextIO | None = None,
    stream_level: str = "notset",
) -> Redactor:
    """Send all logs of this process to ``stream`` (default: stderr) and ``file``; return the redactor.

    ``stream`` gets only those of ``stream_level`` or worse. Warnings and uncaught exceptions are logged, too. Raises
    OSError if ``file`` cannot be opened.
    """
    structlog = _structlog()
    redact = Redactor.from_environment()
    redact.add(secrets)
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _printable,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    out = stream if stream is not None else sys.stderr
    handlers = [_quiet(logging.StreamHandler(out))]
    unicode = "utf" in (out.encoding or "utf-8").lower()  # a text in memory has no encoding
    handlers[0].setFormatter(_Formatter(_renderer(format, shared, colors=out.isatty(), unicode=unicode), redact))
    handlers[0].setLevel(stream_level.upper())
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        rotating = _LogFile(file, rotate_bytes, keep)
        rotating.setFormatter(_Formatter(_renderer("json", shared, colors=False), redact))
        handlers.append(_quiet(rotating))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level.upper())
    for noisy in ("httpx", "httpcore", "websockets", "uvicorn.access"):  # they log whole requests and frames
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))
    logging.captureWarnings(True)
    _log_uncaught_exceptions()
    return redact


def _structlog() -> ModuleType:
    """Import structlog without rich, which only its tracebacks use. Importing rich is a tenth of a host's start-up."""
    if "structlog" not in sys.modules and "rich" not in sys.modules:
        sys.modules["rich"] = None  # type: ignore[assignment]  # makes `import rich` fail
        try:
            return importlib.import_module("structlog")
        finally:
            del sys.modules["rich"]
    return importlib.import_module("structlog")


def _renderer(format: str, shared: list[Any], *, colors: bool, unicode: bool = True) -> logging.Formatter:
    """``unicode``: whether JSON may have characters outside of ASCII."""
    import structlog

    last: list[Any]
    if format == "json":
        render = structlog.processors.JSONRenderer(_json if unicode else json.dumps, default=str)
        last = [structlog.processors.format_exc_info, render]
    else:
        last = [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=_traceback)]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last]
    )


_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, ends of lines, and marks that reorder text."""


_UNPRINTABLE = re.compile(rf"{_CONTROL.pattern}|[\ud800-\udfff]")
"""Also halves of characters, which UTF-8 cannot write."""


def _json(value: Any, **options: Any) -> str:
    """JSON that shows names as they are written, and escapes what controls a terminal, also in nested values."""
    text = json.dumps(value, ensure_ascii=False, **options)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _printable(logger: Any, name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape and shorten values: text from a lobby must not forge log lines, control the terminal or fill the log.

    An error without advice logs none.
    """
    if event.get("advice") == "":
        del event["advice"]
    for key, value in event.items():
        if isinstance(value, (str, bytes, list, tuple, dict)):
            text = value if isinstance(value, str) else repr(value)
            if len(text) > MAX_VALUE:
                event[key] = value = _shortened(text, MAX_VALUE)
        if isinstance(value, str) and _CONTROL.search(value):
            event[key] = _CONTROL.sub(_escaped, value)
    return event


def _traceback(stream: TextIO, error: Any) -> None:
    """Write a traceback, escaped as values are but for its lines. The one of rich would show local variables."""
    import structlog

    plain = io.StringIO()
    structlog.dev.plain_traceback(plain, error)
    stream.write("\n".join(_CONTROL.sub(_escaped, line) for line in plain.getvalue().split("\n")))


def _escaped(control: re.Match[str]) -> str:
    return ascii(control[0])[1:-1]


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"


def _log_uncaught_exceptions() -> None:
    log = logging.getLogger("bothost")

    def of_process(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            log.critical("unexpected error", exc_info=(kind, error, trace))

    def of_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
            name = args.thread.name if args.thread else "?"
            log.error("thread %s died", name, exc_info=(args.exc_type, args.exc_value, args.exc_traceback))

    sys.excepthook = of_process
    threading.excepthook = of_thread
