"""BurnIn: the phases in which a node is loaded before it serves, and how drift over that time is judged.

A window of a burn-in: what ran in it, on which parts of the node, and the medians of what was read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Literal

from pydantic import Field, model_validator

from assay.model.facts import frozen
from assay.model.specs.load_parts import LOAD_PARTS, LoadPart, NodePart, find_lacking_part, select_possible
from assay.model.specs.node.node_spec import MetricLimit
from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel

DriftMeasure = Literal["temperature", "memory_temperature", "clock", "gflops", "corrected"]
"""What is followed over the time of a burn-in. Only `corrected` belongs to DIMMs as well as to GPUs."""
MINUTES = 60.0
SWING_HERTZ = (0.02, 20.0)


class ThermalCycles(StrictModel):
    """The load runs for `on_minutes`, and then rests for `off_minutes`, again and again."""

    on_minutes: float = Field(gt=0, le=720)
    off_minutes: float = Field(gt=0, le=720)

    @property
    def period_s(self) -> float:
        """The length of one cycle, in seconds."""
        return (self.on_minutes + self.off_minutes) * MINUTES


class PowerSwings(StrictModel):
    """The load's processes are stopped and continued, so that the power of all GPUs swings together.

    `hertz`: swings per second; several values take turns, one for each unit. `duty`: the share of a swing with load.
    """

    hertz: list[float] = Field(min_length=1)
    duty: float = Field(default=0.5, ge=0.05, le=0.95)

    @model_validator(mode="after")
    def _can_be_kept(self) -> PowerSwings:
        least, most = SWING_HERTZ
        if wrong := [hertz for hertz in self.hertz if not least <= hertz <= most]:
            raise ValueError(f"a swing of {wrong[0]:g} Hz cannot be kept; use {least:g} to {most:g} Hz")
        return self


class BurnInPhase(StrictModel):
    """A phase of `hours`, in which `parts` load the node one after the other, again and again.

    - `beside`: parts that run at the same time as `parts`, in a row of their own.
    - `name`: the phase in messages. `unit_seconds`: how long one run of a part takes; without it, as the document says.
    - `cycles`: rests between times of load. `swings`: fast changes of power during the load.
    - `compare_with`: an earlier phase with the same parts, whose rates the report compares with this one's.
    - `finds`: what this phase is for, in the words of people.
    """

    name: SpecName
    hours: float = Field(gt=0, le=720)
    parts: list[LoadPart] = Field(min_length=1)
    beside: list[LoadPart] = Field(default=[])
    unit_seconds: int | None = Field(default=None, ge=1, le=3600)
    cycles: ThermalCycles | None = None
    swings: PowerSwings | None = None
    compare_with: SpecName | None = None
    finds: str = ""

    @model_validator(mode="after")
    def _is_possible(self) -> BurnInPhase:
        if twice := sorted(set(self.parts) & set(self.beside)):
            raise ValueError(f"{twice[0]} is in `parts` and in `beside`: a part cannot run beside itself")
        if self.cycles and self.cycles.period_s > self.hours * 60 * MINUTES:
            raise ValueError("one of `cycles` takes longer than the phase")
        return self


class DriftLimit(StrictModel):
    """How much a measure may change in a day of burn-in, before the node counts as drifting.

    `temperature` and `memory_temperature` rise, in °C a day against the node's other GPUs; `clock` and `gflops` fall,
    in percent a day against them. For `corrected`, `per_day` is the rise of corrected memory errors a day. `holds`:
    such a drift keeps the node for `hold_longer_hours`.
    """

    per_day: float = Field(gt=0)
    holds: bool = True
    source: str = ""


class DriftRules(StrictModel):
    """When the values of a part change so much that a person should know.

    - `confidence`: of the interval of a change. The change must exceed its limit, and the interval must exclude zero.
    - `points_at_least`: with fewer windows, nothing is claimed. `power_percent`: a window counts for temperature and
      clock only if the GPU's power is this close to the median of its neighbours.
    - `fleet_below_percent`: a GPU that is so much slower than the median of its SKU is told. `fleet_gpus_at_least`:
      with fewer GPUs to compare with, nothing is claimed.
    - `hold_longer_hours`: how long a drifting node is loaded after its last phase, 0 for not at all.

    `limits`: how much each measure may change.
    """

    limits: dict[DriftMeasure, DriftLimit] = Field(default={})
    confidence: float = Field(default=0.9999, ge=0.9, lt=1)
    points_at_least: int = Field(default=12, ge=5, le=10_000)
    power_percent: float = Field(default=5, gt=0, le=100)
    fleet_below_percent: float = Field(default=6, gt=0, le=100)
    fleet_gpus_at_least: int = Field(default=40, ge=5, le=1_000_000)
    hold_longer_hours: float = Field(default=0, ge=0, le=720)
    source: str = ""


class RestartLimit(StrictModel):
    """How often a node may restart under its load. `most`: so often; once more is a failure. `source`: why so often."""

    most: int = Field(ge=0, le=100)
    source: str = Field(min_length=1)


ONE_RESTART = RestartLimit(most=1, source="our own choice: a first restart may be a power cut, or a person")


class BurnIn(SpecDocument):
    """How a node is loaded before it serves: phases in order.

    - `node_specs`: for nodes of these specs; empty means all. A state of the policy names the burn-in (`burn_in`).
    - `needs`: for nodes that have these parts, as in a CheckCatalog. Of the plan, a node does what it has parts for:
      without drives, it reads none.
    - `unit_seconds`: how long one run of a part takes. The result of a run that is cut short is lost, its time is not.
    - `watch_seconds`: how often temperature, power, clock and errors are read meanwhile.
    - `record_minutes`: the length of a window. Its medians and its coverage are one entry of the ledger.
    - `restarts`: how many restarts of a node fail no burn-in.
    - `results_percent`: the share of the runs of each part, in each phase, that must have given a result.
    - `stagger`: what swings in step, by the time of day: each `rack`, or each `row`, whose racks are called alike but
      for the last digits. Others are shifted, so that they do not change their power with it. `none` shifts nothing.
    - `step_kw`: by how much the power of a site may change at once. A rack or row with more nodes is divided.

    `phases`: what loads the node, in order. `drift`: what is told about change over the day. `collectives`: whether the
    node then runs collectives with other free nodes of its fabric, as the schedule `collectives-search` says.
    """

    kind: Literal["BurnIn"]
    sources: list[str] = Field(min_length=1)
    node_specs: list[SpecName] = Field(default=[])
    needs: list[NodePart] = Field(default=[])
    unit_seconds: int = Field(default=60, ge=1, le=3600)
    watch_seconds: int = Field(default=30, ge=1, le=3600)
    record_minutes: float = Field(default=15, gt=0, le=1440)
    results_percent: float = Field(default=90, gt=0, le=100)
    restarts: RestartLimit = ONE_RESTART
    stagger: Literal["rack", "row", "none"] = "rack"
    step_kw: float | None = Field(default=None, gt=0, le=1_000_000)
    phases: list[BurnInPhase] = Field(min_length=1)
    drift: DriftRules = Field(default_factory=DriftRules)
    collectives: bool = False

    @property
    def hours(self) -> float:
        """How long all phases take."""
        return sum(phase.hours for phase in self.phases)

    @property
    def longest_hours(self) -> float:
        """How long the burn-in of a drifting node takes."""
        return self.hours + self.drift.hold_longer_hours

    def measure_swing(self, limits: Mapping[str, MetricLimit]) -> tuple[float, str]:
        """Return by how many kW a node with these limits may change its power, and why `step_kw` cannot hold that.

        The reason is "" where it can, and without `step_kw`.
        """
        if self.step_kw is None:
            return 0.0, ""
        if "node_power" not in limits:
            return 0.0, "the spec has no limit node_power, so no step can be held below step_kw"
        low = limits["node_power_low"].value if "node_power_low" in limits else 0.0
        swing_kw = (limits["node_power"].value - low) / 1000
        alone = f"a node alone changes its power by {swing_kw:.1f} kW, and step_kw is {self.step_kw:g}"
        return swing_kw, alone if swing_kw > self.step_kw else ""

    def applies_to(self, node_spec: str, parts: Collection[str]) -> bool:
        """Whether this burn-in is for nodes of a spec that have these parts."""
        is_for_spec = not self.node_specs or node_spec in self.node_specs
        return is_for_spec and not find_lacking_part(self.needs, parts) and bool(self.fit_to(parts).phases)

    def fit_to(self, parts: Collection[str]) -> BurnIn:
        """Return what of it a node with these parts does: the phases with what it can run."""
        phases: dict[str, BurnInPhase] = {}
        for phase in self.phases:
            row, beside = select_possible(phase.parts, parts), select_possible(phase.beside, parts)
            rows = {"parts": row or beside, "beside": beside if row else []}
            gone = {} if phase.compare_with in phases else {"compare_with": None}
            if row or beside:
                phases[phase.name] = phase.model_copy(update=rows | gone)
        return self.model_copy(update={"phases": [*phases.values()]})

    @model_validator(mode="after")
    def _phases_fit(self) -> BurnIn:
        if self.step_kw and self.stagger == "none":
            raise ValueError("`step_kw` needs `stagger: rack` or `row`: with `none`, all nodes swing at once")
        earlier: dict[str, BurnInPhase] = {}
        for phase in self.phases:
            if phase.name in earlier:
                raise ValueError(f"two phases are called {phase.name}")
            if phase.compare_with and phase.compare_with not in earlier:
                raise ValueError(f"{phase.name}: no earlier phase is called {phase.compare_with}")
            if phase.compare_with and not set(phase.parts) & set(earlier[phase.compare_with].parts):
                raise ValueError(f"{phase.name} has no part of {phase.compare_with}, with which it is compared")
            earlier[phase.name] = phase
        return self


GpuMedians = Mapping[str, float]
"""Of one GPU in one window: temperature and memory_temperature (°C), power (W), clock (MHz), gflops (Gflop/s)."""


HARD_COUNTERS: Mapping[str, str] = {
    "uncorrected": "uncorrected memory errors",
    "remapped": "remapped rows of memory",
    "links": "links that are up",
}
"""What ends a burn-in if it changes for the worse: the first two may not rise, the last may not fall."""
HARD_FAULTS: Mapping[str, Mapping[str, str]] = {
    "gpus": {"uncorrected": "gpu.memory.uncorrectable", "remapped": "gpu.memory.remap", "links": "gpu.nvlink.down"},
    "dimms": {"uncorrected": "host.dimm.uncorrected"},
}
"""The class of fault of such a change, by what counts."""
LOAD_FAULT, RESTART_FAULT = "gpu.burn.failed", "host.load.fault"
PART_FAULTS: Mapping[LoadPart, str] = {
    "all_reduce": "collective.wrong",
    **{part: "gpu.diag.failed" for part in LOAD_PARTS if part.startswith("dcgm_")},
    "fio_verify": "nvme.data.wrong",
    "gpu_fryer": "gpu.slow",
    "memory": "host.memory.errors",
    "shared_storage": "storage.data.wrong",
    "stressapptest": "host.memory.errors",
}
"""The class of fault of a load part that gives wrong results, as its check has it; of the others, LOAD_FAULT."""


@frozen
class PartWork:
    """What one load part did: `units` were run for `seconds` in all, and `results` of them gave a result.

    `subjects`: the seconds with a result of each subject, such as `gpu3` or `nvme0`; `node` for one of the whole node.
    `reason`: why the last unit without a result had none.
    """

    units: int = 0
    results: int = 0
    seconds: float = 0.0
    subjects: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    def plus(self, other: PartWork) -> PartWork:
        """Return both together."""
        names = {**self.subjects, **other.subjects}
        return PartWork(
            self.units + other.units,
            self.results + other.results,
            round(self.seconds + other.seconds, 1),
            {name: round(self.subjects.get(name, 0.0) + other.subjects.get(name, 0.0), 1) for name in names},
            other.reason or self.reason,
        )


@frozen
class BurnInWindow:
    """A window that ends at `hours` of the burn-in, in `phase`.

    `parts`: what each load part did. `gpus`: medians by subject. `corrected`: the counters of corrected memory errors
    at the end of the window; they may begin again at 0 after a reboot. `hard`: what must not change (HARD_COUNTERS).
    """

    hours: float
    phase: str
    parts: Mapping[str, PartWork] = field(default_factory=dict)
    gpus: Mapping[str, GpuMedians] = field(default_factory=dict)
    corrected: Mapping[str, int] = field(default_factory=dict)
    hard: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
