"""What the reader of a ticket asks first: what broke, since when, why we think so, who acts, and when it is back."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.model.text.lists import format_count
from assay.model.text.safe_text import escape_line
from assay.model.ticket import TicketRecord
from assay.model.timestamps import format_minute, format_time
from assay.tell.views.expected_return import SERVES, read_returns
from assay.tell.views.incident_story import NO_STORY, IncidentStory, NodeStory, read_stories

if TYPE_CHECKING:
    from assay.tell.views.records import RecordSource

MAX_ANSWER = 300
ACTORS = {
    "breaker": "whoever answers for the pool",
    "foreign": "whoever closed the node",
    "rollout": "whoever answers for the change",
    "trust": "a person who may say yes or no",
}
"""Who acts, by the kind of a ticket; technicians on all others."""


def answer_tickets(source: RecordSource, records: Collection[TicketRecord]) -> list[TicketRecord]:
    """Return tickets with their answers, as things are now; a closed one asks nothing more."""
    nodes = {record.ticket.node for record in records if not record.closed_at}
    states = [state for state in source.read_node_states() if state.node in nodes] if nodes else []
    stories, returns = read_stories(source, states), read_returns(source, states)
    now = format_minute(format_time(source.clock.now()))
    answered = []
    for record in records:
        node, page = record.ticket.node, source.fleet.find_page("tickets", record.ticket.id)
        back = f"{returns[node] or SERVES} (as of {now})" if node in returns else "not known"
        lines = _list_answers(record, stories.get(node, NO_STORY), back, page) if not record.closed_at else ()
        answered.append(replace(record, answers=tuple(map(_shorten, lines))))
    return answered


def _list_answers(record: TicketRecord, story: NodeStory, back: str, page: str) -> Iterator[str]:
    ticket, incident = record.ticket, _find_incident(record, story)
    first, *rest = incident.seen if incident else ticket.seen.splitlines() or [ticket.title]
    kind = ticket.key.partition("/")[0]
    more = f", and {format_count(len(rest), 'more sign')} in its evidence" if rest else ""
    if incident:
        yield f"What broke: {ticket.node}: {incident.happened}"
        yield f"Since: {format_minute(incident.since)}, last seen {format_minute(incident.last_seen)}{incident.again}"
    else:
        # the titles of these say what to do
        failed = {"stay": first.partition(": ")[0], "breaker": first.removeprefix("breaker: ").partition("; ")[0]}
        yield f"What broke: {ticket.cause or failed.get(kind, ticket.title)}"
        yield f"Since: {format_minute(record.opened_at)}, when the ticket was opened"
    yield f"Why we think so: {first}{more}"
    where = f"on {page}, or by " if page else "on the ticket's page, or by "
    certifies = f", which certifies {ticket.node}" if ticket.asks_for_certificate else ""
    done = f"then “Done, check it” {where}assay tickets done {ticket.id[:8]} --reason '…'{certifies}"
    yield f"Who acts: {ACTORS.get(kind, f'technicians, by the steps below; {done}')}"
    yield f"Back: {back}"


def _find_incident(record: TicketRecord, story: NodeStory) -> IncidentStory | None:
    """Return the incident that a ticket is about: by its key, or the worst one where its state is the work."""
    kind, _, rest = record.ticket.key.partition("/")
    if kind == "incident":
        return next((each for each in story.incidents if each.first == rest.rpartition("/")[2]), None)
    return next(iter(story.incidents), None) if kind in ("stay", "late") else None


def _shorten(line: str) -> str:
    text = escape_line(" ".join(line.split()))
    return text if len(text) <= MAX_ANSWER else f"{text[: MAX_ANSWER - 1]}…"
