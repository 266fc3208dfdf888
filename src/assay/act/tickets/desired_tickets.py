"""Which tickets should be open. Pure: from the fleet snapshot, the recorded decisions and the fabric comparisons."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from pathlib import Path

from assay.act.effects.effect_journal import derive_effect_id
from assay.act.remedies.dossier_build import locate_diagnostics, locate_dossier
from assay.act.tickets.fleet_tickets import (
    BREAKER_TICKET_KIND,
    join_by_commit,
    make_breaker_tickets,
    make_shortfall_tickets,
)
from assay.act.tickets.part_names import PartNames, make_place, name_parts
from assay.act.tickets.ticket_moves import (
    TRIAL_TICKET_KIND,
    has_paperwork,
    is_cable_in_stay,
    is_in_stay_ticket,
    join_failures,
    key_incident,
    key_stay,
    make_identity,
    make_ticket,
)
from assay.decide.drift.differences import describe_fault
from assay.decide.faults.incidents import Incident, is_answered, list_causing_failures, list_open_incidents
from assay.decide.faults.shared_incidents import list_shared_incidents, map_open_incidents
from assay.decide.moves.cordons import find_last_cordon, must_be_closed
from assay.decide.moves.corrections import describe_fights
from assay.decide.moves.excused_failures import is_drift_explained
from assay.decide.moves.hand_over import describe_missing_proofs, find_hand_over_refusal
from assay.decide.moves.proposals import FOREIGN_NOTE, find_respected_cordon, is_ordered_stay, list_disturbing_actions
from assay.decide.moves.remedy_ladder import is_flapping
from assay.decide.moves.replacements import find_spare
from assay.decide.moves.required_checks import describe_missing_burn_in, find_burn_in_of_stay, judge_state_requirements
from assay.decide.state.burn_in_record import BurnInRecord
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.decide.state.lemon_score import compute_lemon_score
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.fabric.compare.compare import FabricComparison
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.model.decision import COLLECT, FLAPPING_RULE, HAND_OVER, REPAIR_ACTIONS, WIPE
from assay.model.entries.node_entries import DecisionEntry
from assay.model.evidence import IDENTITY_FAULT
from assay.model.facts import frozen
from assay.model.faults.fault_record import SEVERITIES, FaultRecord, FaultSeverity
from assay.model.ledger_entry import LedgerEntry, Projection
from assay.model.outcome import RecordedOutcome
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.technician_work import TechnicianInspection
from assay.model.specs.trend_rules import TREND_CLASSES
from assay.model.text.lists import fold_names, format_list
from assay.model.ticket import Ticket

DOSSIER_ACTION, TICKET_ACTION = "dossier", "ticket"
TICKET_CAUSE_KINDS = ("fault", "deadline", "opened", "burn-in", "effect")
"""The kinds of causes that a ticket answers."""
FOREIGN_TICKET_KIND, BURN_IN_TICKET_KIND = "foreign", "burn-in"
"""How the keys of tickets about others' cordons, and about burn-ins that prove nothing, begin."""
REPORTS_FOLDER = Path("reports")
UNPROVED_SHOWN = 5


@frozen
class TechnicianNotes:
    """What technicians do in each state, and by node what is known of its parts that were sent back before.

    `catalog` says what a person does for a class of faults, `names` what else parts are called.
    """

    inspections: Mapping[str, TechnicianInspection] = field(default_factory=dict)
    returned_parts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    catalog: FaultCatalog | None = None
    names: PartNames | None = None

    def describe_acts(self, fault_classes: Iterable[str]) -> list[str]:
        """Return what a person should do or look at for these classes, each once; nothing for one that is unknown."""
        known = [self.catalog.find_class(name) for name in fault_classes] if self.catalog else []
        return list(dict.fromkeys(each.investigate for each in known if each and each.investigate))

    def name_work(self, view: NodeSnapshot, incident: Incident) -> str:
        """Return what is to be done about an incident, in a line that begins with the order, and where."""
        cause, part = incident.work, self.name_part(view, incident)
        orders = self.describe_acts([cause.fault_class]) or [f"find out what {cause.fault_class} means"]
        order = re.split(r"[;:](?= )", orders[0])[0]
        where = f"{part} of {view.name}" if part else view.name
        return f"{order[:1].upper()}{order[1:]}: {where} ({cause.fault_class}{incident.describe_return()})"

    def name_part(self, view: NodeSnapshot, incident: Incident) -> str:
        """Return the part that an incident is about, with its other names, or all parts; "" for the whole node."""
        return (self.names.describe_work if self.names else name_parts)(view.node_state, incident)


def list_desired_tickets(
    snapshot: FleetSnapshot,
    causes: Collection[str],
    comparisons: Mapping[str, FabricComparison],
    notes: TechnicianNotes = TechnicianNotes(),
) -> list[Ticket]:
    """Return every ticket that there is work for now. `causes` are `TICKET_CAUSES`, `comparisons` are by fabric."""
    incidents = map_open_incidents(snapshot)
    others = {name for name, of in incidents.items() if any(each.cause.fault_class == IDENTITY_FAULT for each in of)}
    cabling = [ticket for comparison in comparisons.values() for ticket in make_cabling_tickets(comparison)]
    views = {view.name: view for view in snapshot.nodes}
    tickets, cables = list[Ticket](), defaultdict[str, list[Ticket]](list)
    for ticket in cabling:
        if "/device-replaced/" in ticket.key and ticket.node in others:
            continue
        view = views.get(ticket.node)
        is_in_stay = view is not None and is_cable_in_stay(snapshot, view, ticket)
        (cables[ticket.node] if is_in_stay else tickets).append(ticket)
    shared = list(list_shared_incidents(snapshot, incidents))
    tickets += make_breaker_tickets(snapshot, shared)
    tickets += make_shortfall_tickets(snapshot)
    begun = {view.name: record for view in snapshot.nodes if (record := find_burn_in_of_stay(view))}
    unproved = {name: each for name, each in begun.items() if each.outcome == "incomplete" and each.id in causes}
    tickets += _incomplete_burn_in_tickets(snapshot, unproved)
    held = {place.device for ticket in tickets if ticket.key.startswith(BREAKER_TICKET_KIND) for place in ticket.places}
    together = {
        member.id for each in shared for member in each.members if each.shares != "commit" or member.node in held
    }
    miscabled = {node for each in comparisons.values() for wrong in each.discrepancies for node in wrong.nodes}
    for view in snapshot.nodes:
        if "ticket" in view.profile.actions:
            alone = [incident for incident in incidents.get(view.name, ()) if incident.id not in together]
            overdue = [] if view.name in unproved else [*_overdue_tickets(snapshot, view, causes, notes)]
            stays = [_join_cables(stay, cables[view.name]) for stay in _state_tickets(snapshot, view, notes)]
            tickets += stays or [*_failed_act_tickets(snapshot, view, causes)] or overdue
            listed = list(_incident_tickets(snapshot, view, alone, causes, view.name in miscabled, notes))
            tickets += _failed_check_tickets(snapshot, view, alone, listed, notes)
            tickets += _opened_node_tickets(snapshot, view, causes)
            tickets += _hand_over_tickets(snapshot, view)
            tickets += _foreign_cordon_tickets(snapshot, view)
            tickets += _flapping_tickets(snapshot, view)
    return join_by_commit(snapshot, shared, tickets)


def _add_causes(causes: set[str], entry: LedgerEntry) -> set[str]:
    decision = DecisionEntry.read(entry)
    if decision.remedy == "ticket":
        causes |= {cause.id for cause in decision.causes if cause.kind in TICKET_CAUSE_KINDS}
    return causes


TICKET_CAUSES = Projection[set[str]]((DecisionEntry.kind,), set, _add_causes, set)
"""The ids of the faults, stays and lifted cordons for which a decision has the remedy `ticket`."""


def _state_tickets(snapshot: FleetSnapshot, view: NodeSnapshot, notes: TechnicianNotes) -> Iterator[Ticket]:
    """Yield the ticket of a state that only a person ends: one that asks for a ticket, or one with a checklist."""
    state, node_state = snapshot.policy_state_of(view), view.node_state
    inspection = notes.inspections.get(node_state.state) if state.certified_to else None
    if inspection is None and not has_paperwork(snapshot, view):
        return
    failures = list_causing_failures(node_state, view.latest)
    incidents = list_open_incidents(snapshot.relations, node_state, failures)
    symptoms = [symptom for incident in incidents for symptom in incident.open_symptoms]
    faults = [f"open: {symptom.fault_class} on {symptom.subject}: {symptom.detail}" for symptom in symptoms]
    severities: list[FaultSeverity] = ["degraded" if node_state.decision else "informational"]
    severities += [incident.severity for incident in incidents]
    drifts = node_state.burn_in.describe_drifts() if node_state.burn_in else ()
    erased, wipe = node_state.find_entry_effect(WIPE), list[str]()
    if WIPE in state.entry and node_state.decision:  # who takes the node away must know of its drives
        is_ended = erased is not None and erased.standing in ("verified", "failed")
        unproved = "not proven yet; leave the node and its drives where they are"
        wipe = [f"wipe: {erased.reason if erased and is_ended else unproved}"]
    steps = inspection.steps if inspection else ()
    is_search = TICKET_ACTION in state.entry  # elsewhere the cause is known, and the state has work of its own
    wanted = [each for each in incidents if not is_answered(node_state, each)] or incidents
    acts = notes.describe_acts(incident.work.fault_class for incident in wanted) if is_search else []
    files = _list_archives(snapshot, view)
    if DOSSIER_ACTION in state.entry and node_state.decision:
        effect = derive_effect_id(node_state.decision, DOSSIER_ACTION)
        files.insert(0, f"{locate_dossier(REPORTS_FOLDER, view.name, effect)}  the dossier, for the vendor")
    place = f"{view.name} ({node_state.state})"
    title = f"{inspection.title}: {place}" if inspection else f"{node_state.state}: {view.name}"
    if incidents:
        part = notes.name_part(view, incidents[0])
        cause = f"{incidents[0].work.fault_class}{f' on {part}' if part else ''}{incidents[0].describe_return()}"
        work = f"{notes.name_work(view, incidents[0])}, in {node_state.state}"
        title = work if is_search or not inspection else f"{title}, because of {cause}"
    yield make_ticket(
        key_stay(view),
        [view],
        min(severities, key=SEVERITIES.index),
        title=title,
        expected=inspection.done if inspection else state.summary,
        seen="\n".join([node_state.reason, *faults, *drifts, *notes.returned_parts.get(view.name, ()), *wipe]),
        verify=f"assay certify {view.name} --reason '…'",
        steps="\n".join([*acts, *steps]).replace("NODE", view.name),
        files="\n".join(files),
    )


def _join_cables(stay: Ticket, cables: Sequence[Ticket]) -> Ticket:
    """Return the ticket of a node's state with the work of the fabric's tickets for the same cables."""
    steps = [step for ticket in cables for step in ticket.steps.splitlines()[:-1]]
    ends = [place for ticket in cables for place in ticket.places]
    return replace(stay, places=(*stay.places, *ends), steps="\n".join([*steps, stay.steps]))


def _overdue_tickets(
    snapshot: FleetSnapshot, view: NodeSnapshot, causes: Collection[str], notes: TechnicianNotes
) -> Iterator[Ticket]:
    """Yield the ticket of a node that is in its state past the deadline of the policy."""
    deadline, node_state = snapshot.policy_state_of(view).deadline, view.node_state
    if deadline is None or node_state.stay_id not in causes:
        return
    worst = [fault for fault in node_state.faults if fault.is_open and not _is_answered(snapshot, view, fault)]
    lines = [line for result in judge_state_requirements(snapshot, view) for line in result.missing]
    missing = [f"not proved: {line}" for line in [*describe_missing_proofs(snapshot, view), *lines]]
    yield _make_stay_ticket(
        view,
        "late",
        severity="catastrophic" if worst else "degraded",
        steps="\n".join(notes.describe_acts(fault.fault_class for fault in worst)),
        title=f"{node_state.state} takes more than {deadline.hours:g} h: {view.name}",
        expected=snapshot.policy_state_of(view).summary,
        seen="\n".join(
            [
                f"in {node_state.state} since {node_state.since[:16]} UTC: {node_state.reason}",
                *filter(None, [describe_missing_burn_in(snapshot, view)]),
                *missing[:UNPROVED_SHOWN],
                *([f"and {len(missing) - UNPROVED_SHOWN} more"] if missing[UNPROVED_SHOWN:] else ()),
                *(node_state.burn_in.describe_drifts() if node_state.burn_in else ()),
            ]
        ),
        verify=f"assay explain {view.name}",
    )


def _hand_over_tickets(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Ticket]:
    """Yield the ticket of a node that served another customer, and that no hand-over has begun for."""
    rules, node_state = snapshot.policy.hand_over, view.node_state
    refusal = find_hand_over_refusal(snapshot, view, snapshot.policy.service_state)
    if rules is None or refusal is None or node_state.state == rules.state:
        return
    yield _make_stay_ticket(
        view,
        HAND_OVER,
        title=f"prove that nothing of its former customer is left on {view.name}",
        expected=snapshot.policy.states[rules.state].summary,
        seen=refusal.text,
        verify=f"assay explain {view.name}",
        steps=f"assay move {view.name} {rules.state} --reason '…'; or name its former customer in the inventory again",
    )


def _failed_act_tickets(snapshot: FleetSnapshot, view: NodeSnapshot, causes: Collection[str]) -> Iterator[Ticket]:
    """Yield the ticket of an act that failed and for which the node's state waits."""
    state, name = view.node_state.state, view.name
    for action in snapshot.policy_state_of(view).entry:
        effect = view.node_state.find_entry_effect(action)
        if effect and effect.standing == "failed" and effect.id in causes:
            yield _make_stay_ticket(
                view,
                f"act/{action}",
                title=f"{action} failed, and {state} waits for it: {name}",
                expected=f"{action} is done, and reading {name} again proves it",
                seen=effect.reason,
                verify=f"assay explain {name}",
                steps=f"mend what {action} met; then it is tried again: assay certify {name} --reason '…'",
            )


def _incomplete_burn_in_tickets(snapshot: FleetSnapshot, unproved: Mapping[str, BurnInRecord]) -> Iterator[Ticket]:
    """Yield the tickets of burn-ins that prove nothing, given by node.

    A load part without any result is a fault of the plan or its tools, which a pool has in common: one ticket for it.
    """
    groups: dict[str, list[tuple[NodeSnapshot, BurnInRecord]]] = {}
    for view in snapshot.nodes:
        record = unproved.get(view.name)
        if record and "ticket" in view.profile.actions:
            shared, own = f"{view.node.pool}/{record.spec}/{record.part}", f"{view.name}/{view.node_state.stay_id}"
            groups.setdefault(shared if record.part else own, []).append((view, record))
    for key, group in groups.items():
        (view, record), names = group[0], fold_names(view.name for view, _ in group)
        policy, state = snapshot.policy, view.node_state.state
        before = [
            name for name, other in policy.states.items() if other.pass_to == state if policy.has_edge(state, name)
        ]
        again = f"\nthen let it begin anew: assay move {view.name} {before[0]} --reason '…'" if before else ""
        seen = {record.reason: record.describe() for _, record in reversed(group)}
        yield make_ticket(
            f"{BURN_IN_TICKET_KIND}/{key}",
            [view for view, _ in group],
            title=f"{record.part} of the BurnIn {record.spec} gives no result in pool {view.node.pool}"
            if record.part
            else f"the burn-in of {view.name} proves nothing",
            expected=f"each part of the BurnIn {record.spec} gives results",
            seen="\n".join([f"on {format_list(names)}", *list(seen.values())[:3]]),
            verify=f"assay explain {view.name}",
            steps=f"run the tool on {view.name} by hand, and mend the nodes or the BurnIn {record.spec}{again}",
        )


def _opened_node_tickets(snapshot: FleetSnapshot, view: NodeSnapshot, causes: Collection[str]) -> Iterator[Ticket]:
    """Yield the ticket of a node whose cordon somebody lifts again and again while it is out of service."""
    node_state, policy = view.node_state, snapshot.policy
    closed = find_last_cordon(node_state)
    if closed is None or closed.id not in causes or view.cordon or not must_be_closed(policy, node_state):
        return
    yield _make_stay_ticket(
        view,
        "opened",
        title=f"somebody opens {view.name} while it is in {node_state.state}",
        expected=f"no job starts on it while it is in {node_state.state}: {node_state.reason}",
        seen=f"its scheduler reads it as open; closed again {policy.cordons.again} times, and opened each time",
        verify=f"assay explain {view.name}",
        steps="find who opens it: slurmctld's log, or the API server's audit log\n"
        f"who wants it open: assay hold {view.name} --reason '…'",
    )


def _foreign_cordon_tickets(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Ticket]:
    """Yield the ticket of a node with work for assay, which somebody else keeps closed."""
    node_state = view.node_state
    outstanding = [effect.action for effect in list_outstanding_effects(snapshot.policy, node_state)]
    reason = find_respected_cordon(snapshot.policy, view.foreign_cordon)
    disturbs = bool(list_disturbing_actions(outstanding)) and not is_ordered_stay(node_state)
    waits = node_state.note.startswith(FOREIGN_NOTE) or disturbs
    if not reason or not waits:
        return
    yield _make_stay_ticket(
        view,
        FOREIGN_TICKET_KIND,
        title=f"{view.name} is broken, and somebody keeps it closed",
        expected=f"whoever closed {view.name} opens it again, and assay goes on",
        seen=f"closed by others: {reason}\n{node_state.note or node_state.reason}",
        verify=f"assay explain {view.name}",
        steps=f"ask who closed it: {reason}\n"
        f"when the work is done, open the node in its scheduler, or: assay move {view.name} STATE --reason '…'",
    )


def _flapping_tickets(snapshot: FleetSnapshot, view: NodeSnapshot) -> Iterator[Ticket]:
    """Yield the ticket of a node that stays cordoned because its faults come and go."""
    node_state, policy = view.node_state, snapshot.policy
    if not is_flapping(policy, node_state, snapshot.now) or node_state.pending is None:
        return
    score = compute_lemon_score(policy, node_state)
    yield _make_stay_ticket(
        view,
        FLAPPING_RULE,
        title=f"faults of {view.name} come and go",
        expected=f"{view.name} has no such fault for good, or is out of service",
        seen="\n".join([*(cause.text for cause in node_state.pending.because), *([str(score)] if score else [])]),
        verify=f"assay certify {view.name} --reason '…'  opens the node again",
        steps="find what comes and goes: a cable, a connector, heat, a fan, power\n"
        f"the node stays cordoned, and waits for: {', '.join(view.jobs or ('its scheduler',))}",
    )


def _failed_check_tickets(
    snapshot: FleetSnapshot,
    view: NodeSnapshot,
    incidents: Sequence[Incident],
    listed: Iterable[Ticket],
    notes: TechnicianNotes,
) -> Iterator[Ticket]:
    """Yield the tickets of incidents with the failed requirements that are signs of them, and one for the others.

    That is for a state which has no transition for a failure.
    """
    state = snapshot.policy_state_of(view)
    judged = judge_state_requirements(snapshot, view)
    failed = {recorded.id: recorded for requirement in judged for recorded in requirement.failed}
    outcomes = sorted(failed.values(), key=lambda recorded: (recorded.outcome.subject, recorded.outcome.check))
    outcomes = [] if state.fail_to else outcomes
    owners = {ident: key_incident(incident) for ident, incident in join_failures(snapshot, view, incidents, outcomes)}
    for ticket in listed:
        signs = [recorded for recorded in outcomes if owners.get(recorded.id) == ticket.key]
        outcomes = [recorded for recorded in outcomes if recorded not in signs]
        yield replace(ticket, seen="\n".join(dict.fromkeys([ticket.seen, *map(_describe_failure, signs)])))
    if not outcomes:
        return
    classes = sorted({recorded.outcome.fault or _test_name(recorded) for recorded in outcomes})
    yield Ticket(
        **make_identity(f"{TRIAL_TICKET_KIND}/{view.name}/{view.node_state.stay_id}"),
        title=f"{view.name} does not pass {view.node_state.state}: {', '.join(classes)}",
        node=view.name,
        places=tuple(dict.fromkeys(make_place(view, each.outcome.subject, notes.names) for each in outcomes)),
        expected=f"every check of {view.node_state.state} passes",
        seen="\n".join(map(_describe_failure, outcomes)),
        verify="\n".join(f"{recorded.outcome.check}[{recorded.outcome.subject}]" for recorded in outcomes),
        severity="degraded",
        steps="\n".join(notes.describe_acts(classes)).replace("NODE", view.name),
    )


def _incident_tickets(
    snapshot: FleetSnapshot,
    view: NodeSnapshot,
    incidents: Iterable[Incident],
    causes: Collection[str],
    is_miscabled: bool,
    notes: TechnicianNotes,
) -> Iterator[Ticket]:
    """Yield a ticket for each incident that the policy leaves to people, and each catastrophic one without an answer.

    The latter is told in every state, whatever the answer waits for: a limit, a breaker, a profile, a job, a drain. A
    wrong cable has the fabric's own ticket, which names both ends. Drift that a rollout explains needs none. What gets
    worse in service is prepared for: its ticket names the spare that would take the node's place.
    """
    serves, pending = snapshot.policy_state_of(view).in_service, view.node_state.pending
    wait = view.node_state.note or (", ".join(pending.blockers) if pending else "") or "nothing is decided yet"
    faults = {fault.id: fault for fault in view.node_state.faults}
    for incident in incidents:
        present = [
            faults[symptom.id]
            for symptom in incident.open_symptoms
            if not (is_miscabled and symptom.fault_class.startswith("ib."))
            and not is_drift_explained(snapshot, view, faults[symptom.id])
        ]
        is_told = any(not _is_answered(snapshot, view, fault) for fault in present)
        is_worn = serves and incident.cause.fault_class.startswith(TREND_CLASSES)
        is_wanted = (is_told and not has_paperwork(snapshot, view)) or any(fault.id in causes for fault in present)
        is_wanted |= is_worn
        if not present or not is_wanted or is_in_stay_ticket(snapshot, view, incident):
            continue
        texts = [describe_fault(fault, snapshot.policy.breaker.drift, view.latest) for fault in present]
        seen = [
            f"{fault.fault_class} on {fault.subject}: {text}" for fault, (_, text) in zip(present, texts, strict=True)
        ]
        kinds = {(fault.fault_class, fault.subject) for fault in present}
        checks = [f"{check.id}[{subject}]" for check, subject in view.declared if (check.fault, str(subject)) in kinds]
        acts = notes.describe_acts([incident.work.fault_class])
        acts += chain.from_iterable(describe_fights(snapshot, view, fault) for fault in present)
        places = [make_place(view, fault.subject, notes.names) for fault in present]
        far_ends = [notes.names.find_far_end(view.name, incident.work.part)] if notes.names else []
        still = [f"{view.name} still serves: {wait}"] if serves and is_told else []
        spare = find_spare(snapshot, view) if is_worn else None
        if is_worn:
            ready = f"have {spare.name} ready" if spare else "no proven spare waits"
            acts.append(f"{ready} to take the place of {view.name}; nothing takes it out of service yet")
            places += [make_place(spare)] if spare else []
        yield Ticket(
            **make_identity(key_incident(incident)),
            title=notes.name_work(view, incident),
            node=view.name,
            places=tuple(dict.fromkeys([*places, *filter(None, far_ends)])),
            expected="\n".join(dict.fromkeys(filter(None, (expected for expected, _ in texts)))),
            seen="\n".join([*(seen if seen[1:] else [texts[0][1]]), *still]),
            verify="\n".join(checks) or f"assay certify {view.name}",
            severity=incident.severity,
            steps="\n".join(acts).replace("NODE", view.name),
            files="\n".join(_list_archives(snapshot, view)),
        )


def _list_archives(snapshot: FleetSnapshot, view: NodeSnapshot) -> list[str]:
    """Return what was collected since the node left service: a file and what it is, each in a line."""
    moves = reversed(view.node_state.transitions)
    left = next((move.at for move in moves if snapshot.policy.is_in_service(move.origin)), "")
    lines = []
    for effect in view.node_state.effects:
        path = str(locate_diagnostics(REPORTS_FOLDER, view.name, effect.id))
        if effect.action == COLLECT and effect.at >= left and effect.reason.startswith(path):
            title = f"diagnostics of {effect.at[:16]} UTC, from before a restart"
            lines.append(f"{path}  {title}{effect.reason.removeprefix(path)}")
    return lines


def _is_answered(snapshot: FleetSnapshot, view: NodeSnapshot, fault: FaultRecord) -> bool:
    """Whether a fault needs nobody now: it is not catastrophic, its restart is under way, or its repair was verified.

    Only people's work answers what no restart mends. While a node serves, nothing is answered.
    """
    state, node_state = snapshot.policy_state_of(view), view.node_state
    if fault.severity != "catastrophic" or state.final or state.in_service:
        return fault.severity != "catastrophic" or state.final
    is_restarting = not fault.needs_people and bool(REPAIR_ACTIONS & set(state.entry))
    return is_restarting or node_state.is_repaired(fault)


def _make_stay_ticket(view: NodeSnapshot, kind: str, severity: FaultSeverity = "degraded", **words: str) -> Ticket:
    """Return a ticket about a node, which ends with the node's stay in its state. `words` are the texts of `Ticket`."""
    return make_ticket(f"{kind}/{view.name}/{view.node_state.stay_id}", [view], severity, **words)


def _describe_failure(recorded: RecordedOutcome) -> str:
    return f"{_test_name(recorded)} on {recorded.outcome.subject}: {recorded.outcome.reason}"


def _test_name(recorded: RecordedOutcome) -> str:
    return recorded.outcome.check.rpartition("::")[2]
