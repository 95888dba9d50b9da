"""How fast the page "hands" finds its rows among many decisions, filter by filter.

python benchmarks/hands_list.py --decisions 1000000
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa

from bothost.config import HostSettings, Settings, StoreSettings
from bothost.plugins import Plugins
from bothost.store import GameEndRecord, Store, schema
from bothost.store.models import decisions, game_ends, games
from bothost.store.query import HandQuery
from bothost.testing.sample_rows import sample_decision, sample_game
from bothost.web import hands
from bothost.web.site import Site

OF_HAND = 25
"""Decisions of one hand."""
RARE = 20_000
"""One hand in so many has a fallback, a rare player or a rare strategy."""
AT_ONCE = 2000
FIRST_US = 1_700_000_000_000_000


def rows(number: int, rng: random.Random) -> tuple[Any, list[Any], Any]:
    """One hand. The oldest hands have what is rare: a search finds it last."""
    game = sample_game(rng, started_us=FIRST_US + number * 10_000_000)
    rare = number % RARE == 7
    if rare:
        game.players = game.players.replace("guest-", "rare-", 1)
        game.strategy = "rare-bot"
    made = [sample_decision(rng, game, seq, legal=4) for seq in range(OF_HAND)]
    if rare:
        made[3].fallback = "late"
    won = rng.choice((-1.0, 2.0))
    ended_us, scores = game.started_us + 10**6, json.dumps([won, -won, 0.0])
    end = GameEndRecord(game_id=game.game_id, seat=game.seat, reason="normal", scores=scores, ended_us=ended_us)
    return game, made, end


def fill(store: Store, count: int) -> None:
    """Log ``count`` decisions."""
    rng = random.Random(1)
    for start in range(0, count // OF_HAND, AT_ONCE):
        some = [rows(number, rng) for number in range(start, min(start + AT_ONCE, count // OF_HAND))]
        with store.begin() as connection:
            connection.execute(games.insert(), [msgspec.structs.asdict(game) for game, _, _ in some])
            every = [decision for _, made, _ in some for decision in made]
            connection.execute(decisions.insert(), [msgspec.structs.asdict(decision) for decision in every])
            connection.execute(game_ends.insert(), [msgspec.structs.asdict(end) for _, _, end in some])


def queries(site: Site) -> Iterator[tuple[str, HandQuery]]:
    """What the page can ask for."""
    with site.store.begin() as connection:
        text = connection.execute(sa.select(games.c.players).where(games.c.strategy == "rare-bot")).scalars().first()
    rare = next(player["player"] for player in json.loads(text or "[]") if player["player"].startswith("rare-"))
    yield "newest", HandQuery(closed=True)
    yield "game", HandQuery(closed=True, games=("doudizhu",))
    yield "won", HandQuery(closed=True, results=("won",))
    yield "drawn (none)", HandQuery(closed=True, results=("drawn",))
    yield "day", HandQuery(closed=True, since_us=FIRST_US, until_us=FIRST_US + 86_400_000_000)
    yield "fallback (rare)", HandQuery(closed=True, fallbacks=True)
    yield "player (common)", HandQuery(closed=True, players=("guest-7",))
    yield "player (rare)", HandQuery(closed=True, players=(rare,))
    yield "player (none)", HandQuery(closed=True, players=("stranger",))
    yield "strategy (rare)", HandQuery(closed=True, strategies=("rare-bot",))
    yield "strategy (none)", HandQuery(closed=True, strategies=("stranger",))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--url", help="database; default: a temporary SQLite file")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = StoreSettings(url=chosen.url or f"sqlite:///{folder}/bothost.db")
        schema.upgrade(settings)
        with Store.open(settings) as store:
            started = time.perf_counter()
            fill(store, chosen.decisions)
            print(f"{chosen.decisions:,} decisions logged in {time.perf_counter() - started:.0f} s")
            host = HostSettings(data_dir=Path(folder))
            site = Site(Settings(host=host, store=settings), store, Plugins.load(entry_points=False))
            for name, query in queries(site):
                times = []
                for _ in range(5):
                    started = time.perf_counter()
                    found = hands.listed(site, query, None)["hands"]
                    times.append(1000 * (time.perf_counter() - started))
                print(f"{name:<18} {sorted(times)[2]:8.1f} ms   {len(found)} hands")


if __name__ == "__main__":
    main()
