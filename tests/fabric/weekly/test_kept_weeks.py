"""A week is kept and read back as it was."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.weekly.week import FabricWeek, PortWeekSummary, ReadingTrend
from assay.fabric.weekly.week_evidence import format_week_subject, make_week_evidence, read_week_evidence
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.specs.fabric.cable import PortId

AT = datetime(2026, 11, 21, tzinfo=UTC)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


numbers = st.floats(-100, 100).map(lambda value: round(value, 3))
trends = st.builds(ReadingTrend, numbers, numbers, numbers, st.none() | numbers)
tolds = st.builds(
    PortWeekSummary,
    errors=st.integers(0, 10**6),
    downs_a_day=st.integers(0, 300),
    vendor=st.text(max_size=8),
    trends=st.dictionaries(st.sampled_from(["light", "temperature"]), trends, max_size=2),
)


@given(st.dictionaries(st.builds(PortId, st.just("0x00000000000000aa"), st.integers(1, 64)), tolds, max_size=5))
def test_what_was_kept_is_read_back_as_it_was(ports):
    week = FabricWeek("compute", AT, AT, 28, 27, 6.0, 162.0, "ab", True, "", ("a scan was cut",), ports)
    document = EvidenceDocument.from_json(json.loads(json.dumps(make_week_evidence(week).as_json())))
    assert document.node == format_week_subject("compute")
    assert read_week_evidence(document) == week


@given(json_values, json_values)
def test_any_other_document_is_refused_in_words(about, ports):
    with pytest.raises(AssayError, match="no week of a fabric"):
        read_week_evidence(EvidenceDocument("week-compute", AT, {"week": about, "ports": ports}))
