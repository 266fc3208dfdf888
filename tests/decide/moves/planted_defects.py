"""Defects that the judge of whole histories must find, and the shortest history that shows each."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from assay.decide.moves import (
    circuit_breaker,
    cordons,
    evidence_validity,
    fault_remedies,
    manual_moves,
    proposed_exits,
    remedy_ladder,
    required_checks,
)
from assay.decide.moves import decide as holds
from assay.decide.moves.blast_radius_limits import LimitCapacity
from assay.decide.moves.decide import decide
from assay.decide.moves.evidence_validity import RequiredBoot
from assay.decide.moves.proposals import Proposal, grant_proposal
from assay.model.decision import ActionName, DecisionCause
from tests.decide.moves.fleet_histories import Histories
from tests.decide.moves.judged_fleet import enrol

EVERY = [*get_args(ActionName)]


def without(*parts):
    """Return the machine's `decide` without some of its parts, which a defect has replaced."""

    def deciding_with(situation):
        with pytest.MonkeyPatch.context() as patch:
            for home, name, defect in parts:
                patch.setattr(home, name, defect)
            return decide(situation)

    return deciding_with


def lost_telemetry_drains(situation):
    """Drain who is silent, as no rule of the policy says."""
    made = decide(situation)
    for view in sorted(situation.nodes, key=lambda view: view.name):
        told = [one for one in view.node_state.faults if one.fault_class == "telemetry.lost" and one.is_open]
        if (
            told
            and view.node_state.state == "production"
            and view.name not in {one.node for one in made if one.timing != "record"}
        ):
            because = (DecisionCause("fault", told[0].id, "silent"),)
            made.append(
                grant_proposal(
                    situation, view, Proposal("draining", "immediate", "", "silence", because, (told[0].id,))
                )
            )
    return made


def idle_where_nobody_answers(situation):
    """Take a scheduler that does not answer for an idle node."""
    return decide(replace(situation, nodes=tuple(replace(view, jobs=view.jobs or ()) for view in situation.nodes)))


def nobody_holds(situation):
    """Forget who holds what."""
    free = (replace(view, node_state=replace(view.node_state, hold=None)) for view in situation.nodes)
    return decide(replace(situation, nodes=tuple(free)))


def everything_is_allowed(situation):
    """Let every profile allow everything."""
    every = {"acts_on_faults": True, "actions": EVERY}
    views = (replace(view, profile=view.profile.model_copy(update=every)) for view in situation.nodes)
    return decide(replace(situation, nodes=tuple(views)))


def any_edge(situation):
    """Send a node straight to where a person wants it."""
    straight = (manual_moves, "find_next_step", lambda policy, _, to: to if to in policy.states else "")
    no_obstacle = (manual_moves, "_find_obstacle", lambda *given: "" if given[-1] else "no such state")
    return without(straight, no_obstacle)(situation)


def as_they_come(situation):
    """Give room to who is named first, and not to who needs it most."""
    order = {view.name: number for number, view in enumerate(situation.nodes)}
    return without((fault_remedies, "urgency_key", lambda view: (order[view.name], "", "")))(situation)


def same_machine(paper, name, state, serial):
    """Take another serial number for the same machine."""
    enrol(paper, name, state, "")


DEFECTS = {
    "stale passes count": (
        "admits without a proof",
        without(
            (required_checks, "find_shortcoming", lambda *_, **__: ""),
            (required_checks, "find_disorder", lambda *_: ""),
        ),
    ),
    "later faults are forgotten": (
        "admits over a later fault",
        without((evidence_validity, "find_unproved_fault", lambda *_: None)),
    ),
    "room without end": ("exceeds the limit", without((LimitCapacity, "find_refusal", lambda *_, **__: None))),
    "any number of racks": ("exceeds the limit of racks", without((cordons, "_is_cordoned", lambda _: True))),
    "holds are ignored": ("acts on a held node", nobody_holds),
    "profiles are ignored": ("beyond the profile|no way out", everything_is_allowed),
    "silence is idleness": ("acts on missing data", idle_where_nobody_answers),
    "lost telemetry drains": ("acts on lost telemetry", lost_telemetry_drains),
    "certifications are not read": ("no way out", without((proposed_exits, "_certified", lambda *_: None))),
    "first come, first served": ("the order changes the answer", as_they_come),
    "any edge will do": ("there is no such edge", any_edge),
    "the breaker takes all the room": (
        "takes more than half of the room",
        without((LimitCapacity, "has_room_to_hold", lambda *_: True)),
    ),
    "cleared breakers are forgotten": (
        "holds what a person cleared",
        without((circuit_breaker, "_list_counting", lambda _, view: view.node_state.faults)),
    ),
    "cordons of others are ignored": (
        "disturbs under a cordon of others",
        without((holds, "find_foreign_hold", lambda *_: None)),
    ),
    "flaps are not counted": (
        "opens a flapping node again and again",
        without((remedy_ladder, "list_recent_flaps", lambda *_: [])),
    ),
    "repairs by the clock": (
        "admits without a proof",
        without(
            (evidence_validity, "is_newer_than_repair", lambda *_: True),
            (required_checks, "find_required_boot", lambda *_: RequiredBoot()),
        ),
    ),
    "boots are not compared": (
        "admits without a proof",
        without((required_checks, "find_required_boot", lambda *_: RequiredBoot())),
    ),
}


ENROLMENT_DEFECTS = {"serial numbers are ignored": ("inherits the record of another machine", same_machine)}
ALL_DEFECTS = [*DEFECTS, *ENROLMENT_DEFECTS]


def defective(defect):
    """Return what the judge says of a defect, and histories with it."""
    part, (said, broken) = ("decide", DEFECTS[defect]) if defect in DEFECTS else ("enrol", ENROLMENT_DEFECTS[defect])
    return said, type("Defective", (Histories,), {part: staticmethod(broken)})


def three(machine):
    machine.faults_are_seen(names={"h0", "h1", "h2"}, fault="gpu.xid.79")


def wave(machine):
    machine.faults_are_seen(names={f"h{number}" for number in range(6)}, fault="gpu.xid.79")


LEADS_TO = {
    "stale passes count": lambda machine: machine.a_repair_comes_after_its_passes(name="h0"),
    "later faults are forgotten": lambda machine: machine.a_fault_comes_after_the_evidence(
        name="h0", fault="psu.failed", hours=0
    ),
    "room without end": three,
    "any number of racks": lambda machine: [
        machine.a_rack_loses_two(rack=rack, fault=fault) for rack, fault in (("0", "gpu.xid.79"), ("1", "gpu.xid.119"))
    ],
    "holds are ignored": lambda machine: machine.a_held_node_breaks(name="h0"),
    "profiles are ignored": lambda machine: machine.faults_are_seen(names={"u0"}, fault="gpu.xid.79"),
    "silence is idleness": lambda machine: machine.faults_are_seen(names={"h0"}, fault="gpu.thermal"),
    "lost telemetry drains": lambda machine: machine.faults_are_seen(names={"h0"}, fault="telemetry.lost"),
    "certifications are not read": lambda machine: machine.a_person_moves(name="h0", to="draining", now=True),
    "first come, first served": three,
    "any edge will do": lambda machine: machine.a_person_moves(name="h0", to="test", now=True),
    "the breaker takes all the room": wave,
    "cleared breakers are forgotten": lambda machine: [wave(machine), machine.a_person_clears_the_breaker(pool="a")],
    "cordons of others are ignored": lambda machine: machine.a_closed_node_breaks(name="h0"),
    "flaps are not counted": lambda machine: machine.a_fault_comes_and_goes(name="h0", fault="gpu.xid.62", minutes=130),
    "repairs by the clock": lambda machine: machine.a_repair_comes_after_its_passes(name="h0"),
    "boots are not compared": lambda machine: machine.passes_of_the_boot_before_a_repair_come_late(name="h0"),
    "serial numbers are ignored": lambda machine: machine.a_machine_is_replaced(name="h0", start="onboard"),
}
