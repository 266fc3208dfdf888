"""`assay reconcile`: observe, validate, decide and act: once, until nothing changes, or continuously."""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import HOW, FleetDir, Nodes, OutputFormat, Pool, option
from assay.cli.service_log import LogFormat, open_service_log
from assay.cli.workspace import Workspace, select_nodes
from assay.model.errors import AssayError, require_extra
from assay.model.facts import fact, to_json
from assay.model.service_manager import ALIVE, READY, STOPPING, notify_reloading, notify_service_manager

if TYPE_CHECKING:
    from assay.act.loop.context import ControllerContext
    from assay.act.loop.reconcile_loop import ReconcileLoop
    from assay.act.loop.reconcile_pass import PassReport
    from assay.act.schedules.due_slots import SlotTask
    from assay.model.fleet import Fleet
    from assay.model.ledger_entry import LedgerEntry


@fact
class DueSlot:
    """A scheduled job that is due and that a round does not run."""

    schedule: str
    """The name of the schedule."""
    of: str
    """The pool or fabric that it is for."""
    slot: str
    """When it was due: ISO 8601 with the offset of UTC."""


@fact
class ReconcileAnswer:
    """What one round of the controller did."""

    passes: list[PassReport]
    """The passes of the round."""
    due: list[DueSlot]
    """The scheduled jobs that are due: `assay schedules run` runs them."""


LOG = logging.getLogger("assay.reconcile")

Once = Annotated[bool, option("--once", "Make one round over all nodes, then exit.", group=HOW)]
Settle = Annotated[bool, option("--settle", "Repeat rounds until nothing changes, 12 at most, then exit.", group=HOW)]
Interval = Annotated[
    float | None,
    option("--interval S", "Seconds between two observations of a node. Default: specs/schedules.", group=HOW, min=1),
]
Metrics = Annotated[
    str,
    option(
        "--metrics IP:PORT", "Give a Prometheus the metrics there, at /metrics, and /healthz and /readyz.", group=HOW
    ),
]


def reconcile(
    once: Once = False,
    settle: Settle = False,
    interval: Interval = None,
    nodes: Nodes = None,
    pool: Pool = "",
    metrics: Metrics = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
    log_format: LogFormat = "text",
) -> None:
    """Run the controller: observe, validate, decide and act. Changes go to stdout, progress to stderr.

    By default it runs until SIGTERM or Ctrl-C: it observes each node on its schedule, reacts to new ledger entries at
    once, and runs the jobs of specs/schedules. With --once or --settle it observes all nodes and fabrics, and only
    lists the scheduled jobs that are due: `assay schedules run` runs them. SIGHUP makes the loop read the fleet again;
    in a terminal, which hangs up by it, it ends the loop. A fleet in which `assay check` finds errors is refused, but
    not its lab.

    Exit codes: 0 ended normally; 1 after --once or --settle, the breaker holds nodes back; 2 it could not run.
    """
    require_extra("ansible")  # a remedy that cannot run would send its node to people
    open_service_log("reconcile", log_format)
    workspace = Workspace(fleet.resolve())
    select = partial(select_nodes, names=nodes or [], pools=[pool] if pool else [])
    names = select(workspace.fleet)
    if metrics and (once or settle):
        fix = "leave out --metrics, and call `assay metrics --to FILE` after it"
        raise AssayError("a process that ends after its round cannot serve metrics", fix=fix)
    workspace.fleet_reloader(LOG.info).refuse_errors(workspace.fleet)
    if not once and not settle:
        _run_loop(workspace, select, interval, form, metrics)
        return
    from assay.act.loop.rack_leases import hold_rack_assignment
    from assay.act.loop.reconcile_pass import reconcile_once, repeat_until_unchanged
    from assay.act.schedules.slot_runner import find_unattended_tasks

    print_changes = _make_change_printer("text") if form == "text" else lambda _: None

    with hold_rack_assignment(_make_context(workspace)) as assignment:

        def run_pass(number: int) -> PassReport:
            report = reconcile_once(_make_context(workspace), names, scan_fabric=number == 0, assignment=assignment)
            print_changes(report.entries)
            return report

        reports = repeat_until_unchanged(run_pass) if settle else [run_pass(0)]
    _print_passes(reports, find_unattended_tasks(workspace.controller_context(LOG.debug)), form)
    if held := reports[-1].held:
        more = f" and {len(held) - 1} more" if held[1:] else ""
        LOG.info(f"the breaker holds back {held[0]}{more}: find what they have in common\n  → assay breaker")
        raise typer.Exit(1)


def _run_loop(
    workspace: Workspace, select: Callable[[Fleet], list[str]], interval: float | None, form: str, metrics: str
) -> None:
    from assay.act.loop.rack_leases import hold_rack_assignment
    from assay.act.loop.reconcile_loop import LoopListener, ReconcileLoop
    from assay.act.loop.snapshot import FleetSnapshotCache
    from assay.adapters.bmc.session import BmcSessionPool

    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    reloader = workspace.fleet_reloader(LOG.info)
    listener = LoopListener(_make_change_printer(form), LOG.info, partial(notify_service_manager, READY, ALIVE))
    with closing(BmcSessionPool()) as sessions:
        context = replace(_make_context(workspace), bmc_sessions=sessions)
        fleet_state = FleetSnapshotCache(context)
        with hold_rack_assignment(context) as assignment:
            if metrics:
                from assay.tell.server.metrics_routes import start_metrics_server

                url = start_metrics_server(metrics, lambda: fleet_state.context, lambda: reloader.is_usable, LOG.info)
                LOG.info(f"metrics at {url}")
            loop = ReconcileLoop(fleet_state, assignment, reloader, select, listener, interval)
            _handle_hangup(loop, stop)
            loop.run(stop)
    notify_service_manager(STOPPING)
    LOG.info("stopped; the next start continues unfinished effects")


def _handle_hangup(loop: ReconcileLoop, stop: Event) -> None:
    """Let SIGHUP read the fleet again; in a terminal it says that nobody is there any more, so it ends the loop."""

    def read_again(*_: object) -> None:
        LOG.info("SIGHUP: reads the fleet again")
        notify_reloading()  # the loop's next turn says that it is ready
        loop.read_fleet_again()

    signal.signal(signal.SIGHUP, (lambda *_: stop.set()) if sys.stdin and sys.stdin.isatty() else read_again)


def _make_context(workspace: Workspace) -> ControllerContext:
    from assay.tell.messages.customer_teller import CustomerTeller
    from assay.tell.messages.delivery import deliver_tickets

    return replace(workspace.controller_context(LOG.debug), tellers=(deliver_tickets, CustomerTeller()))


def _print_passes(reports: list[PassReport], due: list[SlotTask], form: str) -> None:
    if due:
        LOG.info(f"due, but a round does not run scheduled jobs: {', '.join(map(str, due))}\n  → assay schedules run")
    if form == "json":
        slots = [DueSlot(schedule=task.line.name, of=task.line.target, slot=task.slot.isoformat()) for task in due]
        print(format_answer(ReconcileAnswer(passes=reports, due=slots)))  # noqa: T201 — the answer
        return
    if not any(report.entries for report in reports):
        print("nothing changed")  # noqa: T201 — the answer


def _make_change_printer(form: str) -> Callable[[list[LedgerEntry]], None]:
    """Return a function that prints ledger entries as they are written, a line each, as text or JSON."""
    from assay.decide.state.entry_messages import EntryFormatter, format_entry

    formatter = EntryFormatter()

    def print_changes(entries: list[LedgerEntry]) -> None:
        for entry in entries:
            line = json.dumps(to_json(entry)) if form == "json" else format_entry(entry, formatter)
            print(line, flush=True)  # noqa: T201 — the answer

    return print_changes
