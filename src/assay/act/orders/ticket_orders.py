"""What a technician may say of a ticket: that the work is done. It asks for the proof, and closes nothing."""

from __future__ import annotations

from collections.abc import Iterable

from assay.act.orders.operator_order import OperatorIdentity, OperatorOrder
from assay.model.entries.ticket_entries import TicketDoneEntry
from assay.model.errors import AssayError
from assay.model.ledger_entry import derive_id
from assay.model.ticket import TicketRecord


def find_ticket(records: Iterable[TicketRecord], ident: str) -> TicketRecord:
    """Return the ticket whose id begins so. Raises AssayError unless there is exactly one."""
    found = [record for record in records if ident and record.ticket.id.startswith(ident)]
    if len(found) != 1:
        what = "there is no ticket" if not found else f"{len(found)} tickets begin with"
        raise AssayError(f"{what} {ident}", fix="`assay tickets` lists them")
    return found[0]


def report_done(record: TicketRecord, operator: OperatorIdentity) -> OperatorOrder:
    """Say that the work of a ticket is done. Raises AssayError if the ticket is closed."""
    ticket = record.ticket
    if record.closed_at:
        what = f"ticket {ticket.id[:8]} is closed already, by {record.by}"
        raise AssayError(what, fix="`assay tickets --all` shows it")
    if record.done and (record.done.who, record.done.note) == (operator.who, operator.reason):
        return OperatorOrder(ticket.node, f"you have said so before. {describe_wait(record)}")
    ident = derive_id(TicketDoneEntry.kind, ticket.id, str(len(record.history)))
    entry = TicketDoneEntry(ticket.id, ticket.title, operator.who, operator.reason)
    text = f"{ticket.title}: noted, and looked at now. {describe_wait(record)}"
    return OperatorOrder(ticket.node, text, entry.make_entry(ident, operator.at, ticket.node))


def describe_wait(record: TicketRecord) -> str:
    """Return what closes a ticket now, in words."""
    checks = record.ticket.verify.splitlines()
    if not checks:
        return "The ticket closes when its node goes on."
    proof = checks[0] if len(checks) == 1 else f"each of {len(checks)} checks"
    return f"The ticket closes as soon as {proof} has passed."
