"""A log of phase-ppo's hands, and what a retraining works with."""

import asyncio
import json
import random

import numpy as np
import pytest

from bothost import Budget, Request, Table, rules
from bothost.plugins import Plugins
from bothost.retrain.job import Tools
from bothost.store import DecisionLog, DecisionRecord, EventsRecord, GameEndRecord, Store
from bothost.store.registry import Registry
from bothost.testing.sample_rows import sample_decision, sample_game


def hand(game, strategy, seed, rng):
    """All rows of one hand of a strategy against itself, seen from the seat that ``seed`` names, modulo the seats."""
    seat = seed % game.num_seats
    made = sample_game(rng, seat=seat, started_us=1_700_000_000_000_000 + seed * 10**7)
    made.game, made.rules, made.format_version = game.name, json.dumps(game.rules), game.format_version
    made.strategy, made.strategy_version, made.seed = strategy.name, strategy.version, seed
    if strategy.model is not None:
        made.strategy_version, made.model_sha256 = strategy.model.version, strategy.model.sha256
    made.table = f"table-{seed}"
    others = [{"seat": s, "player": f"guest-{seed % 5}"} for s in range(1, game.num_seats)]
    made.players = json.dumps([{"seat": 0, "player": "ada"}, *others])
    rows, state = [made], game.new_state(seed)
    seen = 0
    seats = range(game.num_seats)
    players = [strategy.player(Table(lobby="home", table="1", game=game, seat=s, seed=seed)) for s in seats]
    while not state.terminal:
        actor = state.to_act[0]
        view, legal = state.view(actor), state.legal(actor)
        decision = strategy.decide_many([Request(players[actor], view, legal, Budget(float("inf")))])[0]
        if actor == seat:
            rows.append(EventsRecord(made.game_id, seat, seen, "\n".join(state.events(seat, seen))))
            seen = view.seq
            rows.append(row(made, view, legal, decision, rng))
        state.apply(actor, decision.action)
    rows.append(EventsRecord(made.game_id, seat, seen, "\n".join(state.events(seat, seen))))
    ended = made.started_us + 60_000_000
    scores = json.dumps(state.returns)
    rows.append(GameEndRecord(game_id=made.game_id, seat=seat, reason="normal", scores=scores, ended_us=ended))
    return rows


def row(made, view, legal, decision, rng) -> DecisionRecord:
    found = sample_decision(rng, made, view.seq, legal=1)
    found.view, found.state_hash, found.phase = view.to_bytes(), view.hash(), view.phase
    found.legal, found.action = legal.astype("<i4").tobytes(), decision.action
    found.notation = view.notation(decision.action)
    found.policy, found.action_values = _floats(decision.policy), _floats(decision.values)
    found.stats = None if decision.stats is None else json.dumps(decision.stats)
    found.value, found.model_sha256 = decision.value, decision.model_sha256
    found.encoder_version, found.strategy_version = decision.encoder_version, made.strategy_version
    return found


def _floats(values) -> bytes | None:
    return None if values is None else np.array(values, "<f4").tobytes()


def fill(settings, folder, hands):
    async def write():
        log = DecisionLog.open(settings, "test", folder / "spool")
        for rows in hands:
            log.submit(rows)  # all are written together
        await log.aclose()

    asyncio.run(write())


@pytest.fixture(scope="session")
def hands():
    game, strategy = rules.game("pairing"), Plugins.load().resolve("phase-ppo:level-2").make()
    rng = random.Random(5)
    return [hand(game, strategy, seed, rng) for seed in range(12)]


@pytest.fixture
def log_hand(any_settings, tmp_path):
    """Play a hand by a strategy and log it beside the others."""

    def play(strategy, seed):
        fill(any_settings, tmp_path, [hand(rules.game("pairing"), strategy, seed, random.Random(seed))])

    return play


@pytest.fixture
def tools(any_settings, hands, tmp_path):
    fill(any_settings, tmp_path, hands)
    with Store.open(any_settings) as store:
        registry = Registry(store, tmp_path / "models")
        yield Tools(Plugins.load(aliases=registry.resolve), store, registry)
