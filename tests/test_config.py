"""config.toml: what is wrong is said, all of it, with file, key and fix; secrets stay secret."""

from __future__ import annotations

import json
import os
import pickle
import tomllib
import traceback
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bothost import config
from bothost.cli.config import to_toml
from bothost.errors import ConfigError, ConfigErrors
from bothost.store.engine import shown, sqlite_path

ROOT = Path(__file__).parents[1]
LOBBY = (
    '[[lobby]]\nname = "home"\nadapter = "embedded"\nurl = "ws://127.0.0.1:1/ws"\n[[lobby.account]]\nname = "ada-1"\n'
)
MANNERS = LOBBY + "[lobby.account.manners]\n"


def write(folder: Path, text: str) -> Path:
    file = folder / "config.toml"
    file.write_text(text)
    return file


def errors(folder: Path, text: str, env: dict[str, str] | None = None) -> dict[str | None, ConfigError]:
    with pytest.raises(ConfigError) as caught:
        config.load(write(folder, text), env or {})
    parts = caught.value.errors if isinstance(caught.value, ConfigErrors) else (caught.value,)
    assert all(part.file == str(folder / "config.toml") for part in parts)
    return {part.key: part for part in parts}


def test_the_example_of_the_repository_loads() -> None:
    loaded = config.read(ROOT / "config.toml", {})
    assert loaded.warnings == ()
    assert loaded.settings.lobbies[0].accounts[0].wishes[0].game == "doudizhu"
    assert loaded.settings.routes[-1].strategy == "random"


def test_an_empty_file_gives_all_defaults(tmp_path: Path) -> None:
    loaded = config.load(write(tmp_path, ""), {})
    assert loaded.limits.tables == 64
    assert loaded.host.data_dir == tmp_path / "var"
    assert loaded.store.url == f"sqlite:///{tmp_path}/var/bothost.db"


@pytest.mark.parametrize("name", ["50% off", "my%20bot", "what?", "小 bot"])
def test_the_database_lies_in_the_folder_of_the_file_whatever_its_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    url = config.load(write(folder, '[store]\nurl = "sqlite+pysqlite:///log.db"'), {}).store.url
    assert sqlite_path(url) == folder / "log.db"
    url = config.load(write(folder, '[store]\nurl = "sqlite:///log.db"'), {}).store.url
    assert sqlite_path(url) == folder / "log.db" and shown(url) == f"sqlite:///{folder}/log.db"


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    found = errors(
        tmp_path,
        """
        hots = 1
        [host]
        drain_timout_s = 3
        [limits]
        tables = 0
        quarantine_s = nan
        [log]
        level = "inf"
        [[lobby]]
        name = "a b"
        url = 3
        [[lobby.account]]
        tables = "four"
        """,
    )
    assert found["hots"].advice == "did you mean 'host'?"
    assert found["host.drain_timout_s"].advice == "did you mean 'drain_timeout_s'?"
    assert "got 0" in str(found["limits.tables"]) and found["limits.tables"].value == 0
    assert "limits.quarantine_s" in found
    assert found["log.level"].advice == "did you mean 'info'?"
    assert {"lobby[0].name", "lobby[0].url", "lobby[0].adapter"} <= set(found)
    assert {"lobby[0].account[0].name", "lobby[0].account[0].tables"} <= set(found)
    assert all(error.exit_code == 78 for error in found.values())


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        (LOBBY + LOBBY, "lobby", "two lobbies"),
        (LOBBY.replace("127.0.0.1:1", "[::1"), "lobby[0].url", "not a URL"),
        (LOBBY.replace("127.0.0.1:1", "home:99999"), "lobby[0].url", "not a URL"),
        (LOBBY.replace("127.0.0.1:1", ":8080"), "lobby[0].url", "not a URL"),
        (LOBBY.replace("127.0.0.1:1", "a b"), "lobby[0].url", "not a lobby's address"),
        (LOBBY + '[[lobby.account]]\nname = "ada-1"', "lobby[0].account", "two accounts"),
        (LOBBY + '[[lobby.account]]\nname = "a/b"', "lobby[0].account[1].name", "of any language"),
        (LOBBY + '[[lobby.account]]\nname = "a\\u202eb"', "lobby[0].account[1].name", "is not an account name"),
        (LOBBY + '[[lobby.account]]\nname = "a\\u00a0b"', "lobby[0].account[1].name", "is not an account name"),
        ('[[route]]\nstrategy = "random"\nlobby = "hom"', "route[0].lobby", "no lobby 'hom'"),
        ('[[route]]\nstrategy = "random:v1"\nlevel = 2', "route[0].level", "names a version already"),
        ('[store]\nurl = "postgresql://me:hunter22@host/db"', "store.url", "holds a password"),
        ('[store]\nurl = "bothost.db"', "store.url", "not a database URL"),
        ('[host]\nname = ["a"]', "host.name", "expected text"),
        ('[host]\ndata_dir = "~nobody-here/x"', "host.data_dir", "home directory of an unknown user"),
        ('[host]\ndata_dir = "a\\u0000"', "host.data_dir", "NUL"),
        ('[web]\npassword.file = "~nobody-here/x"', "web.password", "home directory of an unknown user"),
        ("lobby = 3", "lobby", "a list"),
        ('[host]\nname = "home\\n"', "host.name", "not a name of letters"),
        (MANNERS + 'greeting = "hi\\n"', "lobby[0].account[0].manners.greeting", "not one line of text"),
        (MANNERS + 'allow = ["x"]\nblock = ["x"]', "lobby[0].account[0].manners.block", "on both lists"),
        (MANNERS + "min_rating = 30\nmax_rating = 20", "lobby[0].account[0].manners.min_rating", "no rating is"),
        (MANNERS + "widen_per_minute = 1", "lobby[0].account[0].manners.widen_per_minute", "widens no window"),
        (MANNERS + "slots_for_people = 2", "lobby[0].account[0].manners.slots_for_people", "more than the account"),
        (MANNERS + 'pause = ["9-10"]', "lobby[0].account[0].manners.pause[0]", "is not a time of day"),
        (MANNERS + 'pause = ["09:00-09:00"]', "lobby[0].account[0].manners.pause[0]", "begins when it ends"),
        (MANNERS + 'timezone = "Europe/Berln"', "lobby[0].account[0].manners.timezone", "not a time zone"),
    ],
)
def test_contradictions(tmp_path: Path, text: str, key: str, words: str) -> None:
    found = errors(tmp_path, text)
    assert words in str(found[key])
    assert "hunter22" not in str(found[key]) + repr(found[key].value) + found[key].advice


def test_a_header_with_the_wrong_number_of_brackets_is_explained(tmp_path: Path) -> None:
    assert errors(tmp_path, '[lobby]\nname = "home"')["lobby"].advice == "write [[lobby]]"
    assert errors(tmp_path, "[[host]]")["host"].advice == "write [host]"
    inner = LOBBY.replace("[[lobby.account]]", "[lobby.account]")
    assert errors(tmp_path, inner)["lobby[0].account"].advice == "write [[lobby.account]]"


def test_accounts_are_named_in_any_language_and_each_has_its_own_variable(tmp_path: Path) -> None:
    written = {"小明": "U5C0FU660E", "小红": "U5C0FU7EA2", "José": "JOSU00C9"}
    text = LOBBY + "".join(f'[[lobby.account]]\nname = "{name}"\n' for name in written)
    env = {f"BOTHOST_HOME_{variable}_TOKEN": f"token of {name}" for name, variable in written.items()}
    accounts = config.load(write(tmp_path, text), env).lobbies[0].accounts[1:]
    assert [account.token.reveal() for account in accounts if account.token] == [f"token of {n}" for n in written]


def test_bad_toml_and_bad_files_are_config_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"toml:2: is not valid TOML: Invalid value \(column 7\)"):
        config.load(write(tmp_path, "[host]\nname =\n"), {})
    with pytest.raises(ConfigError, match=r"toml:3: is not valid TOML: the key stands twice\n") as caught:
        config.load(write(tmp_path, '[host]\nname = "a"\nname = "b"\n'), {})
    assert (caught.value.line, caught.value.advice) == (3, "remove one of the two")
    for text in ("[" * 10_000, "a = " + "9" * 10_000):
        with pytest.raises(ConfigError, match="is not valid TOML"):
            config.load(write(tmp_path, text), {})
    (tmp_path / "config.toml").write_bytes(b'\xef\xbb\xbf[host]\r\nname = "a"\r\n')
    assert config.load(tmp_path / "config.toml", {}).host.name == "a"
    (tmp_path / "config.toml").write_bytes(b"# \xff")
    with pytest.raises(ConfigError, match="UTF-8"):
        config.load(tmp_path / "config.toml", {})
    with pytest.raises(ConfigError, match="no such file") as caught:
        config.load(tmp_path / "missing.toml", {})
    assert "--config" in caught.value.advice
    with pytest.raises(ConfigError, match="not a file"):
        config.load(tmp_path, {})


def test_a_folder_whose_name_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"M\xfcller")
    folder.mkdir()
    with pytest.raises(ConfigError, match=r"M\\udcfcller.*: its path is not UTF-8 text") as caught:
        config.load(write(folder, ""), {})
    assert "rename the folder" in caught.value.advice and str(caught.value).isascii()


def test_the_file_is_searched_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        config.find(None, {})
    assert "bothost init" in caught.value.advice
    write(tmp_path, "")
    (tmp_path / "other.toml").write_text("")
    assert config.find(None, {}) == tmp_path / "config.toml"
    assert config.find(None, {"BOTHOST_CONFIG": "other.toml"}) == tmp_path / "other.toml"
    assert config.find("config.toml", {"BOTHOST_CONFIG": "other.toml"}) == tmp_path / "config.toml"


def test_tokens_come_from_the_environment_the_account_first(tmp_path: Path) -> None:
    env = {"BOTHOST_HOME_TOKEN": "for-all"}
    assert _token(tmp_path, LOBBY, env).reveal() == "for-all"
    env["BOTHOST_HOME_ADA_1_TOKEN"] = "for-ada"
    assert _token(tmp_path, LOBBY, env).reveal() == "for-ada"
    assert _token(tmp_path, LOBBY + 'token = { env = "MINE" }', {**env, "MINE": "mine"}).reveal() == "mine"


def _token(folder: Path, text: str, env: dict[str, str]) -> config.Secret:
    token = config.load(write(folder, text), env).lobbies[0].accounts[0].token
    assert token is not None
    return token


def test_a_missing_token_is_an_error_only_for_who_needs_it(tmp_path: Path) -> None:
    token = _token(tmp_path, LOBBY, {})
    assert not token.present
    with pytest.raises(ConfigError, match=r"BOTHOST_HOME_ADA_1_TOKEN or .*BOTHOST_HOME_TOKEN is not set"):
        token.reveal()


def test_tokens_in_files(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("from-file\n", encoding="utf-8-sig")
    (tmp_path / "t").chmod(0o644)
    text = LOBBY + 'token = { file = "t" }'
    assert _token(tmp_path, text, {}).reveal() == "from-file"
    assert any("chmod 600" in warning for warning in config.read(tmp_path / "config.toml", {}).warnings)
    (tmp_path / "t").chmod(0o600)
    assert not any("chmod" in warning for warning in config.read(tmp_path / "config.toml", {}).warnings)
    (tmp_path / "t").unlink()
    with pytest.raises(ConfigError, match="No such file"):
        _token(tmp_path, text, {}).reveal()


def test_a_token_in_the_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    for line in ('token = "planted-1234"', 'tokn = "planted-1234"', 'token = { value = "planted-1234" }'):
        for error in errors(tmp_path, LOBBY + line).values():
            assert "planted" not in f"{error} {error.advice} {error.value}"
    assert "{ env =" in str(errors(tmp_path, LOBBY + 'token = "planted-1234"')["lobby[0].account[0].token"])


def test_nothing_prints_a_secret(tmp_path: Path) -> None:
    loaded = config.load(write(tmp_path, LOBBY), {"BOTHOST_HOME_TOKEN": "planted-1234"})
    (token,) = (s for s in config.secrets(loaded) if s.present)
    shown = [str(token), repr(token), f"{token}", f"{token:>20}", repr(loaded), str(config.plain(loaded))]
    shown += [to_toml(config.plain(loaded)), json.dumps(config.plain(loaded))]
    assert not any("planted" in text for text in shown)
    assert pickle.loads(pickle.dumps(loaded)) == loaded  # workers get them


def test_a_traceback_shows_what_to_do() -> None:
    error = pickle.loads(pickle.dumps(ConfigError("it is wrong", key="host.name", advice="name another")))
    assert error.advice == "name another"
    assert traceback.format_exception_only(error)[-1] == "fix: name another\n"
    assert len(traceback.format_exception_only(ConfigError("it is wrong"))) == 1


def test_the_hash_follows_settings_and_not_secrets(tmp_path: Path) -> None:
    one = config.config_hash(config.load(write(tmp_path, LOBBY), {"BOTHOST_HOME_TOKEN": "a"}))
    two = config.config_hash(config.load(write(tmp_path, LOBBY), {"BOTHOST_HOME_TOKEN": "b"}))
    assert one == two and len(one) == 16
    assert one != config.config_hash(config.load(write(tmp_path, "[limits]\ntables = 3\n" + LOBBY), {}))


def test_what_show_prints_can_be_read_again(tmp_path: Path) -> None:
    env = {"BOTHOST_HOME_TOKEN": "x" * 8, "BOTHOST_LOBBY_TOKENS": "a:b"}
    loaded = config.load(ROOT / "config.toml", env)
    again = write(tmp_path, to_toml(config.plain(loaded)))
    assert config.plain(config.load(again, env)) == config.plain(loaded)


def test_doubts_are_warnings(tmp_path: Path) -> None:
    text = (
        '[lobby_server]\nhost = "0.0.0.0"\n[[lobby]]\nname = "x"\nadapter = "embedded"\nurl = "ws://far.example/ws"\n'
    )
    text = '[web]\nenabled = true\nhost = "0.0.0.0"\n' + text
    warnings = " ".join(config.read(write(tmp_path, text), {}).warnings)
    for words in ("clear text", "no [[lobby.account]]", "other machines", "web.password"):
        assert words in warnings
    loaded = config.read(write(tmp_path, text), {"BOTHOST_WEB_PASSWORD": "x" * 8})
    assert "web.password" not in " ".join(loaded.warnings)
    loaded = config.read(write(tmp_path, '[web]\nenabled = true\npassword = { env = "PW" }\n'), {})
    text = '[web]\nenabled = true\nhosts = ["bots.example"]\n'
    assert any("web.hosts is an operator" in warning for warning in config.read(write(tmp_path, text), {}).warnings)
    assert any("the pages are not served: $PW is not set" in warning for warning in loaded.warnings)


def test_names_that_share_a_variable_are_a_warning(tmp_path: Path) -> None:
    def warned(*accounts: str, env: dict[str, str] | None = None) -> list[str]:
        text = ""
        for account in accounts:
            lobby, name = account.split("/")
            text += f'[[lobby]]\nname = "{lobby}"\nadapter = "embedded"\nurl = "ws://127.0.0.1:9/"\n'
            text += "".join(f'[[lobby.account]]\nname = "{one}"\n' for one in name.split())
        return [line for line in config.read(write(tmp_path, text), env or {}).warnings if "BOTHOST_" in line]

    (line,) = warned("home/a-b a_b", env={"BOTHOST_HOME_A_B_TOKEN": "x" * 8})
    assert line.startswith("$BOTHOST_HOME_A_B_TOKEN is the secret of home/a-b and home/a_b: ")
    (line,) = warned("home/a-b a_b", env={"BOTHOST_HOME_A_B_PASSWORD": "x" * 8, "BOTHOST_HOME_TOKEN": "x" * 8})
    assert line.startswith("$BOTHOST_HOME_A_B_PASSWORD is the secret of home/a-b and home/a_b: ")
    (line,) = warned("home/ada", "home-ada/bob")
    assert line.startswith("$BOTHOST_HOME_ADA_TOKEN is the secret of home-ada and home/ada: ")
    assert (
        warned("home/ada bob", "home-ada/bob", env={"BOTHOST_HOME_TOKEN": "x", "BOTHOST_HOME_ADA_BOB_TOKEN": "y"}) == []
    )


def test_pages_and_metrics_on_one_port_are_a_warning(tmp_path: Path) -> None:
    def warned(text: str) -> bool:
        return "web.port and metrics.port are both 9464" in " ".join(config.read(write(tmp_path, text), {}).warnings)

    assert warned("[web]\nenabled = true\nport = 9464\n[metrics]\nport = 9464\n")
    assert not warned("[web]\nport = 9464\n[metrics]\nport = 9464\n")
    assert not warned("[web]\nenabled = true\nport = 0\n[metrics]\nport = 0\n")


def test_a_plugins_dir_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    def warnings(folder: str) -> str:
        return " ".join(config.read(write(tmp_path, f'[host]\nplugins_dir = "{folder}"\n'), {}).warnings)

    assert f"host.plugins_dir: there is no folder {tmp_path / 'bots'}" in warnings("bots")
    assert warnings("plugins.d") == ""
    (tmp_path / "bots").mkdir()
    assert warnings("bots") == ""


plain_data = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
known_keys = st.sampled_from(["host", "store", "limits", "log", "lobby_server", "lobby", "route", "token", "name"])


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60, deadline=None)
@given(st.dictionaries(known_keys, plain_data | st.lists(st.dictionaries(known_keys, plain_data)), max_size=4))
def test_whatever_stands_there_is_accepted_or_explained(data: dict[str, object]) -> None:
    """The walk finds a problem exactly where msgspec would refuse, and never raises itself."""

    def decode(kind: type, value: object) -> object:
        raise ValueError("no custom types here")

    found = config.problems(data, config.Settings, dec_hook=decode)
    if not found:
        msgspec.convert(data, config.Settings, dec_hook=decode)
    assert all(isinstance(problem.message, str) and problem.message for problem in found)


def test_every_wrong_element_of_a_list_is_named() -> None:
    class Options(msgspec.Struct):
        weights: list[int] = []

    found = config.problems({"weights": [1, "two", 2.5]}, Options)
    assert [(problem.key, problem.value) for problem in found] == [("weights[1]", "two"), ("weights[2]", 2.5)]


@given(st.dictionaries(st.text(min_size=1, max_size=6), plain_data.filter(lambda v: v == v), max_size=4))
@example({"name": "\0"})
def test_written_toml_reads_back(data: dict[str, object]) -> None:
    def writable(value: object) -> object:
        if isinstance(value, dict):
            return {k: writable(v) for k, v in value.items() if v is not None}
        if isinstance(value, list):
            return [writable(v) for v in value if v is not None]
        return 0.0 if isinstance(value, float) and value != value else value

    clean = writable(data)
    assert isinstance(clean, dict)
    assert tomllib.loads(to_toml(clean)) == clean


def test_errors_name_the_line(tmp_path: Path) -> None:
    text = """# a comment
[host]
nmae = "x"
[[lobby]]
name = "a"
adapter = "embedded"
url = "ws://127.0.0.1:1"
[[lobby]]
name = "b"
adapter = "embedded"
url = "ws://127.0.0.1:1"
  [[lobby.account]]
  name = "one"
  [[lobby.account]]
  name = "two"
  tables = 0
    [[lobby.account.wish]]
    rules = { x = 1 }
limts.tables = 3
[log]
level = "inf"
"""
    found = errors(tmp_path, text)
    lines = {key: error.line for key, error in found.items()}
    assert lines == {
        "host.nmae": 3,
        "lobby[1].account[1].tables": 16,
        "lobby[1].account[1].wish[0].game": 17,
        "lobby[1].account[1].wish[0].limts": 17,
        "log.level": 21,
    }
    assert f"{tmp_path}/config.toml:3: host.nmae: unknown key" in str(found["host.nmae"])
    assert errors(tmp_path, '# \u2028, \x85\n[log]\nlevel = "inf"')["log.level"].line == 3  # no ends of lines in TOML


def test_options_are_described_in_words_however_their_types_were_written():
    class Options(msgspec.Struct):
        needed: int
        weight: Annotated[float, msgspec.Meta(ge=-1, le=2)] | None = None
        weights: list[Annotated[float, msgspec.Meta(gt=0)]] = []
        mode: Literal["on", "off"] = "off"
        place: str | None = None
        pair: tuple[int, ...] = (1, 2)
        table: dict[str, Any] = {}

    told = {option["name"]: option for option in config.describe(Options)}
    assert {name: option["type"] for name, option in told.items()} == {
        "needed": "int",
        "weight": "float (>= -1, <= 2) | None",
        "weights": "list[float (> 0)]",
        "mode": "'off' | 'on'",
        "place": "str | None",
        "pair": "tuple[int, ...]",
        "table": "dict[str, Any]",
    }
    assert told["needed"]["required"] and told["pair"]["default"] == (1, 2)
