"""What a run recorded is in history as it was, once, whatever is killed or spoilt on the way."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.ledger.history import parquet_files
from assay.ledger.history.append import append_missing_runs, append_run, compact_days
from assay.ledger.history.parquet_files import HISTORY_TABLES, OUTCOMES_TABLE
from assay.ledger.history.queries import OutcomeHistory
from assay.ledger.runs.reader import StoredRun
from assay.model.errors import AssayError
from assay.model.outcome import FailureArtefact, Measurement, Outcome, RecordedOutcome
from tests.ledger.history.recorded_history import query_outcomes

WORDS = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(
    ["\x00", "'", '"', "a\nb", "NULL", "\\N", "°"]
)
ARTEFACTS = st.builds(FailureArtefact, WORDS, WORDS, st.integers(0, 2**40))
NUMBERS = st.floats(allow_nan=False)
OUTCOMES_OF_ALL_KINDS = st.builds(
    Outcome,
    check=WORDS,
    subject=WORDS,
    node=st.sampled_from(["n1", "n2", ""]),
    verdict=st.sampled_from(["pass", "fail", "error", "skip"]),
    reason=WORDS,
    fault=WORDS,
    phases=st.lists(WORDS, max_size=2).map(tuple),
    active=st.booleans(),
    evidence=st.sampled_from(["a1", "b2"]),
    evidence_at=st.sampled_from(["2026-11-21T20:00:00+00:00", "2026-11-21T21:00:00+00:00"]),
    duration_s=st.integers(0, 10**9).map(lambda micros: micros / 1e6),
    measurements=st.lists(
        st.builds(Measurement, WORDS, NUMBERS, WORDS, st.none() | NUMBERS, st.none() | NUMBERS, WORDS), max_size=3
    ).map(tuple),
    known=WORDS,
    observed=st.booleans(),
    artefacts=st.lists(ARTEFACTS, max_size=2, unique_by=lambda artefact: artefact.name)
    .map(lambda kept: tuple(sorted(kept, key=lambda artefact: artefact.name))),
)  # fmt: skip
MANY = st.lists(OUTCOMES_OF_ALL_KINDS, max_size=8, unique_by=lambda one: (one.check, one.subject))
DYING = """
import os, signal
from assay.ledger.history import append as module
steps = []
def dying(does):
    def done(*given):
        does(*given)
        steps.append(given)
        if len(steps) > {step}:
            os.kill(os.getpid(), signal.SIGKILL)
    return done
module.move_into_place = dying(module.move_into_place)
module.RunExport.write_table = dying(module.RunExport.write_table)
"""
"""Dies after so many files that were written or put in their place."""


def named(found: list[Outcome]) -> dict[tuple[str, str], Outcome]:
    return {(one.check, one.subject): one for one in found}


@given(MANY)
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_what_comes_out_of_history_is_what_went_in(reports_in, many) -> None:
    with TemporaryDirectory() as folder:
        reports = reports_in(Path(folder))
        run = reports.kept(many)
        with reports.asked() as history:
            found = query_outcomes(history, days=1, measured=True)
    assert named([one.outcome for one in found]) == named(many)
    assert [one.run for one in found] == [run] * len(many)


def test_what_was_asked_is_kept_with_the_run(reports, said) -> None:
    reports.kept([said()])
    (file,) = reports.home.glob("runs/*/*.parquet")
    (row,) = (
        duckdb.connect()
        .execute("SELECT phases, nodes, spec_commit, who, about FROM read_parquet($f)", {"f": str(file)})
        .fetchall()
    )
    assert row[:4] == (["production"], ["n1"], "c0ffee", "me")
    assert json.loads(row[4])["ended"] == "whole"


def test_a_run_is_kept_once(reports, said) -> None:
    file = reports.stored([said()])
    append_run(file, reports.home)
    (written,) = reports.home.glob("outcomes/*/*.parquet")
    before = written.stat()
    append_run(file, reports.home)
    assert [written] == list(reports.home.glob("outcomes/*/*"))
    assert written.stat().st_mtime_ns == before.st_mtime_ns


def test_a_run_lies_in_the_partition_of_its_day(reports, said) -> None:
    run = reports.kept([said()], timedelta(days=3))
    files = {file.relative_to(reports.home).as_posix() for file in reports.home.glob("*/*/*")}
    assert files == {f"{table}/day=2026-11-18/{run}.parquet" for table in HISTORY_TABLES}


def test_a_run_that_goes_on_is_not_kept_yet(reports, said) -> None:
    file = reports.stored([said()], ended="")
    with pytest.raises(AssayError, match="has not ended"):
        append_run(file, reports.home)
    assert append_missing_runs(reports.reports) == []
    assert held(reports) == set()


def test_a_run_in_part_may_be_gone_on_with_until_its_day_is_over(reports, said) -> None:
    old = reports.stored([said()], timedelta(days=1), ended="in part")
    reports.stored([said()], ended="in part")
    assert append_missing_runs(reports.reports) == []
    assert held(reports) == {old.parent.name}


def test_a_run_that_was_never_kept_is_caught_up_with(reports, said) -> None:
    files = [reports.stored([said()], timedelta(days=days)) for days in range(3)]
    assert append_missing_runs(reports.reports) == []
    assert held(reports) == {file.parent.name for file in files}


def test_a_run_that_cannot_be_read_is_told_and_costs_no_other(reports, said) -> None:
    good, bad = reports.stored([said()]), reports.stored([said()], timedelta(days=1))
    bad.write_bytes(bad.read_bytes()[:5000])
    (trouble,) = append_missing_runs(reports.reports)
    assert trouble.where == str(bad)
    assert held(reports) == {good.parent.name}


def test_runs_that_cannot_be_read_stand_in_no_other_runs_way(reports, said, monkeypatch) -> None:
    monkeypatch.setattr("assay.ledger.history.append.MAX_RUNS_AT_ONCE", 2)
    files = [reports.stored([said()], timedelta(days=days)) for days in range(5)]
    for bad in files[:2]:
        bad.write_bytes(b"no run")
    assert len(append_missing_runs(reports.reports)) == 2
    assert held(reports) == {file.parent.name for file in files[2:4]}
    append_missing_runs(reports.reports)
    assert held(reports) == {file.parent.name for file in files[2:]}


def test_history_that_cannot_be_written_is_told_and_the_run_stays(reports, said) -> None:
    file = reports.stored([said()])
    reports.home.write_text("in the way")
    (trouble,) = append_missing_runs(reports.reports)
    assert (trouble.what.split(":")[0], trouble.where) == ("history cannot be written", str(reports.home))
    with pytest.raises(AssayError, match="cannot be added to history"):
        append_run(file, reports.home)
    with StoredRun.open(file) as stored:
        assert len(list(stored.outcomes())) == 1


@pytest.mark.slow
def test_nodes_lie_apart_so_that_one_is_found_by_statistics(reports, said) -> None:
    reports.kept([said(node=f"n{i // 40:04}", check=f"suites/a.py::test_{i % 40}") for i in reversed(range(80_000))])
    (file,) = reports.home.glob("outcomes/*/*.parquet")
    question = (
        "SELECT stats_min_value, stats_max_value FROM parquet_metadata($f) WHERE path_in_schema = 'node' ORDER BY ALL"
    )
    groups = duckdb.connect().execute(question, {"f": str(file)}).fetchall()
    assert len(groups) == 2
    assert groups[0][1] <= groups[1][0]


@pytest.mark.parametrize("step", [0, 1, 5, 6, 7])
def test_a_kill_at_any_step_leaves_all_of_a_run_or_nothing_that_is_read(reports, said, step) -> None:
    many = [said(node=f"n{i:02}", value=i) for i in range(20)]
    file = reports.stored(many)
    line = f"append_run(Path({str(file)!r}), Path({str(reports.home)!r}))"
    assert started(DYING.format(step=step) + line).wait(timeout=120) == -signal.SIGKILL
    assert len(everything(reports)) == (20 if step == 2 * len(HISTORY_TABLES) - 1 else 0)
    assert append_missing_runs(reports.reports) == []
    assert named([one.outcome for one in everything(reports)]) == named(many)


def test_what_a_killed_one_left_is_swept_away(reports, said) -> None:
    left = reports.home / ".making" / "outcomes.parquet"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"PAR1 and no more")
    reports.kept([said()])
    assert len(everything(reports)) == 1
    assert not left.parent.exists()


def test_a_run_for_which_little_memory_does_not_do_gets_more(reports, said, monkeypatch) -> None:
    monkeypatch.setattr("assay.ledger.history.parquet_files.WRITE_MEMORY_LIMITS", ("1MB", "1GB"))
    reports.kept([said("fail", node=f"n{i}", reason=f"{i:0500}") for i in range(5000)])
    assert len(everything(reports)) == 5000
    monkeypatch.setattr("assay.ledger.history.parquet_files.WRITE_MEMORY_LIMITS", ("1MB",))
    with pytest.raises(AssayError, match="Out of Memory"):
        reports.kept([said("fail", node=f"n{i}", reason=f"{i:0500}") for i in range(5000)], timedelta(days=1))


def test_two_who_keep_the_same_runs_at_once_keep_each_once(reports, said) -> None:
    files = [reports.stored([said(node=f"n{i}") for i in range(50)], timedelta(hours=hours)) for hours in range(4)]
    line = f"append_missing_runs(Path({str(reports.reports)!r})) and sys.exit(1)"
    several = [started(line) for _ in range(2)]
    assert [one.wait(timeout=120) for one in several] == [0, 0]
    assert held(reports) == {file.parent.name for file in files}
    with reports.asked() as history:
        assert len(query_outcomes(history, days=1)) == 200


def test_a_file_cut_short_is_named(reports, said) -> None:
    for days in range(3):
        reports.kept([said()], timedelta(days=days))
    bad = sorted(reports.home.glob("outcomes/*/*.parquet"))[1]
    bad.write_bytes(bad.read_bytes()[:-20])
    with reports.asked() as history, pytest.raises(AssayError) as caught:
        query_outcomes(history, days=9)
    assert caught.value.where == str(bad)


@pytest.mark.parametrize("table", HISTORY_TABLES)
def test_a_file_that_was_deleted_is_made_anew(reports, said, table) -> None:
    reports.kept([said(value=70)])
    (file,) = reports.home.glob(f"{table}/*/*.parquet")
    file.unlink()
    assert append_missing_runs(reports.reports) == []
    assert file.exists()


@pytest.fixture(scope="module")
def made_week(tmp_path_factory, reports_in, said) -> tuple[Path, list[str]]:
    """The reports of a busy week, from which each test has a copy, and their runs."""
    made = reports_in(tmp_path_factory.mktemp("week") / "reports")
    return made.reports, [
        made.kept([said(value=70 + hours), said(node="n2")], timedelta(days=days, hours=hours))
        for days in range(3)
        for hours in range(2)
    ]


@pytest.fixture
def busy_week(reports, made_week) -> list[str]:
    """Two runs that are kept on each of three days."""
    shutil.copytree(made_week[0], reports.reports)
    return made_week[1]


def everything(reports) -> list[RecordedOutcome]:
    with reports.asked() as history:
        return query_outcomes(history, days=30, measured=True)


def test_the_runs_of_a_day_that_is_over_become_one_file(reports, busy_week) -> None:
    before = everything(reports)
    compact_days(reports.home)
    assert [
        len(list(day.glob("*.parquet"))) for day in parquet_files.list_day_folders(reports.home, OUTCOMES_TABLE)
    ] == [1, 1, 2]
    assert everything(reports) == before
    assert held(reports) == set(busy_week)
    assert append_missing_runs(reports.reports) == []
    assert [
        len(list(day.glob("*.parquet"))) for day in parquet_files.list_day_folders(reports.home, OUTCOMES_TABLE)
    ] == [1, 1, 2]


def test_a_run_that_comes_late_joins_the_file_of_its_day(reports, said, busy_week) -> None:
    compact_days(reports.home)
    reports.kept([said()], timedelta(days=2, hours=9))
    before = everything(reports)
    compact_days(reports.home)
    assert everything(reports) == before
    assert [len(list(day.iterdir())) for day in parquet_files.list_day_folders(reports.home, OUTCOMES_TABLE)] == [
        2,
        2,
        2,
    ]


def test_files_that_another_holds_as_well_are_not_read_twice(reports, busy_week, monkeypatch) -> None:
    """As a kill leaves them: the new file is in its place, the old ones are not deleted yet."""
    before = everything(reports)
    with monkeypatch.context() as patched:
        patched.setattr("assay.ledger.history.append._delete", lambda paths: None)
        compact_days(reports.home)
    assert everything(reports) == before
    compact_days(reports.home)
    assert everything(reports) == before
    assert [
        len(list(day.glob("*.parquet"))) for day in parquet_files.list_day_folders(reports.home, OUTCOMES_TABLE)
    ] == [1, 1, 2]


def test_a_reader_whose_files_became_one_looks_again(reports, busy_week, monkeypatch) -> None:
    before = everything(reports)
    look = OutcomeHistory._files

    def late(self, *where):
        found = look(self, *where)
        compact_days(reports.home)
        return found

    monkeypatch.setattr(OutcomeHistory, "_files", late)
    assert everything(reports) == before


def test_what_is_great_already_is_left_alone(reports, busy_week, monkeypatch) -> None:
    monkeypatch.setattr("assay.ledger.history.append.MAX_FILE_ROWS", 2)
    compact_days(reports.home)
    assert [
        len(list(day.glob("*.parquet"))) for day in parquet_files.list_day_folders(reports.home, OUTCOMES_TABLE)
    ] == [2, 2, 2]


def test_no_more_is_taken_together_than_takes_a_moment(reports, busy_week, monkeypatch) -> None:
    monkeypatch.setattr("assay.ledger.history.append.MAX_ROWS_AT_ONCE", 5)
    before = everything(reports)
    left = []
    for _ in range(8):
        compact_days(reports.home)
        left.append(len(list(reports.home.glob("*/*/*.parquet"))))
        assert everything(reports) == before
    assert left[0] > left[-1] == 4 * (1 + 1 + 2)
    assert left == sorted(left, reverse=True)


def held(reports) -> set[str]:
    """Return the runs that every table has."""
    return set.intersection(*(parquet_files.list_runs_of_table(reports.home, table) for table in HISTORY_TABLES))


def started(line: str) -> subprocess.Popen[bytes]:
    """Run a line in a process of its own."""
    imports = "import sys\nfrom pathlib import Path\n"
    imports += "from assay.ledger.history.append import append_missing_runs, append_run\n"
    return subprocess.Popen([sys.executable, "-c", imports + line])
