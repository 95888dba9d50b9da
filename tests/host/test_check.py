"""`bothost config lint`: the settings against the plugins."""

import msgspec
import pytest

from bothost.config import AccountSettings, LobbySettings, RouteSettings, Settings, WishSettings
from bothost.errors import ConfigError
from bothost.host.check import check_settings
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


def test_a_route_that_follows_the_tables_level_is_checked_without_one():
    assert unrouted(RouteSettings(strategy="random", level="table"), level=1) == []


def test_a_wish_for_a_game_that_the_adapter_does_not_play_is_an_error():
    with pytest.raises(ConfigError, match="mailgyc does not play othello; it plays doudizhu") as caught:
        check_settings(settings(RouteSettings(strategy="random"), adapter="mailgyc", game="othello"), PLUGINS)
    assert caught.value.key == "lobby[0].account[0].wish[0].game"
    assert unrouted(RouteSettings(strategy="random"), adapter="mailgyc") == []


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


def test_programs_run_in_the_configurations_folder(tmp_path):
    PLUGINS.folder = tmp_path
    assert PLUGINS.resolve("exec:python3 bot.py").options.cwd == str(tmp_path)
    assert PLUGINS.resolve("exec:python3 bot.py", {"cwd": "bots"}).options.cwd == str(tmp_path / "bots")
    assert PLUGINS.resolve("exec:python3 bot.py", {"cwd": "/srv"}).options.cwd == "/srv"
    PLUGINS.folder = None
    assert PLUGINS.resolve("exec:python3 bot.py").options.cwd is None
