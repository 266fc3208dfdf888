"""A node's clock, or the controller's, may be a day wrong: no old pass stands before a failure that was found later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

from assay.ledger.store import Ledger
from assay.model.outcome import Outcome, RecordedOutcome, SuiteRun

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
numbers = count(1)


def judge(ledger: Ledger, verdict: str, now: datetime, seen: datetime | None = None) -> None:
    """Record an outcome at `now`, on evidence that is dated `seen`."""
    reason = "" if verdict == "pass" else "hot"
    told = Outcome("heat", "a/n1", "n1", verdict, reason, evidence_at=(seen or now).isoformat())  # type: ignore[arg-type]
    assert ledger.record(SuiteRun(f"r{next(numbers)}", (now - timedelta(seconds=9)).isoformat()), [told], now)


def newest(ledger: Ledger) -> RecordedOutcome:
    (one,) = ledger.latest("n1")
    assert ledger.verify() == []
    return one


def test_a_pass_that_a_nodes_clock_dates_a_day_ahead_hides_no_later_failure(ledger):
    judge(ledger, "pass", NOON, NOON + DAY)
    judge(ledger, "fail", NOON + HOUR)
    assert newest(ledger).outcome.verdict == "fail"


def test_what_is_dated_ahead_is_as_old_as_its_recording_and_no_proof(ledger):
    judge(ledger, "pass", NOON, NOON + DAY)
    one = newest(ledger)
    assert one.measured_at == one.seen_at == NOON.isoformat()
    assert one.is_dated_ahead
    assert one.outcome.evidence_at == (NOON + DAY).isoformat(), "what the evidence says is kept as it was"
    ages = ledger.ages(["n1"])["n1"]
    assert ages["heat"].oldest_s == NOON.timestamp()


def test_clocks_that_are_a_minute_apart_are_right_enough(ledger):
    judge(ledger, "pass", NOON, NOON + timedelta(minutes=1))
    one = newest(ledger)
    assert one.seen_at == NOON.isoformat()
    assert not one.is_dated_ahead


def test_evidence_that_came_while_its_run_went_on_keeps_its_time(ledger):
    seen = NOON - timedelta(seconds=1)
    judge(ledger, "pass", NOON, seen)
    assert newest(ledger).seen_at == seen.isoformat()


def test_a_failure_that_a_nodes_clock_dates_a_day_back_is_older_than_the_pass_before_it(ledger):
    """Nothing shows that its evidence is not that old; the pass is no fresher for it."""
    judge(ledger, "pass", NOON)
    judge(ledger, "fail", NOON + HOUR, NOON - DAY)
    assert newest(ledger).outcome.verdict == "pass"
    assert newest(ledger).seen_at == NOON.isoformat()


def test_after_the_controllers_clock_was_set_back_the_latest_look_counts_at_once(ledger):
    judge(ledger, "pass", NOON + DAY)
    judge(ledger, "fail", NOON)
    assert newest(ledger).outcome.verdict == "fail"
    judge(ledger, "pass", NOON + HOUR)
    assert newest(ledger).outcome.verdict == "pass"
    assert newest(ledger).seen_at == (NOON + HOUR).isoformat(), "as old as it is"
    judge(ledger, "fail", NOON + DAY + HOUR)
    assert newest(ledger).outcome.verdict == "fail"
    judge(ledger, "pass", NOON + DAY + 2 * HOUR)
    assert newest(ledger).seen_at == (NOON + DAY + 2 * HOUR).isoformat()


def test_a_run_of_long_ago_that_is_recorded_late_stays_old(ledger):
    judge(ledger, "fail", NOON)
    told = Outcome("heat", "a/n1", "n1", "pass", evidence_at=(NOON - DAY).isoformat())
    assert ledger.record(SuiteRun("old", (NOON - DAY).isoformat()), [told])
    assert newest(ledger).outcome.verdict == "fail"
