"""Accounts and settings of a lobby server."""

import pytest

from bothost.config import LobbyServerSettings, Secret
from bothost.errors import ConfigError
from bothost.lobby_server import ServerSettings
from bothost.lobby_server.settings import parse_tokens


def test_tokens_are_pairs():
    assert parse_tokens(" ada:x:y , bob:z,") == {"ada": "x:y", "bob": "z"}


def test_names_of_any_language_stand_in_one_form():
    tokens = parse_tokens("小明:x,Jose\u0301:y,O'Neil:z")
    assert tokens == {"小明": "x", "Jos\u00e9": "y", "O'Neil": "z"}
    assert ServerSettings(tokens=tokens).tokens == tokens
    with pytest.raises(ConfigError, match="two accounts are called"):
        parse_tokens("Jos\u00e9:x,Jose\u0301:y")


@pytest.mark.parametrize("text", ["ada", "ada:", ":x", "ada:planted-secret,ada:y", "ada:x,planted-secret"])
def test_bad_tokens_are_refused_without_repeating_them(text):
    with pytest.raises(ConfigError) as caught:
        parse_tokens(text)
    assert "planted-secret" not in str(caught.value) + caught.value.advice
    assert caught.value.advice


@pytest.mark.parametrize(
    "tokens",
    [
        *({}, {"ada": ""}, {"ada": "x", "bob": "x"}, {"robot-1": "x"}, {"a b": "x"}, {"a:b": "x"}, {"": "x"}),
        *({name: "x"} for name in ("a\u202eb", "a\u200b", "a\u3164", "\u2800", "a\n", "明" * 65, "Jose\u0301")),
    ],
)
def test_a_server_needs_distinct_accounts(tokens):
    with pytest.raises(ConfigError) as caught:
        ServerSettings(tokens=tokens)
    assert caught.value.key == "lobby_server.tokens"


def test_settings_come_from_the_configuration():
    configured = LobbyServerSettings(tokens=Secret("ada:planted-secret", "a test"), port=0, grant_ms=1200.0)
    settings = ServerSettings.configured(configured, host="127.0.0.2")
    assert (settings.tokens, settings.port, settings.grant_ms) == ({"ada": "planted-secret"}, 0, 1200)
    assert settings.host == "127.0.0.2"
    assert "planted-secret" not in repr(settings)
