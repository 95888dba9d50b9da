"""The connections of the fake open_mahjong lobby."""

from __future__ import annotations

from bothost.testing.fake_server import Line as BaseLine


class Line(BaseLine):
    """One websocket."""

    checked = False
    """Whether the release version was accepted."""
    dead = False
    """Whether the server ignores the socket. It stays open, and answers protocol pings."""
