"""An incident in the words of all who read of it: what happened, why we think so, what was done, and who acts next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.decide.faults.incidents import (
    Incident,
    Symptom,
    find_causing_checks,
    list_causing_failures,
    list_open_incidents,
)
from assay.decide.state.node_state import NodeState, TransitionRecord
from assay.model.entries.faults import ObservationFailedEntry
from assay.model.facts import fact, shown
from assay.model.faults.fault_record import FaultSeverity
from assay.model.ledger_entry import LedgerEntry, Projection
from assay.model.outcome import RecordedOutcome
from assay.model.specs.nvlink_codes import decode_nvlink_xid
from assay.model.timestamps import parse_time
from assay.tell.views.next_step import NOTHING_NEXT, NextStep, find_next_step, list_open_tickets

if TYPE_CHECKING:
    from assay.act.tickets.part_names import PartNames
    from assay.model.specs.fault_catalog import FaultCatalog
    from assay.tell.views.records import RecordSource

STANDINGS = {"intent": "under way", "done": "not verified yet", "unknown": "not known to be done"}
"""How far an effect is, where the word for it says more than is known."""


@fact
class DoneStep:
    """Something that was done about an incident."""

    at: str
    """When: ISO 8601 UTC."""
    text: str
    """What was done, in one line."""


@fact
class IncidentStory:
    """An open incident of a node. Times are ISO 8601 UTC."""

    id: str
    """Its id."""
    happened: str
    """What happened, in a sentence of the fault catalogue, with the part and its other names."""
    fault_class: str = shown("class")
    """The fault class of its cause."""
    part: str
    """The part, "" for the whole node."""
    severity: FaultSeverity
    """The worst of what is open."""
    since: str
    """When it was first seen."""
    last_seen: str
    """When it was last seen."""
    seen: tuple[str, ...]
    """What was read, one symptom a line, the cause first."""
    done: tuple[DoneStep, ...]
    """What assay did about it, oldest first."""
    act: str
    """What a person does about it; "" if the catalogue does not say."""
    first: str
    """The id of the first incident of its kind on its part, which the key of its ticket has."""
    again: str
    """How long after the last of these it came, as the end of a sentence; "" the first time."""


def tell_incidents(
    state: NodeState,
    catalog: FaultCatalog | None,
    serving: Collection[str],
    names: PartNames,
    latest: Iterable[RecordedOutcome] = (),
) -> tuple[IncidentStory, ...]:
    """Return the open incidents of a node, the worst first. `serving` are the states in service.

    What is only recorded is left out. `latest`: its newest outcomes; what failed and keeps it out of service counts.
    """
    failures = list_causing_failures(state, latest) if state.state not in serving else ()
    if catalog is None or not (state.open_faults or failures):
        return ()
    opened = list_open_incidents(catalog.fault_relations, state, failures)
    harmful = (incident for incident in opened if incident.severity != "informational")
    return tuple(_tell_incident(catalog, state, incident, serving, names) for incident in harmful)


def _tell_incident(
    catalog: FaultCatalog, state: NodeState, incident: Incident, serving: Collection[str], names: PartNames
) -> IncidentStory:
    cause = incident.work
    known = catalog.find_class(cause.fault_class)
    code = decode_nvlink_xid(cause.detail, known.units) if known and known.units else None
    sub_code = (f"sub-code: {code}",) if code and code.info is not None else ()
    part = names.describe_work(state, incident)
    rest = [symptom for symptom in incident.open_symptoms if symptom is not cause]
    return IncidentStory(
        id=incident.id,
        happened=": ".join(filter(None, [catalog.describe(cause.fault_class), part])),
        fault_class=cause.fault_class,
        part=cause.named_part,
        severity=incident.severity,
        since=incident.first_seen,
        last_seen=incident.last_seen,
        seen=(cause.detail or cause.fault_class, *sub_code, *map(_describe_symptom, rest)),
        done=tuple(_list_done(state, incident, serving)),
        act=known.investigate if known else "",
        first=incident.first,
        again=incident.describe_return(),
    )


def _describe_symptom(symptom: Symptom) -> str:
    name = f"{symptom.fault_class} on {symptom.part}" if symptom.part else symptom.fault_class
    return f"{name}: {symptom.detail}" if symptom.detail else name


def _list_done(state: NodeState, incident: Incident, serving: Collection[str]) -> Iterator[DoneStep]:
    """Yield the moves that the incident led to until the node served again, and the tickets that it asked for."""
    ids = {name for symptom in incident.symptoms for name in (symptom.id, symptom.id.partition("/")[2])}
    is_answer = False
    for move in state.transitions:
        decision = state.decisions.get(move.decision)
        checks = (
            [cause.id.partition("/")[2] for cause in decision.causes if cause.kind == "outcome"] if decision else ()
        )
        is_answer = not ids.isdisjoint([*move.faults, *checks]) or (is_answer and move.origin not in serving)
        if is_answer:
            yield DoneStep(move.at, _describe_move(state, move, is_back=move.target in serving))


def _describe_move(state: NodeState, move: TransitionRecord, *, is_back: bool) -> str:
    decision = state.decisions.get(move.decision)
    failed = [cause.text for cause in decision.causes if cause.kind == "outcome"] if decision else []
    because = ": its checks passed" if failed and is_back else f": {failed[0]}" if failed else ""
    effects = [effect for effect in state.effects if effect.decision == move.decision and move.decision]
    standings = ", ".join(f"{effect.action} {STANDINGS.get(effect.standing, effect.standing)}" for effect in effects)
    return f"{move.origin} → {move.target}{because}{f'; {standings}' if standings else ''}"


@fact
class NodeStory:
    """What is wrong with a node, and who acts next."""

    incidents: tuple[IncidentStory, ...] = ()
    """Its open incidents, the worst first."""
    next: NextStep = NOTHING_NEXT
    """Who must act next on the node, and how."""
    unread_since: str | None = None
    """When it was last read, if it serves and is not known, "" for never; else null."""


NO_STORY = NodeStory()


def read_steps(source: RecordSource, states: Iterable[NodeState]) -> dict[str, NodeStory]:
    """Return the story of each node that has one, without its incidents. While all are well, only contacts are read."""
    from assay.act.ingest.silent_nodes import read_unread_nodes

    policies, serving, known = source.fleet.policy_of_state, source.fleet.states_in_service, list(states)
    unread = read_unread_nodes(source.fleet, source.data_dir, known, source.clock.now())
    doubted = {each.node for each in known if each.pending or each.hold or each.open_faults} | unread.keys()
    if not (unwell := [each for each in known if each.state not in serving or each.node in doubted]):
        return {}
    from assay.act.tickets.ticket_diff import TICKETS
    from assay.decide.rollouts.rollout_history import ROLLOUTS
    from assay.ledger.ledger_reader import read_projection

    ledger, trust, stories = source.ledger_for_reading, source.fleet.trust, dict[str, NodeStory]()
    opened_tickets = list_open_tickets(read_projection(ledger, TICKETS).values())
    rollout, failed = read_projection(ledger, ROLLOUTS).find_active(), read_projection(ledger, LAST_FAILURES)
    for state in unwell:
        policy, tickets = policies.get(state.state), opened_tickets.get(state.node, {})
        silence = _explain_silence(failed.get(state.node), unread[state.node]) if state.node in unread else None
        step = find_next_step(state, policy, tickets, trust, rollout, silence)
        stories[state.node] = NodeStory((), step, unread.get(state.node))
    return stories


def _note_failure(known: dict[str, LedgerEntry], entry: LedgerEntry) -> dict[str, LedgerEntry]:
    known[entry.node] = entry
    return known


LAST_FAILURES = Projection[dict[str, LedgerEntry]]((ObservationFailedEntry.kind,), dict, _note_failure, dict)
"""The newest entry about a channel of each node that stopped answering."""


def _explain_silence(failed: LedgerEntry | None, since: str) -> str:
    """Return why a node was not read since a time, "" for ever: a channel that stopped answering then is recorded."""
    if failed is None or parse_time(failed.at) < parse_time(since):
        return "no try is on record since: does assay reconcile run?"
    content = ObservationFailedEntry.read(failed)
    return f"its {content.channel} did not answer: {content.reason}"


def read_stories(source: RecordSource, states: Iterable[NodeState]) -> dict[str, NodeStory]:
    """Return the story of each node that has one."""
    by_name = {state.node: state for state in states}
    if not (stories := read_steps(source, by_name.values())):
        return {}
    from assay.act.tickets.part_names import PartNames
    from assay.observe.evidence_store import EvidenceStore

    names = PartNames(source.fleet, EvidenceStore(source.data_dir / "evidence"))
    known = source.fleet.sound_fault_catalog, source.fleet.states_in_service, names
    failing = [node for node in stories if find_causing_checks(by_name[node])]
    latest = source.ledger_for_reading.latest(nodes=failing) if failing else ()
    own = {node: [recorded for recorded in latest if recorded.outcome.node == node] for node in failing}
    return {
        node: replace(story, incidents=tell_incidents(by_name[node], *known, own.get(node, ())))
        for node, story in stories.items()
    }
