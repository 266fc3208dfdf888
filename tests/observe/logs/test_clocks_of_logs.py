"""Clocks that jump, lines without a time, several hosts in one log: what is counted, and what the times are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.log_spellings.envelopes import ENVELOPES
from tests.support.log_spellings.events import LINES, TOLD

XID = "NVRM: Xid (PCI:0000:1b:00): {}, pid=1, x"
DOWN = "mlx5_core 0000:18:00.0 ibp24s0: Link down"  # three within an hour are a fault
SPELLED = {envelope.name: envelope for envelope in ENVELOPES}


def journal(*stamps: str, text: str = DOWN) -> list[str]:
    return [f"{stamp} n1 kernel: {text}" for stamp in stamps]


def test_a_clock_that_is_set_back_hides_no_threshold(tell):
    lines = journal("Nov 21 18:00:00", "Nov 21 18:10:00", "Nov 21 17:00:00")
    (fault,) = tell(*lines)["faults"]
    assert (fault["count"], fault["action"]) == (3, "triage")
    assert (fault["first"][11:], fault["last"][11:]) == ("18:00:00", "17:00:00")


def test_nor_does_one_that_was_not_set_when_the_node_booted(tell):
    lines = journal("1970-01-01T00:05:10+00:00", "1970-01-01T00:06:00+00:00", "2026-11-21T18:00:00+00:00")
    (fault,) = tell(*lines)["faults"]
    assert (fault["count"], fault["action"]) == (3, "triage")


def test_the_time_since_the_boot_counts_before_a_clock_that_people_set(tell):
    stamps = (("Nov 21 18:00:00", 1000.0), ("Nov 21 09:00:00", 1001.0), ("Nov 23 09:00:00", 1100.0))
    (fault,) = tell(*(f"{wall} n1 kernel: [{up:12.6f}] {XID.format(48)}" for wall, up in stamps))["faults"]
    assert (fault["count"], fault["lines"]) == (2, 3), "the first two are one burst"


def test_first_and_last_are_of_lines_that_have_a_time(tell):
    lines = [XID.format(48), f"[ 1000.5] {XID.format(48)}", "[ 1001.0] usb 1-1: x", XID.format(48)]
    (fault,) = tell(*lines)["faults"]
    assert (fault["first"], fault["last"], fault["lines"]) == ("boot+1000.5s", "boot+1000.5s", 3)


def test_hosts_in_one_log_have_faults_and_clocks_of_their_own(tell):
    lines = [f"n{host}: [ {1000 + at * 10}.5] {XID.format(79)}" for at in range(2) for host in (1, 2)]
    faults = tell(*lines)["faults"]
    assert sorted((fault["host"], fault["count"]) for fault in faults) == [("n1", 2), ("n2", 2)]


def test_what_follows_from_a_fault_does_so_on_its_own_host_only(tell):
    document = tell(f"n1: [ 1000.5] {XID.format(79)}", f"n2: [ 1001.5] {XID.format(45)}")
    assert len(document["faults"]) == 2


def test_a_line_of_another_program_is_told_and_not_counted(tell):
    document = tell(*journal("Nov 21 18:00:00", text="usb 1-1: x"), f"Nov 21 18:00:01 n1 sshd[7]: {XID.format(79)}")
    assert document["faults"] == []
    assert document["uncounted"] == XID.format(79)


def test_a_bug_report_tells_each_message_once_though_several_sections_have_it(tell):
    rule = "_" * 44
    parts = [SPELLED[name].write(LINES) for name in ("dmesg", "journal-short", "dmesg-T")]
    text = f"{rule}\n\nStart of NVIDIA bug report log file.\n\n" + f"\n{rule}\n\n*** a section\n".join(parts)
    told = {fault["fault"]: fault["lines"] for fault in tell(*text.split("\n"))["faults"]}
    assert told == {name: one.lines for name, one in TOLD.items()}


@pytest.mark.parametrize(
    "stamp", ["Sat 2026-11-21 18:16:41 CET", "2026-11-21 09:16:41 PST", "Sat Nov 21 18:16:41 CET 2026"]
)
def test_a_zone_that_has_a_name_counts(stamp, tell):
    (fault,) = tell(f"{stamp} n1 kernel: {XID.format(79)}")["faults"]
    assert datetime.fromisoformat(fault["first"]).astimezone(UTC).isoformat() == "2026-11-21T17:16:41+00:00"


def test_a_zone_whose_name_means_several_is_left_out(tell):
    (fault,) = tell(f"Sat 2026-11-21 18:16:41 IST n1 kernel: {XID.format(79)}")["faults"]
    assert fault["first"] == "2026-11-21T18:16:41"


SAID = "NVRM: Xid (PCI:0000:3b:00): 48, pid=91, name=a b, DBE (double bit error)"
STAMPS = {
    "2026-03-12T04:11:02.5+09:00 n1 kernel: ": "2026-03-12T04:11:02.500000+09:00",
    "2026-03-12T04:11:02-0330 n1 kernel: ": "2026-03-12T04:11:02-03:30",
    "2026-03-12 04:11:02 CET n1 kernel: ": "2026-03-12T04:11:02+01:00",
    "Thu 2026-03-12 04:11:02 CEST n1 kernel: ": "2026-03-12T04:11:02+02:00",
    "Mar 12 2026 04:11:02 PM n1 kernel: ": "2026-03-12T16:11:02",
    "Mar 12 2026 12:11:02 a.m. n1 kernel: ": "2026-03-12T00:11:02",
    "12/Mar/2026:04:11:02 +0100 n1 kernel: ": "2026-03-12T04:11:02+01:00",
    "[12/Mar/2026 04:11:02] n1 kernel: ": "2026-03-12T04:11:02",
    "1773288662.5 n1 kernel: ": "2026-03-12T04:11:02.500000+00:00",
    "2026-03-12T01:00:00Z 10.1.2.3 kern.err 1 2026-03-12T04:11:02+09:00 n1 kernel - - - ": "2026-03-12T04:11:02+09:00",
}


@pytest.mark.parametrize("stamp", STAMPS)
def test_a_time_is_told_with_its_zone_and_by_24_hours(stamp, tell):
    (fault,) = tell(f"{stamp}{SAID}")["faults"]
    assert (fault["first"], fault["last"], fault["host"]) == (STAMPS[stamp], STAMPS[stamp], "n1")


@pytest.mark.parametrize("form", ["%b %e %H:%M:%S", "%Y-%m-%dT%H:%M:%S+00:00", "%Y-%m-%d %H:%M:%S"])
def test_a_log_that_begins_with_its_newest_line_tells_the_same(form, tell):
    start = datetime(datetime.now(UTC).year, 1, 2, 3, 4, 5, tzinfo=UTC)
    lines = [f"{start + timedelta(seconds=at):{form}} n1 kernel: {SAID}" for at in (0, 1, 100, 4000)]
    (there,), (back,) = tell(*lines)["faults"], tell(*lines[::-1])["faults"]
    assert (there["first"], there["last"], there["count"]) == (back["first"], back["last"], back["count"])
    assert there["first"] < there["last"]


def test_the_first_time_is_the_earliest_also_across_zones(tell):
    late, early = "Thu 2026-03-12 04:11:02 UTC", "Thu 2026-03-12 05:11:02 CEST"
    (fault,) = tell(f"{late} n1 kernel: {SAID}", f"{early} n1 kernel: {SAID}")["faults"]
    assert (fault["first"], fault["last"]) == ("2026-03-12T05:11:02+02:00", "2026-03-12T04:11:02+00:00")
