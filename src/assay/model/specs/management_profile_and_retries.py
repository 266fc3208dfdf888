"""How hard an effect is tried before it has failed, and how long one attempt may be at work.

ManagementProfile: what automation may do to a node.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import Field

from assay.model.decision import ActionName
from assay.model.specs.spec_document import SpecDocument, StrictModel


class EffectRetryPolicy(StrictModel):
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


class ManagementProfile(SpecDocument):
    """What automation may do.

    `actions`: the effects that it may have. `acts_on_faults`: whether a fault may move a node at all; where not,
    faults are tracked and shown. `hca_firmware`: whether zap brings the HCAs' firmware to the bundle.
    """

    kind: Literal["ManagementProfile"]
    sources: list[str] = Field(min_length=1)
    actions: list[ActionName]
    acts_on_faults: bool
    hca_firmware: bool
