"""What a policy answers: which faults can come, which rule takes them, and what `check` says where none does well."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from assay.declare.check import check_repository
from assay.declare.loader import load_fleet
from assay.declare.rules.fault_rules import (
    FaultKind,
    compute_rule_reach,
    decode_kinds,
    list_fault_kinds,
    list_target_states,
)
from assay.model.specs.policy_sections import FaultRule
from tests.declare.rules.cases.case import FAULTS, POLICY
from tests.support.places import ROOT

Write = Callable[[Mapping[str, "str | None"]], Path]
FLEET = load_fleet(ROOT)
DEFAULT = FLEET.policies["default"]
KINDS = list_fault_kinds(FLEET.fault_catalogs.values())


def told(root: Path) -> list[str]:
    return [f"{problem.code} {problem.message}" for problem in check_repository(root).problems]


def some_of(values: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), unique=True, max_size=3)


RULES = st.builds(
    FaultRule,
    severity=some_of(["catastrophic", "degraded", "informational"]),
    classes=some_of(["gpu.xid.79", "gpu.thermal", "ib.link.flap", "psu.failed"]),
    states=some_of(["production", "test", "triage"]),
    blame=some_of(["hardware", "environment"]),
    in_use=st.sampled_from([None, True, False]),
    timing=st.sampled_from(["immediate", "pending", "record"]),
)


@given(st.lists(RULES, max_size=4), st.sampled_from(KINDS), st.sampled_from(["production", "test"]), st.booleans())
def test_reaching_is_what_answering_is(rules: list[FaultRule], kind: FaultKind, state: str, in_use: bool) -> None:
    """The rule to which a fault is left is the one that the policy answers with, for every fault and every state."""
    last = DEFAULT.faults["everything-else"]
    named = {f"rule-{number}": rule for number, rule in enumerate(rules)} | {"last": last}
    policy = DEFAULT.model_copy(update={"faults": named})
    title, _ = policy.find_fault_rule(state, kind.name, kind.severity, kind.blame, in_use)
    left = [
        reach.title
        for reach in compute_rule_reach(policy, KINDS)
        if kind in decode_kinds(KINDS, reach.unclaimed.get((state, in_use), 0))
    ]
    assert left == [title]


def test_an_xid_comes_under_its_own_number_and_early_sightings_are_informational() -> None:
    names = {(kind.name, kind.severity) for kind in KINDS}
    assert {("gpu.xid.119", "catastrophic"), ("gpu.xid.74", "degraded"), ("gpu.xid.74", "informational")} <= names
    assert not {"gpu.xid.reserved", "nvswitch.sxid.port"} & {kind.name for kind in KINDS}


def test_a_rule_goes_all_the_way_up_the_ladder() -> None:
    rule = DEFAULT.faults["catastrophic-in-production"]
    reset = [kind for kind in KINDS if kind.name == "gpu.xid.48"]
    assert list_target_states(DEFAULT, rule, reset) == ["production-gpu-reset", "production-reboot", "draining"]
    assert list_target_states(DEFAULT, DEFAULT.faults["everything-else"], reset) == []


def test_a_class_that_comes_as_xids_is_named_by_them(fleet_with: Write) -> None:
    """The rule would never match: sightings of XIDs carry the number, whatever their class is called."""
    faults = FAULTS.replace("gpu.hot: {", "gpu.xid.hot: {xid: [3, 4], ").replace("check: true, ", "")
    rule = "faults:\n  hot: {classes: [gpu.xid.hot], timing: record}\n"
    found = told(fleet_with({"specs/faults.yaml": faults, "specs/policy.yaml": POLICY.replace("faults:\n", rule)}))
    assert "ASY0072 hot: faults of gpu.xid.hot are named gpu.xid.3, gpu.xid.4" in found


def test_a_rule_for_a_severity_that_its_class_never_has_is_idle(fleet_with: Write) -> None:
    rule = "faults:\n  hot: {classes: [gpu.hot], severity: [catastrophic], timing: record}\n"
    assert told(fleet_with({"specs/policy.yaml": POLICY.replace("faults:\n", rule)})) == [
        "ASY0079 hot: no fault class matches it"
    ]


def test_several_rules_may_take_all_of_another_together(fleet_with: Write) -> None:
    rules = (
        "faults:\n"
        "  busy: {classes: [gpu.hot], in_use: true, timing: record}\n"
        "  idle: {classes: [gpu.hot], in_use: false, timing: record}\n"
        "  hot: {classes: [gpu.hot], timing: immediate, to: onboard}\n"
    )
    assert told(fleet_with({"specs/policy.yaml": POLICY.replace("faults:\n", rules)})) == [
        "ASY0079 hot: rules above it match everything that it matches"
    ]


def test_rules_that_overlap_and_agree_contradict_nobody(fleet_with: Write) -> None:
    rules = "faults:\n  busy: {in_use: true, timing: record}\n  hot: {classes: [gpu.hot], timing: record}\n"
    assert told(fleet_with({"specs/policy.yaml": POLICY.replace("faults:\n", rules)})) == []


def test_a_contradiction_names_a_fault_and_a_state(fleet_with: Write) -> None:
    rules = (
        "faults:\n  busy: {in_use: true, timing: record}\n  hot: {classes: [gpu.hot], timing: immediate, to: onboard}\n"
    )
    assert told(fleet_with({"specs/policy.yaml": POLICY.replace("faults:\n", rules)})) == [
        "ASY0078 busy and hot both match gpu.hot (degraded) in onboard, in use"
    ]


def test_a_remedy_of_the_rule_itself_must_be_a_rung(fleet_with: Write) -> None:
    rule = POLICY.replace("timing: pending, to: onboard", "timing: pending, remedy: zap")
    (found,) = check_repository(fleet_with({"specs/policy.yaml": rule})).problems
    assert found.message == "gpu.hot: any sends it up the ladder, which has no rung zap"
    assert (found.code, found.where) == ("ASY0087", "specs/policy.yaml:12:26")
