"""One pass of the loop: finish effects, observe, validate, decide, act, and update and deliver tickets.

The last part of a pass: keeps the tickets up to date, and lets the context's tellers tell people what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field

from assay.act.effects.gates import hold_outlived_orders
from assay.act.effects.pending_effect_runner import run_effects
from assay.act.ingest.burn_ins import follow_burn_ins
from assay.act.ingest.collection import collect_node_evidence, scan_fabrics
from assay.act.ingest.fault_recording import record_faults
from assay.act.ingest.part_replacements import record_parts
from assay.act.ingest.right_clock import WrongClock, require_right_clock
from assay.act.ingest.silent_nodes import record_silence
from assay.act.ingest.suite_runs import group_by_due_phases, run_due_suites
from assay.act.loop.context import ControllerContext
from assay.act.loop.fleet_reload import accept_commit
from assay.act.loop.pass_log import records_pass
from assay.act.loop.rack_leases import WHOLE_FLEET, RackAssignment, hold_rack_assignment
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.orders.operations import begin_due_operations, reserve_windows
from assay.act.rollouts.commit_adoption import take_up_fleet
from assay.act.rollouts.rollout_advance import advance_rollout, list_first_waves
from assay.act.tickets.ticket_updates import update_tickets
from assay.decide.faults.scheduler_disagreement import judge_cordons
from assay.decide.moves.cordons import decide_recordons
from assay.decide.moves.decide import decide
from assay.decide.moves.hand_over import judge_refused_hand_overs
from assay.decide.state import decision_and_fault_entries
from assay.decide.state.fleet_snapshot import FleetSnapshot
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.ledger.leases import current_process
from assay.ledger.store import Ledger
from assay.model.decision import Decision
from assay.model.errors import AssayError
from assay.model.facts import fact
from assay.model.ledger_entry import LedgerEntry
from assay.validate.runs.shard_processes import keep_pytest_ready

DELIVERY_LEASE = "tickets"
"""The lease of the controller that delivers tickets, where several controllers share a ledger."""
DELIVERY_LEASE_S = 120.0


def tell_people(context: ControllerContext, fleet_state: FleetSnapshotCache, *, keep: bool = False) -> None:
    """Update tickets and reservations for planned work, and call the context's tellers; of several controllers, one.

    With `keep`, the same one does so the next time.
    """
    with hold_delivery_lease(context.ledger, keep=keep) as is_ours:
        if is_ours:
            update_tickets(context, fleet_state)
            reserve_windows(context, list(list_first_waves(context)))
            for tell in context.tellers:
                tell(context)


@contextmanager
def hold_delivery_lease(ledger: Ledger, *, keep: bool = False) -> Iterator[bool]:
    """Be the one controller that delivers tickets while the block lasts. Yields False if another controller is.

    With `keep`, the lease stays until it ends by itself, so that the same controller delivers the next time too.
    """
    if not ledger.is_shared:  # a ledger file has one controller
        yield True
        return
    ours = ledger.claim_lease(DELIVERY_LEASE, current_process(), DELIVERY_LEASE_S)
    try:
        yield ours
    finally:
        if not keep:
            ledger.release(DELIVERY_LEASE, current_process())


MAX_PASSES = 12


@fact
class PassReport:
    """One pass of the controller over the fleet."""

    at: str
    """When it began: ISO 8601 with the offset of UTC."""
    entries: list[LedgerEntry] = field(default_factory=list)
    """The entries that it wrote into the ledger, in order."""
    runs: list[str] = field(default_factory=list)
    """The ids of the runs of checks that it made."""
    held: list[str] = field(default_factory=list)
    """The nodes that the breaker holds back after it."""


@records_pass("once")
def reconcile_once(
    context: ControllerContext,
    nodes: Sequence[str] | None = None,
    *,
    scan_fabric: bool = True,
    assignment: RackAssignment | None = None,
) -> PassReport:
    """Take `nodes` (all by default) once through the loop. Limits count the whole fleet all the same.

    Where several controllers share a ledger, each takes its own part of `nodes`: a caller of several passes holds its
    `assignment` over all of them. Raises AssayError when another controller has an SQLite ledger, when the commit may
    not be acted on, or when the specs allow no decision.
    """
    fleet = context.fleet
    names = list(fleet.nodes) if nodes is None else list(nodes)
    if unknown := [name for name in names if name not in fleet.nodes]:
        raise AssayError(f"the inventory has no node {', '.join(unknown)}", where=str(fleet.root / "inventory"))
    with nullcontext(assignment) if assignment else hold_rack_assignment(context) as ours:
        assigned = ours.select_assigned(names)
        return _run_pass(FleetSnapshotCache(context), ours, assigned, scan_fabric=scan_fabric)


def repeat_until_unchanged(run_pass: Callable[[int], PassReport]) -> list[PassReport]:
    """Call `run_pass` with 0, 1, 2 … until a pass appends nothing, twelve times at most; return the reports."""
    reports: list[PassReport] = []
    while len(reports) < MAX_PASSES and not (reports and not reports[-1].entries):
        reports.append(run_pass(len(reports)))
    return reports


def _run_pass(
    fleet_state: FleetSnapshotCache, assignment: RackAssignment, names: list[str], *, scan_fabric: bool
) -> PassReport:
    context = fleet_state.context
    at, start = context.now, context.ledger.head()
    prepare_judgement(fleet_state, names)
    if find_busy_nodes(fleet_state, names):
        look_at_clocks(fleet_state)
    accept_commit(context)
    take_up_fleet(context)
    compare_cordons(fleet_state, names, assignment)
    run_outstanding_effects(fleet_state, names)
    if scan_fabric:
        scan_fabrics(context, names)
    runs = observe_nodes(fleet_state, names)
    record_silence(context, fleet_state.build_states_snapshot())
    record_decisions(fleet_state, names, assignment=assignment)
    run_outstanding_effects(fleet_state, names)
    tell_people(context, fleet_state)
    held = sorted(state.node for state in fleet_state.list_active_states() if state.is_held_by_breaker)
    return PassReport(at, context.ledger.entries(after=start), runs, held)


def look_at_clocks(fleet_state: FleetSnapshotCache) -> None:
    """Compare this machine's clock with others before anything is done by it. Raises WrongClock."""
    with _note_wrong_clock(fleet_state):
        require_right_clock(fleet_state.context)


@contextmanager
def _note_wrong_clock(fleet_state: FleetSnapshotCache) -> Iterator[None]:
    try:
        yield
    except WrongClock:
        fleet_state.is_clock_wrong = True
        raise
    fleet_state.is_clock_wrong = False


def prepare_judgement(fleet_state: FleetSnapshotCache, names: Sequence[str]) -> None:
    """Let pytest be imported while schedulers, fabrics and nodes are read, if a check of these nodes is due."""
    keep_pytest_ready(
        fleet_state.context.fleet.root,
        lambda: group_by_due_phases(fleet_state.build_snapshot(), fleet_state.node_states(), names),
    )


@records_pass("observe")
def observe_nodes(
    fleet_state: FleetSnapshotCache, names: Sequence[str], *, may_judge: Callable[[], bool] = lambda: True
) -> list[str]:
    """Collect evidence, judge it with the suites if these then `may_judge`, record its faults; return the run ids."""
    context = fleet_state.context
    burning, snapshot = follow_burn_ins(fleet_state, names), fleet_state.build_snapshot()
    prepare_judgement(fleet_state, names)
    with _note_wrong_clock(fleet_state):
        evidence = collect_node_evidence(context, snapshot, names, burning)
    record_parts(context, evidence)
    runs = run_due_suites(fleet_state, names) if may_judge() else []
    record_faults(context, evidence)
    return runs


@records_pass("decide")
def record_decisions(
    fleet_state: FleetSnapshotCache,
    names: Collection[str] | None = None,
    candidates: Collection[str] | None = None,
    *,
    assignment: RackAssignment = WHOLE_FLEET,
) -> int:
    """Decide about `candidates`, all active nodes by default; append the decisions for `names` and return how many.

    Other nodes are only counted. The schedulers are asked before the decision lock is taken: one that hangs stops no
    other controller. A node that becomes active in between waits for the next decision. A rollout goes on first, if the
    decision is about all nodes: the nodes of its next wave get their orders.
    """
    if fleet_state.is_clock_wrong:
        return 0
    hold_outlived_orders(fleet_state.context, fleet_state.node_states())
    if candidates is None:
        context = fleet_state.context
        begin_due_operations(context.fleet, context.ledger, fleet_state.node_states(), context.clock.now())
        advance_rollout(fleet_state, assignment)
    readings = fleet_state.read_statuses(candidates or ())
    with assignment.hold_decision_lock():
        snapshot = fleet_state.build_snapshot(candidates or (), readings)
        nodes = readings.nodes if candidates is None else readings.nodes & set(candidates)
        ours = nodes if names is None else frozenset(names)
        decisions = [decision for decision in decide(snapshot, nodes) if decision.node in ours]
        _append_decisions(fleet_state.context, snapshot, decisions)
        if moved := {decision.node for decision in decisions if decision.timing == "immediate"}:
            _append_cordons(fleet_state, fleet_state.build_states_snapshot(readings), moved)
    return len(decisions)


def compare_cordons(
    fleet_state: FleetSnapshotCache, names: Collection[str], assignment: RackAssignment = WHOLE_FLEET
) -> None:
    """Compare what the states of `names` ask of their schedulers with what these read, before anything goes on there.

    What reads as open and must be closed is decided upon. What cannot be brought in line is recorded as a fault.
    """
    names = frozenset(names)
    readings = fleet_state.read_cordons(names)
    context = fleet_state.context
    with assignment.hold_decision_lock():
        snapshot = fleet_state.build_states_snapshot(readings)
        _append_cordons(fleet_state, snapshot, names)
        for judge in (judge_cordons, judge_refused_hand_overs):
            faults, ends = judge(snapshot, context.fleet.fault_catalog)
            entries = [decision_and_fault_entries.make_fault_entry(fault, snapshot.now) for fault in faults]
            entries += [decision_and_fault_entries.make_cleared_entry(node, end, snapshot.now) for node, end in ends]
            context.ledger.append(*entries)


def _append_cordons(fleet_state: FleetSnapshotCache, snapshot: FleetSnapshot, names: Collection[str]) -> None:
    decisions = [decision for decision in decide_recordons(snapshot) if decision.node in names]
    _append_decisions(fleet_state.context, snapshot, decisions)


def _append_decisions(context: ControllerContext, snapshot: FleetSnapshot, decisions: Collection[Decision]) -> None:
    views = {view.name: view for view in snapshot.nodes}
    entries = (
        decision_and_fault_entries.make_decision_entries(snapshot.policy, views[decision.node], decision, snapshot.now)
        for decision in decisions
    )
    context.ledger.append(*(entry for group in entries for entry in group))


def run_outstanding_effects(fleet_state: FleetSnapshotCache, names: Collection[str]) -> None:
    """Bring about the effects that decisions ask for and the ledger does not show as ended."""
    if not fleet_state.is_clock_wrong and (busy := find_busy_nodes(fleet_state, names)):
        run_effects(fleet_state.context, [name for name in names if name in busy], fleet_state.node_states())


def find_busy_nodes(fleet_state: FleetSnapshotCache, names: Collection[str]) -> set[str]:
    """Return the nodes of `names` with outstanding effects, and all nodes with an effect that was begun."""
    policy, selected = fleet_state.context.policy, set(names)
    return {
        state.node
        for state in fleet_state.list_active_states()
        if state.unsettled_effects or (state.node in selected and list_outstanding_effects(policy, state))
    }
