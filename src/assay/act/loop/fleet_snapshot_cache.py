"""Puts together what a decision reads: inventory, node states, newest outcomes, and the use of nodes.

It stays warm between passes: only new ledger entries are read, whoever appended them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from threading import Lock, RLock

from assay.act.loop.context import ControllerContext
from assay.act.loop.dormant_nodes import NodeRoster, find_dormancy_start
from assay.act.loop.fault_wave_traits import FaultWaveTraits
from assay.act.loop.node_state_and_outcome_cache import LatestOutcomeCache, LedgerSubscription, open_node_state_cache
from assay.act.loop.rollout_cache import RolloutCache
from assay.act.loop.settings_of_checks import SettingsOfChecks
from assay.act.loop.unknown_jobs import record_unknown_jobs
from assay.adapters.scheduler_adapter import SchedulerNodeStatus
from assay.adapters.status_readings import StatusReadings, group_by_scheduler
from assay.decide.moves.rack_cordons import find_rack_companions
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot, PoolRack
from assay.decide.state.node_state import NodeState
from assay.decide.state.node_state_projection import MACHINE_KINDS
from assay.decide.trust.same_machine import find_same_machines
from assay.declare.spec_values_read_by_checks import JudgingHashes
from assay.declare.stand_ins import find_refused_settings
from assay.fabric.compare.compare import FabricComparison
from assay.fabric.design.node_cables import digest_node_cables
from assay.fabric.scan import format_fabric_subject, judge_scan
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.node import Node
from assay.model.timestamps import NEVER
from assay.validate.runs.declared_outcomes import DeclaredOutcomes


class FleetSnapshotCache:
    """The node states of a ledger and what follows from them. Safe for threads; what it returns never changes."""

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self._lock = RLock()
        self._subscription: LedgerSubscription | None = None
        self._states: dict[str, NodeState] = {}
        self._roster: NodeRoster | None = None
        self._active_names: set[str] = set()
        self._active_as_of = NEVER
        self._new_entries: list[LedgerEntry] = []
        self._outcomes, self._declared = LatestOutcomeCache(context.ledger), DeclaredOutcomes(context.fleet)
        self._hashes: JudgingHashes | None = None
        self._settings_of_checks = SettingsOfChecks(context.fleet, lambda: self.judging_hashes)
        self._refused_zaps = find_refused_settings(context.fleet)
        self.fabric_comparisons, self.rollouts = FabricComparisonCache(), RolloutCache(context.ledger)

    def replace_context(self, context: ControllerContext) -> None:
        """Go on with another version of the fleet, on the same ledger."""
        with self._lock:
            self.context, self._declared = context, DeclaredOutcomes(context.fleet)
            self._roster, self._hashes = None, None
            self._settings_of_checks = SettingsOfChecks(context.fleet, lambda: self.judging_hashes)
            self._refused_zaps = find_refused_settings(context.fleet)

    def catch_up(self) -> None:
        """Read the ledger entries that are new."""
        with self._lock:
            if self._subscription is None:
                self._subscription = open_node_state_cache(self.context.ledger).subscribe()
                self._states = self._subscription.node_states
            entries = self._subscription.poll()
            self._new_entries += entries
            self._active_names |= {entry.node for entry in entries}
            if any(entry.kind in MACHINE_KINDS for entry in entries):
                self._roster = None

    def take_new_entries(self) -> list[LedgerEntry]:
        """Return the entries since the last call, in order. Entries from before the first read are not new."""
        with self._lock:
            self.catch_up()
            entries, self._new_entries = self._new_entries, []
            return entries

    @property
    def last_seq(self) -> int:
        """The number of the last entry that was read."""
        return self._subscription.seq if self._subscription else 0

    def node_states(self) -> dict[str, NodeState]:
        """Return the current state of every node that was ever enrolled."""
        with self._lock:
            self.catch_up()
            return dict(self._states)

    def list_active_states(self) -> list[NodeState]:
        """Return the states of the nodes about which there may be something to decide or to do."""
        with self._lock:
            self.catch_up()
            return [self._states[name] for name in self._find_active(self.context.clock.now())]

    def read_statuses(self, names: Iterable[str] = ()) -> StatusReadings:
        """Ask the schedulers about the active nodes and `names`; show what they did not answer as progress.

        This runs other programs and may take long. Hold no lock meanwhile.
        """
        with self._lock:
            self.catch_up()
            nodes = self._get_roster().select({*self._find_active(self.context.clock.now()), *names})
        return self._read_statuses(nodes, is_whole=True)

    def _read_statuses(self, nodes: Collection[Node], *, is_whole: bool = False) -> StatusReadings:
        readings = group_by_scheduler(nodes, self.context.workloads).read_statuses()
        for line in readings.describe_errors():
            self.context.progress(line)
        record_unknown_jobs(self.context.home, readings, self.context.now, is_whole=is_whole)
        return readings

    def build_snapshot(self, names: Iterable[str] = (), readings: StatusReadings | None = None) -> FleetSnapshot:
        """Return the fleet as it is known now: the active nodes and `names` by name, the others as a count.

        `readings` were read before; without them the schedulers are asked now. Nodes that the inventory no longer has
        are left out.
        """
        with self._lock:
            self.catch_up()
            now = self.context.clock.now()
            active, roster = self._find_active(now), self._get_roster()
            nodes = roster.select({*active, *names})
            states = {node.name: self._states[node.name] for node in nodes}
        latest = self._outcomes.get(states, keep=active)
        statuses = (readings or self._read_statuses(nodes)).statuses
        profile, declared = self.context.fleet.profile_of, self._declared.of_node
        views = tuple(
            NodeSnapshot(
                node,
                profile(node.name),
                states[node.name],
                declared(node.name),
                latest[node.name],
                tuple(map(str, status.jobs)) if status else None,
                _find_closing_cordon(status),
                status.foreign_cordon if status else "",
                self._hashes_of(states[node.name]),
            )
            for node, status in ((node, statuses.get(node.name)) for node in nodes)
        )
        return self._make_snapshot(now, views, roster.count_others(nodes))

    def build_states_snapshot(self) -> FleetSnapshot:
        """Return the fleet with every node by name, for readers of states only: without outcomes and jobs."""
        with self._lock:
            self.catch_up()
            profile, states = self.context.fleet.profile_of, self._states
            nodes = self._get_roster().nodes
            views = tuple(NodeSnapshot(node, profile(name), states[name], jobs=None) for name, node in nodes.items())
            return self._make_snapshot(self.context.clock.now(), views, Counter())

    def _hashes_of(self, node_state: NodeState) -> Mapping[str, str]:
        """Return what outcomes must have been judged by, for a node whose state requires some; else nothing."""
        state = self.context.policy.states.get(node_state.state)
        if state is None or not state.requires:
            return {}
        return self.judging_hashes.of_node(node_state.node)

    @property
    def judging_hashes(self) -> JudgingHashes:
        """What outcomes must have been judged by today, for any node."""
        with self._lock:
            self._hashes = self._hashes or JudgingHashes(self.context.fleet, digest_node_cables)
            return self._hashes

    def _make_snapshot(
        self, now: datetime, views: tuple[NodeSnapshot, ...], quiet_counts: Counter[PoolRack]
    ) -> FleetSnapshot:
        fleet, rollout = self.context.fleet, self.rollouts.find_active()
        return FleetSnapshot(
            now,
            self.context.policy,
            views,
            fleet.lines,
            fleet.known_issues,
            fleet.observed_checks,
            quiet_counts=quiet_counts,
            traits=FaultWaveTraits(self.context),
            running_rollouts=frozenset([rollout.id] if rollout and rollout.status == "running" else []),
            rolling_nodes=rollout.unproven if rollout else frozenset(),
            settings_of_checks=self._settings_of_checks,
            proofs=fleet.repair_proofs,
            trust=fleet.trust,
            same_machines=find_same_machines(self._states[name] for name in self._get_roster().nodes),
            refused_zaps=self._refused_zaps,
        )

    def _get_roster(self) -> NodeRoster:
        if self._roster is None:
            self._roster = NodeRoster(self.context.fleet.nodes, self._states)
            self._active_names = set(self._roster.nodes)
        return self._roster

    def _find_active(self, now: datetime) -> set[str]:
        """Return the nodes that decisions must see by name: those that are not dormant, and who shares their rack.

        A dormant node stays so until an entry about it comes, or the clock goes back.
        """
        nodes = self._get_roster().nodes
        self._active_names = set(nodes) if now < self._active_as_of else self._active_names & nodes.keys()
        self._active_as_of = now
        self._active_names = {name for name in self._active_names if not self._is_dormant(name, now)}
        active = [nodes[name] for name in self._active_names]
        return self._active_names | find_rack_companions(self.context.policy, nodes.values(), active)

    def _is_dormant(self, name: str, now: datetime) -> bool:
        since = find_dormancy_start(self.context.policy, self._states[name])
        return since is not None and since < now


def _find_closing_cordon(status: SchedulerNodeStatus | None) -> str | None:
    """Return what keeps jobs from a node until somebody lifts it, "" for nothing.

    None where the scheduler gave no answer, and where nothing places jobs anyway.
    """
    if status is None or not status.places_jobs:
        return None
    return status.cordon if status.is_closed else ""


@dataclass(frozen=True, slots=True)
class ScannedFabricComparison:
    """One comparison, and when its discovery was made (ISO 8601, UTC)."""

    comparison: FabricComparison
    scanned_at: str


class FabricComparisonCache:
    """How each fabric's last discovery compares with its design, until one of the two changes. Safe for threads."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self._cached: dict[str, tuple[float, ScannedFabricComparison]] = {}
        self._lock = Lock()

    def get_all(self, context: ControllerContext) -> dict[str, ScannedFabricComparison]:
        """Return the comparison of each fabric that has nodes. A fabric that was never scanned is left out."""
        with self._lock:
            if self._fleet is not context.fleet:
                self._fleet, self._cached = context.fleet, {}
            fabrics = {node.settings.fabric or "" for node in context.fleet.nodes.values()}
            for name in sorted(fabrics & context.fleet.designs.keys()):
                self._refresh(context, name)
            return {name: comparison for name, (_, comparison) in self._cached.items()}

    def _refresh(self, context: ControllerContext, name: str) -> None:
        design = context.fleet.designs[name]
        stored_at = context.evidence.stored_at(format_fabric_subject(design))
        if name in self._cached and self._cached[name][0] == stored_at:
            return
        if evidence := context.evidence.latest(format_fabric_subject(design)):
            comparison = judge_scan(context.fleet, design, evidence)
            self._cached[name] = (stored_at, ScannedFabricComparison(comparison, evidence.at.isoformat()))
