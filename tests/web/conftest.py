import asyncio
import json
import os
import random
import shutil
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bothost import rules
from bothost.config import HostSettings, Settings, StoreSettings, WebSettings
from bothost.plugins import Plugins
from bothost.store import DecisionRecord, EventsRecord, GameEndRecord, Store
from bothost.testing.sample_rows import sample_decision, sample_game, write_rows
from bothost.web import jobs
from bothost.web.application import Web
from bothost.web.jobs import Jobs
from bothost.web.server import serving
from bothost.web.site import Site
from bothost.web.viewers import Viewers

RATING = '''
    """Rates actions by their place among the legal ones, so that a test knows what each of them loses."""
    from bothost import Decision, Player, Strategy, hookimpl

    LOST = (0.0, 0.15, 0.25, 0.4)

    class Rating(Strategy):
        name, version, games = "rating", "1", ("*",)
        def player(self, table):
            return Rater()

    class Rater(Player):
        def decide(self, view, legal, budget):
            values = [0.5 - LOST[min(i, 3)] for i in range(len(legal))]
            return Decision(action=int(legal[0]), values=values, value=0.5)

    @hookimpl
    def bothost_strategies():
        return [Rating]
'''


def pytest_collection_modifyitems(items):
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


@pytest.fixture(scope="session")
def plugins_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all tests: a loose plugin is a module of the process."""
    folder = tmp_path_factory.mktemp("plugins.d")
    (folder / "rating.py").write_text(textwrap.dedent(RATING))
    return folder


@pytest.fixture(autouse=True)
def _the_loop_of_the_browser_rests(request):
    """Playwright leaves its loop as the running one between its calls. Tests without a browser may run their own."""
    if "chromium" in request.fixturenames:
        asyncio._set_running_loop(request.getfixturevalue("chromium").loop)
    yield
    asyncio._set_running_loop(None)


@pytest.fixture(autouse=True)
def _commands_are_as_urgent_as_the_tests(monkeypatch):
    """Beside other tests, commands of a low priority wait for minutes."""
    monkeypatch.setattr(jobs, "NICE", 0)


@pytest.fixture
def site(settings: StoreSettings, plugins_dir: Path, tmp_path: Path) -> Iterator[Site]:
    """A site on an empty database, with a strategy ``rating`` of which a test knows every value."""
    with Store.open(settings) as store:
        plugins = Plugins.load(plugins_dir)
        assert "rating" in plugins.strategies, plugins.failures
        host = HostSettings(name="test", data_dir=tmp_path / "var", plugins_dir=plugins_dir)
        yield Site(Settings(host=host, store=settings), store, plugins)


def hand(name: str, choose: Callable[[int, list[int]], int], seed: int = 0, started_us: int = 1_700_000_000_000_000):
    """All rows of a hand, logged at seat 0. ``choose``: (number of the decision, legal actions) → action."""
    game, rng = rules.game(name), random.Random(seed)
    made = sample_game(rng, seat=0, started_us=started_us + seed * 10**7)
    made.game, made.rules, made.format_version = game.name, json.dumps(game.rules), game.format_version
    made.strategy = "first-legal"
    made.players = json.dumps([{"seat": s, "player": f"player-{s}"} for s in range(game.num_seats)])
    rows, state, seen, number = [made], game.new_state(seed), 0, 0
    while not state.terminal:
        actor = state.to_act[0]
        view, legal = state.view(actor), state.legal(actor)
        action = choose(number, legal.tolist())
        if actor == 0:
            rows.append(EventsRecord(made.game_id, 0, seen, "\n".join(state.events(0, seen))))
            seen = view.seq
            rows.append(_decision(made, view, legal, action, rng))
        state.apply(actor, action)
        number += 1
    rows.append(EventsRecord(made.game_id, 0, seen, "\n".join(state.events(0, seen))))
    scores = json.dumps(state.returns)
    rows.append(
        GameEndRecord(game_id=made.game_id, seat=0, reason="normal", scores=scores, ended_us=made.started_us + 60**4)
    )
    return rows


def _decision(made, view, legal, action, rng) -> DecisionRecord:
    found = sample_decision(rng, made, view.seq, legal=1)
    found.view, found.state_hash, found.phase = view.to_bytes(), view.hash(), view.phase
    found.legal, found.action = legal.astype("<i4").tobytes(), action
    found.notation, found.strategy = view.notation(action), made.strategy
    found.policy = found.action_values = found.stats = found.value = found.fallback = None
    return found


@pytest.fixture
def played():
    """Plays hands: (game, choose, seed) → all rows."""
    return hand


@pytest.fixture
def logged(settings: StoreSettings, tmp_path: Path):
    """Logs the rows of hands."""

    def log(*hands):
        with ThreadPoolExecutor(1) as pool:  # Playwright's loop runs in this thread
            pool.submit(write_rows, settings, tmp_path, hands).result()

    return log


@pytest.fixture
def client(site: Site) -> Iterator[TestClient]:
    """A browser of an operator."""
    with TestClient(Web(site, Viewers(None, spectators=False)).application(), base_url="http://localhost") as made:
        made.get("/api/session")
        yield made


@pytest.fixture
def web_settings() -> WebSettings:
    """The settings of the served pages."""
    return WebSettings(port=0)


@pytest.fixture
def served(site: Site, web_settings: WebSettings) -> Iterator[str]:
    """The address of the pages, served in another thread."""
    up, url, loop = threading.Event(), [], asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with serving(site, web_settings) as address:
            url.append(address)
            up.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert up.wait(60)
    yield url[0].rstrip("/")
    loop.call_soon_threadsafe(stop.set)
    thread.join(60)
    loop.close()


@pytest.fixture
def held_jobs(monkeypatch):
    """Commands of jobs wait. The function that this gives ends them with a result."""
    result: Future[dict] = Future()

    async def command(self, job, words):
        job.results.append(await asyncio.wrap_future(result))

    monkeypatch.setattr(Jobs, "run_command", command)
    return result.set_result


@pytest.fixture(scope="session")
def chromium():
    """Debian's Chromium, driven by Playwright. The one without windows takes half as long for a page."""
    names = [os.environ["CHROMIUM"]] if "CHROMIUM" in os.environ else ["chromium-headless-shell", "chromium"]
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        advice = "apt-get install chromium-headless-shell"
        pytest.skip(f"there is no {' and no '.join(names)}, so the pages were not tested in a browser: {advice}")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
        arguments.append("--renderer-process-limit=1")  # else it starts two spare ones for each page
        browser = started.chromium.launch(executable_path=program, args=arguments)
        browser.loop = asyncio._get_running_loop()
        yield browser
        asyncio._set_running_loop(browser.loop)
        browser.close()
    asyncio._set_running_loop(None)


@pytest.fixture
def page(chromium, served):
    """A page in a fresh browser profile. An error of a script, or one on the console, fails the test.

    It closes before the server stops, so that no request under way is refused.
    """
    context = chromium.new_context(locale="en-GB")
    context.set_default_timeout(60_000)
    shown = context.new_page()
    problems: list[str] = []
    shown.on("pageerror", lambda error: problems.append(str(error)))
    shown.on(
        "console",
        lambda message: problems.append(f"{message.text} {message.location}") if message.type == "error" else None,
    )
    yield shown
    context.close()
    assert problems == []


@pytest.fixture
def canvas(page):
    """``window.drawn`` of the page: the texts that were written on a canvas, each with its colour."""
    page.add_init_script("""window.drawn = [];
        const { fillText } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
            drawn.push(`${text} ${this.fillStyle}`);
            fillText.call(this, text, ...where);
        };""")
    return page


@pytest.fixture
def hands(logged, played):
    """The name of a hand of each game."""
    made = [
        played(game, lambda number, legal: legal[number % len(legal)], seed=number)
        for number, game in enumerate(("doudizhu", "mahjong", "othello", "pairing"))
    ]
    logged(*made)
    return [f"{rows[0].game_id.hex()}-0" for rows in made]
