"""One pass of the loop: finish what was begun, observe, validate, decide, act, and write and deliver the tickets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.actions.workloads import Workloads, workloads_of
from assay.controller.accepted import accept_commit
from assay.controller.act import act
from assay.controller.desk import Desk
from assay.controller.enrol import enroll
from assay.controller.faults import classify
from assay.controller.judging import judge_nodes
from assay.controller.lock import only_controller
from assay.controller.look import look_at_fabrics, look_at_nodes
from assay.controller.outbox import deliver_tickets
from assay.controller.silence import look_for_silence
from assay.controller.situation import situation_of
from assay.controller.tickets import update_tickets
from assay.ledger.store import Ledger
from assay.lifecycle import journal
from assay.lifecycle.decide import decide
from assay.lifecycle.situation import Situation
from assay.model.clock import Clock
from assay.model.entry import Entry
from assay.model.errors import Trouble
from assay.model.fleet import Fleet, Node
from assay.observe.store import EvidenceStore

PASSES = 12


@dataclass(frozen=True)
class PassReport:
    """What one pass did: the lines that it added to the ledger, in order, and the runs of the suites."""

    at: str
    entries: list[Entry] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)

    @property
    def quiet(self) -> bool:
        """Whether nothing changed: what was seen and judged is as it was."""
        return not self.entries


def reconcile_once(
    fleet: Fleet,
    ledger: Ledger,
    evidence: EvidenceStore,
    clock: Clock,
    workloads: Callable[[Node], Workloads] = workloads_of,
    *,
    nodes: Sequence[str] | None = None,
    reports: Path | None = None,
    home: Path | None = None,
    scan_fabric: bool = True,
    progress: Callable[[str], None] = lambda _: None,
) -> PassReport:
    """Take `nodes` (all by default) once round the loop. Limits count the whole fleet all the same.

    `home` is `.assay/` and `reports/` lies beside it, both below the fleet's root by default. Raises Trouble when
    another controller works on this ledger, when the commit may not be acted on, or when the fleet's specs do not
    allow a decision.
    """
    root = fleet.root
    desk = Desk(
        fleet, ledger, evidence, clock, home or root / ".assay", reports or root / "reports", workloads, progress
    )
    names = list(fleet.nodes) if nodes is None else list(nodes)
    if unknown := [name for name in names if name not in fleet.nodes]:
        raise Trouble(f"the inventory has no node {', '.join(unknown)}", where=str(root / "inventory"))
    with only_controller(desk.home):
        return _once(desk, names, scan_fabric=scan_fabric)


def settle(again: Callable[[int], PassReport]) -> list[PassReport]:
    """Repeat passes until one is quiet, twelve at most; `again` is called with the number of the pass, from 0."""
    reports: list[PassReport] = []
    while len(reports) < PASSES and not (reports and reports[-1].quiet):
        reports.append(again(len(reports)))
    return reports


def _once(desk: Desk, names: list[str], *, scan_fabric: bool) -> PassReport:
    at, start = desk.now, _length(desk.ledger)
    accept_commit(desk)
    enroll(desk)
    act(desk, names)
    if scan_fabric:
        look_at_fabrics(desk, names)
    seen = look_at_nodes(desk, situation_of(desk), names)
    runs = judge_nodes(desk, situation_of(desk), names)
    classify(desk, situation_of(desk), seen)
    look_for_silence(desk, situation_of(desk))
    _decide(desk, situation_of(desk), names)
    act(desk, names)
    update_tickets(desk)
    deliver_tickets(desk)
    return PassReport(at, desk.ledger.entries(after=start), runs)


def _decide(desk: Desk, situation: Situation, names: list[str]) -> None:
    """Append each decision for `names` with its transition, in one transaction each."""
    views = {view.name: view for view in situation.nodes}
    for decision in decide(situation):
        if decision.node in names:
            desk.ledger.append(*journal.made(situation.policy, views[decision.node], decision, situation.now))


def _length(ledger: Ledger) -> int:
    entries = ledger.entries()
    return entries[-1].seq if entries else 0
