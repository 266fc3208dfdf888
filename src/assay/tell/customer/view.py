"""What a customer is shown of its nodes: how many serve, how available they were, and what became of the others.

A notice is one line about a node that left service or came back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from textwrap import shorten
from types import MappingProxyType

from assay.act.ingest.silent_nodes import read_unknown_times
from assay.decide.state.node_state import NodeState
from assay.decide.state.service_absences import (
    ServiceAbsence,
    Times,
    list_absences,
    list_fleet_absences,
    list_service_spans,
)
from assay.model.facts import frozen
from assay.model.ledger_entry import derive_id
from assay.model.node import Node
from assay.model.timestamps import format_time, hours
from assay.tell.customer.customer_explanation import (
    CustomerExplanation,
    explain_to_customer,
    find_harm,
    read_customer_situation,
)
from assay.tell.views.node_status import count_service, describe_unread
from assay.tell.views.records import RecordSource, find_unread

EXPLAINED = 40
"""So many nodes are explained in full: each costs a reading of what is known of it."""


@frozen
class CustomerNode:
    """A node of a customer. `since`: ISO 8601 UTC. `is_leaving`: it serves, and takes no new jobs.

    `is_unread`: it serves, and nobody knows how it is: its last reading is too old. `is_harmed`: it serves with an open
    fault that may harm jobs.
    """

    name: str
    pool: str
    in_service: bool
    is_leaving: bool
    since: str
    is_unread: bool = False
    is_harmed: bool = False


@frozen
class Availability:
    """The share of time in which `nodes` nodes served since `since`, of the time since each first served.

    `unknown_hours`: the node-hours in which nobody knew how a node was. They count in neither.
    """

    share: float
    since: datetime
    nodes: int
    unknown_hours: float


@frozen
class CustomerView:
    """The nodes of a customer, by name, and how available they were this month (None: none has served yet).

    `doubt`: how many are not known, in words, "" for none. `explained` are the nodes that are out, leave, are not known
    or may harm jobs, each with what the customer is told; `unexplained` counts the rest.
    """

    nodes: tuple[CustomerNode, ...]
    doubt: str
    availability: Availability | None
    explained: tuple[tuple[CustomerNode, CustomerExplanation], ...]
    unexplained: int

    @property
    def serving(self) -> int:
        """How many nodes serve and are known."""
        return count_service((node.in_service, node.is_unread) for node in self.nodes).serving


def build_customer_view(source: RecordSource, sees: Callable[[Node], bool], name: str = "") -> CustomerView:
    """Return the view of the nodes that a customer may see; with a `name`, of that node alone, explained in any case.

    Machines that were never observed, or are gone for good, are not shown: a customer has never used them, or no more.
    """
    states, fleet, now = source.read_node_states(), source.fleet, source.clock.now()
    serving = fleet.states_in_service
    final = {name for name, policy in fleet.policy_of_state.items() if policy.states[name].final}
    seen = {node.name for node in fleet.nodes.values() if sees(node)}
    ours = [state for state in states if state.node in seen and state.state not in final and name in ("", state.node)]
    known = {state.node: state for state in ours}
    unread, catalog = find_unread(source, ours), source.fleet.sound_fault_catalog
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    unknown = read_unknown_times(fleet, source.ledger_for_reading, ours, month, now, unread)
    nodes = tuple(
        CustomerNode(
            state.node,
            state.pool,
            state.state in serving,
            state.state in serving and bool(state.pending),
            find_service_change(state, serving),
            state.node in unread,
            state.state in serving and bool(find_harm(catalog, state)),
        )
        for state in ours
    )
    shown = [
        node for node in nodes if name or not node.in_service or node.is_leaving or node.is_unread or node.is_harmed
    ]
    absences = list_fleet_absences(fleet.policies.values(), states) if shown else []
    explained = (
        (node, explain_to_customer(read_customer_situation(source, absences, known[node.name])))
        for node in shown[:EXPLAINED]
    )
    return CustomerView(
        nodes,
        describe_unread(unread.values(), now),
        measure_availability(ours, serving, month, now, unknown),
        tuple(explained),
        len(shown[EXPLAINED:]),
    )


def find_service_change(state: NodeState, serving: Collection[str]) -> str:
    """Return since when a node is in service, or out of it, whatever states it went through since: ISO 8601 UTC."""
    moves = (move for move in reversed(state.transitions) if (move.origin in serving) != (move.target in serving))
    return next((move.at for move in moves), state.enrolled_at)


def measure_availability(
    states: Iterable[NodeState],
    serving: Collection[str],
    begin: datetime,
    end: datetime,
    unknown: Mapping[str, Times] = MappingProxyType({}),
) -> Availability | None:
    """Return how available these nodes were from `begin` to `end`, each from when it first served; None: none did.

    `unknown`: when nobody knew how a node was, as `read_unknown_times` returns it.
    """
    times, begins = defaultdict[str, timedelta](timedelta), []
    for state in states:
        spans = [*list_service_spans(state, serving, begin, end, unknown.get(state.node, ()))]
        begins += [span.began_at for span in spans if span.standing != "unknown"][:1]
        for span in spans:
            times[span.standing] += span.ended_at - span.began_at
    if not begins:
        return None
    share = times["up"] / (times["up"] + times["down"])
    return Availability(share, min(begins), len(begins), round(times["unknown"] / hours(1), 1))


MAX_LINE = 360
"""Slurm's reasons and comments of ours have at most 400 characters."""


@frozen
class ServiceStanding:
    """Whether a node that has left service before serves now, and since when (ISO 8601).

    `pool` is the one that the inventory has it in now.
    """

    state: NodeState
    pool: str
    in_service: bool
    since: str

    @property
    def move(self) -> str:
        """An id of the node's last way out of service, or back."""
        return derive_id("service", self.state.node, str(self.in_service), self.since)


@frozen
class ServiceNotice:
    """What customers are told of a node."""

    standing: ServiceStanding
    texts: CustomerExplanation

    @property
    def node(self) -> str:
        """The name of the node."""
        return self.standing.state.node

    @property
    def line(self) -> str:
        """What happened, and when the node is expected back, in one line of at most MAX_LINE characters."""
        back = "" if self.standing.in_service else shorten(f" {self.texts.back}", MAX_LINE // 2, placeholder=" …")
        room = MAX_LINE - len(back) - 1
        return f"{shorten(self.texts.happened, room, placeholder=' …')} {back}".rstrip()


def list_standings(source: RecordSource, states: Sequence[NodeState]) -> Iterator[ServiceStanding]:
    """Yield the standing of each node of the inventory that has left service at least once."""
    for state in states:
        node = source.fleet.nodes.get(state.node)
        if node and (absences := list_absences(state, source.fleet.states_in_service)):
            last = absences[-1]
            yield ServiceStanding(
                state, node.pool, last.ended_at is not None, format_time(last.ended_at or last.began_at)
            )


def make_notice(source: RecordSource, absences: Collection[ServiceAbsence], standing: ServiceStanding) -> ServiceNotice:
    """Return what customers are told of a node, in the words of `assay explain --for customer`. Reads the ledger."""
    return ServiceNotice(standing, explain_to_customer(read_customer_situation(source, absences, standing.state)))
