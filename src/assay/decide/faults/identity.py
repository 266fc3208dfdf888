"""Tells when another machine answers for a node, and what that means: no pass, no effect, a fault. Pure.

A node's machine is the one with the declared serial number and, where passes lead into service, with the GPUs that the
ledger knows. Elsewhere people work, who may exchange GPUs; then all is proved anew. A machine that the inventory puts
in the place of one that served is a fault too: somebody should have taken that out first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from assay.decide.state.node_state import NodeState
from assay.model.decision import CLOSING_ACTIONS, PAPERWORK
from assay.model.evidence import IDENTITY_FAULT, EvidenceDocument, GpuIdentity, MachineIdentity, is_same_serial
from assay.model.faults.fault_record import FaultRecord
from assay.model.faults.sightings import FaultSighting
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import RecordedOutcome
from assay.model.timestamps import format_time

IDENTITY_SOURCE = "identity"
"""The source of a sighting in evidence. Its mark is `<time>|<who told of another machine>`."""
INVENTORY_SOURCE = "inventory"


def mark_stranger(fleet: Fleet, node_state: NodeState | None, evidence: EvidenceDocument) -> EvidenceDocument:
    """Return the evidence of a node, with how its machine differs from the node's."""
    gpus: tuple[GpuIdentity, ...] = ()
    if node_state and fleet.policy.leads_to_service(node_state.state):
        gpus = tuple(node_state.gpus.values())
    stranger = evidence.find_stranger(fleet.nodes[evidence.node].serial, gpus)
    return replace(evidence, stranger=stranger) if stranger else evidence


def find_identity_sightings(node: Node, node_state: NodeState, evidence: EvidenceDocument) -> Iterator[FaultSighting]:
    """Yield the sighting of another machine in evidence that is marked so."""
    if evidence.stranger:
        known = MachineIdentity({INVENTORY_SOURCE: node.serial}, tuple(node_state.gpus.values()))
        sources = MachineIdentity.of_channels(evidence.channels).list_contradictions(known)
        at = format_time(evidence.at)
        detail = f"another machine: {evidence.stranger}"
        yield FaultSighting(IDENTITY_FAULT, "", at, detail, IDENTITY_SOURCE, f"{at}|{' '.join(sources)}")


def make_replacement_sighting(former: NodeState, serial: str, at: str) -> FaultSighting:
    """Return the sighting that the inventory puts a machine in the place of one that nobody had taken out."""
    detail = (
        f"the inventory puts the machine {serial} in the place of {former.serial}, which was in {former.state}: no "
        "ticket or order had taken that out"
    )
    return FaultSighting(IDENTITY_FAULT, "", at, detail, INVENTORY_SOURCE, at)


def is_identity_fault(fault: FaultRecord) -> bool:
    """Whether a fault says that the node's machine is another one."""
    return fault.fault_class == IDENTITY_FAULT and "check" not in fault.marks


def find_identity_obstacle(node_state: NodeState, actions: Iterable[str]) -> str:
    """Return why actions may not begin, "" if they may: an order for the node may reach another machine.

    What closes the node goes through its scheduler, by its name.
    """
    if all(action in CLOSING_ACTIONS or action in PAPERWORK for action in actions):
        return ""
    open_faults = (fault for fault in node_state.faults if fault.is_open and IDENTITY_SOURCE in fault.marks)
    return next(
        (f"{fault.detail}: nothing is done to it" for fault in open_faults if not node_state.is_repaired(fault)), ""
    )


def find_return(fault: FaultRecord, evidence: EvidenceDocument) -> str:
    """Return what ends such a fault in evidence of the node's own machine: whoever told of another tells of it now."""
    at, _, sources = fault.marks[IDENTITY_SOURCE].partition("|")
    seen = MachineIdentity.of_channels(evidence.channels)
    is_told = {*sources.split()} <= {*seen.serials, *(["gpu"] if seen.gpus else [])}
    return f"the node's machine answers again: {seen.describe()}" if is_told and format_time(evidence.at) > at else ""


def select_own(node: Node, outcomes: Iterable[RecordedOutcome], node_state: NodeState | None) -> list[RecordedOutcome]:
    """Return the outcomes without those of another machine, or of an exchanged GPU: these are not the node's."""
    former_gpus = node_state.former_gpus if node_state else frozenset[str]()
    return [
        recorded
        for recorded in outcomes
        if (serial := recorded.outcome.basis.serial) in ("", node.serial) or is_same_serial(serial, node.serial)
        if not former_gpus or former_gpus.isdisjoint(recorded.outcome.basis.gpus.split())
    ]
