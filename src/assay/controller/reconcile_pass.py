"""One pass of the loop: finish what was begun, observe, validate, decide, act, and write and deliver the tickets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.controller.cache.fleet_state import FleetStateCache
from assay.controller.context import ControllerContext
from assay.controller.effects.effect_runner import run_effects
from assay.controller.enrollment import enroll_nodes
from assay.controller.ingest.evidence_collection import collect_node_evidence, scan_fabrics
from assay.controller.ingest.fault_recording import record_faults
from assay.controller.ingest.part_replacements import record_parts
from assay.controller.ingest.silent_nodes import record_silence
from assay.controller.ingest.suite_runs import run_due_suites
from assay.controller.rack_leases import RackAssignment, hold_rack_assignment
from assay.controller.signed_commit_gate import accept_commit
from assay.controller.ticket_updates import update_tickets
from assay.ledger.store import Ledger
from assay.lifecycle import ledger_entries
from assay.lifecycle.decisions.decide import decide
from assay.lifecycle.decisions.lost_cordons import decide_recordons
from assay.lifecycle.fleet_snapshot import FleetSnapshot
from assay.lifecycle.outstanding_effects import list_outstanding_effects
from assay.model.clock import Clock
from assay.model.decision import Decision
from assay.model.errors import AssayError
from assay.model.fleet import Fleet, Node
from assay.model.ledger_entry import LedgerEntry
from assay.observe.evidence_store import EvidenceStore
from assay.schedulers.scheduler_adapter import SchedulerAdapter, load_scheduler_adapter
from assay.tickets.ticket_delivery import deliver_tickets, hold_delivery_lease

MAX_PASSES = 12


@dataclass(frozen=True)
class PassReport:
    """What one pass did: the lines that it added to the ledger, in order, and the runs of the suites."""

    at: str
    entries: list[LedgerEntry] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing changed: what was seen and judged is as it was."""
        return not self.entries


def reconcile_once(
    fleet: Fleet,
    ledger: Ledger,
    evidence: EvidenceStore,
    clock: Clock,
    workloads: Callable[[Node], SchedulerAdapter] = load_scheduler_adapter,
    *,
    nodes: Sequence[str] | None = None,
    reports: Path | None = None,
    home: Path | None = None,
    scan_fabric: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> PassReport:
    """Take `nodes` (all by default) once round the loop. Limits count the whole fleet all the same.

    `home` is `.assay/` and `reports/` lies beside it, both below the fleet's root by default. Where several controllers
    share a ledger, each takes its own part of `nodes`. Raises Trouble when another one has an SQLite ledger, when the
    commit may not be acted on, or when the fleet's specs do not allow a decision.
    """
    root = fleet.root
    desk = ControllerContext(
        fleet, ledger, evidence, clock, home or root / ".assay", reports or root / "reports", workloads, progress
    )
    names = list(fleet.nodes) if nodes is None else list(nodes)
    if unknown := [name for name in names if name not in fleet.nodes]:
        raise AssayError(f"the inventory has no node {', '.join(unknown)}", where=str(root / "inventory"))
    with hold_rack_assignment(desk) as share:
        return _run_pass(FleetStateCache(desk), share, share.select_assigned(names), scan_fabric=scan_fabric)


def repeat_until_unchanged(again: Callable[[int], PassReport]) -> list[PassReport]:
    """Repeat passes until one is quiet, twelve at most; `again` is called with the number of the pass, from 0."""
    reports: list[PassReport] = []
    while len(reports) < MAX_PASSES and not (reports and reports[-1].is_unchanged):
        reports.append(again(len(reports)))
    return reports


def _run_pass(memory: FleetStateCache, share: RackAssignment, names: list[str], *, scan_fabric: bool) -> PassReport:
    desk = memory.context
    at, start = desk.now, desk.ledger.head()
    accept_commit(desk)
    enroll_nodes(memory)
    with share.hold_decision_lock():
        reclose_opened_nodes(memory, names)
    run_outstanding_effects(memory, names)
    if scan_fabric:
        scan_fabrics(desk, names)
    runs = observe_nodes(memory, names)
    record_silence(desk, memory.build_states_snapshot())
    with share.hold_decision_lock():
        record_decisions(memory, names)
    run_outstanding_effects(memory, names)
    with hold_delivery_lease(desk.ledger) as ours:
        if ours:
            update_tickets(desk, memory)
            deliver_tickets(desk)
    return PassReport(at, desk.ledger.entries(after=start), runs)


def observe_nodes(memory: FleetStateCache, names: Sequence[str], *, judged: bool = True) -> list[str]:
    """Collect the evidence of nodes, judge it, and tell the faults that it shows; return the runs' ids."""
    seen = collect_node_evidence(memory.context, memory.build_snapshot(), names)
    record_parts(memory.context, seen)
    runs = run_due_suites(memory, names) if judged else []
    record_faults(memory, seen)
    return runs


def record_decisions(
    memory: FleetStateCache, names: Collection[str] | None = None, asked: Collection[str] | None = None
) -> int:
    """Decide; append each decision for `names` (None: all) with its transition, and return how many there were.

    `asked` are the nodes to decide about, all by default; the others are only counted.
    """
    situation = memory.build_snapshot(asked or ())
    made = [one for one in decide(situation, asked) if names is None or one.node in names]
    _record_decisions(memory, situation, made)
    return len(made)


def reclose_opened_nodes(memory: FleetStateCache, names: Collection[str]) -> None:
    """Decide about those `names` that others opened: nothing begun there may go on as if nobody had come in."""
    situation = memory.build_snapshot()
    _record_decisions(memory, situation, [one for one in decide_recordons(situation) if one.node in names])


def _record_decisions(memory: FleetStateCache, situation: FleetSnapshot, made: Collection[Decision]) -> None:
    views = {view.name: view for view in situation.nodes}
    entries = (
        ledger_entries.make_decision_entries(situation.policy, views[one.node], one, situation.now) for one in made
    )
    memory.context.ledger.append(*(entry for lines in entries for entry in lines))


def run_outstanding_effects(memory: FleetStateCache, names: Collection[str]) -> None:
    """Bring about what decisions ask for and history does not show as settled; nothing where nothing is."""
    if busy := find_busy_nodes(memory, names):
        run_effects(memory.context, [name for name in names if name in busy], memory.node_states())


def find_busy_nodes(memory: FleetStateCache, names: Collection[str]) -> set[str]:
    """Return the nodes, of `names`, to which something is owed, and of all nodes those on which something was begun."""
    policy, chosen = memory.context.policy, set(names)
    return {
        story.node
        for story in memory.list_active_states()
        if story.unsettled_effects or (story.node in chosen and list_outstanding_effects(policy, story))
    }
