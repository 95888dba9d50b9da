"""Any program in any language as a strategy: ``exec:COMMAND``. See docs/reference/exec-protocol.md."""

from __future__ import annotations

from bothost import Strategy, hookimpl


@hookimpl
def bothost_strategies() -> list[type[Strategy]]:
    from bothost_exec.strategy import Exec

    return [Exec]
