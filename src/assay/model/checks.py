"""CheckCatalog: the checks that a fleet declares, so that one that vanishes is missed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.model.spec import Spec, Strict

Phase = Literal["seatrial", "zap", "test", "production", "fabric", "weekly"]
Stage = Literal["observe", "decide"]
SubjectKind = Literal["node", "gpu", "hca", "nic", "psu", "nvme", "rack", "whole_rack", "fabric", "switch", "rail"]


class Check(Strict):
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
    stage: Stage = "decide"
    valid_hours: float | None = Field(default=None, gt=0)

    @property
    def observed(self) -> bool:
        """Whether what it finds decides nothing yet."""
        return self.stage == "observe"


class CheckCatalog(Spec):
    """Every check of the fleet. Each check × subject of its kind must end in exactly one outcome."""

    kind: Literal["CheckCatalog"]
    checks: list[Check] = Field(min_length=1)
