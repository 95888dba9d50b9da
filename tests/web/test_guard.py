"""What a request must satisfy before a page sees it."""

import pytest
from starlette.testclient import TestClient

from bothost.errors import StoreUnavailable
from bothost.web.application import Web
from bothost.web.guard import BODY_BYTES, host_of
from bothost.web.stream import DATABASE_AWAY
from bothost.web.viewers import Viewers

OURS = {"Origin": "http://localhost:8770", "Content-Type": "application/json"}


@pytest.fixture
def client(site):
    web = Web(site, Viewers("swordfish", spectators=False))
    with TestClient(web.application(), base_url="http://localhost:8770") as made:
        yield made


def test_a_foreign_host_is_refused(client):
    """DNS rebinding: a page of evil.example whose name now points to this machine."""
    answer = client.get("/api/session", headers={"Host": "evil.example:8770"})
    assert answer.status_code == 421
    assert "evil.example" in answer.json()["error"]


def test_no_answer_names_the_address_of_the_database(client, site, monkeypatch):
    def away(**_):
        raise StoreUnavailable("database postgresql+psycopg://bot@10.0.0.5/log: it is away", advice="start it")

    client.post("/api/login", json={"password": "swordfish"}, headers=OURS)
    monkeypatch.setattr(site.store, "begin", away)
    answer = client.get("/api/hands")
    assert answer.status_code == 503
    assert answer.json() == {"error": DATABASE_AWAY, "advice": "start it"}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8770", "[::1]:8770", "LOCALHOST:1"])
def test_loopback_names_are_ours(client, host):
    assert client.get("/api/session", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:9999"},
        {"Origin": "http://["},
    ],
)
def test_a_change_must_come_from_our_page(client, headers):
    answer = client.post("/api/login", json={"password": "swordfish"}, headers=headers)
    assert answer.status_code == 403


def test_a_form_of_another_page_cannot_change_anything(client):
    """Forms can send text/plain across origins without asking first."""
    answer = client.post("/api/login", content='{"password":"x"}', headers={**OURS, "Content-Type": "text/plain"})
    assert answer.status_code == 415


def test_large_bodies_are_refused(client):
    body = b'{"password":"' + b"x" * BODY_BYTES + b'"}'
    assert client.post("/api/login", content=body, headers=OURS).status_code == 413


def test_large_bodies_that_do_not_state_their_length_are_refused_without_a_traceback(client):
    parts = (part for part in [b'{"password":"', b"x" * BODY_BYTES, b'"}'])
    answer = client.post("/api/login", content=parts, headers=OURS)
    assert answer.status_code == 413 and "larger than" in answer.json()["error"]


def test_every_answer_has_the_security_headers(client):
    for path in ("/", "/api/session", "/static/app.js", "/api/nothing"):
        headers = client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


def test_no_page_asks_another_server_for_anything(client):
    for path in ("/", "/static/app.js", "/static/style.css", "/static/html.js"):
        text = client.get(path).text
        assert "https://" not in text and "http://" not in text.replace("http://www.w3.org/", "")


@pytest.mark.parametrize("path", ["/static/../application.py", "/static/%2e%2e/application.py", "/static/..%2fsite.py"])
def test_no_file_outside_static_is_served(client, path):
    assert "bothost" not in client.get(path).text or client.get(path).headers["content-type"].startswith("text/html")


def test_host_of_strange_headers():
    assert [host_of(text) for text in ("", "a:b:c", "[::1", "A.b:1")] == ["", "a", "", "a.b"]
