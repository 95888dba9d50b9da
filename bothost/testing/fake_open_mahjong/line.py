"""The connections of the fake open_mahjong lobby."""

from __future__ import annotations

from bothost.testing.fake_server import Line as BaseLine


class Line(BaseLine):
    """One websocket."""

    checked = False
    """Whether the release version was accepted."""
    dead = False
    """The server's loop ended: the socket stands, answers protocol pings, and hears nothing."""
