"""Nodes, pools and changes in short: what lists show to staff, and to customers only of their own nodes.

Also what a plan must know of the fleet, for runners of pull requests that have no ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from assay.act.loop.plan_inputs import DURATION_KINDS, make_present_facts
from assay.decide.plan.inputs import PresentFacts
from assay.decide.state.node_state import NodeState
from assay.decide.state.service_absences import list_fleet_absences
from assay.decide.trust.record import NOTHING_SAID
from assay.model.entries.node_entries import TransitionEntry
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.observe.evidence_store import EvidenceStore
from assay.tell.customer.customer_explanation import CustomerExplanation, explain_to_customer, read_customer_situation
from assay.tell.customer.view import find_service_change
from assay.tell.views.incident_story import NO_STORY, read_stories
from assay.tell.views.node_explanation import ExplainAnswer, describe_node_status, explain_node
from assay.tell.views.node_status import NodeStatus, count_service
from assay.tell.views.pool_delivery import PoolDelivery
from assay.tell.views.records import LiveRecords, RecordSource, find_unread

IN_SERVICE, OUT_OF_SERVICE = "in service", "out of service"
"""The states that customers are told of."""


@frozen
class NodeSummary:
    """A node in a list. For customers, `rack` and what follows is ""."""

    node: str
    """The name of the node."""
    pool: str
    """The pool that the node is in."""
    state: str
    """The state that the node is in; for customers "in service" or "out of service"."""
    in_service: bool
    """Whether customers can use the node."""
    since: str
    """When the node came into this state: ISO 8601 with the offset of UTC."""
    rack: str = ""
    """The rack that the node is in."""
    pending_to: str = ""
    """The state that the node will go to; "" if no move waits."""
    held_by: str = ""
    """Who holds the node; "" if nobody does."""
    because: str = ""
    """Why the node is in its state."""
    unread_since: str | None = None
    """When a node in service was last read, if that is longer ago than the policy allows, "" for never; else null."""


@frozen
class PoolSummary:
    """A pool: how its nodes are."""

    pool: str
    """The name of the pool."""
    nodes: int
    """How many nodes it has."""
    in_service: int
    """How many of them customers can use, and are known."""
    not_known: int
    """How many of these nothing has read for longer than the policy allows."""
    states: dict[str, int]
    """How many nodes are in each state, by the state."""
    delivery: PoolDelivery | None = None
    """What it delivers of what it declares; null without a declaration, and for customers."""


def summarize_node(fleet: Fleet, state: NodeState, unread: Mapping[str, str], *, for_customer: bool) -> NodeSummary:
    """Return a node in short."""
    unread_since = unread.get(state.node)
    in_service = state.state in fleet.states_in_service
    if for_customer:
        since = find_service_change(state, fleet.states_in_service)
        standing = IN_SERVICE if in_service else OUT_OF_SERVICE
        return NodeSummary(state.node, state.pool, standing, in_service, since, unread_since=unread_since)
    declared = fleet.nodes.get(state.node)
    return NodeSummary(
        node=state.node,
        pool=state.pool,
        state=state.state,
        in_service=in_service,
        since=state.since,
        rack=declared.rack if declared else "",
        pending_to=state.pending.to if state.pending else "",
        held_by=state.hold.who if state.hold else "",
        because=state.note or state.reason,
        unread_since=unread_since,
    )


def summarize_pools(nodes: Iterable[NodeSummary], deliveries: Iterable[PoolDelivery] = ()) -> list[PoolSummary]:
    """Return the pools of these nodes, by name."""
    delivered = {delivery.pool: delivery for delivery in deliveries}
    by_pool: dict[str, list[NodeSummary]] = {}
    for node in nodes:
        by_pool.setdefault(node.pool, []).append(node)
    return [
        PoolSummary(
            pool=pool,
            nodes=len(some),
            in_service=count.serving,
            not_known=count.not_known,
            states=dict(Counter(node.state for node in some)),
            delivery=delivered.get(pool),
        )
        for pool, some in sorted(by_pool.items())
        for count in [count_service((node.in_service, node.unread_since is not None) for node in some)]
    ]


@frozen
class ChangePage:
    """Changes in order. `position`: ask for what comes after it. `more`: there is something already."""

    changes: tuple[LedgerEntry, ...]
    """The changes, in order. For customers, `id` is empty, and `body` is only `{"in_service": true}` or `false`."""
    position: int
    more: bool


def list_changes(source: RecordSource, after: int, most: int, sees: Callable[[NodeState], bool] | None) -> ChangePage:
    """Return at most `most` changes after a position. `sees`: which nodes a customer may see, None for staff."""
    ledger = source.ledger_for_reading
    head = ledger.head()
    entries = ledger.entries(kinds=[] if sees is None else [TransitionEntry.kind], after=after, most=most)
    is_cut = len(entries) == most
    position = entries[-1].seq if is_cut else max([after, head, *(entry.seq for entry in entries[-1:])])
    if sees is None:
        return ChangePage(tuple(entries), position, more=is_cut)
    visible = {state.node for state in source.read_node_states() if sees(state)}
    serving = source.fleet.states_in_service
    changes = tuple(
        replace(entry, id="", body={"in_service": TransitionEntry.read(entry).to_state in serving})
        for entry in entries  # what the id is made from is not for customers
        if entry.node in visible
    )
    return ChangePage(changes, position, more=is_cut)


@frozen
class VisibleFleet:
    """What of the records somebody may see. `sees`: which nodes. `for_customer`: in plain words, without serials.

    A node that may not be seen is as one that does not exist: None.
    """

    source: RecordSource
    sees: Callable[[NodeState], bool]
    for_customer: bool

    def list_nodes(self) -> list[NodeSummary]:
        """Return the nodes, by name."""
        fleet = self.source.fleet
        states = list(self._list_states())
        unread = find_unread(self.source, states)
        shown = (summarize_node(fleet, state, unread, for_customer=self.for_customer) for state in states)
        return sorted(shown, key=lambda node: node.node)

    def find_node(self, name: str) -> NodeSummary | None:
        """Return one node in short."""
        state = self._find_state(name)
        if state is None:
            return None
        unread = find_unread(self.source, [state])
        return summarize_node(self.source.fleet, state, unread, for_customer=self.for_customer)

    def describe(self, name: str) -> NodeStatus | CustomerExplanation | None:
        """Return a node's status; for a customer, what happened to it."""
        state = self._find_state(name)
        if state is None:
            return None
        if self.for_customer:
            return self._explain_to_customer(state)
        story = read_stories(self.source, [state]).get(name, NO_STORY)
        return describe_node_status(self.source, state, story)

    def explain(self, name: str, last: int) -> ExplainAnswer | CustomerExplanation | None:
        """Return why a node is in its state, with its last decisions (0: all)."""
        state = self._find_state(name)
        if state is None:
            return None
        return self._explain_to_customer(state) if self.for_customer else explain_node(self.source, state, last)

    def _explain_to_customer(self, state: NodeState) -> CustomerExplanation:
        absences = list_fleet_absences(self.source.fleet.policies.values(), self.source.read_node_states())
        return explain_to_customer(read_customer_situation(self.source, absences, state))

    def _list_states(self) -> list[NodeState]:
        return [state for state in self.source.read_node_states() if self.sees(state)]

    def _find_state(self, name: str) -> NodeState | None:
        return next((state for state in self._list_states() if state.node == name), None)


def build_present_facts(records: LiveRecords, position: int) -> PresentFacts:
    """Return the facts of the fleet for a plan. `position`: the newest entry of the ledger."""
    states, no = dict[str, NodeState](), frozenset[str]()
    for state in records.read_node_states():  # without what no plan reads, and what grows for ever or names a machine
        less = replace(state, decisions={}, trust=NOTHING_SAID, burn_in=None, serial="", gpus={}, known_boots=no)
        states[state.node] = replace(less, former_gpus=no)
    entries = records.ledger_for_reading.entries(kinds=DURATION_KINDS)
    evidence = EvidenceStore(records.data_dir / "evidence")
    rollouts, now = records.read_rollouts(), records.clock.now()
    return make_present_facts(records.fleet, states, entries, rollouts, evidence, now, position)
