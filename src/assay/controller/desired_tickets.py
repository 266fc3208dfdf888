"""Which tickets should be open: a pure function of stories, newest outcomes, recorded decisions and the cabling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.actions.rma.dossier_archive import locate_dossier, locate_photo_folder
from assay.controller.effects.effect_journal import derive_effect_id
from assay.fabric.comparison import cabling_tickets as fabric_tickets
from assay.fabric.comparison.compare import FabricComparison
from assay.lifecycle.decisions.lost_cordons import find_cordon_effect
from assay.lifecycle.decisions.requirements import judge_state_requirements
from assay.lifecycle.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.lifecycle.node_state import FaultRecord
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.outcome import RecordedOutcome
from assay.model.specs.ticket_routes_and_checklists import TechnicianInspection
from assay.model.ticket import Ticket, TicketPlace

DOSSIER_ACTION = "dossier"
ENTRY_TICKET_ACTIONS = {"ticket", DOSSIER_ACTION}
TICKET_CAUSE_KINDS = ("fault", "deadline", "opened")
"""The kinds of causes that a ticket answers."""
REPORTS_FOLDER = Path("reports")


@dataclass(frozen=True, slots=True)
class TechnicianNotes:
    """What technicians do in which state, and what is known of parts of a node that were sent back before."""

    inspections: Mapping[str, TechnicianInspection] = field(default_factory=dict)
    returned_parts: Mapping[str, Sequence[str]] = field(default_factory=dict)


def list_desired_tickets(
    situation: FleetSnapshot,
    decisions: Iterable[LedgerEntry],
    cablings: Mapping[str, FabricComparison],
    hands: TechnicianNotes = TechnicianNotes(),
) -> list[Ticket]:
    """Return every ticket that there is work for now. A partial discovery wants none of its own."""
    found = [ticket for comparison in cablings.values() for ticket in fabric_tickets.make_cabling_tickets(comparison)]
    asked = _find_ticket_causes(decisions)
    for view in situation.nodes:
        if "ticket" in view.profile.actions:
            found += list(_state_tickets(situation, view, hands)) or _overdue_tickets(situation, view, asked)
            found += _failed_check_tickets(situation, view)
            found += _opened_node_tickets(situation, view, asked)
            found += _fault_tickets(view, asked, cablings)
    return found


def _find_ticket_causes(decisions: Iterable[LedgerEntry]) -> set[str]:
    """Return the ids of the faults, stays and lifted cordons for which the policy recorded the remedy `ticket`."""
    bodies = [entry.body for entry in decisions if entry.body["remedy"] == "ticket"]
    return {cause["id"] for body in bodies for cause in body["because"] if cause["kind"] in TICKET_CAUSE_KINDS}


def _state_tickets(situation: FleetSnapshot, view: NodeSnapshot, hands: TechnicianNotes) -> Iterator[Ticket]:
    """A state that a person must bring the node out of: one that asks for it, or one with a checklist."""
    state, story = situation.policy_state_of(view), view.node_state
    inspection = hands.inspections.get(story.state) if state.certified_to else None
    if inspection is None and not (ENTRY_TICKET_ACTIONS & set(state.entry) and story.decision):
        return
    faults = [f"open: {_format_fault(known)}" for known in story.faults if known.is_open]
    yield Ticket(
        **_make_identity(f"stay/{view.name}/{story.stay_id}"),
        title=f"{inspection.title}: {view.name} ({story.state})" if inspection else f"{story.state}: {view.name}",
        node=view.name,
        places=(_make_place(view),),
        expected=inspection.done if inspection else state.summary,
        seen="\n".join([story.reason, *faults, *hands.returned_parts.get(view.name, ())]),
        verify=f"assay certify {view.name} --reason '…'",
        severity="degraded" if story.decision else "informational",
        steps="\n".join(inspection.steps) if inspection else "",
        files=_format_files(view) if DOSSIER_ACTION in state.entry and story.decision else "",
    )


def _format_files(view: NodeSnapshot) -> str:
    """Return where the dossier of a node lies, and where its photos go."""
    effect = derive_effect_id(view.node_state.decision, DOSSIER_ACTION)
    archive, photos = (
        locate_dossier(REPORTS_FOLDER, view.name, effect),
        locate_photo_folder(REPORTS_FOLDER, view.name, effect),
    )
    return f"{archive}  the dossier, for the vendor\n{photos}  put the photos here, then: assay rma {view.name}"


def _overdue_tickets(situation: FleetSnapshot, view: NodeSnapshot, asked: set[str]) -> list[Ticket]:
    """Return the ticket of a node that is in its state for longer than the policy finds usual."""
    deadline, story = situation.policy_state_of(view).deadline, view.node_state
    if deadline is None or story.stay_id not in asked:
        return []
    ticket = Ticket(
        **_make_identity(f"late/{view.name}/{story.stay_id}"),
        title=f"{story.state} takes more than {deadline.hours:g} h: {view.name}",
        node=view.name,
        places=(_make_place(view),),
        expected=situation.policy_state_of(view).summary,
        seen=f"in {story.state} since {story.since[:16]} UTC: {story.reason}",
        verify=f"assay explain {view.name}",
        severity="degraded",
    )
    return [ticket]


def _opened_node_tickets(situation: FleetSnapshot, view: NodeSnapshot, asked: set[str]) -> Iterator[Ticket]:
    """A node that somebody opens again and again in its scheduler, while it is out."""
    story, policy = view.node_state, situation.policy
    closed = find_cordon_effect(policy, story)
    if closed is None or closed.id not in asked or view.cordon:
        return
    yield Ticket(
        **_make_identity(f"opened/{view.name}/{story.stay_id}"),
        title=f"somebody opens {view.name} while it is in {story.state}",
        node=view.name,
        places=(_make_place(view),),
        expected=f"no job starts on it while it is in {story.state}: {story.reason}",
        seen=f"its scheduler reads it as open; closed again {policy.cordons.again} times, and opened each time",
        verify=f"assay explain {view.name}",
        severity="degraded",
        steps="find who opens it: slurmctld's log, or the API server's audit log\n"
        f"who wants it open: assay hold {view.name} --reason '…'",
    )


def _failed_check_tickets(situation: FleetSnapshot, view: NodeSnapshot) -> Iterator[Ticket]:
    """Failed checks that keep a node where it is: what its state requires, with no other way out on a failure."""
    state = situation.policy_state_of(view)
    failed = {one.id: one for judgement in judge_state_requirements(situation, view) for one in judgement.failed}
    if state.fail_to or not failed:
        return
    outcomes = sorted(failed.values(), key=lambda one: (one.outcome.subject, one.outcome.check))
    yield Ticket(
        **_make_identity(f"trial/{view.name}/{view.node_state.stay_id}"),
        title=f"{view.name} does not pass {view.node_state.state}: {', '.join(_list_fault_classes(outcomes))}",
        node=view.name,
        places=tuple(dict.fromkeys(_make_place(view, one.outcome.subject) for one in outcomes)),
        expected=f"every check of {view.node_state.state} passes",
        seen="\n".join(f"{_test_name(one)} on {one.outcome.subject}: {one.outcome.reason}" for one in outcomes),
        verify="\n".join(f"{one.outcome.check}[{one.outcome.subject}]" for one in outcomes),
        severity="degraded",
    )


def _fault_tickets(view: NodeSnapshot, asked: set[str], cablings: Mapping[str, FabricComparison]) -> Iterator[Ticket]:
    """Open faults that the policy leaves to people. Bad cabling has the fabric's own ticket, with both ends."""
    recabled = any(comparison.discrepancies_of_node(view.name) for comparison in cablings.values())
    for known in view.node_state.faults:
        if known.is_open and known.id in asked and not (recabled and known.fault_class.startswith("ib.")):
            yield Ticket(
                **_make_identity(f"fault/{known.subject}/{known.fault_class}"),
                title=f"{known.fault_class} on {known.subject}",
                node=view.name,
                places=(_make_place(view, known.subject),),
                expected=f"no {known.fault_class}",
                seen=known.detail,
                verify="\n".join(_list_proving_checks(view, known)) or f"assay certify {view.name}",
                severity=known.severity,
            )


def _list_proving_checks(view: NodeSnapshot, known: FaultRecord) -> list[str]:
    return [
        f"{check.id}[{subject}]"
        for check, subject in view.declared
        if check.fault == known.fault_class and str(subject) == known.subject
    ]


def _make_identity(key: str) -> dict[str, str]:
    return {"id": derive_id("ticket", key), "key": key}


def _make_place(view: NodeSnapshot, subject: str = "") -> TicketPlace:
    part = subject.removeprefix(view.node.subject).strip("/")
    return TicketPlace(view.name, view.node.site, view.node.rack, view.node.u, port=part)


def _list_fault_classes(outcomes: Iterable[RecordedOutcome]) -> list[str]:
    return sorted({one.outcome.fault or _test_name(one) for one in outcomes})


def _test_name(one: RecordedOutcome) -> str:
    return one.outcome.check.rpartition("::")[2]


def _format_fault(known: FaultRecord) -> str:
    return f"{known.fault_class} on {known.subject}: {known.detail}"
