"""The operator's pages: models, trainings, health."""

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from unittest.mock import ANY

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from bothost import rules
from bothost.children import contained
from bothost.cli.web import settings_or_demo
from bothost.config import StoreSettings, parse
from bothost.errors import UsageError
from bothost.host.control import Control, socket_path
from bothost.locking import locked
from bothost.plugins import weights
from bothost.retrain.gate import GateRefused
from bothost.store import Store
from bothost.testing.hosting import until
from bothost.web import jobs, opponents
from bothost.web.application import Web
from bothost.web.jobs import Jobs
from bothost.web.operation import MAX_POINTS, Operation
from bothost.web.opponents import clear_leftovers
from bothost.web.stream import DATABASE_AWAY
from bothost.web.viewers import Viewers

OURS = {"Origin": "http://localhost"}
READ = ["/api/models", "/api/training", "/api/health"]
CHANGE = ["/api/models/promote", "/api/models/rollback", "/api/models/gate", "/api/drain", "/api/release"]
CHANGE += ["/api/accounts/pause", "/api/accounts/resume"]


@pytest.fixture
def web(site, tmp_path):
    made = Web(site, Viewers("s3cret", spectators=True))
    made.operation = Operation(site, made.viewer, made.jobs, tmp_path / "runs")
    return made


@pytest.fixture
def client(web):
    with TestClient(web.application(), base_url=OURS["Origin"]) as made:
        made.get("/api/session")
        yield made


@pytest.fixture
def operator(client):
    client.post("/api/login", json={"password": "s3cret"}, headers=OURS)
    return client


async def test_a_job_does_not_name_the_address_of_the_database(site, tmp_path):
    site.settings = replace(site.settings, store=StoreSettings(url=f"sqlite:///{tmp_path}/secret-place.db"))
    jobs = Jobs(site)
    job = jobs.start("list", [["games", "list"]])
    *_, last = [state async for state in job.watch()]
    await jobs.aclose()
    assert last["state"] == "failed"
    assert last["problems"] == [{"message": DATABASE_AWAY, "advice": "create it with: bothost db upgrade"}]


async def test_jobs_and_opponents_have_no_secret_in_their_environment(site, monkeypatch, tmp_path):
    """Bots of the same user could read it there: only hosts and the pages hide theirs."""
    names = ["PLANTED_PASSWORD", "BOTHOST_HOME_TOKEN"]
    for name in (*names, "HF_HOME"):
        monkeypatch.setenv(name, "planted")
    text = (
        '[web]\npassword = { env = "PLANTED_PASSWORD" }\n[[lobby]]\nname = "home"\nadapter = "embedded"\n'
        'url = "ws://127.0.0.1:1/ws"\n[[lobby.account]]\nname = "ada"\n'
    )
    site.settings = replace(parse(text, base=tmp_path), host=site.settings.host, store=site.settings.store)
    prints = [sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
    monkeypatch.setattr(jobs, "contained", lambda _: contained(prints))
    *_, last = [state async for state in Jobs(site).start("print", [["games", "list"]]).watch()]
    seen = [last["results"][0]]

    async def start(*argv, env, **rest):
        seen.append(env)
        raise OSError("no process")

    monkeypatch.setattr(opponents.asyncio, "create_subprocess_exec", start)
    with pytest.raises(OSError, match="no process"):
        async with opponents.running(site.settings, "r1", "ws://127.0.0.1:1/ws", rules.game("othello"), [], {}):
            pass
    assert [(environment["HF_HOME"], *map(environment.get, names)) for environment in seen] == 2 * [
        ("planted", None, None)
    ]


SERVER = """
import asyncio, os, sys
from pathlib import Path
from bothost.children import descendants
from bothost.config import HostSettings, Settings
from bothost.plugins import Plugins
from bothost.web.jobs import Jobs
from bothost.web.site import Site

async def main():
    jobs = Jobs(Site(Settings(host=HostSettings(name="test", data_dir=Path(sys.argv[1]))), None, None))
    jobs.start("arena", [["arena", "othello", "random", "first-legal", "--deals", "10000000"]])
    while True:
        for pid in descendants(os.getpid()):
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\\0")
            if words[1:3] == ["-m", "bothost"]:
                print(pid, flush=True)
                await asyncio.Event().wait()
        await asyncio.sleep(0.01)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing ends the children of a killed process")
def test_a_job_ends_with_its_server_also_if_that_is_killed(tmp_path):
    with subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path)], stdout=subprocess.PIPE) as server:
        job = os.pidfd_open(int(server.stdout.readline()))
        server.kill()
    try:
        assert select.select([job], [], [], 10)[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(job, signal.SIGKILL)
        os.close(job)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing finds the descendants of a process")
def test_a_job_that_is_cancelled_ends_with_all_its_processes(operator, site, tmp_path, monkeypatch):
    os.mkfifo(started := tmp_path / "started")
    command = ["sh", "-c", f"setsid sleep 1000 & echo $! > '{started}'; wait"]
    monkeypatch.setattr(jobs, "contained", lambda _: contained(command))
    challenge = {"strategy": "phase-ppo", "version": "level-1"}
    job = f"/api/jobs/{operator.post('/api/models/gate', json=challenge, headers=OURS).json()['job']}"
    process = os.pidfd_open(int(started.read_text()))
    try:
        for _ in range(2):  # a second click changes nothing
            assert operator.post(f"{job}/cancel", json={}, headers=OURS).status_code == 200
        assert '"state":"cancelled"' in operator.get(job).text
        assert select.select([process], [], [], 60)[0]
    finally:
        os.close(process)
    assert operator.get("/api/models").json()["strategies"][0]["job"] is None
    assert [action for action, _ in audited(site)] == ["gate", "cancel"]


async def test_a_job_that_ends_while_a_page_reads_its_progress_still_says_how(site, held_jobs):
    made = Jobs(site)
    states = made.start("match", [["arena"]]).watch()
    assert (await anext(states))["state"] == "running"
    held_jobs({})
    await until(lambda: made.running("match") is None)
    assert [message["state"] async for message in states] == ["done"]


async def test_a_refused_promotion_has_advice_without_options(site, monkeypatch):
    """A page has no `--deals` and no `--force`."""
    refused = {"type": GateRefused.__name__, "message": "not promoted: it lost", "advice": "train on, or --force"}
    other = {"type": "ModelError", "message": "no such model", "advice": "make one"}
    said = json.dumps({"errors": [refused, other]})
    monkeypatch.setattr(jobs, "contained", lambda _: ["sh", "-c", f"echo '{said}' >&2; exit 1"])
    *_, last = [state async for state in Jobs(site).start("gate", [["model", "promote"]]).watch()]
    assert [each["advice"] for each in last["problems"]] == ["train on, or promote without a match", "make one"]


async def test_a_job_that_takes_too_long_is_ended(site, held_jobs, monkeypatch):
    monkeypatch.setattr(jobs, "LONGEST_S", 0.0)
    *_, last = [state async for state in Jobs(site).start("match", [["arena"]]).watch()]
    assert last["state"] == "failed" and last["problems"][0]["message"] == "it was ended after 0 hours"


def test_a_server_removes_the_folders_of_jobs_whose_server_was_killed(site):
    jobs = site.settings.host.data_dir / "jobs"
    for job in ("killed", "running"):
        (jobs / job).mkdir(parents=True)
        for name in ("config.toml", "store-password"):
            (jobs / job / name).touch()
    with locked(jobs / "running"):
        clear_leftovers(site.settings.host.data_dir)
    assert [job.name for job in jobs.iterdir()] == ["running"]


def test_spectators_are_refused(client):
    assert client.get("/api/session").json()["viewer"] == "spectator"
    assert "/health" not in client.get("/api/session").json()["pages"]
    assert {client.get(path).status_code for path in READ} == {403}
    assert {client.post(path, json={}, headers=OURS).status_code for path in CHANGE} == {403}


def test_an_alias_is_moved_and_moved_back_and_both_are_in_the_audit_log(operator, site):
    wanted = {"strategy": "phase-ppo", "alias": "challenger"}
    before = {found["strategy"]: found for found in operator.get("/api/models").json()["strategies"]}
    version = before["phase-ppo"]["versions"][0]["version"]
    moved = operator.post("/api/models/promote", json={**wanted, "version": version}, headers=OURS)
    assert moved.status_code == 200 and "without a match" in moved.json()["reason"]
    after = {found["strategy"]: found for found in operator.get("/api/models").json()["strategies"]}
    assert after["phase-ppo"]["aliases"]["challenger"] == version
    assert operator.post("/api/models/rollback", json=wanted, headers=OURS).json()["version"] is None
    lines = (site.settings.host.data_dir / "audit.log").read_text().splitlines()
    assert [json.loads(line)["action"] for line in lines] == ["promote", "rollback"]


def test_a_new_champion_is_the_challenger_no_longer(operator):
    wanted = {"strategy": "phase-ppo", "version": "level-1"}
    for alias in ("challenger", "champion"):
        assert operator.post("/api/models/promote", json={**wanted, "alias": alias}, headers=OURS).status_code == 200
    (now,) = (f for f in operator.get("/api/models").json()["strategies"] if f["strategy"] == "phase-ppo")
    assert now["aliases"]["champion"] == "level-1" and now["aliases"].get("challenger") != "level-1"


def test_what_cannot_be_moved_is_refused_in_words(operator):
    wanted = {"strategy": "phase-ppo", "alias": "challenger", "version": "no-such"}
    answer = operator.post("/api/models/promote", json=wanted, headers=OURS)
    assert answer.status_code == 400 and "no-such" in answer.json()["error"]
    unmoved = operator.post("/api/models/rollback", json={**wanted, "version": None}, headers=OURS)
    assert unmoved.status_code == 400 and "never moved" in unmoved.json()["error"]


def test_a_damaged_package_hides_no_other(operator, tmp_path, monkeypatch):
    (tmp_path / "manifest.json").write_text("{")
    usual = weights.folder
    monkeypatch.setattr(weights, "folder", lambda cls: tmp_path if cls.name == "phase-ppo" else usual(cls))
    found = {each["strategy"]: each for each in operator.get("/api/models").json()["strategies"]}
    assert "manifest.json cannot be read" in found["phase-ppo"]["problem"] and not found["phase-ppo"]["versions"]
    assert found["deep-mc"]["versions"] and not found["deep-mc"]["problem"]


def test_curves_of_a_training_are_thinned_out(operator, tmp_path):
    folder = tmp_path / "runs/deep"
    folder.mkdir(parents=True)
    lines = [json.dumps({"iteration": i, "loss": 1 / (i + 1), "odd": float("inf")}) for i in range(5000)]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + '\n{"iterat')
    assert [run["name"] for run in operator.get("/api/training").json()["trainings"]] == ["deep"]
    curves = operator.get("/api/training/curves?name=deep").json()
    assert len(curves["loss"]) <= MAX_POINTS and curves["loss"][0] == 1.0 and set(curves["odd"]) == {None}
    for name in ("../deep", "/etc", "other"):
        assert operator.get("/api/training/curves", params={"name": name}).status_code == 404


def test_the_curves_of_a_training_go_over_its_iterations(canvas, served, tmp_path, monkeypatch):
    """Thinned out as they are. Large figures are shortened, so that they fit beside the curve."""
    monkeypatch.chdir(tmp_path)
    (folder := tmp_path / "runs/deep").mkdir(parents=True)
    records = [{"iteration": i, "samples": 1000 * i} for i in range(10_000)]
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, records)))
    canvas.goto(f"{served}/training")
    canvas.wait_for_function("() => ['5K ', '5M '].every((tick) => drawn.some((text) => text.startsWith(tick)))")


def test_where_no_host_runs_the_page_says_so(operator):
    assert "no host runs" in operator.get("/api/health").json()["problem"]
    assert operator.post("/api/drain", json={}, headers=OURS).status_code == 400


@pytest.fixture
def host(site):
    """A control socket that answers as a running host does, with the arguments that it got."""
    asked = []
    home = {"lobby": "home", "account": "ada", "connected": True, "problem": "", "tables": 2, "paused": False}
    status = {
        "host": "h", "draining": False, "uptime_s": 1.0, "tables": 2, "decisions": 5, "hands": 1, "aborted": 0,
        "fallbacks": {}, "log": {"queue": 0, "spool": 0}, "rss_bytes": None, "health": [], "stages": {},
        "accounts": [home], "strategies": [{"address": "bad-bot", "quarantined": True}],
    }  # fmt: skip

    def note(command):
        def answer(**arguments):
            asked.append((command, *arguments.values()))
            home["paused"] = {"pause": True, "resume": False}.get(command, home["paused"])
            return {}

        return answer

    def release(strategy):
        if strategy != "bad-bot":
            raise UsageError(f"no strategy {strategy!r} is in quarantine")
        asked.append(("release", strategy))
        status["strategies"] = []
        return {}

    def change(command):
        return lambda account: note(command)(account=account)

    commands = {"status": lambda: status, "drain": note("drain"), "release": release}
    commands |= {name: change(name) for name in ("pause", "resume")}
    ready, loop = threading.Event(), asyncio.new_event_loop()
    control = Control(socket_path(site.settings.host.data_dir), commands)

    async def serve():
        await control.start()
        ready.set()
        await stop.wait()
        await control.aclose()

    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(60)
    yield asked
    loop.call_soon_threadsafe(stop.set)
    thread.join(60)
    loop.close()


def audited(site):
    file = site.settings.host.data_dir / "audit.log"
    lines = file.read_text().splitlines() if file.exists() else []
    return [(line.pop("action"), line) for line in map(json.loads, lines)]


def test_an_account_is_paused_and_a_quarantine_released_from_the_health_page(page, served, site, host):
    said = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.accept()))
    page.goto(f"{served}/health")
    page.get_by_role("button", name="pause home/ada").click()
    page.wait_for_selector("td .badge:has-text('paused')")
    page.get_by_role("button", name="resume home/ada").click()
    page.get_by_role("button", name="pause home/ada").wait_for()
    page.get_by_role("button", name="release").click()
    page.wait_for_selector("text=quarantined", state="detached")
    assert host == [("pause", "home/ada"), ("resume", "home/ada"), ("release", "bad-bot")]
    assert len(said) == 3 and all(
        words in text for words, text in zip(("home/ada", "home/ada", "bad-bot"), said, strict=True)
    )
    assert [action for action, _ in audited(site)] == ["pause", "resume", "release"]
    assert audited(site)[0][1].items() >= {"account": "home/ada", "from": "127.0.0.1"}.items()


def test_the_health_of_a_host_fits_a_small_phone_with_large_text(page, served, host):
    page.set_viewport_size({"width": 320, "height": 640})
    page.goto(f"{served}/health")
    page.wait_for_selector("text=Rows that wait for the database")
    assert page.get_by_role("row", name="Seats played").count() == 1
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_accounts_scroll_within_their_panel(page, served, host):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{served}/health")
    accounts = page.locator(".scroll", has_text="home/ada")
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert accounts.evaluate("(panel) => panel.scrollWidth > panel.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_what_is_not_confirmed_does_not_happen(page, served, site, host):
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.goto(f"{served}/health")
    for name in ("pause home/ada", "release", "drain"):
        page.get_by_role("button", name=name).click()
    assert host == [] and audited(site) == []


def test_what_the_host_refuses_is_not_in_the_audit_log(operator, site, host):
    answer = operator.post("/api/release", json={"strategy": "good-bot"}, headers=OURS)
    assert answer.status_code == 400 and "good-bot" in answer.json()["error"]
    assert operator.post("/api/accounts/delete", json={"account": "home/ada"}, headers=OURS).status_code == 404
    assert audited(site) == [] and host == []


def test_a_promotion_in_the_browser_shows_what_the_gate_measured(page, served, site):
    """A champion that plays the same as its challenger: the match shows no difference, so nothing moves."""
    strategy = site.plugins.strategies["phase-ppo"]
    manifest = weights.manifest(strategy)
    level = next(version for version in manifest.versions if version != manifest.aliases["champion"])
    page.on("dialog", lambda dialog: dialog.accept())
    page.route(
        "**/api/models/gate",
        lambda route: route.continue_(post_data=json.dumps({**route.request.post_data_json, "deals": 2})),
    )
    page.goto(f"{served}/models")
    panel = page.locator("section.panel", has_text="phase-ppo")
    panel.get_by_label("version").select_option(manifest.aliases["champion"])
    for name in ("play for it", "promote without a match"):
        assert panel.get_by_role("button", name=name).is_disabled()
    panel.get_by_label("version").select_option(level)
    panel.get_by_role("button", name="play for it").click()
    verdict = panel.get_by_role("alert")
    verdict.wait_for(timeout=250_000)
    assert "not promoted" in verdict.inner_text() and "2 deals, it won" in verdict.inner_text()
    assert "or promote without a match" in verdict.inner_text() and "--" not in verdict.inner_text()
    assert audited(site) == [("gate", ANY)] and audited(site)[0][1].items() >= {"version": level, "deals": 2}.items()


def test_the_match_of_a_strategy_for_several_games_is_played_at_the_chosen_one(page, served, site, monkeypatch):
    aliases = weights.manifest(site.plugins.strategies["fm-clone"]).aliases
    begun = []

    async def command(self, job, words):
        begun.extend(words)
        job.results.append({"strategy": "fm-clone", "alias": "champion", "version": "x", "reason": "it won"})

    monkeypatch.setattr(Jobs, "run_command", command)
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{served}/models")
    assert page.locator("section.panel", has_text="phase-ppo").get_by_label("game").count() == 0
    panel = page.locator("section.panel", has_text="fm-clone")
    panel.get_by_label("version").select_option(aliases["edges-first"])
    panel.get_by_label("game").select_option("othello")
    panel.get_by_role("button", name="play for it").click()
    panel.get_by_text("it won").wait_for()
    assert begun[: begun.index("--config")][-2:] == ["--game", "othello"]


def test_a_match_at_a_game_that_its_strategy_does_not_play_is_refused(operator):
    challenge = {"strategy": "fm-clone", "version": "edges-first", "game": "pairing"}
    answer = operator.post("/api/models/gate", json=challenge, headers=OURS)
    assert answer.status_code == 400 and "fm-clone plays doudizhu, othello, mahjong" in answer.json()["error"]


def test_a_match_is_followed_after_a_reload(page, served, site, held_jobs):
    aliases = weights.manifest(site.plugins.strategies["phase-ppo"]).aliases
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{served}/models")
    panel = page.locator("section.panel", has_text="phase-ppo")
    play = panel.get_by_role("button", name="play for it")
    asked = []
    page.on("request", lambda request: asked.append(request.url) if request.method == "POST" else None)
    for press in (play.dblclick, page.reload):
        panel.get_by_label("version").select_option(aliases["level-1"])
        press()
        panel.get_by_role("progressbar", name="gate phase-ppo").wait_for()
    panel.get_by_label("version").select_option(aliases["level-1"])
    assert play.is_disabled()
    assert asked == [f"{served}/api/models/gate"], "a second click asks for no second match"
    held_jobs({"strategy": "phase-ppo", "alias": "champion", "version": aliases["level-1"], "reason": "it won"})
    panel.get_by_text("it won").wait_for()
    play.and_(page.locator(":enabled")).wait_for()
    page.reload()  # who was away reads how it ended
    panel.get_by_text("it won").wait_for()


def test_a_match_is_cancelled_where_that_is_confirmed(page, served, site, held_jobs):
    page.goto(f"{served}/models")
    panel = page.locator("section.panel", has_text="phase-ppo")
    aliases = weights.manifest(site.plugins.strategies["phase-ppo"]).aliases
    panel.get_by_label("version").select_option(aliases["level-1"])
    page.once("dialog", lambda dialog: dialog.accept())
    panel.get_by_role("button", name="play for it").click()
    cancel = panel.get_by_role("button", name="cancel")
    for answer in ("dismiss", "accept"):
        page.once("dialog", lambda dialog, answer=answer: getattr(dialog, answer)())
        cancel.click()
    panel.get_by_text("cancelled").wait_for()
    panel.get_by_role("button", name="play for it").and_(page.locator(":enabled")).wait_for()
    assert [action for action, _ in audited(site)] == ["gate", "cancel"]


def test_an_alias_can_be_rolled_back_where_a_promotion_is_left_to_undo(page, served, site):
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{served}/models")
    panel = page.locator("section.panel", has_text="phase-ppo")
    panel.get_by_label("alias").select_option("challenger")
    back = panel.get_by_role("button", name="roll back")
    assert back.is_disabled()
    panel.get_by_role("button", name="promote").click()
    back.and_(page.locator(":enabled")).click()
    back.and_(page.locator(":disabled")).wait_for()
    assert [action for action, _ in audited(site)] == ["promote", "rollback"]


def test_without_a_configuration_the_pages_show_what_the_demo_wrote(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BOTHOST_CONFIG", raising=False)
    settings = settings_or_demo(None)
    assert settings.store.url.endswith(f"{tmp_path}/var/bothost.db")
    with Store.open(settings.store):
        pass


def test_a_match_whose_server_is_not_reached_says_so(chromium, served, held_jobs):
    context = chromium.new_context(locale="en-GB")
    page = context.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{served}/models")
    panel = page.locator("section.panel", has_text="deep-mc").first
    panel.get_by_label("version").select_option(index=0)
    panel.get_by_role("button", name="play for it").click()
    cancel = panel.get_by_role("button", name="cancel")
    cancel.wait_for()
    page.route("**/api/jobs/**", lambda route: route.abort())
    cancel.click()
    panel.get_by_role("alert").get_by_text("The server does not answer.").wait_for()
    page.reload()
    panel.get_by_text("The connection is lost. Trying again.").wait_for()
    page.unroute_all()
    cancel.click()
    panel.get_by_text("cancelled").wait_for()
    context.close()
