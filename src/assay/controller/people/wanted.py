"""Which tickets should be open: a pure function of stories, newest outcomes, recorded decisions and the cabling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.actions.rma.places import archive_of, photos_of
from assay.controller.effects.journal import effect_id
from assay.fabric import tickets as fabric_tickets
from assay.fabric.compare import Comparison
from assay.lifecycle.opened import closed_by
from assay.lifecycle.requirements import judge
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Known
from assay.model.checklist import Inspection
from assay.model.entry import Entry, derived_id
from assay.model.outcome import Recorded
from assay.model.ticket import Place, Ticket

DOSSIER = "dossier"
ON_ARRIVAL = {"ticket", DOSSIER}
BY_TICKET = ("fault", "deadline", "opened")
"""The kinds of causes that a ticket answers."""
REPORTS = Path("reports")


@dataclass(frozen=True, slots=True)
class Hands:
    """What technicians do in which state, and what is known of parts of a node that were sent back before."""

    inspections: Mapping[str, Inspection] = field(default_factory=dict)
    returned: Mapping[str, Sequence[str]] = field(default_factory=dict)


def wanted(
    situation: Situation,
    decisions: Iterable[Entry],
    cablings: Mapping[str, Comparison],
    hands: Hands = Hands(),
) -> list[Ticket]:
    """Return every ticket that there is work for now. A partial discovery wants none of its own."""
    found = [ticket for comparison in cablings.values() for ticket in fabric_tickets.tickets(comparison)]
    asked = _asked_for(decisions)
    for view in situation.nodes:
        if "ticket" in view.profile.actions:
            found += list(_stay(situation, view, hands)) or _late(situation, view, asked)
            found += _trial(situation, view)
            found += _opened(situation, view, asked)
            found += _faults(view, asked, cablings)
    return found


def _asked_for(decisions: Iterable[Entry]) -> set[str]:
    """Return the ids of the faults, stays and lifted cordons for which the policy recorded the remedy `ticket`."""
    bodies = [entry.body for entry in decisions if entry.body["remedy"] == "ticket"]
    return {cause["id"] for body in bodies for cause in body["because"] if cause["kind"] in BY_TICKET}


def _stay(situation: Situation, view: NodeView, hands: Hands) -> Iterator[Ticket]:
    """A state that a person must bring the node out of: one that asks for it, or one with a checklist."""
    state, story = situation.state_of(view), view.story
    inspection = hands.inspections.get(story.state) if state.certified_to else None
    if inspection is None and not (ON_ARRIVAL & set(state.entry) and story.decision):
        return
    faults = [f"open: {_fault_line(known)}" for known in story.faults if known.open]
    yield Ticket(
        **_identity(f"stay/{view.name}/{story.stay}"),
        title=f"{inspection.title}: {view.name} ({story.state})" if inspection else f"{story.state}: {view.name}",
        node=view.name,
        places=(_place(view),),
        expected=inspection.done if inspection else state.summary,
        seen="\n".join([story.because, *faults, *hands.returned.get(view.name, ())]),
        verify=f"assay certify {view.name} --reason '…'",
        severity="degraded" if story.decision else "informational",
        steps="\n".join(inspection.steps) if inspection else "",
        files=_files(view) if DOSSIER in state.entry and story.decision else "",
    )


def _files(view: NodeView) -> str:
    """Return where the dossier of a node lies, and where its photos go."""
    effect = effect_id(view.story.decision, DOSSIER)
    archive, photos = archive_of(REPORTS, view.name, effect), photos_of(REPORTS, view.name, effect)
    return f"{archive}  the dossier, for the vendor\n{photos}  put the photos here, then: assay rma {view.name}"


def _late(situation: Situation, view: NodeView, asked: set[str]) -> list[Ticket]:
    """Return the ticket of a node that is in its state for longer than the policy finds usual."""
    deadline, story = situation.state_of(view).deadline, view.story
    if deadline is None or story.stay not in asked:
        return []
    ticket = Ticket(
        **_identity(f"late/{view.name}/{story.stay}"),
        title=f"{story.state} takes more than {deadline.hours:g} h: {view.name}",
        node=view.name,
        places=(_place(view),),
        expected=situation.state_of(view).summary,
        seen=f"in {story.state} since {story.since[:16]} UTC: {story.because}",
        verify=f"assay explain {view.name}",
        severity="degraded",
    )
    return [ticket]


def _opened(situation: Situation, view: NodeView, asked: set[str]) -> Iterator[Ticket]:
    """A node that somebody opens again and again in its scheduler, while it is out."""
    story, policy = view.story, situation.policy
    closed = closed_by(policy, story)
    if closed is None or closed.id not in asked or view.cordon:
        return
    yield Ticket(
        **_identity(f"opened/{view.name}/{story.stay}"),
        title=f"somebody opens {view.name} while it is in {story.state}",
        node=view.name,
        places=(_place(view),),
        expected=f"no job starts on it while it is in {story.state}: {story.because}",
        seen=f"its scheduler reads it as open; closed again {policy.cordons.again} times, and opened each time",
        verify=f"assay explain {view.name}",
        severity="degraded",
        steps="find who opens it: slurmctld's log, or the API server's audit log\n"
        f"who wants it open: assay hold {view.name} --reason '…'",
    )


def _trial(situation: Situation, view: NodeView) -> Iterator[Ticket]:
    """Failed checks that keep a node where it is: what its state requires, with no other way out on a failure."""
    state = situation.state_of(view)
    failed = {one.id: one for judgement in judge(situation, view) for one in judgement.failed}
    if state.fail_to or not failed:
        return
    outcomes = sorted(failed.values(), key=lambda one: (one.outcome.subject, one.outcome.check))
    yield Ticket(
        **_identity(f"trial/{view.name}/{view.story.stay}"),
        title=f"{view.name} does not pass {view.story.state}: {', '.join(_classes(outcomes))}",
        node=view.name,
        places=tuple(dict.fromkeys(_place(view, one.outcome.subject) for one in outcomes)),
        expected=f"every check of {view.story.state} passes",
        seen="\n".join(f"{_test(one)} on {one.outcome.subject}: {one.outcome.reason}" for one in outcomes),
        verify="\n".join(f"{one.outcome.check}[{one.outcome.subject}]" for one in outcomes),
        severity="degraded",
    )


def _faults(view: NodeView, asked: set[str], cablings: Mapping[str, Comparison]) -> Iterator[Ticket]:
    """Open faults that the policy leaves to people. Bad cabling has the fabric's own ticket, with both ends."""
    recabled = any(comparison.of_node(view.name) for comparison in cablings.values())
    for known in view.story.faults:
        if known.open and known.id in asked and not (recabled and known.fault_class.startswith("ib.")):
            yield Ticket(
                **_identity(f"fault/{known.subject}/{known.fault_class}"),
                title=f"{known.fault_class} on {known.subject}",
                node=view.name,
                places=(_place(view, known.subject),),
                expected=f"no {known.fault_class}",
                seen=known.detail,
                verify="\n".join(_checks(view, known)) or f"assay certify {view.name}",
                severity=known.severity,
            )


def _checks(view: NodeView, known: Known) -> list[str]:
    return [
        f"{check.id}[{subject}]"
        for check, subject in view.declared
        if check.fault == known.fault_class and str(subject) == known.subject
    ]


def _identity(key: str) -> dict[str, str]:
    return {"id": derived_id("ticket", key), "key": key}


def _place(view: NodeView, subject: str = "") -> Place:
    part = subject.removeprefix(view.node.subject).strip("/")
    return Place(view.name, view.node.site, view.node.rack, view.node.u, port=part)


def _classes(outcomes: Iterable[Recorded]) -> list[str]:
    return sorted({one.outcome.fault or _test(one) for one in outcomes})


def _test(one: Recorded) -> str:
    return one.outcome.check.rpartition("::")[2]


def _fault_line(known: Known) -> str:
    return f"{known.fault_class} on {known.subject}: {known.detail}"
