"""A large language model as a strategy: ``llm-player``. See docs/guide/llm-player.md."""

from __future__ import annotations

from bothost import LazyClass, hookimpl


@hookimpl
def bothost_strategies() -> list[LazyClass]:
    return [LazyClass("llm-player", "bothost_llm.strategy:LlmPlayer")]
