"""The kernel log is read from a cursor, whole, and a record that makes no sense is counted, never fatal."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.node.probe.kernel_log import MAX_LOG_LINES, KernelLogCursor, parse_kernel_record, read_kernel_log
from assay.node.probe.node_access import NodeRoot

EVERYTHING = KernelLogCursor()
BOOT = "11111111-2222-3333-4444-555555555555"
XID = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, name=x, GPU has fallen off the bus."
SAMPLE = Path(os.environ.get("ASSAY_SAMPLES", "no samples")) / "logs/kmsg.1.log"


def log_of(folder: Path, content: bytes, since: KernelLogCursor = EVERYTHING) -> dict[str, Any]:
    """Read `content` as the kernel log of a node that runs boot BOOT."""
    (folder / "dev").mkdir(exist_ok=True)
    (folder / "dev/kmsg").write_bytes(content)
    boot_id = folder / "proc/sys/kernel/random/boot_id"
    boot_id.parent.mkdir(parents=True, exist_ok=True)
    boot_id.write_text(f"{BOOT}\n")
    return read_kernel_log(NodeRoot(str(folder)), since)


def records(first: int, last: int) -> bytes:
    return b"".join(b"6,%d,%d,-;line %d\n" % (seq, seq * 1000, seq) for seq in range(first, last + 1))


def texts(tree: dict[str, Any]) -> list[str]:
    return [line["text"] for line in tree["lines"]["value"]]


def test_a_record_says_its_number_its_time_and_its_text(tmp_path: Path) -> None:
    tree = log_of(tmp_path, f"3,4711,206764307,-;{XID}\n".encode())
    assert tree["lines"] == {"value": [{"seq": 4711, "t_s": 206.764307, "text": XID, "level": 3}]}
    assert tree["cursor"] == {"value": 4711}


def test_lines_with_a_leading_space_belong_to_the_record_before(tmp_path: Path) -> None:
    tree = log_of(tmp_path, b"6,1,5,-;usb 1-1: new\n SUBSYSTEM=usb\n DEVICE=c189:1\n6,2,9,-;next\n")
    assert texts(tree) == ["usb 1-1: new", "next"]
    assert tree["unread"] == {"value": 0}


def test_a_record_may_name_its_caller(tmp_path: Path) -> None:
    assert texts(log_of(tmp_path, b"6,1,5,-,caller=T667;hello\n")) == ["hello"]


def test_the_kernels_escapes_are_undone() -> None:
    line = parse_kernel_record(rb"6,1,5,-;temp 40\xc2\xb0C\x0aback\x5cslash")
    assert line is not None
    assert line.text == "temp 40°C\nback\\slash"


def test_only_what_is_newer_than_the_cursor_comes(tmp_path: Path) -> None:
    tree = log_of(tmp_path, records(0, 9), KernelLogCursor(7))
    assert texts(tree) == ["line 8", "line 9"]
    assert (tree["cursor"], tree["missed"]) == ({"value": 9}, {"value": 0})


def test_nothing_new_is_an_empty_list_with_the_same_cursor(tmp_path: Path) -> None:
    tree = log_of(tmp_path, records(0, 9), KernelLogCursor(9))
    assert (tree["lines"], tree["cursor"]) == ({"value": []}, {"value": 9})


def test_a_log_that_ends_before_the_cursor_is_another_boots(tmp_path: Path) -> None:
    assert texts(log_of(tmp_path, records(0, 2), KernelLogCursor(500))) == ["line 0", "line 1", "line 2"]


def test_a_cursor_of_another_boot_hides_nothing(tmp_path: Path) -> None:
    content = records(0, 5)
    assert len(texts(log_of(tmp_path, content, KernelLogCursor.parse("3@another-boot")))) == 6
    assert len(texts(log_of(tmp_path, content, KernelLogCursor.parse(f"3@{BOOT}")))) == 2


def test_records_that_were_overwritten_before_the_look_are_counted(tmp_path: Path) -> None:
    assert log_of(tmp_path, records(100, 109), KernelLogCursor(49))["missed"] == {"value": 50}


def test_a_storm_is_cut_to_the_newest_and_says_so(tmp_path: Path) -> None:
    tree = log_of(tmp_path, records(0, MAX_LOG_LINES + 99))
    assert len(texts(tree)) == MAX_LOG_LINES
    assert tree["missed"] == {"value": 100}
    assert tree["lines"]["value"][-1]["seq"] == MAX_LOG_LINES + 99


def test_what_tells_of_a_fault_is_not_lost_in_a_storm_of_other_lines(tmp_path: Path) -> None:
    tree = log_of(tmp_path, f"3,1,5,-;{XID}\n4,2,6,-;a warning\n".encode() + records(3, MAX_LOG_LINES + 99))
    assert texts(tree)[:2] == [XID, "a warning"]
    assert (len(texts(tree)), tree["missed"]) == (MAX_LOG_LINES, {"value": 99})


def test_of_a_storm_of_faults_the_first_and_the_last_are_kept(tmp_path: Path) -> None:
    storm = b"".join(b"3,%d,5,-;%s\n" % (seq, XID.encode()) for seq in range(MAX_LOG_LINES + 1000))
    kept = [line["seq"] for line in log_of(tmp_path, storm)["lines"]["value"]]
    assert (len(kept), kept[0], kept[-1], kept == sorted(kept)) == (MAX_LOG_LINES, 0, MAX_LOG_LINES + 999, True)


def test_a_broken_record_is_counted_and_the_others_are_read(tmp_path: Path) -> None:
    tree = log_of(tmp_path, b"not a record\n6,1,5,-;fine\n")
    assert (texts(tree), tree["unread"]) == (["fine"], {"value": 1})


def test_a_log_without_one_readable_record_failed(tmp_path: Path) -> None:
    assert log_of(tmp_path, b"nothing\nof it\n") == {"failed": "/dev/kmsg: 2 records, none readable"}


def test_no_log_is_absent_and_an_empty_one_too(tmp_path: Path) -> None:
    assert "absent" in read_kernel_log(NodeRoot(str(tmp_path)), KernelLogCursor())
    assert log_of(tmp_path, b"") == {"absent": "/dev/kmsg is empty"}


@given(st.binary(max_size=300) | st.lists(st.binary(max_size=40)).map(b"6,1,2,-;x\n".join))
def test_no_bytes_whatever_raise(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = log_of(Path(folder), content)
    assert len(tree) == 1 or set(tree) == {"cursor", "lines", "missed", "unread"}


@given(st.binary())
def test_a_record_is_understood_or_it_is_none(record: bytes) -> None:
    line = parse_kernel_record(record)
    assert line is None or line.seq >= 0


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="/dev/kmsg cannot be read here")
def test_this_machines_own_log_is_read_without_waiting() -> None:
    tree = read_kernel_log(NodeRoot(), KernelLogCursor())
    assert "absent" in tree or "failed" in tree or tree["cursor"]["value"] >= 0


@pytest.mark.skipif(not SAMPLE.exists(), reason="ASSAY_SAMPLES names no folder of real recordings")
def test_a_real_nodes_log_is_read_whole(tmp_path: Path) -> None:
    content = SAMPLE.read_bytes()
    tree = log_of(tmp_path, content)
    assert tree["unread"] == {"value": 0}
    assert len(texts(tree)) == len([line for line in content.splitlines() if line.strip() and line[:1] != b" "])
