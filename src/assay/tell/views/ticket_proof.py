"""How a ticket stands after a technician said that the work is done: whether its proof was taken, and what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.model.outcome import RecordedOutcome
from assay.model.ticket import TicketRecord
from assay.model.timestamps import parse_time
from assay.tell.views.records import RecordSource

ProofState = Literal["open", "waits", "refuted", "closed"]
"""`waits`: for the proof, since a technician said that it is done. `refuted`: the check was run, and still fails."""


@dataclass(frozen=True, slots=True)
class TicketProof:
    """Where a ticket stands, and what the checks that failed after the work say, one line for each."""

    state: ProofState
    lines: tuple[str, ...] = ()


def find_ticket_proof(records: RecordSource, record: TicketRecord) -> TicketProof:
    """Return how the proof of a ticket stands."""
    if record.closed_at:
        return TicketProof("closed")
    if record.done is None:
        return TicketProof("open")
    verbs = {"fail": "still fails", "error": "could not be judged", "skip": "was skipped"}
    outcomes = [recorded.outcome for recorded in _list_failed(records, record, record.done.at)]
    failed = tuple(f"{outcome.subject} {verbs[outcome.verdict]}: {outcome.reason}" for outcome in outcomes)
    return TicketProof("refuted" if failed else "waits", failed)


def _list_failed(records: RecordSource, record: TicketRecord, since: str) -> list[RecordedOutcome]:
    """Return the outcomes of the ticket's checks, measured since a time, that are no pass."""
    checks = {line for line in record.ticket.verify.splitlines() if line.startswith("suites/")}
    if not checks or not record.ticket.node:
        return []
    newest = records.ledger_for_reading.latest(nodes=[record.ticket.node])
    return [
        recorded
        for recorded in newest
        if f"{recorded.outcome.check}[{recorded.outcome.subject}]" in checks
        and recorded.outcome.verdict != "pass"
        and parse_time(recorded.measured_at) > parse_time(since)
    ]
