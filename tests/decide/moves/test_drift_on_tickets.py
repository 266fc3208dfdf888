"""A ticket about drift names each wanted value with its place, what was seen, and since when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.act.tickets.desired_tickets import TICKET_CAUSES, list_desired_tickets
from assay.decide.moves.decide import decide
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.ticket import Ticket

BIOS = CheckDeclaration(id="suites/z.py::test_bios_is_set", subject="node", phases=["zap"], fault="firmware.drift")
ONE = "BIOS 2.6.9, expected 2.7.3 (specs/f.yaml:9)"


@pytest.fixture
def drifted(paper):
    paper.add("n1")
    paper.checks["bios"] = BIOS
    paper.judge("n1", "zap", "fail", f"{ONE}; HCA_6 28.41, expected 28.43 (specs/f.yaml:49)")
    return paper


def ticket_about(paper, fault_class: str) -> Ticket:
    """Let a fault be seen and decided on; return its ticket."""
    paper.fault("n1", fault_class, detail="as the log says")
    paper.step()
    decisions = [entry for entry in paper.log.values() if entry.kind == "decision"]
    (ticket,) = [
        one
        for one in list_desired_tickets(paper.situation(), TICKET_CAUSES.fold(decisions), {})
        if one.key.startswith("incident/")
    ]
    return ticket


def test_each_difference_has_its_value_its_place_and_the_begin(drifted):
    drifted.judge("n1", "bios", "fail", "secure boot is on")
    ticket = ticket_about(drifted, "firmware.drift")
    assert ticket.expected == "bios is set\nBIOS: 2.7.3 (specs/f.yaml:9)\nHCA_6: 28.43 (specs/f.yaml:49)"
    assert ticket.seen == "secure boot is on\nBIOS: 2.6.9\nHCA_6: 28.41\nsince 2026-11-21 12:00 UTC"


def test_drift_without_a_failing_check_keeps_its_own_words(drifted):
    drifted.judge("n1", "zap")
    ticket = ticket_about(drifted, "firmware.drift")
    assert (ticket.expected, ticket.seen) == ("", "as the log says\nsince 2026-11-21 12:00 UTC")


def test_other_faults_keep_their_words(drifted):
    ticket = ticket_about(drifted, "fan.failed")
    assert (ticket.expected, ticket.seen) == ("", "as the log says")


def test_drift_that_an_earlier_spec_judged_asks_nobody_for_anything(drifted):
    drifted.fault("n1", "firmware.drift", marks={"check": "a run"})
    view = drifted.view("n1")

    def tell(today: str) -> tuple[int, int]:
        """Return how many decisions and how many tickets there are if the check must be judged by `today`."""
        situation = drifted.situation(
            replace(view, judging_hashes=dict.fromkeys((check.id for check in drifted.checks.values()), today))
        )
        decided = decide(situation)
        causes = [cause.id for decision in decided for cause in decision.causes]
        return len(decided), len(list_desired_tickets(drifted.situation(situation.nodes[0]), causes, {}))

    assert tell(view.latest[0].outcome.judged_by) == (1, 1)
    assert tell("the spec after a revert") == (0, 0)
