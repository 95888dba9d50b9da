"""The conformance kit: whole hands at the fake lobby, kills, hostile frames."""

from __future__ import annotations

import asyncio

from bothost.testing.check_lobby import check_lobby
from bothost_small_lobby.fake import KIT


def test_conformance() -> None:
    asyncio.run(check_lobby(KIT)).require()
