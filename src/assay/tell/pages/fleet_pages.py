"""The pages of more than a node: fleet, racks, pools, machines, rollouts, tickets, measurements, files, customers."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from operator import attrgetter
from typing import Literal

from markupsafe import Markup

from assay.act.orders.orders import describe_wait, list_rollout_orders
from assay.act.tickets.ticket_updates import FABRIC_SCAN
from assay.decide.faults.telemetry_silence import list_unread
from assay.decide.moves.held_answers import list_open_breakers
from assay.model.facts import frozen
from assay.model.faults.fault_record import rank_severity
from assay.model.outcome import RecordedOutcome
from assay.model.ticket import TicketRecord
from assay.model.timestamps import format_time, parse_time
from assay.observe.last_seen import CONTACTS_FILE, LastSeen
from assay.tell.customer.view import build_customer_view
from assay.tell.pages.fabric_pages import list_drawn_faults
from assay.tell.pages.page_frame import PageRequest, place, render_frame
from assay.tell.views.fleet import (
    FleetFilter,
    FleetView,
    NodeOnMap,
    build_fleet_view,
    draw_rack,
    draw_ticket_racks,
    find_racks,
    list_cells,
    select_rack_tickets,
)
from assay.tell.views.fleet_news import build_fleet_news
from assay.tell.views.idle_coverage import AGES, NEVER
from assay.tell.views.incident_story import read_steps
from assay.tell.views.machine_list import VERDICT_WORDS, ListedMachine, build_machine_list
from assay.tell.views.node_status import describe_unread
from assay.tell.views.pool_delivery import list_pool_deliveries
from assay.tell.views.records import LiveRecords, RecordSource
from assay.tell.views.rollout_view import find_rollout, show_rollout
from assay.tell.views.sources import read_spec_lines
from assay.tell.views.ticket_answers import answer_tickets
from assay.tell.views.trust_view import build_fleet_trust, format_fleet_trust

MAX_NAMED_NODES, MAX_LETTERS = 200, 1500
"""Up to the first number a cell has the node's name, up to the second its letter; beyond that, a rack is one tile."""
NEWS_WINDOW = timedelta(days=1)
SHOWN = 100
"""Machines of one kind, and tickets of one page. The API has all."""
TITLES = {
    "contradiction": "Contradictions",
    "misplaced": "In the wrong place",
    "expected": "Of a delivery",
    "stranger": "Strangers",
}
"""Verdict → heading. A machine that is a node, as declared, is only counted."""
CLOSED_SHOWN, WAITING_SHOWN = 30, 60


def _read_cells(records: LiveRecords, **chosen: Collection[str]) -> list[NodeOnMap]:
    """Return the nodes of the inventory whose `rack` or `pool` is one of those chosen, else all."""
    of = [(attrgetter(name), values) for name, values in chosen.items()]
    nodes = {node.name: node for node in records.fleet.nodes.values() if all(get(node) in values for get, values in of)}
    states = [state for state in records.read_node_states() if state.node in nodes]
    answered = LastSeen(records.data_dir / CONTACTS_FILE).last_answers([state.node for state in states])
    unread = list_unread(states, records.fleet.policies.values(), answered, records.clock.now())
    read = {node for node, source in answered if source == "probe"}
    return list_cells(records.fleet, states, unread, nodes.values(), read)


def render_fleet_page(records: LiveRecords, request: PageRequest) -> str:
    """Return the page with the nodes that match the query."""
    fleet, states = records.fleet, records.read_node_states()
    wanted = FleetFilter(**{name: request.query.get(name, "") for name in FleetFilter.__dataclass_fields__})
    cells = _read_cells(records)
    view = build_fleet_view(fleet, cells, wanted)
    since = format_time(request.now - NEWS_WINDOW)
    shown = list(wanted.select(cells)) if wanted != FleetFilter() else cells
    catalog = records.fleet.sound_fault_catalog
    stories = read_steps(records, states)
    news = build_fleet_news(catalog, states, shown, records.read_tickets(), records.read_rollouts(), stories, since)
    trust = build_fleet_trust(records, states)
    lines = list(format_fleet_trust(trust)) if trust else []
    return render_frame(
        "fleet.html.j2",
        request,
        view=view,
        doubt=describe_unread(view.unread, request.now),
        news=news,
        wanted=wanted,
        zoom=find_zoom(view),
        trust=lines,
    )


def find_zoom(view: FleetView) -> str:
    """Return how closely the map is drawn: `names`, `letters` or `racks`."""
    if view.shown <= MAX_NAMED_NODES:
        return "names"
    return "letters" if view.shown <= MAX_LETTERS else "racks"


def render_rack_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page of the racks of a name (of one site, if the query says which), None without one."""
    cells = _read_cells(records, rack=[request.path_params["name"]])
    racks = find_racks(cells, request.path_params["name"], request.query.get("site", ""))
    if not racks:
        return None
    tickets = records.read_tickets()
    shown = [(rack, draw_rack(records.fleet, rack), select_rack_tickets(tickets, rack)) for rack in racks]
    steps = read_next_steps(records, {node.name for rack in racks for node in rack.nodes})
    return render_frame("rack.html.j2", request, racks=shown, steps=steps)


def read_next_steps(records: LiveRecords, names: Collection[str]) -> dict[str, str]:
    """Return who must act next on each of these nodes, and how; nothing of one that waits for nobody."""
    stories = read_steps(records, [state for state in records.read_node_states() if state.node in names])
    return {node: story.next.line for node, story in stories.items() if story.next.who}


def render_pool_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page of a pool, None without nodes of it."""
    fleet, states, name = records.fleet, records.read_node_states(), request.path_params["name"]
    cells = _read_cells(records, pool=[name])
    view = build_fleet_view(fleet, cells)
    if not view.shown:
        return None
    waiting = [cell for cell in cells if cell.standing not in ("serving", "gone")]
    members = [fleet.nodes[cell.name] for cell in cells]
    return render_frame(
        "pool.html.j2",
        request,
        name=name,
        view=view,
        doubt=describe_unread(view.unread, request.now),
        zoom=find_zoom(view),
        specs=sorted({node.spec for node in members}),
        profiles=sorted({node.profile for node in members}),
        breakers=list_open_breakers(state for state in states if state.pool == name),
        deliveries=[each for each in list_pool_deliveries(records, states) if each.pool == name],
        waiting=waiting,
        steps=read_next_steps(records, {cell.name for cell in waiting[:WAITING_SHOWN]}),
        most=WAITING_SHOWN,
    )


def render_machines_page(records: LiveRecords, request: PageRequest) -> str:
    """Return the page, of the machines in which the query's `text` stands."""
    listed = build_machine_list(records.fleet, records.read_machines(), records.ledger_for_reading)
    text = request.query.get("text", "").strip()
    groups: dict[str, list[ListedMachine]] = {verdict: [] for verdict in VERDICT_WORDS}
    for machine in listed.machines:
        if text.lower() in f"{machine.node} {machine.delivery} {machine.describe()}".lower():
            groups[machine.verdict].append(machine)
    return render_frame(
        "machines.html.j2",
        request,
        listed=listed,
        text=text,
        nodes=len(groups.pop("node")),
        groups=groups,
        titles=TITLES,
        shown=SHOWN,
        known=records.fleet.nodes,
    )


def render_idle_page(records: LiveRecords, request: PageRequest) -> str:
    """Return the page of what idle verification has covered, by part and age."""
    ages = [*AGES, NEVER]
    return render_frame("idle.html.j2", request, coverage=records.read_idle_coverage(), ages=ages, shown=CLOSED_SHOWN)


def render_rollouts_page(records: LiveRecords, request: PageRequest) -> str:
    """Return the page with every rollout, the newest first."""
    rollouts = list(records.read_rollouts().rollouts.values())
    return render_frame("rollouts.html.j2", request, rollouts=rollouts[::-1])


def render_rollout_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page of a rollout by its id, or by the begin of it that names no other; None without one."""
    rollout = find_rollout(records, request.path_params["id"])
    if rollout is None:
        return None
    orders = list(filter(request.visitor.may_order, list_rollout_orders(rollout)))
    return render_frame(
        "rollout.html.j2", request, rollout=rollout, answer=show_rollout(records, rollout), orders=orders
    )


def render_source_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page; None without such a commit, or for a file that is none of the fleet's declarations."""
    commit, path = request.path_params["commit"], request.path_params["path"]
    lines = read_spec_lines(records.fleet.root, commit, path)
    if lines is None:
        return None
    return render_frame("source.html.j2", request, commit=commit, path=path, lines=lines)


def render_customer_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page of the nodes that the visitor may see; with `node` in the query, of that node alone.

    Returns None for a node that the visitor may not see, as for one that does not exist.
    """
    name, text = request.query.get("node", ""), request.query.get("text", "").strip()
    view = build_customer_view(records, request.visitor.may_see, name)
    if name and not view.nodes:
        return None
    listed = [node for node in view.nodes if text.lower() in node.name.lower()]
    number, first = find_part(request, len(listed))
    shown = listed[first : first + SHOWN]
    return render_frame(
        "customer.html.j2",
        request,
        view=view,
        name=name,
        text=text,
        shown=shown,
        first=first,
        number=number,
        total=len(listed),
    )


def find_part(request: PageRequest, total: int) -> tuple[int, int]:
    """Return which part of a long list is asked for, from 1, and the number of its first row; the nearest there is."""
    asked = request.query.get("page", "")
    number = min(int(asked[:6]) if asked.isdecimal() else 1, -(-total // SHOWN)) or 1
    return number, SHOWN * (number - 1)


def render_tickets_page(records: LiveRecords, request: PageRequest) -> str:
    """Return a page of the open tickets in which the query's `text` stands, the oldest or the worst first.

    The last closed ones follow.
    """
    text, order = request.query.get("text", "").strip(), request.query.get("order", "")

    def has_text(record: TicketRecord) -> bool:
        ticket = record.ticket
        words = [ticket.id, ticket.title, ticket.node, ticket.severity]
        words += [word for spot in ticket.places for word in (spot.device, spot.rack)]
        return text.lower() in " ".join(words).lower()

    seen = list(filter(has_text, records.read_tickets()))
    closed = sorted((record for record in seen if record.closed_at), key=lambda record: record.closed_at, reverse=True)
    opened = [record for record in seen if not record.closed_at]
    if order == "worst":
        opened.sort(key=lambda record: rank_severity(record.ticket.severity))
    number, first = find_part(request, len(opened))
    return render_frame(
        "tickets.html.j2",
        request,
        opened=opened[first : first + SHOWN],
        total=len(opened),
        number=number,
        size=SHOWN,
        text=text,
        order=order,
        closed=closed[:CLOSED_SHOWN],
        is_judged=bool(records.ledger_for_reading.outcomes_head()),
    )


def render_ticket_page(records: LiveRecords, request: PageRequest) -> str | None:
    """Return the page of a ticket, None without one."""
    ident = request.path_params["id"]
    record = next((record for record in records.read_tickets() if record.ticket.id == ident), None)
    if record is None:
        return None
    cells = _read_cells(records, rack=[each.rack for each in record.ticket.places])
    racks = draw_ticket_racks(records.fleet, cells, record.ticket.places)
    is_cabling, fabric = record.ticket.verify.startswith(FABRIC_SCAN), record.ticket.verify.removeprefix(FABRIC_SCAN)
    return render_frame(
        "ticket.html.j2",
        request,
        record=record,
        ticket=record.ticket,
        racks=racks,
        answers=[line.partition(": ") for line in answer_tickets(records, [record])[0].answers],
        faults=list_drawn_faults(records, fabric=fabric, ticket=ident) if is_cabling else [],
        drawn=Markup,
        proof=find_ticket_proof(records, record),
        closing=describe_wait(record),
        may_report=not record.closed_at and request.visitor.may_order("done"),
    )


def render_trends_page(records: LiveRecords, request: PageRequest) -> str:
    """Return the page of what gets worse."""
    answer = records.read_worsening()
    return render_frame(
        "trends.html.j2",
        request,
        answer=answer,
        node_link=lambda name: place("nodes", name) if name in records.fleet.nodes else "",
    )


ProofState = Literal["open", "waits", "refuted", "closed"]
"""`waits`: for the proof, since a technician said that it is done. `refuted`: the check was run, and still fails."""


@frozen
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
