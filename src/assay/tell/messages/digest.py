"""A digest: one message about all the tickets that changed since the last one.

The ledger says what each route was told, and that a digest was started before it is sent. Sinks load this module, so
it imports little.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from assay.adapters.tickets.markdown import format_ticket_title
from assay.ledger.ledger_reader import read_projection
from assay.model.entries.tickets import DigestSentEntry, DigestStartedEntry
from assay.model.facts import frozen
from assay.model.faults.fault_record import rank_severity
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, Projection, derive_id
from assay.model.specs.technician_work import DigestSettings
from assay.model.text.lists import format_count, format_list
from assay.model.text.safe_text import escape_line
from assay.model.ticket import TicketRecord
from assay.model.timestamps import format_minute, parse_time
from assay.tell.messages.routes import AttemptRules, RouteAttempts, derive_destination_id, open_sink

if TYPE_CHECKING:
    from assay.model.specs.ticket_route import TicketRoute
    from assay.model.ticket import TicketEvent


DIGEST_KINDS = (DigestStartedEntry.kind, DigestSentEntry.kind)
MAX_LINES = 20
MAX_TITLE = 200
DETAILED = 5
"""Of so many tickets a message says cause, act and page; of the others, that they are there."""
REPEAT_NOTE = "An attempt to send this message broke off, so you may have it already."


@frozen
class DigestItem:
    """One ticket, and the last change of it that people are told."""

    record: TicketRecord
    event: TicketEvent

    @property
    def is_open(self) -> bool:
        """Whether the change left the ticket open."""
        return self.event.what != "closed"


@frozen
class Digest:
    """What one message tells. `id` is the same however often the message is sent.

    `settled` are the ids of earlier digests whose tickets are all closed now. `may_repeat` says that an earlier attempt
    broke off, so that the sink may have the message already. `pages`: where people open pages, "" if nobody says it.
    """

    id: str
    route: str
    items: tuple[DigestItem, ...]
    settled: tuple[str, ...] = ()
    may_repeat: bool = False
    pages: str = ""


@dataclass(slots=True)
class DigestJournal:
    """What the ledger knows of one route's digests: those that were started, which were sent, and when the last was."""

    started: dict[str, DigestStartedEntry] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)
    last_sent_at: str = ""

    @property
    def interrupted(self) -> DigestStartedEntry | None:
        """The digest that was started, and of which nobody knows whether it was sent."""
        return next((digest for ident, digest in self.started.items() if ident not in self.sent), None)

    def list_told_changes(self) -> dict[str, str]:
        """Return the time of the last change that was told of each ticket."""
        return {
            ticket: at
            for ident, digest in self.started.items()
            if ident in self.sent
            for ticket, at in digest.tickets.items()
        }


Journals = dict[tuple[str, str], DigestJournal]


def _add_to_journals(journals: Journals, entry: LedgerEntry) -> Journals:
    if entry.kind == DigestStartedEntry.kind:
        started = DigestStartedEntry.read(entry)
        journal = journals.setdefault((started.route, started.destination), DigestJournal())
        journal.started[started.digest] = started
        return journals
    ident = DigestSentEntry.read(entry).digest
    for journal in journals.values():
        if ident in journal.started:
            journal.sent.add(ident)
            journal.last_sent_at = entry.at
    return journals


DIGESTS = Projection[Journals](DIGEST_KINDS, dict, _add_to_journals, deepcopy)
"""The journals by route and destination: a route that was pointed elsewhere begins anew."""


def select_tickets(tickets: Iterable[TicketRecord], settings: DigestSettings, fleet: Fleet) -> list[TicketRecord]:
    """Return the tickets that a route tells of."""
    selected = []
    for record in tickets:
        node = fleet.nodes.get(record.ticket.node)
        is_severe = not settings.severities or record.ticket.severity in settings.severities
        if is_severe and (not settings.pools or (node and node.pool in settings.pools)):
            selected.append(record)
    return selected


def find_news(tickets: Iterable[TicketRecord], known: Mapping[str, str], settings: DigestSettings) -> list[DigestItem]:
    """Return each ticket with a change that nobody was told. Who never heard of a ticket is not told of its closing."""
    items: list[DigestItem] = []
    for record in tickets:
        last = next((event for event in reversed(record.history) if event.what in settings.events), None)
        told_at = known.get(record.ticket.id, "")
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
        started.digest
        for started in journal.started.values()
        if started.tickets.keys() & changes.keys() & closed and started.tickets.keys() <= closed
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


def make_preview(route: str, settings: DigestSettings, tickets: Iterable[TicketRecord], fleet: Fleet) -> Digest:
    """Return the message that would tell of every open ticket at once; of the lab's too, which are never sent."""
    opened = [record for record in select_tickets(tickets, settings, fleet) if not record.closed_at]
    items = tuple(DigestItem(record, record.history[0]) for record in opened)
    return Digest("preview", route, items, pages=replace(fleet, is_lab=False).find_page())


class DigestDelivery:
    """The digests of one route. `settings` are those of the route's sink."""

    def __init__(
        self, route: TicketRoute, settings: DigestSettings, rules: AttemptRules, attempts: RouteAttempts
    ) -> None:
        self._route, self._settings, self._rules, self._attempts = route, settings, rules, attempts
        self._destination = derive_destination_id(route)

    def deliver(self, tickets: Sequence[TicketRecord]) -> None:
        """Send the digest that was interrupted, then one of all news. Raises AssayError if the sink takes none."""
        journals = read_projection(self._rules.context.ledger, DIGESTS)
        journal = journals.get((self._route.name, self._destination)) or DigestJournal()
        if journal.interrupted:
            self._send(journal.interrupted, tickets, may_repeat=True)
        elif self._may_send(journal):
            self._tell_news(journal, tickets)

    def _tell_news(self, journal: DigestJournal, tickets: Sequence[TicketRecord]) -> None:
        selected = select_tickets(tickets, self._settings, self._rules.context.fleet)
        if news := find_news(selected, journal.list_told_changes(), self._settings):
            started = begin_digest(news, tickets, journal, self._route.name, self._destination)
            self._append(started)
            self._send(started, tickets, may_repeat=False)

    def _may_send(self, journal: DigestJournal) -> bool:
        if self._rules.immediately or not journal.last_sent_at:
            return True
        since = self._rules.context.clock.now() - parse_time(journal.last_sent_at)
        return since >= timedelta(minutes=self._settings.every_minutes)

    def _send(self, started: DigestStartedEntry, tickets: Sequence[TicketRecord], *, may_repeat: bool) -> None:
        digest = build_digest(started, tickets, may_repeat=may_repeat)
        digest = replace(digest, pages=self._rules.context.fleet.find_page())
        sink = open_sink(self._route, self._rules.context)

        def announce() -> None:
            nonlocal digest
            current, digest = digest, replace(digest, may_repeat=True)
            sink.announce(current)

        self._attempts.call(announce)
        self._append(DigestSentEntry(started.digest, self._route.name, len(started.tickets)))

    def _append(self, content: DigestStartedEntry | DigestSentEntry) -> None:
        context = self._rules.context
        context.ledger.append(content.make_entry(derive_id(content.kind, content.digest), context.now))


def format_headline(digest: Digest) -> str:
    """Return what happened in one line: `assay: 3 tickets opened, 1 ticket closed`. One ticket gives its title."""
    if len(digest.items) == 1:
        (item,) = digest.items
        return f"assay: {item.event.what}: {format_ticket_title(item.record, MAX_TITLE)}"
    counts = Counter(item.event.what for item in digest.items)
    words = [
        f"{format_count(counts[event], 'ticket')} {event}"
        for event in ("opened", "reopened", "closed")
        if counts[event]
    ]
    return f"assay: {', '.join(words)}"


def sort_items(digest: Digest) -> list[DigestItem]:
    """Return its tickets, the worst first."""
    return sorted(
        digest.items, key=lambda item: (not item.is_open, rank_severity(item.record.ticket.severity), item.event.at)
    )


def format_digest_lines(digest: Digest) -> list[str]:
    """Return the lines below the headline, at most a few more than MAX_LINES."""
    items = sort_items(digest)
    lines = []
    for number, item in enumerate(items[:MAX_LINES]):
        lines += [_format_item(item), *(_list_details(item, digest.pages) if number < DETAILED else ())]
    if len(items) > MAX_LINES:
        lines.append(f"… and {len(items) - MAX_LINES} more; `assay tickets` lists all")
        racks = Counter[str]()
        for item in items:
            racks.update({spot.rack for spot in item.record.ticket.places if spot.rack})
        lines.append(f"racks: {format_list([f'{rack} {count}' for rack, count in racks.most_common()])}")
    return [*lines, REPEAT_NOTE] if digest.may_repeat else lines


def find_worst_severity(digest: Digest) -> str:
    """Return the worst severity of the open tickets, "" if none is open."""
    return min((item.record.ticket.severity for item in digest.items if item.is_open), key=rank_severity, default="")


def _format_item(item: DigestItem) -> str:
    ticket = item.record.ticket
    place = next((f"{spot.rack} U{spot.u}" if spot.u else spot.rack for spot in ticket.places if spot.rack), "")
    about = ", ".join(filter(None, [ticket.severity, place, f"ticket {ticket.id}"]))
    title = format_ticket_title(item.record, MAX_TITLE)
    return f"{format_minute(item.event.at)} {item.event.what}: {title} ({about})"


def _list_details(item: DigestItem, pages: str) -> Iterator[str]:
    """Yield the cause and the first act of an open ticket, and the address of its page."""
    ticket = item.record.ticket
    act = next(iter(ticket.steps.splitlines()), "")
    for label, text in (("cause", ticket.cause or ticket.seen), ("do", act)) if item.is_open else ():
        if words := escape_line(" ".join("; ".join(text.splitlines()).split())):
            yield f"  {label}: {words if len(words) <= MAX_TITLE else f'{words[: MAX_TITLE - 1]}…'}"
    if pages:
        yield f"  {pages}/tickets/{ticket.id}"
