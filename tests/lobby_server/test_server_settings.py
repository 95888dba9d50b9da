"""Accounts and settings of a lobby server."""

import pytest

from bothost.config import LobbyServerSettings, Secret
from bothost.errors import ConfigError
from bothost.lobby_server import ServerSettings
from bothost.lobby_server.settings import parse_tokens


def test_tokens_are_pairs():
    assert parse_tokens(" ada:x:y , bob:z,") == {"ada": "x:y", "bob": "z"}


@pytest.mark.parametrize("text", ["ada", "ada:", ":x", "ada:planted-secret,ada:y", "ada:x,planted-secret"])
def test_bad_tokens_are_refused_without_repeating_them(text):
    with pytest.raises(ConfigError) as caught:
        parse_tokens(text)
    assert "planted-secret" not in str(caught.value) + caught.value.advice
    assert caught.value.advice


@pytest.mark.parametrize(
    "tokens", [{}, {"ada": ""}, {"ada": "x", "bob": "x"}, {"robot-1": "x"}, {"a b": "x"}, {"a:b": "x"}, {"": "x"}]
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
