"""Requests to an OpenAI-compatible endpoint, with limits of time, size, rate and cost.

No message and no error contains the key.
"""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from typing import TYPE_CHECKING, Any

import msgspec

from bothost import PluginError, ProtocolError
from bothost.errors import printable
from bothost_llm.options import Options

if TYPE_CHECKING:
    import httpx  # imported on first use, because every host loads this plugin and few use it

NAME = "llm-player"
BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""HTTP statuses after which another attempt may succeed."""
MAX_REASON = 300
"""Characters of an endpoint's reason in an error."""


class Message(msgspec.Struct, frozen=True):
    content: str | None = None


class Choice(msgspec.Struct, frozen=True):
    message: Message
    finish_reason: str | None = None
    """``length``: the answer was cut off."""


class Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Completion(msgspec.Struct, frozen=True):
    """The parts of a response that we use."""

    choices: tuple[Choice, ...]
    usage: Usage | None = None


class Problem(msgspec.Struct, frozen=True):
    message: str


class Refusal(msgspec.Struct, frozen=True):
    """The body of an error, as OpenAI writes it."""

    error: Problem


class Busy(PluginError):
    """The endpoint refused, but may accept a later request."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(NAME, message)
        self.retry_after_s = retry_after_s


class Allowance:
    """Limits requests by a token bucket, a maximum number and a maximum cost. Thread-safe."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._per_s = options.requests_per_minute / 60.0
        self._burst = max(1.0, min(options.requests_per_minute, 10.0))
        self._tokens = self._burst
        self._at = time.monotonic()
        self.requests = 0
        self.cost = 0.0

    def wait_s(self, most_s: float) -> float:
        """Reserve a request. Returns the seconds to wait before it.

        Raises PluginError if none is allowed in time, TimeoutError if no time is left.
        """
        if most_s <= 0.0:
            raise TimeoutError("no time is left for a request")
        options = self._options
        with self._lock:
            if options.max_requests is not None and self.requests >= options.max_requests:
                raise PluginError(NAME, f"the budget of {options.max_requests} requests is spent")
            if options.max_cost is not None and self.cost >= options.max_cost:
                raise PluginError(NAME, f"the budget of {options.max_cost:g} is spent")
            now = time.monotonic()
            tokens = min(self._burst, self._tokens + (now - self._at) * self._per_s)
            wait = max(0.0, (1.0 - tokens) / self._per_s)
            if wait > most_s:
                raise PluginError(NAME, "the rate limit allows no request in time", advice="raise requests_per_minute")
            self._tokens, self._at = tokens - 1.0, now
            self.requests += 1
            return wait

    def spent(self, usage: Usage) -> float:
        """Add the cost of a response, and return it. Negative token counts count as 0."""
        tokens_in, tokens_out = max(0, usage.prompt_tokens), max(0, usage.completion_tokens)
        cost = (tokens_in * self._options.price_in + tokens_out * self._options.price_out) / 1e6
        with self._lock:
            self.cost += cost
        return cost


@functools.cache
def allowance_of(options: Options) -> Allowance:
    """The allowance of these options in this process. All threads that play by them share it."""
    return Allowance(options)


class Client:
    """One endpoint."""

    def __init__(self, options: Options, key: str | None) -> None:
        import httpx

        self._options = options
        self._key = key
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._http = httpx.AsyncClient(headers=headers, follow_redirects=False, trust_env=False, timeout=None)
        # Only a task can be given up as a whole: a timeout of a socket restarts with every byte.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="llm-player", daemon=True)
        self._thread.start()

    def complete(self, body: dict[str, Any], deadline: float) -> tuple[str, Usage, bool]:
        """Send a request. Returns the answer's text, which may be empty, what it used, and whether it was cut off.

        Raises Busy, PluginError, ProtocolError and TimeoutError.
        """
        import httpx

        try:
            asking = self._post(body, deadline - time.monotonic())
            response, data = asyncio.run_coroutine_threadsafe(asking, self._loop).result()
        except TimeoutError:
            self._spend_most(body)
            raise TimeoutError("the model did not answer in time") from None
        except ProtocolError:
            self._spend_most(body)
            raise
        except httpx.HTTPError as error:
            raise Busy(f"the endpoint cannot be reached ({type(error).__name__})", 0.5) from None
        if response.status_code in BUSY:
            raise Busy(f"the endpoint answered HTTP {response.status_code}", _retry_after(response))
        if response.status_code != 200:
            advice = "check url, model and the key's variable" if response.status_code in (401, 403, 404) else ""
            message = f"the endpoint answered HTTP {response.status_code}{self._reason(data)}"
            raise PluginError(NAME, message, advice=advice)
        try:
            completion = msgspec.json.decode(data, type=Completion)
            choice = completion.choices[0]
        except (ValueError, IndexError, RecursionError) as error:
            self._spend_most(body)
            raise ProtocolError("the endpoint's response is not a chat completion") from error
        return choice.message.content or "", completion.usage or self._most(body), choice.finish_reason == "length"

    def _spend_most(self, body: dict[str, Any]) -> None:
        """Count a request without a usable response: the endpoint may charge for all of it."""
        allowance_of(self._options).spent(self._most(body))

    def _most(self, body: dict[str, Any]) -> Usage:
        """The most that a request can use: a token is at least a byte. Nothing unless there is a limit of the cost."""
        if self._options.max_cost is None:
            return Usage()
        size = sum(len(message["content"].encode()) for message in body["messages"])
        return Usage(size, self._options.max_answer_tokens)

    def _reason(self, data: bytes) -> str:
        """What a refusal says, in one line and without the key."""
        try:
            text = msgspec.json.decode(data, type=Refusal).error.message
        except (ValueError, RecursionError):
            return ""
        if self._key is not None:
            text = text.replace(self._key, "…")
        return f": {printable(text[:MAX_REASON])}"

    async def _post(self, body: dict[str, Any], seconds: float) -> tuple[httpx.Response, bytes]:
        url = f"{self._options.url.rstrip('/')}/chat/completions"
        async with asyncio.timeout(seconds), self._http.stream("POST", url, json=body) as response:
            if response.headers.get("Content-Encoding", "identity") != "identity":  # 1 KB may unpack to 1 GB
                raise ProtocolError("the response is compressed, although the request did not accept that")
            data = bytearray()
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > self._options.max_answer_bytes:
                    raise ProtocolError(f"the response is longer than {self._options.max_answer_bytes} bytes")
            return response, bytes(data)

    async def _end(self) -> None:
        asking = asyncio.all_tasks() - {asyncio.current_task()}
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await self._http.aclose()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _retry_after(response: httpx.Response) -> float:
    try:
        return min(60.0, max(0.1, float(response.headers.get("retry-after", "0.5"))))
    except ValueError:
        return 0.5
