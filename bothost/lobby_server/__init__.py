"""The embedded lobby: a websocket server where bots and people meet, for local play, demos and tests.

::

    async with serve(ServerSettings(tokens={"ada": "…"}, port=0)) as server:
        print(server.url)

``server`` is the thin shell around ``core``, the lobby without sockets. The core is composed of ``connections``,
``accounts``, ``players``, ``matching`` (seeks) and ``playing`` (tables and their hands). The protocol is specified in
``docs/reference/lobby-protocol.md``.
"""

from bothost.lobby_server.server import LobbyServer, serve
from bothost.lobby_server.settings import ServerSettings

__all__ = ["LobbyServer", "ServerSettings", "serve"]
