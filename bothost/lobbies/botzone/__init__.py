"""The adapter of Botzone's local AI, and the dialects of its games."""

from bothost.lobbies.botzone.adapter import Botzone
from bothost.lobbies.botzone.options import BotzoneOptions

__all__ = ["Botzone", "BotzoneOptions"]
