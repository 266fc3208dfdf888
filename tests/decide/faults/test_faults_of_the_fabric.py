"""A fabric check that fails at a node's link is that node's fault; on an unmanaged node it is seen and left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.decide.faults.detection import detect_faults
from assay.decide.state import decision_and_fault_entries


@pytest.fixture
def scan_fails(paper, catalog):
    """Let the fabric's check of a node's link fail, and classify it as a pass of the loop does."""

    def fail(name: str, times: int = 1) -> list[str]:
        found = []
        for _ in range(times):
            paper.judge(name, "fabric", "fail", "downs 3 count at leaf-su01-r0 port 2/1 (r06 U30)")
            seen = detect_faults(
                catalog, paper.policy, paper.nodes[name], None, paper.story(name), None, paper.outcomes[name].values()
            )
            paper.write(*(decision_and_fault_entries.make_fault_entry(fault, paper.now) for fault in seen))
            found += [fault.fault_class for fault in seen]
            paper.later(minutes=1)
        return found

    return fail


def test_a_link_that_flaps_is_the_fault_of_its_node(paper, scan_fails):
    paper.add("n1", "production")
    assert scan_fails("n1") == ["ib.link.flap"]
    assert [(one.severity, one.subject) for one in paper.story("n1").faults] == [("degraded", "a/n1")]


def test_of_checks_of_one_class_the_one_is_told_that_names_the_part(paper, catalog):
    paper.add("n1", "production")
    told = {"suites/a.py::test_group": "group 0 is Critical", "suites/b.py::test_fans": "fan3 is Critical"}
    paper.judge("n1", "fabric", "fail")
    (planted,) = paper.outcomes["n1"].values()
    failed = [
        replace(planted, outcome=replace(planted.outcome, check=check, reason=reason, fault="fan.failed"))
        for check, reason in told.items()
    ]
    (seen,) = detect_faults(catalog, paper.policy, paper.nodes["n1"], None, paper.story("n1"), None, failed)
    assert (seen.fault_class, seen.detail) == ("fan.failed", "fan3 is Critical")


@pytest.mark.parametrize(("profile", "moves"), [("managed", ["draining"]), ("unmanaged", [])])
def test_on_an_unmanaged_node_a_bad_link_is_tracked_and_never_acted_on(profile, moves, paper, scan_fails):
    paper.add("n1", "production", profile=profile)
    scan_fails("n1")
    made = [one for _ in range(3) for one in paper.step()]
    assert "ib.link.flap" in {fault.fault_class for fault in paper.story("n1").faults}
    assert [one.to_state for one in made if one.timing != "record" and one.to_state != "production"] == moves
    assert paper.story("n1").state == ("draining" if moves else "production")


@pytest.mark.parametrize("fault", ["ib.link.errors", "ib.ber", "ib.optics", "ib.switch.health"])
def test_what_only_hands_can_mend_becomes_a_ticket_and_drains_nobody(fault, paper):
    paper.add("n1", "production")
    paper.fault("n1", fault, "mlx5_0")
    (made,) = paper.step()
    assert (made.timing, made.remedy) == ("record", "ticket")
    assert paper.story("n1").state == "production"
