"""`bothost config lint`: the settings against the plugins."""

import msgspec
import pytest

from bothost.config import AccountSettings, LobbySettings, RouteSettings, Settings, WishSettings, parse
from bothost.errors import ConfigError, ConfigErrors, StoreUnavailable
from bothost.host.check import check_settings, missing_secrets
from bothost.plugins import Plugins

PLUGINS = Plugins.load()


@pytest.fixture(autouse=True)
def no_folder():
    yield
    PLUGINS.folder = None


def settings(*routes, adapter="embedded", game="doudizhu", account="ada", **attributes):
    wish = WishSettings(game=game, attributes=attributes)
    accounts = (AccountSettings(name=account, wishes=(wish,)),)
    lobby = LobbySettings(name="home", adapter=adapter, url="ws://127.0.0.1:9/", accounts=accounts)
    return msgspec.structs.replace(Settings(), lobbies=(lobby,), routes=routes)


def unrouted(*routes, **of_wish):
    return [line for line in check_settings(settings(*routes, **of_wish), PLUGINS) if "no [[route]] matches" in line]


def test_a_route_for_another_account_does_not_match():
    route = RouteSettings(strategy="random", account="bob")
    assert unrouted(route) == ["home/ada asks for doudizhu, which no [[route]] matches"]
    assert unrouted(route, account="bob") == []


@pytest.mark.parametrize(
    ("field", "named", "plays"),
    [
        ("strategy", "deep-mc", "doudizhu"),
        ("strategy", "deep-mc:champion", "doudizhu"),
        ("fallback", "rule-mahjong", "mahjong"),
    ],
)
def test_a_strategy_that_does_not_play_its_accounts_game_is_named(field, named, plays):
    """A warning: a host with such a route plays, by the rest of its fallback chain."""
    other = RouteSettings(strategy="random", account="bob")
    route = RouteSettings(**{"strategy": "random", "account": "ada", field: named})
    (warning,) = check_settings(settings(other, route, game="pairing"), PLUGINS)
    name = named.partition(":")[0]
    assert warning.startswith(f"route[1].{field}: {name} does not play pairing, which home/ada asks for; write a route")
    assert check_settings(settings(other, route, game=plays), PLUGINS) == []
    assert check_settings(settings(RouteSettings(strategy="random"), route, game="pairing"), PLUGINS) == []


def test_a_database_that_is_away_is_reported_once():
    def away(strategy, alias):
        raise StoreUnavailable("the database is away")

    plugins = Plugins.load(aliases=away)
    with pytest.raises(ConfigErrors) as found:
        check_settings(settings(RouteSettings(strategy="deep-mc", fallback="rule-mahjong:x"), adapter="no"), plugins)
    assert sorted(error.key for error in found.value.errors) == ["lobby[0].adapter", "store.url"]


def test_a_lobby_with_several_accounts_needs_a_token_for_each(tmp_path):
    def missing(*names):
        text = '[[lobby]]\nname = "home"\nadapter = "embedded"\nurl = "ws://127.0.0.1:9/"\n'
        text += "".join(f'[[lobby.account]]\nname = "{name}"\n' for name in names)
        return missing_secrets(parse(text, base=tmp_path, env={"BOTHOST_HOME_BOB_TOKEN": "x"}), PLUGINS)

    (line,) = missing("ada", "bob")
    assert line == "home has no token for ada: $BOTHOST_HOME_ADA_TOKEN is not set"
    (line,) = missing("ada", "bob", "cyd")
    assert line.endswith("for ada, cyd: $BOTHOST_HOME_ADA_TOKEN is not set; each account has its own variable")
    assert "$BOTHOST_HOME_TOKEN is not set" in missing("ada")[0], "one account may use the lobby's variable"


def test_a_route_that_follows_the_tables_level_is_checked_without_one():
    assert unrouted(RouteSettings(strategy="random", level="table"), level=1) == []


def test_a_wish_for_a_game_that_the_adapter_does_not_play_is_an_error():
    with pytest.raises(ConfigError, match="mailgyc does not play othello; it plays doudizhu") as caught:
        check_settings(settings(RouteSettings(strategy="random"), adapter="mailgyc", game="othello"), PLUGINS)
    assert caught.value.key == "lobby[0].account[0].wish[0].game"
    assert unrouted(RouteSettings(strategy="random"), adapter="mailgyc") == []


@pytest.mark.parametrize(
    ("adapter", "game", "attributes", "key", "message", "advice"),
    [
        ("botzone", "othello", {"oponents": ["5f"]}, "oponents", "unknown key", "did you mean 'opponents'?"),
        ("botzone", "othello", {"opponents": "5f"}, "opponents", "a list", ""),
        ("botzone", "othello", {"botzone": "Reversy"}, "botzone", "'Reversy' is not one of", "did you mean"),
        ("mailgyc", "doudizhu", {"levl": 1}, "levl", "unknown key", "did you mean 'level'?"),
        ("mailgyc", "doudizhu", {"room": "first"}, "room", "'first' is not a number", ""),
        ("open_mahjong", "mahjong", {"pasword": "x"}, "pasword", "unknown key", "did you mean 'password'?"),
        ("open_mahjong", "mahjong", {"robots": 4}, "robots", "<= 3", ""),
        ("othello_platform", "othello", {"mode": "mach"}, "mode", "'mach' is not one of", "did you mean 'match'?"),
        ("othello_platform", "othello", {"ai_level": "3"}, "ai_level", "a whole number", ""),
        ("embedded", "othello", {"hands": "3"}, "hands", "a whole number", ""),
        ("embedded", "othello", {"grant_ms": -1}, "grant_ms", ">= 0", ""),
    ],
)
def test_an_attribute_that_the_lobby_does_not_take_is_an_error(adapter, game, attributes, key, message, advice):
    with pytest.raises(ConfigError) as caught:
        check_settings(settings(RouteSettings(strategy="random"), adapter=adapter, game=game, **attributes), PLUGINS)
    assert caught.value.key == f"lobby[0].account[0].wish[0].attributes.{key}"
    assert message in str(caught.value) and advice in (caught.value.advice or "")


@pytest.mark.parametrize(
    ("adapter", "game", "attributes"),
    [
        ("botzone", "othello", {"opponents": ["5f"], "slot": 1, "botzone": "Reversi", "initdata": {"fen": 1}}),
        ("mailgyc", "doudizhu", {"level": 2, "room": "17"}),
        ("open_mahjong", "mahjong", {"room": 3, "password": 1234, "robots": 0, "create": False}),
        ("othello_platform", "othello", {"mode": "ai", "ai_level": 5, "level": 3}),
        ("embedded", "othello", {"level": "hard", "hands": 3, "grant_ms": 0, "accept": True, "club": "ours"}),
    ],
)
def test_attributes_that_the_lobby_takes_are_good(adapter, game, attributes):
    checked = settings(RouteSettings(strategy="random"), adapter=adapter, game=game, **attributes)
    assert check_settings(checked, PLUGINS) == []


def test_a_wish_for_a_private_table_is_an_error():
    with pytest.raises(ConfigError, match="a wish takes any table") as caught:
        check_settings(settings(RouteSettings(strategy="random"), private=True), PLUGINS)
    assert caught.value.key == "lobby[0].account[0].wish[0].attributes"


def test_a_label_that_looks_like_an_attribute_is_a_warning():
    (warning,) = check_settings(settings(RouteSettings(strategy="random"), grant_m=100, club="ours"), PLUGINS)
    assert warning == "home/ada asks for doudizhu with the label 'grant_m'; did you mean 'grant_ms'?"


@pytest.mark.parametrize("field", ["strategy", "fallback"])
def test_programs_are_found_from_the_configurations_folder(tmp_path, monkeypatch, field):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    bot = tmp_path / "bot.sh"
    bot.write_text("#!/bin/sh")
    bot.chmod(0o755)
    monkeypatch.chdir(elsewhere)
    route = RouteSettings(**{"strategy": "random", field: "exec:./bot.sh --fast"})
    with pytest.raises(ConfigError, match="there is no program"):
        check_settings(settings(route), PLUGINS)
    PLUGINS.folder = tmp_path
    assert check_settings(settings(route), PLUGINS) == []


@pytest.mark.parametrize("command", ["python3 bot.py", "python3 -u -O bot.py --fast", "sh ./bot.sh"])
def test_a_script_that_is_missing_is_an_error(tmp_path, command):
    PLUGINS.folder = tmp_path
    checked = settings(RouteSettings(strategy=f"exec:{command}"))
    with pytest.raises(ConfigError, match=rf"there is no file '[./]*bot\.(py|sh)' in {tmp_path}") as caught:
        check_settings(checked, PLUGINS)
    assert caught.value.key == "route[0].strategy"
    (tmp_path / "bot.py").touch()
    (tmp_path / "bot.sh").touch()
    assert check_settings(checked, PLUGINS) == []
    away = settings(RouteSettings(strategy=f"exec:{command}", options={"cwd": "bots"}))
    with pytest.raises(ConfigError, match=r"there is no folder '.*/bots'"):
        check_settings(away, PLUGINS)


@pytest.mark.parametrize(
    "command", ["python3 -m bot.py", "python3 -c bot.py", "env python3 bot.py", "cat --out bot.py", "cat bot"]
)
def test_arguments_that_may_be_no_script_of_this_folder_are_not_checked(tmp_path, command):
    PLUGINS.folder = tmp_path
    assert check_settings(settings(RouteSettings(strategy=f"exec:{command}")), PLUGINS) == []


def test_programs_run_in_the_configurations_folder(tmp_path):
    PLUGINS.folder = tmp_path
    assert PLUGINS.resolve("exec:python3 bot.py").options.cwd == str(tmp_path)
    assert PLUGINS.resolve("exec:python3 bot.py", {"cwd": "bots"}).options.cwd == str(tmp_path / "bots")
    assert PLUGINS.resolve("exec:python3 bot.py", {"cwd": "/srv"}).options.cwd == "/srv"
    PLUGINS.folder = None
    assert PLUGINS.resolve("exec:python3 bot.py").options.cwd is None


@pytest.mark.parametrize("environment", ["1", '{ HOME = "x" }', '"HOME"'])
def test_variables_of_a_program_that_are_no_list_are_an_error_with_their_key(tmp_path, environment):
    text = f'[[route]]\nstrategy = "exec:true"\noptions = {{ environment = {environment} }}\n'
    with pytest.raises(ConfigError) as caught:
        check_settings(parse(text, base=tmp_path), PLUGINS)
    assert caught.value.key == "route[0].options.environment"
