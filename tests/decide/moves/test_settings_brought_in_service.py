"""A node in service gets settings where it is: at once or when idle, never more than policy and setting allow."""

from __future__ import annotations

from typing import Any

import pytest

from assay.act.tickets.desired_tickets import TICKET_CAUSES, list_desired_tickets
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.decision import Decision
from assay.model.specs.check_catalog import CheckDeclaration

SETTINGS = {
    "sysctl": ("host.sysctls", "vm.zone_reclaim_mode 1, expected 0 (specs/n.yaml:8)"),
    "hugepages": ("host.sysctls", "vm.nr_hugepages 512, expected 0 (specs/n.yaml:8)"),
    "mtu": ("nics.mtu", "mtu 1500, expected 9000 (specs/n.yaml:9)"),
    "kernel": ("host.kernel", "kernel 6.5, expected 6.8 (specs/n.yaml:7)"),
    "swap": ("", "swap 4096, expected 0"),
}


@pytest.fixture
def fleet(paper, policy):
    """One node in service, with one job; by this policy, the MTU may be brought while the node is idle."""
    changed = policy.corrections.model_copy(update={"idle": ["nics.mtu"], "times": 2, "per_hour": 3})
    paper.policy = policy.model_copy(update={"corrections": changed})
    for name in SETTINGS:
        ident = f"suites/p.py::test_{name}"
        paper.checks[name] = CheckDeclaration(
            id=ident, subject="node", phases=["production"], fault="host.config.drift"
        )
    add(paper, "n1")
    return paper


def add(paper, name: str) -> None:
    paper.add(name)
    paper.jobs[name] = ("job 17 (train)",)


def situate(paper, **more: Any):
    settings = {paper.checks[name].id: frozenset([path]) for name, (path, _) in SETTINGS.items() if path}
    original = type(paper).situation
    paper.situation = lambda **lines: original(paper, **{"settings_of_checks": settings, **more, **lines})


def drift(paper, *what: str, node: str = "n1", **more: Any) -> list[Decision]:
    """Let checks see these settings differ now; return what is decided."""
    situate(paper, **more)
    for name in what:
        paper.judge(node, name, "fail", SETTINGS[name][1])
    if not any(fault.is_open for fault in paper.story(node).faults):
        paper.fault(node, "host.config.drift")
    return paper.step()


def remedies(decisions: list[Decision]) -> list[tuple[str, str]]:
    return [(one.remedy, one.causes[0].kind) for one in decisions]


def owed(paper, node: str = "n1") -> list[str]:
    return [one.action for one in list_outstanding_effects(paper.policy, paper.story(node))]


@pytest.mark.parametrize(
    ("what", "decided", "actions"),
    [
        ("sysctl", [("configure", "setting")], ["configure"]),
        ("hugepages", [("wait", "jobs")], []),
        ("mtu", [("wait", "jobs")], []),
        ("kernel", [("ticket", "fault")], []),
        ("swap", [("ticket", "fault")], []),
        ("sysctl kernel", [("ticket", "fault"), ("configure", "setting")], ["configure"]),
        ("sysctl mtu", [("configure", "setting")], ["configure"]),
    ],
)
def test_under_a_job_only_what_no_job_notices_is_brought(fleet, what: str, decided: Any, actions: list[str]):
    made = drift(fleet, *what.split())
    assert remedies(made) == decided
    assert owed(fleet) == actions
    assert (fleet.story("n1").state, fleet.story("n1").pending) == ("production", None)
    assert fleet.step() == [], "it is decided once"


def test_the_setting_that_needs_an_idle_node_waits_for_the_end_of_the_job_and_is_cordoned_meanwhile(fleet):
    (waits,) = drift(fleet, "mtu")
    assert waits.blockers == ("job 17 (train)",)
    fleet.jobs["n1"] = ()
    (made,) = fleet.step()
    assert made.remedy == "configure-idle"
    first, *_ = list_outstanding_effects(fleet.policy, fleet.story("n1"))
    assert owed(fleet) == ["cordon", "configure", "uncordon"]
    fleet.effect("n1", "verified", first.decision, "cordon")
    fleet.effect("n1", "failed", first.decision, "configure")
    assert owed(fleet) == ["uncordon"], "a node whose settings failed is opened again"
    fleet.effect("n1", "verified", first.decision, "uncordon")
    assert owed(fleet) == []


def test_the_action_is_told_which_settings_and_whether_the_node_is_idle(fleet):
    drift(fleet, "sysctl")
    (effect,) = list_outstanding_effects(fleet.policy, fleet.story("n1"))
    assert effect.params == {"settings": ["host.sysctls"], "idle": False}


def test_a_setting_that_comes_back_is_brought_after_a_pause_and_then_left_to_people(fleet):
    drift(fleet, "sysctl")
    fleet.settle("n1")
    assert fleet.step() == [], "the evidence is from before the correction"
    fleet.later(minutes=1)
    assert remedies(drift(fleet, "sysctl")) == [("wait", "pause")]
    fleet.later(minutes=30)
    assert remedies(fleet.step()) == [("configure", "setting")]
    fleet.settle("n1")
    fleet.later(minutes=1)
    (made,) = drift(fleet, "sysctl")
    assert made.remedy == "ticket"
    assert "assay brought host.sysctls 2 times in 32 min, and it differs again: another tool" in made.causes[0].text
    decisions = [entry for entry in fleet.log.values() if entry.kind == "decision"]
    (ticket,) = list_desired_tickets(fleet.situation(), TICKET_CAUSES.fold(decisions), {})
    assert ticket.steps == made.causes[0].text

    fleet.say("certified", "n1")
    fleet.later(minutes=1)
    fleet.fault("n1", "host.config.drift")
    assert remedies(drift(fleet, "sysctl")) == [("configure", "setting")], "a person has found the other tool"


@pytest.mark.parametrize(
    ("obstacle", "decided"),
    [
        ("hold", [("wait", "person")]),
        ("closed", [("wait", "foreign")]),
        ("profile", [("ticket", "fault")]),
        ("rollout", []),
    ],
)
def test_holds_others_cordons_profiles_and_rollouts_are_respected(fleet, obstacle: str, decided: Any):
    more = {}
    match obstacle:
        case "hold":
            fleet.say("hold", "n1")
        case "closed":
            fleet.foreign["n1"] = "bob: RAM"
        case "profile":
            actions = [one for one in fleet.profiles["managed"].actions if one != "configure"]
            fleet.profiles = {"managed": fleet.profiles["managed"].model_copy(update={"actions": actions})}
        case "rollout":  # also of a class that is not known as drift
            breaker = fleet.policy.breaker.model_copy(update={"drift": []})
            fleet.policy = fleet.policy.model_copy(update={"breaker": breaker})
            more["rolling_nodes"] = frozenset(["n1"])
    assert remedies(drift(fleet, "sysctl", **more)) == decided
    assert owed(fleet) == []


def test_a_profile_that_leaves_the_operating_system_alone_gets_a_ticket(fleet):
    own = fleet.profiles["managed"].model_copy(update={"host_settings": False})
    fleet.profiles = {"managed": own}
    assert remedies(drift(fleet, "sysctl")) == [("ticket", "fault")]


def test_only_so_many_begin_in_an_hour(fleet):
    for number in range(2, 6):
        add(fleet, f"n{number}")
    situate(fleet)
    for name in fleet.nodes:
        fleet.judge(name, "sysctl", "fail", SETTINGS["sysctl"][1])
        fleet.fault(name, "host.config.drift")
    assert sorted(remedies(fleet.step())) == [("configure", "setting")] * 3 + [("wait", "limit")] * 2
    fleet.later(hours=1)
    assert remedies(fleet.step()) == [("configure", "setting")] * 2


def test_idle_nodes_are_cordoned_only_as_far_as_limits_allow(fleet):
    for number in range(2, 5):
        add(fleet, f"n{number}")
    situate(fleet)
    for name in fleet.nodes:
        fleet.jobs[name] = ()
        fleet.judge(name, "mtu", "fail", SETTINGS["mtu"][1])
        fleet.fault(name, "host.config.drift")
    assert sorted(remedies(fleet.step())) == [("configure-idle", "setting")] + [("wait", "limit")] * 3
    assert fleet.step() == [], "the cordon of the first one counts"


def test_a_node_that_waits_to_leave_service_gets_nothing(fleet):
    fleet.fault("n1", "gpu.thermal", "gpu3")
    fleet.step()
    assert drift(fleet, "sysctl") == []
