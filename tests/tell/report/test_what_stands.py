"""Runs laid over each other: the newest evidence stands, and what changed since a time is told exactly."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.ledger.store import Ledger
from assay.model.outcome import FailureArtefact, Measurement
from assay.tell.report.latest_outcomes import (
    FAILING,
    KNOWN,
    ON_TRIAL,
    ON_TRIAL_PASSING,
    PASSING,
    UNKNOWN,
    LatestOutcomes,
    ReportedRun,
)
from assay.tell.report.status_changes import find_baseline, find_changes

STANDS = {"pass": PASSING, "fail": FAILING, "error": UNKNOWN}


def stands(standing: LatestOutcomes) -> dict[str, int]:
    """Return how each subject of the one check stands."""
    query = "SELECT s.name, o.stands FROM state o JOIN subject s ON s.id = o.subject"
    return dict(standing.connection.execute(query))


def told(standing: LatestOutcomes, since: float = 0.0) -> list[tuple[str, int | None, int]]:
    return [(change.subject, change.before, change.now) for change in find_changes(standing, since)]


def test_the_newest_outcome_of_each_check_and_subject_stands(runs):
    runs.run(0, runs.outcome("n0003", verdict="fail"), runs.outcome("n0004", verdict="fail"))
    runs.run(1, runs.outcome("n0003", hours=1))
    assert stands(runs.standing()) == {"h100-a/n0003": PASSING, "h100-a/n0004": FAILING}


def test_older_evidence_judged_later_does_not_hide_newer_evidence(runs):
    runs.run(0, runs.outcome("n0003", hours=0))
    runs.run(1, runs.outcome("n0003", verdict="fail", hours=-1))
    assert stands(runs.standing()) == {"h100-a/n0003": PASSING}


def test_the_same_evidence_judged_again_stands_as_the_later_run_says(runs):
    runs.run(0, runs.outcome("n0003", verdict="fail"))
    runs.run(1, runs.outcome("n0003"))
    assert stands(runs.standing()) == {"h100-a/n0003": PASSING}


def test_what_has_no_evidence_counts_from_the_time_of_its_run(runs):
    runs.run(0, runs.outcome("n0003", hours=0))
    runs.run(1, replace(runs.outcome("n0003", verdict="error"), evidence="", evidence_at=""))
    assert stands(runs.standing()) == {"h100-a/n0003": UNKNOWN}


def test_what_is_excused_or_on_trial_stands_apart(runs):
    known = runs.outcome("n0003", verdict="fail", known="https://example.net/1")
    trial = runs.outcome("n0004", verdict="fail", observed=True)
    runs.run(
        0, known, trial, runs.outcome("n0005", observed=True), runs.outcome("n0006", known="https://example.net/1")
    )
    assert list(stands(runs.standing()).values()) == [KNOWN, ON_TRIAL, ON_TRIAL_PASSING, PASSING]


def test_numbers_and_what_was_kept_stay_with_what_is_amiss_and_go_when_it_is_mended(runs):
    width = Measurement("pcie_width", 8, "lanes", 16.0, None, "specs/nodes/hgx-h100.yaml:58")
    kept = FailureArtefact("kernel.log", "ab" * 32, 17)
    ill = runs.outcome("n0003", verdict="fail", measurements=(width,), artefacts=(kept,))
    first = runs.run(0, ill, runs.outcome("n0004", measurements=(width,)))
    with runs.standing(first) as standing:
        holders = {holder.name: holder for holder in standing.read_holders()}
    (amiss,) = holders["n0003"].abnormal
    assert (amiss.measurements, amiss.artefacts) == ((width,), (kept,))
    assert holders["n0004"].abnormal == []
    runs.run(1, runs.outcome("n0003", hours=1))
    with runs.standing() as standing:
        assert not any(holder.abnormal for holder in standing.read_holders())


def test_a_holder_counts_by_area(runs):
    gpu = "suites/seatrial/test_gpu.py::test_pcie_link"
    failing = runs.outcome("n0003", gpu, "gpu1", verdict="fail")
    runs.run(0, runs.outcome("n0003"), runs.outcome("n0003", gpu, "gpu0"), failing)
    (holder,) = runs.standing().read_holders()
    assert (holder.name, holder.scope, holder.count(), holder.count(PASSING), holder.count(FAILING)) == (
        "n0003", "h100-a", 3, 2, 1,
    )  # fmt: skip
    assert [(one.area, one.counts) for one in holder.shape.areas] == [
        ("production/cooling", ((PASSING, 1),)),
        ("seatrial/gpu", ((PASSING, 1), (FAILING, 1))),
    ]


def test_what_is_declared_no_more_is_forgotten(runs):
    gone = "suites/production/test_gone.py::test_gone"
    runs.run(
        0, runs.outcome("n0003"), runs.outcome("n0003", gone, verdict="fail"), runs.outcome("old1", verdict="fail")
    )
    with runs.standing() as standing:
        standing.delete_undeclared({runs.outcome("n0003").check}, {"n0003"})
        (holder,) = standing.read_holders()
        assert (holder.name, holder.count(), holder.abnormal) == ("n0003", 1, [])


def test_what_broke_what_was_mended_and_what_is_unknown_now(runs):
    names = ("n0003", "n0004", "n0005", "n0006")
    before, after = ("pass", "fail", "pass", "fail"), ("fail", "pass", "error", "fail")
    runs.run(0, *(runs.outcome(name, verdict=was) for name, was in zip(names, before, strict=True)))
    runs.run(1, *(runs.outcome(name, verdict=now, hours=1) for name, now in zip(names, after, strict=True)))
    standing = runs.standing()
    found = {change.holder: change for change in find_changes(standing, standing.list_reported_runs()[0].at)}
    assert [found[name].broke for name in names[:3]] == [True, False, False]
    assert [found[name].fixed for name in names[:3]] == [False, True, False]
    assert [found[name].lost for name in names[:3]] == [False, False, True]
    assert "n0006" not in found


def test_what_flapped_within_the_window_and_is_as_it_was_is_no_change(runs):
    for hours, verdict in enumerate(("fail", "pass", "fail")):
        runs.run(hours, runs.outcome("n0003", verdict=verdict, hours=hours))
    standing = runs.standing()
    since = [point.at for point in standing.list_reported_runs()]
    assert told(standing, since[0]) == []
    assert told(standing, since[1]) == [("h100-a/n0003", PASSING, FAILING)]


def test_a_failure_that_is_excused_no_more_broke(runs):
    runs.run(0, runs.outcome("n0003", verdict="fail", known="https://example.net/1"))
    runs.run(1, runs.outcome("n0003", verdict="fail", hours=1))
    standing = runs.standing()
    assert told(standing, standing.list_reported_runs()[0].at) == [("h100-a/n0003", KNOWN, FAILING)]


def test_what_was_judged_for_the_first_time_broke_where_it_fails(runs):
    runs.run(0, runs.outcome("n0003"))
    runs.run(1, runs.outcome("n0004", verdict="fail", hours=1), runs.outcome("n0005", hours=1))
    standing = runs.standing()
    assert told(standing, standing.list_reported_runs()[0].at) == [("h100-a/n0004", None, FAILING)]


VERDICTS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(sorted(STANDS)), min_size=1)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(VERDICTS, min_size=1, max_size=6), st.integers(0, 5))
def test_changes_are_what_two_pictures_differ_in(runs, tmp_path_factory, history, back):
    """Any history of runs, looked at from any time, against the plainest way to say the same."""
    folder = tmp_path_factory.mktemp("history")
    runs = replace(runs, folder=folder, ledger=Ledger.open(folder / "ledger.sqlite"))
    pictures: list[dict[str, int]] = [{}]
    for hours, verdicts in enumerate(history):
        runs.run(hours, *(runs.outcome(name, verdict=said, hours=hours) for name, said in verdicts.items()))
        pictures.append({**pictures[-1], **{f"h100-a/{name}": STANDS[said] for name, said in verdicts.items()}})
    at = min(back, len(history) - 1)
    before, now = pictures[at + 1], pictures[-1]
    wanted = {(name, before.get(name), stands) for name, stands in now.items() if before.get(name) != stands}
    with runs.standing() as standing:
        assert stands(standing) == now
        found = set(told(standing, standing.list_reported_runs()[at].at))
        assert found == {one for one in wanted if one[2] != PASSING or one[1] == FAILING}
    runs.ledger.close()


def test_the_run_to_compare_with_is_the_newest_beyond_the_window():
    day = [ReportedRun(n, f"run{n}", n * 3600.0, "") for n in range(0, 49, 6)]
    assert find_baseline(day).at == 24 * 3600
    assert find_baseline(day[-2:]).at == 42 * 3600
    assert find_baseline(day[-1:]) == day[-1]


def test_without_the_file_of_a_run_its_outcomes_stand_as_the_ledger_has_them(runs):
    known = runs.outcome("n0004", verdict="fail", known="https://example.net/1")
    path = runs.run(0, runs.outcome("n0003"), known)
    with runs.standing() as standing:
        assert stands(standing) == {"h100-a/n0003": PASSING, "h100-a/n0004": KNOWN}
    path.unlink()
    with runs.standing() as standing:
        assert stands(standing) == {"h100-a/n0003": PASSING, "h100-a/n0004": FAILING}
        assert standing.unread == []


def test_a_damaged_run_is_named_and_hides_no_other(runs):
    damaged = runs.run(0, runs.outcome("n0003", verdict="fail"))
    runs.run(1, runs.outcome("n0004", verdict="fail", known="https://example.net/1", hours=1))
    runs.standing()
    damaged.write_bytes(b"no database at all, but long enough to be read as one" * 20)
    with LatestOutcomes(runs.ledger, runs.folder, {}) as standing:
        assert stands(standing) == {"h100-a/n0003": FAILING, "h100-a/n0004": KNOWN}
        assert str(damaged) in "".join(standing.unread)
