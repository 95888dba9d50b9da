"""A large language model as a strategy: ``llm-player``. See docs/guide/llm-player.md."""

from __future__ import annotations

from bothost import Strategy, hookimpl


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    from bothost_llm.strategy import LlmPlayer

    return [LlmPlayer]
