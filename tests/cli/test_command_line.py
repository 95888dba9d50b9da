"""The command line: fast, never a traceback, one message with its fix, the right exit code; plugins cannot break it."""

from __future__ import annotations

import errno
import gc
import json
import os
import resource
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.cells import cell_len

import bothost
from bothost import __main__, cli
from bothost.cli import output
from bothost.errors import AuthError, BothostError, ConfigError, LobbyUnreachable, SchemaOutdated
from bothost.testing import misbehaving

pytestmark = pytest.mark.usefixtures("elsewhere")


def python(*argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *argv], capture_output=True, text=True, timeout=120, env={**os.environ, **env}, check=False
    )


def test_help_imports_nothing_heavy() -> None:
    heavy = ("torch", "pyarrow", "sqlalchemy", "ray", "structlog", "httpx", "starlette", "websockets", "onnxruntime")
    code = f"""
import sys
from bothost.cli import main
assert main(["--help"]) == 0
print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""
    done = python("-c", code)
    assert done.stderr.strip() == "[]"
    assert all(noun in done.stdout for noun in cli.NOUNS)


def test_help_costs_little_more_than_what_it_must_import() -> None:
    """A ratio of processor times, the least of three each: the machine may be busy, or slow."""

    def least(*argv: str) -> float:
        times = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            assert python(*argv).returncode == 0
            times.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        return min(times)

    assert least("-m", "bothost", "--help") < 2.5 * least("-c", "import numpy, typer, msgspec")  # about 1.5


def test_importing_bothost_imports_neither_torch_nor_the_command_line() -> None:
    done = python("-c", "import sys, bothost; print([m for m in ('torch', 'typer', 'sqlalchemy') if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr


def test_before_it_can_catch_ctrl_c_the_command_imports_next_to_nothing() -> None:
    """Until then Ctrl-C prints Python's traceback."""
    slow = ("numpy", "msgspec", "pluggy", "logging", "threading", "bothost.errors", "bothost.native")
    done = python("-c", f"import sys, bothost.__main__; print([m for m in {slow} if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr


def test_the_public_names_are_those_that_are_listed() -> None:
    code = """
import bothost, bothost.errors, bothost.hookspecs, bothost.strategy
print([name for name in bothost.__all__ if getattr(bothost, name) is None or name not in dir(bothost)])
print(bothost.rules.__name__, bothost.strategy.Decision is bothost.Decision, hasattr(bothost, "Decison"))
"""
    done = python("-c", code)
    assert done.stdout.split("\n")[:2] == ["[]", "bothost.rules True False"], done.stderr


def test_a_host_imports_only_what_it_plays_with(tmp_path: Path) -> None:
    """A host that was killed must be back soon, and imports are nearly all of its start."""
    idle = (
        "rich",
        "pydantic",
        "httpx",
        "alembic",
        "pyarrow",
        "bothost.lobbies.open_mahjong",
        "bothost.lobbies.botzone",
        "bothost_deep_mc.decide",
        "bothost_baselines.mahjong",
        "prometheus_client",
    )
    config = tmp_path / "config.toml"
    config.write_text(
        '[[lobby]]\nname = "home"\nadapter = "embedded"\nurl = "ws://127.0.0.1:9/"\n'
        '[[lobby.account]]\nname = "bot"\ntoken = { env = "TOKEN_OF_BOT" }\n[[route]]\nstrategy = "random"\n'
    )
    done = python("-m", "bothost", "db", "upgrade", "--config", str(config))
    assert done.returncode == 0, done.stderr
    code = f"""
import sys
from bothost.cli import main
assert main(["run", "--fail-fast", "--config", {str(config)!r}]) == 75
print([name for name in {idle!r} if name in sys.modules])
"""
    done = python("-c", code, TOKEN_OF_BOT="a-token-that-is-long-enough")
    assert done.stdout.strip() == "[]", done.stderr


def test_no_strategy_needs_torch_to_play() -> None:
    """Torch takes 180 MB, and longer to import than a host to start."""
    code = """
import sys
from bothost.plugins import Plugins
plugins = Plugins.load()
made = [plugins.resolve(name).make() for name in plugins.strategies if name not in ("exec", "llm-player")]
print(len(made) > 10, "torch" in sys.modules)
"""
    done = python("-c", code)
    assert done.stdout.strip() == "True False", done.stderr


@pytest.mark.parametrize("noun", list(cli.NOUNS))
def test_every_noun_loads_and_explains_itself(noun: str, run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = run(noun, "--help")
    assert code == 0 and "Usage: bothost " + noun in out


@pytest.mark.parametrize("argv", [[], ["plugin"], ["config"]])
def test_a_noun_without_a_verb_shows_its_verbs(argv: list[str], run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = run(*argv)
    assert code == 2 and "Commands:" in out + err and "error" not in out + err


def test_version(run: Callable[..., tuple[int, str, str]]) -> None:
    assert run("--version") == (0, f"bothost {bothost.__version__}\n", "")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["plugn"], "did you mean 'plugin'?"),
        (["config", "lin"], "lint"),
        (["config", "lint", "--jsno"], "--json"),
        (["plugin", "check"], "name one thing to check"),
        (["plugin", "check", "random", "--games", "0"], "--games"),
        (["plugin", "check", "random", "--games", str(10**30)], "--games"),
        (["play", "random"], "--stdio"),
        (["train", "phase-ppo", "--minutes", "nan"], "nan is not a finite number"),
        (["train", "phase-ppo", "--seed", str(2**63)], "--seed"),
        (["train", "phase-ppo", "--out", __file__], "is a file"),
        (["retrain", "phase-ppo", "--at", "03:30"], "--at is for --watch"),
        (["retrain", "phase-ppo", "--after", "10"], "--after is for --watch"),
        (["retrain", "phase-ppo", "--watch", "--out", "x"], "--out is the folder of one job"),
        (["retrain", "phase-ppo", "--watch", "--at", "25:00"], "is not a time of the day"),
        (["bench", "host", "--tables", "0"], "--tables"),
        (["bench", "host", "--game", "chess"], "no game is called 'chess'"),
        (["bench", "soak", "--out", "x", "--strategies", "nobody"], "no strategy 'nobody'"),
        (["web", "--port", "99999"], "99999 is not in the range"),
        (["arena", "pairing", "random", "random", "--ms", "inf"], "inf is not a finite number"),
        (["arena", "pairing", "random", "random", "--batch", str(10**30)], "--batch"),
        (["arena", "pairing", "random", "random", "--workers", str(10**30)], "--workers"),
        (["arena", "pairing", "random", "random", "-n", str(10**30), "--workers", "2"], "--deals"),
        (["tournament", "pairing", "random", "random", "-n", str(10**30)], "--deals"),
        (["model", "promote", "phase-ppo", "--deals", str(10**30)], "--deals"),
        (["model", "promote", "phase-ppo", "--to", "canary", "--share", "nan"], "nan is not between 0 and 1"),
        (["model", "promote", "phase-ppo", "--to", "canary", "--share", "1"], "1.0 is not between 0 and 1"),
        (["reproduce", "round-robin", "--workers", str(10**30)], "--workers"),
    ],
)
def test_usage_errors_are_two_lines_and_exit_code_2(
    argv: list[str], words: str, run: Callable[..., tuple[int, str, str]]
) -> None:
    code, out, err = run(*argv)
    assert (code, out) == (2, "") and words in err and "fix: " in err


class Hidden(BothostError):
    pass


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("is wrong", file="config.toml", key="host.name", advice="mend it"), 78),
        (AuthError("refused"), 77),
        (LobbyUnreachable("not there"), 75),
        (SchemaOutdated("old", advice="bothost db upgrade"), 78),
        (BothostError("no"), 1),
        (ZeroDivisionError("a bug"), 1),
        (PermissionError(13, "Permission denied", "secret.db"), 1),
        (KeyboardInterrupt(), 130),
        (misbehaving.PanicException("a panic of a Rust extension"), 1),
    ],
)
def test_errors_have_exit_codes_and_no_traceback(
    error: BaseException, code: int, run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("bothost.config.find", fail)
    found, out, err = run("config", "path")
    assert (found, out) == (code, "")
    assert isinstance(error, KeyboardInterrupt) or err.startswith("error: ")
    if getattr(error, "advice", ""):
        assert f"fix: {error.advice}" in err  # type: ignore[attr-defined]


def test_errors_under_json_are_json(run: Callable[..., tuple[int, str, str]]) -> None:
    Path("config.toml").write_text('[host]\nnmae = "x"\n[log]\nlevel = "inf"\n')
    code, out, err = run("config", "lint", "--json")
    assert (code, out) == (78, "")
    said = json.loads(err)
    assert said["exit_code"] == 78 and [e["key"] for e in said["errors"]] == ["host.nmae", "log.level"]


BOT_WITH_A_CHINESE_NAME = """
from bothost import Strategy, hookimpl

class Bot(Strategy):
    '''Plays like 张三.'''
    name, version, games = "bot", "1", ("othello",)
    def player(self, table):
        raise NotImplementedError

@hookimpl
def bothost_strategies():
    return [Bot]
"""


def test_a_terminal_may_lack_some_of_our_characters(run: Callable[..., tuple[int, str, str]]) -> None:
    run("init")
    Path("plugins.d").mkdir()
    Path("plugins.d/bot.py").write_text(BOT_WITH_A_CHINESE_NAME, encoding="utf-8")
    words = ("-m", "bothost", "plugin", "list", "bot")
    shown, as_json = python(*words, PYTHONIOENCODING="latin-1"), python(*words, "--json", PYTHONIOENCODING="latin-1")
    assert (shown.returncode, shown.stderr) == (0, "") and "Plays like ??." in shown.stdout
    assert as_json.returncode == 0 and "张三" in as_json.stdout


def test_a_secret_in_an_error_is_redacted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOTHOST_HOME_TOKEN", "planted-1234")
    monkeypatch.setenv("BOTHOST_DEBUG", "1")
    for as_json in (False, True):
        try:
            raise ValueError("wss://x/?q=planted-1234&token=other-5678")
        except ValueError as error:
            output.report(error, as_json=as_json)
    err = capsys.readouterr().err
    assert "planted" not in err and "5678" not in err and "Traceback" in err


@pytest.mark.parametrize("argv", [["plugin", "list", "--json"], ["--help"]])
def test_a_reader_that_goes_away_ends_a_command_silently_as_sigpipe_does(argv: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run([sys.executable, "-m", "bothost", *argv], stdout=closed, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_command_works_where_stdin_stdout_or_stderr_is_closed(closed: str, tmp_path: Path) -> None:
    line = f"{sys.executable} -m bothost plugin list {closed}"
    done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


COMMAND = """
import typer
from bothost import hookimpl
app = typer.Typer()
@app.command()
def hello():
    print("hello from a plugin")
@app.command()
def other(): ...
@hookimpl
def bothost_commands():
    return [("greet", app), ("config", app), ("broken", lambda: 3)]
"""


def test_plugins_add_commands_and_cannot_break_or_take_others(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    misbehaving.write_broken(tmp_path / "plugins.d")
    (tmp_path / "plugins.d" / "greets.py").write_text(COMMAND)
    Path("config.toml").write_text("")
    try:
        code, out, _ = run("--help")
        assert code == 0 and "greet" in out
        assert run("greet", "hello") == (0, "hello from a plugin\n", "")
        assert run("config", "path")[0] == 0
        code, _, err = run("nothing")
        assert code == 2 and "no command 'nothing'" in err
    finally:
        sys.modules.pop("greets", None)


def test_a_bad_configuration_does_not_keep_help_from_working(run: Callable[..., tuple[int, str, str]]) -> None:
    Path("config.toml").write_text("[[[")
    assert run("--help")[0] == 0
    assert run("run")[0] == 78


def test_a_package_that_did_not_fit_on_the_disk_is_not_in_the_way_of_the_next_attempt(run, monkeypatch) -> None:
    def full(path: Path, *_: object) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        code, _, err = run("plugin", "new", "my-bot")
    assert code == 1 and "No space left" in err and not Path("bothost-my-bot").exists()
    assert run("plugin", "new", "my-bot")[0] == 0


def test_output_helpers() -> None:
    assert output.table([("a", 1), ("bbb", 22)], ("X", "YY")) == "X    YY\na    1\nbbb  22"
    assert output.table([("小明", 1), ("José", 22)]) == "小明  1\nJosé  22"
    assert output.table([]) == ""
    assert json.loads(output.to_json({"p": Path("x"), "e": "é"})) == {"p": "x", "e": "é"}


def test_a_table_fits_the_terminal_and_no_word_or_number_is_split(capsys, monkeypatch):
    rows = [("018f", "小明, carol the fourth", "+1,234", "2 h"), ("0190", "bartholomew-the-great", "-5", "3 h")]
    header = ("ID", "NAMES", "SCORE", "AGE")
    wide = output.table(rows, header)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    def at(width, **how):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = output.table(rows, header, **how).splitlines()
        assert max(map(cell_len, lines)) <= width
        return [line.split() for line in lines]

    assert at(80) == [line.split() for line in wide.splitlines()]
    assert at(40)[1:3] == [["018f", "小明,", "carol", "the", "+1,234", "2", "h"], ["fourth"]]
    assert at(36, optional=("AGE",))[-1] == ["0190", "bartholomew-the-great", "-5"]
    assert at(36, optional=("AGE",), names=("NAMES",))[-1] == ["0190", "bartholomew-the-…", "-5", "3", "h"]
    rows, header = [("0190", "bartholomew-the-great", "", "3 h")], ("ID", "NAMES", "LATE", "AGE")
    assert at(35, optional=("AGE", "LATE"), names=("NAMES",)) == [
        ["ID", "NAMES", "AGE"],
        ["0190", "bartholomew-the-great", "3", "h"],
    ]
    assert at(40, optional=("AGE", "LATE"))[0] == ["ID", "NAMES", "LATE", "AGE"]
    rows, header = [("2026-11-26 22:02", "a few words")], ("SINCE (UTC)", "WHY")
    assert at(26)[1:] == [["2026-11-26", "22:02", "a", "few"], ["words"]]
    header = ()
    assert at(26) == [["2026-11-26", "22:02", "a", "few"], ["words"]]


def test_exit_codes_of_verbs_pass_through(run: Callable[..., tuple[int, str, str]]) -> None:
    @cli.app.command("seven")
    def seven() -> None:
        raise typer.Exit(7)

    try:
        cli.NOUNS["seven"] = ("tests_seven", "x")
        module = type(sys)("tests_seven")
        module.command = seven  # type: ignore[attr-defined]
        sys.modules["tests_seven"] = module
        assert run("seven")[0] == 7
    finally:
        del cli.NOUNS["seven"], sys.modules["tests_seven"]
        cli.app.registered_commands.pop()


@pytest.mark.parametrize(("words", "place", "offered"), [("bothost plu", 1, "plugin"), ("bothost plugin ", 2, "check")])
def test_the_shell_completes_nouns_and_verbs(words: str, place: int, offered: str) -> None:
    done = python("-m", "bothost", _BOTHOST_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(place))
    assert offered in done.stdout.split(), done.stderr


NATIVE_CODE_RUNS_ON = """
import sys, threading, time
from bothost import __main__, cli, rules


def run():
    state = rules.game("doudizhu").new_state(1)
    search = rules.search(state.view(state.to_act[0]), 1)
    threading.Thread(target=lambda: search.run(iterations=10**9, ms=60_000.0), daemon=True).start()
    time.sleep(0.1)
    print("done")
    return 75


cli.main = run
sys.exit(__main__.main())
"""


def test_a_command_ends_with_its_exit_code_while_a_plugins_native_code_still_runs():
    ended = subprocess.run([sys.executable, "-c", NATIVE_CODE_RUNS_ON], capture_output=True, text=True, timeout=50)
    assert (ended.returncode, ended.stdout, ended.stderr) == (75, "done\n", "")


GARBAGE_AT_THE_END = """
import gc, sys
from bothost import __main__, cli


class Cycle:
    def __init__(self):
        self.own = self

    def __del__(self):
        print("collected")


def run():
    gc.enable()
    Cycle()
    return 130


cli.main = run
sys.exit(__main__.main())
"""


def test_a_command_that_ends_does_not_search_its_objects_for_garbage():
    """With torch the search took several seconds, after Ctrl-C too."""
    ended = subprocess.run([sys.executable, "-c", GARBAGE_AT_THE_END], capture_output=True, text=True, timeout=50)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_an_interrupt_during_the_imports_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "bothost.cli", Interrupted("bothost.cli"))
    monkeypatch.setattr(gc, "disable", lambda: None)
    assert __main__.main() == 130
