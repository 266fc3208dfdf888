"""Leaves out the drift that a running rollout explains: such a node gets the change when its wave goes.

A merge changes what many nodes should have. Until the rollout reaches a node, its drift asks nobody for anything.
"""

from __future__ import annotations

from dataclasses import replace

from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.faults.fault_record import FaultRecord


def drop_explained_drift(snapshot: FleetSnapshot) -> FleetSnapshot:
    """Return the snapshot without the faults that a running rollout explains."""
    if not snapshot.rolling_nodes:
        return snapshot
    return replace(snapshot, nodes=tuple(_drop_drift_of_node(snapshot, view) for view in snapshot.nodes))


def is_drift_explained(snapshot: FleetSnapshot, view: NodeSnapshot, fault: FaultRecord) -> bool:
    """Whether a fault only says that a running rollout has not reached the node yet."""
    return view.name in snapshot.rolling_nodes and fault.fault_class in snapshot.policy.breaker.drift


def _drop_drift_of_node(snapshot: FleetSnapshot, view: NodeSnapshot) -> NodeSnapshot:
    faults = view.node_state.faults
    left = tuple(fault for fault in faults if not is_drift_explained(snapshot, view, fault))
    return view if len(left) == len(faults) else replace(view, node_state=replace(view.node_state, faults=left))
