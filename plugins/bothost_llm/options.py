"""Options of ``llm-player``, as a route sets them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Milliseconds = Annotated[float, Meta(ge=1, le=3_600_000)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a language model."""

    url: Annotated[str, Meta(pattern=r"^https?://[^\s@?#]+\Z", max_length=500)]
    """Base URL of an OpenAI-compatible endpoint, such as ``https://api.openai.com/v1``. http:// is only allowed for
    this machine."""
    model: Annotated[str, Meta(min_length=1, max_length=200)]
    """Name of the model at the endpoint."""
    key_variable: Annotated[str, Meta(pattern=r"^(?!BOTHOST_)[A-Za-z_][A-Za-z0-9_]*\Z")] | None = None
    """Environment variable with the key. None: the endpoint needs no key."""
    timeout_ms: Milliseconds = 30_000.0
    """Most time for one decision."""
    attempts: Annotated[int, Meta(ge=1, le=5)] = 2
    """Requests for one decision, if an answer is unusable or the endpoint is busy."""
    structured: Literal["json_schema", "json_object", "none"] = "json_schema"
    """How the request asks for JSON. Some endpoints only support ``json_object`` or nothing."""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    """None: the endpoint's default."""
    max_answer_tokens: Annotated[int, Meta(ge=16, le=100_000)] = 1000
    """Most tokens of one answer."""
    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """How the request states ``max_answer_tokens``. OpenAI's reasoning models only accept the second."""
    max_answer_bytes: Annotated[int, Meta(ge=1024, le=1 << 24)] = 1 << 18
    """Longer responses are refused."""
    max_prompt_chars: Annotated[int, Meta(ge=2000, le=1_000_000)] = 24_000
    """A longer prompt is shortened: first the history, then the legal actions."""
    requests_per_minute: Annotated[float, Meta(gt=0, le=100_000)] = 60.0
    """Rate limit for all tables of this strategy. A decision that would have to wait too long falls back."""
    max_requests: Annotated[int, Meta(ge=1)] | None = None
    """After this many requests the process makes no more."""
    max_cost: Annotated[float, Meta(gt=0)] | None = None
    """After this cost the process makes no more requests. Needs the two prices. A response that comes too late, or does
    not say what it used, counts as the most that it can cost."""
    price_in: Annotated[float, Meta(ge=0)] = 0.0
    """Price of a million prompt tokens, in any currency."""
    price_out: Annotated[float, Meta(ge=0)] = 0.0
    """Price of a million answer tokens."""
    transcript_chars: Annotated[int, Meta(ge=0, le=100_000)] = 4000
    """Most characters of prompt and of answer in the decision's statistics."""
