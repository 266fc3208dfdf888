"""Files of other tools, read in as evidence: each format by its content, and nothing where one is not whole."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.node.probe.devices.network_adapters import read_hcas
from assay.node.probe.node_access import NodeRoot, resolve_lazy
from assay.observe.evidence_contents import find_unanswered_branches
from assay.observe.recordings.logs import RecordingError
from assay.observe.recordings.reader import RECORDING_FORMATS, parse_recording, read_recordings

AT = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
XID = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus."
IBSTAT = """CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 1
\tFirmware version: 28.39.1002
\tHardware version: 0
\tNode GUID: 0xa088c20300e3142a
\tSystem image GUID: 0xa088c20300e3142a
\tPort 1:
\t\tState: Initializing
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tBase lid: 31
\t\tLMC: 0
\t\tSM lid: 1
\t\tCapability mask: 0xa651e848
\t\tPort GUID: 0xa088c20300e3142a
\t\tLink layer: InfiniBand
"""
SEL = """   1 | Pre-Init  |0000000005| System Event #0x01 | OEM System boot event | Asserted
   2 | 11/20/2026 | 23:30:00 | Power Supply PSU1 | Power Supply AC lost | Asserted
  2a | 11/20/2026 | 23:31:00 | Power Supply PSU1 | Power Supply AC lost | Deasserted
"""
LOGS = {
    "kmsg": f"6,4,900000,-;ready\n SUBSYSTEM=pci\n3,5,1000000,-;{XID}\n",
    "dmesg": f"[    0.900000] ready\n[    1.000000][  T101] {XID}\n",
    "dmesg -T": f"[Sat Nov 21 07:00:00 2026] ready\n[Sat Nov 21 07:00:01 2026] {XID}\n",
    "short-iso": f"2026-11-21T07:00:00+0000 n1 sshd[7]: {XID}\n2026-11-21T07:00:01+0000 n1 kernel: {XID}\n",
    "syslog": f"Nov 21 07:00:00 n1 systemd[1]: Started.\nNov 21 07:00:01 n1 kernel: [    1.000000] {XID}\n",
}
JOURNAL = [
    {"MESSAGE": "old", "__REALTIME_TIMESTAMP": "1795244000000000", "_BOOT_ID": "1" * 32, "_TRANSPORT": "kernel"},
    {"MESSAGE": "no", "__REALTIME_TIMESTAMP": "1795244400000000", "_BOOT_ID": "2" * 32, "_TRANSPORT": "stdout"},
    {"MESSAGE": XID, "__REALTIME_TIMESTAMP": "1795244401000000", "_BOOT_ID": "2" * 32, "_TRANSPORT": "kernel"},
]


def read(tmp_path: Path, *contents: str | bytes, at: datetime | None = AT) -> EvidenceDocument:
    files = []
    for number, content in enumerate(contents):
        files.append(tmp_path / f"file{number}")
        files[-1].write_bytes(content.encode() if isinstance(content, str) else content)
    return read_recordings(files, "n0001", at)


HALF = json.dumps(
    {"LogEntry": 1, "Members": [{"Id": "1", "Created": "2026-11-21T07:00:00Z", "Message": "lost \ud83d"}]}
)


@pytest.mark.parametrize("content", ["\n".join(json.dumps({**one, "MESSAGE": "lost \ud83d"}) for one in JOURNAL), HALF])
def test_half_a_letter_which_json_can_write_and_nothing_keep_becomes_a_question_mark(content: str) -> None:
    found = json.dumps(list(parse_recording(content.encode(), AT)[1].values()))
    assert "lost ?" in found
    assert "ud83d" not in found


def test_adapters_of_ibstat_read_as_those_of_sysfs_do(tmp_path: Path) -> None:
    found = read(tmp_path, IBSTAT).channels["probe"]["hca"]["mlx5_0"]
    assert {
        name: found[name]["value"] for name in ("guid", "firmware", "type", "state", "phys_state", "rate_gbps")
    } == {
        "guid": "0xa088c20300e3142a",
        "firmware": "28.39.1002",
        "type": "MT4129",
        "state": "INIT",
        "phys_state": "LinkUp",
        "rate_gbps": 400,
    }
    assert (found["lid"], found["sm_lid"], found["link_layer"]) == (
        {"value": 31},
        {"value": 1},
        {"value": "InfiniBand"},
    )
    assert found["counters"] == {"unsupported": "ibstat does not print it"}


def test_the_branch_of_ibstat_has_the_names_of_the_probe(tmp_path: Path) -> None:
    device = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    device.mkdir(parents=True)
    theirs = resolve_lazy(read_hcas(NodeRoot(str(tmp_path))))["mlx5_0"]
    assert set(read(tmp_path, IBSTAT).channels["probe"]["hca"]["mlx5_0"]) == set(theirs)


def test_a_listing_that_ends_early_or_makes_no_sense_reads_failed_never_healthy(tmp_path: Path) -> None:
    short = IBSTAT.partition("\tPort 1:")[0]
    found = read(tmp_path, short, at=AT).channels["probe"]["hca"]["mlx5_0"]
    assert found["state"] == {"failed": "ibstat ended before port 1"}
    odd = read(tmp_path, IBSTAT.replace("Rate: 400", "Rate: many")).channels["probe"]["hca"]["mlx5_0"]
    assert "failed" in odd["rate_gbps"]


@pytest.mark.parametrize("form", LOGS)
def test_a_kernel_log_reads_as_the_probe_has_it_in_every_form(tmp_path: Path, form: str) -> None:
    evidence = read(tmp_path, LOGS[form])
    lines = evidence.read("probe", "kernel_log", "lines").value
    assert lines[-1]["text"] == XID
    assert [line["text"] for line in lines].count(XID) == 1, "what others wrote into a journal is not the kernel's"
    assert lines[-1]["t_s"] == (0.0 if form == "short-iso" else 1.0)
    quoted = {"short-iso": 1}.get(form, 0)
    assert evidence.read("probe", "kernel_log", "unread").value == quoted, "another program says what the kernel said"
    assert find_unanswered_branches(evidence.channels["probe"]) == {}
    assert evidence.read("probe", "host", "boot_id").kind == "absent"


def test_a_text_with_a_kernel_log_and_rows_of_a_sel_fills_both_channels(tmp_path: Path) -> None:
    row = "1 | 11/10/2026 | 03:11:07 | Power Supply #0x51 | Failure detected | Asserted"
    booting = "[Tue Nov 10 03:10:00 2026] usb 1-1: new device\n"
    evidence = read(tmp_path, f"{booting * 2}[Tue Nov 10 03:11:07 2026] {XID}\n   {row}\n")
    assert evidence.read("probe", "kernel_log", "lines").value[-1]["text"] == XID
    (event,) = evidence.read("bmc", "events").value
    assert (event["at"], event["part"]) == ("2026-11-10T03:11:07+00:00", "Power Supply #0x51")


def test_a_log_whose_only_fault_is_cut_off_has_a_failed_reading(tmp_path: Path) -> None:
    healthy = "[   10.0] usb 1-1: new device\n"
    assert find_unanswered_branches(read(tmp_path, healthy).channels["probe"]) == {}
    cut = read(tmp_path, f"{healthy}[   12.0] NVRM: Xid (PCI:0000:9d:00\n{healthy}").channels["probe"]
    assert "cannot be counted: 'NVRM: Xid (PCI:0000:9d:00'" in find_unanswered_branches(cut)["uncounted_fault"]


def test_a_boot_within_the_log_says_how_long_the_node_was_up(tmp_path: Path) -> None:
    first = "[Sat Nov 21 06:30:00 2026] Linux version 6.8.0-generic\n"
    evidence = read(tmp_path, first + LOGS["dmesg -T"])
    assert evidence.read("probe", "host", "uptime_s").value == 5400
    assert evidence.read("probe", "kernel_log", "lines").value[-1]["t_s"] == 1801


def test_of_a_journal_the_kernels_messages_of_the_last_boot_count(tmp_path: Path) -> None:
    evidence = read(tmp_path, "".join(json.dumps(entry) + "\n" for entry in JOURNAL))
    assert [line["text"] for line in evidence.read("probe", "kernel_log", "lines").value] == [XID]
    assert evidence.read("probe", "kernel_log", "missed").value == 1
    assert evidence.read("probe", "host", "boot_id").value == "22222222-2222-2222-2222-222222222222"


def test_a_long_log_keeps_its_end_and_says_what_it_left(tmp_path: Path) -> None:
    lines = "".join(f"[{number / 10:12.6f}] line {number}\n" for number in range(7000))
    log = read(tmp_path, lines).channels["probe"]["kernel_log"]
    assert (len(log["lines"]["value"]), log["missed"], log["cursor"]) == (5000, {"value": 2000}, {"value": 6999})


def test_a_sel_holds_what_was_asserted_and_counts_what_has_no_time(tmp_path: Path) -> None:
    evidence = read(tmp_path, SEL)
    (event,) = evidence.read("bmc", "events").value
    assert (event["id"], event["at"]) == ("2", "2026-11-20T23:30:00+00:00")
    assert event["message"] == "Power Supply PSU1, Power Supply AC lost"
    assert evidence.read("bmc", "undated_events").value == 1


def test_redfish_entries_read_as_if_the_bmc_had_been_asked(tmp_path: Path) -> None:
    entry = {"@odata.type": "#LogEntry.v1_9_0.LogEntry", "Id": "7", "Created": "2026-11-20T23:30:00+01:00"}
    entry |= {"Severity": "Critical", "Message": "Leak detected", "MessageId": "Environmental.1.0.LeakDetected"}
    evidence = read(tmp_path, json.dumps({"Members": [entry]}))
    assert evidence.read("bmc", "events").value[0]["message_id"] == "Environmental.1.0.LeakDetected"
    assert evidence.read("bmc", "event_log", "critical").value == 1


def test_several_files_are_one_document_and_the_rest_reads_absent(tmp_path: Path) -> None:
    evidence = read(tmp_path, IBSTAT, LOGS["kmsg"], SEL)
    assert evidence.at == AT
    assert evidence.read("probe", "gpu", "devices").reason == "not among the recordings"
    assert evidence.read("probe", "host", "uptime_s").kind == "absent"
    assert evidence.read("bmc", "events").kind == "value"
    assert EvidenceDocument.from_json(json.loads(json.dumps(evidence.as_json()))) == evidence


def test_evidence_is_as_old_as_the_oldest_file(tmp_path: Path) -> None:
    for name, content, age in (("a", IBSTAT, 100), ("b", LOGS["kmsg"], 5000)):
        (tmp_path / name).write_text(content)
        os.utime(tmp_path / name, (AT.timestamp() - age,) * 2)
    assert read_recordings([tmp_path / "a", tmp_path / "b"], "n0001").at.timestamp() == AT.timestamp() - 5000


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (["nothing that anybody knows"], "no format that is known here"),
        ([""], "no format that is known here"),
        (["<nvidia_smi_log><gpu id='x'>"], "nvidia-smi -q -x"),
        ([IBSTAT + "\tand more\n"], "is no line of ibstat"),
        ([SEL + "the end\n"], "1 of its 4 lines are no entries of an event log: 'the end'"),
        (['{"Members": [{"@odata.id": "/LogEntry/1"}], "@odata.type": "LogEntry", "Created": 1}'], "are only links"),
        (["Nov 21 07:00:00 n1 sshd[7]: hello\n"], "no message of the kernel"),
        ([LOGS["kmsg"], LOGS["dmesg"]], "both file0 and file1 hold probe.kernel_log"),
    ],
)
def test_what_is_not_whole_is_refused(tmp_path: Path, contents: list[str], said: str) -> None:
    with pytest.raises(AssayError, match=said):
        read(tmp_path, *contents)


def test_a_file_that_cannot_be_opened_is_told_and_not_more(tmp_path: Path) -> None:
    with pytest.raises(AssayError, match="No such file"):
        read_recordings([tmp_path / "gone"], "n0001")
    with pytest.raises(AssayError, match="cannot be read"):
        read_recordings([tmp_path], "n0001")


@given(
    st.sampled_from([IBSTAT, SEL, *LOGS.values(), json.dumps(JOURNAL[0])]), st.integers(0, 500), st.binary(max_size=8)
)
def test_whatever_is_cut_out_or_put_in_it_reads_or_is_refused(whole: str, place: int, odd: bytes) -> None:
    content = whole.encode()[:place] + odd + whole.encode()[place + 3 :]
    try:
        form, branches = parse_recording(content, AT)
    except RecordingError:
        return
    assert form.name in {known.name for known in RECORDING_FORMATS}
    json.dumps({".".join(place): tree for place, tree in branches.items()}, allow_nan=False)


@pytest.mark.skipif("ASSAY_SAMPLES" not in os.environ, reason="ASSAY_SAMPLES names no folder of real captures")
def test_real_captures_read_in() -> None:
    samples = Path(os.environ["ASSAY_SAMPLES"])
    files = [samples / name for name in ("gpu/qx-h100.xml", "logs/dmesg-xid-119.log")]
    evidence = read_recordings([*files, *samples.glob("infiniband/ibstat*")], "n0001")
    devices = evidence.read("probe", "gpu", "devices").value
    assert all(device["name"] == {"value": "NVIDIA H100 80GB HBM3"} for device in devices.values())
    assert len(evidence.read("probe", "hca").value) == 12
    assert any("Xid" in line["text"] for line in evidence.read("probe", "kernel_log", "lines").value)
    with pytest.raises(AssayError, match="no format that is known"):
        read_recordings([samples / "logs/fabricmanager.log"], "n0001")


def test_a_message_whose_head_looks_like_a_program_is_the_kernels(tmp_path: Path) -> None:
    stamp = "2026-11-21T17:16:41.500000+00:00 n1"
    evidence = read(tmp_path, f"{stamp} usb 1-1: new device\n{stamp} {XID}\n")
    assert evidence.read("probe", "kernel_log", "lines").value[-1]["text"] == XID
