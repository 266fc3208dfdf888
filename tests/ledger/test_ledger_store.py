"""What is appended is there, in order, once, for ever; on SQLite and on PostgreSQL alike."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from assay.ledger.connection import parse_ledger_url
from assay.ledger.errors import LedgerError
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Measurement, Outcome, SuiteRun

AT, LATER = "2026-11-21T12:00:00+00:00", "2026-11-21T16:00:00+00:00"
HOT = Measurement("gpu_temperature", 91.0, "°C", at_most=90.0, source="specs/nodes/hgx-h100.yaml:41")
numbers = count(1)


def entry(id_: str, node: str = "n1", kind: str = "hold", **body: object) -> LedgerEntry:
    return LedgerEntry(id_, AT, kind, node, {"who": "ann", **body})


def outcome(verdict: str = "pass", at: str = AT, subject: str = "a/n1", **other: object) -> Outcome:
    plain = {"check": "suites/p.py::test_heat", "node": "n1", "reason": "" if verdict == "pass" else "hot"}
    return Outcome(**{**plain, "subject": subject, "verdict": verdict, "evidence_at": at, **other})  # type: ignore[arg-type]


def record(ledger: Ledger, *outcomes: Outcome, at: str = AT) -> str:
    name = f"run-{next(numbers)}"
    assert ledger.record(SuiteRun(name, at, phases=("production",), nodes=("n1",), who="ann"), outcomes)
    return name


def test_entries_come_back_as_they_were_written_and_in_order(ledger):
    assert ledger.append(entry("a", reason="fans · 45 °C"), entry("b", "n2"), entry("c", kind="release")) == [True] * 3
    assert [one.id for one in ledger.entries()] == ["a", "b", "c"]
    assert ledger.entries()[0].body == {"who": "ann", "reason": "fans · 45 °C"}
    assert [one.id for one in ledger.entries("n1")] == ["a", "c"]
    assert [one.id for one in ledger.entries(kinds=["release"])] == ["c"]
    assert [one.id for one in ledger.entries(after=ledger.entries()[1].seq)] == ["c"]


def test_an_id_that_is_known_changes_nothing(ledger):
    assert ledger.append(entry("a", reason="first"), entry("a", reason="second")) == [True, False]
    assert ledger.append(entry("a", reason="third")) == [False]
    assert [one.body["reason"] for one in ledger.entries()] == ["first"]


def test_many_entries_at_once_are_told_apart_one_by_one(ledger):
    ledger.append(*(entry(f"known{n}", reason="old") for n in range(700)))
    many = [entry(name, reason=str(n)) for n in range(1300) for name in ("twice", f"new{n}", f"known{n}")]
    assert ledger.append(*many) == [one for n in range(1300) for one in (n == 0, True, n >= 700)]
    later = ledger.entries()[700:]
    new = [one for n in range(1300) for one in (["twice"] * (n == 0) + [f"new{n}"] + [f"known{n}"] * (n >= 700))]
    assert [one.id for one in later] == new
    assert later[0].body["reason"] == "0"


def test_what_cannot_be_written_whole_is_not_written_at_all(ledger):
    unwritable = entry("b", reason="\ud800")  # half a character
    with pytest.raises((AssayError, UnicodeError)):
        ledger.append(*(entry(f"a{n}") for n in range(600)), unwritable)
    assert ledger.entries() == []


def test_nothing_to_append_is_nothing_to_do(ledger):
    assert ledger.append() == []


def test_a_second_opening_finds_what_the_first_wrote(place):
    first = Ledger.open(place)
    first.append(entry("a"))
    assert [one.id for one in Ledger.open(place).entries()] == ["a"]


def test_outcomes_come_back_with_their_run_and_their_numbers(ledger):
    run = record(ledger, outcome("fail", measurements=(HOT,), phases=("production",), fault="gpu.thermal"), outcome())
    first, second = ledger.outcomes(run)
    assert first.outcome.measurements == (HOT,)
    assert (first.run, first.at, first.outcome.fault, first.outcome.phases) == (run, AT, "gpu.thermal", ("production",))
    assert second.outcome.measurements == ()
    assert first.id == f"{run}/suites/p.py::test_heat[a/n1]"
    assert [(one.id, one.nodes) for one in ledger.iter_runs()] == [(run, ("n1",))]


def test_a_run_is_recorded_once(ledger):
    run = SuiteRun("again", AT)
    assert ledger.record(run, [outcome()])
    assert not ledger.record(run, [outcome("fail")])
    assert [one.outcome.verdict for one in ledger.outcomes("again")] == ["pass"]


def test_the_newest_outcome_is_the_one_with_the_newest_evidence_however_late_it_was_written(ledger):
    record(ledger, outcome("fail", at="2026-11-21T14:00:00+00:00"), at=LATER)
    record(ledger, outcome("pass", at="2026-11-21T13:00:00.5+00:00"), at=LATER)
    assert [one.outcome.verdict for one in ledger.latest("n1")] == ["fail"]


def test_times_in_another_zone_are_compared_as_times(ledger):
    record(ledger, outcome("pass", at="2026-11-21T13:00:00+00:00"), at=LATER)
    record(ledger, outcome("fail", at="2026-11-21T15:30:00+03:00"), at=LATER)
    assert [one.outcome.verdict for one in ledger.latest("n1")] == ["pass"]


def test_an_error_without_evidence_is_as_new_as_its_run(ledger):
    record(ledger, outcome())
    record(ledger, outcome("error", at=""), at="2026-11-21T15:00:00+00:00")
    assert [one.outcome.verdict for one in ledger.latest("n1")] == ["error"]


def test_latest_keeps_subjects_apart_and_nodes_too(ledger):
    record(ledger, outcome(subject="a/n1/gpu0"), outcome(subject="a/n1/gpu1"), outcome(subject="a/n2", node="n2"))
    assert [one.outcome.subject for one in ledger.latest("n1")] == ["a/n1/gpu0", "a/n1/gpu1"]
    assert len(ledger.latest()) == 3


def test_a_run_that_is_judged_again_knows_only_passes_from_before_it(ledger):
    times = [f"2026-11-2{day}T12:00:00+00:00" for day in range(1, 5)]
    first = record(ledger, outcome(at=times[0]))
    failed = record(ledger, outcome("fail", at=times[1]))
    late = record(ledger, outcome(at=times[3]))
    heat = ("suites/p.py::test_heat", "a/n1")
    assert ledger.last_outcome(*heat).run == late
    assert ledger.last_outcome(*heat, before=failed).run == first
    assert ledger.last_outcome(*heat, before=late).run == first
    assert ledger.last_outcome(*heat, before=first) is None
    assert ledger.last_outcome(*heat, before="a") is None
    assert ledger.last_outcome(*heat, before="z").run == late, "one that was never recorded began after all of these"


def test_the_last_pass_is_found_behind_later_failures(ledger):
    record(ledger, outcome("pass", at="2026-11-21T10:00:00+00:00"))
    good = record(ledger, outcome("pass", at="2026-11-21T11:00:00+00:00"))
    record(ledger, outcome("fail", at="2026-11-21T12:00:00+00:00"))
    found = ledger.last_outcome("suites/p.py::test_heat", "a/n1")
    assert found is not None
    assert found.run == good
    assert ledger.last_outcome("suites/p.py::test_heat", "a/n9") is None


def test_the_newest_passes_of_a_check_are_one_for_each_subject(ledger):
    record(ledger, outcome("pass", at="2026-11-21T10:00:00+00:00"), outcome(subject="a/n2", node="n2"))
    newest = record(ledger, outcome("pass", at="2026-11-21T11:00:00+00:00"), outcome("fail", subject="a/n3", node="n3"))
    record(ledger, outcome("fail", at="2026-11-21T12:00:00+00:00"))
    found = {one.outcome.subject: one.run for one in ledger.newest_passes("suites/p.py::test_heat")}
    assert set(found) == {"a/n1", "a/n2"}
    assert found["a/n1"] == newest
    assert ledger.newest_passes("suites/p.py::test_other") == []


def test_many_outcomes_keep_their_own_numbers(ledger):
    run = record(ledger, *(outcome(subject=f"a/n1/gpu{i}", measurements=(Measurement("m", i),)) for i in range(1200)))
    assert all(one.outcome.measurements[0].value == i for i, one in enumerate(ledger.outcomes(run)))


TABLES = ("entry", "run", "text", "outcome", "measurement", "assay_ledger")


def test_the_database_itself_refuses_to_change_or_lose_anything(ledger):
    ledger.append(entry("a"))
    record(ledger, outcome(measurements=(HOT,)))
    deeds = [f"DELETE FROM {table}" for table in TABLES]
    deeds += [f"UPDATE {table} SET {'version = 2' if table == 'assay_ledger' else 'seq = 9'}" for table in TABLES]
    if ledger._engine.dialect.name == "postgresql":
        deeds += [f"TRUNCATE {table} CASCADE" for table in TABLES]
    for deed in deeds:
        with pytest.raises(DBAPIError, match="append-only"), ledger._engine.begin() as connection:
            connection.execute(text(deed))
    assert len(ledger.entries()) == len(ledger.outcomes()) == 1


def test_replacing_a_line_by_its_id_or_its_number_changes_nothing(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.sqlite")
    ledger.append(entry("a", reason="true"))
    with ledger._engine.begin() as connection:
        for columns in ("id, at, kind, node, body) VALUES ('a'", "seq, at, kind, node, body, id) VALUES (1"):
            rest = "'', '', '', '{}')" if columns.startswith("id") else "'', '', '', '{}', 'z')"
            connection.execute(text(f"INSERT OR REPLACE INTO entry ({columns}, {rest}"))
    assert [(one.id, one.body["reason"]) for one in ledger.entries()] == [("a", "true")]


def test_a_plain_postgresql_url_is_spoken_with_the_driver_that_we_have():
    assert parse_ledger_url("postgresql://host/fleet").drivername == "postgresql+psycopg"


@pytest.mark.parametrize("long", [501, 100_000])
def test_a_reason_may_be_long(ledger, long):
    reasons = ["é" * long, "é" * long + "!", "é" * 500]
    run = record(ledger, *(outcome("fail", reason=reason, subject=f"a/n{at}") for at, reason in enumerate(reasons)))
    assert [one.outcome.reason for one in ledger.outcomes(run)] == reasons


MOMENTS = st.integers(0, 5).map(lambda hour: f"2026-11-21T0{hour}:00:00+00:00")
HISTORIES = st.lists(
    st.tuples(st.sampled_from(["a/n1", "a/n2"]), st.sampled_from(["pass", "fail", "skip"]), MOMENTS), max_size=12
)


@given(HISTORIES)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_the_newest_is_what_a_look_through_the_whole_history_finds(tmp_path, told):
    file = tmp_path / "newest.sqlite"
    file.unlink(missing_ok=True)
    ledger = Ledger.open(file)
    for subject, verdict, at in told:
        record(ledger, outcome(verdict, at, subject))
    every = sorted(ledger.outcomes(), key=lambda one: one.measured_at)  # of two at once, the later one stays behind
    assert ledger.latest() == [one for _, one in sorted({one.outcome.subject: one for one in every}.items())]
    passed = {one.outcome.subject: one for one in every if one.outcome.verdict == "pass"}
    for subject in ("a/n1", "a/n2"):
        assert ledger.last_outcome("suites/p.py::test_heat", subject) == passed.get(subject)
    ledger.close()


def test_a_ledger_that_nobody_began_is_not_made_by_reading(tmp_path):
    file = tmp_path / ".assay" / "ledger.sqlite"
    with pytest.raises(LedgerError, match="there is no ledger yet") as told:
        Ledger.open_for_reading(file)
    assert "assay reconcile --once" in told.value.fix
    assert not file.parent.exists()
