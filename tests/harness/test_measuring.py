"""Measuring says what was seen and expected, and where that is written; counters count from the last pass."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.evidence import EvidenceDocument, find_object_path, pack_object
from assay.model.outcome import CheckSubject, Outcome, RecordedOutcome
from assay.model.reading import format_value, trace_value
from assay.validate.fixtures.check_fixtures import MeasureFixture, SinceLastPass
from assay.validate.fixtures.evidence_views import EvidenceView
from assay.validate.judging.evidence_cache import CachedEvidence, EvidenceCache, UnjudgeableCheck
from assay.validate.judging.verdict import CheckContext

SUBJECT = CheckSubject("h100-a", "n0003", "mlx5_0")
numbers = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6)


def trial(shelf: EvidenceCache | None = None) -> CheckContext:
    return CheckContext("suites/x.py::test_x", SUBJECT, "n0003", shelf or EvidenceCache(Path("/nowhere")))


def limit(value: float):
    return trace_value(value, source="specs/nodes/a.yaml:7", unit="lanes")


@pytest.mark.parametrize(
    ("seen", "limits", "says"),
    [
        (8, {"at_least": limit(16.0)}, "width 8 lanes, expected at least 16 (specs/nodes/a.yaml:7)"),
        (91.25, {"at_most": 85}, "width 91.25, expected at most 85"),
        (7, {"equals": trace_value(8, source="specs/nodes/a.yaml:3")}, "width 7, expected 8 (specs/nodes/a.yaml:3)"),
        (118, {"at_least": 200, "at_most": 240, "unit": "V"}, "width 118 V, expected at least 200 and at most 240"),
        ("570.1", {"equals": "570.2"}, "width 570.1, expected 570.2"),
    ],
)
def test_a_limit_that_does_not_hold_is_said_in_one_line(seen, limits, says):
    with pytest.raises(AssertionError) as raised:
        MeasureFixture(trial())("width", seen, **limits)
    assert str(raised.value) == says


@given(numbers, numbers, numbers)
def test_a_measure_passes_exactly_when_the_number_is_within(seen, low, high):
    judged = trial()
    within = low <= seen <= high
    if within:
        MeasureFixture(judged)("x", seen, at_least=low, at_most=high)
    else:
        with pytest.raises(AssertionError):
            MeasureFixture(judged)("x", seen, at_least=low, at_most=high)
    (measurement,) = judged.measurements
    assert (measurement.value, measurement.at_least, measurement.at_most) == (seen, low, high)


@pytest.mark.parametrize("seen", [2**63, 2**64 - 1, -(2**63), 10**300])
def test_a_counter_that_no_database_holds_is_written_down_as_a_float(seen):
    judged = trial()
    MeasureFixture(judged)("x", trace_value(seen), at_least=-(10**301))
    (measurement,) = judged.measurements
    assert (measurement.value, type(measurement.value)) == (float(seen), float)


@pytest.mark.parametrize("seen", [float("nan"), float("inf"), -float("inf"), 10**400])
def test_what_is_no_finite_number_cannot_be_measured(seen):
    for bound in ("at_least", "at_most", "equals"):
        with pytest.raises(UnjudgeableCheck):
            MeasureFixture(trial())("x", seen, **{bound: 3})


@pytest.mark.parametrize("seen", [None, True, [3], {"value": 3}, "3"])
def test_what_is_no_number_cannot_be_held_to_a_limit(seen):
    with pytest.raises(UnjudgeableCheck):
        MeasureFixture(trial())("x", seen, at_least=1)


def test_a_limit_that_is_no_number_is_refused():
    with pytest.raises(UnjudgeableCheck):
        MeasureFixture(trial())("x", 3, at_least="2")


def reading(value: float, name: str):
    return trace_value(value, path=("n0003", "probe", "hca", "mlx5_0", name))


def in_gb(value: float):
    return trace_value(value, source="specs/nodes/a.yaml:7", unit="GB/s")


@pytest.mark.parametrize(
    ("seen", "unit", "says"),
    [
        (400, "Gb/s", "rate cannot be compared: the check says Gb/s, the limit (specs/nodes/a.yaml:7) says GB/s"),
        (reading(400, "rate_gbps"), "", "its reading rate_gbps says Gb/s, the limit (specs/nodes/a.yaml:7) says GB/s"),
        (reading(400, "rate_gbps"), "GB/s", "the check says GB/s, its reading rate_gbps says Gb/s"),
    ],
    ids=["the check's", "the reading's", "the check's, not the reading's"],
)
def test_a_number_in_another_unit_than_its_limit_is_never_compared(seen, unit, says):
    judged = trial()
    with pytest.raises(UnjudgeableCheck) as raised:
        MeasureFixture(judged)("rate", seen, at_least=in_gb(50.0), unit=unit)
    assert says in str(raised.value)
    assert judged.measurements == []


def test_a_number_in_its_limit_s_unit_is_recorded_in_it():
    judged = trial()
    MeasureFixture(judged)("bandwidth", reading(470.0, "bus_bandwidth_gb_s"), at_least=in_gb(460.0))
    MeasureFixture(judged)("errors", reading(0, "errors"), at_most=0)
    assert [measurement.unit for measurement in judged.measurements] == ["GB/s", ""]


def test_measurements_are_written_as_bare_numbers():
    judged = trial()
    MeasureFixture(judged)("width", trace_value(16, path=("n", "probe")), at_least=limit(16.0))
    assert json.loads(json.dumps(judged.make_outcome("pass", "", 0.1).as_json()))["measurements"][0]["value"] == 16
    assert type(judged.measurements[0].value) is int
    assert judged.measurements[0].unit == "lanes"


@given(st.integers() | st.floats(allow_nan=False) | st.text() | st.lists(st.integers()))
def test_a_told_value_is_the_plain_value(value):
    remembered = trace_value(value, path=("a", "b"), source="x:1")
    assert remembered == value
    assert (remembered.path, remembered.source) == (("a", "b"), "x:1")


def test_numbers_are_written_as_people_write_them():
    assert [format_value(value) for value in (16.0, 0.1 + 0.2, 3840755982336, 93.75, "OK")] == [
        "16", "0.3", "3840755982336", "93.75", "OK",
    ]  # fmt: skip


def evidence(count: int, *, boot: str = "boot-1", guid: str = "0x1") -> EvidenceDocument:
    hca = {"guid": {"value": guid}, "counters": {"link_downed": {"value": count}}}
    channels = {"probe": {"host": {"boot_id": {"value": boot}}, "hca": {"mlx5_0": hca}}}
    return EvidenceDocument("n0003", datetime(2026, 11, 21, tzinfo=UTC), channels)


class Ledger:
    """A ledger with at most one pass."""

    def __init__(self, digest: str | None) -> None:
        self.digest = digest

    def last_pass(self, check: str, subject: str) -> RecordedOutcome | None:
        assert (check, subject) == ("suites/x.py::test_x", "h100-a/n0003/mlx5_0")
        return self.digest and RecordedOutcome(
            "run", "", Outcome(check, subject, "n0003", "pass", evidence=self.digest)
        )


def grown(
    home: Path,
    before: EvidenceDocument | None,
    now: EvidenceDocument,
    *,
    keep: bool = True,
    ledger: bool = True,
    lifetime: bool = False,
) -> int:
    """Return how much link_downed grew, with `before` as the evidence of the last pass."""
    if before and keep:
        path = find_object_path(home / "objects", before.digest())
        path.parent.mkdir(parents=True)
        path.write_bytes(pack_object(json.dumps(before.as_json()).encode()))
    shelf = EvidenceCache(home / "latest")
    shelf._documents["n0003"] = CachedEvidence(now, now.digest())
    judged = trial(shelf)
    counter = EvidenceView(judged, "n0003", ("probe", "hca", "mlx5_0", "counters")).link_downed
    passes = Ledger(before.digest() if before else None) if ledger else None
    return SinceLastPass(judged, lambda: passes)(counter, lifetime=lifetime)


def test_a_counter_counts_from_the_last_pass(tmp_path):
    assert grown(tmp_path, evidence(3), evidence(5)) == 2


def test_without_a_ledger_or_an_earlier_pass_the_whole_count_counts(tmp_path):
    assert grown(tmp_path, None, evidence(5)) == 5
    assert grown(tmp_path, None, evidence(5), ledger=False) == 5


def test_when_the_earlier_evidence_is_gone_the_whole_count_counts(tmp_path):
    assert grown(tmp_path, evidence(3), evidence(5), keep=False) == 5


def test_a_counter_that_restarted_counts_from_zero(tmp_path):
    assert grown(tmp_path, evidence(9), evidence(5)) == 5


def test_after_a_reboot_or_a_replacement_nothing_is_taken_off(tmp_path):
    assert grown(tmp_path / "a", evidence(3), evidence(5, boot="boot-2")) == 5
    assert grown(tmp_path / "b", evidence(3), evidence(5, guid="0x2")) == 5


def test_a_counter_of_a_whole_life_begins_at_first_sight_and_goes_on_across_boots(tmp_path):
    assert grown(tmp_path / "a", None, evidence(5), lifetime=True) == 0
    assert grown(tmp_path / "b", evidence(3), evidence(5, boot="boot-2"), lifetime=True) == 2
    assert grown(tmp_path / "c", evidence(9), evidence(5), lifetime=True) == 5, "it was reset"
    assert grown(tmp_path / "d", evidence(3), evidence(5, guid="0x2"), lifetime=True) == 0, "another part"
    assert grown(tmp_path / "e", None, evidence(5), ledger=False, lifetime=True) == 5, "nothing tells its growth"


def test_only_a_number_from_evidence_can_be_counted():
    for what in (5, "5", trace_value("x", path=("n0003", "probe")), None):
        with pytest.raises(UnjudgeableCheck):
            SinceLastPass(trial(), lambda: None)(what)
