"""A storm is read by what each second says; lines, parts and what is uncounted stay as they are."""

from __future__ import annotations

import pytest

from assay.decide.faults.log_file_faults import FURTHER_PARTS, MOST_FAULTS
from assay.observe.logs.kernel_log_search import fold_storm

XID = "NVRM: Xid (PCI:0000:{:02x}:00): {}, pid={}, name=python3, Ch {:08x}"
HEADS = {
    "dmesg": "[{:12.6f}] ",
    "syslog": "Nov 21 18:00:00 n1 kernel: [{:12.6f}] ",
    "dmesg -r": "<4>[{:12.6f}] ",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_each_line_of_a_storm_counts(head, tell):
    lines = [head.format(100 + at / 1000) + XID.format(at % 8, 13 if at % 2 else 31, at, at) for at in range(9000)]
    told = tell(*lines)
    assert told["lines"] == 9000
    assert {fault["lines"] for fault in told["faults"]} == {1125}
    assert len(told["faults"]) == 8
    assert {fault["count"] for fault in told["faults"]} == {2}, "nine seconds hold two bursts of five"


def test_lines_that_say_different_things_stay():
    texts = ["NVRM: Xid (PCI:0000:01:00): 149, NETIR_LINK_EVT Fatal Link 0{}", "mlx5_core 0000:0{}:00.0 ib0: Link down"]
    lines = [f"[  1.{at}00000] {text.format(at)}" for at in range(9) for text in texts]
    caused = [f"[  1.000000] {XID.format(1, 45, at, at)} caused by previous Xid 14{at}" for at in range(4, 10)]
    storm = "\n".join([*lines, *caused, ""]).encode()
    assert fold_storm(storm) == (storm, {})


def test_the_first_and_the_last_of_a_second_stand_for_all():
    lines = [f"[  7.{at:06}] {XID.format(1, 13, at, at)}".encode() for at in range(50)]
    folded, times = fold_storm(b"\n".join(lines))
    assert folded.split(b"\n") == [lines[0], lines[-1]]
    assert times == {lines[-1]: 49}


def test_a_second_that_goes_on_with_the_one_before_keeps_its_last_line_only():
    lines = [f"[  {second}.{at:06}] {XID.format(1, 13, at, at)}".encode() for second in (7, 8, 99) for at in range(9)]
    lines.insert(18, b"[  9.000000] mlx5_core 0000:01:00.0 ib0: Link down")
    folded, times = fold_storm(b"\n".join(lines))
    assert folded.split(b"\n") == [lines[0], lines[8], lines[17], lines[18], lines[19], lines[-1]]
    assert times == {lines[8]: 8, lines[17]: 9, lines[-1]: 8}


@pytest.mark.parametrize(
    "head", ["Nov 21 18:{:02}:{:02} n1 kernel: ", "2026-11-21T18:{:02}:{:02}.5+00:00 n1 kernel: ", ""]
)
def test_each_fault_of_a_storm_is_found_whatever_tells_its_time(head, tell):
    lines = [
        head.format(at // 600, at // 10 % 60) + XID.format(at % 8, (13, 79, 31)[at % 3], at, at) for at in range(5000)
    ]
    told = tell(*lines)
    assert {(fault["class"], fault["action"]) for fault in told["faults"]} >= {("hardware", "reboot")}
    assert sum(fault["lines"] for fault in told["faults"]) == 5000, "one stands for all within its second"
    assert len(told["faults"]) == 24


def test_errors_that_nobody_judged_count_in_a_storm(tell):
    line = "NVRM: nvAssertOkFailedNoLog: Assertion failed: Generic error"
    (form,) = tell(*(f"[{100 + at / 1000:12.6f}] {line}" for at in range(3000)))["not_judged"]
    assert form["count"] == 3000


def test_a_log_may_name_any_number_of_parts(tell):
    lines = [f"[{at:12.6f}] nfs: server n{at} not responding, still trying" for at in range(MOST_FAULTS + 50)]
    told = tell(*lines)
    assert len(told["faults"]) == MOST_FAULTS + 1
    assert told["by"]["nfs.silent", FURTHER_PARTS]["lines"] == 50
