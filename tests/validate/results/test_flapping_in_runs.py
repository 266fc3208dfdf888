"""Which checks change their mind over the last runs."""

from __future__ import annotations

from assay.ledger.history.flaky import WINDOW_RUNS
from assay.validate.results.flaky_outcomes import find_flaky_outcomes, read_judgements
from assay.validate.results.run_comparison import compare_runs

HEAT = "suites/production/test_heat.py::test_heat"


def runs(keep, judged, *rows: str) -> list:
    """Keep a run for each place of the rows (n1's verdicts, n2's, …): p, f, e, s, or - for none."""
    words = {"p": "pass", "f": "fail", "e": "error", "s": "skip"}
    return [
        keep(judged({f"heat n{node}": words[sign] for node, sign in enumerate(column, 1) if sign != "-"}))
        for column in zip(*rows, strict=True)
    ]


def test_judgements_are_passes_and_failures_newest_first(keep, judged):
    files = runs(keep, judged, "pfpf", "pefs", "f-ff")
    known = read_judgements(files, [(HEAT, f"h100-a/n{node}") for node in range(1, 5)])
    assert ["".join(verdict[0] for verdict in one) for one in known.values()] == ["fpfp", "fp", "fff", ""]


def test_what_broke_and_was_mended_is_not_flapping(keep, judged):
    files = runs(keep, judged, "ppffpp", "pfpfpf", "ffffff", "pfpfpp")
    with compare_runs(files[-2], files[-1]) as comparison:
        found = find_flaky_outcomes(comparison, files[:-1])
    assert [(one.subject, one.flips, one.runs) for one in found] == [("h100-a/n2", 5, 6)]
    assert found[0].line == "h100-a/n2          production/test_heat.py::test_heat  turned 5 times in 6 runs"


def test_only_the_last_judgements_count(keep, judged):
    files = runs(keep, judged, "pfpfpf" + "p" * (WINDOW_RUNS - 1) + "f")
    with compare_runs(files[-2], files[-1]) as comparison:
        assert find_flaky_outcomes(comparison, files[:-1]) == []


def test_runs_that_did_not_judge_it_push_nothing_out(keep, judged):
    files = runs(keep, judged, "pfp" + "-" * WINDOW_RUNS + "pf", "p" * (WINDOW_RUNS + 5))
    with compare_runs(files[-2], files[-1]) as comparison:
        assert [(one.flips, one.runs) for one in find_flaky_outcomes(comparison, files[:-1])] == [(3, 5)]


def test_a_run_before_that_cannot_be_read_is_passed_over(keep, judged):
    files = runs(keep, judged, "pfppfpf")
    files[2].write_bytes(b"no run")
    with compare_runs(files[-2], files[-1]) as comparison:
        assert [(one.flips, one.runs) for one in find_flaky_outcomes(comparison, files[:-1])] == [(5, 6)]
