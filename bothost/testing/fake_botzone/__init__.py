"""A fake of Botzone's local AI with judges of its games, for tests."""

from bothost.testing.fake_botzone.server import FakeBotzone, Traps

__all__ = ["FakeBotzone", "Traps"]
