"""Sends digests: the ledger says what each route was told, and that a digest was started before it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from assay.model.entries.ticket_entries import DigestSentEntry, DigestStartedEntry
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.sink_settings import DigestSettings
from assay.model.ticket import TicketRecord
from assay.model.timestamps import parse_time
from assay.tell.messages.digest_journal import (
    DigestJournal,
    begin_digest,
    build_digest,
    find_news,
    read_digest_journal,
    select_tickets,
)
from assay.tell.messages.route_attempts import AttemptRules, RouteAttempts
from assay.tell.messages.ticket_routes import derive_destination_id, open_sink

if TYPE_CHECKING:
    from assay.model.specs.ticket_route import TicketRoute


class DigestDelivery:
    """The digests of one route. `settings` are those of the route's sink."""

    def __init__(
        self, route: TicketRoute, settings: DigestSettings, rules: AttemptRules, attempts: RouteAttempts
    ) -> None:
        self._route, self._settings, self._rules, self._attempts = route, settings, rules, attempts
        self._destination = derive_destination_id(route)

    def deliver(self, tickets: Sequence[TicketRecord], entries: Sequence[LedgerEntry]) -> None:
        """Send the digest that was interrupted, then one of all news. Raises AssayError if the sink takes none."""
        journal = read_digest_journal(entries, self._route.name, self._destination)
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
        sink = open_sink(self._route, self._rules.context)

        def announce() -> None:
            nonlocal digest
            told, digest = digest, replace(digest, may_repeat=True)
            sink.announce(told)

        self._attempts.call(announce)
        self._append(DigestSentEntry(started.digest, self._route.name, len(started.tickets)))

    def _append(self, content: DigestStartedEntry | DigestSentEntry) -> None:
        context = self._rules.context
        context.ledger.append(content.make_entry(derive_id(content.kind, content.digest), context.now))
