"""A BMC's event log as any tool prints it: the same faults, at the same times; what cannot be read is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.verbs.faults import classify_log, format_faults_text
from assay.model.errors import AssayError
from assay.model.facts import to_json
from assay.model.log_message import LineTally
from assay.observe.logs.event_text import is_day_first, parse_time, read_event_text
from tests.support.log_spellings.event_texts import ASKED, EVENTS, PRINTED, Printed

NAMES = list(PRINTED)


def times_of(printed: Printed) -> dict[str, str]:
    return {name: (at.date() if printed.day_only else at).isoformat() + printed.zone for name, at in ASKED.items()}


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_tells_the_same_faults(name, tmp_path, catalog):
    events = EVENTS[:-1] if PRINTED[name].never_over else EVENTS
    (tmp_path / "log").write_text(PRINTED[name].write(events))
    document = to_json(classify_log(str(tmp_path / "log"), catalog))
    told = {fault["fault"]: fault["first"] for fault in document["faults"]}
    assert told == times_of(PRINTED[name])
    assert (document["unread"], document["uncounted"]) == (0, "")
    assert [fault["count"] for fault in document["faults"]] == [1] * len(ASKED)


def of_hosts(text: str, *hosts: str) -> str:
    """Return the lines of a log as each of several hosts says them, one host after the other, line by line."""
    return "".join(f"{host}: {line}\n" for line in text.splitlines() for host in hosts)


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_run_on_several_hosts_tells_the_faults_of_each(name, tmp_path, catalog):
    events = EVENTS[:-1] if PRINTED[name].never_over else EVENTS
    (tmp_path / "log").write_text(of_hosts(PRINTED[name].write(events), "n01", "n02"))
    answer = classify_log(str(tmp_path / "log"), catalog)
    document = to_json(answer)
    for host in ("n01", "n02"):
        told = {fault["fault"]: fault["first"] for fault in document["faults"] if fault["host"] == host}
        assert told == times_of(PRINTED[name])
    assert f"{document['faults'][0]['fault']} on n01, " in format_faults_text(answer)[0]


def test_a_host_that_says_no_log_is_no_entry_of_another(tmp_path, catalog):
    entries = of_hosts(PRINTED["ipmitool-C"].write(EVENTS), "n01")
    (tmp_path / "log").write_text(f"{entries}n02: Error: Unable to establish IPMI v2 / RMCP+ session\n")
    document = to_json(classify_log(str(tmp_path / "log"), catalog))
    assert {fault["host"] for fault in document["faults"]} == {"n01"}
    assert document["unread"] == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_log_that_breaks_off_within_an_event_never_loses_it_silently(name, tmp_path, catalog):
    whole = PRINTED[name].write(EVENTS[:3])
    for missing in (5, 20, 60):
        (tmp_path / "log").write_text(whole[:-missing])
        try:
            document = to_json(classify_log(str(tmp_path / "log"), catalog))
        except AssayError:
            continue
        assert "bmc.event.power-supply" in {fault["fault"] for fault in document["faults"]}


def test_what_begins_as_an_entry_and_is_none_is_told_and_refused(tmp_path, catalog):
    (tmp_path / "log").write_text("Record:      1\nDate/Time:   11/21/2026 18:01:00\nSource:      system\n")
    assert to_json(classify_log(str(tmp_path / "log"), catalog))["uncounted"] == "Record:      1"


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("Multi-bit memory errors detected on a memory device at location(s) DIMM_A1.", "DIMM_A1"),
        ("The power input for power supply 1 is lost.", "power supply 1"),
        ("Fan 2A RPM is less than the lower critical threshold.", "Fan 2A"),
        ("CPU 1 has a thermal trip (over-temperature) event.", "CPU 1"),
        ("Disk 0 in Backplane 1 of Integrated RAID Controller 1 failed.", "Disk 0"),
        ("The system board fail-safe voltage is outside of range.", "node"),
    ],
)
def test_racadm_names_the_part_within_its_sentence(said, part, tell):
    head = ("Record:      1", "Date/Time:   11/21/2026 18:01:00", "Source:      system", "Severity:    Critical")
    assert [one["subject"] for one in tell(*head, f"Description: {said}", "-" * 40)["faults"]] == [part]


def test_a_time_that_makes_no_sense_is_told_as_it_is(tmp_path, catalog):
    (tmp_path / "log").write_text("1 | 33/44/2026 | 18:00:00 | Power Supply PS1 | Failure detected | Asserted\n")
    (fault,) = to_json(classify_log(str(tmp_path / "log"), catalog))["faults"]
    assert (fault["fault"], fault["first"]) == ("bmc.event.power-supply", "33/44/2026 18:00:00")


def test_an_empty_sel_is_no_fault(tmp_path, catalog):
    (tmp_path / "log").write_text("SEL has no entries\n")
    assert to_json(classify_log(str(tmp_path / "log"), catalog))["faults"] == []


def test_the_kernels_own_message_counts_in_an_event_log_too(tmp_path, catalog):
    xid = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus."
    (tmp_path / "log").write_text(f"1 | 11/21/2026 | 18:00:00 | OEM record c0 | {xid}\n")
    assert [fault["fault"] for fault in to_json(classify_log(str(tmp_path / "log"), catalog))["faults"]] == [
        "gpu.xid.79"
    ]


@pytest.mark.parametrize(
    ("days", "day_first"),
    [
        (["05/06/2026", "13/06/2026"], True),
        (["05/06/2026", "06/13/2026"], False),
        (["05/06/2026", "06/05/2026"], False),
        (["05/06/2026", "01/07/2026"], True),
        (["05/06/26"], False),
        ([], False),
    ],
)
def test_the_other_entries_tell_whether_the_day_comes_first(days, day_first):
    assert is_day_first(days) is day_first


@pytest.mark.parametrize(
    ("day", "clock", "stamp"),
    [
        ("11/21/2026", "12:00:00 AM UTC", "2026-11-21T00:00:00+00:00"),
        ("11/21/2026", "12:00:00 PM UTC", "2026-11-21T12:00:00+00:00"),
        ("21.11.2026", "19:00:00 CET", "2026-11-21T19:00:00+01:00"),
        ("2026. 11. 21.", "오후 06시 00분 00초", "2026-11-21T18:00:00"),
        ("Nov-21-2026", "18:00:00", "2026-11-21T18:00:00"),
        ("2026-11-21", "18:00:00-0600", "2026-11-21T18:00:00-06:00"),
        ("11/21/2026", "18:00", "2026-11-21T18:00:00"),
        ("11/21/2026", "18:00:00 IST", "2026-11-21T18:00:00"),
    ],
)
def test_clocks_of_many_places(day, clock, stamp):
    assert parse_time(day, clock, day_first=False).stamp == stamp


@given(st.sampled_from(NAMES), st.integers(0, 2000), st.text(max_size=6), st.integers(0, 40))
def test_no_damage_breaks_a_reader(name, place, text, gone):
    whole = PRINTED[name].write(EVENTS)
    damaged = whole[:place] + text + whole[place + gone :]
    read = list(read_event_text(damaged.splitlines(), LineTally()))
    json.dumps([message for _, message in read])
