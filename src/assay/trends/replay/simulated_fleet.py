"""The nodes of a replay with their node_states: tells the snapshot at any moment, the quiet ones as a count.

One node of a replay's world: what is wrong with it, who uses it, and what its suites said last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from assay.lifecycle import decision_and_fault_entries
from assay.lifecycle.decisions.rack_cordons import find_rack_companions
from assay.lifecycle.faults.detection import FaultObservation, count_sightings, drop_secondary_sightings
from assay.lifecycle.faults.sightings import FaultSighting
from assay.lifecycle.faults.telemetry_silence import TELEMETRY_LOST
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot, PoolRack
from assay.lifecycle.node_state import FaultRecord, NodeState
from assay.lifecycle.node_state_projection import NodeStateProjection
from assay.model.ledger_entry import LedgerEntry
from assay.model.node import Node
from assay.model.outcome import CheckSubject, Outcome, RecordedOutcome
from assay.model.specs.check_catalog_and_gates import CheckDeclaration
from assay.model.specs.management_profile import ManagementProfile
from assay.model.timestamps import NEVER, format_time, parse_time
from assay.trends.replay.replay_nodes import ReplayNodes, ReplayRules

CUSTOMER_JOBS = ("customer work",)


@dataclass(slots=True)
class SimulatedNode:
    """`present`: the faults (class, part) that the history told of and has not cleared.

    `verifying`: which verification is under way, "" for none; `judged`: the stay in which one has ended; `stirred`:
    when a serious fault or a move came last. `settled`: faults of which another sighting would be no news; `again`:
    such sightings, which nobody has counted yet.
    """

    node: Node
    profile: ManagementProfile
    declared: tuple[tuple[CheckDeclaration, CheckSubject], ...]
    present_faults: dict[tuple[str, str], None] = field(default_factory=dict)
    in_use: bool = False
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
        """Whether something is wrong that a suite would see, or that lets none see anything."""
        return any(
            name == TELEMETRY_LOST or self._is_serious(node_state, name, part) for name, part in self.present_faults
        )

    def _is_serious(self, node_state: NodeState, name: str, part: str) -> bool:
        return any(known.severity != "informational" for known in _open(node_state, name, self.subject(part)))

    def clear(self, fault: str, part: str) -> list[str]:
        """Take a fault away, of all parts where none is named; return the subjects that had it."""
        gone = [(name, where) for name, where in self.present_faults if name == fault and part in ("", where)]
        for key in gone:
            del self.present_faults[key]
            self.latest.pop(_check_name(*key), None)
        return [self.subject(where) for _, where in gone]

    def passes(self, checks: Iterable[CheckDeclaration], at: datetime) -> None:
        """Let these checks pass on evidence of that time."""
        for check in checks:
            self._record(check.id, Outcome(check.id, self.node.subject, self.node.name, "pass"), check, at)

    @property
    def has_failures(self) -> bool:
        """Whether a look found again what is there."""
        return any(one.outcome.verdict == "fail" for one in self.latest.values())

    def still_fails(self, fault: str, part: str, at: datetime, since: datetime) -> bool:
        """Let a look find again what is there, if none has `since` then; return whether one did."""
        name = _check_name(fault, part)
        if name in self.latest and parse_time(self.latest[name].measured_at) > since:
            return False
        found = Outcome(name, self.subject(part), self.node.name, "fail", "still there", fault)
        self._record(name, found, None, at)
        return True

    def _record(self, key: str, outcome: Outcome, check: CheckDeclaration | None, at: datetime) -> None:
        said = format_time(at)
        whole = Outcome(
            outcome.check,
            outcome.subject,
            outcome.node,
            outcome.verdict,
            outcome.reason,
            outcome.fault,
            phases=tuple(check.phases) if check else (),
            active=check.active if check else False,
            evidence_at=said,
        )
        self.latest[key] = RecordedOutcome(f"replay {said[:19]}", said, whole)


def _open(node_state: NodeState, name: str, subject: str) -> Iterator[FaultRecord]:
    return (
        known for known in node_state.faults if known.is_open and (known.fault_class, known.subject) == (name, subject)
    )


def _check_name(fault: str, part: str) -> str:
    return f"a look at {fault} {part}".rstrip()


ONE_HOUR = timedelta(hours=1)


class SimulatedFleet:
    """Every node, by name. What is heard of one (an Entry, as in the ledger) is folded into its node_state at once."""

    def __init__(self, rules: ReplayRules, cast: ReplayNodes, at: datetime) -> None:
        self._rules = rules
        self.simulated_nodes = {node.name: _make_node(rules, node) for node in cast.nodes.values()}
        self._chronicle = NodeStateProjection()
        self._views: dict[str, NodeSnapshot] = {}
        self._active: dict[str, None] = dict.fromkeys(self.simulated_nodes)
        self._quiet: Counter[PoolRack] = Counter(
            {(pool, "", ""): count for pool, count in cast.unlisted_counts.items()}
        )
        self._memory = max(ONE_HOUR, timedelta(minutes=rules.policy.breaker.window_minutes))
        for actor in self.simulated_nodes.values():
            name, pool = actor.node.name, actor.node.pool
            self._chronicle.apply(
                [
                    decision_and_fault_entries.make_enrolled_entry(
                        name, pool, cast.starts.get(name, rules.policy.service_state), at
                    )
                ]
            )

    def apply(self, *entries: LedgerEntry) -> None:
        """Take in what happened."""
        self._chronicle.apply(entries)
        for entry in entries:
            self.invalidate(entry.node)

    def invalidate(self, name: str) -> None:
        """Note that a node's node_state or its far end changed: its use, or what its suites said."""
        self._views.pop(name, None)
        self.simulated_nodes[name].settled_faults.clear()

    def add_sighting(self, name: str, sighting: FaultSighting) -> list[FaultObservation]:
        """Take in one sighting; return what it adds. Echoes and what belongs to a repair add nothing.

        One that repeats a fault which was told in full is counted later, with others, before anybody looks.
        """
        actor = self.simulated_nodes[name]
        key = (sighting.fault_class, sighting.part)
        if key in actor.settled_faults:
            actor.uncounted_sightings.append(sighting)
            return []
        seen = self._count(name, [sighting])
        catalog = self._rules.catalog
        actor.settled_faults |= {
            key for one in seen if one.severity == catalog.find_treatment(one.fault_class).severity
        }
        return seen

    def _count(self, name: str, sightings: list[FaultSighting]) -> list[FaultObservation]:
        node, node_state, catalog = self.simulated_nodes[name].node, self.node_state(name), self._rules.catalog
        seen = count_sightings(
            catalog, node, node_state, drop_secondary_sightings(catalog, node, node_state, sightings)
        )
        self.apply(*(decision_and_fault_entries.make_fault_entry(one, parse_time(one.last_seen)) for one in seen))
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
        """Return a node's node_state so far."""
        return self.node_snapshot(name).node_state

    def fleet_snapshot(self, now: datetime, asked: Collection[str] = ()) -> FleetSnapshot:
        """Return the fleet at a moment; `asked` are in it by name, whether quiet or not."""
        self._activate(asked)
        still = [name for name in self._active if name not in asked and self._is_quiet(name, now)]
        needed = self.rack_companions(self._active.keys() - set(still))
        for name in still:
            if name not in needed:
                del self._active[name]
                self._quiet[_pool_rack(self.simulated_nodes[name].node)] += 1
        self._activate(needed)
        views = tuple(self.node_snapshot(name) for name in self._active)
        return FleetSnapshot(now, self._rules.policy, views, self._rules.lines, quiet_counts=self._quiet)

    def rack_companions(self, names: Collection[str]) -> set[str]:
        """Return the nodes that share a rack which is one machine with any of these."""
        nodes = (actor.node for actor in self.simulated_nodes.values())
        return find_rack_companions(self._rules.policy, nodes, (self.simulated_nodes[name].node for name in names))

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
            and now - actor.last_disturbed_at > self._memory
        )


def _pool_rack(node: Node) -> PoolRack:
    return (node.pool, node.site, node.rack)


def _make_node(rules: ReplayRules, node: Node) -> SimulatedNode:
    subject = CheckSubject(node.pool, node.name)
    declared = tuple((check, subject) for check in rules.checks.values())
    return SimulatedNode(node, rules.profiles[node.profile], declared)
