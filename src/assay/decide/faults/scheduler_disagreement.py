"""Finds nodes whose scheduler does not keep them as their state asks, and that assay cannot bring in line. Pure.

What assay may close, it closes (decide/moves/cordons.py). A fault is what a person or a profile keeps open, and what
assay once closed and nothing asks for any more, as after a restore of the ledger. Nobody knows why it was closed, so
assay does not open it.
"""

from __future__ import annotations

from assay.decide.faults.detection import FaultObservation
from assay.decide.faults.recovery import make_clearance
from assay.decide.faults.telemetry_silence import make_telemetry_fault
from assay.decide.moves.cordons import must_be_closed, reads_as_open
from assay.decide.moves.corrections import find_open_correction
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.cordon_ownership import is_our_reason
from assay.model.entries.faults import FaultClearedEntry
from assay.model.faults.fault_record import SCHEDULER_FAULTS
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.lifecycle_policy import LifecyclePolicy

OPEN, CLOSED = SCHEDULER_FAULTS


def judge_cordons(
    snapshot: FleetSnapshot, catalog: FaultCatalog
) -> tuple[list[FaultObservation], list[tuple[str, FaultClearedEntry]]]:
    """Return the new faults, and by node the ends of those that are over. A node without a reading stays as it is."""
    faults, ends = list[FaultObservation](), list[tuple[str, FaultClearedEntry]]()
    for view in snapshot.nodes:
        if view.cordon is None:
            continue
        name, detail = _find_disagreement(snapshot.policy, view)
        known = [fault for fault in view.node_state.faults if fault.is_open and fault.fault_class in SCHEDULER_FAULTS]
        now_reads = f"its scheduler reads it as {view.cordon or 'open for jobs'}"
        ends += [(view.name, make_clearance(fault, now_reads)) for fault in known if fault.fault_class != name]
        if name and name not in {fault.fault_class for fault in known}:
            place = (view.node, "", "scheduler", snapshot.now, snapshot.now, detail, name)
            faults.append(make_telemetry_fault(catalog, *place))
    return faults, ends


def _find_disagreement(policy: LifecyclePolicy, view: NodeSnapshot) -> tuple[str, str]:
    """Return the class and the words of a disagreement that stays, "" twice if there is none."""
    state = view.node_state
    stopper = f"{state.hold.who} holds it: {state.hold.reason}" if state.hold else ""
    if not stopper and "cordon" not in view.profile.actions:
        stopper = f"the profile {view.profile.name} does not let assay cordon it"
    if stopper and reads_as_open(policy, view):
        return OPEN, f"no job may start in {state.state}, and its scheduler reads it as open for jobs: {stopper}"
    is_busy = state.hold or state.unsettled_effects or find_open_correction(state)
    if is_busy or must_be_closed(policy, state) or list_outstanding_effects(policy, state):
        return "", ""
    if not (policy.is_in_service(state.state) and is_our_reason(view.cordon or "")):
        return "", ""
    return CLOSED, f"{state.state} takes jobs, and a cordon that nothing asks for keeps it closed: {view.cordon}"
