"""Where views read: the declared fleet, its ledger, assay's own data folder, and the fleet's clock.

A server keeps them warm: of node states, rollouts and tickets, each entry of the ledger is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from pathlib import Path
from threading import RLock
from typing import Any, Protocol

from assay.act.boot.matching import Sighting, read_sightings
from assay.act.ingest.silent_nodes import read_unread_nodes
from assay.act.ingest.trend_evaluation import read_answer
from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.act.loop.snapshot import FabricComparisonCache, list_used_designs
from assay.act.rollouts.rollout_advance import report_rollout
from assay.act.tickets.ticket_diff import TICKETS
from assay.adapters.scheduler import StatusReadings, group_by_scheduler
from assay.decide.rollouts.decide_rollouts import find_begin
from assay.decide.rollouts.rollout_history import ROLLOUTS, RolloutHistory
from assay.decide.state.load_coverage import COVERAGE
from assay.decide.state.node_state import NodeState
from assay.decide.state.operation_record import CUSTOMER, OPERATIONS, OperationRecord
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.compiler import compile_topology
from assay.ledger.ledger_reader import read_projection
from assay.ledger.store import Ledger
from assay.model.clock import Clock
from assay.model.fleet import Fleet
from assay.model.ticket import TicketRecord
from assay.model.timestamps import format_time, hours, parse_time
from assay.tell.views.calendar import SWAPS, count_steps, describe_rollout, describe_swap
from assay.tell.views.fabric_view import ScannedFabric
from assay.tell.views.idle_coverage import PoolCoverage, list_idle_coverage

ROLLOUTS_SHOWN = 5


class RecordSource(Protocol):
    """What views are made from. The workspace of a command is one, and so are the records of a server."""

    @property
    def fleet(self) -> Fleet:
        """The declared fleet."""

    @property
    def ledger_for_reading(self) -> Ledger:
        """The existing ledger; nothing is written to it."""

    @property
    def data_dir(self) -> Path:
        """The folder `.assay/` of the fleet."""

    @property
    def clock(self) -> Clock:
        """The fleet's time."""

    def read_node_states(self) -> Sequence[NodeState]:
        """Return the state of every enrolled node, by pool and name."""


def find_unread(source: RecordSource, states: Collection[NodeState]) -> dict[str, str]:
    """Return which of these nodes are in service and not known, and when each was last read ("" for never)."""
    return read_unread_nodes(source.fleet, source.data_dir, states, source.clock.now())


RecordStamp = tuple[int, int, str, int]


class LiveRecords:
    """A `RecordSource` whose fleet is the newest good one: `refresh` returns the context with it. Safe for threads."""

    def __init__(self, refresh: Callable[[], ControllerContext]) -> None:
        self._refresh, self._lock = refresh, RLock()
        self._comparisons = FabricComparisonCache()
        self._topologies: dict[str, CompiledTopology] = {}
        self._topologies_of: Fleet | None = None
        self._expected_ends: dict[tuple[str, int], str] = {}

    @property
    def fleet(self) -> Fleet:
        """The declared fleet."""
        return self._refresh().fleet

    @property
    def ledger_for_reading(self) -> Ledger:
        """The ledger; nothing here writes to it."""
        return self._refresh().ledger

    @property
    def data_dir(self) -> Path:
        """The folder `.assay/` of the fleet."""
        return self._refresh().home

    @property
    def clock(self) -> Clock:
        """The fleet's time."""
        return self._refresh().clock

    def read_stamp(self) -> RecordStamp:
        """Return what a view depends on: the last entry, the last run, the commit, and which reading of the files."""
        ledger, fleet = self.ledger_for_reading, self.fleet
        return ledger.head(), ledger.outcomes_head(), fleet.commit, id(fleet)

    def read_node_states(self) -> list[NodeState]:
        """Return the state of every enrolled node, by pool and name."""
        states = read_node_states(self.ledger_for_reading)
        return sorted(states.values(), key=attrgetter("pool", "node"))

    def read_rollouts(self) -> RolloutHistory:
        """Return the rollouts as they are now."""
        return read_projection(self.ledger_for_reading, ROLLOUTS)

    def read_topologies(self, only: str = "") -> list[CompiledTopology]:
        """Return the fabrics that have nodes, as they are designed, by name; or `only` one."""
        return self._compile(self.fleet, only)

    def read_fabrics(self, only: str = "") -> list[ScannedFabric]:
        """Return the fabrics that have nodes, each with its last scan, by name; or `only` one."""
        context = self._refresh()
        return [
            ScannedFabric(each, self._comparisons.get(context, context.fleet.designs[each.name], each))
            for each in self._compile(context.fleet, only)
        ]

    def _compile(self, fleet: Fleet, only: str) -> list[CompiledTopology]:
        with self._lock:
            if self._topologies_of is not fleet:
                self._topologies, self._topologies_of = {}, fleet
            names = [design.name for design in list_used_designs(fleet) if only in ("", design.name)]
            missing = (name for name in names if name not in self._topologies)
            self._topologies |= {name: compile_topology(fleet.designs[name], fleet) for name in missing}
            return [self._topologies[name] for name in names]

    def read_worsening(self) -> dict[str, Any]:
        """Return the last answer about what gets worse, as JSON has it; empty before the first."""
        return read_answer(self._refresh().reports)

    def read_idle_coverage(self) -> list[PoolCoverage]:
        """Return what idle verification has covered."""
        context = self._refresh()
        serving = context.policy.states_in_service
        states = {state.node: state for state in self.read_node_states() if state.state in serving}
        covered = read_projection(context.ledger, COVERAGE)
        return list(list_idle_coverage(context.fleet, states, covered, context.clock.now()))

    def read_operations(self, sees: Callable[[NodeState], bool] | None) -> dict[str, OperationRecord]:
        """Return the operations by id, with rollouts and swaps. `sees`: which nodes a customer may see, None for staff.

        Customers see those of customers, and planned work on their nodes; without our words, and other nodes.
        """
        known = read_projection(self.ledger_for_reading, OPERATIONS).operations
        known = known | {record.id: record for record in self._list_other_work()}
        if sees is None:
            return known
        theirs = {state.node for state in self.read_node_states() if sees(state)}
        shown = {}
        for ident, record in known.items():
            nodes = tuple(replace(node, text="") for node in record.nodes if node.node in theirs)
            is_asked_for = record.role == CUSTOMER and len(nodes) == len(record.nodes)
            if is_asked_for or (record.starts_at and record.role != CUSTOMER and nodes):
                who, key = (record.who, record.key) if is_asked_for else ("", "")
                starts_at = min(map(record.begins_on, nodes))
                shown[ident] = replace(record, to="", nodes=nodes, who=who, key=key, starts_at=starts_at)
        return shown

    def read_jobs(self, names: Collection[str]) -> StatusReadings:
        """Ask the schedulers what runs on these nodes, and whether new jobs may start there."""
        context = self._refresh()
        return group_by_scheduler([context.fleet.nodes[name] for name in names], context.workloads).read_statuses()

    def _list_other_work(self) -> Iterator[OperationRecord]:
        """Yield the last rollouts and swaps as operations."""
        ledger, fleet, now = self.ledger_for_reading, self.fleet, self.clock.now()
        for rollout in [*self.read_rollouts().rollouts.values()][-ROLLOUTS_SHOWN:]:
            key = (rollout.id, count_steps(rollout))
            if key not in self._expected_ends and rollout.is_active:
                report = report_rollout(fleet, ledger, self.read_node_states(), rollout, now)
                later = [parse_time(at) for member in rollout.members.values() if (at := member.deferred_to)]
                end = max(find_begin(fleet.policy, rollout), now, *later) + hours(report.hours_left or 0)
                self._expected_ends = {key: format_time(end)}
            yield describe_rollout(fleet, rollout, self._expected_ends.get(key, ""))
        for entry in chain.from_iterable(read_projection(ledger, SWAPS).values()):
            yield describe_swap(entry)

    def read_machines(self) -> list[Sighting]:
        """Return the machines that were seen lately."""
        return read_sightings(self.ledger_for_reading, self.clock.now())

    def read_tickets(self) -> list[TicketRecord]:
        """Return every ticket, in the order in which they were first opened."""
        return list(read_projection(self.ledger_for_reading, TICKETS).values())
