"""Output of many hosts in one file: each event is that of each host whose name stands before it in its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.verbs.faults import classify_log
from assay.model.facts import to_json
from assay.model.text.lists import MAX_NODES, expand_names

XID = "[ 1001.500000] NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus."
CALM = "[ 1001.500000] usb 1-1: new device"
ISO = "2026-11-21T18:00:00,000000+00:00 NVRM: Xid (PCI:0000:3b:00): 48, pid=1, DBE"
SEL = " 1 | 11/21/2026 | 18:00:00 | Power Supply PS1 | Failure detected | Asserted"


LOGS = {
    "clush -L": (f"n[1-2]: {XID}\nn3: {CALM}\n", {"n1", "n2"}),
    "ansible -o": (
        f"n1 | CHANGED | rc=0 | (stdout) {CALM}\\n{XID}\nn2 | CHANGED | rc=0 | (stdout) {XID}\n",
        {"n1", "n2"},
    ),
    "fabric": (f"[n1] out: {XID}\n[n2] out: {XID}\n", {"n1", "n2"}),
    "a name in brackets": (f"[n1] {XID}\n[n2] {XID}\n", {"n1", "n2"}),
    "tabs": (f"n1:\t{XID}\nn2\t{XID}\nn3 {XID}\n", {"n1", "n2", "n3"}),
    "salt in YAML": (f'n1: "{XID}"\nn2: "{XID}"\n', {"n1", "n2"}),
}


@pytest.mark.parametrize("name", LOGS)
def test_each_host_has_its_own_faults(name, tmp_path, catalog):
    text, hosts = LOGS[name]
    (tmp_path / "log").write_text(text)
    faults = to_json(classify_log(str(tmp_path / "log"), catalog))["faults"]
    assert sorted(fault["host"] for fault in faults) == sorted(hosts)


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
