"""What `assay plan` prints with `--format json`: the plan, with its nodes, its pools and its digest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from assay.decide.plan.change_plan import ChangePlan
from assay.decide.plan.inventory_changes import NodeChange
from assay.decide.plan.sections import find_all_pools
from assay.decide.state.node_entry import describe_entry
from assay.model.facts import fact, inline, to_json
from assay.model.node import Node


@fact
class PlannedNode:
    """A node that comes or goes."""

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
    entry: str
    """How a new node comes into service, in words; "" for one that goes."""


@fact
class InventoryDifference:
    """How the inventory differs."""

    added: list[PlannedNode]
    """The new nodes."""
    removed: list[PlannedNode]
    """The nodes that are gone."""
    renamed: Mapping[str, str]
    """The new name of each machine whose node has another name, by the old one."""
    changed: tuple[NodeChange, ...]
    """The fields that change, with their nodes."""


@fact
class PlanAnswer:
    """What merging a change would do to the fleet."""

    plan: ChangePlan = inline()
    digest: str
    """The digest of the part of the plan that the files alone decide."""
    changes: bool
    """Whether merging changes anything for the fleet."""
    pools: list[str]
    """The pools that it touches."""
    nodes: InventoryDifference
    """The nodes that come, go or change."""


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
    nodes = InventoryDifference(
        [_show_node(node, describe_entry(node, plan.as_of)) for node in plan.nodes.added],
        [_show_node(node) for node in plan.nodes.removed],
        {old.name: new.name for old, new in plan.nodes.renamed},
        plan.nodes.changed,
    )
    return PlanAnswer(plan, plan.content.digest, plan.has_changes, find_touched_pools(plan), nodes)


def _show_node(node: Node, entry: str = "") -> PlannedNode:
    return PlannedNode(node.name, node.pool, node.spec, node.rack, node.u, node.settings.lifecycle_start, entry)
