"""The embedded lobby: its protocol, and the adapter of hosts that play there."""

from bothost.lobbies.embedded.adapter import EmbeddedLobby
from bothost.lobbies.embedded.options import EmbeddedOptions

__all__ = ["EmbeddedLobby", "EmbeddedOptions"]
