"""A fake of the lobby open_mahjong_unity, for tests."""

from bothost.testing.fake_open_mahjong.rooms import Line
from bothost.testing.fake_open_mahjong.server import FakeOpenMahjong, Traps

__all__ = ["FakeOpenMahjong", "Line", "Traps"]
