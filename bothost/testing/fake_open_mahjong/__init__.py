"""A fake of the lobby open_mahjong_unity, for tests."""

from bothost.testing.fake_open_mahjong.rooms import Line
from bothost.testing.fake_open_mahjong.server import FakeOpenMahjong
from bothost.testing.fake_open_mahjong.traps import Traps

__all__ = ["FakeOpenMahjong", "Line", "Traps"]
