"""Puts together what a decision reads: inventory, node states, newest outcomes, and the use of nodes.

It stays warm between passes: only new ledger entries are read, whoever appended them. Nodes about which nothing can
change before their next ledger entry are dormant: they are only counted, so that deciding costs as much as there is to
decide, not as the fleet is big. What nodes of a fault wave have in common, and what each check reads, is read on
demand.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from threading import Lock, RLock

from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import LatestOutcomeCache, record_unknown_jobs
from assay.act.remedies.gpu_occupancy import add_processes
from assay.act.tickets.collective_link_tickets import read_suspect_tray
from assay.adapters.scheduler import SchedulerNodeStatus, StatusReadings, group_by_scheduler
from assay.decide.faults.identity import select_own
from assay.decide.moves.circuit_breaker import can_be_wave
from assay.decide.moves.cordons import find_rack_companions
from assay.decide.moves.hand_over import serves_another
from assay.decide.plan.setting_routes import list_settings_read
from assay.decide.rollouts.rollout_history import ROLLOUTS, RolloutHistory
from assay.decide.state.asset_history import project_node_setup
from assay.decide.state.fault_weeks import FaultWeeks
from assay.decide.state.fleet_snapshot import (
    COMMIT,
    SWITCH_TRAY,
    FleetSnapshot,
    NodeSnapshot,
    NodeTrait,
    NodeTraits,
    PoolRack,
)
from assay.decide.state.node_projection import MACHINE_KINDS, NODE_STATES
from assay.decide.state.node_state import NodeState
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.declare.spec_values_read_by_checks import JudgingHashes
from assay.declare.stand_ins import find_refused_settings
from assay.fabric.compare.compare import FabricComparison
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.compiler import compile_topology
from assay.fabric.design.node_cables import digest_node_cables
from assay.fabric.scan import compare_scan, format_fabric_subject, judge_scan
from assay.ledger.ledger_reader import EntryQueue, open_reader_of, read_projection
from assay.ledger.store import Ledger
from assay.model.entries.assets import SetupSeenEntry
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.node import Node
from assay.model.outcome import RecordedOutcome
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import NEVER, hours, parse_time
from assay.observe.evidence_store import EvidenceStore
from assay.validate.runs.subjects import DeclaredOutcomes

UNCOMMITTED = " and uncommitted changes"
"""Follows the commit of a run whose files differed from it."""


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
    counting = [fault for fault in node_state.faults if can_be_wave(breaker, fault.fault_class, fault.severity)]
    last_move = node_state.transitions[-1] if node_state.transitions else None
    settled = parse_time(last_move.at) + hours(1) if last_move else parse_time(node_state.since)
    arrivals = [parse_time(fault.arrived_at) for fault in node_state.faults]
    counted_until = [parse_time(fault.arrived_at) + hours(breaker.longest_hours) for fault in counting]
    corrected = [parse_time(correction.at) + hours(1) for correction in node_state.corrections[-1:]]
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
        or any(fault.is_open or fault.open_series for fault in node_state.faults)
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


class FaultWaveTraits(Mapping[str, NodeTraits]):
    """The traits of every node of the inventory, by name. Those of a node are read when they are looked up."""

    def __init__(self, fleet: Fleet, ledger: Ledger, evidence: EvidenceStore) -> None:
        self._fleet, self._ledger, self._evidence = fleet, ledger, evidence
        self._known = dict[str, NodeTraits]()

    def __getitem__(self, name: str) -> NodeTraits:
        if name not in self._known:
            self._known[name] = self._read(self._fleet.nodes[name])
        return self._known[name]

    def _read(self, node: Node) -> NodeTraits:
        name = node.name
        traits = {("rack", f"{node.site}/{node.rack}"), ("spec", node.spec), ("profile", node.profile)}
        topology = self._topologies.get(node.settings.fabric or "")
        for cable in topology.cables_of_node(name) if topology else ():
            traits |= {("leaf", end.device) for end in cable.ends if not end.node}
        if tray := self._suspect_trays.get(name):
            traits.add((SWITCH_TRAY, tray))
        traits.update(self._list_firmware(name))
        setup = project_node_setup(self._ledger.entries(name, [SetupSeenEntry.kind]))
        traits |= {("part", model) for model in setup.models.values()}
        traits |= {(kind, setup.versions[kind]) for kind in ("driver", "kernel") if kind in setup.versions}
        traits |= {("batch", setup.batch)} if setup.batch else set()
        latest = self._ledger.latest(name)
        newest = max(latest, key=lambda recorded: recorded.at, default=None)
        if newest and (commit := self._spec_commits.get(newest.run)):
            traits.add(("spec commit", commit))
        failed = (recorded for recorded in latest if recorded.outcome.verdict == "fail")
        traits |= {(COMMIT, commit) for recorded in failed if (commit := self.find_commit(recorded))}
        return frozenset(traits)

    def find_commit(self, failed: RecordedOutcome) -> str:
        """Return the commit since which a failed check asks something else than when it last passed, "" for none.

        Where files that were not committed ask it, they are named beside the commit, until a commit has them.
        """
        check, subject, judged_by = failed.outcome.check, failed.outcome.subject, failed.outcome.judged_by
        last = self._ledger.last_outcome(check, subject)
        if last is None or judged_by in ("", last.outcome.judged_by):
            return ""
        since = self._ledger.outcomes(node=failed.outcome.node, checks=[check], since=last.seen_at or last.at)
        runs = [each.run for each in since if (each.outcome.subject, each.outcome.judged_by) == (subject, judged_by)]
        asked = filter(None, map(self._spec_commits.get, runs or [failed.run]))
        return min(asked, key=lambda commit: commit.endswith(UNCOMMITTED), default="")

    def __iter__(self) -> Iterator[str]:
        return iter(self._fleet.nodes)

    def __len__(self) -> int:
        return len(self._fleet.nodes)

    def _list_firmware(self, name: str) -> Iterator[NodeTrait]:
        """Yield the versions that the BMC gave last; none from a damaged document, which its checks report."""
        try:
            evidence = self._evidence.latest(name)
        except AssayError:
            return
        tree = evidence.read("bmc", "firmware") if evidence else None
        for part in tree.value if tree and tree.kind == "value" and isinstance(tree.value, dict) else ():
            if evidence and (version := evidence.read("bmc", "firmware", part)).kind == "value":
                yield "firmware", f"{part} {version.value}"

    @cached_property
    def _spec_commits(self) -> dict[str, str]:
        marks = self._ledger.run_marks()
        return {run: f"{commit[:12]}{UNCOMMITTED if dirty else ''}" for _, run, _, commit, dirty in marks if commit}

    @cached_property
    def _suspect_trays(self) -> dict[str, str]:
        """The switch tray that is suspect in the rack of each node, where the rack's NVLinks tell it."""
        suspects = dict[str, str]()
        for design in self._fleet.designs.values():
            with contextlib.suppress(AssayError):  # damaged evidence, which its checks report
                tray, _ = read_suspect_tray(self._fleet, self._ledger, self._evidence, design)
                if design.nvlink and tray and tray not in self._fleet.nodes:
                    suspects |= dict.fromkeys(design.nvlink.node_names, tray)
        return suspects

    @cached_property
    def _topologies(self) -> dict[str, CompiledTopology]:
        """The topology of each design that compiles. `assay check` reports the others."""
        topologies: dict[str, CompiledTopology] = {}
        for name, design in self._fleet.designs.items():
            with contextlib.suppress(AssayError):
                topologies[name] = compile_topology(design, self._fleet)
        return topologies


class SettingsOfChecks(Mapping[str, frozenset[str]]):
    """The settings by check, as paths of `SETTING_ROLES`. The suites are read only when somebody asks.

    A check that also reads something else than settings is left out: nobody knows what differs if it fails.
    """

    def __init__(self, fleet: Fleet, hashes: Callable[[], JudgingHashes]) -> None:
        self._fleet, self._hashes = fleet, hashes

    @cached_property
    def _found(self) -> dict[str, frozenset[str]]:
        settings_by_check, reads = dict[str, frozenset[str]](), self._hashes().reads
        for catalog in self._fleet.check_catalogs.values():
            for check in catalog.checks:
                if settings := list_settings_read(check, reads.get(check.id)):
                    settings_by_check[check.id] = settings
        return settings_by_check

    def __getitem__(self, check: str) -> frozenset[str]:
        return self._found[check]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class FleetSnapshotCache:
    """The node states of a ledger and what follows from them. Safe for threads; what it returns never changes."""

    def __init__(self, context: ControllerContext) -> None:
        self.context = context
        self._lock = RLock()
        self._queue: EntryQueue | None = None
        self._states: Mapping[str, NodeState] = {}
        self._fault_weeks = FaultWeeks()
        self.last_seq = 0
        """The number of the last entry that was read."""
        self.is_clock_wrong = False
        """Whether the last look at BMCs found this machine's clock wrong: then nothing is decided or done."""
        self._roster: NodeRoster | None = None
        self._active_names: set[str] = set()
        self._active_as_of = NEVER
        self._new_entries: list[LedgerEntry] = []
        self._outcomes, self._declared = LatestOutcomeCache(context.ledger), DeclaredOutcomes(context.fleet)
        self._hashes: JudgingHashes | None = None
        self._settings_of_checks = SettingsOfChecks(context.fleet, lambda: self.judging_hashes)
        self._refused_zaps = find_refused_settings(context.fleet)
        self.fabric_comparisons = FabricComparisonCache()
        self._returned_outcomes = LatestOutcomeCache(context.ledger)

    def replace_context(self, context: ControllerContext) -> None:
        """Go on with another version of the fleet, on the same ledger."""
        with self._lock:
            self.context, self._declared = context, DeclaredOutcomes(context.fleet)
            self._roster, self._hashes = None, None
            self._settings_of_checks = SettingsOfChecks(context.fleet, lambda: self.judging_hashes)
            self._refused_zaps = find_refused_settings(context.fleet)

    @property
    def rollouts(self) -> RolloutHistory:
        """The rollouts as they are now."""
        return read_projection(self.context.ledger, ROLLOUTS)

    def read_returned_outcomes(self, names: Collection[str]) -> Mapping[str, tuple[RecordedOutcome, ...]]:
        """Return the newest outcomes of the nodes that came back in a rollout."""
        nodes, states, latest = self.context.fleet.nodes, self.node_states(), self._returned_outcomes.get(names, names)
        return {name: tuple(select_own(nodes[name], latest[name], states.get(name))) for name in nodes.keys() & latest}

    def catch_up(self) -> None:
        """Read the ledger entries that are new."""
        with self._lock:
            reader = open_reader_of(self.context.ledger)
            self._queue = self._queue or reader.follow()
            entries, projected, self.last_seq = reader.take(self._queue, NODE_STATES)
            self._states, self._fault_weeks = projected.node_states(), projected.fault_weeks
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

    def node_states(self) -> Mapping[str, NodeState]:
        """Return the current state of every node that was ever enrolled."""
        with self._lock:
            self.catch_up()
            return self._states

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

    def read_cordons(self, names: Collection[str]) -> StatusReadings:
        """Ask the schedulers about these nodes, also those that are dormant, and not the nodes themselves."""
        nodes = [node for name, node in self.context.fleet.nodes.items() if name in names]
        return group_by_scheduler(nodes, self.context.workloads).read_statuses()

    def _read_statuses(self, nodes: Collection[Node], *, is_whole: bool = False) -> StatusReadings:
        readings = add_processes(self.context, group_by_scheduler(nodes, self.context.workloads).read_statuses())
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
                tuple(select_own(node, latest[node.name], states[node.name])),
                *_describe_status(status),
                self._hashes_of(states[node.name]),
            )
            for node, status in ((node, statuses.get(node.name)) for node in nodes)
        )
        return self._make_snapshot(now, views, roster.count_others(nodes))

    def build_states_snapshot(self, readings: StatusReadings | None = None) -> FleetSnapshot:
        """Return the fleet with every node by name, for readers of states only: without outcomes.

        Jobs and cordons are those of the `readings`.
        """
        statuses = readings.statuses if readings else {}
        with self._lock:
            self.catch_up()
            profile, states = self.context.fleet.profile_of, self._states
            nodes = self._get_roster().nodes
            views = tuple(
                NodeSnapshot(node, profile(name), states[name], (), (), *_describe_status(statuses.get(name)))
                for name, node in nodes.items()
            )
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
        traits = FaultWaveTraits(fleet, self.context.ledger, self.context.evidence)
        return FleetSnapshot(
            now,
            self.context.policy,
            views,
            fleet.lines,
            fleet.known_issues,
            fleet.observed_checks,
            quiet_counts=quiet_counts,
            traits=traits,
            pools={name: node.pool for name, node in fleet.nodes.items()},
            running_rollouts=frozenset([rollout.id] if rollout and rollout.status == "running" else []),
            rolling_nodes=rollout.unproven if rollout else frozenset(),
            settings_of_checks=self._settings_of_checks,
            proofs=fleet.repair_proofs,
            relations=fleet.fault_relations,
            trust=fleet.trust,
            refused_zaps=self._refused_zaps,
            fault_weeks=self._fault_weeks,
            capacities=fleet.capacities,
            find_commit=traits.find_commit,
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
        for name in tuple(self._active_names):
            since = find_dormancy_start(self.context.policy, self._states[name])
            is_due = serves_another(self.context.policy, nodes[name], self._states[name])
            if since is not None and since < now and not is_due:
                self._active_names.remove(name)
        active = [nodes[name] for name in self._active_names]
        return self._active_names | find_rack_companions(self.context.policy, nodes.values(), active)


def _describe_status(status: SchedulerNodeStatus | None) -> tuple[tuple[str, ...] | None, str | None, str]:
    """Return the jobs of a node, what keeps jobs from it until somebody lifts it ("" for nothing), and others' cordon.

    The jobs are None where the scheduler gave no answer; the cordon also where nothing places jobs anyway.
    """
    if status is None:
        return None, None, ""
    cordon = (status.cordon if status.is_closed else "") if status.places_jobs else None
    return tuple(map(str, status.jobs)), cordon, status.foreign_cordon


@frozen
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
        comparisons = {design.name: self.get(context, design) for design in list_used_designs(context.fleet)}
        return {name: comparison for name, comparison in comparisons.items() if comparison}

    def get(
        self, context: ControllerContext, design: FabricDesign, topology: CompiledTopology | None = None
    ) -> ScannedFabricComparison | None:
        """Return the comparison of a fabric, None if it was never scanned. Whoever has its `topology` gives it."""
        subject = format_fabric_subject(design)
        with self._lock:
            if self._fleet is not context.fleet:
                self._fleet, self._cached = context.fleet, {}
            stored_at, known = context.evidence.stored_at(subject), self._cached.get(design.name)
            if (known is None or known[0] != stored_at) and (evidence := context.evidence.latest(subject)):
                fresh = compare_scan(topology, evidence) if topology else judge_scan(context.fleet, design, evidence)
                known = stored_at, ScannedFabricComparison(fresh, evidence.at.isoformat())
                self._cached[design.name] = known
            return known[1] if known else None


def list_used_designs(fleet: Fleet) -> list[FabricDesign]:
    """Return the designs of the fabrics that have nodes, by name."""
    names = {node.settings.fabric or "" for node in fleet.nodes.values()}
    return [fleet.designs[name] for name in sorted(names & fleet.designs.keys())]
