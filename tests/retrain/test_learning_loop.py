"""The whole loop, by the commands that an operator types:

play → export → retrain → gate → promote → loaded without a lost or late move → replay → roll back.

Host, lobby and commands share one process here, and the tests the machine with others: clocks, leases and patience are
long enough that none of them runs out because everything is slow at once.
"""

import asyncio
import contextlib
import json

import pytest
import sqlalchemy as sa

from bothost import config, rules
from bothost.cli import main
from bothost.host import launch
from bothost.lobby_server import ServerSettings, serve
from bothost.plugins import Plugins
from bothost.store import Store
from bothost.store.leases import JobLease

CONFIG = """
[host]
name = "{name}"
data_dir = "{name}"
lease_s = 120.0
[store]
url = "{url}"
[limits]
tables = 4
[[lobby]]
name = "home"
adapter = "embedded"
url = "{lobby}"
margin_ms = 50.0
min_move_ms = 60.0
allow_same_table = true
[[lobby.account]]
name = "ada"
tables = 2
wish = [{{game = "pairing"}}]
[[lobby.account]]
name = "bob"
tables = 2
wish = [{{game = "pairing"}}]
[[route]]
strategy = "phase-ppo"
[route.options]
temperature = 1.0
symmetries = 1
"""
TINY = ["environments=32", "horizon=128", "pool_every=2", "ppo.epochs=2"]


def parsed(out):
    """The JSON at the end of the output, behind the lines that the host logged meanwhile."""
    lines = out.splitlines()
    begin = max(i for i, line in enumerate(lines) if line in ("{", "["))
    end = max(i for i, line in enumerate(lines) if line in ("}", "]"))
    return json.loads("\n".join(line for line in lines[begin : end + 1] if not line.startswith("20")))


class Operator:
    """Types commands beside a running host."""

    def __init__(self, folder, capsys, engine):
        self.folder, self.capsys, self.engine = folder, capsys, engine

    async def __call__(self, *args, code=0, file="config.toml"):
        """The JSON that a command prints; with a code, what it says on stderr."""
        words = [*args, "--config", str(self.folder / file), "--json"]
        self.capsys.readouterr()
        got = await asyncio.to_thread(main, words)
        out, err = self.capsys.readouterr()
        assert got == code, (args, out[-2000:], err[-2000:])
        return err if code else parsed(out)

    def rows(self, query):
        with self.engine.begin() as connection:
            return connection.execute(sa.text(query)).all()

    async def until(self, condition, seconds=200.0):
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 (another task, or another process, makes it true)
                await asyncio.sleep(0.05)

    def playing(self):
        """The model of the hand that began last."""
        found = self.rows("SELECT model_sha256 FROM games ORDER BY game_id DESC LIMIT 1")
        return found[0][0] if found else None


@contextlib.asynccontextmanager
async def lobby():
    tokens = {name: name * 3 for name in ("ada", "bob")}
    async with serve(ServerSettings(tokens=tokens, port=0, grant_ms=20_000), games=rules.games(testing=True)) as server:
        yield server.url


@contextlib.asynccontextmanager
async def playing(file):
    """A host, as ``bothost run`` starts it; drained at the end."""
    settings = config.load(file)
    plugins = Plugins.load(None)
    async with launch.opened(settings, plugins) as host:
        task = asyncio.create_task(host.run())
        try:
            yield host
        finally:
            host.interrupt()
            host.interrupt()
            await asyncio.wait_for(task, 120)


@pytest.fixture
def operator(any_settings, tmp_path, monkeypatch, capsys):
    for name in ("ADA", "BOB"):
        for place in ("HOME", "AWAY"):
            monkeypatch.setenv(f"BOTHOST_{place}_{name}_TOKEN", name.lower() * 3)
    monkeypatch.chdir(tmp_path)
    engine = sa.create_engine(any_settings.url.replace("postgresql://", "postgresql+psycopg://"))
    made = Operator(tmp_path, capsys, engine)
    made.url = any_settings.url
    yield made
    engine.dispose()


async def from_nothing(operator):
    """A first model: one tiny update from random numbers."""
    first = operator.folder / "first"
    tiny = [
        word for text in ("iterations=1", "environments=8", "horizon=16", "playouts=0") for word in ("--option", text)
    ]
    await operator("train", "phase-ppo", "--out", str(first), *tiny)
    await operator("model", "import", "phase-ppo", str(first / "weights"))
    return await operator("model", "promote", "phase-ppo", "--force")


ON_SQLITE = pytest.mark.parametrize(
    "any_settings", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True
)
ON_POSTGRESQL = pytest.mark.parametrize(
    "any_settings", [pytest.param("sqlite", marks=pytest.mark.long), "postgresql"], indirect=True
)


@pytest.mark.timeout(900)
@ON_SQLITE
async def test_the_whole_loop(operator):
    tiny = [word for text in ("iterations=8", *TINY) for word in ("--option", text)]
    async with lobby() as url:
        (operator.folder / "config.toml").write_text(CONFIG.format(name="one", url=operator.url, lobby=url))
        first = await from_nothing(operator)
        async with playing(operator.folder / "config.toml") as host:
            # Hands are split by chance: of six, none may be left to learn from.
            await operator.until(lambda: host.runner.counters.hands >= 12)
            assert operator.playing() == first["sha256"]
            old = operator.rows("SELECT id FROM decisions WHERE role = 'live' ORDER BY id LIMIT 1")[0][0]
            old = old.hex() if isinstance(old, bytes) else old.hex

            exported = await operator("export", "--out", str(operator.folder / "exports"))
            assert exported["rows"] > 50

            made = await operator("retrain", "phase-ppo", "--promote", "--deals", "400", *tiny)
            assert made["promotion"]["promoted"], made["promotion"]
            assert made["promotion"]["p_better"] <= 0.05
            await operator.until(lambda: operator.playing() == made["sha256"])  # loaded for new tables

            err = await operator("model", "promote", f"phase-ppo:{first['version']}", "--deals", "300", code=1)
            assert "not promoted" in err and "is worse than" in err  # a deliberately worse challenger

            again = await operator("replay", old)
            assert len(again) == 1 and again[0]["exact"] and again[0]["model_sha256"] == first["sha256"]
            other = await operator("replay", old, "--model", "phase-ppo")
            assert not other[0]["exact"] and other[0]["view_exact"]

            back = await operator("model", "rollback", "phase-ppo")
            assert back["version"] == first["version"]
            await operator.until(lambda: operator.playing() == first["sha256"])
            assert host.runner.counters.fallbacks == {}  # no move was dropped or late
    pinned = "SELECT count(*) FROM decisions d JOIN games g ON g.game_id = d.game_id AND g.seat = d.seat WHERE "
    assert operator.rows(pinned + "d.model_sha256 <> g.model_sha256")[0][0] == 0


@pytest.mark.timeout(900)
@ON_POSTGRESQL
async def test_two_hosts_of_one_database_do_nothing_twice(operator, any_settings):
    """Both retrain at once: one does it, the other is told; both take the new model up, from the database."""
    tiny = [word for text in ("iterations=3", *TINY) for word in ("--option", text)]
    async with lobby() as url, lobby() as other_url:
        (operator.folder / "config.toml").write_text(CONFIG.format(name="one", url=operator.url, lobby=url))
        second = CONFIG.format(name="two", url=operator.url, lobby=other_url).replace('"home"', '"away"')
        (operator.folder / "two.toml").write_text(second)
        first = await from_nothing(operator)
        async with playing(operator.folder / "config.toml") as one, playing(operator.folder / "two.toml") as two:
            await operator.until(lambda: min(one.runner.counters.hands, two.runner.counters.hands) >= 2)
            with Store.open(any_settings) as store, JobLease(store, "retrain"):
                err = await operator("retrain", "phase-ppo", *tiny, code=1, file="two.toml")
            assert "is doing this job" in err
            made = await operator("retrain", "phase-ppo", *tiny)
            assert made["sha256"] != first["sha256"]
            await operator("model", "promote", "phase-ppo", "--force")
            for lobby_name in ("home", "away"):
                newest = f"SELECT model_sha256 FROM games WHERE lobby = '{lobby_name}' ORDER BY game_id DESC LIMIT 1"
                await operator.until(lambda newest=newest: operator.rows(newest)[0][0] == made["sha256"])
            assert one.runner.counters.fallbacks == two.runner.counters.fallbacks == {}
        assert len(operator.rows("SELECT 1 FROM models")) == 2
        assert (operator.folder / "two" / "models" / made["sha256"]).is_dir()
