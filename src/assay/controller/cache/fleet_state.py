"""What a controller knows of its fleet, kept warm: only what is new in the ledger is read, whoever wrote it.

How each fabric's last discovery compares with its design; compared again only when one of the two changed.

From when on there is nothing to decide about a node, as long as nothing new is heard of it. Pure.

The enrolled nodes of an inventory, in its order, and how many stand in each place.

Puts together everything that a decision may look at: inventory, history, outcomes, and who uses which node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock, RLock

from assay.controller.cache.fault_wave_traits import FaultWaveTraits
from assay.controller.cache.ledger_cache import LatestOutcomeCache, LedgerSubscription, open_node_state_cache
from assay.controller.context import ControllerContext
from assay.controller.scheduler_status import describe_cordon, list_job_names, read_scheduler_statuses
from assay.fabric.comparison.compare import FabricComparison
from assay.fabric.scan import format_fabric_subject, judge_scan
from assay.harness.selection.declared_checks import DeclaredOutcomes
from assay.lifecycle.decisions.rack_cordons import find_rack_companions
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot, PoolRack
from assay.lifecycle.node_state import NodeState
from assay.lifecycle.outstanding_effects import list_outstanding_effects
from assay.model.fleet import Fleet, Node
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.lifecycle_policy import LifecyclePolicy, LifecycleState
from assay.model.timestamps import NEVER, hours, parse_time


@dataclass(frozen=True, slots=True)
class ScannedFabricComparison:
    """One comparison, and when the discovery was made (ISO 8601 UTC)."""

    comparison: FabricComparison
    scanned_at: str


class FabricComparisonCache:
    """The comparisons of a fleet's fabrics. For any thread."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self._cached: dict[str, tuple[float, ScannedFabricComparison]] = {}
        self._lock = Lock()

    def get_all(self, desk: ControllerContext) -> dict[str, ScannedFabricComparison]:
        """Return each fabric's that nodes are cabled to; one that was never scanned is left out."""
        with self._lock:
            if self._fleet is not desk.fleet:
                self._fleet, self._cached = desk.fleet, {}
            wanted = {str(node.variables.get("fabric") or "") for node in desk.fleet.nodes.values()}
            for name in sorted(wanted & desk.fleet.designs.keys()):
                self._refresh(desk, name)
            return {name: cabling for name, (_, cabling) in self._cached.items()}

    def _refresh(self, desk: ControllerContext, name: str) -> None:
        design = desk.fleet.designs[name]
        kept_at = desk.evidence.stored_at(format_fabric_subject(design))
        if name in self._cached and self._cached[name][0] == kept_at:
            return
        if evidence := desk.evidence.latest(format_fabric_subject(design)):
            cabling = ScannedFabricComparison(judge_scan(desk.fleet, design, evidence), evidence.at.isoformat())
            self._cached[name] = (kept_at, cabling)


def find_dormancy_start(policy: LifecyclePolicy, story: NodeState) -> datetime | None:
    """Return from when on a node may come to `decide` as a count (see `Situation.quiet`); None: it must come itself.

    It serves in a state that time alone does not end, nothing waits, is open or owed, and what it did last no longer
    counts towards any limit or breaker.
    """
    state = policy.states.get(story.state)
    if (
        state is None
        or not _is_resting_state(state)
        or _has_open_business(story)
        or list_outstanding_effects(policy, story)
    ):
        return None
    window = timedelta(minutes=policy.breaker.window_minutes)
    moved = parse_time(story.transitions[-1].at) + hours(1) if story.transitions else parse_time(story.since)
    return max([moved, *(parse_time(known.first_seen) + window for known in story.faults)])


def _is_resting_state(state: LifecycleState) -> bool:
    return state.in_service and not (state.requires or state.pass_to or state.deadline)


def _has_open_business(story: NodeState) -> bool:
    """Whether something about the node is not over: a word, a decision, an effect that did not end well, a fault."""
    asked_by = {story.decision, story.withdrawn.by if story.withdrawn else ""}
    here = [effect for effect in story.effects if effect.decision in asked_by]
    return bool(
        story.pending
        or story.hold
        or story.move_request
        or story.certified
        or story.unsettled_effects
        or any(effect.standing == "failed" for effect in here)
        or any(known.is_open for known in story.faults)
    )


class NodeRoster:
    """Made once for a reading of the inventory; some of its nodes are found without going through all."""

    def __init__(self, nodes: Mapping[str, Node], enrolled: Collection[str]) -> None:
        self.nodes = {name: node for name, node in nodes.items() if name in enrolled}
        self._turn = {name: turn for turn, name in enumerate(self.nodes)}
        self._places = Counter(map(_place_of, self.nodes.values()))

    def select(self, names: Iterable[str]) -> list[Node]:
        """Return those of these nodes that are here, in the inventory's order."""
        here = {name for name in names if name in self.nodes}
        return [self.nodes[name] for name in sorted(here, key=self._turn.__getitem__)]

    def count_others(self, nodes: Iterable[Node]) -> Counter[PoolRack]:
        """Return how many others stand in each place."""
        left = self._places.copy()
        for place, count in Counter(map(_place_of, nodes)).items():
            left[place] -= count
            if not left[place]:
                del left[place]
        return left


def _place_of(node: Node) -> PoolRack:
    return (node.pool, node.site, node.rack)


class FleetStateCache:
    """The stories of a ledger and what follows from them. For any thread; what it returns stays as it is."""

    def __init__(self, desk: ControllerContext) -> None:
        self.context = desk
        self._lock = RLock()
        self._subscription: LedgerSubscription | None = None
        self._states: dict[str, NodeState] = {}
        self._roster: NodeRoster | None = None
        self._active_names: set[str] = set()
        self._as_of = NEVER
        self._new_entries: list[LedgerEntry] = []
        self._newest, self._declared = LatestOutcomeCache(desk.ledger), DeclaredOutcomes(desk.fleet)
        self.fabric_comparisons = FabricComparisonCache()

    def replace_context(self, desk: ControllerContext) -> None:
        """Go on with another reading of the fleet's specs, on the same ledger."""
        with self._lock:
            self.context, self._declared = desk, DeclaredOutcomes(desk.fleet)
            self._roster = None

    def catch_up(self) -> None:
        """Hear what the ledger has that was not heard yet."""
        with self._lock:
            if self._subscription is None:
                self._subscription = open_node_state_cache(self.context.ledger).subscribe()
                self._states = self._subscription.stories
            before, news = len(self._states), self._subscription.poll()
            self._new_entries += news
            self._active_names |= {entry.node for entry in news}
            self._roster = self._roster if len(self._states) == before else None

    def take_new_entries(self) -> list[LedgerEntry]:
        """Return what was heard since this was asked last, in order; what was there at the beginning is no news."""
        with self._lock:
            self.catch_up()
            news, self._new_entries = self._new_entries, []
            return news

    @property
    def last_seq(self) -> int:
        """The number of the last entry that was heard."""
        return self._subscription.seq if self._subscription else 0

    def node_states(self) -> dict[str, NodeState]:
        """Return the story of every node that was ever enrolled, up to now."""
        with self._lock:
            self.catch_up()
            return dict(self._states)

    def build_snapshot(self, names: Collection[str] = ()) -> FleetSnapshot:
        """Return the fleet as it is known now: by name whoever there may be something to decide about, and `names`.

        The rest comes as a count. Nodes that the inventory no longer has are left out.
        """
        with self._lock:
            self.catch_up()
            now = self.context.clock.now()
            awake, roster = self._find_active(now), self._get_roster()
            chosen = roster.select({*awake, *names})
            told = {node.name: self._states[node.name] for node in chosen}
        latest = self._newest.get(told, keep=awake)
        stands = read_scheduler_statuses(chosen, self.context.workloads, self.context.progress)
        profile, declared = self.context.fleet.profile_of, self._declared.of_node
        views = tuple(
            NodeSnapshot(
                node, profile(name), told[name], declared(name), latest[name], list_job_names(one), describe_cordon(one)
            )
            for name, node, one in ((node.name, node, stands.get(node.name)) for node in chosen)
        )
        return self._make_snapshot(now, views, roster.count_others(chosen))

    def list_active_states(self) -> list[NodeState]:
        """Return the stories of the nodes about which there may be something to decide or to do."""
        with self._lock:
            self.catch_up()
            return [self._states[name] for name in self._find_active(self.context.clock.now())]

    def build_states_snapshot(self) -> FleetSnapshot:
        """Return the fleet with every node in it, for those who look at stories only: no outcomes, no jobs."""
        with self._lock:
            self.catch_up()
            profile, stories = self.context.fleet.profile_of, self._states
            nodes = self._get_roster().nodes
            views = tuple(NodeSnapshot(node, profile(name), stories[name], jobs=None) for name, node in nodes.items())
            return self._make_snapshot(self.context.clock.now(), views, Counter())

    def _make_snapshot(self, now: datetime, views: tuple[NodeSnapshot, ...], quiet: Counter[PoolRack]) -> FleetSnapshot:
        fleet = self.context.fleet
        return FleetSnapshot(
            now,
            self.context.policy,
            views,
            fleet.lines,
            fleet.known_issues,
            fleet.observed_checks,
            quiet_counts=quiet,
            traits=FaultWaveTraits(self.context),
        )

    def _get_roster(self) -> NodeRoster:
        if self._roster is None:
            self._roster = NodeRoster(self.context.fleet.nodes, self._states)
            self._active_names = set(self._roster.nodes)
        return self._roster

    def _find_active(self, now: datetime) -> set[str]:
        """Return the nodes that must come to `decide` by name: those that do not rest, and who shares their rack.

        Who rests goes on to, until something is heard of it, or the clock is put back.
        """
        nodes = self._get_roster().nodes
        self._active_names = set(nodes) if now < self._as_of else self._active_names & nodes.keys()
        self._as_of = now
        self._active_names = {name for name in self._active_names if not self._is_dormant(name, now)}
        stirred = [nodes[name] for name in self._active_names]
        return self._active_names | find_rack_companions(self.context.policy, nodes.values(), stirred)

    def _is_dormant(self, name: str, now: datetime) -> bool:
        since = find_dormancy_start(self.context.policy, self._states[name])
        return since is not None and since < now


def build_full_snapshot(desk: ControllerContext) -> FleetSnapshot:
    """Return the fleet as it is known now, every node by name. Nodes that the inventory no longer has are left out."""
    return FleetStateCache(desk).build_snapshot(desk.fleet.nodes)
