"""A fake of the lobby mailgyc/doudizhu, for tests."""

from bothost.testing.fake_mailgyc.parts import Traps
from bothost.testing.fake_mailgyc.server import MailgycFake

__all__ = ["MailgycFake", "Traps"]
