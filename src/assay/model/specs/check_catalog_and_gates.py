"""Gates: what a run must come to before people go on. Bounds on outcomes that decide, pool by pool.

CheckCatalog: the checks that a fleet declares, so that one that vanishes is missed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel

Phase = Literal["seatrial", "zap", "test", "production", "fabric", "weekly"]
CheckStage = Literal["observe", "decide"]
SubjectKind = Literal["node", "gpu", "hca", "nic", "psu", "nvme", "rack", "whole_rack", "fabric", "switch", "rail"]


class CheckDeclaration(StrictModel):
    """One test function. `id` is its pytest id without parameters; `subject` what it is repeated over.

    `stage` says how far its word is trusted: what it finds at `observe` is reported and kept, and decides nothing (no
    exit code, gate, fault or requirement); deleting that line promotes it. `report_only` says where it is at home: no
    state of any node asks for it, people do, and a run that they ask for fails with it. `valid_hours`: how old the
    evidence of a pass may be, where that is less than the state that requires it allows.
    """

    id: str = Field(pattern=r"^suites/[\w/]+\.py::test_\w+$")
    subject: SubjectKind
    phases: list[Phase] = Field(min_length=1)
    active: bool = False
    fault: str = ""
    report_only: bool = False
    stage: CheckStage = "decide"
    valid_hours: float | None = Field(default=None, gt=0)

    @property
    def is_observe_only(self) -> bool:
        """Whether what it finds decides nothing yet."""
        return self.stage == "observe"


class CheckCatalog(SpecDocument):
    """Every check of the fleet. Each check × subject of its kind must end in exactly one outcome."""

    kind: Literal["CheckCatalog"]
    checks: list[CheckDeclaration] = Field(min_length=1)


ANY_POOL = "any"
Percent = Annotated[float, Field(gt=0, le=100)]
UnknownShare = Annotated[float, Field(ge=0, lt=100)]


class PoolGate(StrictModel):
    """Bounds on a pool's outcomes, in per cent of those that decide: passed at least, not to be judged at most.

    A failure that a known issue excuses, and what a check on trial says, decide nothing and count nowhere.
    """

    success_percent: Percent | None = None
    unknown_percent: UnknownShare | None = None

    @model_validator(mode="after")
    def _bounds_something(self) -> PoolGate:
        if self.success_percent is None and self.unknown_percent is None:
            raise ValueError("give success_percent or unknown_percent")
        return self


class Gates(SpecDocument):
    """What `assay gate` holds a run to. A bound of a pool stands in place of the same bound of `any`.

    `new_failures` is how many outcomes may fail that did not in the last run of the same selection.
    """

    kind: Literal["Gates"]
    sources: list[str] = Field(min_length=1)
    pools: dict[SpecName, PoolGate] = Field(default={})
    new_failures: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _bounds_something(self) -> Gates:
        if not self.pools and self.new_failures is None:
            raise ValueError("give pools or new_failures")
        return self
