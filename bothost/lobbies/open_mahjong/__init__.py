"""The adapter of xelnagamiao/open_mahjong_unity: Chinese Official mahjong with flowers."""

from bothost.lobbies.open_mahjong.adapter import OpenMahjong
from bothost.lobbies.open_mahjong.options import OpenMahjongOptions

__all__ = ["OpenMahjong", "OpenMahjongOptions"]
