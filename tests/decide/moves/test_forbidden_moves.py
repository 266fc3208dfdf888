"""What `assay check` promises of profiles (ASY0100) is what deciding does: a forbidden move waits, for ever."""

from __future__ import annotations

import pytest

from assay.model.specs.management_profile import ManagementProfile


@pytest.fixture
def without(paper, profiles):
    """Take an action out of a profile."""

    def without(profile: str, action: str) -> None:
        plain = profiles[profile].model_dump(exclude_unset=True)
        plain["actions"] = [one for one in plain["actions"] if one != action]
        paper.profiles = {**profiles, profile: ManagementProfile.model_validate(plain)}

    return without


def test_a_state_whose_entry_is_forbidden_is_never_entered(paper, without):
    without("unmanaged", "ticket")
    paper.add("n1", "zap", profile="unmanaged")
    paper.later(hours=7)
    (record,) = paper.step()
    assert (record.timing, record.to_state) == ("record", "zapfail")
    assert record.blockers == ("profile unmanaged does not allow: ticket",)
    for _ in range(5):
        paper.later(hours=24)
        assert paper.step() == []
    assert paper.story("n1").state == "zap"


def test_a_person_may_lead_a_node_past_an_escalation_that_its_profile_forbids(paper):
    """So an escalation of nodes on whose faults nobody acts is nothing that the policy relies on."""
    paper.add("n1", "triage", profile="unmanaged")
    paper.fault("n1", "gpu.thermal", "gpu3")
    paper.say("certified", "n1")
    paper.step()
    assert paper.story("n1").state == "seatrial"
