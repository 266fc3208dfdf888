"""What is written down of a run comes back as it was, from one file or from many."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.ledger.runs.reader import StoredRun, find_run, list_runs
from assay.ledger.runs.schema import TWICE_REASON
from assay.ledger.runs.writer import BATCH_OUTCOMES, OutcomeWriter, merge_run_files
from assay.model.errors import AssayError
from assay.model.evidence import UNKNOWN_BASIS
from assay.model.outcome import FailureArtefact, Measurement, Outcome, SuiteRun

RUN = SuiteRun(
    "20261121T205104.123-ab12cd", "2026-11-21T20:51:04+00:00", ("production",), ("n0001",), "c0ffee", True, "5", "me"
)
WORDS = st.text(st.characters(codec="utf-8"), max_size=20)
ARTEFACTS = st.builds(FailureArtefact, WORDS, WORDS, st.integers(0, 2**40))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
MEASUREMENTS = st.builds(
    Measurement,
    WORDS,
    NUMBERS,
    WORDS,
    st.none() | NUMBERS,
    st.none() | NUMBERS,
    st.sampled_from(["", "specs/x.yaml:3"]),
)
OUTCOMES = st.builds(
    Outcome,
    check=st.sampled_from(["suites/a.py::test_a", "suites/b.py::test_b", "suites/c.py::test_c"]),
    subject=st.sampled_from(["pool/n1", "pool/n1/gpu0", "pool/n2", "pool/rack-é"]),
    node=st.sampled_from(["n1", "n2", ""]),
    verdict=st.sampled_from(["pass", "fail", "error", "skip"]),
    reason=WORDS,
    fault=st.sampled_from(["", "gpu.missing"]),
    phases=st.sampled_from([(), ("test",), ("zap", "test")]),
    active=st.booleans(),
    evidence=st.sampled_from(["a1", "b2"]),
    evidence_at=st.sampled_from(["2026-11-21T20:00:00+00:00", "2026-11-21T21:00:00+00:00"]),
    duration_s=st.integers(0, 10**9).map(lambda micros: micros / 1e6),
    measurements=st.lists(MEASUREMENTS, max_size=3).map(tuple),
    known=st.sampled_from(["", "https://issues.example/7"]),
    observed=st.booleans(),
    artefacts=st.lists(ARTEFACTS, max_size=2, unique_by=lambda artefact: artefact.name)
    .map(lambda kept: tuple(sorted(kept, key=lambda artefact: artefact.name))),
)  # fmt: skip
MANY = st.lists(OUTCOMES, max_size=12, unique_by=lambda outcome: (outcome.check, outcome.subject))
ONE = Outcome("suites/a.py::test_a", "pool/n1/gpu0", "n1", "pass")


def store(path: Path, *outcomes: Outcome) -> Path:
    writer = OutcomeWriter(path, RUN)
    for outcome in outcomes:
        writer(outcome)
    writer.close()
    return path


def stored(path: Path) -> list[Outcome]:
    with StoredRun.open(path) as run:
        return list(run.outcomes())


def alike(outcomes: list[Outcome]) -> list[Outcome]:
    return sorted(outcomes, key=lambda outcome: (outcome.check, outcome.subject))


@given(outcomes=MANY)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_every_outcome_comes_back_as_it_was(tmp_path: Path, outcomes: list[Outcome]) -> None:
    path = tmp_path / "run.sqlite"
    path.unlink(missing_ok=True)
    assert alike(stored(store(path, *outcomes))) == alike(outcomes)


@given(outcomes=MANY, cut=st.integers(0, 12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_parts_merged_are_the_run_that_one_process_would_have_written(
    tmp_path: Path, outcomes: list[Outcome], cut: int
) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    parts = [store(tmp_path / "1.sqlite", *outcomes[:cut]), store(tmp_path / "2.sqlite", *outcomes[cut:])]
    whole = store(tmp_path / "run.sqlite")
    merge_run_files(whole, parts)
    assert alike(stored(whole)) == alike(outcomes)


def test_a_part_that_is_merged_twice_adds_nothing(tmp_path: Path) -> None:
    whole, part = store(tmp_path / "run.sqlite"), store(tmp_path / "1.sqlite", ONE)
    merge_run_files(whole, [part])
    merge_run_files(whole, [part])
    assert stored(whole) == [ONE]


def test_an_outcome_of_two_parts_is_an_error(tmp_path: Path) -> None:
    parts = [store(tmp_path / "1.sqlite", ONE), store(tmp_path / "2.sqlite", ONE)]
    whole = store(tmp_path / "run.sqlite")
    merge_run_files(whole, parts)
    assert stored(whole) == [replace(ONE, verdict="error", reason=TWICE_REASON)]


def test_an_outcome_that_comes_twice_is_an_error(tmp_path: Path) -> None:
    assert stored(store(tmp_path / "run.sqlite", ONE, ONE)) == [replace(ONE, verdict="error", reason=TWICE_REASON)]


def test_a_part_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "1.sqlite").write_text("no database, but long enough to look at" * 40)
    with pytest.raises(AssayError, match=r"1\.sqlite"):
        merge_run_files(store(tmp_path / "run.sqlite"), [tmp_path / "1.sqlite"])


def test_a_later_process_goes_on_with_the_file(tmp_path: Path) -> None:
    path = store(tmp_path / "run.sqlite", ONE)
    writer = OutcomeWriter(path, RUN)
    other = replace(ONE, subject="pool/n2")
    writer(other)
    writer.close()
    assert stored(path) == [ONE, other]


def test_the_run_and_what_else_is_known_of_it_come_back(tmp_path: Path) -> None:
    writer = OutcomeWriter(tmp_path / "run.sqlite", RUN, {"assay": "0.1.0", "ended": "no"})
    writer.set_about(ended="yes")
    writer.add_left_out([("suites/a.py::test_a", "pool/n9")])
    writer.add_documents([("n1", "a1", "2026-11-21T20:00:00+00:00", UNKNOWN_BASIS)])
    writer.close()
    with StoredRun.open(tmp_path / "run.sqlite") as run:
        assert run.run == RUN
        assert (run.about["assay"], run.about["ended"]) == ("0.1.0", "yes")
        assert run.left_out() == {("suites/a.py::test_a", "pool/n9")}
        assert run.documents() == {"n1": ("a1", "2026-11-21T20:00:00+00:00")}


def test_outcomes_are_found_by_verdict_node_check_and_subject(tmp_path: Path) -> None:
    other = Outcome("suites/b.py::test_b", "pool/n2", "n2", "fail", "too hot", measurements=(Measurement("t", 1.0),))
    with StoredRun.open(store(tmp_path / "run.sqlite", ONE, other)) as run:
        assert list(run.outcomes(verdicts=["fail", "error"])) == [other]
        assert list(run.outcomes(nodes=["n1"])) == [ONE]
        assert list(run.outcomes(checks=[other.check], nodes=["n2", "n3"])) == [other]
        assert list(run.outcomes(subjects=["pool/n1/gpu0"], verdicts=["fail"])) == []
        assert run.counts() == {"pass": 1, "fail": 1}


def test_a_killed_process_loses_at_most_its_last_batch(tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.outcome import Outcome, SuiteRun
writer = OutcomeWriter(Path(sys.argv[1]), SuiteRun("r", "2026-11-21T20:51:04+00:00"))
for number in range({BATCH_OUTCOMES * 3 + 7}):
    writer(Outcome("suites/a.py::test_a", f"pool/n{{number}}", "", "pass"))
print("there", flush=True)
sys.stdin.read()
"""
    path = tmp_path / "run.sqlite"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert process.stdin is not None
    process.stdin.close()
    assert len(stored(path)) >= BATCH_OUTCOMES * 3


def test_a_run_can_be_read_where_nothing_may_be_written(tmp_path: Path) -> None:
    path = store(tmp_path / "run.sqlite", ONE)
    assert [file.name for file in tmp_path.iterdir()] == ["run.sqlite"]
    assert stored(path) == [ONE]


@pytest.mark.parametrize("content", ["", "a text that is no database, and long enough " * 20], ids=["empty", "text"])
def test_what_is_no_run_is_said_to_be_none(tmp_path: Path, content: str) -> None:
    path = tmp_path / "run.sqlite"
    path.write_text(content)
    with pytest.raises(AssayError, match=r"is no run"):
        StoredRun.open(path)


def test_an_outcome_decides_unless_it_passed_or_is_excused() -> None:
    failed = replace(ONE, verdict="fail", reason="too hot")
    assert failed.counts_against_subject
    assert replace(failed, verdict="error").counts_against_subject
    assert not replace(failed, known="https://issues.example/7").counts_against_subject
    assert not replace(failed, observed=True).counts_against_subject
    assert not replace(failed, verdict="skip").counts_against_subject
    assert not ONE.counts_against_subject


class TestNaming:
    """Runs are named as commits are: by their id, by how it begins, or counted back from the last."""

    @pytest.fixture
    def reports(self, tmp_path: Path) -> Path:
        for name in ("20261120T010000.000-aaaaaa", "20261121T010000.000-bbbbbb", "20261121T020000.000-cccccc"):
            (tmp_path / "runs" / name).mkdir(parents=True)
            store(tmp_path / "runs" / name / "run.sqlite")
        return tmp_path

    @pytest.mark.parametrize(
        ("name", "ending"),
        [("last", "c"), ("last~0", "c"), ("last~2", "a"), ("20261120", "a"), ("20261121T01", "b")],
    )
    def test_one_run_is_meant(self, reports: Path, name: str, ending: str) -> None:
        assert find_run(reports, name).parent.name.endswith(ending * 6)
        assert find_run(reports, name) in list_runs(reports)

    @pytest.mark.parametrize(
        ("name", "said"),
        [("last~3", "no run last~3"), ("20261121", "2 runs begin"), ("2025", "no run 2025"), ("", "no run")],
    )
    def test_none_or_many_are_said(self, reports: Path, name: str, said: str) -> None:
        with pytest.raises(AssayError, match=said):
            find_run(reports, name)

    def test_without_any_run_it_is_said_how_to_make_one(self, tmp_path: Path) -> None:
        with pytest.raises(AssayError, match="assay validate"):
            find_run(tmp_path, "last")


def test_a_file_is_closed_as_soon_as_nobody_reads_it(tmp_path):
    file, written, read = tmp_path / "run.sqlite", threading.Event(), threading.Event()

    def write() -> None:
        writer = OutcomeWriter(file, RUN)
        written.set()
        read.wait()
        writer.close()

    writing = threading.Thread(target=write)
    writing.start()
    written.wait()
    with StoredRun.open(file) as reader:
        assert not reader.counts()
        read.set()
        writing.join(0.5)
        assert writing.is_alive()
    writing.join(30)
    assert not writing.is_alive()
    assert [path.name for path in tmp_path.iterdir()] == ["run.sqlite"]


HALF_WAY = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(f"PRAGMA journal_mode = {sys.argv[2]}")
connection.execute("PRAGMA cache_size = 5")  # so that much of it is written before it is committed
connection.execute("BEGIN IMMEDIATE")
connection.executemany("INSERT INTO about VALUES (?, ?)", ((str(number), "x" * 500) for number in range(2000)))
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_what_a_kill_has_left_half_way_is_undone_by_who_reads(tmp_path, journal):
    file = tmp_path / "run.sqlite"
    OutcomeWriter(file, RUN).close()
    killed = subprocess.run([sys.executable, "-c", HALF_WAY, file, journal], check=False)
    assert killed.returncode == -signal.SIGKILL
    with StoredRun.open(file) as stored:
        assert (stored.run, len(stored.about)) == (RUN, 2)


HEAT_LOGS = (FailureArtefact("evidence/probe", "ef" * 32, 4096), FailureArtefact("log/probe", "cd" * 32, 812))


def test_an_artefact_that_many_outcomes_have_is_written_once(tmp_path):
    file = tmp_path / "run.sqlite"
    writer = OutcomeWriter(file, RUN)
    outcomes = [replace(ONE, subject=f"a/n1/gpu{at}", verdict="fail", artefacts=HEAT_LOGS) for at in range(8)]
    for outcome in outcomes:
        writer(outcome)
    writer.close()
    with StoredRun.open(file) as stored:
        assert list(stored.outcomes()) == outcomes
        assert stored.connection.execute("SELECT count(*) FROM artefact_file").fetchone() == (2,)
