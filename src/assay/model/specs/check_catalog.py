"""CheckCatalog: the checks that a fleet declares, so that a missing one is noticed. Gates: bounds for a run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Literal

from pydantic import Field, model_validator

from assay.model.specs.load_parts import PART_NEEDS, LoadPart, NodePart, find_lacking_part
from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel

Phase = SpecName
"""A group of checks that states watch or require. Checks and policy name phases; `assay check` matches them."""
DEFAULT_PHASES = (
    "discovered",
    "initializing",
    "seatrial",
    "zap",
    "test",
    "production",
    "fabric",
    "weekly",
    "hand-over",
)
"""The phases of the default policy and suites, in the order of a node's life."""
CheckStage = Literal["observe", "decide"]
SubjectKind = Literal[
    "node", "gpu", "hca", "nic", "psu", "nvme", "disk", "rack", "whole_rack", "fabric", "switch", "rail"
]
SUBJECT_KIND_OF_FIXTURE: dict[str, SubjectKind] = {
    "gpu": "gpu",
    "hca": "hca",
    "nic": "nic",
    "psu": "psu",
    "nvme": "nvme",
    "disk": "disk",
    "link": "hca",
    "node": "node",
    "bmc": "node",
    "load": "node",
    "battery": "node",
    "training": "node",
    "data_parallel": "node",
    "tensor_parallel": "node",
    "site_training": "node",
    "rack": "rack",
    "whole_rack": "whole_rack",
    "switch": "switch",
    "rail": "rail",
    "link_week": "hca",
    "switch_week": "switch",
    "fabric_week": "fabric",
    "fabric": "fabric",
    "spec": "node",
    "limits": "node",
    "bundle": "node",
    "profile": "node",
}
"""The subject kind of each fixture. The first of these among a check's arguments decides the check's kind."""

PARTS_OF_SUBJECTS = {"gpu": "gpus", "hca": "hcas", "nic": "nics", "psu": "psus", "nvme": "nvme", "disk": "disks"}
"""The field of a node spec that has the subjects of a kind."""
NEEDS_OF_FIXTURES = {"bmc": "bmc", "link": "fabric", "link_week": "fabric", "bundle": "firmware"}
"""What a node must have for a fixture to give anything."""


class CheckDeclaration(StrictModel):
    """One test function. `id` is its pytest id without parameters; `subject` is the kind of subject that it judges.

    - `stage: observe`: its outcomes are reported and stored, and decide nothing: no exit code, gate, fault or
      requirement. Delete the line to promote the check.
    - `report_only`: no lifecycle state asks for the check. It counts in runs that people start.
    - `valid_hours`: the greatest age of the evidence of a pass, if less than the requiring state allows.
    - `parts`: the parts of a load whose results it reads. It is due where one of them was asked for; elsewhere it ends
      as a skip. A check without `parts` is due after any load.
    - `needs`: what a node must have for the check to be due there: fields of its spec such as `fans`, the vendor of its
      GPUs (`nvidia`, `amd`), the kind of its adapters (`infiniband`, `roce`), `nvlink` (the spec has the limit
      `nvlink_links`), `bmc` or `fabric` (the inventory names one). Its subject and its `parts` need theirs anyway.
      Of a fabric with its switches and rails, the design's rate tells the kind (`infiniband`, or `roce` with `400G`).
      Elsewhere it is no check: nothing waits for it.

    `phases`: the phases that run it. `active`: it loads the hardware. `fault`: the fault class of its failure. `stage`:
    whether its outcomes decide anything.
    """

    id: str = Field(pattern=r"^suites/[\w/]+\.py::test_\w+$")
    subject: SubjectKind
    phases: list[Phase] = Field(min_length=1)
    active: bool = False
    fault: str = ""
    report_only: bool = False
    stage: CheckStage = "decide"
    valid_hours: float | None = Field(default=None, gt=0)
    parts: list[LoadPart] = Field(default=[])
    needs: list[NodePart] = Field(default=[])

    @model_validator(mode="after")
    def _only_active_checks_read_parts(self) -> CheckDeclaration:
        if self.parts and not self.active:
            raise ValueError("`parts` are of a load: write `active: true`")
        return self

    def is_due(self, phase: Phase, parts: Collection[str]) -> bool:
        """Whether it judges a phase whose load has these parts."""
        return phase in self.phases and (not self.parts or not {*self.parts}.isdisjoint(parts))

    def find_lacking(self, parts: Collection[str]) -> str:
        """Return what a node with these parts lacks for the check, "" if the check is due there."""
        needs = [PARTS_OF_SUBJECTS[self.subject]] if self.subject in PARTS_OF_SUBJECTS else []
        loads = [find_lacking_part(PART_NEEDS[part], parts) for part in self.parts]
        return find_lacking_part([*needs, *self.needs], parts) or (loads[0] if all(loads) and loads else "")

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.id.rpartition("::")[2]

    @property
    def is_observe_only(self) -> bool:
        """Whether its outcomes decide nothing yet."""
        return self.stage == "observe"


class CheckCatalog(SpecDocument):
    """Every check of the fleet. A run must have exactly one outcome for each check and each subject of its kind.

    `checks`: one entry for each test function.
    """

    kind: Literal["CheckCatalog"]
    checks: list[CheckDeclaration] = Field(min_length=1)


ANY_POOL = "any"
Percent = Annotated[float, Field(gt=0, le=100)]
UnknownShare = Annotated[float, Field(ge=0, lt=100)]


class PoolGate(StrictModel):
    """Bounds on a pool's outcomes: the least share of passes, and the greatest share of `error` outcomes.

    Shares are in per cent of the outcomes that decide. Excused failures and checks at stage `observe` do not count.

    `success_percent`: the least share of passes. `unknown_percent`: the greatest share of errors.
    """

    success_percent: Percent | None = None
    unknown_percent: UnknownShare | None = None

    @model_validator(mode="after")
    def _bounds_something(self) -> PoolGate:
        if self.success_percent is None and self.unknown_percent is None:
            raise ValueError("give success_percent or unknown_percent")
        return self


class Gates(SpecDocument):
    """The bounds of `assay gate`. A pool's bound replaces the same bound of the pool `any`.

    `new_failures`: how many outcomes may fail that did not fail in the last run of the same selection.

    `pools`: the bounds by pool.
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
