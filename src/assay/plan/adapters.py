"""Adapters that are replaced: other GUIDs at the same rails, on the same cables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from assay.model.design import FabricDesign
from assay.model.fleet import Fleet, Node
from assay.plan import listed
from assay.plan.job import Job


def with_new_adapters(before: Fleet, after: Fleet) -> tuple[list[Job], Fleet]:
    """Return the replacements, and the fleet as it was before but with the new adapters in it.

    A GUID that is known at another place as well is no replacement but a move, which is left for the cables to tell.
    """
    touched = [node for name, node in after.nodes.items() if _differs(before, name, node)]
    if not touched:
        return [], before
    old, new = _guids(before), _guids(after)
    nodes, jobs = dict(before.nodes), []
    designs = {
        name: design
        for design in after.designs.values()
        for name in (*listed.nodes(design.cables), *design.node_names())
    }
    for node in touched:
        pairs = zip(before.nodes[node.name].hca_guids, node.hca_guids, strict=False)
        fresh = {rail: two for rail, two in enumerate(pairs) if two[0] not in new and two[1] not in old}
        nodes[node.name] = _refitted(before.nodes[node.name], fresh)
        if fresh and node.name in designs:
            jobs.append(_job(designs[node.name], after, node, fresh))
    return jobs, replace(before, nodes=nodes)


def _differs(before: Fleet, name: str, node: Node) -> bool:
    return name in before.nodes and before.nodes[name].hca_guids != node.hca_guids


def _guids(fleet: Fleet) -> set[str]:
    return {guid for node in fleet.nodes.values() for guid in node.hca_guids}


def _refitted(node: Node, fresh: dict[int, tuple[str, str]]) -> Node:
    guids = tuple(fresh[rail][1] if rail in fresh else guid for rail, guid in enumerate(node.hca_guids))
    return replace(node, hca_guids=guids)


def _job(design: FabricDesign, fleet: Fleet, node: Node, fresh: dict[int, tuple[str, str]]) -> Job:
    steps = (f"{node.name} ({node.rack} U{node.u}): replace", *_steps(design, fleet, node, fresh), "their cables stay")
    return Job(design.name, "device-changes", steps, (node.name,), (node.rack, node.u))


def _steps(design: FabricDesign, fleet: Fleet, node: Node, fresh: dict[int, tuple[str, str]]) -> Iterator[str]:
    names = {hca.rail: hca.name for hca in fleet.spec_of(node.name).hcas}
    for rail, (was, will) in fresh.items():
        label = design.hca_label.format(rail=rail)
        yield f"{names.get(rail, f'rail {rail}')}{f', port {label}' if label else ''}: {was} by {will}"
