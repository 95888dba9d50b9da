"""The embedded lobby: a websocket server where bots and people meet, for local play, demos and tests.

::

    async with serve(ServerSettings(tokens={"ada": "…"}, port=0)) as server:
        print(server.url)

``core`` is the lobby without sockets, ``table`` one playing table, ``matching`` the seeks; ``server`` is the thin
shell. The protocol is specified in ``docs/reference/lobby-protocol.md``.
"""

from bothost.lobby_server.server import LobbyServer, serve
from bothost.lobby_server.settings import ServerSettings

__all__ = ["LobbyServer", "ServerSettings", "serve"]
