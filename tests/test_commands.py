"""Every command of the README and the guide, in the order of the pages, in a fresh clone (long test).

A fenced block without a language holds commands, a line each. A comment in front of it says what differs in the test:

    <!-- test
    make run: stop when 5 hands
    bothost train: as bothost train phase-ppo --minutes 0.1
    -->

Each line (or each part between ``|``) is the beginning of a command and what to do with it:

- ``skip REASON``;
- ``as COMMAND``: run this command instead, a quicker one for instance;
- ``first COMMAND``: run this command before it;
- ``beside COMMAND``: start this command before it, and let it run until the page ends;
- ``stop when PATTERN``: press Ctrl-C when it has printed that; it must end soon, and without a traceback;
- ``in the background``: let it run until the page ends;
- ``may exit N``: the exit code N is fine, too.

What a command exports holds until the page ends. HAND and DECISION in a command stand for ids of the log. A block
behind ``<!-- file: NAME -->`` is written to that file.

A block ``text`` behind a comment ``<!-- output -->`` shows what the last command prints. A line ``…`` stands for any
lines, and ``…`` within a line for any text. ``<!-- output; vary: 1,234, deep-mc -->`` names pieces that may differ: a
number stands for any number, a word for any word. ``vary: numbers`` lets all numbers differ. Behind
``<!-- output like: PATTERN -->`` every line shown has this form, and the command prints such a line.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide"
PAGES = [
    "README.md",
    *(f"docs/guide/{name}" for name in re.findall(r"\]\((\S+\.md)\) \|$", (GUIDE / "index.md").read_text(), re.M)),
]
VERBS = "skip|as|first|beside|stop when|in the background|may exit"
RULE = re.compile(rf"(?P<command>.+?): (?P<verb>{VERBS})\b ?(?P<rest>.*)")
BLOCK = re.compile(
    r"(?:<!-- (?P<note>(?:test|output|file)\b.*?)-->\n+)?^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.M | re.S
)
NUMBER, WORD = r"[-+]?\d[\d,.]*", r"[^\s,;]+"
MOST_S = 1800.0


class Rule(msgspec.Struct, frozen=True):
    """What the test does with the commands that begin so."""

    command: str
    verb: str
    rest: str


class Command(msgspec.Struct):
    """A command of a page, or a file that it shows."""

    line: str
    rules: list[Rule]
    output: str | None = None
    """What the page shows of its output."""
    vary: str = ""
    like: str = ""
    file: str = ""
    """Name of the file; then ``line`` is its text."""

    def rule(self, verb: str) -> str | None:
        """What the page says about it."""
        return next(
            (rule.rest for rule in self.rules if rule.verb == verb and self.line.startswith(rule.command)), None
        )


def commands(text: str) -> list[Command]:
    """The commands of a page, in order."""
    found: list[Command] = []
    for block in BLOCK.finditer(text):
        note, body = block["note"] or "", block["body"]
        if note.startswith("file:"):
            found.append(Command(body, [], file=note.removeprefix("file:").strip()))
        elif note.startswith("output"):
            found[-1].output, found[-1].vary = body, note.partition("vary:")[2].strip()
            found[-1].like = note.partition("like:")[2].strip()
            assert all(re.fullmatch(found[-1].like, line) for line in body.splitlines() if found[-1].like), body
        elif not block["language"]:
            rules = [
                RULE.fullmatch(line.strip(" :"))
                for line in re.split(r"\n|\|", note.removeprefix("test"))
                if line.strip(": ")
            ]
            assert None not in rules, f"not understood: {note}"
            known = [Rule(**rule.groupdict()) for rule in rules if rule is not None]
            lines = body.replace("\\\n", " ").splitlines()
            block_commands = [Command(line, known) for line in lines if line.strip()]
            for rule in known:
                assert any(one.line.startswith(rule.command) for one in block_commands), f"no such command: {rule}"
            found += block_commands
    return found


def expected(shown: str, vary: str) -> re.Pattern[str]:
    """What the output must look like."""
    words = [] if vary in ("", "numbers") else [word.strip() for word in re.split(r", ", vary)]
    lines = []
    for line in shown.rstrip().splitlines():
        if line.strip() == "…":
            lines.append(r"(?:.*\n)*?")
            continue
        pattern = r"\s+".join(re.escape(part) for part in line.split())
        pattern = pattern.replace("…", ".*")
        for word in words:
            kind = NUMBER if re.fullmatch(NUMBER, word) else WORD
            pattern = pattern.replace(re.escape(word), kind)
        if vary == "numbers":
            pattern = re.sub(r"(?:\\[-+])?\d(?:[\d,]|\\\.\d)*", lambda _: NUMBER, pattern)
        lines.append(rf"\s*{pattern}\s*?\n")
    return re.compile("".join(lines), re.M)


@contextlib.contextmanager
def killed_after(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    """Kills a process and its children if the block takes longer."""
    timer = threading.Timer(seconds, lambda: os.killpg(process.pid, signal.SIGKILL))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Shell:
    """Runs commands in a clone as a person would, after `. .venv/bin/activate`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("BOTHOST_", "VIRTUAL_ENV"))}
        self.environment = kept | {"PATH": f"{folder / '.venv' / 'bin'}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
        self.exported: dict[str, str] = {}
        self.background: list[subprocess.Popen[bytes]] = []

    def run(self, command: Command) -> None:
        """Run a command as its page says. Fails with its output."""
        if command.file:
            path = self.folder / command.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(command.line)
            return
        if command.rule("skip") is not None:
            return
        if (first := command.rule("first")) is not None:
            self._run(first, (0,))
        if (beside := command.rule("beside")) is not None:
            self.background.append(self._start(beside))
            time.sleep(3.0)
        line = command.rule("as") or command.line
        for name in ("HAND", "DECISION"):
            if re.search(rf"\b{name}\b", line):
                line = re.sub(rf"\b{name}\b", self._id(name), line)
        if line.startswith("export "):
            self.exported |= dict(word.split("=", 1) for word in shlex.split(line, comments=True)[1:])
            return
        if command.rule("in the background") is not None:
            self.background.append(self._start(line))
            return
        exits = command.rule("may exit")
        printed = self._run(line, (0, int(exits)) if exits else (0,), command.rule("stop when"))
        if command.output is not None:
            like = re.compile(rf"^{command.like}$", re.M)
            pattern = like if command.like else expected(command.output, command.vary)
            assert pattern.search(printed + "\n"), f"{line}\nprints\n{printed}\nthe page shows\n{command.output}"

    def _start(self, line: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.environment | self.exported,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _run(self, line: str, exits: tuple[int, ...], stop: str | None = None) -> str:
        began, printed = time.monotonic(), ""
        with self._start(line) as process, killed_after(process, MOST_S):
            assert process.stdout is not None
            for text in process.stdout:
                printed += text.decode()
                if stop is not None and re.search(stop, printed):
                    os.killpg(process.pid, signal.SIGINT)
                    with killed_after(process, 60.0):
                        printed += process.stdout.read().decode()
        print(f"$ {line}\n{printed}({time.monotonic() - began:.1f} s)", file=sys.stderr)
        if stop is None:
            assert process.returncode in exits, f"{line}\nends with {process.returncode}:\n{printed[-3000:]}"
        else:
            assert process.returncode != -signal.SIGKILL and "Traceback" not in printed, printed[-3000:]
            assert re.search(stop, printed), f"{line}\nended before it printed {stop}:\n{printed[-3000:]}"
        return printed

    def _id(self, name: str) -> str:
        hands = json.loads(self._run("bothost games list --closed --json 2>/dev/null", (0,)))
        ended = [hand for hand in hands if hand["scores"] is not None]
        hand = min(ended, key=lambda hand: hand["game"] != "doudizhu")["id"]  # the pages show Dou Dizhu
        if name == "HAND":
            return str(hand)
        (shown, *_) = json.loads(self._run(f"bothost games show {hand} --json 2>/dev/null", (0,)))
        return str(next(one["id"] for one in shown["decisions"] if one["role"] == "live"))

    def end_of_page(self) -> None:
        """Ends what runs in the background, which must not have failed."""
        processes, self.background = self.background, []
        self.exported = {}
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
            printed = process.communicate(timeout=60)[0].decode()
            assert process.returncode in (0, -signal.SIGTERM), f"{process.args}\n{printed[-3000:]}"


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("fresh") / "bothost"
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    shell = Shell(folder)
    yield shell
    for process in shell.background:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work_as_shown(shell: Shell, page: str) -> None:
    try:
        for command in commands((ROOT / page).read_text()):
            shell.run(command)
    finally:
        shell.end_of_page()


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_is_tried_or_says_why_not(page: str) -> None:
    text = (ROOT / page).read_text()
    found = commands(text)
    assert all(command.rule("skip") != "" for command in found)
    for command in found:  # what a reader would lack may not be added
        added = set((command.rule("as") or "").split()) - set(command.line.split())
        assert not added & {"--config", "--dir"}, command.line
    for block in BLOCK.finditer(text):
        shown = block["language"] == "text" and re.search(r"^(bothost|make|pip) ", block["body"], re.M)
        assert not shown or (block["note"] or "").startswith("output"), f"commands in a block of text:\n{block['body']}"
    assert not re.search(r"^ {4,}(bothost|make|pip) ", text, re.M), "write commands in a fenced block"


def test_what_may_vary_in_shown_output() -> None:
    shown = "  1  deep-mc  JJJ5   69%; also JJJ9 20%\n…\nend …\n"
    assert expected(shown, "numbers").search(" 1 deep-mc JJJ7 8%; also JJJ9 2% \nx\ny\nend of it\n")
    assert not expected(shown, "").search(" 1 deep-mc JJJ5 70%; also JJJ9 20%\nend of it\n")
    assert not expected(shown, "numbers").search(" 1 deep-mc JJJ7 8%; also JJJ9 2%\nstart\n")
    assert expected(shown, "69, deep-mc").search("1 fm-clone JJJ5 7%; also JJJ9 20%\nend\nend it\n")
    assert not expected("r1 is better", "").search("r1 is worse\n")
