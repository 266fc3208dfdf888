"""The shape of what `assay plan` prints with `--format json`.

A plan as JSON: everything, in one stable shape.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from assay.decide.plan.cable_moves import CablingJob
from assay.decide.plan.change_plan import ChangePlan
from assay.decide.plan.drift_response import DriftResponse
from assay.decide.plan.grouped_spec_changes import ConfigurationChange, FirmwareChange, LimitChange
from assay.decide.plan.inputs import CountingChange
from assay.decide.plan.inventory_changes import NodeChange
from assay.decide.plan.other_spec_changes import OtherChange
from assay.decide.plan.policy_changes import ResponseChange, SettingDifference
from assay.decide.plan.refusals import PlanRefusal, PlanRisk
from assay.decide.plan.repair_routes import StayEstimate
from assay.decide.plan.sections import find_all_pools
from assay.decide.rollouts.rollout_waves import BlockedNodes, RolloutWave
from assay.decide.state.node_entry import describe_entry
from assay.model.backtest_report import BacktestReport, PolicyReplayReport
from assay.model.facts import extend, fact, shown, to_json
from assay.model.node import Node


@fact
class PlannedNode:
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


@fact
class AddedNode(PlannedNode):
    """A new node."""

    entry: str
    """How it comes into service, in words."""


@fact
class RenamedNode:
    """A machine whose node has another name."""

    old: str = shown("from")
    """The old name."""
    to: str
    """The new name."""


@fact
class InventoryDifference:
    """How the inventory differs."""

    added: list[AddedNode]
    """The new nodes."""
    removed: list[PlannedNode]
    """The nodes that are gone."""
    renamed: list[RenamedNode]
    """The nodes with another name."""
    changed: tuple[NodeChange, ...]
    """The fields that change, with their nodes."""


@fact
class PlannedRerun:
    """Checks that must run again on some nodes."""

    nodes: tuple[str, ...]
    """The nodes."""
    phases: Mapping[str, tuple[str, ...]]
    """The checks, by phase."""
    because: Mapping[str, tuple[str, ...]]
    """The reasons, by check."""


@fact
class PlannedChecks:
    """What becomes of checks."""

    again: list[PlannedRerun]
    """The checks whose passes no longer count."""
    gone: tuple[str, ...]
    """The checks that are gone."""


@fact
class PolicyDifference:
    """How the lifecycle policy differs."""

    answers: tuple[ResponseChange, ...]
    """The faults that the policy answers in another way."""
    settings: tuple[SettingDifference, ...]
    """The settings of the policy that change."""
    replay: PolicyReplayReport | None
    """The recorded faults under both policies; null if the policy does not change."""


@fact
class WayOut:
    """A way out of service and back."""

    states: tuple[str, ...]
    """The states on the way."""
    nodes: int
    """How many nodes go this way."""
    hours: float
    """How many hours a node needs."""
    stages: tuple[StayEstimate, ...]
    """The stay in each state."""


@fact
class PlanSchedule:
    """How nodes leave service for the change."""

    waves: tuple[RolloutWave, ...]
    """The waves, in order."""
    hours: float
    """How many hours all waves take, one after the other."""
    node_hours: float
    """How many node-hours are spent out of service."""
    waiting: tuple[BlockedNodes, ...]
    """The nodes that no wave can take yet."""
    under_way: tuple[str, ...]
    """The nodes that are out of service or not yet in it: they take the change on their way."""
    left_alone: tuple[str, ...]
    """The nodes whose profile does not act on faults."""
    ways: list[WayOut]
    """The ways that nodes go."""


@fact
class PlanAnswer:
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
    refused: tuple[PlanRefusal, ...]
    """The limits of the policy that it would break; with any, the exit code is 1."""
    risks: tuple[PlanRisk, ...]
    """What deserves a second look."""
    nodes: InventoryDifference
    """The nodes that come, go or change."""
    firmware: tuple[FirmwareChange, ...]
    """The firmware that changes."""
    configuration: tuple[ConfigurationChange, ...]
    """The settings that change."""
    limits: tuple[LimitChange, ...]
    """The limits that change."""
    checks: PlannedChecks
    """The checks that must run again, and those that are gone."""
    recounts: tuple[CountingChange, ...]
    """The failures that begin or stop to count."""
    follows: tuple[DriftResponse, ...]
    """What the policy does with nodes that differ from their spec after the merge."""
    cables: tuple[CablingJob, ...]
    """The work on cables."""
    policy: PolicyDifference
    """What changes in the lifecycle policy."""
    faults: tuple[SettingDifference, ...]
    """The settings of fault catalogues that change."""
    profiles: tuple[SettingDifference, ...]
    """The settings of management profiles that change."""
    bundles: tuple[SettingDifference, ...]
    """The settings of firmware bundles that change."""
    fabrics: tuple[SettingDifference, ...]
    """The settings of fabric designs that change."""
    also_changed: tuple[OtherChange, ...]
    """What else changes."""
    schedule: PlanSchedule
    """The waves in which nodes leave service."""
    backtest: BacktestReport | None
    """What recorded history says about the change; null if there is none to ask, or nothing to ask it."""
    notes: tuple[str, ...]
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
    return sorted(named.union(*(change.pools for change in plan.other)))


def _list_named_nodes(plan: ChangePlan) -> Iterator[str]:
    yield from (node.name for node in plan.nodes.added)
    yield from (new.name for _, new in plan.nodes.renamed)
    for part in (plan.nodes.changed, plan.firmware, plan.configuration, plan.limits, plan.reruns, plan.cables):
        for change in part:
            yield from change.nodes


def format_plan_json(plan: ChangePlan) -> str:
    """Return the plan as one JSON document."""
    return json.dumps(to_json(make_plan_answer(plan)), indent=1, ensure_ascii=False)


def make_plan_answer(plan: ChangePlan) -> PlanAnswer:
    """Return all that a plan says."""
    work, nodes = plan.work, plan.nodes
    reruns = [
        PlannedRerun(rerun.nodes, rerun.phases, {stale.check: stale.because for stale in rerun.stale})
        for rerun in plan.reruns
    ]
    return PlanAnswer(
        base=plan.base,
        head=plan.head,
        digest=plan.content.digest,
        changes=plan.has_changes,
        pools=find_touched_pools(plan),
        refused=plan.refused,
        risks=plan.risks,
        nodes=InventoryDifference(
            [extend(AddedNode, _show_node(node), entry=describe_entry(node, plan.as_of)) for node in nodes.added],
            [_show_node(node) for node in nodes.removed],
            [RenamedNode(old.name, new.name) for old, new in nodes.renamed],
            nodes.changed,
        ),
        firmware=plan.firmware,
        configuration=plan.configuration,
        limits=plan.limits,
        checks=PlannedChecks(reruns, plan.checks_gone),
        recounts=plan.recounts,
        follows=plan.follows,
        cables=plan.cables,
        policy=PolicyDifference(plan.answers, plan.policy, plan.policy_replay),
        faults=plan.faults,
        profiles=plan.profiles,
        bundles=plan.bundles,
        fabrics=plan.fabrics,
        also_changed=plan.other,
        schedule=PlanSchedule(
            waves=work.schedule.waves,
            hours=work.schedule.hours,
            node_hours=work.schedule.node_hours,
            waiting=work.schedule.waiting,
            under_way=work.under_way,
            left_alone=work.left_alone,
            ways=[WayOut(way.route.states, way.nodes, way.hours, way.stages) for way in work.rollout_routes],
        ),
        backtest=plan.backtest,
        notes=plan.notes,
    )


def _show_node(node: Node) -> PlannedNode:
    return PlannedNode(node.name, node.pool, node.spec, node.rack, node.u, node.settings.lifecycle_start)
