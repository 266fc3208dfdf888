"""The parts of a load that prove a node's repair: those of its state, and those that its open faults ask for (`proof`).

A fault is open until the node serves again, so every fault since then is proven before.
"""

from __future__ import annotations

from collections.abc import Iterator

from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.specs.check_catalog_and_gates import Phase
from assay.model.specs.load_parts import LoadPart
from assay.model.specs.policy_sections import PhaseRequirement

PROOF_FRESH_HOURS = 24.0
"""The greatest age of a proof where the state requires nothing else."""


def list_requirements(snapshot: FleetSnapshot, view: NodeSnapshot) -> list[PhaseRequirement]:
    """Return what a node must pass to leave its state: the state's requirements, with the proof of its faults.

    If the state loads the node, its load gets more parts. If it does not, and leads into service, such as a restart in
    production, it loads the node for the proof.
    """
    state = snapshot.policy_state_of(view)
    required = list(state.requires)
    proof = find_proof(snapshot, view)
    if not proof:
        return required
    if any(requirement.active for requirement in required):
        return [_add_parts(one, proof) if one.active else one for one in required]
    if state.in_service or not state.pass_to or not snapshot.policy.states[state.pass_to].in_service:
        return required
    hours = min([one.fresh_hours for one in required], default=PROOF_FRESH_HOURS)
    phases = dict.fromkeys(_find_phases(view, proof))
    return [
        *required,
        *(PhaseRequirement(phase=one, active=True, parts=list(proof), fresh_hours=hours) for one in phases),
    ]


def find_proof(snapshot: FleetSnapshot, view: NodeSnapshot) -> tuple[LoadPart, ...]:
    """Return the parts that the open faults of a node ask for."""
    faults = [fault for fault in view.node_state.faults if fault.is_open]
    return tuple(dict.fromkeys(part for fault in faults for part in snapshot.proofs.get(fault.fault_class, ())))


def _add_parts(requirement: PhaseRequirement, proof: tuple[LoadPart, ...]) -> PhaseRequirement:
    return requirement.model_copy(update={"parts": list(dict.fromkeys([*requirement.parts, *proof]))})


def _find_phases(view: NodeSnapshot, proof: tuple[LoadPart, ...]) -> Iterator[Phase]:
    """Yield the first phase of each check that judges a part of the proof."""
    for check, _ in view.declared:
        if not check.report_only and set(check.parts) & set(proof):
            yield check.phases[0]
