"""Which nodes a decision need not see by name, since nothing can change about them before their next ledger entry.

Pure. A fleet snapshot only counts them, so that deciding costs as much as there is to decide, not as the fleet is big.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from assay.decide.moves.circuit_breaker import can_be_wave
from assay.decide.state.fleet_snapshot import PoolRack
from assay.decide.state.node_state import NodeState
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.node import Node
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import hours, parse_time


def find_dormancy_start(policy: LifecyclePolicy, node_state: NodeState) -> datetime | None:
    """Return from when on a snapshot may only count a node (`FleetSnapshot.quiet_counts`), None if it may not.

    The node is in service, in a state that time alone does not end. Nothing about it is open or outstanding, and its
    last faults and moves count towards no limit or breaker any more.
    """
    state = policy.states.get(node_state.state)
    if state is None or not state.in_service or state.requires or state.pass_to or state.deadline:
        return None
    if _has_open_business(node_state) or list_outstanding_effects(policy, node_state):
        return None
    breaker = policy.breaker
    counting = [one for one in node_state.faults if can_be_wave(breaker, one.fault_class, one.severity)]
    last_move = node_state.transitions[-1] if node_state.transitions else None
    settled = parse_time(last_move.at) + hours(1) if last_move else parse_time(node_state.since)
    arrivals = [parse_time(fault.arrived_at) for fault in node_state.faults]
    counted_until = [parse_time(fault.arrived_at) + hours(breaker.longest_hours) for fault in counting]
    corrected = [parse_time(one.at) + hours(1) for one in node_state.corrections[-1:]]
    return max([settled, *arrivals, *counted_until, *corrected])


def _has_open_business(node_state: NodeState) -> bool:
    """Whether a person's word, a decision, an effect or a fault about the node is still open."""
    decisions = {node_state.decision, node_state.withdrawn.by if node_state.withdrawn else ""}
    effects = [effect for effect in node_state.effects if effect.decision in decisions]
    return bool(
        node_state.pending
        or node_state.hold
        or node_state.move_request
        or node_state.certified
        or node_state.unsettled_effects
        or any(effect.standing == "failed" for effect in effects)
        or any(fault.is_open for fault in node_state.faults)
    )


class NodeRoster:
    """The enrolled nodes of one inventory, in its order, with how many are in each place."""

    def __init__(self, nodes: Mapping[str, Node], enrolled: Collection[str]) -> None:
        self.nodes = {name: node for name, node in nodes.items() if name in enrolled}
        self._order = {name: number for number, name in enumerate(self.nodes)}
        self._places = Counter(map(_find_place, self.nodes.values()))

    def select(self, names: Iterable[str]) -> list[Node]:
        """Return those of the nodes `names` that are enrolled, in the inventory's order."""
        enrolled = {name for name in names if name in self.nodes}
        return [self.nodes[name] for name in sorted(enrolled, key=self._order.__getitem__)]

    def count_others(self, nodes: Iterable[Node]) -> Counter[PoolRack]:
        """Return how many nodes besides these are in each place."""
        others = self._places.copy()
        for place, count in Counter(map(_find_place, nodes)).items():
            others[place] -= count
            if not others[place]:
                del others[place]
        return others


def _find_place(node: Node) -> PoolRack:
    return (node.pool, node.site, node.rack)
