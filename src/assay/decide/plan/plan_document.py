"""A plan as JSON: everything, in one stable shape."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from assay.decide.plan.change_plan import ChangePlan
from assay.decide.plan.check_reruns import CheckRerun
from assay.decide.plan.grouped_spec_changes import ConfigurationChange, FirmwareChange, LimitChange
from assay.decide.plan.plan_sections import find_all_pools
from assay.decide.plan.rollout_nodes_and_limits import RolloutRoute
from assay.decide.state.node_entry import describe_entry
from assay.model.backtest_report import BacktestDifference, BacktestReport
from assay.model.node import Node

if TYPE_CHECKING:
    from assay.decide.plan.plan_answers import (
        BacktestFinding,
        InventoryDifference,
        PlanAnswer,
        PlanBacktest,
        PlannedConfiguration,
        PlannedFirmware,
        PlannedLimit,
        PlannedNode,
        PlannedRerun,
        PlanSchedule,
        WayOut,
    )


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
