"""How hard an effect is tried before it has failed, and how long one attempt may be at work."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from assay.model.spec import Strict


class Effort(Strict):
    """One action's tries.

    Only what went wrong while it was done is tried again, after `waits_minutes` of the fleet's time (the last one
    counts for all further attempts); what was done without trouble and did not work has failed. After
    `deadline_minutes` of real time nothing of an attempt can be at work any more, whatever became of its controller.
    """

    attempts: int = Field(default=3, ge=1, le=10)
    waits_minutes: list[float] = Field(default=[1, 5], min_length=1)
    deadline_minutes: float = Field(default=60, gt=0, le=1440)
    source: str = ""

    def wait_after(self, attempt: int) -> timedelta:
        """Return how long to wait after the attempt with this number (the first is 1) before the next."""
        return timedelta(minutes=self.waits_minutes[min(attempt, len(self.waits_minutes)) - 1])

    @property
    def deadline_s(self) -> float:
        """The deadline in seconds."""
        return self.deadline_minutes * 60
