"""Every form in which people keep logs is read, and says of each fault what it is, where, how often, what it asks."""

from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from assay.cli.verbs.faults import classify_log
from assay.model.errors import AssayError
from assay.model.facts import to_json

HERE = Path(__file__).parent / "recordings"
ASKS = {
    "dmesg.log": {"gpu.xid.154.reset": "reset", "gpu.xid.149": "reset", "nvswitch.sxid.12028": "reboot"},
    "dmesg-T.log": {"gpu.xid.79": "reboot"},
    "kmsg.log": {"host.kernel.deadlock": "powercycle"},
    "journal.log": {"gpu.xid.79": "reboot", "pcie.fatal": "reboot"},
    "journal-iso.log": {"host.filesystem.error": "triage", "nvme.lost": "triage"},
    "journal.json": {"gpu.xid.95": "reset"},
    "rfc5424.log": {"gpu.xid.64": "reset", "host.memory.uncorrected": "triage"},
    "sel.log": {
        "bmc.event.power-supply": "ticket",
        "bmc.event.memory.uncorrectable": "triage",
        "bmc.event.fan": "ticket",
    },
    "redfish.json": {"bmc.event.processor": "triage", "bmc.event.leak": "triage"},
}
NOTED = {
    "dmesg.log": {"gpu.xid.13", "gpu.xid.48", "gpu.xid.145", "ib.link.flap", "nic.link.flap"},
    "kmsg.log": {"gpu.xid.31"},
    "journal-iso.log": {"host.task.hung"},
    "journal.json": {"host.oom"},
}


@pytest.mark.parametrize("recording", ASKS)
def test_a_recording_tells_its_faults_and_nothing_else(recording, tell):
    faults = tell(recording=recording)["faults"]
    assert {one["fault"]: one["action"] for one in faults if one["action"] != "none"} == ASKS[recording]
    assert {one["fault"] for one in faults if one["action"] == "none"} == NOTED.get(recording, set())


def test_every_fault_says_all_that_it_owes(tell):
    for recording in ASKS:
        for fault in tell(recording=recording)["faults"]:
            assert fault["class"] in ("hardware", "application", "driver", "operator")
            assert fault["severity"] in ("catastrophic", "degraded", "informational")
            assert fault["subject"]
            assert fault["count"] >= 1
            assert len(fault["because"]) > 20


@pytest.mark.parametrize(
    ("recording", "name", "first"),
    [
        ("dmesg.log", "gpu.xid.48", "boot+1843.308150s"),
        ("dmesg-T.log", "gpu.xid.79", "2026-11-22T10:00:00"),
        ("kmsg.log", "gpu.xid.31", "boot+206.800000s"),
        ("journal-iso.log", "nvme.lost", "2026-11-21T18:00:01+00:00"),
        ("journal.json", "gpu.xid.95", "2026-11-21T18:00:00+00:00"),
        ("rfc5424.log", "gpu.xid.64", "2026-11-21T18:00:00.123456+00:00"),
        ("sel.log", "bmc.event.power-supply", "2026-11-21T18:00:00+00:00"),
        ("sel.log", "bmc.event.fan", None),
        ("redfish.json", "bmc.event.processor", "2026-11-21T18:00:00+00:00"),
    ],
)
def test_times_are_told_as_the_log_knows_them(recording, name, first, tell):
    (fault,) = (one for one in tell(recording=recording)["faults"] if one["fault"] == name)
    assert fault["first"] == first


def test_a_log_without_a_year_has_that_in_which_it_was_written(tell, tmp_path, catalog):
    path = tmp_path / "messages"
    path.write_text("Dec 31 23:59:59 n1 kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=1, off the bus\n")
    os.utime(path, (1767312000, 1767312000))  # 2 January 2026
    assert to_json(classify_log(str(path), catalog))["faults"][0]["first"] == "2025-12-31T23:59:59"


def test_lines_that_say_too_little_are_counted_as_unread(tell):
    document = tell(recording="dmesg.log")
    assert (document["lines"], document["unread"]) == (16, 1), "the last Xid is cut off"
    document = tell(recording="sel.log")
    assert (document["lines"], document["unread"]) == (6, 1)
    assert tell(recording="journal.log")["unread"] == 1, "the journal's heading is no line of it"


def test_a_line_of_interest_that_lost_its_stamp_is_not_lost(tell):
    document = tell("[  10.5] usb 1-1: new device", "NVRM: Xid (PCI:0000:1b:00): 79, pid=1", "[ 11.5] usb 1-1: gone")
    assert ("gpu.xid.79", "0000:1b:00") in document["by"]
    assert document["unread"] == 1


def test_messages_without_any_stamp_are_read(tell):
    document = tell("NVRM: Xid (PCI:0000:1b:00): 79, pid=1", "usb 1-1: new device", "NVRM: Xid (PCI:0000:1b:00): 79")
    assert [(one["fault"], one["count"], one["first"]) for one in document["faults"]] == [("gpu.xid.79", 2, None)]


def test_a_packed_log_and_standard_input_are_read(tmp_path, catalog, monkeypatch):
    content = (HERE / "dmesg.log").read_bytes()
    (tmp_path / "dmesg.gz").write_bytes(gzip.compress(content))
    packed = to_json(classify_log(str(tmp_path / "dmesg.gz"), catalog))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert packed == to_json(classify_log("-", catalog)) == to_json(classify_log(str(HERE / "dmesg.log"), catalog))


def test_an_empty_log_has_no_lines(tell):
    assert {**tell(), "by": None} == {
        "faults": [],
        "lines": 0,
        "unread": 0,
        "not_judged": [],
        "uncounted": "",
        "broken": "",
        "by": None,
    }


@pytest.mark.parametrize("content", [b"hello\nworld\n", b"\x00\x01\xff" * 1000, b'{"kind": "x"}', b"[1, 2"])
def test_what_is_no_log_is_refused_with_a_reason(content, tmp_path, catalog):
    path = tmp_path / "thing"
    path.write_bytes(content)
    with pytest.raises(AssayError, match=r"no log that I can read|cannot be read"):
        to_json(classify_log(str(path), catalog))


def test_what_only_begins_as_gzip_is_told_as_damaged(tmp_path, catalog):
    path = tmp_path / "thing"
    path.write_bytes(b"\x1f\x8bnot gzip")
    assert "its gzip data are damaged" in to_json(classify_log(str(path), catalog))["broken"]


def test_a_file_that_is_not_there_is_refused(catalog):
    with pytest.raises(AssayError, match="No such file"):
        to_json(classify_log("/nonexistent/log", catalog))


@pytest.mark.skipif(not os.environ.get("ASSAY_SAMPLES"), reason="set ASSAY_SAMPLES to the folder of public samples")
def test_a_public_log_of_a_gsp_timeout_is_told(catalog):
    document = to_json(classify_log(str(Path(os.environ["ASSAY_SAMPLES"]) / "logs" / "dmesg-xid-119.log"), catalog))
    assert [(one["fault"], one["subject"], one["action"]) for one in document["faults"]] == [
        ("gpu.xid.119", "0000:9b:00", "reset")
    ]
