"""Logs: one pipe for structlog and the standard library, and no secret gets through it."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest
import structlog

from bothost import logs

PLANTED = "Planted/Token+12"


def leak_everywhere() -> None:
    log = structlog.get_logger("bothost.host")
    log.info("connecting", url=f"wss://lobby/ws?token={PLANTED}&x=1", token=PLANTED, nested={"a": [PLANTED]})
    logging.getLogger("websockets").warning("> Authorization: Bearer %s", PLANTED)
    logging.getLogger("other").error("said %r to %s", PLANTED, {"password": PLANTED})
    try:
        raise ValueError(f"cannot log in with {PLANTED}")
    except ValueError:
        log.exception("failed")
        logging.getLogger("other").exception("failed too")
    warnings.warn(f"{PLANTED} is old", stacklevel=1)
    thread = threading.Thread(target=lambda: (_ for _ in ()).throw(RuntimeError(PLANTED)))
    thread.start()
    thread.join()
    try:
        raise RuntimeError(f"last words {PLANTED}")
    except RuntimeError as error:
        sys.excepthook(RuntimeError, error, error.__traceback__)


@pytest.mark.parametrize("style", ["console", "json"])
@pytest.mark.filterwarnings("default")
def test_a_planted_token_is_nowhere(tmp_path: Path, style: str, capsys: pytest.CaptureFixture[str]) -> None:
    stream, file = io.StringIO(), tmp_path / "logs" / "bothost.log"
    logs.configure(format=style, stream=stream, file=file, secrets=[PLANTED])  # type: ignore[arg-type]
    leak_everywhere()
    printed = capsys.readouterr()
    everything = stream.getvalue() + file.read_text() + printed.out + printed.err
    assert PLANTED not in everything and "Planted" not in everything
    assert stream.getvalue().count(logs.REDACTED) >= 8
    assert "RuntimeError" in stream.getvalue() and "x=1" in stream.getvalue()
    assert all(json.loads(line)["event"] for line in file.read_text().splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "GET /ws?token=abcdefgh12&x=1",
        "access_token=abcdefgh12",
        "Authorization: Bearer abcdefgh12",
        "{'authorization': 'Bearer abcdefgh12'}",
        "b'Authorization', b'Bearer abcdefgh12'",
        '{"token": "abcdefgh12", "x": 1}',
        "{'token': 'abcdefgh12'}",
        'token="abcdefgh12"',
        '{\\"password\\": \\"abcdefgh12\\"}',
        "Cookie: sid=abcdefgh12; other=abcdefgh12",
        "postgresql://me:abcdefgh12@host/db",
        "BOTHOST_HOME_TOKEN=abcdefgh12",
        "api_key: 'abcdefgh12'",
    ],
)
def test_what_looks_like_a_secret_is_redacted_unknown_or_not(text: str) -> None:
    redacted = logs.Redactor()(text)
    assert "abcdefgh12" not in redacted and logs.REDACTED in redacted
    assert logs.Redactor()(redacted) == redacted


@pytest.mark.parametrize("text", ["3 tokens left", "seat 0 plays 333K", "author: me", "http://h:80/p", "a = b"])
def test_ordinary_text_stays(text: str) -> None:
    assert logs.Redactor(["abc"])(text) == text


PIECES = (
    "a-",
    "token=",
    "token='",
    'token": "',
    "x://",
    "a",
    "://a:",
    "authorization: ",
    "bearer ",
    "\\",
    "pass-word_",
)


@pytest.mark.parametrize("piece", PIECES)
def test_the_time_of_redaction_grows_linearly(piece: str) -> None:
    """A lobby's error text once froze the host for a minute. Ten times the text takes about ten times as long."""
    redact = logs.Redactor(["planted-secret"])

    def seconds(length: int) -> float:
        text = (piece * length)[:length]
        took = []
        for _ in range(3):
            began = time.process_time()
            redact(text)
            took.append(time.process_time() - began)
        return min(took)

    assert seconds(100_000) < 40 * max(seconds(10_000), 1e-4)


def test_long_values_are_cut(tmp_path: Path) -> None:
    stream = io.StringIO()
    logs.configure(format="json", stream=stream)
    structlog.get_logger("bothost.test").info("came", reason="x" * 1_000_000, frame=b"y" * 1_000_000)
    line = stream.getvalue()
    assert len(line) < 3 * logs.MAX_VALUE
    assert "995904 more characters" in line


def test_a_known_secret_is_found_as_it_is_encoded() -> None:
    secret = 'se"cr/et é'
    redact = logs.Redactor([secret])
    in_json = json.dumps(secret), json.dumps(secret, ensure_ascii=False)
    for shape in (secret, "se%22cr%2Fet%20%C3%A9", *in_json, repr(secret)):
        assert "cr" not in redact(f"<{shape}>"), shape


def test_secrets_in_the_environment_are_known() -> None:
    redact = logs.Redactor.from_environment({"BOTHOST_LOBBY_TOKENS": "ada:aaaa1111,bob:bbbb2222", "HOME": "/root"})
    assert redact("got bbbb2222 from /root") == "got [redacted] from /root"


def test_a_lobby_cannot_forge_log_lines() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    structlog.get_logger("x").info("said", text="hello\n2026 [error] forged \x1b[2J \u202edegrof")
    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue() and "\u202e" not in stream.getvalue()


def test_names_of_any_language_can_be_read_in_json(tmp_path: Path) -> None:
    stream, file = io.StringIO(), tmp_path / "b.log"
    logs.configure(format="json", stream=stream, file=file)
    structlog.get_logger("x").info("met", player="小明", others=["José", {"नेहा": 1}], path=Path("é"))
    for line in (stream.getvalue(), file.read_text(encoding="utf-8")):
        assert "小明" in line and "José" in line and "नेहा" in line and "é" in line
        assert json.loads(line)["others"] == ["José", {"नेहा": 1}]


def test_json_escapes_what_controls_a_terminal_or_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "b.log"
    logs.configure(stream=io.StringIO(), file=file)
    bad = "\n\x00\x1b\x7f\x9b\u202e\u2028\ud800"
    try:
        raise ValueError(bad)
    except ValueError:
        structlog.get_logger("x").exception("failed", text=bad, nested=[{bad: bad}])
    (line,) = file.read_bytes().removesuffix(b"\n").split(b"\n")
    assert all(character.isprintable() for character in line.decode())
    found = json.loads(line)
    assert found["nested"] == [{bad: bad}] and found["exception"].endswith(f"ValueError: {bad}")


def test_json_for_a_stream_that_cannot_write_a_name_is_json_all_the_same() -> None:
    for encoding, written in (("ascii", b"\\u00e9"), ("latin-1", b"\\u00e9"), ("utf-8", "é".encode())):
        stream = io.TextIOWrapper(raw := io.BytesIO(), encoding, "backslashreplace")
        logs.configure(format="json", stream=stream)
        structlog.get_logger("x").info("met", player="é小")
        stream.flush()
        assert written in raw.getvalue()
        assert json.loads(raw.getvalue())["player"] == "é小"


def test_what_an_exception_quotes_does_not_control_the_terminal() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    try:
        raise ValueError("what a lobby said: \x1b[2J \u202e")
    except ValueError:
        logging.getLogger("bothost").exception("failed")
    written = stream.getvalue()
    assert "\x1b" not in written and "\u202e" not in written
    assert written.endswith("\nValueError: what a lobby said: \\x1b[2J \\u202e\n")


def test_a_record_that_cannot_be_rendered_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    logs.configure(stream=stream, secrets=[PLANTED])
    logging.getLogger("x").info("%d", PLANTED)
    assert PLANTED not in stream.getvalue() + capsys.readouterr().err


def test_an_error_without_advice_logs_none() -> None:
    stream = io.StringIO()
    logs.configure(stream=stream)
    structlog.get_logger("x").error("away", advice="")
    structlog.get_logger("x").error("away", advice="wait")
    assert [line.endswith("advice=wait") for line in stream.getvalue().splitlines()] == [False, True]
    assert stream.getvalue().count("advice") == 1


def test_a_stream_may_get_less_than_the_file(tmp_path: Path) -> None:
    stream, file = io.StringIO(), tmp_path / "b.log"
    logs.configure(stream=stream, file=file, stream_level="error")
    log = structlog.get_logger("bothost.test")
    log.warning("late")
    log.error("lost")
    assert "late" not in stream.getvalue() and "lost" in stream.getvalue()
    assert [json.loads(line)["event"] for line in file.read_text().splitlines()] == ["late", "lost"]


def test_who_reads_stderr_may_go_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in ``bothost run 2>&1 | tee`` when tee is killed: no line may end the host, and the file still gets each."""

    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Broken())
    file = tmp_path / "b.log"
    logs.configure(file=file)
    structlog.get_logger("bothost.test").warning("draining")
    assert json.loads(file.read_text())["event"] == "draining"


def test_files_rotate(tmp_path: Path) -> None:
    file = tmp_path / "b.log"
    logs.configure(stream=io.StringIO(), file=file, rotate_bytes=4096, keep=2)
    for number in range(200):
        logging.getLogger("x").warning("line %s", number)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.log", "b.log.1", "b.log.2"]


def test_a_file_that_another_process_rotated_is_followed(tmp_path: Path) -> None:
    """A host, its standby and its pages write to one file."""
    file = tmp_path / "b.log"
    logs.configure(stream=io.StringIO(), file=file)
    logging.getLogger("x").warning("first")
    file.rename(tmp_path / "b.log.1")
    logging.getLogger("x").warning("second")
    logging.getLogger("x").warning("third")
    assert [path.read_text().count("\n") for path in (tmp_path / "b.log.1", file)] == [1, 2]
