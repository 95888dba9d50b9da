"""The adapter of mailgyc/doudizhu: Dou Dizhu with calling and grabbing."""

from bothost.lobbies.mailgyc.adapter import MailgycLobby
from bothost.lobbies.mailgyc.options import MailgycOptions

__all__ = ["MailgycLobby", "MailgycOptions"]
