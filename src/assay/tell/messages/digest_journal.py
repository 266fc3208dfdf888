"""Which digests the ledger knows of, what nobody was told yet, and the next digest. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from assay.model.entries.ticket_entries import DigestSentEntry, DigestStartedEntry
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.sink_settings import DigestSettings
from assay.model.ticket import TicketRecord
from assay.tell.messages.digest import Digest, DigestItem

DIGEST_KINDS = (DigestStartedEntry.kind, DigestSentEntry.kind)


@dataclass(slots=True)
class DigestJournal:
    """What the ledger knows of one route's digests: those that were started, which were sent, and when the last was."""

    started: dict[str, DigestStartedEntry] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)
    last_sent_at: str = ""

    @property
    def interrupted(self) -> DigestStartedEntry | None:
        """The digest that was started, and of which nobody knows whether it was sent."""
        return next((one for ident, one in self.started.items() if ident not in self.sent), None)

    def list_told_changes(self) -> dict[str, str]:
        """Return the time of the last change that was told of each ticket."""
        return {
            ticket: at
            for ident, one in self.started.items()
            if ident in self.sent
            for ticket, at in one.tickets.items()
        }


def read_digest_journal(entries: Iterable[LedgerEntry], route: str, destination: str) -> DigestJournal:
    """Return the journal of a route. After the route was pointed elsewhere, it is empty."""
    journal = DigestJournal()
    for entry in entries:
        if entry.kind == DigestStartedEntry.kind:
            started = DigestStartedEntry.read(entry)
            if (started.route, started.destination) == (route, destination):
                journal.started[started.digest] = started
        elif entry.kind == DigestSentEntry.kind and (ident := DigestSentEntry.read(entry).digest) in journal.started:
            journal.sent.add(ident)
            journal.last_sent_at = entry.at
    return journal


def select_tickets(tickets: Iterable[TicketRecord], settings: DigestSettings, fleet: Fleet) -> list[TicketRecord]:
    """Return the tickets that a route tells of."""
    return [
        record
        for record in tickets
        if (not settings.severities or record.ticket.severity in settings.severities)
        and (not settings.pools or _find_pool(record, fleet) in settings.pools)
    ]


def find_news(tickets: Iterable[TicketRecord], told: Mapping[str, str], settings: DigestSettings) -> list[DigestItem]:
    """Return each ticket with a change that nobody was told. Who never heard of a ticket is not told of its closing."""
    items: list[DigestItem] = []
    for record in tickets:
        last = next((event for event in reversed(record.history) if event.what in settings.events), None)
        told_at = told.get(record.ticket.id, "")
        if last and last.at > told_at and (told_at or not record.closed_at):
            items.append(DigestItem(record, last))
    return items


def begin_digest(
    news: Sequence[DigestItem], tickets: Iterable[TicketRecord], journal: DigestJournal, route: str, destination: str
) -> DigestStartedEntry:
    """Return the entry that begins the digest of some news."""
    changes = {item.record.ticket.id: item.event.at for item in news}
    ident = derive_id("digest", route, destination, json.dumps(changes, sort_keys=True))
    closed = {record.ticket.id for record in tickets if record.closed_at}
    settled = [
        one.digest
        for one in journal.started.values()
        if one.tickets.keys() & changes.keys() & closed and one.tickets.keys() <= closed
    ]
    return DigestStartedEntry(ident, route, destination, changes, tuple(settled))


def build_digest(started: DigestStartedEntry, tickets: Iterable[TicketRecord], *, may_repeat: bool) -> Digest:
    """Return the message of an entry: the same one each time, as tickets keep their history."""
    records = {record.ticket.id: record for record in tickets}
    items = [
        DigestItem(record, next(event for event in reversed(record.history) if event.at == at))
        for ident, at in started.tickets.items()
        if (record := records.get(ident))
    ]
    return Digest(started.digest, started.route, tuple(items), started.settled, may_repeat)


def _find_pool(record: TicketRecord, fleet: Fleet) -> str:
    node = fleet.nodes.get(record.ticket.node)
    return node.pool if node else ""
