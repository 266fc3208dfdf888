"""`assay tickets`: the work for technicians; `deliver` sends tickets to their sinks now."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import print_answer
from assay.cli.operator_orders import Who
from assay.cli.options import FleetDir, OutputFormat, TableFormat, argument, complete_nodes, hand_fleet_on, option
from assay.cli.workspace import Workspace
from assay.model.entries.tickets import DigestSentEntry, TicketDeliveredEntry
from assay.model.errors import AssayError
from assay.model.facts import fact
from assay.model.text.csv_rows import format_csv
from assay.model.text.lists import format_count
from assay.model.text.safe_text import escape_line
from assay.model.timestamps import format_minute

if TYPE_CHECKING:
    from assay.act.tickets.repair_history import MachineRepair
    from assay.model.ticket import TicketRecord
    from assay.tell.messages.routes import UndeliveredTicket


CSV_COLUMNS = (
    "id",
    "title",
    "node",
    "severity",
    "opened_at",
    "closed_at",
    "places",
    "expected",
    "seen",
    "steps",
    "verify",
)


FIRST_ROUND = "run `assay reconcile --once`"
REPAIR_COLUMNS = (
    *("ticket", "machine", "node", "part", "kind", "wrong", "opened_at", "updated_at", "closed_at", "closed_by"),
    *("recurrences", "vendor_days", "who", "exchanged", "steps"),
)


@fact
class TicketsAnswer:
    """The tickets, oldest first; with `--all`, closed ones too."""

    tickets: list[TicketRecord]
    """The tickets."""


@fact
class RepairsAnswer:
    """Repairs of machines, the newest first."""

    repairs: list[MachineRepair]
    """The repairs."""


@fact
class WorkDoneAnswer:
    """What became of a technician's word that the work is done."""

    recorded: bool
    """Whether it was recorded now; false if it was recorded before."""
    message: str
    """What comes next."""


@fact
class TicketPreviewAnswer:
    """What each route would send."""

    messages: dict[str, str]
    """The messages, by route."""


@fact
class DeliveryAnswer:
    """What was delivered to the ticket systems, and what was not."""

    delivered: list[TicketDeliveredEntry]
    """The tickets that sinks have now."""
    digests: list[DigestSentEntry]
    """The messages about several tickets that were sent."""
    undelivered: list[UndeliveredTicket]
    """What failed; the exit code is then 2."""


tickets_app = typer.Typer(add_completion=False)


@tickets_app.callback(invoke_without_command=True)
def tickets(
    context: typer.Context,
    all_: Annotated[bool, option("--all", "Show closed tickets too.")] = False,
    fleet: FleetDir = Path(),
    form: TableFormat = "text",
) -> None:
    """Show the open tickets, oldest first: what broke, who acts, the place, what to do, and what will close the ticket.

    stderr lists the sinks that lack a ticket.

    Exit codes: 0 shown; 2 the ledger or the fleet cannot be read, or no check has judged a node yet.
    """
    hand_fleet_on(context, fleet)
    if context.invoked_subcommand:
        return
    from assay.act.tickets.ticket_diff import list_tickets
    from assay.adapters.tickets.markdown import format_ticket_markdown
    from assay.ledger.location import read_all_entries
    from assay.tell.messages.routes import PostponedDeliveries
    from assay.tell.views.ticket_answers import answer_tickets

    workspace = Workspace(fleet.resolve())
    entries = read_all_entries(workspace.ledger_location)
    records = [record for record in list_tickets(entries) if all_ or not record.closed_at]
    for sink, reason in PostponedDeliveries(workspace.data_dir / "delivery.json").list_failures():
        print(f"not yet delivered to {sink}: {reason}", file=sys.stderr)  # noqa: T201 — beside the answer
    if not records and not (workspace.has_ledger and workspace.ledger_for_reading.outcomes_head()):
        raise AssayError("no check has judged a node yet, so nobody knows what needs hands", fix=FIRST_ROUND)
    if form == "csv":
        typer.echo("\n".join(format_csv(CSV_COLUMNS, records)))
        return
    lines, shown = [], records
    try:
        shown = answer_tickets(workspace, records)
    except AssayError as error:  # of a fleet that cannot be read, tickets are open all the same
        typer.echo(f"who acts, and when a node is back, is not known: {error}", err=True)
    for record in shown:
        _mark, title, *text = format_ticket_markdown(record, folds=False, escape=escape_line).split("\n")
        lines += [title, indent("\n".join(text), "  "), ""]  # only a title begins a line, whatever a machine said
    print_answer(TicketsAnswer(records), form, lines[:-1] or ["no open tickets"])
    workspace.print_page(form, "tickets")


@tickets_app.command()
def repairs(
    node: Annotated[str, argument("NODE", "Only of this machine.", complete=complete_nodes)] = "",
    serial: Annotated[str, option("--serial S", "Only of the machine or part with this serial number.")] = "",
    fleet: FleetDir = Path(),
    form: TableFormat = "text",
) -> None:
    """Show the repairs of machines, the newest first: what was wrong, what was done by whom, which parts went and came.

    Exit codes: 0 shown; 2 the ledger or the fleet cannot be read.
    """
    from assay.act.tickets.repair_history import REPAIRS, select_repairs
    from assay.ledger.ledger_reader import read_projection

    workspace = Workspace(fleet.resolve())
    chosen = select_repairs(read_projection(workspace.ledger_for_reading, REPAIRS), node, serial)
    if form == "csv":
        typer.echo("\n".join(format_csv(REPAIR_COLUMNS, chosen)))
        return
    lines = [line for repair in chosen for line in _format_repair(repair)]
    print_answer(RepairsAnswer(chosen), form, lines or ["no repair is recorded"])


def _format_repair(repair: MachineRepair) -> Iterator[str]:
    ended = f"closed {format_minute(repair.closed_at)}" if repair.closed_at else "open"
    again = f", {repair.recurrences} times before" if repair.recurrences else ""
    vendor = f", {repair.vendor_days:g} days at its vendor" if repair.vendor_days else ""
    yield escape_line(f"{repair.ticket[:8]}  {repair.wrong}")
    yield escape_line(f"  machine {repair.machine}, {ended}{again}{vendor}")
    for step in repair.steps:
        who = f" by {step.who}" if step.who else ""
        yield escape_line(f"  {format_minute(step.at)}  {step.event}{who}: {step.text}")


@tickets_app.command()
def done(
    ident: Annotated[str, argument("ID", "The ticket: the start of its id.")],
    reason: Annotated[str, option("--reason TEXT", "What you did.", show_default=False)],
    who: Who = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Say that the work of a ticket is done. assay then looks at once; only the proof closes the ticket.

    Of a ticket whose state asks for a certificate, this certifies the node.

    Exit codes: 0 recorded; 2 there is no such open ticket, or the ledger cannot be written.
    """
    from assay.act.orders.orders import find_ticket, record_done
    from assay.act.tickets.ticket_diff import TICKET_RECORD_KINDS, list_tickets
    from assay.cli.operator_orders import identify_operator

    workspace = Workspace(fleet.resolve())
    records = list_tickets(workspace.ledger.entries(kinds=TICKET_RECORD_KINDS))
    record, operator = find_ticket(records, ident), identify_operator(workspace, who, reason)
    state = next((state for state in workspace.read_node_states() if state.node == record.ticket.node), None)
    recorded, message = record_done(workspace.fleet, workspace.ledger, record, operator, state)
    print_answer(WorkDoneAnswer(recorded=recorded, message=message), form, [message])


@tickets_app.command()
def deliver(fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Deliver the tickets that a sink lacks, now.

    Exit codes: 0 every sink has all its tickets; 2 some deliveries failed.
    """
    from assay.tell.messages.delivery import TICKET_DELIVERED, deliver_tickets

    workspace = Workspace(fleet.resolve())
    controller = workspace.controller_context()
    with _hold_delivery(workspace):
        before = workspace.ledger.head()
        failed = deliver_tickets(controller, immediately=True)
        delivered = workspace.ledger.entries(kinds=[TICKET_DELIVERED], after=before)
        digests = workspace.ledger.entries(kinds=[DigestSentEntry.kind], after=before)
    deliveries = [TicketDeliveredEntry.read(entry) for entry in delivered]
    _print_delivery(deliveries, [DigestSentEntry.read(entry) for entry in digests], failed, form)
    raise typer.Exit(2 if failed else 0)


@tickets_app.command()
def preview(fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Show the messages that people would get of all open tickets, for each route, and send nothing. Also in the lab.

    A route for people tells of them in one message. Any other route gets each ticket: the worst one is shown.

    Exit codes: 0 shown; 2 no ticket is open, or the ledger or the fleet cannot be read.
    """
    from assay.tell.messages.delivery import format_previews

    workspace = Workspace(fleet.resolve())
    previews = format_previews(workspace)
    if not previews:
        raise AssayError(
            "no ticket is open, so no message would be sent", fix=f"{FIRST_ROUND}; in the lab: assay lab inject"
        )
    lines = [f"{route}\n{text}\n" for route, text in previews.items()]
    print_answer(TicketPreviewAnswer(previews), form, lines)


@contextmanager
def _hold_delivery(workspace: Workspace) -> Iterator[None]:
    """Be the only delivering process during the block. Raises AssayError that names the other one, if there is one."""
    from assay.act.loop.reconcile_pass import DELIVERY_LEASE, hold_delivery_lease
    from assay.ledger.leases import hold_controller_lock

    fix = "it delivers by itself within a minute, sooner after a change of a ticket; or stop it and try again"
    with hold_delivery_lease(workspace.ledger) as is_ours:
        if not is_ours:
            lease = workspace.ledger.leases().get(DELIVERY_LEASE)
            name = f" ({lease.holder})" if lease else ""
            raise AssayError(f"another controller{name} delivers the tickets", fix=fix)
        shared = workspace.ledger.is_shared
        with nullcontext() if shared else hold_controller_lock(workspace.data_dir, workspace.ledger, fix):
            yield


def _print_delivery(
    delivered: list[TicketDeliveredEntry], digests: list[DigestSentEntry], failed: list[UndeliveredTicket], form: str
) -> None:
    lines = [f"{body.ticket} → {body.sink} {body.external}".rstrip() for body in delivered]
    lines += [f"a digest of {format_count(body.count, 'ticket')} → {body.route}" for body in digests]
    print_answer(DeliveryAnswer(delivered, digests, failed), form, lines or ["nothing new to deliver"])
    for lack in failed if form == "text" else ():
        target = f"{lack.route} {lack.ticket}".strip()
        print(f"not delivered to {target}: {lack.reason}", file=sys.stderr)  # noqa: T201 — beside the answer
