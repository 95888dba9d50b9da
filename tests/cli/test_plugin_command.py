"""``bothost plugin``: what there is, a scaffold that works as written, a check that says what is wrong."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bothost.testing import misbehaving

pytestmark = pytest.mark.usefixtures("elsewhere")


def forget(package: str) -> None:
    """A loose plugin is a module of the process: another test may write one of the same name."""
    for name in [name for name in sys.modules if name.startswith(package)]:
        del sys.modules[name]


def test_list_shows_strategies_and_failures_with_their_cause(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    Path("config.toml").write_text("")
    misbehaving.write_broken(tmp_path / "plugins.d")
    code, out, _ = run("plugin", "list")
    assert code == 0 and "random" in out and "  bothost\n" in out
    assert "import_error" in out and "there_is_no_such_module" in out and "fix: " in out
    said = json.loads(run("plugin", "list", "--json")[1])
    assert {"random", "exec"} <= {strategy["name"] for strategy in said["strategies"]}
    assert any(failure["plugin"] == "misspelled_hook" for failure in said["failures"])
    code, out, _ = run("plugin", "list", "raises")
    assert code == 0 and "misbehaving as announced" in out and "raises.py" in out
    code, out, _ = run("plugin", "list", "exec")
    assert re.search(r"^hang_ms +float \(>= 1, .*default 5000\.0 +If the program writes nothing", out, flags=re.M)
    assert re.search(r"^command .*required +The program and its arguments", out, flags=re.M)
    code, out, _ = run("plugin", "list", "mailgyc")
    assert code == 0 and re.search(r"^lobby +mailgyc +lobbies$", out, flags=re.M)
    assert re.search(r"^stall_s +float \(>= 0\), default 120\.0 +Leave a table", out, flags=re.M)
    assert "attributes of a wish of mailgyc:" in out and re.search(
        r"^room +int \| str, .*Number of the room", out, flags=re.M
    )
    (said,) = json.loads(run("plugin", "list", "mailgyc", "--json")[1])["others"]
    assert {attribute["name"] for attribute in said["attributes"]} == {"level", "room"}
    assert {"level", "stall_s"} <= {option["name"] for option in said["options"]}
    code, _, err = run("plugin", "list", "randm")
    assert code == 2 and "'random'" in err


def test_list_says_whom_each_clone_imitates(run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = run("plugin", "list", "fm-clone")
    assert code == 0
    told = dict(re.findall(r"^fm-clone:(\S+) +(.+)$", out, flags=re.M))
    assert "a top mahjong bot of Botzone" in told["botzone-bot"] and "Dou Dizhu" in told["blocker"]
    assert {"champion", "loner", "edges-first"} < told.keys() and "v5" not in told, "the champion is v5"


def test_a_scaffolded_plugin_works_as_written(
    run: Callable[..., tuple[int, str, str]], run_tests: Callable[..., str], tmp_path: Path
) -> None:
    Path("config.toml").write_text("")
    target = tmp_path / "plugins.d" / "bothost-my-bot"
    code, out, _ = run("plugin", "new", "my-bot", "--dir", target, "--game", "pairing")
    assert code == 0 and "bothost plugin check my-bot" in out
    assert "plugins.d is the plugins_dir" in out and "pip install" not in out
    try:
        code, out, _ = run("plugin", "list", "my-bot")
        assert code == 0 and re.search(r"^games +pairing$", out, flags=re.M) and "patience  float, default 0.0" in out
        code, out, _ = run("plugin", "check", "my-bot", "--games", 5, "--json")
        said = json.loads(out)
        assert code == 0 and said["ok"] and said["hands"] == 5
    finally:
        forget("bothost_my_bot")
    assert "2 passed" in run_tests(target)
    code, _, err = run("plugin", "new", "my-bot", "--dir", target)
    assert code == 2 and "exists already" in err


def test_without_a_configuration_loose_plugins_are_said_not_to_be_read(
    run: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = run("plugin", "new", "new-bot", "--dir", "plugins.d/bothost-new-bot")
    assert code == 0 and "bothost init" in out and "pip install" not in out
    code, _, err = run("plugin", "check", "new-bot", "--games", 1)
    assert code == 2 and "warning: plugins.d is not read" in err and "bothost init" in err


@pytest.mark.parametrize("kind", ["game", "lobby"])
def test_a_scaffolded_game_or_lobby_works_as_written(
    kind: str, run: Callable[..., tuple[int, str, str]], run_tests: Callable[..., str], tmp_path: Path
) -> None:
    Path("config.toml").write_text("")
    target = tmp_path / "plugins.d" / f"bothost-my-{kind}"
    code, out, _ = run("plugin", "new", f"my-{kind}", "--kind", kind, "--dir", target)
    assert code == 0, out
    assert "1 passed" in run_tests(target)
    checks = {
        "game": ("arena", "my-game", "random", "random", "--deals", "4"),
        "lobby": ("plugin", "check", "--lobby", "my-lobby"),
    }
    try:
        code, out, err = run(*checks[kind])
        assert code == 0, out + err
    finally:
        forget(f"bothost_my_{kind}")
    if kind == "lobby":
        assert "my-lobby: conforms" in out


def test_check_of_an_adapter_says_what_is_missing(run: Callable[..., tuple[int, str, str]]) -> None:
    Path("config.toml").write_text("")
    assert "name one thing to check" in run("plugin", "check")[2]
    code, _, err = run("plugin", "check", "--lobby", "embeded")
    assert code != 0 and "embedded" in err
    code, _, err = run("plugin", "check", "--lobby", "embedded", "--kit", "bothost.nowhere")
    assert code == 2 and "'bothost.nowhere' is not MODULE:NAME" in err
    code, _, err = run("plugin", "check", "--lobby", "embedded", "--kit", "bothost.nowhere:KIT")
    assert code == 2 and "cannot be imported" in err


@pytest.mark.parametrize("name", ["My Bot", "../x", "1bot", "bot_x", ""])
def test_scaffold_refuses_names_that_cannot_be(name: str, run: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = run("plugin", "new", name)
    assert code == 2 and "fix: lower-case words" in err
    assert run("plugin", "new", "fine", "--game", "chess")[0] == 2
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "name"), [("strategy", "random"), ("game", "othello"), ("lobby", "embedded"), ("game", "exec")]
)
def test_scaffold_refuses_the_names_of_what_is_installed(
    kind: str, name: str, run: Callable[..., tuple[int, str, str]]
) -> None:
    code, _, err = run("plugin", "new", name, "--kind", kind)
    assert code == 2 and f"{name!r} exists already" in err and f"my-{name}" in err
    assert not Path(f"bothost-{name}").exists()


def test_scaffold_refuses_options_that_would_change_nothing(run: Callable[..., tuple[int, str, str]]) -> None:
    code, _, err = run("plugin", "new", "heaps", "--kind", "game", "--game", "othello")
    assert code == 2 and "--game" in err and not Path("bothost-heaps").exists()
    code, _, err = run("plugin", "new", "heaps", "--block", "cards")
    assert code == 2 and "add --from-sb3" in err and not list(Path().iterdir())


def test_scaffold_knows_the_games_of_plugins(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    Path("config.toml").write_text("")
    (tmp_path / "plugins.d").mkdir()
    (tmp_path / "plugins.d" / "heaps_of_a_plugin.py").write_text(
        "from bothost import hookimpl\nfrom bothost.testing.nim import make_nim\n\n"
        "@hookimpl\ndef bothost_games():\n    yield 'nim', make_nim\n"
    )
    code, out, err = run("plugin", "new", "nim-bot", "--game", "nim")
    assert code == 0 and "pip install" in out, err


def test_check_of_a_game_names_the_kit_of_games(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    (tmp_path / "plugins.d").mkdir()
    (tmp_path / "plugins.d" / "brings_heap.py").write_text(
        "from bothost import hookimpl\nfrom bothost.testing.nim import make_nim\n"
        "@hookimpl\ndef bothost_games():\n    yield 'heap', make_nim\n"
    )
    code, _, err = run("plugin", "check", "heap")
    assert code == 2 and "heap is a game" in err and "check_game" in err


def test_check_says_in_words_what_is_wrong(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    Path("config.toml").write_text("")
    folder = tmp_path / "plugins.d"
    folder.mkdir()
    (folder / "bad_bots.py").write_text("from bothost.testing.misbehaving import bothost_strategies\n")
    (folder / "gone.py").write_text("import there_is_no_such_module")
    code, out, _ = run("plugin", "check", "random", "--game", "claims", "--games", 20)
    assert code == 0 and "conforms" in out and "FAIL" not in out
    code, out, _ = run("plugin", "check", "misbehaving-illegal", "--game", "claims", "--games", 3)
    assert code == 1 and "FAIL  legal (claims): decide answered -1" in out and "does not conform" in out
    code, out, _ = run("plugin", "check", "misbehaving-dies", "--game", "claims", "--games", 3)
    assert code == 1 and "FAIL  stays alive: the process ended with code 1" in out, out
    code, out, _ = run("plugin", "check", "misbehaving-process-flood", "--game", "claims", "--games", 3, "--json")
    assert json.loads(out)["hands"] > 0
    crash = ("plugin", "check", "misbehaving-crash", "--game", "claims", "--games", 3)
    assert [run(*crash, *after)[0] for after in ((), ("--option", "after=1000"))] == [1, 0]
    assert "options.aftr" in run(*crash, "--option", "aftr=3")[2]
    code, _, err = run("plugin", "check", "gone")
    assert code != 0 and "there_is_no_such_module" in err
    code, _, err = run("plugin", "check", "randm")
    assert code == 2 and "'random'" in err


def test_the_adapter_that_the_scaffold_writes_stays_short(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """It is the package of the guide "Connect a new lobby"."""
    assert run("plugin", "new", "small-lobby", "--kind", "lobby", "--dir", tmp_path / "small-lobby")[0] == 0
    adapter = (tmp_path / "small-lobby" / "bothost_small_lobby" / "adapter.py").read_text()
    assert "bothost.testing" not in adapter and len(adapter.splitlines()) < 120
