"""``bothost init``, ``config`` and ``doctor``: what they write is good, and what is wrong is named with its fix."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bothost.cli import doctor

pytestmark = pytest.mark.usefixtures("elsewhere")


def test_what_init_writes_is_good_and_is_not_overwritten(run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = run("init")
    assert code == 0 and "bothost doctor" in out
    code, out, _ = run("config", "lint")
    assert code == 0 and "good" in out and "deep-mc" in out and "$BOTHOST_HOME_DOUDIZHU_MCTS_TOKEN is not set" in out
    before = Path("config.toml").read_text()
    code, _, err = run("init")
    assert code == 78 and "exists already" in err and Path("config.toml").read_text() == before
    assert run("init", "no/such/folder/config.toml")[0] == 78
    said = json.loads(run("init", "second.toml", "--json")[1])
    assert said["next"][0] == "bothost demo"
    assert Path("second.toml").read_text() == (Path(__file__).parents[2] / "config.toml").read_text(), "the checkout's"


def test_init_on_a_full_disk_leaves_no_file_behind(run, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        code, _, err = run("init")
    assert code == 78 and "No space left" in err and "make room on the disk" in err
    assert run("init")[0] == 0


def test_config_path_and_show(run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    run("init")
    monkeypatch.setenv("BOTHOST_HOME_TOKEN", "planted-1234")
    assert run("config", "path")[1] == f"{Path.cwd() / 'config.toml'}\n"
    code, text, _ = run("config", "show")
    assert code == 0 and "frame_bytes = 1048576" in text and "planted" not in text
    said = json.loads(run("config", "show", "--json")[1])
    assert said["settings"]["lobby"][0]["account"][0]["token"] == {"env": "BOTHOST_HOME_TOKEN"}
    assert len(said["config_hash"]) == 16


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("[limits]", "[limts]"), "did you mean 'limits'?"),
        (('strategy = "random"', 'strategy = "randm"'), "'random'"),
        (('strategy = "random"', 'strategy = "exec:/no/such/bot"'), "there is no program"),
        (('strategy = "random"', 'strategy = "random"\noptions = { x = 1 }'), "takes no options"),
        (('game = "doudizhu"', 'game = "doudizu"'), "doudizhu"),
        (('game = "doudizhu"', 'game = "doudizhu", rules = { biding = 1 }'), "biding"),
        (('adapter = "embedded"', 'adapter = "embeded"'), "'embedded'"),
        (("tables = 2", 'token = "planted-1234"'), "must not be in the file"),
        (('"ws://127.0.0.1:8765/ws"', '"127.0.0.1:8765"'), "url"),
        (('"sqlite:///var/bothost.db"', '"mysql://host/name"'), "no support for mysql databases"),
        (('"sqlite:///var/bothost.db"', '"sqlite://bothost.db"'), "must be a file"),
    ],
)
def test_lint_names_file_key_and_fix(
    change: tuple[str, str], words: str, run: Callable[..., tuple[int, str, str]]
) -> None:
    run("init")
    text = Path("config.toml").read_text()
    assert change[0] in text
    Path("config.toml").write_text(text.replace(*change, 1))
    code, out, err = run("config", "lint")
    assert (code, out) == (78, "") and words in err and "config.toml:" in err and "planted" not in err


def test_every_command_warns_of_routes_that_no_table_reaches(run: Callable[..., tuple[int, str, str]]) -> None:
    run("init")
    with Path("config.toml").open("a") as file:
        file.write('[[route]]\nstrategy = "random"\n[[route]]\nstrategy = "random"\ngame = "doudizhu"\n')
    warning = "matches every table; the routes after it are never tried"
    assert warning in run("config", "lint")[1] and warning in run("doctor")[1]
    code, _, err = run("db", "upgrade")
    assert code == 0 and warning in err


def test_doctor_says_what_is_wrong_and_how_to_mend_it(run: Callable[..., tuple[int, str, str]]) -> None:
    code, _, _ = run("doctor")
    assert code == 78
    run("init")
    text = Path("config.toml").read_text().replace("127.0.0.1:8765", "127.0.0.1:9")
    Path("config.toml").write_text(text)
    code, out, _ = run("doctor", "--json")
    assert code == 78
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert checks["native core"]["status"] == checks["routes"]["status"] == checks["data_dir"]["status"] == "ok"
    assert "bothost db upgrade" in checks["database"]["fix"]
    assert "bothost lobby serve" in checks["lobby home"]["fix"] and checks["lobby home"]["exit_code"] == 75
    assert checks["secrets"]["status"] == "failed"


@pytest.mark.parametrize(
    ("mapped", "flags", "slow"),
    [
        ("/usr/lib/libpython3.11.so.1.0", "-O3 -fprofile-use", True),
        ("/usr/lib/libpython3.11.so.1.0", "-flto -fno-semantic-interposition", False),
        ("/usr/bin/python3.11\n/lib/libc.so.6", "-O2", False),
        ("", "", False),
    ],
)
def test_doctor_knows_a_slow_interpreter(
    mapped: str, flags: str, slow: bool, run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "mapped_files", lambda: mapped)
    monkeypatch.setattr(doctor.sysconfig, "get_config_var", {"PY_CFLAGS_NODIST": flags}.get)
    run("init")
    check = json.loads(run("doctor", "--json")[1])["checks"][0]
    assert check["name"] == "python" and check["status"] == ("warning" if slow else "ok")
    assert ("another interpreter" in check["fix"]) == slow


def test_doctor_notices_a_folder_that_it_cannot_use(run: Callable[..., tuple[int, str, str]]) -> None:
    run("init")
    Path("var").write_text("a file in the way")
    code, out, _ = run("doctor")
    assert code == 78 and "data_dir" in out and "fix: let this user write" in out
    code, _, err = run("run")
    assert code == 1 and "host.data_dir" in err and "fix: let this user write" in err


def test_a_log_file_that_cannot_be_written_is_named(run: Callable[..., tuple[int, str, str]]) -> None:
    Path("config.toml").write_text('[log]\nfile = "config.toml/host.log"\n')
    code, out, _ = run("doctor")
    assert code == 78 and "log file" in out and "or set another [log] file" in out
    account = '[[lobby.account]]\nname = "ada"\n'
    with Path("config.toml").open("a") as file:
        file.write(f'[[lobby]]\nname = "home"\nadapter = "embedded"\nurl = "ws://127.0.0.1:1/ws"\n{account}')
    code, _, err = run("run")
    assert code == 1 and "log.file" in err and "or set another [log] file" in err
