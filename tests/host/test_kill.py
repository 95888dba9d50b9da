"""kill -9 at any moment: after the restart every move that the lobby received has its row, and the tables go on."""

import asyncio
import os
import random
import signal
from collections import Counter

from bothost.lobbies.embedded import protocol as wire
from bothost.testing.fake_lobby import FakeLobby

NAMES = ("ada", "bob", "cyd")
KILLS = 10


async def test_kills_lose_no_move_and_double_none(kit, killable):
    rng = random.Random(20)
    async with FakeLobby({name: name * 3 for name in NAMES}, grant_ms=60_000, hands=2) as lobby:
        async with killable(lobby) as start:
            for _ in range(KILLS):
                moves = moves_of(lobby)
                host = await start()
                if rng.random() < 0.8:  # else at some moment of its start
                    await lobby.until(lambda: moves_of(lobby) > moves, 60)  # noqa: B023 (awaited here)
                await asyncio.sleep(rng.uniform(0.0, 0.4))
                os.kill(host, signal.SIGKILL)
            host = await start()
            hands = ended(lobby)
            await lobby.until(lambda: ended(lobby) >= hands + 6 and moves_of(lobby) > 150, 100)
            os.kill(host, signal.SIGTERM)
            os.kill(host, signal.SIGTERM)
        every_move_has_one_row(kit, lobby)
        no_second_opinions(lobby)
        hands_went_on_under_their_ids(kit)


def moves_of(lobby):
    return sum('"type":"act"' in frame.data for frame in lobby.frames if frame.direction == "in")


def ended(lobby):
    return sum('"type":"hand_ended"' in frame.data for frame in lobby.frames if frame.direction == "out")


def every_move_has_one_row(kit, lobby):
    received = {(act.table, act.id, act.action) for name in NAMES for act in lobby.said_by(name, wire.Act)}
    rows = Counter(kit.rows('SELECT "table", request_id, notation FROM decisions'))
    assert len(received) > 100
    missing = [move for move in received if move not in rows]
    assert missing == []
    assert {count for move, count in rows.items() if move in received} == {1}


def no_second_opinions(lobby):
    """A request that was answered before the crash is answered again with the same move."""
    answers = {}
    for name in NAMES:
        for act in lobby.said_by(name, wire.Act):
            assert answers.setdefault((act.table, act.id), act.action) == act.action
    illegal = [r for name in NAMES for r in lobby.sent_to(name, wire.Rejected) if r.reason == "illegal"]
    assert illegal == []


def hands_went_on_under_their_ids(kit):
    names = kit.rows('SELECT account, "table", hand, count(*) FROM games GROUP BY 1, 2, 3')
    assert {count for *_, count in names} == {1}
    interrupted = kit.count(
        "game_ends e JOIN snapshots s ON s.game_id = e.game_id AND s.seat = e.seat WHERE e.reason = 'normal'"
    )
    assert interrupted > 0, "no hand was finished that a kill had interrupted"
