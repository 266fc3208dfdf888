"""What the reader of a ticket asks first: what broke, since when, why we think so, who acts, and when it is back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.model.text.lists import format_count
from assay.model.text.safe_text import escape_line
from assay.model.ticket import TicketRecord
from assay.model.timestamps import format_minute, format_time
from assay.tell.views.expected_return import SERVES, read_returns
from assay.tell.views.incident_story import NO_STORY, IncidentStory, NodeStory, read_stories
from assay.tell.views.next_step import find_actor, list_named_nodes

if TYPE_CHECKING:
    from assay.tell.views.records import RecordSource

MAX_ANSWER = 300


def answer_tickets(source: RecordSource, records: Collection[TicketRecord]) -> list[TicketRecord]:
    """Return tickets with their answers, as things are now; a closed one asks nothing more."""
    nodes = {name for record in records if not record.closed_at for name in list_named_nodes(record)}
    states = [state for state in source.read_node_states() if state.node in nodes] if nodes else []
    stories, returns = read_stories(source, states), read_returns(source, states)
    now = format_minute(format_time(source.clock.now()))
    answered = []
    for record in records:
        node, page = record.ticket.node, source.fleet.find_page("tickets", record.ticket.id)
        back = f"{returns[node] or SERVES} (as of {now})" if node in returns else "not known"
        lines = _list_answers(record, stories, back, page) if not record.closed_at else ()
        answered.append(replace(record, answers=tuple(map(_shorten, lines))))
    return answered


def _list_answers(record: TicketRecord, stories: Mapping[str, NodeStory], back: str, page: str) -> Iterator[str]:
    ticket, incidents = record.ticket, _list_incidents(record, stories)
    incident = incidents[0] if len(incidents) == 1 else None
    first, *rest = incident.seen if incident else ticket.seen.splitlines() or [ticket.title]
    kind = ticket.key.partition("/")[0]
    more = f", and {format_count(len(rest), 'more sign')} in its evidence" if rest else ""
    # the titles of these say what to do
    failed = {"stay": first.partition(": ")[0], "breaker": first.removeprefix("breaker: ").partition("; ")[0]}
    broke = f"{ticket.node}: {incident.happened}" if incident else ticket.cause or failed.get(kind, ticket.title)
    yield f"What broke: {broke}"
    if incidents:
        since, seen = min(each.since for each in incidents), max(each.last_seen for each in incidents)
        again = incident.again if incident else ""
        yield f"Since: {format_minute(since)}, last seen {format_minute(seen)}{again}"
    else:
        yield f"Since: {format_minute(record.opened_at)}, when the ticket was opened"
    yield f"Why we think so: {first}{more}"
    where = f"on {page}, or by " if page else "on the ticket's page, or by "
    certifies = f", which certifies {ticket.node}" if ticket.asks_for_certificate else ""
    done = f"then “Done, check it” {where}assay tickets done {ticket.id[:8]} --reason '…'{certifies}"
    yield f"Who acts: {find_actor(ticket.key) or f'technicians, by the steps below; {done}'}"
    yield f"Back: {back}"


def _list_incidents(record: TicketRecord, stories: Mapping[str, NodeStory]) -> list[IncidentStory]:
    """Return the incidents that a ticket is about.

    That is the one in its key, the worst one where a state is the work, or those on the ends of a cable, or of the
    nodes that a breaker holds back or that share something.
    """
    kind, _, rest = record.ticket.key.partition("/")
    own = stories.get(record.ticket.node, NO_STORY).incidents
    if kind == "incident":
        return [each for each in own if each.first == rest.rpartition("/")[2]][:1]
    if kind in ("stay", "late"):
        return [*own[:1]]
    every = [
        (name, each) for name in sorted(list_named_nodes(record)) for each in stories.get(name, NO_STORY).incidents
    ]
    if kind == "fabric":
        ends = {place.device for place in record.ticket.places}
        return [each for name, each in every if f"{name} {each.part}" in ends]
    lines = record.ticket.seen.splitlines() if kind == "shared" else ()
    classes = {rest.rpartition("/")[2]} if kind == "breaker" else {line.partition(" on ")[0] for line in lines}
    return [each for _, each in every if each.fault_class in classes]


def _shorten(line: str) -> str:
    text = escape_line(" ".join(line.split()))
    return text if len(text) <= MAX_ANSWER else f"{text[: MAX_ANSWER - 1]}…"
