"""Whether the burn-in that a state asks for proves the node, and why not."""

from __future__ import annotations

from assay.decide.state.burn_in_record import BurnInRecord
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.decision import DecisionCause


def find_burn_in_of_stay(view: NodeSnapshot) -> BurnInRecord | None:
    """Return the burn-in of the node's present stay, None if none has begun."""
    record = view.node_state.burn_in
    return record if record and record.stay_id == view.node_state.stay_id else None


def describe_missing_burn_in(snapshot: FleetSnapshot, view: NodeSnapshot) -> str:
    """Return what the node's state still waits for, "" if its policy names no burn-in, or if it ended well."""
    if not snapshot.policy_state_of(view).burn_in:
        return ""
    record = find_burn_in_of_stay(view)
    if record is None:
        return "no burn-in has begun in this stay"
    return "" if record.outcome in ("done", "none") else record.describe()


def find_failed_burn_in(snapshot: FleetSnapshot, view: NodeSnapshot) -> BurnInRecord | None:
    """Return the burn-in of this stay if a verdict ended it, else None."""
    record = find_burn_in_of_stay(view)
    if record is None or record.outcome != "failed" or not snapshot.policy_state_of(view).burn_in:
        return None
    return record


def make_burn_in_cause(record: BurnInRecord) -> DecisionCause:
    """Return a burn-in that ended as a cause."""
    return DecisionCause("burn-in", record.id, record.describe())


def list_good_burn_in(view: NodeSnapshot) -> tuple[DecisionCause, ...]:
    """Return the burn-in of this stay as a cause, if it ended well."""
    record = find_burn_in_of_stay(view)
    return (make_burn_in_cause(record),) if record and record.outcome == "done" else ()
