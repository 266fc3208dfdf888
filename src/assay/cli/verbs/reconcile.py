"""`assay reconcile`: observe, validate, decide and act, once, until quiet, or continuously."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.workspace import FleetDir, OutputFormat, Workspace
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.controller.context import ControllerContext as Work
    from assay.controller.reconcile_pass import PassReport
    from assay.controller.schedules.due_slots import SlotTask
    from assay.model.fleet import Fleet
    from assay.model.ledger_entry import LedgerEntry

reconcile_app = typer.Typer(add_completion=False, help="Observe, validate, decide and act.")

Once = Annotated[bool, typer.Option("--once", help="One pass over every node, and back.")]
Nodes = Annotated[list[str] | None, typer.Option("--node", help="Only this node; may be repeated.")]
Pool = Annotated[str, typer.Option("--pool", help="Only the nodes of this pool.")]
Settle = Annotated[bool, typer.Option("--settle", help="Repeat passes until nothing changes, twelve at most.")]
Interval = Annotated[
    float | None,
    typer.Option(
        "--interval", min=1, help="Seconds of the fleet's time between two looks at a node (specs/schedules)."
    ),
]


@reconcile_app.command()
def reconcile(
    once: Once = False,
    nodes: Nodes = None,
    pool: Pool = "",
    settle: Settle = False,
    interval: Interval = None,
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Take the fleet round the loop, and say what changed and why. Progress goes to standard error.

    Without --once or --settle it goes on until SIGTERM or Ctrl-C: it looks at each node in its turn, answers what is
    new in the ledger at once, and does by the clock what specs/schedules say. With them it looks at every node and
    fabric, and names what else is due by the clock: `assay schedules run` does that.
    """
    desk = Workspace(fleet.resolve())
    names = _select_nodes(desk.fleet, nodes or [], pool)
    if once or settle:
        from assay.controller import reconcile_pass as controller

        passes = (
            controller.repeat_until_unchanged(lambda number: _run_pass(desk, names, scan=number == 0))
            if settle
            else None
        )
        _print_passes(passes or [_run_pass(desk, names)], _tasks_left_to_schedules(desk), form)
        return
    _run_loop(desk, partial(_select_nodes, nodes=nodes or [], pool=pool), interval, form)


def _run_loop(desk: Workspace, chosen: Callable[[Fleet], list[str]], interval: float | None, form: str) -> None:
    from assay.controller.cache.fleet_state import FleetStateCache
    from assay.controller.fleet_reload import FleetReloader
    from assay.controller.rack_leases import hold_rack_assignment
    from assay.controller.reconcile_loop import LoopListener, ReconcileLoop

    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    work = _controller_context(desk)
    current = FleetReloader(desk.root, partial(reload_fleet, desk), desk.clock, _print_message, desk.overlays)
    with hold_rack_assignment(work) as share:
        ReconcileLoop(
            FleetStateCache(work),
            share,
            current,
            chosen,
            LoopListener(_make_change_printer(form), _print_message),
            interval,
        ).run(stop)
    _print_message("stopped; what was begun is taken up by the next start")


def reload_fleet(desk: Workspace) -> Fleet:
    """Return the fleet as its files say now."""
    from assay.fleet.fleet_loader import load_fleet

    return load_fleet(desk.root, desk.overlays)


def _controller_context(desk: Workspace) -> Work:
    from assay.controller.context import ControllerContext as Work
    from assay.observe.evidence_store import EvidenceStore

    store = EvidenceStore(desk.evidence_dir)
    return Work(desk.fleet, desk.ledger, store, desk.clock, desk.data_dir, desk.reports_dir, progress=_progress)


def _run_pass(desk: Workspace, names: list[str], *, scan: bool = True) -> PassReport:
    from assay.controller.reconcile_pass import reconcile_once
    from assay.observe.evidence_store import EvidenceStore

    return reconcile_once(
        desk.fleet,
        desk.ledger,
        EvidenceStore(desk.evidence_dir),
        desk.clock,
        nodes=names,
        home=desk.data_dir,
        reports=desk.reports_dir,
        scan_fabric=scan,
        progress=_progress,
    )


def _select_nodes(fleet: Fleet, nodes: list[str], pool: str) -> list[str]:
    if unknown := [name for name in nodes if name not in fleet.nodes]:
        raise AssayError(f"the inventory has no node {', '.join(unknown)}", where=str(fleet.root / "inventory"))
    chosen = [one.name for one in fleet.nodes.values() if pool in ("", one.pool)]
    chosen = [name for name in chosen if not nodes or name in nodes]
    if not chosen:
        pools = ", ".join(sorted({node.pool for node in fleet.nodes.values()}))
        raise AssayError("no node to reconcile", fix=f"the pools are {pools or 'none: the inventory is empty'}")
    return chosen


def _print_message(text: str) -> None:
    from assay.model.secret_redaction import redact

    print(f"assay reconcile: {redact(text)}", file=sys.stderr, flush=True)  # noqa: T201 — for people


def _progress(line: str) -> None:
    print(f"· {line}", file=sys.stderr, flush=True)  # noqa: T201 — people wait for this


def _make_change_printer(form: str) -> Callable[[list[LedgerEntry]], None]:
    """Return what prints each change as it comes, a line of text or of JSON; what was told once is known by name."""
    from assay.lifecycle.entry_messages import EntryFormatter, format_entry

    teller = EntryFormatter()

    def tell(entries: list[LedgerEntry]) -> None:
        for entry in entries:
            told = json.dumps(_entry_as_json(entry)) if form == "json" else format_entry(entry, teller)
            print(told, flush=True)  # noqa: T201 — the answer

    return tell


def _tasks_left_to_schedules(desk: Workspace) -> list[SlotTask]:
    from assay.controller.schedules.slot_runner import find_unattended_tasks

    return find_unattended_tasks(_controller_context(desk))


def _print_passes(passes: list[PassReport], left: list[SlotTask], form: str) -> None:
    if left:
        _print_message(
            f"due by the clock, which a pass leaves alone: {', '.join(map(str, left))}\n  → assay schedules run"
        )
    if form == "json":
        due = [{"schedule": task.line.name, "of": task.line.target, "slot": task.slot.isoformat()} for task in left]
        print(json.dumps({"passes": [_pass_as_json(one) for one in passes], "due": due}))  # noqa: T201 — the answer
        return
    from assay.lifecycle.entry_messages import format_entries

    told = format_entries([entry for report in passes for entry in report.entries])
    print("\n".join(told) if told else "nothing changed")  # noqa: T201 — the answer


def _pass_as_json(report: PassReport) -> dict[str, Any]:
    return {"at": report.at, "changes": [_entry_as_json(one) for one in report.entries], "runs": report.runs}


def _entry_as_json(one: LedgerEntry) -> dict[str, Any]:
    return {"at": one.at, "kind": one.kind, "node": one.node, "body": one.body}
