"""A running host follows the registry: for new tables, off the event loop, and never at a live table's cost."""

import asyncio
import contextlib
import gc
import hashlib
import random
import re
import threading
from collections import Counter
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

import bothost_phase_ppo
from bothost import Decision, ModelError, Player, Strategy
from bothost.cli.status import as_text
from bothost.config import RouteSettings
from bothost.errors import StoreUnavailable
from bothost.host import reload
from bothost.host.canary import Played, Trial
from bothost.host.models import AliasCache, ModelWatch
from bothost.host.status import status_of
from bothost.plugins import weights
from bothost.store import Store
from bothost.store.registry import Pointer, Registry
from bothost.tables.hand import Hand
from bothost.tables.router import Router
from bothost_phase_ppo.decide import PhasePpo

VERSIONS = {n: weights.manifest(PhasePpo).aliases[f"level-{n}"] for n in range(1, 6)}
"""Level → the version that comes with the package."""

PAIRING = {"wishes": ("pairing",), "accounts": 2, "routes": (RouteSettings(strategy="phase-ppo"),)}
STUBBORN = {"wishes": ("pairing",), "accounts": 2, "tables": 8, "routes": (RouteSettings(strategy="stubborn"),)}
LEVELS = {n: weights.find(PhasePpo, f"level-{n}").sha256 for n in range(1, 6)}


@contextlib.asynccontextmanager
async def following(kit, wanted, *plugins):
    """A running host that follows the registry, and the registry."""
    settings = kit.settings(**wanted)
    host = kit.host(settings, *plugins)
    with Store.open(settings.store) as store:
        registry = Registry(store, kit.folder / "models")
        host.models = ModelWatch(host, registry, look_s=0.05)
        async with host.models.following():
            task = asyncio.create_task(host.run())
            try:
                yield host, registry
            finally:
                host.interrupt()
                await asyncio.wait_for(task, 90)


def models_of_hands(kit):
    """(strategy's version, sha256 of the hand) of the hands, oldest first."""
    return kit.rows("SELECT strategy_version, model_sha256 FROM games ORDER BY game_id")


def last_model(kit):
    found = models_of_hands(kit)
    return found[-1][1] if found else None


def assert_nothing_was_lost(kit):
    assert kit.count("decisions WHERE fallback IS NOT NULL") == 0
    pinned = "SELECT count(*) FROM decisions d JOIN games g USING (game_id, seat) WHERE d.role = 'live' AND "
    assert kit.rows(pinned + "d.model_sha256 IS NOT g.model_sha256")[0][0] == 0
    unsent = "decisions d WHERE role = 'live' AND NOT EXISTS (SELECT 1 FROM outcomes o WHERE o.decision_id = d.id)"
    assert kit.count(unsent) == 0


async def test_new_tables_play_by_what_the_alias_came_to_stand_for_and_live_ones_keep_theirs(kit):
    async with kit.lobby(), following(kit, PAIRING, bothost_phase_ppo) as (host, registry):
        await kit.until(lambda: last_model(kit) == LEVELS[5])
        for level in (2, 3):
            root = Path(weights.folder(PhasePpo)) / VERSIONS[level]
            files = weights.manifest(PhasePpo).versions[VERSIONS[level]].files
            made = registry.add(PhasePpo, root, files, encoder_version=2, lineage={})
            registry.point(PhasePpo, "champion", made.version, reason="test")
            await kit.until(lambda level=level: last_model(kit) == LEVELS[level])
        registry.back(PhasePpo, "champion", reason="test")
        await kit.until(lambda: last_model(kit) == LEVELS[2])
        await kit.until(lambda: len(host.plans.loaded) <= 3)  # what nobody plays by is let go of
        assert status_of(host)["registry"]["refused"] == 0
    assert_nothing_was_lost(kit)
    assert {path.name for path in kit.folder.glob("models/*")} == {LEVELS[2], LEVELS[3]}


class Stubborn(Strategy):
    """Makes its models fail as they please: ``refuse`` names versions that cannot be loaded."""

    name, version, games = "stubborn", "1", ("pairing",)
    refuse: ClassVar[set[str]] = set()
    slow: ClassVar[dict[str, tuple[threading.Event, threading.Event]]] = {}
    """Versions that take long to make: (set when one is being made, when it may go on)."""

    def __init__(self, options, model=None):
        super().__init__(options, model)
        if model is not None and model.version in self.refuse:
            raise ModelError("made for encoder version 2, this is version 1")
        if model is not None and model.version in self.slow:
            making, go_on = self.slow[model.version]
            making.set()
            assert go_on.wait(60)

    def player(self, table):
        return _First(self.model, table)


class _First(Player):
    def __init__(self, model, table):
        self.model, self.table = model, table

    def decide(self, view, legal, budget):
        bad = self.model is not None and self.model.version == "bad" and self.table.lobby == "home"
        if bad:
            raise RuntimeError("a bad model")
        return Decision(action=int(legal[0] if self.model is None else legal[-1]))


def model_folder(kit, name):
    folder = kit.folder / "made" / name
    folder.mkdir(parents=True)
    (folder / "model.json").write_text(f'{{"name": "{name}"}}')
    return folder, {"model.json": hashlib.sha256((folder / "model.json").read_bytes()).hexdigest()}


@pytest.fixture
def stubborn(kit, monkeypatch):
    monkeypatch.setattr(Stubborn, "refuse", set())
    monkeypatch.setattr(Stubborn, "slow", {})
    return kit.module("stubborn_plugin", Stubborn)


def add(kit, registry, name):
    return registry.add(Stubborn, *model_folder(kit, name), encoder_version=1, lineage={}, version=name)


def test_an_alias_that_moves_while_the_database_goes_away_is_followed_later():
    class Away:
        """A registry whose database goes away between two queries."""

        error = StoreUnavailable("away")

        def pointers(self):
            at = {"sha256": None, "share": None, "kind": "promote", "reason": "", "at_us": 0}
            return {("s", "champion"): Pointer(strategy="s", alias="champion", number=1, version="v2", **at)}

        def resolve(self, strategy, name):
            if self.error is not None:
                raise self.error
            return "v2"

    registry = Away()
    aliases = AliasCache(registry)
    with pytest.raises(StoreUnavailable):
        aliases.look()
    registry.error = None
    assert aliases.look() and aliases.resolve("s", "champion") == "v2"
    assert not aliases.look()


async def test_a_model_that_cannot_be_had_or_made_is_refused_and_the_old_one_plays_on(kit, stubborn, capsys):
    async with kit.lobby(), following(kit, STUBBORN, stubborn) as (host, registry):
        good, broken = add(kit, registry, "good"), add(kit, registry, "broken")
        registry.point(Stubborn, "champion", "good", reason="")
        await kit.until(lambda: last_model(kit) == good.sha256)
        with registry.store.begin() as connection:
            sha = broken.files["model.json"]
            connection.exec_driver_sql("UPDATE model_files SET content = x'7b7d' WHERE sha256 = ?", (sha,))
        registry.point(Stubborn, "champion", "broken", reason="")
        await kit.until(lambda: "model_refused" in capsys.readouterr().out)
        other = add(kit, registry, "other")
        Stubborn.refuse.add("other")
        registry.point(Stubborn, "champion", "other", reason="")
        await kit.until(lambda: host.models.refused == 1)
        hands = kit.count("games")
        await kit.until(lambda: kit.count("games") > hands + 2)
        assert last_model(kit) == good.sha256
        assert "encoder version 2" in capsys.readouterr().out
        assert other.sha256 not in {sha for _, sha in models_of_hands(kit)}
    assert_nothing_was_lost(kit)


async def test_a_model_with_which_its_strategy_hangs_is_refused_and_the_host_follows_others_and_ends(
    kit, stubborn, monkeypatch
):
    making, go_on = threading.Event(), threading.Event()
    try:
        async with kit.lobby(), following(kit, STUBBORN, stubborn) as (host, registry):
            add(kit, registry, "hangs")
            Stubborn.slow["hangs"] = making, go_on
            with monkeypatch.context() as patch:
                patch.setattr("bothost.host.models.MAKE_S", 0.1)
                registry.point(Stubborn, "champion", "hangs", reason="")
                await kit.until(lambda: host.models.refused == 1)
            assert making.is_set()
            good = add(kit, registry, "good")
            registry.point(Stubborn, "champion", "good", reason="")
            await kit.until(lambda: last_model(kit) == good.sha256)
    finally:
        go_on.set()
    assert_nothing_was_lost(kit)


async def test_loading_a_slow_model_delays_no_move(kit, stubborn):
    async with kit.lobby(), following(kit, STUBBORN, stubborn) as (host, registry):
        await kit.until(lambda: kit.count("games") > 2)
        made = add(kit, registry, "slow")
        making, go_on = Stubborn.slow["slow"] = threading.Event(), threading.Event()
        registry.point(Stubborn, "champion", "slow", reason="")
        await kit.until(making.is_set)
        tables = set(host.seated)
        await kit.until(lambda: not tables & host.seated.keys())  # each is played to its end
        assert made.sha256 not in {sha for _, sha in models_of_hands(kit)}
        go_on.set()
        await kit.until(lambda: last_model(kit) == made.sha256)
    assert_nothing_was_lost(kit)


async def test_a_model_to_which_the_alias_returns_while_it_still_plays_is_not_made_again(kit):
    class Counted(Stubborn):
        """Its version "slow" waits half a minute with each move, so that its first hand stays open."""

        name = "counted"
        made, closed = [], []

        def __init__(self, options, model=None):
            super().__init__(options, model)
            self.made.append(self.version_name)

        @property
        def version_name(self):
            return self.model.version if self.model is not None else "none"

        def player(self, table):
            player = _First(self.model, table)
            decide = player.decide
            wait_ms = 30_000.0 if self.version_name == "slow" else None
            player.decide = lambda *of: msgspec.structs.replace(decide(*of), wait_ms=wait_ms)
            return player

        def close(self):
            self.closed.append(self.version_name)

    wanted = PAIRING | {"routes": (RouteSettings(strategy="counted"),)}
    async with (
        kit.lobby(grant_ms=60_000),
        following(kit, wanted, kit.module("counted_plugin", Counted)) as (host, registry),
    ):
        hands = {}
        for version in ("slow", "other"):
            hands[version] = registry.add(
                Counted, *model_folder(kit, version), encoder_version=1, lineage={}, version=version
            ).sha256
        for trials in (Counted.made, Counted.closed):
            trials.clear()
        registry.point(Counted, "champion", "slow", reason="")
        await kit.until(lambda: last_model(kit) == hands["slow"])
        registry.point(Counted, "champion", "other", reason="")
        await kit.until(lambda: "other" in Counted.made)
        registry.back(Counted, "champion", reason="")
        await kit.until(lambda: "other" in Counted.closed)
        assert Counted.made.count("slow") == 1 and "slow" not in Counted.closed
        host.interrupt()


async def test_a_shadow_decides_every_position_is_logged_and_never_plays(kit):
    async with kit.lobby():
        async with following(kit, PAIRING, bothost_phase_ppo) as (host, registry):
            registry.point(PhasePpo, "shadow", VERSIONS[1], reason="")
            await kit.until(lambda: host.models.shadow.decided > 100)
            registry.point(PhasePpo, "shadow", None, reason="")
            await kit.until(lambda: host.models.shadow.of("phase-ppo") is None)
        assert host.models.shadow.failed == 0
    assert {sha for _, sha in models_of_hands(kit)} == {LEVELS[5]}
    of_shadow = kit.rows(
        "SELECT DISTINCT model_sha256, strategy, strategy_version FROM decisions WHERE role = 'shadow'"
    )
    assert of_shadow == [(LEVELS[1], "phase-ppo", VERSIONS[1])]
    same = (
        "SELECT count(*) FROM decisions s JOIN decisions l USING (game_id, seat, seq, substep, attempt) "
        "WHERE s.role = 'shadow' AND l.role = 'live' AND s.view = l.view AND s.legal = l.legal"
    )
    assert kit.rows(same)[0][0] == kit.count("decisions WHERE role = 'shadow'") > 100
    sent = "outcomes o JOIN decisions d ON d.id = o.decision_id WHERE d.role = 'shadow'"
    assert kit.count(sent) == 0
    assert_nothing_was_lost(kit)


async def test_after_a_reload_no_canary_and_no_shadow_of_a_strategy_without_a_route_stays(kit):
    class Counted(Stubborn):
        name = "counted"
        open: ClassVar[Counter[str | None]] = Counter()

        def __init__(self, options, model=None):
            super().__init__(options, model)
            self.open[model and model.version] += 1

        def close(self):
            self.open[self.model and self.model.version] -= 1

    wanted = STUBBORN | {"routes": (RouteSettings(strategy="counted"),)}
    async with kit.lobby(), following(kit, wanted, kit.module("counted_plugin", Counted)) as (host, registry):
        for alias, share in (("canary", 0.5), ("shadow", None)):
            made = registry.add(Counted, *model_folder(kit, alias), encoder_version=1, lineage={})
            registry.point(Counted, alias, made.version, share=share, reason="")
        await kit.until(lambda: host.models.shadow.decided and kit.count("games WHERE model_sha256 IS NOT NULL"))
        shown = as_text(status_of(host))
        assert re.search("canary +counted:r1\n", shown) and re.search(r"shadow +counted:r2, \d+ decision", shown)
        new = msgspec.structs.replace(host.settings, routes=(RouteSettings(strategy="test-random"),))
        assert +Counted.open and await reload.apply(host, lambda: new)
        await kit.until(lambda: not +Counted.open)
        status = host.models.status()
        assert (status["canaries"], status["shadow"]["models"]) == ({}, {})
        assert await reload.apply(host, lambda: msgspec.structs.replace(new, routes=wanted["routes"]))
        await kit.until(lambda: host.models.status()["canaries"] == {"counted": "r1"})


async def test_a_canary_plays_its_share_and_is_rolled_back_when_it_fails(kit, stubborn, capsys):
    async with kit.lobby(), following(kit, STUBBORN, stubborn) as (host, registry):
        fine, bad = add(kit, registry, "fine"), add(kit, registry, "bad")
        host.plans.reload(host.plans.router, quarantine_after=10**6, quarantine_s=1.0)  # the judge alone shall act
        registry.point(Stubborn, "canary", "fine", share=0.5, reason="")
        await kit.until(lambda: kit.count(f"games WHERE model_sha256 = '{fine.sha256}'") >= 3)
        await kit.until(lambda: kit.count("games WHERE model_sha256 IS NULL") >= 3)
        registry.point(Stubborn, "canary", "bad", share=0.5, reason="")
        await kit.until(lambda: registry.pointers()["stubborn", "canary"].kind == "rollback")
        pointer = registry.pointers()["stubborn", "canary"]
        assert pointer.version is None and "failures in" in pointer.reason and "p = " in pointer.reason
        hands = kit.count("games")
        await kit.until(lambda: kit.count("games") > hands + 8)
        after = kit.rows("SELECT model_sha256 FROM games ORDER BY game_id")[hands + 4 :]
        assert bad.sha256 not in {row[0] for row in after}
    assert "canary_rolled_back" in capsys.readouterr().out


def hands_in_memory():
    gc.collect()
    return sum(type(each) is Hand for each in gc.get_objects())


async def test_hands_with_failures_are_not_kept(kit, stubborn):
    async with kit.lobby(), following(kit, STUBBORN, stubborn) as (host, registry):
        for alias, version, share in (("canary", "fine", 0.5), ("level-1", "bad", None)):
            add(kit, registry, version)
            registry.point(Stubborn, alias, version, share=share, reason="")
        router = Router((RouteSettings(strategy="stubborn:level-1"),), host.plugins.strategies.__contains__)
        host.plans.reload(router, quarantine_after=10**6, quarantine_s=1.0)
        await kit.until(lambda: kit.count("decisions WHERE fallback IS NOT NULL") > 0)
        before, kept = host.runner.counters.hands, hands_in_memory()
        await kit.until(lambda: host.runner.counters.hands > before + 40)
        assert hands_in_memory() < kept + 20


def trial(pairs):
    made = Trial()
    for champion, canary in pairs:
        made.add(("l", "g"), Played(*champion), False)
        made.add(("l", "g"), Played(*canary), True)
    return made


def test_a_canary_that_scores_less_in_most_pairs_is_worse_and_one_like_the_champion_is_not():
    rng = random.Random(1)
    like = [((rng.gauss(0, 9), False), (rng.gauss(0, 9), False)) for _ in range(2000)]
    assert trial(like).verdict is None
    worse = [((rng.gauss(6, 9), False), (rng.gauss(0, 9), False)) for _ in range(400)]
    assert "scored less" in trial(worse).verdict
    better = [((rng.gauss(0, 9), rng.random() < 0.1), (rng.gauss(6, 9), False)) for _ in range(2000)]
    assert trial(better).verdict is None
    failing = [((None, False), (None, rng.random() < 0.3)) for _ in range(200)]
    assert "failures in" in trial(failing).verdict


def test_no_worse_canaries_are_rolled_back_as_rarely_as_stated():
    rng = random.Random(2)
    rolled = sum(
        trial([((rng.random(), rng.random() < 0.05), (rng.random(), rng.random() < 0.05)) for _ in range(300)]).verdict
        is not None
        for _ in range(300)
    )
    assert rolled <= 6  # 1 % of 300, and chance


def test_hands_of_other_lobbies_are_not_compared():
    made = Trial()
    for _ in range(100):
        made.add(("easy", "g"), Played(5.0, False), False)
        made.add(("hard", "g"), Played(-5.0, True), True)
    assert made.pairs == 0 and made.verdict is None
