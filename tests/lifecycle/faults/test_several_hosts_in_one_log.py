"""Output of many hosts in one file: each event is that of each host whose name stands above it or before it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.verbs.evidence.faults import classify_log
from assay.model.errors import AssayError
from assay.model.texts.node_sets import MAX_NODES, expand_names
from assay.observe.logs.host_blocks import split_host_blocks
from assay.observe.logs.source_names import name_source
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
    "tail": (f"==> n1.log <==\n{XID}\n\n==> n2.log <==\n{XID}\n{CALM}\n", {"n1", "n2"}),
    "head of paths": (f"==> /var/log/n1/kern.log <==\n{XID}\n==> logs/n2-dmesg.txt <==\n{XID}\n", {"n1", "n2"}),
    "headings in Markdown": (f"### n1\n\n```\n{XID}\n```\n### n2 (rack 3)\n```text\n{XID}\n```\n", {"n1", "n2"}),
    "headings between lines": (f"=== n1 ===\n{XID}\n=== alpha ===\n$ dmesg\n{XID}\n", {"n1", "alpha"}),
    "headings in words": (f"## dmesg of n1\n{XID}\nHost: n2\n{XID}\n", {"n1", "n2"}),
    "names alone": (f"n1\n{XID}\nn2:\n{ISO}\n", {"n1", "n2"}),
    "grep": (f"/var/log/hosts/n1/kern.log:12:{XID}\n/var/log/hosts/n2/kern.log:7:{XID}\n", {"n1", "n2"}),
    "grep -A": (f"n1.log:12:{CALM}\nn1.log-13-{XID}\n--\nn2.log:7:{XID}\n", {"n1", "n2"}),
    "rg": (f"logs/n1/kern.log\n12:{XID}\n\nlogs/n2/kern.log\n3:{XID}\n", {"n1", "n2"}),
    "salt": (f"n1:\n    {CALM}\n    {XID}\nn2.example.com:\n    {XID}\n", {"n1", "n2.example.com"}),
    "yaml": (f"n1: |\n  {XID}\nn2: |\n  {XID}\n", {"n1", "n2"}),
    "ansible -o": (
        f"n1 | CHANGED | rc=0 | (stdout) {CALM}\\n{XID}\nn2 | CHANGED | rc=0 | (stdout) {XID}\n",
        {"n1", "n2"},
    ),
    "ansible in JSON": (
        f'n1 | SUCCESS => {{\n "stdout": "{XID}",\n "ts": 1\n}}\nn2 | SUCCESS => {{\n "stdout": "{CALM}"\n}}\n',
        {"n1"},
    ),
    "pssh -i": (f"[1] 18:00:00 [SUCCESS] n1\n{XID}\n[2] 18:00:01 [SUCCESS] n2\n{XID}\n", {"n1", "n2"}),
    "fabric": (f"[n1] out: {XID}\n[n2] out: {XID}\n", {"n1", "n2"}),
    "a name in brackets": (f"[n1] {XID}\n[n2] {XID}\n", {"n1", "n2"}),
    "event logs": (f"### n1\n{SEL}\n### n2\n{SEL}\n", {"n1", "n2"}),
    "a host in the line goes first": (f"==> all.log <==\nNov 21 18:00:00 n3 kernel: {XID}\n", {"n3"}),
    "prompts": (f"root@n1:~# dmesg\n{XID}\n[root@n2 ~]# dmesg -T\n{XID}\n", {"n1", "n2"}),
    "ssh": (f"$ ssh n1 dmesg\n{XID}\n$ ssh -q root@n2 dmesg\n{XID}\n", {"n1", "n2"}),
    "addresses": (f"10.0.0.1:\n{XID}\n10.0.0.2:\n{XID}\n", {"10.0.0.1", "10.0.0.2"}),
    "domains": (f"a.example.com\n{XID}\nb.example.com\n{XID}\n", {"a.example.com", "b.example.com"}),
    "sections": (f"[n1]\n{XID}\n[n2]\n{XID}\n", {"n1", "n2"}),
    "tabs": (f"n1:\t{XID}\nn2\t{XID}\nn3 {XID}\n", {"n1", "n2", "n3"}),
    "grep without times": (f"n1.log:{XID[15:]}\nn2.log:{XID[15:]}\n", {"n1", "n2"}),
    "salt in JSON": (f'{{"n1": "{XID}", "n2.example.com": "{XID}"}}', {"n1", "n2.example.com"}),
    "salt in YAML": (f'n1: "{XID}"\nn2: "{XID}"\n', {"n1", "n2"}),
    "playbook": ("".join(f'ok: [{host}] => {{\n "out": [\n "{XID}"\n ]\n}}\n' for host in ("n1", "n2")), {"n1", "n2"}),
    "colours": (f"\x1b[0;33mn1 | CHANGED | rc=0 >>\x1b[0m\n{XID}\nn2 | FAILED | rc=1 >>\n{XID}\n", {"n1", "n2"}),
    "HTML": (
        f"<html><h2>n1</h2><pre>{XID}\n</pre>\n<h2 class='x'>Host: n2</h2>\n<pre>\n{XID}</pre></html>\n",
        {"n1", "n2"},
    ),
    "HTML on one line": (f"<body><h3>n1</h3><p>{XID}</p><h3>alpha</h3><p>{CALM}<br>{XID}</p></body>", {"n1", "alpha"}),
    "folded HTML": (
        f"<summary>n1</summary>\n\n```\n{XID}\n```\n<summary>n2</summary>\n<pre>{XID}</pre>\n",
        {"n1", "n2"},
    ),
    "ansible": (f"n1 | CHANGED | rc=0 >>\n{CALM}\nn2 | CHANGED | rc=0 >>\n{XID}\n", {"n2"}),
}


@pytest.mark.parametrize("name", LOGS)
def test_each_host_has_its_own_faults(name, tmp_path, catalog):
    text, hosts = LOGS[name]
    (tmp_path / "log").write_text(text)
    faults = classify_log(str(tmp_path / "log"), catalog)["faults"]
    assert sorted(fault["host"] for fault in faults) == sorted(hosts)


ONE = {
    "rotated": f"/var/log/kern.log.1:12:{XID}\n/var/log/kern.log:3:{XID}\n",
    "tail -f": f"==> /var/log/kern.log <==\n{XID}\n==> /var/log/messages <==\n{XID}\n",
    "a heading of a report": f"### Logs\n```\n{XID}\n```\n### dmesg\n```\n{XID}\n```\n",
    "headings in HTML": f"<h1>Logs</h1><pre>{XID}</pre><h2>Kernel log</h2><pre>{XID}</pre>\n",
    "a boot": f"{XID}\n-- Reboot --\n{XID}\n",
    "words": f"Kernel log:\n    {XID}\ndmesg:\n    {XID}\nOutput 2\n{XID}\n",
}


@pytest.mark.parametrize("name", ONE)
def test_files_and_headings_of_one_host_name_none(name, tmp_path, catalog):
    (tmp_path / "log").write_text(ONE[name])
    (fault,) = classify_log(str(tmp_path / "log"), catalog)["faults"]
    assert (fault["host"], fault["lines"]) == ("", ONE[name].count("Xid"))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("n1.log", "n1"),
        ("dmesg-n1.txt.gz", "n1"),
        ("gpu-node-7_kern.log.1", "gpu-node-7"),
        ("/var/log/remote/alpha/messages-20261121", "alpha"),
        ("sosreport-n1-2026/var/log/messages", "sosreport-n1-2026"),
        ("/var/log/kern.log", ""),
        ("./dmesg.txt", ""),
        ("..//", ""),
    ],
)
def test_whose_log_a_file_is(path, name):
    assert name_source(path) == name


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


@given(st.integers(1, 300))
def test_where_the_pieces_end_does_not_change_which_headings_are_found(size):
    text = f"==> n1.log <==\n{XID}\n### n2\n\n```\n{XID}\n```\nn3:\n    {XID}\nn4\n$ dmesg\n{XID}\n### Logs\n{XID}\n"
    lines = text.encode().splitlines(keepends=True)
    pieces = [b"".join(lines[at : at + size]) for at in range(0, len(lines), size)]
    found = [(hosts, b"".join(parts).count(b"Xid")) for hosts, parts in split_host_blocks(pieces) if hosts]
    assert found == [(("n1",), 1), (("n2",), 1), (("n3",), 1), (("n4",), 2)]


@given(st.integers(1, 200))
def test_where_the_pieces_of_a_log_are_cut_does_not_matter(size):
    lines = (block("n1", CALM, "-" * 15, "login", XID) + block("n[2-3]", XID)).encode().splitlines(keepends=True)
    pieces = [b"".join(lines[at : at + size]) for at in range(0, len(lines), size)]
    assert [(hosts, b"".join(parts)) for hosts, parts in split_host_blocks(pieces)][1:] == [
        (("n1",), f"{CALM}\n{'-' * 15}\nlogin\n{XID}\n".encode()),
        (("n2", "n3"), f"{XID}\n".encode()),
    ]
