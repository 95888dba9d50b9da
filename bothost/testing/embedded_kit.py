"""The conformance kit's settings for the embedded lobby."""

from bothost.lobbies.base import Account
from bothost.lobbies.embedded import EmbeddedLobby
from bothost.messages import Wish
from bothost.testing.check_lobby import UNOBSERVED, LobbyKit
from bothost.testing.fake_lobby import FakeLobby

TOKENS = {"ada": "token-of-ada-in-the-kit", "bob": "token-of-bob-in-the-kit", "cyd": "token-of-cyd-in-the-kit"}


def lobby() -> FakeLobby:
    """A lobby with long clocks, so that none expires during a check."""
    return FakeLobby(TOKENS, grant_ms=60_000)


def accounts(lobby: FakeLobby) -> list[Account]:
    """Three accounts that seek the same game."""
    return [Account(name=name, url=lobby.url, token=token) for name, token in TOKENS.items()]


KIT = LobbyKit(
    adapter=EmbeddedLobby,
    lobby=lobby,
    accounts=accounts,
    wish=Wish("doudizhu"),
    proven_by=dict.fromkeys(
        UNOBSERVED, "tests/lobbies/embedded/test_adapter.py::test_the_lobby_can_do_what_is_declared"
    ),
)
