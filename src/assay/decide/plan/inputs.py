"""What a plan reads: a revision of the repository, the present state of the fleet, and what it assumes else.

The caller passes all of it, so planning reads nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from assay.decide.moves.blast_radius_limits import is_ordered_out, is_out_of_service
from assay.decide.state.node_entry import find_start_state
from assay.decide.state.node_state import NodeState
from assay.declare.declared_hosts import HostDeclaration
from assay.declare.spec_values_read_by_checks import CheckInputs
from assay.model.decision import ACTIONS
from assay.model.errors import AssayError
from assay.model.facts import fact, frozen
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.fault_catalog import FaultCatalog, select_active_catalogs
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.schedules import HistoryBound
from assay.model.text.lists import format_count, format_list, format_nodes


@dataclass(frozen=True)
class FleetRevision:
    """A fleet and what its suites read. `name` is the revision's name for people: `main`, or `the working tree`.

    `files`: the other files that assay acts by (see acting_files). `hosts`: where the inventory declares each node.
    `unread`: `file:line` and reason of each part that cannot be read and was taken from the other revision.
    """

    fleet: Fleet
    reads: Mapping[str, CheckInputs] = field(default_factory=dict)
    name: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    hosts: Mapping[str, HostDeclaration] = field(default_factory=dict)
    unread: tuple[tuple[str, str], ...] = ()

    @cached_property
    def pools(self) -> tuple[str, ...]:
        """Every pool, sorted."""
        return tuple(sorted({node.pool for node in self.fleet.nodes.values()}))

    @cached_property
    def policy(self) -> LifecyclePolicy:
        """The lifecycle policy. Raises AssayError unless there is exactly one."""
        try:
            return self.fleet.policy
        except AssayError as error:
            raise AssayError(f"{self.name or 'this revision'}: {error.what}", where="specs/lifecycle") from None

    @cached_property
    def catalog(self) -> FaultCatalog:
        """The fault catalogues together. Raises AssayError if there is none."""
        return self.fleet.fault_catalog

    @cached_property
    def checks(self) -> dict[str, CheckDeclaration]:
        """Every declared check by its id."""
        return {check.id: check for catalogue in self.fleet.check_catalogs.values() for check in catalogue.checks}

    def policy_line(self, path: str) -> str:
        """Return `file:line` of a part of the policy, or of its nearest parent."""
        return find_spec_line(self.fleet, f"LifecyclePolicy/{self.policy.name}", path)

    def catalog_line(self, path: str) -> str:
        """Return `file:line` of a part of the fault catalogues, in the catalogue that has it."""
        documents = [
            f"FaultCatalog/{catalog.name}" for catalog in select_active_catalogs(self.fleet.fault_catalogs.values())
        ]
        nearest = max(documents, key=lambda document: len(_nearest_path(self.fleet, document, path)))
        return find_spec_line(self.fleet, nearest, path)


def check_references(declared: FleetRevision) -> None:
    """Raise AssayError if a node names a spec, a profile or a bundle that the revision does not have."""
    fleet = declared.fleet
    for node in {(node.spec, node.profile): node for node in fleet.nodes.values()}.values():
        spec = fleet.node_specs.get(node.spec)
        _check_reference(declared, node.name, "NodeSpec", node.spec, spec is not None)
        _check_reference(declared, node.name, "ManagementProfile", node.profile, node.profile in fleet.profiles)
        if spec and spec.firmware:
            _check_reference(declared, spec.name, "FirmwareBundle", spec.firmware, spec.firmware in fleet.bundles)


def _check_reference(declared: FleetRevision, who: str, kind: str, name: str, there: bool) -> None:
    if not there:
        fix = "`assay check` on that revision says where; a plan needs two revisions without mistakes"
        raise AssayError(f"{declared.name}: {who} names the {kind} {name}, which does not exist", fix=fix)


def find_spec_line(fleet: Fleet, document: str, path: str) -> str:
    """Return `file:line` of a value of a spec; if it has none, of the nearest parent, or the document's name."""
    return fleet.lines.get((document, _nearest_path(fleet, document, path)), document)


def _nearest_path(fleet: Fleet, document: str, path: str) -> str:
    """Return the path, or the nearest parent of it that a document has."""
    while path and (document, path) not in fleet.lines:
        path = path.rpartition(".")[0]
    return path


@fact
class AssumedHours:
    """How long something takes."""

    hours: float
    """In hours."""
    source: str
    """Where the number comes from."""

    @property
    def as_timedelta(self) -> timedelta:
        """The span as a time."""
        return timedelta(hours=self.hours)


ACTION_HOURS: Mapping[str, AssumedHours] = {
    name: AssumedHours(facts.hours, facts.source) for name, facts in ACTIONS.items()
}
PERSON_HOURS = AssumedHours(1, "our own choice: a person looks and certifies within the hour")
SUITE_HOURS = AssumedHours(0.5, "our own choice: the suites of a phase, burn-in tools included, where there is no soak")


@frozen
class CountingChange:
    """One check or known issue (`what`), the reason, and the nodes on which its last outcomes fail.

    `counts`: these failures decide from the merge on; otherwise they stop deciding.
    """

    what: str
    why: str
    """The reason."""
    counts: bool
    nodes: tuple[str, ...]
    """The nodes on which its last outcomes fail."""


@frozen
class MedianDuration:
    """The median of some recorded durations."""

    hours: float
    """In hours."""
    count: int
    """How many were recorded."""


@frozen
class BacktestDifference:
    """A node that both revisions would have treated differently."""

    node: str
    """The name of the node."""
    acts: bool
    """Whether the new revision moves the node and the old one does not; false means the reverse."""
    still: bool
    """Whether the newest evidence says the same, so that merging acts at once."""
    because: str
    """The reason."""
    then: str
    """What the old revision says."""
    now: str
    """What the new revision says."""
    last_seen: str
    """When it was seen last: ISO 8601."""
    times: int = 1
    """How often it happened."""


@frozen
class BacktestReport:
    """What recorded history says about the change."""

    days: float
    """How many days of history were compared."""
    measurements: int = 0
    """How many measurements have a changed limit."""
    faults: int = 0
    """How many faults were compared."""
    unmapped: int = 0
    """How many measurements have a limit that could not be found."""
    found: tuple[BacktestDifference, ...] = ()
    """The nodes that both revisions would have treated differently."""


@fact
class JudgedOtherwise:
    """A fault that one of two versions sees in the stored history and the other does not."""

    fault: str
    """Its class."""
    nodes: tuple[str, ...]
    """The nodes that have it."""
    healthy: tuple[str, ...]
    """Those of them that passed their checks later, with no repair in between."""
    detail: str
    """What was read, on one of them."""


@fact
class HistoryReport:
    """What the new version would have done otherwise with the stored evidence and what the ledger recorded."""

    days: float
    """How far back it looked."""
    documents: int
    """How many documents of evidence both versions read."""
    outcomes: int
    """How many outcomes of the newest runs the new suites and specs give otherwise."""
    closed: tuple[JudgedOtherwise, ...]
    """What closes nodes by the new version only."""
    lost: tuple[JudgedOtherwise, ...]
    """The faults that the new version no longer sees."""
    missing: tuple[str, ...]
    """What could not be asked, and why."""

    @property
    def wrongly_closed(self) -> list[str]:
        """The nodes that the new version would have closed and that were proven healthy later."""
        return sorted({node for each in self.closed for node in each.healthy})

    def find_excess(self, bound: HistoryBound) -> Iterator[tuple[str, str]]:
        """Yield each field of the bound that the history breaks, and how."""
        if (wrong := self.wrongly_closed) and len(wrong) > bound.wrongly_closed:
            why = f"{format_nodes(wrong)} would have been closed, and proved healthy later; {bound.wrongly_closed} may"
            yield "wrongly_closed", why
        closed = sorted({node for each in self.closed for node in each.nodes})
        if len(closed) > bound.newly_closed:
            yield "newly_closed", f"{format_nodes(closed)} would have been closed; {bound.newly_closed} may"
        lost = {(each.fault, node) for each in self.lost for node in each.nodes}
        if len(lost) > bound.lost_faults:
            named = format_list((each.fault for each in self.lost), 4)
            yield (
                "lost_faults",
                f"{format_count(len(lost), 'fault')} no longer seen ({named}); {bound.lost_faults} may be",
            )


@fact
class RunningRollout:
    """A rollout that has not ended, or that was aborted: not all of its nodes have its commit."""

    id: str
    """Its id."""
    commit: str
    """The commit that it brings."""
    waits_for: str
    """Who or which rule paused or aborted it, and why; "" while it runs."""
    unproven: tuple[str, ...]
    """Its nodes that nothing proves yet."""
    stays: Mapping[str, tuple[str, ...]]
    """Its nodes that have not left for it, by the commit that they had before. For a merge, they count from that."""
    leaving: tuple[str, ...]
    """Its nodes that are out of service for it, or have their order."""
    waves: tuple[tuple[str, ...], ...]
    """The nodes of each wave to come, in order."""


@fact
class PresentFacts:
    """What the ledger and the evidence say of the fleet at one moment: what a plan must know beside the files."""

    position: int
    """The number of the ledger's newest entry."""
    at: str
    """The fleet's time: ISO 8601 UTC."""
    node_states: Mapping[str, Any]
    """Each enrolled node: its state, who holds it, what was done to it. `assay plan` of the same version reads it."""
    actions: Mapping[str, MedianDuration]
    """How long each action took."""
    stays: Mapping[str, MedianDuration]
    """How long the stays in each state took."""
    rollout: RunningRollout | None
    """The rollout that has not ended, or was aborted; null without one."""
    evidence_at: Mapping[str, str]
    """When the newest evidence of each node was stored: ISO 8601 UTC."""


@frozen
class FleetFacts:
    """Each enrolled node's state, and how long actions and stays in states took; see `PresentFacts`.

    `missing` says why nothing is known; then all else is empty. `history_missing` says why the last days cannot be
    asked. `now` is the fleet's time, None if it is not known: then imports do not expire.
    `recounts`: the last outcomes that begin to count, or stop counting.
    """

    node_states: Mapping[str, NodeState] = field(default_factory=dict)
    actions: Mapping[str, MedianDuration] = field(default_factory=dict)
    stays: Mapping[str, MedianDuration] = field(default_factory=dict)
    backtest: BacktestReport | None = None
    recounts: tuple[CountingChange, ...] = ()
    history: HistoryReport | None = None
    now: datetime | None = None
    missing: str = ""
    history_missing: str = ""
    position: int = 0
    rollout: RunningRollout | None = None
    evidence_at: Mapping[str, str] = field(default_factory=dict)


NO_FACTS = FleetFacts(missing="they were not asked for")


@frozen
class NodeStanding:
    """The present standing of a node: its `state`, whether customers use it, whether it is out, who holds it."""

    state: str
    is_in_service: bool
    is_out: bool
    hold_reason: str = ""

    @property
    def is_meant_to_serve(self) -> bool:
        """Whether the node counts in the size of its pool: it serves, or it was taken out and is to come back."""
        return self.is_in_service or self.is_out


def find_node_standing(policy: LifecyclePolicy, facts: FleetFacts, node: Node) -> NodeStanding:
    """Return the standing of a node; for a node that was never enrolled, its start in the inventory.

    Where no facts are known, each node counts as serving: then the limits refuse what could be too much.
    """
    if facts.missing:
        return NodeStanding(policy.service_state, True, False)
    node_state = facts.node_states.get(node.name)
    if node_state is None:
        state = find_start_state(policy, node, facts.now)
        return NodeStanding(state, policy.is_in_service(state), False)
    is_out = node_state.state in policy.states and (
        is_out_of_service(policy, node_state) or is_ordered_out(policy, node_state)
    )
    held = f"held by {node_state.hold.who}: {node_state.hold.reason}" if node_state.hold else ""
    return NodeStanding(node_state.state, policy.is_in_service(node_state.state), is_out, held)
