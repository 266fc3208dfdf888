"""Which pools a plan touches: those are what a rehearsal has to go through."""

from __future__ import annotations

from collections.abc import Iterator

from assay.plan.plan import Plan


def pools(plan: Plan) -> list[str]:
    """Return the pools that hold a node which the plan names; all, where it changes what holds for every node."""
    there = {new.name: new.pool for _, new in plan.nodes.kept} | {node.name: node.pool for node in plan.nodes.added}
    if any((plan.answers, plan.policy, plan.faults, plan.profiles, plan.bundles, plan.fabrics, plan.checks_gone)):
        return sorted(set(there.values()))
    return sorted({there[name] for name in _named(plan) if name in there})


def _named(plan: Plan) -> Iterator[str]:
    yield from (node.name for node in plan.nodes.added)
    for part in (plan.nodes.changed, plan.firmware, plan.configuration, plan.limits, plan.reruns, plan.cables):
        for one in part:
            yield from one.nodes
