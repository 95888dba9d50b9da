"""The operator's pages: models, trainings, health."""

import json

import pytest
from starlette.testclient import TestClient

from bothost.cli.web import settings_or_demo
from bothost.store import Store
from bothost.web.application import Web
from bothost.web.operation import MAX_POINTS, Operation
from bothost.web.viewers import Viewers

OURS = {"Origin": "http://localhost"}
READ = ["/api/models", "/api/training", "/api/health"]
CHANGE = ["/api/models/promote", "/api/models/rollback", "/api/drain"]


@pytest.fixture
def web(site, tmp_path):
    made = Web(site, Viewers("s3cret", spectators=True))
    made.operation = Operation(site, made.viewer, tmp_path / "runs")
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


def test_what_cannot_be_moved_is_refused_in_words(operator):
    wanted = {"strategy": "phase-ppo", "alias": "challenger", "version": "no-such"}
    answer = operator.post("/api/models/promote", json=wanted, headers=OURS)
    assert answer.status_code >= 400 and "no-such" in answer.json()["error"]


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


def test_where_no_host_runs_the_page_says_so(operator):
    assert "no host runs" in operator.get("/api/health").json()["problem"]
    assert operator.post("/api/drain", json={}, headers=OURS).status_code == 400


def test_without_a_configuration_the_pages_show_what_the_demo_wrote(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BOTHOST_CONFIG", raising=False)
    settings = settings_or_demo(None)
    assert settings.store.url.endswith(f"{tmp_path}/var/bothost.db")
    with Store.open(settings.store):
        pass
