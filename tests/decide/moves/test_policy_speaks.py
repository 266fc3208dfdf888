"""A policy that cannot work is refused when it is read; one that works names the line of each rule."""

from __future__ import annotations

from typing import Any

import pytest

from assay.decide.moves.decide import decide
from assay.model.errors import AssayError
from assay.model.specs.lifecycle_policy import LifecyclePolicy


def changed(policy: LifecyclePolicy, path: str, new: Any) -> dict[str, Any]:
    plain = policy.model_dump(exclude_unset=True)
    here = plain
    *steps, last = path.split(".")
    for step in steps:
        here = here[step]
    here[last] = new
    return plain


@pytest.mark.parametrize(
    ("path", "new", "said"),
    [
        ("states.seatrial.pass_to", "heaven", "'heaven' is no state"),
        ("states.seatrial.pass_to", "production", "edges draw no seatrial → production"),
        ("edges.triage", ["nowhere"], "'nowhere' is no state"),
        ("states.production.in_service", False, "no state is in_service"),
        ("faults.everything-else.severity", ["degraded"], "must match everything"),
        ("faults.catastrophic-again.to", "limbo", "'limbo' is no state"),
        ("ladder.rungs.reboot.then", "zap", "which is no rung"),
        ("ladder.rungs.rma.to", "limbo", "'limbo' is no state"),
        ("anywhere", ["limbo"], "'limbo' is no state"),
        ("limits.pool_percent", 0, "greater than 0"),
        ("breaker.min_nodes", 1, "greater than or equal to 2"),
        ("states.zap.deadline", {"hours": 6.0, "to": "zapfail", "unless": "tuesday"}, "Extra inputs"),
        ("states.zap.entry", ["pray"], "Input should be"),
        ("states.test.deadline", {"hours": 24.0}, "nothing leaves before 24 h"),
        ("racks.nvl72.more_than", 18, "which never happens"),
        ("limits.effects_at_once.rack", 65, "only 64 in its whole pool"),
        ("limits.per_minute", 0, "greater than or equal to 1"),
    ],
)
def test_a_policy_that_cannot_work_is_refused(policy, path, new, said):
    with pytest.raises(ValueError, match=said):
        LifecyclePolicy.model_validate(changed(policy, path, new))


def test_a_state_without_a_way_back_into_service_is_refused(policy):
    plain = changed(policy, "states.zapfail.certified_to", None)
    plain["edges"]["zapfail"] = []
    with pytest.raises(ValueError, match="no way back into service from: zapfail"):
        LifecyclePolicy.model_validate(plain)
    plain["states"]["zapfail"]["final"] = True
    LifecyclePolicy.model_validate(plain)


def test_the_default_policy_draws_the_states_of_the_design(policy):
    assert set(policy.states) == {
        *("discovered", "initializing", "onboard", "seatrial", "zap", "zapfail", "test", "production"),
        *("production-reboot", "production-powercycle-test", "draining", "triage", "debug"),
        *("rma", "retired", "confirmation", "wipe", "cordoned", "spare", "production-netboot"),
        *("powered-off", "production-poweron", "production-gpu-reset", "hand-over"),
    }
    assert policy.has_edge("zap", "zapfail")
    assert policy.has_edge("seatrial", "retired"), "any node may be retired"
    assert not policy.has_edge("triage", "production")


def test_a_decision_names_the_line_of_its_rule(paper):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79")
    lines = {("LifecyclePolicy/default", "faults.catastrophic-in-production"): "specs/lifecycle/default.yaml:57"}
    (made,) = decide(paper.situation(lines=lines))
    assert made.rule == "specs/lifecycle/default.yaml:57 catastrophic-in-production"


def test_a_node_in_a_state_that_the_policy_does_not_have_is_trouble_for_a_person(paper):
    paper.add("n1", "limbo")
    with pytest.raises(AssayError, match="n1 is in state limbo"):
        paper.decide()


def test_profiles_differ_in_what_they_allow(profiles):
    managed, unmanaged = profiles["managed"], profiles["unmanaged"]
    assert managed.acts_on_faults
    assert managed.hca_firmware
    assert not unmanaged.acts_on_faults
    assert not unmanaged.hca_firmware
    assert {"reboot", "drain-now", "powercycle"} <= set(managed.actions) - set(unmanaged.actions)
    assert "zap" in unmanaged.actions
