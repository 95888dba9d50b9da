"""Any program in any language as a strategy: ``exec:COMMAND``. See docs/reference/exec-protocol.md."""

from __future__ import annotations

from bothost import LazyClass, hookimpl


@hookimpl
def bothost_strategies() -> list[LazyClass]:
    return [LazyClass("exec", "bothost_exec.strategy:Exec")]
