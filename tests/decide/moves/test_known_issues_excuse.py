"""Known issues and checks that observe decide nothing, and on the day on which an entry expires it counts at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assay.decide.faults.detection import detect_faults
from assay.decide.moves.excused_failures import drop_excused_outcomes, select_proving_outcomes
from assay.decide.moves.required_checks import judge_state_requirements
from assay.decide.state import decision_and_fault_entries
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.known_issues import ExcuseLimits, KnownIssue
from assay.model.specs.node.node_spec import NodeSpec

LINK = "https://git.example/issues/7"
ENDS = datetime(2026, 12, 1, tzinfo=UTC)
BEFORE = ENDS - timedelta(seconds=1)
ANY_SPEC = NodeSpec.model_construct(gpus=type("G", (), {"pci": []})(), hcas=[])


def issue(check: str, **match: str) -> KnownIssue:
    return KnownIssue.model_validate(
        {
            "issue": LINK,
            "match": {"check": check, **match},
            "reason": "the sensor reads ten too much",
            "owner": "thermal",
            "expires": "2026-12-01",
        }
    )


def classify(paper: Any, name: str) -> list[str]:
    """Do what a pass does with outcomes: record the faults of those that count now."""
    latest = paper.outcomes[name].values()
    counted = drop_excused_outcomes(latest, paper.nodes[name], paper.known, paper.observed, paper.now)
    seen = detect_faults(paper.catalog, paper.policy, paper.nodes[name], ANY_SPEC, paper.story(name), None, counted)
    for fault in seen:
        paper.write(decision_and_fault_entries.make_fault_entry(fault, paper.now))
    return [fault.fault_class for fault in seen]


@pytest.fixture
def hot(paper):
    """A node in production that fails its check of heat, with a day left until the entry about it expires."""
    paper.add("n1")
    paper.now = ENDS - timedelta(days=1)
    paper.known = (issue("suites/p.py::*", node="n1"),)
    paper.judge("n1", "production", "fail", "98 °C")
    return paper


def test_an_excused_failure_takes_no_node_out_and_history_says_so_once(hot):
    assert classify(hot, "n1") == []
    made = hot.step()
    assert [(one.timing, one.remedy, one.to_state) for one in made] == [("record", "none", "production")]
    assert made[0].causes[0].text == (
        f"known: {LINK} until 2026-12-01: the sensor reads ten too much (followed by thermal)"
    )
    assert made[0].causes[1].text == "test_heat failed on a/n1: 98 °C"
    hot.judge("n1", "production", "fail", "99 °C")
    assert hot.step() == []
    assert hot.story("n1").state == "production"


def test_at_the_expiry_it_counts_at_once(hot):
    hot.now = BEFORE
    assert (classify(hot, "n1"), [one.timing for one in hot.step()]) == ([], ["record"])
    hot.now = ENDS
    assert classify(hot, "n1") == ["gpu.thermal"]
    moves = [one for one in hot.step() if one.timing != "record"]
    assert [(one.from_state, one.causes[0].kind) for one in moves] == [("production", "fault")]


def test_a_fault_that_was_told_before_the_entry_came_waits_for_its_expiry_too(hot):
    excuses, hot.known = hot.known, ()
    assert classify(hot, "n1") == ["gpu.thermal"]
    hot.known = excuses
    hot.now = BEFORE
    assert [one.remedy for one in hot.step() if one.timing != "record"] == []
    hot.now = ENDS
    assert [one.from_state for one in hot.step() if one.timing != "record"] == ["production"]


def test_another_node_s_failure_is_not_excused(hot):
    hot.add("n2")
    hot.judge("n2", "production", "fail", "98 °C")
    assert classify(hot, "n2") == ["gpu.thermal"]
    assert {one.node for one in hot.step() if one.timing != "record"} == {"n2"}


def test_a_fault_that_the_kernel_told_of_is_not_excused_with_the_check(hot):
    hot.fault("n1", "gpu.thermal")
    assert [one.node for one in hot.step() if one.timing != "record"] == ["n1"]


def test_what_cannot_be_judged_is_never_excused(paper):
    paper.add("n1", "test")
    paper.known = (issue("suites/t.py::*"),)
    paper.judge("n1", "test", "error", "no answer")
    judgement = next(
        one for one in judge_state_requirements(paper.situation(), paper.view("n1")) if one.requirement.phase == "test"
    )
    assert (judgement.is_met, judgement.excused) == (False, ())
    assert judgement.missing == ("suites/t.py::test_burn[a/n1]: error: no answer",)


def admitting(policy, *checks):
    """Return the policy with these checks as those that may be excused at admission."""
    return policy.model_copy(update={"excuses": ExcuseLimits(admission=list(checks))})


@pytest.fixture
def nearly(paper):
    """A node in test whose second check of the phase is the only one that fails, and is excused until the expiry."""
    paper.checks["cold"] = CheckDeclaration(
        id="suites/t.py::test_cold", subject="node", phases=["test"], fault="gpu.thermal"
    )
    paper.policy = admitting(paper.policy, "suites/t.py::*")
    paper.now = ENDS - timedelta(days=3)
    paper.add("n1", "test")
    paper.burn_in("n1", "day")
    paper.now = ENDS - timedelta(hours=1)
    paper.known = (issue("suites/t.py::test_cold"),)
    paper.pass_all("n1")
    paper.judge("n1", "cold", "fail", "98 °C")
    return paper


def of_test(paper):
    return next(
        one for one in judge_state_requirements(paper.situation(), paper.view("n1")) if one.requirement.phase == "test"
    )


def test_an_excused_failure_blocks_no_admission_and_the_decision_names_the_issue(nearly):
    passes = [one for one in nearly.step() if one.to_state != "test"]
    assert [one.from_state for one in passes] == ["test"]
    told = [cause.text for cause in passes[0].causes if "phase test" in cause.text]
    assert told[0].startswith(f"1 of 2 checks of phase test passed, 1 failed (known: {LINK} until 2026-12-01), on ")


@pytest.mark.parametrize("checks", [(), ("suites/t.py::test_burn",), ("suites/p.py::*",)])
def test_what_admission_requires_is_excused_only_if_the_policy_says_so(nearly, checks):
    nearly.policy = admitting(nearly.policy, *checks)
    assert [one.outcome.check for one in of_test(nearly).failed] == ["suites/t.py::test_cold"]
    assert [one.to_state for one in nearly.step() if one.timing == "immediate"] == ["triage"]


def test_at_the_expiry_it_blocks_again(nearly):
    nearly.now = BEFORE
    assert of_test(nearly).is_met
    nearly.now = ENDS
    assert [one.outcome.check for one in of_test(nearly).failed] == ["suites/t.py::test_cold"]


def test_excuses_alone_admit_nobody(nearly):
    nearly.known = (issue("suites/t.py::*"),)
    nearly.judge("n1", "test", "fail", "burnt")
    assert (of_test(nearly).failed, of_test(nearly).missing, of_test(nearly).is_met) == ((), (), False)


def test_the_evidence_of_an_excused_failure_must_be_as_fresh_as_that_of_a_pass(nearly):
    most = of_test(nearly).requirement.fresh_hours
    nearly.judge("n1", "cold", "fail", "98 °C", age=timedelta(hours=most, seconds=1))
    assert "its evidence is" in of_test(nearly).missing[0]


def observing(paper, phase: str) -> None:
    paper.checks[phase] = paper.checks[phase].model_copy(update={"stage": "observe"})


def test_a_check_that_observes_makes_no_fault_and_moves_no_node(hot):
    hot.known = ()
    observing(hot, "production")
    assert (classify(hot, "n1"), hot.step()) == ([], [])


def test_a_fault_of_a_check_that_steps_back_to_observing_is_set_aside_whatever_it_says_next(hot):
    hot.known = ()
    assert classify(hot, "n1") == ["gpu.thermal"]
    observing(hot, "production")
    for verdict in ("fail", "error", "skip", "pass"):
        hot.judge("n1", "production", verdict, "so")
        assert hot.step() == []


def test_a_check_that_only_observes_ends_no_fault_that_another_tells_of(hot):
    hot.known = ()
    hot.checks["trial"] = hot.checks["production"].model_copy(
        update={"id": "suites/p.py::test_new", "stage": "observe"}
    )
    hot.judge("n1", "trial", "pass")
    latest = list(hot.outcomes["n1"].values())
    assert {one.outcome.check for one in select_proving_outcomes(latest, hot.observed)} == {"suites/p.py::test_heat"}
    alone = [one for one in latest if one.outcome.check == "suites/p.py::test_new"]
    assert select_proving_outcomes(alone, hot.observed) == alone


def test_a_fault_whose_excused_check_cannot_be_judged_any_more_counts(hot):
    excuses, hot.known = hot.known, ()
    classify(hot, "n1")
    hot.known = excuses
    hot.judge("n1", "production", "error", "no answer")
    assert [one.from_state for one in hot.step() if one.timing != "record"] == ["production"]


def test_promoted_it_counts_at_once(hot):
    hot.known = ()
    observing(hot, "production")
    hot.step()
    hot.checks["production"] = hot.checks["production"].model_copy(update={"stage": "decide"})
    assert classify(hot, "n1") == ["gpu.thermal"]


def test_a_check_that_observes_is_required_of_nobody(nearly):
    nearly.known = ()
    assert not of_test(nearly).is_met
    observing(nearly, "cold")
    assert of_test(nearly).is_met
    observing(nearly, "test")
    assert of_test(nearly).missing == ("no active check is declared for phase test",)


@pytest.mark.parametrize(("valid", "met"), [(2.0, True), (1.0, True), (0.99, False), (None, True)])
def test_the_smaller_of_two_windows_counts(valid, met, nearly):
    nearly.checks["test"] = nearly.checks["test"].model_copy(update={"valid_hours": valid})
    nearly.judge("n1", "test", age=timedelta(hours=1))
    assert of_test(nearly).is_met is met
    if not met:
        told = "its evidence is 60 min old, more than the 0.99 h for which a pass of this check is valid"
        assert told in of_test(nearly).missing[0]


def test_a_window_longer_than_the_state_s_does_not_stretch_it(nearly):
    most = of_test(nearly).requirement.fresh_hours
    nearly.checks["test"] = nearly.checks["test"].model_copy(update={"valid_hours": most * 2})
    nearly.judge("n1", "test", age=timedelta(hours=most, seconds=1))
    assert f"more than the {most:g} h that the state allows" in of_test(nearly).missing[0]
