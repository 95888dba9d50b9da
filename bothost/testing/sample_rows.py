"""Synthetic rows of the decision log with realistic sizes, for tests and benchmarks of the store."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import uuid_utils

from bothost.config import StoreSettings
from bothost.rules.game import Game
from bothost.store.decision_log import DecisionLog
from bothost.store.records import DecisionRecord, EventsRecord, GameEndRecord, GameRecord, OutcomeRecord, Record

LEGAL_ACTIONS = (1, 2, 2, 2, 4, 6, 10, 12, 20, 40, 80, 150, 300)
"""Typical numbers of legal actions in Dou Dizhu: a few for most positions, hundreds for a lead with a full hand."""
VIEW_BYTES = 100


def sample_game(
    rng: random.Random, *, seat: int = 0, account: str = "ada", started_us: int | None = None
) -> GameRecord:
    """A hand of Dou Dizhu at the lobby ``home``."""
    now = time.time_ns() // 1000 if started_us is None else started_us
    players = [
        {"player": account if other == seat else f"guest-{rng.randrange(50)}", "seat": other} for other in range(3)
    ]
    return GameRecord(
        game_id=uuid7(now // 1000, rng),
        host="local",
        lobby="home",
        account=account,
        table=f"table-{rng.randrange(10**6)}",
        hand="1",
        game="doudizhu",
        rules='{"bidding":"none"}',
        format_version=1,
        seat=seat,
        players=json.dumps(players),
        seed=rng.randrange(2**63),
        strategy="rule-doudizhu",
        strategy_version="1.0",
        model_sha256=None,
        config_hash="0123456789abcdef",
        attributes="{}",
        started_us=now,
    )


def uuid7(ms: int, rng: random.Random) -> bytes:
    """A uuid7 of this time, milliseconds since 1970."""
    tail = rng.getrandbits(80) & ~(0xF000 << 64 | 0xC000 << 48) | 0x7000 << 64 | 0x8000 << 48
    return ms.to_bytes(6, "big") + tail.to_bytes(10, "big")


def sample_decision(rng: random.Random, game: GameRecord, seq: int, *, legal: int | None = None) -> DecisionRecord:
    """A decision of the hand, with all fields that a live host fills, and a policy."""
    count = rng.choice(LEGAL_ACTIONS) if legal is None else legal
    actions = np.sort(np.asarray(rng.sample(range(27472), count), dtype="<i4"))
    policy = np.full(count, 1.0 / count, dtype="<f4")
    return DecisionRecord(
        id=uuid_utils.uuid7().bytes,
        game_id=game.game_id,
        seat=game.seat,
        seq=seq,
        substep=0,
        attempt=0,
        role="live",
        host=game.host,
        lobby=game.lobby,
        table=game.table,
        request_id=f"{game.table}-{seq}",
        game=game.game,
        phase="play",
        state_hash=rng.randrange(-(2**63), 2**63),
        view=rng.randbytes(VIEW_BYTES),
        legal=actions.tobytes(),
        policy=policy.tobytes(),
        action_values=None,
        value=rng.uniform(-1, 1),
        action=int(actions[rng.randrange(count)]),
        notation="333444555",
        strategy=game.strategy,
        strategy_version=game.strategy_version,
        model_sha256=None,
        encoder_version=None,
        stats=None,
        fallback=None,
        budget_ms=4750.0,
        elapsed_ms=rng.uniform(0.05, 2.0),
        config_hash=game.config_hash,
        seed=game.seed,
        raw=None,
        at_us=game.started_us + 1000 * seq,
    )


def sample_hand(rng: random.Random, *, decisions: int = 12, ended: bool = True, **of_game: object) -> list[Record]:
    """All rows of one hand, in the order in which a host writes them."""
    game = sample_game(rng, **of_game)  # type: ignore[arg-type]
    rows: list[Record] = [game]
    for step in range(decisions):
        seq = 1 + 3 * step
        stretch = EventsRecord(game.game_id, game.seat, max(0, seq - 3), "play 1 3\nplay 2 4\nplay 0 5")
        decision = sample_decision(rng, game, seq)
        rows += [stretch, decision, OutcomeRecord(decision.id, "sent", None, decision.at_us + 900)]
    if ended:
        scores = json.dumps([2.0, -1.0, -1.0])
        at = game.started_us + 60_000_000
        rows.append(GameEndRecord(game_id=game.game_id, seat=game.seat, reason="normal", scores=scores, ended_us=at))
    return rows


def played_hand(game: Game, seed: int, *, seat: int = 0, **of_game: object) -> list[Record]:
    """All rows of a hand of random play, with real views, events and scores.

    Equal seeds give equal hands, also for different seats.
    """
    rng, play = random.Random(seed), random.Random(seed)
    made = sample_game(rng, seat=seat, **of_game)  # type: ignore[arg-type]
    made.game, made.rules, made.format_version = game.name, json.dumps(game.rules), game.format_version
    rows: list[Record] = [made]
    state, seen = game.new_state(seed), 0
    while not state.terminal:
        actor = play.choice(state.to_act)
        legal = state.legal(actor)
        action = int(play.choice(legal.tolist()))
        if actor == seat:
            events = state.events(seat, seen)
            rows.append(EventsRecord(made.game_id, seat, seen, "\n".join(events)))
            seen += len(events)
            view = state.view(seat)
            row = sample_decision(rng, made, seen, legal=1)
            row.view, row.state_hash, row.phase = view.to_bytes(), view.hash(), view.phase
            row.legal, row.action, row.notation = legal.astype("<i4").tobytes(), action, view.notation(action)
            row.policy = np.full(len(legal), 1 / len(legal), dtype="<f4").tobytes()
            row.stats = json.dumps({"reason": "drawn at random"})
            rows += [row, OutcomeRecord(row.id, "sent", None, row.at_us + 500)]
        state.apply(actor, action)
    events = state.events(seat, seen)
    rows.append(EventsRecord(made.game_id, seat, seen, "\n".join(events)))
    scores, at = json.dumps(state.returns), made.started_us + 60_000_000
    rows.append(GameEndRecord(game_id=made.game_id, seat=seat, reason="normal", scores=scores, ended_us=at))
    return rows


def write_rows(settings: StoreSettings, folder: Path, parts: Iterable[list[Record]]) -> None:
    """Write rows to the log, part by part. ``folder`` is for its spool."""

    async def write() -> None:
        log = DecisionLog.open(settings, "test", folder / "spool")
        for rows in parts:
            if log.full:
                await log.room()
            log.submit(rows)
        await log.aclose()

    asyncio.run(write())
