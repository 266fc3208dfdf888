"""The reader of histories: what fits is read, anything else is told with its line, and nothing breaks it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.decide.replay.history import read_history
from assay.model.errors import AssayError
from tests.decide.replay.replay_world import fault

WHOLE = fault(10, "n1", "gpu.xid.79")


def read(*lines):
    return read_history([line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines], "e.jsonl")


def test_events_are_sorted_by_time_and_those_of_one_moment_stay_in_their_order():
    history = read(fault(20, "a", "gpu.missing"), b"", WHOLE, fault(10, "n2", "GPU.XID.13"))
    assert [(event.node, event.fault, event.line) for event in history.events] == [
        ("n1", "gpu.xid.79", 3),
        ("n2", "gpu.xid.13", 4),
        ("a", "gpu.missing", 1),
    ]
    assert history.in_seconds


def test_a_time_without_a_zone_is_utc_and_fields_of_others_are_named():
    history = read({**WHOLE, "time": "2026-11-21T12:00:00", "job": 7}, {**WHOLE, "time": "2026-11-21T13:00+01:00"})
    assert history.events[0].at == history.events[1].at
    assert (history.in_seconds, history.unread_fields) == (False, ("job",))


def test_nothing_is_a_history_of_nothing():
    assert read().events == read(b"\n", b"  ").events == ()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"not json", "Invalid JSON"),
        (b"\xff\xfe", "Invalid JSON"),
        (b"[1]", "the line: "),
        (b"[" * 100_000, "recursion limit"),
        (b'{"time": ' + b"9" * 5000 + b"}", "Invalid JSON"),
        ({**WHOLE, "time": float("nan")}, "time: "),
        ({**WHOLE, "time": 1.7e12}, "time: "),
        ({**WHOLE, "time": -1}, "time: "),
        ({**WHOLE, "time": True}, "time: "),
        ({**WHOLE, "time": "yesterday"}, "time: "),
        ({**WHOLE, "time": "0001-01-01T00:00:00+14:00"}, "time: "),
        ({**WHOLE, "time": None}, "time: "),
        ({**WHOLE, "event": "broke"}, "event: "),
        ({**WHOLE, "event": ["fault"]}, "event: "),
        ({**WHOLE, "node": ""}, "node: "),
        ({**WHOLE, "node": "\ud800"}, "Invalid JSON"),
        ({**WHOLE, "node": "a/b"}, "node: "),
        ({**WHOLE, "fault": None}, "fault is missing"),
        ({**WHOLE, "fault": 79}, "fault"),
        ({**WHOLE, "in_use": "yes"}, "in_use: "),
        ({"time": 1, "node": "n1", "event": "use"}, "in_use is missing"),
        ({**WHOLE, "time": "2026-11-21T12:00:00Z"}, "another form"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(line, said):
    with pytest.raises(AssayError, match=said) as trouble:
        read(WHOLE, b"", line)
    assert trouble.value.where == "e.jsonl:3"
    assert trouble.value.fix


def test_a_detail_is_made_fit_to_print():
    detail = read({**WHOLE, "detail": "a\x1b[31m" + "x" * 900}).events[0].detail
    assert detail.isprintable()
    assert len(detail) == 500
    detail.encode()


odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from(["time", "node", "event", "fault", "in_use", "detail", "pool", "x"]), odd))
def test_any_value_anywhere_is_read_or_refused(changes):
    try:
        read({**WHOLE, **changes})
    except AssayError as trouble:
        str(trouble).encode()
