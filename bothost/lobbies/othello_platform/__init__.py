"""The adapter of othello_platform: Othello by matchmaking, in rooms, or against the lobby's own player."""

from bothost.lobbies.othello_platform.adapter import OthelloPlatform
from bothost.lobbies.othello_platform.options import OthelloPlatformOptions

__all__ = ["OthelloPlatform", "OthelloPlatformOptions"]
