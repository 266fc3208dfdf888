"""Plans the cabling where the base has a fabric whose cables cannot be compiled: that must not block its repair."""

from __future__ import annotations

from dataclasses import replace

from assay.decide.plan.cable_moves_and_adapter_replacements import CablingJob
from assay.decide.plan.cabling_work_order import plan_cabling_jobs
from assay.decide.plan.fleet_revision import FleetRevision
from assay.fabric.design.design_compiler import compile_topology
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.fabric.fabric_design import FabricDesign


def plan_cables(before: FleetRevision, after: FleetRevision) -> tuple[FleetRevision, tuple[CablingJob, ...]]:
    """Return the base and the work. Each design of the base that cannot be compiled is as in the head, and named.

    Raises AssayError if a design of the head cannot be compiled.
    """
    try:
        return before, plan_cabling_jobs(before.fleet, after.fleet)
    except AssayError:
        mended = _mend_designs(before, after.fleet)
        if mended is before:
            raise
        return mended, plan_cabling_jobs(mended.fleet, after.fleet)


def _mend_designs(before: FleetRevision, head: Fleet) -> FleetRevision:
    """Return the base with the head's design, and if that is not enough its nodes, for each that is not compiled."""
    fleet, unread = before.fleet, list(before.unread)
    for name, design in before.fleet.designs.items():
        if why := _find_mistake(design, fleet):
            fleet = _take_design(fleet, head, name)
            unread.append((why.where or f"FabricDesign {name}", f"the cables of {name} cannot be compiled: {why.what}"))
    return replace(before, fleet=fleet, unread=tuple(unread)) if len(unread) > len(before.unread) else before


def _find_mistake(design: FabricDesign, fleet: Fleet) -> AssayError | None:
    try:
        compile_topology(design, fleet)
    except AssayError as error:
        return error
    return None


def _take_design(fleet: Fleet, head: Fleet, name: str) -> Fleet:
    theirs = head.designs.get(name)
    others = {known: design for known, design in fleet.designs.items() if known != name}
    if theirs is None:
        return replace(fleet, designs=others)
    taken = replace(fleet, designs={**others, name: theirs})
    if _find_mistake(theirs, taken):
        nodes = {node: head.nodes[node] for node in theirs.node_names() if node in head.nodes}
        return replace(taken, nodes={**fleet.nodes, **nodes})
    return taken
