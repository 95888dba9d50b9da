"""The error of a call in the wrong order."""

from __future__ import annotations

from gymnasium.error import ResetNeeded as GymnasiumResetNeeded

from bothost.errors import UsageError


class ResetNeeded(UsageError, GymnasiumResetNeeded):
    """An environment has no hand under way, so that nothing can be decided. Gymnasium's error, with advice."""

    def __init__(self, message: str) -> None:
        super().__init__(message, advice="call reset() first")
