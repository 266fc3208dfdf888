"""CheckCatalog: the checks that a fleet declares, so that one that vanishes is missed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from assay.model.spec import Spec, Strict

Phase = Literal["seatrial", "zap", "test", "production", "fabric", "weekly"]
SubjectKind = Literal["node", "gpu", "hca", "nic", "psu", "nvme", "rack", "whole_rack", "fabric", "switch", "rail"]


class Check(Strict):
    """One test function. `id` is its pytest id without parameters; `subject` what it is repeated over.

    `report_only` says that no state of any node asks for it: people read it, and trends keep it.
    """

    id: str = Field(pattern=r"^suites/[\w/]+\.py::test_\w+$")
    subject: SubjectKind
    phases: list[Phase] = Field(min_length=1)
    active: bool = False
    fault: str = ""
    report_only: bool = False


class CheckCatalog(Spec):
    """Every check of the fleet. Each check × subject of its kind must end in exactly one outcome."""

    kind: Literal["CheckCatalog"]
    checks: list[Check] = Field(min_length=1)
