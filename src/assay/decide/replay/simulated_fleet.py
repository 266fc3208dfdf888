"""The nodes of a replay: present faults, use, cordons and last outcomes. Gives the snapshot at any moment.

Quiet nodes are only counted, so that a replay of a large fleet stays fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from assay.decide.faults.detection import FaultObservation, count_sightings, drop_secondary_sightings
from assay.decide.faults.telemetry_silence import TELEMETRY_LOST
from assay.decide.moves.cordons import find_rack_companions
from assay.decide.replay.exposure import NodeCondition, find_worst_severity
from assay.decide.replay.replay_nodes import ReplayNodes, ReplayRules
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot, PoolRack
from assay.decide.state.node_projection import NodeStateProjection
from assay.decide.state.node_state import NodeState
from assay.model.decision import DRAIN_ACTIONS
from assay.model.faults.fault_record import FaultRecord, FaultSeverity
from assay.model.faults.sightings import FaultSighting
from assay.model.ledger_entry import LedgerEntry
from assay.model.node import Node, list_capacities
from assay.model.outcome import CheckSubject, Outcome, RecordedOutcome
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.management_profile import ManagementProfile
from assay.model.specs.policy_sections import LifecycleState
from assay.model.timestamps import NEVER, format_time, parse_time

CUSTOMER_JOBS = ("customer work",)


@dataclass(slots=True)
class SimulatedNode:
    """`present_faults`: the faults (class, part) that the history reported and did not clear.

    `verifying`: the running verification, "" for none. `verified_stay_id`: the stay in which one has ended.
    `last_disturbed_at`: the time of the last serious fault or move. `settled_faults`: faults of which another sighting
    is no news. `uncounted_sightings`: such sightings that are not counted yet.
    """

    node: Node
    profile: ManagementProfile
    declared: tuple[tuple[CheckDeclaration, CheckSubject], ...]
    present_faults: dict[tuple[str, str], None] = field(default_factory=dict)
    in_use: bool = False
    is_cordoned: bool = False
    verifying: str = ""
    verified_stay_id: str = ""
    last_disturbed_at: datetime = NEVER
    latest: dict[str, RecordedOutcome] = field(default_factory=dict)
    settled_faults: set[tuple[str, str]] = field(default_factory=set)
    uncounted_sightings: list[FaultSighting] = field(default_factory=list)

    def make_snapshot(self, node_state: NodeState) -> NodeSnapshot:
        """Return what a decision may look at."""
        jobs = CUSTOMER_JOBS if self.in_use else ()
        return NodeSnapshot(self.node, self.profile, node_state, self.declared, tuple(self.latest.values()), jobs)

    def subject(self, part: str) -> str:
        """Return the subject of a part, "" being the node."""
        return f"{self.node.subject}/{part}".rstrip("/")

    def is_blocked(self, node_state: NodeState) -> bool:
        """Whether a fault is present that a suite would see, or that stops every suite."""
        return any(
            name == TELEMETRY_LOST
            or any(known.severity != "informational" for known in _open(node_state, name, self.subject(part)))
            for name, part in self.present_faults
        )

    def clear(self, fault: str, part: str) -> list[str]:
        """Clear a fault, on all parts if none is named; return the subjects that had it."""
        gone = [(name, where) for name, where in self.present_faults if name == fault and part in ("", where)]
        for key in gone:
            del self.present_faults[key]
            self.latest.pop(_check_name(*key), None)
        return [self.subject(where) for _, where in gone]

    def find_condition(self, node_state: NodeState, state: LifecycleState, catalog: FaultCatalog) -> NodeCondition:
        """Return how the node stands to customers. Faults count as the history shows them, whoever knows of them."""
        if not state.in_service:
            return NodeCondition("out")
        if self.is_cordoned and not self.in_use:
            return NodeCondition("cordoned_idle", is_cordoned=True)
        severity = find_worst_severity(
            {self._find_severity(node_state, catalog, *fault) for fault in self.present_faults}
        )
        return NodeCondition("serving", severity, self.is_cordoned)

    def _find_severity(self, node_state: NodeState, catalog: FaultCatalog, fault: str, part: str) -> FaultSeverity:
        """Return the severity of a present fault: what must be seen often has its own only once that is so."""
        known = catalog.find_class(fault)
        if known is None or known.count == 1:
            return catalog.find_treatment(fault).severity
        records = _open(node_state, fault, self.subject(part))
        return next((record.severity for record in records), "informational")

    def passes(self, checks: Iterable[CheckDeclaration], at: datetime) -> None:
        """Record that these checks pass on evidence of that time."""
        for check in checks:
            self._record(check.id, Outcome(check.id, self.node.subject, self.node.name, "pass"), check, at)

    @property
    def has_failures(self) -> bool:
        """Whether checks reported the present faults again."""
        return any(recorded.outcome.verdict == "fail" for recorded in self.latest.values())

    def still_fails(self, fault: str, part: str, at: datetime, since: datetime) -> bool:
        """Let checks report the present faults again, if none has done so `since` then; return whether one did."""
        name = _check_name(fault, part)
        if name in self.latest and parse_time(self.latest[name].measured_at) > since:
            return False
        failure = Outcome(name, self.subject(part), self.node.name, "fail", "still there", fault)
        self._record(name, failure, None, at)
        return True

    def _record(self, key: str, outcome: Outcome, check: CheckDeclaration | None, at: datetime) -> None:
        stamp = format_time(at)
        whole = Outcome(
            outcome.check,
            outcome.subject,
            outcome.node,
            outcome.verdict,
            outcome.reason,
            outcome.fault,
            phases=tuple(check.phases) if check else (),
            active=check.active if check else False,
            evidence_at=stamp,
        )
        self.latest[key] = RecordedOutcome(f"replay {stamp[:19]}", stamp, whole)


def _open(node_state: NodeState, name: str, subject: str) -> Iterator[FaultRecord]:
    return (
        known for known in node_state.faults if known.is_open and (known.fault_class, known.subject) == (name, subject)
    )


def _check_name(fault: str, part: str) -> str:
    return f"a look at {fault} {part}".rstrip()


ONE_HOUR = timedelta(hours=1)
CORDON_ACTIONS = {"cordon": True, "uncordon": False}


class SimulatedFleet:
    """Every node, by name. Each entry of a node (as in the ledger) changes its state at once."""

    def __init__(self, rules: ReplayRules, cast: ReplayNodes, at: datetime) -> None:
        self._rules = rules
        self.simulated_nodes = {}
        for node in cast.nodes.values():
            subject = CheckSubject(node.pool, node.name)
            declared = tuple((check, subject) for check in rules.checks.values())
            self.simulated_nodes[node.name] = SimulatedNode(node, rules.profiles[node.profile], declared)
        self._chronicle = NodeStateProjection()
        self._views: dict[str, NodeSnapshot] = {}
        self._active: dict[str, None] = dict.fromkeys(self.simulated_nodes)
        self._quiet: Counter[PoolRack] = Counter(
            {(pool, "", ""): count for pool, count in cast.unlisted_counts.items()}
        )
        self._pools = {name: node.pool for name, node in cast.nodes.items()}
        self._capacities = list_capacities(cast.nodes.values())
        self._racks = {name: frozenset({("rack", f"{n.site}/{n.rack}")}) for name, n in cast.nodes.items()}
        self._touched = set(self.simulated_nodes)
        self._memory = max(ONE_HOUR, timedelta(hours=rules.policy.breaker.longest_hours))
        for actor in self.simulated_nodes.values():
            name, pool = actor.node.name, actor.node.pool
            start = cast.starts.get(name, rules.policy.service_state)
            self._chronicle.apply(decision_and_fault_entries.make_enrolled_entry(name, pool, start, at))

    def apply(self, *entries: LedgerEntry) -> None:
        """Apply an entry."""
        for entry in entries:
            self._chronicle.apply(entry)
            self.invalidate(entry.node)

    def invalidate(self, name: str) -> None:
        """Record that the node changed: its state, its use, or the outcomes of its suites."""
        self._views.pop(name, None)
        self.touch(name)
        self.simulated_nodes[name].settled_faults.clear()

    def finish_action(self, name: str, action: str) -> None:
        """Let an action have its effect on the node's jobs and on its cordon."""
        actor = self.simulated_nodes[name]
        if action in DRAIN_ACTIONS:
            actor.in_use = False
        if action in CORDON_ACTIONS:
            actor.is_cordoned = CORDON_ACTIONS[action]

    def set_use(self, name: str, in_use: bool | None) -> bool:
        """Note whether customers use a node, None for as before; return whether that changes."""
        actor = self.simulated_nodes[name]
        if in_use in (None, actor.in_use):
            return False
        actor.in_use = not actor.in_use
        self.invalidate(name)
        return True

    def touch(self, name: str) -> None:
        """Note that something happened to a node."""
        self._touched.add(name)

    def take_touched(self) -> list[str]:
        """Return the nodes to which something happened since this was asked last, at first all."""
        touched, self._touched = sorted(self._touched), set()
        return touched

    def find_condition(self, name: str) -> NodeCondition:
        """Return how a node stands to customers now."""
        node_state = self.node_state(name)
        state = self._rules.policy.states[node_state.state]
        return self.simulated_nodes[name].find_condition(node_state, state, self._rules.catalog)

    def add_sighting(self, name: str, sighting: FaultSighting) -> list[FaultObservation]:
        """Add one sighting; return what it adds. Secondary faults, and those of a repair, add nothing.

        If a sighting repeats a known fault, it is counted later, together with others, before the next decision.
        """
        actor = self.simulated_nodes[name]
        key = (sighting.fault_class, sighting.part)
        if key in actor.settled_faults:
            actor.uncounted_sightings.append(sighting)
            return []
        seen = self._count(name, [sighting])
        catalog = self._rules.catalog
        actor.settled_faults |= {
            key for fault in seen if fault.severity == catalog.find_treatment(fault.fault_class).severity
        }
        return seen

    def _count(self, name: str, sightings: list[FaultSighting]) -> list[FaultObservation]:
        node = self.simulated_nodes[name].node
        node_state = self.node_state(name)
        catalog = self._rules.catalog
        counting = drop_secondary_sightings(catalog, node, node_state, sightings)
        most = self._rules.policy.intake.node.open_faults
        seen = count_sightings(catalog, node, node_state, counting, most)
        self.apply(*(decision_and_fault_entries.make_fault_entry(fault, parse_time(fault.last_seen)) for fault in seen))
        return seen

    def node_snapshot(self, name: str) -> NodeSnapshot:
        """Return what a decision may look at."""
        if self.simulated_nodes[name].uncounted_sightings:
            self._count_deferred(name)
        if name not in self._views:
            node_state = self._chronicle.node_state(name)
            assert node_state is not None, "every node was enrolled"
            self._views[name] = self.simulated_nodes[name].make_snapshot(node_state)
        return self._views[name]

    def _count_deferred(self, name: str) -> None:
        actor = self.simulated_nodes[name]
        waiting, actor.uncounted_sightings = actor.uncounted_sightings, []
        settled = set(actor.settled_faults)
        self._count(name, waiting)
        actor.settled_faults |= settled

    def node_state(self, name: str) -> NodeState:
        """Return a node's state up to now."""
        return self.node_snapshot(name).node_state

    def fleet_snapshot(self, now: datetime, asked: Collection[str] = ()) -> FleetSnapshot:
        """Return the fleet at a moment; the nodes `asked` are in it by name, even if they are quiet."""
        self._activate(asked)
        still = [name for name in self._active if name not in asked and self._is_quiet(name, now)]
        needed = self.rack_companions(self._active.keys() - set(still))
        for name in still:
            if name not in needed:
                del self._active[name]
                self._quiet[_pool_rack(self.simulated_nodes[name].node)] += 1
        self._activate(needed)
        views = tuple(self.node_snapshot(name) for name in self._active)
        rules = self._rules
        bare = FleetSnapshot(now, rules.policy, views, rules.lines, quiet_counts=self._quiet)
        bare = replace(bare, relations=rules.catalog.fault_relations, fault_weeks=self._chronicle.fault_weeks)
        return replace(bare, traits=self._racks, pools=self._pools, capacities=self._capacities)

    def rack_companions(self, names: Collection[str]) -> set[str]:
        """Return all nodes in the racks of these nodes, for racks that are one machine."""
        nodes = (actor.node for actor in self.simulated_nodes.values())
        return find_rack_companions(self._rules.policy, nodes, (self.simulated_nodes[name].node for name in names))

    def spares_beside(self, names: Collection[str]) -> set[str]:
        """Return the spares in the pools of these nodes: one of them may be asked for."""
        pools = {self._pools[name] for name in names} & self._capacities.keys()
        known = (name for name in self._active if self._pools[name] in pools)
        return {name for name in known if self.node_state(name).state == self._rules.policy.spare_state}

    def _activate(self, names: Collection[str]) -> None:
        for name in sorted(set(names) - self._active.keys()):
            self._active[name] = None
            self._quiet[_pool_rack(self.simulated_nodes[name].node)] -= 1

    def _is_quiet(self, name: str, now: datetime) -> bool:
        node_state, actor = self.node_snapshot(name).node_state, self.simulated_nodes[name]
        serves = self._rules.policy.states[node_state.state].in_service
        return (
            serves
            and node_state.pending is None
            and not actor.has_failures
            and not node_state.open_series
            and now - actor.last_disturbed_at > self._memory
        )


def _pool_rack(node: Node) -> PoolRack:
    return (node.pool, node.site, node.rack)
