"""A fake of the lobby othello-platform, for tests."""

from bothost.testing.fake_othello_platform.parts import Traps
from bothost.testing.fake_othello_platform.server import FakeOthelloPlatform

__all__ = ["FakeOthelloPlatform", "Traps"]
