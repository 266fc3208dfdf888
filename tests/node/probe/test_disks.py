"""SATA and SAS drives, as smartctl 7.0 to 7.4 writes them; of a controller's, and what is no drive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.model.reading import parse_reading
from assay.node.probe.devices.nvme import parse_disk, parse_scan, read_disk, read_disks
from assay.node.probe.node_access import NodeRoot, resolve_lazy
from tests.node.probe.test_node_tools import JSON, tool
from tests.node.probe.test_real_programs import SYSTEM_PATH, need


def attribute(number: int, raw: int, shown: str = "") -> dict[str, Any]:
    return {"id": number, "value": 100, "thresh": 10, "raw": {"value": raw, "string": shown or str(raw)}}


SATA = {
    "smartctl": {"exit_status": 0, "output": ["=== START OF READ SMART DATA SECTION ==="]},
    "device": {"name": "/dev/sda", "info_name": "/dev/sda [SAT]", "type": "sat", "protocol": "ATA"},
    "model_name": "SAMSUNG MZ7L3480HCHQ-00A07",
    "serial_number": "S664NX0W300117",
    "firmware_version": "JXTC604Q",
    "user_capacity": {"blocks": 937703088, "bytes": 480103981056},
    "smart_status": {"passed": False},
    "ata_smart_attributes": {
        "table": [
            attribute(5, 0x0001_0000_0183, "387 (0 1)"),
            attribute(187, 2),
            attribute(197, 8),
            attribute(198, 1),
            attribute(199, 108),
        ]
    },
    "ata_device_statistics": {
        "pages": [{"number": 7, "table": [{"name": "Percentage Used Endurance Indicator", "value": 3}]}]
    },
    "temperature": {"current": 33, "lifetime_max": 70},
    "power_on_time": {"hours": 19497},
}
SAS = {
    "smartctl": {"exit_status": 0, "output": ["Elements in grown defect list: 56", "Non-medium error count:       17"]},
    "device": {"name": "/dev/sdb", "info_name": "/dev/sdb", "type": "scsi", "protocol": "SCSI"},
    "scsi_model_name": "SEAGATE ST1200MM0129",
    "serial_number": "WFK9X0J30000E0231XDN",
    "scsi_revision": "C003",
    "user_capacity": {"bytes": 1200243695616},
    "smart_status": {"passed": True},
    "scsi_grown_defect_list": 56,
    "scsi_pending_defects": {"count": 1},
    "scsi_error_counter_log": {kind: {"total_uncorrected_errors": 2} for kind in ("read", "write", "verify")},
    "temperature": {"current": 36, "drive_trip": 60},
}
COUNTERS = ("reallocated", "pending", "uncorrectable", "uncorrected", "crc_errors", "non_medium_errors")
SCAN = {
    "smartctl": {"exit_status": 0},
    "devices": [
        {"name": "/dev/sda", "type": "scsi", "protocol": "SCSI"},
        {"name": "/dev/bus/0", "type": "megaraid,8", "protocol": "SCSI"},
        {"name": "/dev/nvme0", "type": "nvme", "protocol": "NVMe"},
    ],
}


def counters(disk: dict[str, Any]) -> list[Any]:
    return [disk["smart"][name].get("value") for name in COUNTERS]


def test_sata_tells_its_counts_as_smartctl_shows_them() -> None:
    disk = parse_disk(json.dumps(SATA))
    assert (disk["serial"], disk["size_bytes"]) == ({"value": "S664NX0W300117"}, {"value": 480103981056})
    assert counters(disk) == [387, 8, 1, 2, 108, None]
    smart = {name: leaf.get("value") for name, leaf in disk["smart"].items()}
    assert (smart["passed"], smart["temperature_c"], smart["used_percent"]) == (False, 33, 3)
    assert disk["smart"]["non_medium_errors"] == {"unsupported": "the drive does not tell its non_medium_errors"}


def test_sas_tells_the_same_facts_in_its_own_words() -> None:
    disk = parse_disk(json.dumps(SAS))
    assert (disk["model"], disk["firmware"]) == ({"value": "SEAGATE ST1200MM0129"}, {"value": "C003"})
    assert counters(disk) == [56, 1, None, 6, None, 17]
    assert "unsupported" in disk["smart"]["power_on_hours"]


def test_a_count_that_is_none_is_no_zero() -> None:
    table = [attribute(5, 0, "none")]
    disk = parse_disk(json.dumps(SATA | {"ata_smart_attributes": {"table": table}}))
    assert "failed" in disk["smart"]["reallocated"]
    assert "unsupported" in disk["smart"]["pending"]


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ({**SATA, "smart_status": {}}, "gave no log"),
        ({**SATA, "ata_smart_attributes": {}}, "gave no log"),
        ({"smartctl": {"messages": [{"string": "Smartctl open device: /dev/sda failed: No such device"}]}}, "No such"),
        (
            {"device": SAS["device"], "smartctl": {"output": ["SMART support is:     Unavailable - device lacks it"]}},
            "it said 'Unavailable",
        ),
    ],
)
def test_a_volume_or_a_drive_that_does_not_answer_is_no_healthy_drive(log: dict[str, Any], reason: str) -> None:
    assert reason in parse_disk(json.dumps(log))["failed"]


def test_a_scan_names_each_drive_and_says_how_to_ask_one_behind_a_controller() -> None:
    assert parse_scan(json.dumps(SCAN)) == {
        "value": {"sda": ["/dev/sda"], "bus-0-megaraid-8": ["--device=megaraid,8", "/dev/bus/0"]}
    }
    assert "failed" in parse_scan("smartctl: error while loading shared libraries")


def test_each_drive_is_asked_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "absent" in read_disks(NodeRoot(str(tmp_path)))
    host = tmp_path / "sys/class/scsi_host/host0"
    host.mkdir(parents=True)
    assert read_disks(NodeRoot(str(tmp_path))) == {"absent": "smartctl is not installed"}
    tool(tmp_path, "smartctl", "")
    (tmp_path / "smartctl").write_text(
        "#!/bin/sh\n"
        f"case \"$*\" in --scan*) echo '{json.dumps(SCAN)}' ;; */dev/sda) echo '{json.dumps(SATA)}' ;; esac\n"
    )
    disks = resolve_lazy(read_disks(NodeRoot(str(tmp_path))))
    assert disks["sda"]["smart"]["pending"] == {"value": 8}
    assert disks["bus-0-megaraid-8"] == {"failed": "smartctl gave no log"}
    host.rmdir()
    assert read_disks(NodeRoot(str(tmp_path))) == {"absent": "/sys/class/scsi_host is empty"}


def test_smartctl_itself_takes_the_question_and_says_which_drive_it_does_not_find(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    need("smartctl", "smartmontools")
    monkeypatch.setenv("PATH", SYSTEM_PATH)
    assert "/dev/sdzz failed: No such device" in read_disk(["/dev/sdzz"])["failed"]
    assert "No such device" in read_disk(["--device=megaraid,8", "/dev/sdzz"])["failed"]


@given(text=st.text() | JSON.map(json.dumps))
def test_no_output_whatever_raises(text: str) -> None:
    assert list(parse_disk(text)) == ["failed"]
    assert list(parse_scan(text)) == ["failed"]


@given(st.sampled_from([SATA, SAS]), st.data())
def test_no_log_whatever_raises(log: dict[str, Any], data: st.DataObject) -> None:
    disk = parse_disk(json.dumps(log | data.draw(st.dictionaries(st.sampled_from(sorted(log)), JSON))))
    leaves = (
        [disk] if parse_reading(disk) else [*disk["smart"].values(), *(disk[name] for name in disk if name != "smart")]
    )
    assert all(parse_reading(leaf) for leaf in leaves)
