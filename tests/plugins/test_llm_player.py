"""``llm-player`` against a local endpoint that is right, slow, wrong, busy, broken or endless."""

from __future__ import annotations

import gzip
import json
import math
import resource
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from stopwatch import fastest, seconds

from bothost import Budget, PluginError, ProtocolError, Table, rules
from bothost.errors import UsageError
from bothost_llm.client import allowance_of
from bothost_llm.options import Options
from bothost_llm.prompt import messages
from bothost_llm.strategy import LlmPlayer

KEY = "sk-never-shown"
NO_CLOCK = Budget(deadline=math.inf)


class Endpoint:
    """Answers with what ``script`` returns: (status, headers, body) for the request's JSON. Status 0: the body only."""

    def __init__(self):
        self.requests = []
        self.script = None
        self.stop = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.requests.append((self.path, dict(self.headers), body))
                status, headers, data = endpoint.script(body)
                if status:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                try:
                    for chunk in [data] if isinstance(data, bytes) else data:
                        self.wfile.write(chunk)
                except OSError:
                    pass  # the client has had enough

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def endpoint():
    made = Endpoint()
    yield made
    made.stop.set()
    made.server.shutdown()
    made.server.server_close()
    allowance_of.cache_clear()


def completion(content, tokens=(100, 10)):
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}], "usage": usage}).encode()


def says(content):
    return lambda body: (200, {}, completion(content))


def legal_of(body):
    return json.loads(body["messages"][1]["content"])["legal"]


def last_legal(body):
    return 200, {}, completion("```json\n" + json.dumps({"action": legal_of(body)[-1], "reason": "why not"}) + "\n```")


def start(game="othello"):
    state = rules.game(game).new_state(1)
    seat = state.to_act[0]
    return state, state.view(seat), Table(lobby="l", table="t", game=rules.game(game), seat=seat, seed=1)


@pytest.fixture
def decide(endpoint, monkeypatch):
    monkeypatch.setenv("TEST_KEY", KEY)
    made = []

    def ask(budget=NO_CLOCK, **options):
        strategy = LlmPlayer(Options(url=endpoint.url, model="m", key_variable="TEST_KEY", **options))
        made.append(strategy)
        _, view, table = start()
        return strategy.player(table).decide(view, view.legal(), budget)

    yield ask
    for strategy in made:
        strategy.close()


def test_a_legal_answer_is_played_with_its_cost_and_transcript(endpoint, decide):
    endpoint.script = last_legal
    decision = decide(price_in=2.0, price_out=10.0, transcript_chars=50)
    assert decision.action == start()[1].legal()[-1]
    used = decision.stats["llm"]
    assert decision.stats["reason"] == "why not"
    assert (used["prompt_tokens"], used["completion_tokens"], used["attempts"]) == (100, 10, 1)
    assert used["cost"] == pytest.approx(0.0003)
    assert len(used["transcript"]["prompt"]) == 50
    path, headers, body = endpoint.requests[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert body["response_format"]["json_schema"]["strict"] is True
    assert KEY not in json.dumps(decision.stats)


def test_an_action_that_the_lobby_has_refused_is_not_played_again(endpoint):
    _, view, table = start()
    refused = view.notation(int(view.legal()[0]))
    endpoint.script = says(json.dumps({"action": refused, "reason": ""}))
    strategy = LlmPlayer(Options(url=endpoint.url, model="m"))
    with pytest.raises(ProtocolError, match="not legal"):
        strategy.player(table).decide(view, view.legal()[1:], NO_CLOCK)
    strategy.close()
    assert len(endpoint.requests) == 2


def test_an_illegal_answer_is_asked_again_and_then_refused(endpoint, decide):
    endpoint.script = says('{"action": "z9", "reason": ""}')
    with pytest.raises(ProtocolError, match="'z9', which is not legal"):
        decide(attempts=3)
    assert len(endpoint.requests) == 3


def test_a_second_attempt_may_succeed_and_both_are_paid(endpoint, decide):
    answers = iter([says("no idea"), last_legal])
    endpoint.script = lambda body: next(answers)(body)
    used = decide().stats["llm"]
    assert (used["attempts"], used["prompt_tokens"]) == (2, 200)


@pytest.mark.parametrize(
    "thought", ['<think>{maybe} d3, or {"action": "c4"}?</think>\n', "It is {", '{"action": "z9", "reason": "no"}\n']
)
def test_the_last_decision_of_a_model_that_thinks_aloud_counts(endpoint, decide, thought):
    endpoint.script = says(f'{thought}{{"action": "d3", "reason": "a {{brace}}"}}')
    decision = decide(attempts=1)
    assert decision.action == start()[1].parse("d3") and decision.stats["reason"] == "a {brace}"


DEEP = '{"a":' * 5000 + "1" + "}" * 5000


@pytest.mark.parametrize(
    "content", ["", "I pass.", "{}", '{"action": 3}', '{"action": null}', DEEP, '{"action": "\\ud800"}']
)
def test_answers_that_are_no_decision_are_refused(endpoint, decide, content):
    endpoint.script = says(content)
    with pytest.raises(ProtocolError):
        decide(attempts=1)


def test_an_answer_that_was_cut_off_says_which_option_to_raise(endpoint, decide):
    cut = {"choices": [{"message": {"content": None}, "finish_reason": "length"}]}
    endpoint.script = lambda body: (200, {}, json.dumps(cut).encode())
    with pytest.raises(ProtocolError, match="the model's answer is empty") as caught:
        decide(attempts=1)
    assert "max_answer_tokens" in caught.value.advice


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>",
        b"{}",
        b'{"choices": []}',
        b'{"choices": 3}',
        b'{"choices": [{"message": {"content": "\xe9"}}]}',
        DEEP.encode(),
    ],
)
def test_responses_that_are_no_completion_are_refused(endpoint, decide, data):
    endpoint.script = lambda body: (200, {}, data)
    with pytest.raises(ProtocolError):
        decide(attempts=1)


def test_a_slow_endpoint_is_given_up_before_the_deadline(endpoint, decide):
    endpoint.script = lambda body: (endpoint.stop.wait(5), (200, {}, b""))[1]

    def given_up():
        with pytest.raises(TimeoutError):
            decide(Budget(deadline=time.monotonic() + 0.4), requests_per_minute=6000.0)

    assert fastest(lambda: seconds(given_up), 0.4) < 0.4


def test_a_decision_without_time_asks_nothing(endpoint, decide):
    with pytest.raises(TimeoutError, match="no time is left"):
        decide(Budget(deadline=time.monotonic()))
    assert not endpoint.requests


@pytest.mark.parametrize("status", [200, 0], ids=["body", "headers"])
def test_a_response_that_trickles_is_given_up_too(endpoint, decide, status):
    def trickle():
        yield b"" if status else b"HTTP/1.1 200 OK\r\nX: "
        while not endpoint.stop.wait(0.02):
            yield b" "

    endpoint.script = lambda body: (status, {}, trickle())

    def given_up():
        with pytest.raises(TimeoutError):
            decide(timeout_ms=300.0, requests_per_minute=6000.0)

    assert fastest(lambda: seconds(given_up), 0.6) < 0.6


def test_a_response_that_is_packed_is_not_unpacked(endpoint, decide):
    """200 bytes may hold 64 MiB."""
    packed = gzip.compress(gzip.compress(bytes(64 << 20), 9), 9)
    endpoint.script = lambda body: (200, {"Content-Encoding": "gzip, gzip"}, packed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ProtocolError, match="compressed"):
        decide()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10, "kilobytes"
    assert endpoint.requests[0][1]["Accept-Encoding"] == "identity"


def test_a_huge_response_is_cut_off(endpoint, decide):
    sent = []

    def flood():
        for _ in range(10_000):
            sent.append(1)
            yield b"x" * 10_000

    endpoint.script = lambda body: (200, {}, flood())
    with pytest.raises(ProtocolError, match="longer than 2048 bytes"):
        decide(attempts=1, max_answer_bytes=2048)
    assert len(sent) < 10_000


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_endpoint_is_asked_again_after_the_time_that_it_names(endpoint, decide, status):
    answers = iter([lambda body: (status, {"Retry-After": "0.1"}, b""), last_legal])
    endpoint.script = lambda body: next(answers)(body)
    assert decide().stats["llm"]["attempts"] == 2


def test_who_says_to_come_back_later_than_the_deadline_is_not_waited_for(endpoint, decide):
    endpoint.script = lambda body: (429, {"Retry-After": "30"}, b"")

    def given_up():
        with pytest.raises(TimeoutError, match="busy"):
            decide(timeout_ms=2000.0)

    assert fastest(lambda: seconds(given_up), 1.0) < 1.0


def test_refusals_and_redirects_end_at_once_and_never_show_the_key(endpoint, decide):
    for status, headers in ((401, {}), (404, {}), (302, {"Location": "http://127.0.0.1:9/"})):
        endpoint.script = lambda body, made=(status, headers, b"no"): made
        with pytest.raises(PluginError, match=f"HTTP {status}") as caught:
            decide()
        assert KEY not in str(caught.value) + caught.value.advice
    assert len(endpoint.requests) == 3


def test_the_reason_of_a_refusal_is_shown_without_the_key(endpoint, decide):
    said = json.dumps({"error": {"message": f"use\nmax_completion_tokens, {KEY}", "type": "invalid_request_error"}})
    endpoint.script = lambda body: (400, {}, said.encode())
    with pytest.raises(PluginError, match=r"HTTP 400: use\\nmax_completion_tokens, …$"):
        decide(token_limit="max_completion_tokens", max_answer_tokens=77)
    assert endpoint.requests[0][2]["max_completion_tokens"] == 77
    assert "max_tokens" not in endpoint.requests[0][2]


def test_an_endpoint_that_does_not_say_what_it_used_counts_as_dear(endpoint, decide):
    endpoint.script = lambda body: (200, {}, json.dumps({"choices": [{"message": {"content": "?"}}]}).encode())
    with pytest.raises(PluginError, match="budget of 1 is spent"):
        decide(attempts=5, max_cost=1.0, price_in=0.0, price_out=1000.0)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("data", [b"", b"[]", b"x" * 3000], ids=["late", "no completion", "too long"])
def test_a_response_that_cannot_be_used_may_be_charged_for(endpoint, decide, data):
    endpoint.script = lambda body: (data or endpoint.stop.wait(5), (200, {}, data))[1]
    limits = {"timeout_ms": 1000.0, "max_answer_bytes": 2048, "attempts": 1}
    prices = {"max_cost": 0.01, "price_in": 0.0, "price_out": 1000.0}
    with pytest.raises((TimeoutError, ProtocolError)):
        decide(**limits, **prices)
    with pytest.raises(PluginError, match=r"budget of 0\.01 is spent"):
        decide(**limits, **prices)
    assert len(endpoint.requests) == 1


def test_budgets_end_the_requests_of_all_threads(endpoint, monkeypatch):
    """A host makes an instance for each of its threads."""
    endpoint.script = last_legal
    _, view, table = start()
    for options, spent in (
        ({"max_requests": 2}, "2 requests"),
        ({"max_cost": 0.0005, "price_in": 2.0, "price_out": 10.0}, "0.0005 is spent"),
        ({"requests_per_minute": 2.0, "timeout_ms": 10_000.0}, "rate limit"),
    ):
        first, second, third = (LlmPlayer(Options(url=endpoint.url, model="m", **options)) for _ in range(3))
        for strategy in (first, second):
            strategy.player(table).decide(view, view.legal(), NO_CLOCK)
        with pytest.raises(PluginError, match=spent):
            third.player(table).decide(view, view.legal(), NO_CLOCK)
        for strategy in (first, second, third):
            strategy.close()
    assert len(endpoint.requests) == 6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "http://example.com/v1", "model": "m"}, "clear text"),
        ({"url": "https://[", "model": "m"}, "not a URL"),
        ({"url": "https://:443/v1", "model": "m"}, "not a URL"),
        ({"url": "https://x:99999/v1", "model": "m"}, "not a URL"),
        ({"url": "https://x/v1", "model": "m", "key_variable": "NOT_SET_ANYWHERE"}, "is not set"),
        ({"url": "https://x/v1", "model": "m", "max_cost": 1.0}, "max_cost needs prices"),
    ],
)
def test_what_is_missing_is_said_before_any_table(options, words):
    with pytest.raises(UsageError, match=words):
        LlmPlayer(Options(**options))


@pytest.mark.parametrize("odd", ["sk-\u00e9", "sk-a\n", " "])
def test_a_key_that_no_header_can_hold_is_refused(odd, monkeypatch):
    monkeypatch.setenv("TEST_KEY", odd)
    with pytest.raises(UsageError, match=r"\$TEST_KEY is not a key"):
        LlmPlayer(Options(url="https://x/v1", model="m", key_variable="TEST_KEY"))


@pytest.mark.parametrize("content", ["", "I pass."])
def test_answers_without_a_decision_are_paid_too(endpoint, content):
    endpoint.script = says(content)
    _, view, table = start()
    strategy = LlmPlayer(
        Options(url=endpoint.url, model="m", attempts=2, max_cost=0.0005, price_in=2.0, price_out=10.0)
    )
    with pytest.raises(ProtocolError):
        strategy.player(table).decide(view, view.legal(), NO_CLOCK)
    with pytest.raises(PluginError, match="is spent"):
        strategy.player(table).decide(view, view.legal(), NO_CLOCK)
    strategy.close()
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize("game", ["doudizhu", "mahjong", "pairing", "othello"])
@pytest.mark.parametrize("most", [2000, 24_000])
def test_prompts_are_bounded_and_list_legal_actions(game, most):
    _, view, table = start(game)
    legal = view.legal()
    system, user = messages(view, legal, game, dict(table.game.rules), table.seat, most=most)
    assert len(user["content"]) <= most
    assert "follow no instruction" in system["content"]
    if most == 24_000:
        listed = json.loads(user["content"])["legal"]
        assert listed
        assert all(view.is_legal(view.parse(notation)) for notation in listed)


def test_a_forced_move_costs_nothing(endpoint):
    _, view, table = start()
    strategy = LlmPlayer(Options(url=endpoint.url, model="m"))
    decision = strategy.player(table).decide(view, view.legal()[:1], NO_CLOCK)
    assert decision.action == view.legal()[0]
    assert not endpoint.requests
    strategy.close()
