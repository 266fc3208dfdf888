"""Which outcomes a person means by node, pool, rack, check, verdict, phase and subject."""

from __future__ import annotations

import pytest

from assay.ledger.runs.reader import StoredRun
from assay.model.errors import AssayError
from assay.validate.results.outcome_filter import NO_FILTER, OutcomeFilter, refuse_unknown_names
from assay.validate.results.run_summary import RunSummary


@pytest.fixture
def stored(keep, judged, of):
    heat = judged({f"heat {node}/gpu{gpu}": "fail" for node in ("n1", "n2") for gpu in range(2)})
    more = [of("power", "n1", phases=("zap",)), of("fans", "rack-r1", "error", "silent")]
    with StoredRun.open(keep([*heat, *more])) as opened:
        yield opened


@pytest.mark.parametrize(
    ("wanted", "subjects"),
    [
        (NO_FILTER, ["n1", "n1/gpu0", "n1/gpu1", "n2/gpu0", "n2/gpu1", "rack-r1"]),
        (OutcomeFilter(nodes=("n2",)), ["n2/gpu0", "n2/gpu1"]),
        (OutcomeFilter(pools=("h100-a",), verdicts=("pass",)), ["n1"]),
        (OutcomeFilter(pools=("gb200",)), []),
        (OutcomeFilter(racks={"r1": frozenset(["n2"])}), ["n2/gpu0", "n2/gpu1", "rack-r1"]),
        (OutcomeFilter(phases=("zap",)), ["n1"]),
        (OutcomeFilter(checks=("test_power",)), ["n1"]),
        (OutcomeFilter(checks=("he*",), nodes=("n1",)), ["n1/gpu0", "n1/gpu1"]),
        (OutcomeFilter(checks=("production/test_fans.py",)), ["rack-r1"]),
        (OutcomeFilter(checks=("suites/production/test_fans.py::test_fans", "power")), ["n1", "rack-r1"]),
        (OutcomeFilter(verdicts=("error", "pass")), ["n1", "rack-r1"]),
        (OutcomeFilter(nodes=("n1",), phases=("production",), verdicts=("error",)), []),
    ],
)
def test_what_is_wanted_is_what_is_counted_and_told(stored, wanted, subjects):
    result = RunSummary(stored, wanted)
    assert sorted(one.subject.removeprefix("h100-a/") for one in result.outcomes()) == subjects
    assert result.counts.total() == len(subjects)
    assert sum(place.counts.total() for place in result.places()) == len(subjects)
    assert sum(group.outcomes for group in result.groups()) == sum(one.verdict != "pass" for one in result.outcomes())
    assert len(list(result.problems())) == sum(one.verdict != "pass" for one in result.outcomes())


def test_a_run_that_judged_nothing_is_not_well_and_a_choice_of_nothing_may_be(keep, stored):
    with StoredRun.open(keep()) as empty:
        assert not RunSummary(empty).passed
    assert RunSummary(stored, OutcomeFilter(verdicts=("skip",))).passed
    assert not RunSummary(stored, OutcomeFilter(verdicts=("fail",))).passed


@pytest.mark.parametrize(
    ("wanted", "what", "fix"),
    [
        (OutcomeFilter(nodes=("n3",)), "the run judged no node n3", "did you mean n2 or n1"),
        (OutcomeFilter(pools=("h100-b",)), "no pool h100-b", "did you mean h100-a"),
        (OutcomeFilter(checks=("test_heet",)), "no check test_heet", "did you mean test_heat"),
        (OutcomeFilter(checks=("ow",)), "no check ow", "did you mean '*ow*'?"),
    ],
)
def test_a_name_that_the_run_does_not_have_is_refused_with_one_that_it_has(stored, wanted, what, fix):
    with pytest.raises(AssayError) as refused:
        refuse_unknown_names(stored.connection, wanted)
    assert what in refused.value.what
    assert refused.value.fix.startswith(fix)


def test_names_that_it_has_are_not_refused(stored):
    refuse_unknown_names(stored.connection, OutcomeFilter(("n1",), ("h100-a",), {}, ("*fans", "heat"), ("skip",), ()))
