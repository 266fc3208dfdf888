"""The shape of what `assay plan` prints with `--format json`.

A plan as JSON: everything, in one stable shape.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal

from typing_extensions import TypedDict

from assay.decide.plan.cable_moves import CablingJobKind
from assay.decide.plan.change_plan import ChangePlan
from assay.decide.plan.check_reruns import CheckRerun
from assay.decide.plan.drift_response import DriftResponse
from assay.decide.plan.grouped_spec_changes import ConfigurationChange, FirmwareChange, LimitChange
from assay.decide.plan.inputs import CountingChange
from assay.decide.plan.inventory_changes import NodeChange
from assay.decide.plan.other_spec_changes import OtherChange
from assay.decide.plan.policy_changes import ResponseChange, SettingDifference
from assay.decide.plan.refusals import PlanRefusal, PlanRisk
from assay.decide.plan.repair_routes import StayEstimate
from assay.decide.plan.rollout_nodes import RolloutRoute
from assay.decide.plan.sections import find_all_pools
from assay.decide.plan.setting_routes import SettingWay
from assay.decide.rollouts.rollout_waves import BlockedNodes, RolloutWave
from assay.decide.state.node_entry import describe_entry
from assay.model.backtest_report import BacktestDifference, BacktestReport, PolicyReplayReport
from assay.model.node import Node
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


def find_touched_pools(plan: ChangePlan) -> list[str]:
    """Return the pools with a node that the plan names; all pools if it changes something for every node."""
    every = find_all_pools(plan)
    there = {new.name: new.pool for _, new in plan.nodes.kept} | {node.name: node.pool for node in plan.nodes.added}
    if any((plan.answers, plan.policy, plan.faults, plan.profiles, plan.bundles, plan.fabrics, plan.checks_gone)):
        return every
    named = {there[name] for name in _list_named_nodes(plan) if name in there}
    fabrics = {job.fabric for job in plan.cables if not job.nodes}
    named |= {new.pool for _, new in plan.nodes.kept if new.settings.fabric in fabrics} if fabrics else set()
    return sorted(named.union(*(one.pools for one in plan.other)))


def _list_named_nodes(plan: ChangePlan) -> Iterator[str]:
    yield from (node.name for node in plan.nodes.added)
    yield from (new.name for _, new in plan.nodes.renamed)
    for part in (plan.nodes.changed, plan.firmware, plan.configuration, plan.limits, plan.reruns, plan.cables):
        for one in part:
            yield from one.nodes


def format_plan_json(plan: ChangePlan) -> str:
    """Return the plan as one JSON document."""
    return json.dumps(plan_document(plan), indent=1, ensure_ascii=False)


def plan_document(plan: ChangePlan) -> PlanAnswer:
    """Return the plan as plain JSON data."""
    return {
        "base": plan.base,
        "head": plan.head,
        "digest": plan.content.digest,
        "changes": plan.has_changes,
        "pools": find_touched_pools(plan),
        "refused": to_plain_json(plan.refused),
        "risks": to_plain_json(plan.risks),
        "nodes": _inventory_json(plan),
        "firmware": [_firmware_json(one) for one in plan.firmware],
        "configuration": list(map(_configuration_json, plan.configuration)),
        "limits": [_limit_json(one) for one in plan.limits],
        "checks": {"again": [_rerun_json(one) for one in plan.reruns], "gone": list(plan.checks_gone)},
        "recounts": to_plain_json(plan.recounts),
        "follows": to_plain_json(plan.follows),
        "cables": [
            {"fabric": job.fabric, "what": job.what, "steps": list(job.steps), "nodes": list(job.nodes)}
            for job in plan.cables
        ],
        "policy": {
            "answers": to_plain_json(plan.answers),
            "settings": to_plain_json(plan.policy),
            "replay": to_plain_json(plan.policy_replay),
        },
        "faults": to_plain_json(plan.faults),
        "profiles": to_plain_json(plan.profiles),
        "bundles": to_plain_json(plan.bundles),
        "fabrics": to_plain_json(plan.fabrics),
        "also_changed": to_plain_json(plan.other),
        "schedule": _schedule_json(plan),
        "backtest": _backtest_json(plan.backtest),
        "notes": list(plan.notes),
    }


def _firmware_json(one: FirmwareChange) -> PlannedFirmware:
    move = one.move
    return {
        "component": move.component,
        "old": move.old,
        "new": move.new,
        "reset": move.reset,
        "order": move.order,
        "nodes": list(one.nodes),
    }


def _limit_json(one: LimitChange) -> PlannedLimit:
    difference = one.threshold
    return {
        "spec": one.spec,
        "limit": difference.limit,
        "old": difference.old,
        "new": difference.new,
        "line": one.line,
        "nodes": list(one.nodes),
        "checks": list(one.checks),
    }


def _configuration_json(one: ConfigurationChange) -> PlannedConfiguration:
    setting = one.setting
    return {
        "field": setting.field,
        "old": setting.old,
        "new": setting.new,
        "how": setting.how,
        "reset": setting.reset,
        "way": setting.way,
        "rule": setting.rule,
        "nodes": list(one.nodes),
        "pools": list(one.pools),
        "seen_by": list(one.seen_by),
    }


def _inventory_json(plan: ChangePlan) -> InventoryDifference:
    return {
        "added": [{**_node_json(node), "entry": describe_entry(node, plan.as_of)} for node in plan.nodes.added],
        "removed": [_node_json(node) for node in plan.nodes.removed],
        "renamed": [{"from": old.name, "to": new.name} for old, new in plan.nodes.renamed],
        "changed": to_plain_json(plan.nodes.changed),
    }


def _node_json(node: Node) -> PlannedNode:
    return {
        "node": node.name,
        "pool": node.pool,
        "spec": node.spec,
        "rack": node.rack,
        "u": node.u,
        "start": node.settings.lifecycle_start,
    }


def to_plain_json(value: Any) -> Any:
    """Return plain JSON data. Values that JSON accepts are not copied."""
    if is_dataclass(value):
        return {field.name: to_plain_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): to_plain_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain_json(item) for item in value]
    return value


def _backtest_json(report: BacktestReport | None) -> PlanBacktest | None:
    if report is None:
        return None
    return {
        "days": report.days,
        "measurements": report.measurements,
        "faults": report.faults,
        "unmapped": report.unmapped,
        "found": [_difference_json(one) for one in report.differences],
    }


def _difference_json(one: BacktestDifference) -> BacktestFinding:
    return {
        "node": one.node,
        "acts": one.acts,
        "still": one.still_holds,
        "because": one.reason,
        "then": one.old_result,
        "now": one.new_result,
        "last_seen": one.last_seen,
        "times": one.times,
    }


def _rerun_json(one: CheckRerun) -> PlannedRerun:
    phases = {phase: list(checks) for phase, checks in one.phases.items()}
    return {
        "nodes": list(one.nodes),
        "phases": phases,
        "because": {stale.check: list(stale.because) for stale in one.stale},
    }


def _schedule_json(plan: ChangePlan) -> PlanSchedule:
    work, schedule = plan.work, plan.work.schedule
    return {
        "waves": to_plain_json(schedule.waves),
        "hours": schedule.hours,
        "node_hours": schedule.node_hours,
        "waiting": to_plain_json(schedule.waiting),
        "under_way": list(work.under_way),
        "left_alone": list(work.left_alone),
        "ways": [_route_json(way) for way in work.rollout_routes],
    }


def _route_json(way: RolloutRoute) -> WayOut:
    return {
        "states": list(way.route.states),
        "nodes": way.nodes,
        "hours": way.hours,
        "stages": to_plain_json(way.stages),
    }
