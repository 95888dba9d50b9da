"""What a host does when a strategy does not decide: a warning, and a step towards its quarantine."""

from __future__ import annotations

from bothost.errors import BothostError, described, raised_at
from bothost.host.limited_lines import FailureLines
from bothost.host.plans import Plans
from bothost.host.process import HostFault
from bothost.tables.hand import Job


class Failures:
    """Records the failures of strategies, and warns of them."""

    def __init__(self, plans: Plans) -> None:
        self._plans = plans
        self._lines = FailureLines()

    def failed(self, job: Job, cause: BaseException | None) -> None:
        """A strategy did not decide. ``cause``: what it raised; None if it was late, for example."""
        if job.reason == "quarantined":
            return
        loaded = job.hand.actor.plan.strategy
        if cause is not None:
            at = raised_at(cause, loaded.resolved.strategy.__module__)
            advice = cause.advice if isinstance(cause, BothostError) else ""
            job.why = {"error": described(cause), "at": at, "advice": advice}
        if not isinstance(cause, HostFault):
            self._plans.failed(loaded, job.reason or "error")

    def warn(self, job: Job) -> None:
        """Log that the strategy did not decide: one line a request."""
        strategy, table = job.hand.actor.plan.strategy.address, job.hand.key.table
        self._lines.warning(
            "fallback_decided", strategy, table=table, link=job.decided_by, reason=job.reason, **job.why
        )

    def report(self) -> None:
        """Report the warnings that were left out."""
        self._lines.report()
