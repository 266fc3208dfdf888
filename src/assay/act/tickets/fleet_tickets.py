"""Tickets of the fleet, and of no single node: breakers, pools that are short, rollouts, and what waits for a yes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from assay.act.orders.orders import list_fleet_waits
from assay.act.tickets.part_names import make_place
from assay.act.tickets.ticket_moves import key_incident, key_shared, make_identity, make_ticket
from assay.decide.faults.shared_incidents import SharedIncident
from assay.decide.moves.circuit_breaker import RATE_SAYS
from assay.decide.moves.held_answers import list_open_breakers
from assay.decide.moves.replacements import judge_pools
from assay.decide.rollouts.rollout_history import Rollout, shorten_id
from assay.decide.state.fleet_snapshot import FleetSnapshot
from assay.model.faults.fault_record import SEVERITIES
from assay.model.fleet import Fleet
from assay.model.text.lists import fold_names, format_list
from assay.model.ticket import Ticket, TicketPlace

BREAKER_TICKET_KIND, CAPACITY_TICKET_KIND = "breaker", "capacity"
"""How the keys of tickets about waves and about pools begin."""
SERIES_WAITS = "until then assay neither repairs nor tickets this class there, and adds nodes to this ticket"


def make_breaker_tickets(snapshot: FleetSnapshot, shared: Sequence[SharedIncident]) -> Iterator[Ticket]:
    """Yield one ticket for each wave or series that holds back nodes, with the cause that they have in common.

    Of the `shared` incidents, those that no breaker holds back have tickets of their own.
    """
    held: set[int] = set()
    shared_by = defaultdict[str, list[int]](list)
    for number, each in enumerate(shared):
        for name in each.nodes:
            shared_by[name].append(number)
    views_by_name = {view.name: view for view in snapshot.nodes if "ticket" in view.profile.actions}
    held_hours = snapshot.policy.breaker.held_hours
    for breaker in list_open_breakers(view.node_state for view in views_by_name.values()):
        views = [views_by_name[name] for name in breaker.nodes]
        faults = chain.from_iterable(view.node_state.faults for view in views)
        severities = [fault.severity for fault in faults if (fault.open_series if breaker.series else fault.is_open)]
        known = sorted({number for name in breaker.nodes for number in shared_by.get(name, ())})
        held |= set(known)
        acts = [shared[number].order for number in known]
        title = breaker.reason.removeprefix("breaker: ").partition(RATE_SAYS)[0].partition("; or ")[0]
        title = title if breaker.series else f"many nodes of pool {breaker.pool} fail at once"
        if len(acts) == 1 and {*breaker.nodes} <= {*shared[known[0]].nodes}:
            title = acts[0]
        yield make_ticket(
            f"{BREAKER_TICKET_KIND}/{breaker.series or breaker.pool}",
            views,
            min(severities, key=SEVERITIES.index, default="degraded"),
            title=f"Find the cause, or clear the breaker: {title}",
            expected="it is known whether they have one cause, and what failed passes its checks again",
            seen=f"{breaker.reason}\nheld back: {format_list(breaker.nodes)}\n"
            f"cordoned: {format_list(breaker.cordoned) or 'none'}",
            verify=f"assay explain {views[0].name}",
            steps="\n".join(acts or ["find what the nodes have in common: a driver, firmware, a switch, a rack, a job"])
            + f"\nwhen it is mended, or is no common cause: {breaker.clear}\n"
            f"{SERIES_WAITS if breaker.series else f'what only a log told is answered after {held_hours:g} h'}",
        )
    places = {view.name: make_place(view) for view in snapshot.nodes}
    for number, each in enumerate(shared):
        if number not in held and each.shares != "commit":
            yield _make_shared_ticket(each, places)


def join_by_commit(
    snapshot: FleetSnapshot, shared: Sequence[SharedIncident], tickets: Sequence[Ticket]
) -> list[Ticket]:
    """Return the tickets with one instead of those of several nodes for what one commit caused."""
    commits = [each for each in shared if each.shares == "commit"]
    owners = {key_incident(incident): number for number, each in enumerate(commits) for incident in each.members}
    counts = Counter(owners[ticket.key] for ticket in tickets if ticket.key in owners)
    several = [number for number, count in sorted(counts.items()) if count > 1]
    places = {view.name: make_place(view) for view in snapshot.nodes} if several else {}
    kept = [ticket for ticket in tickets if counts[owners.get(ticket.key, -1)] <= 1]
    return kept + [_make_shared_ticket(commits[number], places) for number in several]


def make_shortfall_tickets(snapshot: FleetSnapshot) -> Iterator[Ticket]:
    """Yield the ticket of each pool that delivers less than it declares, and has no spare for that."""
    views, states = {view.name: view for view in snapshot.nodes}, [view.node_state for view in snapshot.nodes]
    for standing in judge_pools(snapshot).values():
        away = [views[absent.state.node] for absent in (*standing.overdue, *standing.awaited)]
        if not standing.is_short or not away or "ticket" not in away[0].profile.actions:
            continue
        expected = standing.expect_enough(snapshot.policy, states, snapshot.now)
        day = f"expected to be enough again on {expected:%Y-%m-%d}" if expected else "when that ends is not known"
        yield make_ticket(
            f"{CAPACITY_TICKET_KIND}/{standing.pool}",
            away,
            title=f"{standing.describe()}, and no spare is left",
            expected=f"{standing.declared.delivered} nodes of pool {standing.pool} serve",
            seen="\n".join([day, *(f"{view.name} is in {view.node_state.state}" for view in away)]),
            verify="assay status",
            steps="repair what is out, the work that is done first, or bring further nodes in",
        )


def _make_shared_ticket(shared: SharedIncident, places: Mapping[str, TicketPlace]) -> Ticket:
    """Return the ticket of a cause outside of the nodes that show it: one for all of them."""
    order, leads = shared.order, [incident.lead for incident in shared.members]
    return Ticket(
        **make_identity(key_shared(shared)),
        title=f"{order[:1].upper()}{order[1:]}",
        node=shared.nodes[0],
        places=tuple(places[name] for name in shared.nodes),
        expected=f"none of {format_list(fold_names(shared.nodes))} shows it",
        seen="\n".join(f"{each.fault_class} on {each.subject}: {each.detail}" for each in leads),
        verify=f"assay explain {shared.nodes[0]}",
        severity=min((each.severity for each in leads), key=SEVERITIES.index),
        cause=shared.cause.summary,
        steps=order,
    )


ROLLOUT_TICKET_KIND = "rollout"
TICKET_RULES = {
    "failures": "is paused: nodes failed",
    "plan": "waits: a person must accept its plan",
    "age": "is paused: no controller looked after it for too long",
}
"""The rules after which only a person resumes, with what the title of the ticket says."""


def make_paused_ticket(snapshot: FleetSnapshot, rollout: Rollout | None) -> list[Ticket]:
    """Return the ticket of a rollout that waits for a person, none for another. Each pause has its own.

    Without a node because of which it was paused, it names the first node that waits.
    """
    pause = rollout.pause if rollout else None
    if rollout is None or pause is None or pause.rule not in TICKET_RULES:
        return []
    views = {view.name: view for view in snapshot.nodes if "ticket" in view.profile.actions}
    named = [views[name] for name in pause.nodes or rollout.members if name in views]
    named = named if pause.nodes else named[:1]
    if not named:
        return []
    ident = shorten_id(rollout.id)
    look = f"find why: assay explain {named[0].name}"
    if pause.rule == "plan":
        look = f"read the plan: assay plan --base {rollout.base[:12]} --head {rollout.commit[:12]}"
    ticket = make_ticket(
        f"{ROLLOUT_TICKET_KIND}/{rollout.id}/{rollout.pauses}",
        named,
        title=f"rollout {ident} {TICKET_RULES[pause.rule]}",
        expected=f"the change {rollout.base[:12]} → {rollout.commit[:12]} works on its nodes, or is taken back",
        seen=pause.reason,
        verify=f"assay rollout show {ident}",
        steps=f"{look}\n"
        f"if the change is good: assay rollout resume {ident} --reason '…'\n"
        f"if it is not: assay rollout abort {ident} --reason '…', and merge a `git revert`",
    )
    return [ticket]


TRUST_TICKET_KIND = "trust"


def make_trust_tickets(fleet: Fleet, snapshot: FleetSnapshot) -> Iterator[Ticket]:
    """Yield a ticket for each thing that waits and that nobody has answered."""
    views = {view.name: view for view in snapshot.nodes if "ticket" in view.profile.actions}
    for wait in list_fleet_waits(fleet, [view.node_state for view in views.values()]):
        if wait.kind == "would" or (wait.said and wait.kind != "order"):
            continue
        provisioning = fleet.provisioning_of(wait.node)
        page = f"\nits page: {provisioning.url}/nodes/{wait.node}" if provisioning else ""
        words = f"--reason '…'; undo: {wait.undo}"
        yield make_ticket(
            f"{TRUST_TICKET_KIND}/{wait.node}/{wait.id}",
            [views[wait.node]],
            title=f"{wait.node} waits for a person's yes",
            expected="a person says yes or no",
            seen=wait.text,
            verify=f"assay explain {wait.node}",
            steps=f"assay approve {wait.id[:12]} {words}\nor: assay decline {wait.id[:12]} --reason '…'{page}",
        )
