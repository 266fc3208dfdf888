"""The shape of what `assay plan` prints with `--format json`."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from assay.decide.plan.assumptions import CountingChange
from assay.decide.plan.cable_moves_and_adapter_replacements import CablingJobKind
from assay.decide.plan.drift_response import DriftResponse
from assay.decide.plan.inventory_changes import NodeChange
from assay.decide.plan.merge_risks import PlanRisk
from assay.decide.plan.other_change import OtherChange
from assay.decide.plan.policy_changes import ResponseChange, SettingDifference
from assay.decide.plan.refusals import PlanRefusal
from assay.decide.plan.repair_routes import StayEstimate
from assay.decide.plan.setting_routes import SettingWay
from assay.decide.rollouts.rollout_waves import BlockedNodes, RolloutWave
from assay.model.backtest_report import PolicyReplayReport
from assay.model.specs.firmware_bundle import FirmwareReset


class PlannedNode(TypedDict):
    """A node of the inventory."""

    node: str
    """The name of the node."""
    pool: str
    """The pool that it is in."""
    spec: str
    """Its node spec."""
    rack: str
    """Its rack; "" if none is declared."""
    u: int
    """Its place in the rack, in rack units; 0 if none is declared."""
    start: str
    """The state in which it starts."""


class AddedNode(PlannedNode):
    """A new node."""

    entry: str
    """How it comes into service, in words."""


RenamedNode = TypedDict("RenamedNode", {"from": str, "to": str})
RenamedNode.__doc__ = """A machine whose node has another name.

- `from`: the old name. `to`: the new name.
"""


class InventoryDifference(TypedDict):
    """How the inventory differs."""

    added: list[AddedNode]
    """The new nodes."""
    removed: list[PlannedNode]
    """The nodes that are gone."""
    renamed: list[RenamedNode]
    """The nodes with another name."""
    changed: list[NodeChange]
    """The fields that change, with their nodes."""


class PlannedFirmware(TypedDict):
    """A component that changes its version."""

    component: str
    """The component."""
    old: str
    """Its version before; "" if the bundle did not have it."""
    new: str
    """Its version after."""
    reset: FirmwareReset
    """What must be restarted for it."""
    order: int
    """Its place in the order of installing."""
    nodes: list[str]
    """The nodes on which it changes."""


class PlannedConfiguration(TypedDict):
    """A setting of a spec that changes."""

    field: str
    """The setting, such as host.governor."""
    old: str
    """Its value before."""
    new: str
    """Its value after."""
    how: Literal["applied", "judged"]
    """Whether it is applied to the nodes, or only judged."""
    reset: FirmwareReset
    """What must be restarted for it."""
    way: SettingWay
    """How an applied setting reaches a node in service; "" for one that is only judged."""
    rule: str
    """The rule of the policy that says so, as file and line; "" for none."""
    nodes: list[str]
    """The nodes on which it changes."""
    pools: list[str]
    """Their pools."""
    seen_by: list[str]
    """The checks that read it; without any, nobody sees the change."""


class PlannedLimit(TypedDict):
    """A limit of a spec that changes."""

    spec: str
    """The spec."""
    limit: str
    """The limit."""
    old: str
    """Its value before; "" if it did not exist."""
    new: str
    """Its value after; "" if it does not exist any more."""
    line: str
    """The file and line of the limit."""
    nodes: list[str]
    """The nodes that it holds for."""
    checks: list[str]
    """The checks that read it."""


class PlannedRerun(TypedDict):
    """Checks that must run again on some nodes."""

    nodes: list[str]
    """The nodes."""
    phases: dict[str, list[str]]
    """The checks, by phase."""
    because: dict[str, list[str]]
    """The reasons, by check."""


class PlannedChecks(TypedDict):
    """What becomes of checks."""

    again: list[PlannedRerun]
    """The checks whose passes no longer count."""
    gone: list[str]
    """The checks that are gone."""


class PlannedCabling(TypedDict):
    """One piece of work on cables."""

    fabric: str
    """The fabric."""
    what: CablingJobKind
    """What kind of work it is."""
    steps: list[str]
    """What technicians do, in order."""
    nodes: list[str]
    """The nodes that lose links meanwhile."""


class PolicyDifference(TypedDict):
    """How the lifecycle policy differs."""

    answers: list[ResponseChange]
    """The faults that the policy answers in another way."""
    settings: list[SettingDifference]
    """The settings of the policy that change."""
    replay: PolicyReplayReport | None
    """The recorded faults under both policies; null if the policy does not change."""


class WayOut(TypedDict):
    """A way out of service and back."""

    states: list[str]
    """The states on the way."""
    nodes: int
    """How many nodes go this way."""
    hours: float
    """How many hours a node needs."""
    stages: list[StayEstimate]
    """The stay in each state."""


class PlanSchedule(TypedDict):
    """How nodes leave service for the change."""

    waves: list[RolloutWave]
    """The waves, in order."""
    hours: float
    """How many hours all waves take, one after the other."""
    node_hours: float
    """How many node-hours are spent out of service."""
    waiting: list[BlockedNodes]
    """The nodes that no wave can take yet."""
    under_way: list[str]
    """The nodes that are out of service or not yet in it: they take the change on their way."""
    left_alone: list[str]
    """The nodes whose profile does not act on faults."""
    ways: list[WayOut]
    """The ways that nodes go."""


class BacktestFinding(TypedDict):
    """A node that both revisions would have treated differently."""

    node: str
    """The name of the node."""
    acts: bool
    """Whether the new revision moves the node and the old one does not; false means the reverse."""
    still: bool
    """Whether the newest evidence says the same, so that merging acts at once."""
    because: str
    """The reason."""
    then: str
    """What the old revision says."""
    now: str
    """What the new revision says."""
    last_seen: str
    """When it was seen last: ISO 8601."""
    times: int
    """How often it happened."""


class PlanBacktest(TypedDict):
    """What recorded history says about the change."""

    days: float
    """How many days of history were compared."""
    measurements: int
    """How many measurements have a changed limit."""
    faults: int
    """How many faults were compared."""
    unmapped: int
    """How many measurements have a limit that could not be found."""
    found: list[BacktestFinding]
    """The nodes that both revisions would have treated differently."""


class PlanAnswer(TypedDict):
    """What merging a change would do to the fleet."""

    base: str
    """The revision before the change."""
    head: str
    """The revision with the change."""
    digest: str
    """The digest of the part of the plan that the files alone decide."""
    changes: bool
    """Whether merging changes anything for the fleet."""
    pools: list[str]
    """The pools that it touches."""
    refused: list[PlanRefusal]
    """The limits of the policy that it would break; with any, the exit code is 1."""
    risks: list[PlanRisk]
    """What deserves a second look."""
    nodes: InventoryDifference
    """The nodes that come, go or change."""
    firmware: list[PlannedFirmware]
    """The firmware that changes."""
    configuration: list[PlannedConfiguration]
    """The settings that change."""
    limits: list[PlannedLimit]
    """The limits that change."""
    checks: PlannedChecks
    """The checks that must run again, and those that are gone."""
    recounts: list[CountingChange]
    """The failures that begin or stop to count."""
    follows: list[DriftResponse]
    """What the policy does with nodes that differ from their spec after the merge."""
    cables: list[PlannedCabling]
    """The work on cables."""
    policy: PolicyDifference
    """What changes in the lifecycle policy."""
    faults: list[SettingDifference]
    """The settings of fault catalogues that change."""
    profiles: list[SettingDifference]
    """The settings of management profiles that change."""
    bundles: list[SettingDifference]
    """The settings of firmware bundles that change."""
    fabrics: list[SettingDifference]
    """The settings of fabric designs that change."""
    also_changed: list[OtherChange]
    """What else changes."""
    schedule: PlanSchedule
    """The waves in which nodes leave service."""
    backtest: PlanBacktest | None
    """What recorded history says about the change; null if there is none to ask, or nothing to ask it."""
    notes: list[str]
    """What else to know."""
