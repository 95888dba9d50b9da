"""Logging in at othello_platform: tokens, their end, and refusals."""

import json

from bothost import messages as m
from bothost.lobbies.base import Account
from bothost.lobbies.othello_platform import OthelloPlatform, OthelloPlatformOptions

from .bench import (
    ACCOUNT,
    calls,
    frame,
    only,
    proves,
    ready,
    refusal,
    reply,
    said,
    seek,
)

# ----------------------------------------------------------------------------------------------------------- log in


def test_logging_in_step_by_step():
    adapter = OthelloPlatform(ACCOUNT, OthelloPlatformOptions())
    (login,) = calls(adapter.feed(m.Authenticate()))
    assert login.url == "http://lobby.example:1/api/v1/auth/login"
    assert json.loads(login.body) == {"username": "ada", "password": "planted-secret", "remember": True}
    outputs = adapter.feed(reply(login, 200, token="jwt-1"))
    assert only(outputs, m.OpenSocket) == m.OpenSocket(1, ACCOUNT.url, (("User-Agent", "bot/1"),))
    assert said(adapter.feed(m.SocketOpened(1))) == [{"type": "auth", "payload": {"token": "jwt-1"}}]
    outputs = adapter.feed(frame("auth_ok", userId=1, username="ada"))
    assert only(outputs, m.Connected) == m.Connected("1", False, "ada")


@proves("needs_secret")
def test_an_account_without_a_password_is_refused():
    adapter = OthelloPlatform(Account(name="ada", url="ws://h:1"), OthelloPlatformOptions())
    assert isinstance(only(adapter.feed(m.Authenticate()), m.AuthFailed), m.AuthFailed)
    assert adapter.capabilities.needs_secret


def test_an_unknown_account_is_registered_only_where_the_operator_allows_it():
    for allowed in (False, True):
        adapter = OthelloPlatform(ACCOUNT, OthelloPlatformOptions(register=allowed))
        (login,) = calls(adapter.feed(m.Authenticate()))
        outputs = adapter.feed(refusal(login, 401, "AUTH_REQUIRED"))
        if not allowed:
            assert only(outputs, m.AuthFailed).reason.startswith("AUTH_REQUIRED")
            continue
        (register,) = calls(outputs)
        assert register.url.endswith("/auth/register")
        assert calls(adapter.feed(reply(register, 201, userId=1, token="jwt"))) == []


def registering(adapter, begin):
    """The call that registers, after the lobby did not know the account."""
    (login,) = calls(adapter.feed(begin))
    (register,) = calls(adapter.feed(refusal(login, 401, "AUTH_REQUIRED")))
    return register


def test_a_wrong_password_is_named_where_accounts_are_registered():
    adapter = OthelloPlatform(ACCOUNT, OthelloPlatformOptions(register=True))
    outputs = adapter.feed(refusal(registering(adapter, m.Authenticate()), 409, "VALIDATION_ERROR"))
    assert "another password" in only(outputs, m.AuthFailed).reason


def test_a_registration_that_was_accepted_late_does_not_end_the_account():
    adapter = OthelloPlatform(ACCOUNT, OthelloPlatformOptions(register=True))
    adapter.feed(m.HttpResult(registering(adapter, m.Authenticate()).request, 0, (), b"ReadTimeout"))
    outputs = adapter.feed(refusal(registering(adapter, m.Authenticate()), 409, "VALIDATION_ERROR"))
    assert only(outputs, m.Disconnected), "the next login has the right password"
    outputs = adapter.feed(refusal(registering(adapter, m.Authenticate()), 409, "VALIDATION_ERROR"))
    assert only(outputs, m.AuthFailed)


def test_trap_tokens_live_a_quarter_of_an_hour():
    adapter, _ = ready()
    adapter.feed(m.SocketClosed(1, 1006))
    assert only(adapter.feed(m.Resume(())), m.OpenSocket).conn == 2, "a young token is used again"
    adapter.feed(m.SocketClosed(2, 1006))
    adapter.feed(m.TimerFired("token"))
    (refresh,) = calls(adapter.feed(m.Resume(())))
    assert refresh.url.endswith("/auth/refresh")
    (login,) = calls(adapter.feed(refusal(refresh, 401, "AUTH_REQUIRED")))
    assert login.url.endswith("/auth/login")


def test_trap_ten_logins_a_minute():
    adapter = OthelloPlatform(ACCOUNT, OthelloPlatformOptions())
    (login,) = calls(adapter.feed(m.Authenticate()))
    assert only(adapter.feed(refusal(login, 429, "RATE_LIMITED")), m.Disconnected).retry_after_s == 60.0


def test_a_call_refused_for_its_token_is_made_again_once():
    adapter, _ = ready()
    (made,) = calls(seek(adapter, "create"))
    (refresh,) = calls(adapter.feed(refusal(made, 401, "AUTH_REQUIRED")))
    (again,) = calls(adapter.feed(reply(refresh, 200, token="jwt-2", refreshToken="r-2")))
    assert dict(again.headers)["Authorization"] == "Bearer jwt-2"
    assert only(adapter.feed(refusal(again, 401, "AUTH_REQUIRED")), m.SeekEnded).seek == "s"


def test_trap_invalid_token_closes():
    adapter, _ = ready()
    for conn in (1, 2, 3):
        outputs = adapter.feed(frame("error", conn, code="INVALID_TOKEN", msg="old"))
        only(outputs, m.Disconnected)
        (login,) = calls(adapter.feed(m.Resume(())))
        adapter.feed(reply(login, 200, token="jwt", refreshToken="r"))
        adapter.feed(m.SocketOpened(conn + 1))
    assert only(adapter.feed(frame("error", 4, code="INVALID_TOKEN", msg="old")), m.AuthFailed)
