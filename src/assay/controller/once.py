"""One pass of the loop: finish what was begun, observe, validate, decide, act, and write and deliver the tickets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.actions.workloads import Workloads, workloads_of
from assay.controller.accepted import accept_commit
from assay.controller.desk import Desk
from assay.controller.effects.act import act
from assay.controller.enrol import enroll
from assay.controller.known.memory import Memory
from assay.controller.looking.faults import classify
from assay.controller.looking.judging import judge_nodes
from assay.controller.looking.look import look_at_fabrics, look_at_nodes
from assay.controller.looking.parts import note_parts
from assay.controller.looking.silence import look_for_silence
from assay.controller.people.outbox import deliver_tickets, seeing_to_tickets
from assay.controller.people.tickets import update_tickets
from assay.controller.share import Share, shared
from assay.ledger.store import Ledger
from assay.lifecycle import journal
from assay.lifecycle.decide import decide
from assay.lifecycle.opened import close_again
from assay.lifecycle.owed import owed
from assay.lifecycle.situation import Situation
from assay.model.clock import Clock
from assay.model.decision import Decision
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

    `home` is `.assay/` and `reports/` lies beside it, both below the fleet's root by default. Where several controllers
    share a ledger, each takes its own part of `nodes`. Raises Trouble when another one has an SQLite ledger, when the
    commit may not be acted on, or when the fleet's specs do not allow a decision.
    """
    root = fleet.root
    desk = Desk(
        fleet, ledger, evidence, clock, home or root / ".assay", reports or root / "reports", workloads, progress
    )
    names = list(fleet.nodes) if nodes is None else list(nodes)
    if unknown := [name for name in names if name not in fleet.nodes]:
        raise Trouble(f"the inventory has no node {', '.join(unknown)}", where=str(root / "inventory"))
    with shared(desk) as share:
        return _once(Memory(desk), share, share.mine(names), scan_fabric=scan_fabric)


def settle(again: Callable[[int], PassReport]) -> list[PassReport]:
    """Repeat passes until one is quiet, twelve at most; `again` is called with the number of the pass, from 0."""
    reports: list[PassReport] = []
    while len(reports) < PASSES and not (reports and reports[-1].quiet):
        reports.append(again(len(reports)))
    return reports


def _once(memory: Memory, share: Share, names: list[str], *, scan_fabric: bool) -> PassReport:
    desk = memory.desk
    at, start = desk.now, desk.ledger.head()
    accept_commit(desk)
    enroll(memory)
    with share.deciding():
        close_what_was_opened(memory, names)
    act_where_owed(memory, names)
    if scan_fabric:
        look_at_fabrics(desk, names)
    runs = look(memory, names)
    look_for_silence(desk, memory.everybody())
    with share.deciding():
        decide_now(memory, names)
    act_where_owed(memory, names)
    with seeing_to_tickets(desk.ledger) as ours:
        if ours:
            update_tickets(desk, memory)
            deliver_tickets(desk)
    return PassReport(at, desk.ledger.entries(after=start), runs)


def look(memory: Memory, names: Sequence[str], *, judged: bool = True) -> list[str]:
    """Collect the evidence of nodes, judge it, and tell the faults that it shows; return the runs' ids."""
    seen = look_at_nodes(memory.desk, memory.situation(), names)
    note_parts(memory.desk, seen)
    runs = judge_nodes(memory, names) if judged else []
    classify(memory, seen)
    return runs


def decide_now(memory: Memory, names: Collection[str] | None = None, asked: Collection[str] | None = None) -> int:
    """Decide; append each decision for `names` (None: all) with its transition, and return how many there were.

    `asked` are the nodes to decide about, all by default; the others are only counted.
    """
    situation = memory.situation(asked or ())
    made = [one for one in decide(situation, asked) if names is None or one.node in names]
    _write_down(memory, situation, made)
    return len(made)


def close_what_was_opened(memory: Memory, names: Collection[str]) -> None:
    """Decide about those `names` that others opened: nothing begun there may go on as if nobody had come in."""
    situation = memory.situation()
    _write_down(memory, situation, [one for one in close_again(situation) if one.node in names])


def _write_down(memory: Memory, situation: Situation, made: Collection[Decision]) -> None:
    views = {view.name: view for view in situation.nodes}
    entries = (journal.made(situation.policy, views[one.node], one, situation.now) for one in made)
    memory.desk.ledger.append(*(entry for lines in entries for entry in lines))


def act_where_owed(memory: Memory, names: Collection[str]) -> None:
    """Bring about what decisions ask for and history does not show as settled; nothing where nothing is."""
    if busy := at_work(memory, names):
        act(memory.desk, [name for name in names if name in busy], memory.stories())


def at_work(memory: Memory, names: Collection[str]) -> set[str]:
    """Return the nodes, of `names`, to which something is owed, and of all nodes those on which something was begun."""
    policy, chosen = memory.desk.policy, set(names)
    return {story.node for story in memory.awake() if story.in_flight or (story.node in chosen and owed(policy, story))}
