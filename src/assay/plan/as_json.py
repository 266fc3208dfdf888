"""A plan for machines: everything, in one stable shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from assay.model.fleet import Node
from assay.plan.plan import Plan
from assay.plan.suites import Rerun
from assay.plan.touched import pools
from assay.plan.work import Way


def as_json(plan: Plan) -> str:
    """Return the plan as one JSON document."""
    return json.dumps(document(plan), indent=1, ensure_ascii=False)


def document(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain JSON data."""
    nodes = plan.nodes
    return {
        "base": plan.base,
        "head": plan.head,
        "changes": plan.changes,
        "pools": pools(plan),
        "refused": plain(plan.refused),
        "nodes": {name: plain(getattr(nodes, name)) for name in ("added", "removed", "changed")},
        "firmware": [{**plain(one.move), "nodes": list(one.nodes)} for one in plan.firmware],
        "configuration": [
            {**plain(one.setting), "nodes": list(one.nodes), "seen_by": list(one.seen_by)} for one in plan.configuration
        ],
        "limits": [
            {
                "spec": one.spec,
                **plain(one.threshold),
                "line": one.line,
                "nodes": list(one.nodes),
                "checks": list(one.checks),
            }
            for one in plan.limits
        ],
        "checks": {"again": [_rerun(one) for one in plan.reruns], "gone": list(plan.checks_gone)},
        "recounts": plain(plan.recounts),
        "follows": plain(plan.follows),
        "cables": [{name: value for name, value in plain(job).items() if name != "place"} for job in plan.cables],
        "policy": {"answers": plain(plan.answers), "settings": plain(plan.policy)},
        "faults": plain(plan.faults),
        "profiles": plain(plan.profiles),
        "bundles": plain(plan.bundles),
        "fabrics": plain(plan.fabrics),
        "schedule": _schedule(plan),
        "backtest": plain(plan.backtest),
        "notes": list(plan.notes),
    }


def plain(value: Any) -> Any:
    """Return plain JSON data. Nothing is copied that JSON takes as it is."""
    if isinstance(value, Node):
        return {
            "node": value.name,
            "pool": value.pool,
            "spec": value.spec,
            "rack": value.rack,
            "u": value.u,
            "start": value.variables.get("lifecycle_start", "onboard"),
        }
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value


def _rerun(one: Rerun) -> dict[str, Any]:
    phases = {phase: list(checks) for phase, checks in one.phases.items()}
    return {
        "nodes": list(one.nodes),
        "phases": phases,
        "because": {stale.check: list(stale.because) for stale in one.stale},
    }


def _schedule(plan: Plan) -> dict[str, Any]:
    work, schedule = plan.work, plan.work.schedule
    return {
        "waves": plain(schedule.waves),
        "hours": schedule.hours,
        "node_hours": schedule.node_hours,
        "waiting": plain(schedule.waiting),
        "under_way": list(work.under_way),
        "left_alone": list(work.left_alone),
        "ways": [_way(way) for way in work.ways],
    }


def _way(way: Way) -> dict[str, Any]:
    return {"states": list(way.route.states), "nodes": way.nodes, "hours": way.hours, "stages": plain(way.stages)}
