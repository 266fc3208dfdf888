"""Which checks change their mind over the last runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assay.harness.results.compare import compare
from assay.harness.results.flapping import RUNS, flapping, flips, turns

HEAT = "suites/production/test_heat.py::test_heat"


def runs(keep, judged, *rows: str) -> list:
    """Keep a run for each place of the rows (n1's verdicts, n2's, …): p, f, e, s, or - for none."""
    words = {"p": "pass", "f": "fail", "e": "error", "s": "skip"}
    return [
        keep(judged({f"heat n{node}": words[sign] for node, sign in enumerate(column, 1) if sign != "-"}))
        for column in zip(*rows, strict=True)
    ]


def test_a_verdict_turns_where_it_differs_from_the_one_before(keep, judged):
    files = runs(keep, judged, "pfpf", "pppf", "pefp", "f-ff")
    keys = [(HEAT, f"h100-a/n{node}") for node in range(1, 6)]
    assert list(flips(files, keys).values()) == [(3, 4), (1, 4), (2, 3), (0, 3), (0, 0)]


def test_what_broke_and_was_mended_is_not_flapping(keep, judged):
    files = runs(keep, judged, "ppffpp", "pfpfpf", "ffffff", "pfpfpp")
    with compare(files[-2], files[-1]) as comparison:
        found = flapping(comparison, files[:-1])
    assert [(one.subject, one.flips, one.runs) for one in found] == [("h100-a/n2", 5, 6)]
    assert found[0].line == "h100-a/n2          production/test_heat.py::test_heat  turned 5 times in 6 runs"


def test_only_the_last_runs_count(keep, judged):
    files = runs(keep, judged, "pfpfpf" + "p" * (RUNS - 1) + "f")
    with compare(files[-2], files[-1]) as comparison:
        assert flapping(comparison, files[:-1]) == []


@given(st.lists(st.sampled_from(["pass", "fail"])))
def test_turning_twice_as_often_as_it_failed_is_the_most(verdicts):
    assert turns(verdicts) <= 2 * verdicts.count("fail")
    assert turns(verdicts) == turns(verdicts[::-1])
