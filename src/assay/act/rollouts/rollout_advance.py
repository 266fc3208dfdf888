"""Takes the running rollout forward: reads what proves its nodes, decides its next step, and records that step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from assay.act.loop.fleet_snapshot_cache import FleetSnapshotCache
from assay.act.loop.rack_leases import WHOLE_FLEET, RackAssignment
from assay.decide.rollouts.decide_rollouts import decide_rollouts
from assay.decide.rollouts.node_progress import list_returned_nodes
from assay.decide.rollouts.rollout_history import Rollout, RolloutHistory
from assay.decide.rollouts.step_entries import make_rollout_entries
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.node_state import NodeState
from assay.declare.spec_values_read_by_checks import JudgingHashes
from assay.model.entries.rollout_entries import CommitAdoptedEntry
from assay.model.outcome import RecordedOutcome


def advance_rollout(fleet_state: FleetSnapshotCache, assignment: RackAssignment = WHOLE_FLEET) -> None:
    """Decide the next step of the active rollout, and append its entries.

    Nothing is done by a controller whose fleet is not at the adopted commit: it would judge by another spec.
    """
    context, history = fleet_state.context, fleet_state.rollouts.read()
    if history.find_active() is None or _find_adopted(history) != context.fleet.commit:
        return
    with assignment.hold_decision_lock():
        snapshot = fleet_state.build_states_snapshot()
        if rollout := fleet_state.rollouts.find_active():
            proven = add_proof(
                fleet_state.rollouts.read_outcomes, lambda: fleet_state.judging_hashes, snapshot, rollout
            )
            step = decide_rollouts(proven, rollout)
            context.ledger.append(*make_rollout_entries(rollout, step, snapshot.now))


def _find_adopted(history: RolloutHistory) -> str:
    return CommitAdoptedEntry.read(history.adopted).commit if history.adopted else ""


def add_proof(
    read_outcomes: Callable[[Collection[str]], Mapping[str, tuple[RecordedOutcome, ...]]],
    find_hashes: Callable[[], JudgingHashes],
    snapshot: FleetSnapshot,
    rollout: Rollout,
) -> FleetSnapshot:
    """Return the snapshot with the newest outcomes, and today's hashes, of the nodes that are back and not proven."""
    states: dict[str, NodeState] = {view.name: view.node_state for view in snapshot.nodes}
    returned = set(list_returned_nodes(snapshot.policy, rollout, states))
    if not returned:
        return snapshot
    latest, hashes = read_outcomes(returned), find_hashes()

    def prove(view: NodeSnapshot) -> NodeSnapshot:
        if view.name not in returned:
            return view
        return replace(view, latest=latest[view.name], judging_hashes=hashes.of_node(view.name))

    return replace(snapshot, nodes=tuple(prove(view) for view in snapshot.nodes))
