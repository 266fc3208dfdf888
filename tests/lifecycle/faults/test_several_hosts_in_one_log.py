"""Output of many hosts in one file: each event is that of each host whose name stands above it or before it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.verbs.evidence.faults import classify_log
from assay.model.errors import AssayError
from assay.model.texts.node_sets import MAX_NODES, expand_names
from assay.observe.logs.host_blocks import split_host_blocks
from assay.observe.recordings.recording_reader import read_recordings

XID = "[ 1001.500000] NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus."
CALM = "[ 1001.500000] usb 1-1: new device"
ISO = "2026-11-21T18:00:00,000000+00:00 NVRM: Xid (PCI:0000:3b:00): 48, pid=1, DBE"
SEL = " 1 | 11/21/2026 | 18:00:00 | Power Supply PS1 | Failure detected | Asserted"


def block(hosts: str, *lines: str) -> str:
    return "\n".join(["-" * 15, hosts, "-" * 15, *lines, ""])


LOGS = {
    "clush -b": (block("n[01-02,4] (3)", XID) + block("n03", CALM), {"n01", "n02", "n4"}),
    "dshbak": (block("n1", CALM) + block("n2", XID, CALM), {"n2"}),
    "dshbak -c": (block("n[1-2],login1", XID), {"n1", "n2", "login1"}),
    "blocks of several forms": (block("n1", ISO) + block("n2", SEL) + block("n3", "SEL has no entries"), {"n1", "n2"}),
    "nothing of a log in a block": (block("n1", "command not found") + block("n2", XID), {"n2"}),
    "words before": ("clush: n9: exited with exit code 255\n" + block("n1", XID), {"n1"}),
    "dmesg -e": (block("n1", "[Nov21 18:00] usb 1-1", f"[  +1.5] {XID[15:]}"), {"n1"}),
    "clush -L": (f"n[1-2]: {XID}\nn3: {CALM}\n", {"n1", "n2"}),
    "clush -L, dmesg -e": (f"n[1-2]: [Nov21 18:00] usb 1-1\nn[1-2]: [  +1.5] {XID[15:]}\n", {"n1", "n2"}),
    "ansible": (f"n1 | CHANGED | rc=0 >>\n{CALM}\nn2 | CHANGED | rc=0 >>\n{XID}\n", {"n2"}),
}


@pytest.mark.parametrize("name", LOGS)
def test_each_host_has_its_own_faults(name, tmp_path, catalog):
    text, hosts = LOGS[name]
    (tmp_path / "log").write_text(text)
    faults = classify_log(str(tmp_path / "log"), catalog)["faults"]
    assert sorted(fault["host"] for fault in faults) == sorted(hosts)


def test_a_host_that_says_nothing_of_a_log_alone_is_refused(tmp_path, catalog):
    (tmp_path / "log").write_text(block("n1", "command not found"))
    with pytest.raises(AssayError, match="no log that I can read"):
        classify_log(str(tmp_path / "log"), catalog)


def test_observing_a_node_takes_the_block_of_one_host_and_refuses_those_of_two(tmp_path, catalog):
    (tmp_path / "log").write_text(block("n1", XID))
    lines = read_recordings([tmp_path / "log"], "n1").read("probe", "kernel_log", "lines").value
    assert [line["text"] for line in lines] == [XID[15:]]
    (tmp_path / "log").write_text(block("n[1-2]", XID))
    with pytest.raises(AssayError, match="of several hosts, such as n1, n2"):
        read_recordings([tmp_path / "log"], "n1", matcher=catalog.kernel_log_matcher)


@pytest.mark.parametrize(
    ("folded", "hosts"),
    [
        ("n1", ("n1",)),
        ("n[08-11]", ("n08", "n09", "n10", "n11")),
        ("n[1-5/2],x", ("n1", "n3", "n5", "x")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("n[1-2]-ib0", ("n1-ib0", "n2-ib0")),
        ("n[2-1]", ("n[2-1]",)),
        ("n[", ("n[",)),
        ("n[1-999999999]", ("n[1-999999999]",)),
        ("a[1-999]b[1-999]", ("a[1-999]b[1-999]",)),
    ],
)
def test_folded_names(folded, hosts):
    assert expand_names(folded) == hosts


@given(st.text("n[]-,0129/", max_size=40))
def test_no_name_breaks_the_unfolding_or_becomes_too_many(text):
    assert 1 <= len(expand_names(text)) <= MAX_NODES


@given(st.integers(1, 200))
def test_where_the_pieces_of_a_log_are_cut_does_not_matter(size):
    lines = (block("n1", CALM, "-" * 15, "n7", XID) + block("n[2-3]", XID)).encode().splitlines(keepends=True)
    pieces = [b"".join(lines[at : at + size]) for at in range(0, len(lines), size)]
    assert [(hosts, b"".join(parts)) for hosts, parts in split_host_blocks(pieces)][1:] == [
        (("n1",), f"{CALM}\n{'-' * 15}\nn7\n{XID}\n".encode()),
        (("n2", "n3"), f"{XID}\n".encode()),
    ]
