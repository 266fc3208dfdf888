"""Entries of BMC logs: what every class knows, XIDs that the BMC heard of, and critical entries that no class knows."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.declare.loader import load_fleet
from assay.model.evidence import EvidenceDocument
from assay.model.faults.bmc_events import drop_told_by_host, find_event_fault, find_sel_sightings
from assay.model.faults.sightings import MAX_DETAIL_LENGTH, FaultSighting
from assay.model.reading import value
from assay.model.specs.fault_catalog import SelPattern, merge_catalogs
from tests.support.places import ROOT

FLEET = load_fleet(ROOT)
CATALOG = merge_catalogs(FLEET.fault_catalogs.values())
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SENSOR_READ = "The resource property CPU0 Temperature has detected errors of type SensorReadError."
PROCESSOR = "bmc.event.processor"

ENTRIES = {
    "Leak detector 'Tray7' reports a critical level leak.": "bmc.event.leak",
    "Memory ECC uncorrectable error. Socket=1 Channel=2 DIMM=A Rank=0.": "bmc.event.memory.uncorrectable",
    "Memory device at location B4 is not installed correctly.": "bmc.event.memory",
    "CPU 1 Thermal Trip.": "bmc.event.processor",
    "Power supply group 'PSU_A' is in a critical state.": "bmc.event.power-supply",
    "Tray_FAN_3_REAR critical low threshold assert. Reading=0 Threshold=2000.": "bmc.event.fan",
    "Temperature 'Inlet' reading of 51 degrees (C) is above the 45 upper critical threshold.": "bmc.event.temperature",
    "System Overheating (Temperature Sensor 7, Location CPU, Temperature 91)": "bmc.event.temperature",
    "Uncorrectable PCI Express Error Detected. Slot 3 (Segment 0x0, Bus 0x61)": "bmc.event.pcie",
    "A failure condition for the drive located in 'Bay 4' was detected.": "bmc.event.drive",
    "Slot 3 Storage - Drive at Port 1 Box 1 Bay 7 status changed to Erasing": "bmc.event.drive-erase",
    "The volume 'V1' attached to the storage controller located in 'S2' has failed.": "bmc.event.storage",
    "PCIe Fatal Surprise Link Down Error. Bus=27 Device=0 Function=0.": "bmc.event.pcie",
    "Flow rate 'Loop' reading of 1.2 L/min is below the 2.0 lower critical threshold.": "bmc.event.liquid",
    "System Power-On Failed.": "bmc.event.power",
    "Voltage 'P12V' reading of 10.1 volts is below the 10.8 lower critical threshold.": "bmc.event.voltage",
    "Sensor 'X7' reading of 9 (A) is above the 5 upper critical threshold.": "bmc.event.sensor",
    "The Battery CMOS has failed.": "bmc.event.battery",
    "The device Mezz 2 is missing or improperly seated.": "bmc.event.seating",
    "Adapter Y - NIC Connectivity status changed to Link Failure for adapter in slot 4, port 1": "bmc.event.network",
    "The chassis is open while the power is off.": "bmc.event.intrusion",
    "System BIOS has halted.": "bmc.event.boot",
    "BIOS firmware resiliency error. Error reason: hash.": "bmc.event.firmware",
    "Activation of image 'nvfw.fwpkg' on 'HGX_FW_GPU_SXM_3' failed.": "bmc.event.firmware",
    "The storage controller located in 'Slot 4' requires a password.": "bmc.event.storage",
    "Drive array spare drive at location 3 connected to controller in 2 has Automatic Data Recovery in progress.": (
        "bmc.event.storage"
    ),
    "An offline condition for the the drive located in 'Bay 2' has been detected.": "bmc.event.drive",
    "The Secure Boot status on security dashboard is Risk. State is Disabled.": "bmc.event.security",
    "An operating system crash occurred.": "bmc.event.os",
    "At-Scale Debug special user is enabled": "bmc.event.security",
    "The resource property GPU_SXM_5 Thing has detected errors of type 'Odd'.": "bmc.event.gpu-board",
    "To complete it, a component reset is required with the Reset action URI 'GPU_SXM_2' and ResetType 'X'.": (
        "bmc.event.gpu-board"
    ),
    "xyz.openbmc_project.Common.Error.InternalFailure": "bmc.event.controller",
    "The health of resource `/redfish/v1/Chassis/C` has changed to Critical.": "bmc.event.unhealthy",
    "A word that nobody has heard before": "bmc.event.unknown",
}


def xid(
    number: int,
    *,
    kind: str = "XID",
    part: str = "GPU_SXM_4",
    flags: str = "00",
    at: str = "Fri Nov 20 11:00:00 UTC 2026",
) -> str:
    text = f"[{at}][7][{flags}] {kind} {number} some words"
    return f"The resource property {part} Driver Event Message has detected errors of type '{text}'."


def sightings(*events: dict[str, Any]) -> list[FaultSighting]:
    plain = {"severity": "Critical", "message_id": "", "log": "Systems HGX EventLog", "id": "1"}
    listed = [{**plain, **event} for event in events]
    return list(find_sel_sightings(CATALOG, EvidenceDocument("n1", NOW, {"bmc": {"events": value(listed)}})))


@pytest.mark.parametrize(("message", "name"), ENTRIES.items())
def test_a_critical_entry_has_the_class_that_knows_it(message: str, name: str) -> None:
    assert find_event_fault(CATALOG, "", message, "Critical") == (name, "")


def test_every_class_of_bmc_entries_has_an_example_here_or_elsewhere() -> None:
    elsewhere = {"bmc.event.memory.corrected", "bmc.event.watchdog", "bmc.event.log-full", "host.hardware.event"}
    classes = {name for name, rule in CATALOG.classes.items() if rule.sel}
    assert classes <= set(ENTRIES.values()) | elsewhere


@pytest.mark.parametrize(
    ("message_id", "name"),
    [
        ("IDRAC.2.9.PSU0031", "bmc.event.power-supply"),
        ("IDRAC.2.9.MEM1016", "bmc.event.memory"),
        ("IDRAC.2.9.PCI1310", "bmc.event.pcie"),
        ("IDRAC.2.9.ZZZ0001", "bmc.event.unknown"),
    ],
)
def test_a_vendors_key_is_enough_for_a_critical_entry_only(message_id: str, name: str) -> None:
    assert find_event_fault(CATALOG, message_id, "words", "Critical") == (name, "")
    assert find_event_fault(CATALOG, message_id, "words", "Warning") is None


def test_an_entry_that_reports_ok_is_no_fault() -> None:
    assert find_event_fault(CATALOG, "", "Power supply 1 input lost was cleared", "OK") is None


@pytest.mark.parametrize("name", [name for name, rule in CATALOG.classes.items() if rule.sel])
def test_people_get_a_ticket_for_what_they_must_look_at(name: str) -> None:
    rule = CATALOG.classes[name]
    tickets = {one for entry in FLEET.policy.faults.values() if entry.remedy == "ticket" for one in entry.classes or []}
    assert rule.severity != "degraded" or rule.remedy != "ticket" or name in tickets


def test_an_xid_in_a_log_of_the_board_is_an_xid_of_that_part_at_the_drivers_time() -> None:
    [seen] = sightings({"at": "1970-01-01T00:02:00+00:00", "message": xid(79)})
    assert (seen.fault_class, seen.part) == ("gpu.xid.79", "GPU_SXM_4")
    assert seen.at.startswith("2026-11-20T11:00:00")
    [switch] = sightings({"at": "2026-11-20T11:00:05+00:00", "message": xid(20034, kind="SXID", part="NVSwitch_1")})
    assert (switch.fault_class, switch.part) == ("nvswitch.sxid.20034", "NVSwitch_1")


def test_a_whole_line_of_the_driver_in_an_entry_is_its_xid() -> None:
    line = "NVRM: Xid (PCI:0000:3d:00): 79, pid=7, GPU has fallen off the bus."
    message = f"The resource property GPU_SXM_3 Driver Event Message has detected errors of type '{line}'."
    assert find_event_fault(CATALOG, "", message, "Critical") == ("gpu.xid.79", "0000:3d:00")
    switch = "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 33"
    assert find_event_fault(CATALOG, "", switch, "Critical") == ("nvswitch.sxid.12028", "0000:05:00.0")


def test_lines_that_go_on_and_the_number_of_no_error_are_no_xids() -> None:
    at = "2026-11-20T11:00:05+00:00"
    names = [
        one.fault_class for one in sightings({"at": at, "message": xid(79, flags="02")}, {"at": at, "message": xid(0)})
    ]
    assert names == ["bmc.event.gpu-board"] * 2


def test_a_clock_that_was_never_set_hides_no_entry_that_is_new() -> None:
    early = {"at": "1970-01-01T00:00:20+00:00", "message": "System BIOS has halted."}
    assert sightings(early) == []
    for wrong in ("1970-01-01T00:00:20+00:00", "9999-12-31T23:59:59+00:00", "", "noon"):
        [seen] = sightings({**early, "at": wrong, "seen": NOW.isoformat()})
        assert seen.at.startswith("2026-11-20T12:00:00")


def test_each_log_is_a_source_of_its_own() -> None:
    at = "2026-11-20T11:00:05+00:00"
    first, second = sightings(
        {"at": at, "message": "System BIOS has halted."},
        {"at": at, "message": "CPU 1 Thermal Trip.", "log": "Managers M SEL"},
    )
    assert {first.source, second.source} == {"sel Systems HGX EventLog", "sel Managers M SEL"}


def test_a_detail_is_bounded() -> None:
    at = "2026-11-20T11:00:05+00:00"
    for tail in ("x" * 1_000_000, "psu " * 250_000):
        [seen] = sightings({"at": at, "message": "System BIOS has halted." + tail})
        assert len(seen.detail) <= MAX_DETAIL_LENGTH + 1


@pytest.mark.parametrize(
    ("named", "part"),
    [
        ("GPU_SXM_4", "GPU_SXM_4"),
        ("GPU UUID 6463b098-ca8d-55c1-a65a-4d03c14fb86d", "6463b098-ca8d-55c1-a65a-4d03c14fb86d"),
        ("HGX_GPU_0", "HGX_GPU_0"),
    ],
)
def test_an_xid_names_its_part_by_name_or_uuid(named: str, part: str) -> None:
    for begins in ("The resource property ", ""):
        message = xid(79, part=named).removeprefix("The resource property ")
        [seen] = sightings({"at": "2026-11-20T11:00:05+00:00", "message": begins + message})
        assert (seen.fault_class, seen.part) == ("gpu.xid.79", part)


def test_what_the_host_tells_itself_is_not_told_twice() -> None:
    [seen] = sightings({"at": "2026-11-20T11:00:05+00:00", "message": xid(79)})
    gpus = ["gpu0", "gpu3"]
    by_host = seen._replace(part="gpu3", source="kernel")
    assert list(drop_told_by_host([seen], [by_host], [], gpus)) == [], "its place is unknown: it may be gpu3"
    told: Any = SimpleNamespace(fault_class="gpu.xid.79", subject="p/n1/gpu3", is_open=True, marks={"kernel": "b:1"})
    assert list(drop_told_by_host([seen], [], [told], gpus)) == []
    assert list(drop_told_by_host([seen], [by_host._replace(fault_class="gpu.xid.48")], [], gpus)) == [seen]


@pytest.mark.parametrize(("by_host", "is_told"), [("gpu3", True), ("gpu0", False), ("unknown part", True)])
def test_an_xid_of_a_gpu_whose_place_is_known_is_that_of_the_host_on_the_same_gpu(by_host: str, is_told: bool) -> None:
    [seen] = sightings({"at": "2026-11-20T11:00:05+00:00", "message": xid(79)})
    placed = seen._replace(part="gpu3")
    told: Any = SimpleNamespace(
        fault_class="gpu.xid.79", subject=f"p/n1/{by_host}", is_open=True, marks={"kernel": "b:1"}
    )
    for kernel, faults in (([seen._replace(part=by_host)], []), ([], [told])):
        assert (list(drop_told_by_host([placed], kernel, faults, ["gpu0", "gpu3"])) == []) is is_told


@given(st.text(), st.text(), st.sampled_from(["Critical", "Warning", "OK", ""]))
def test_no_critical_entry_is_silent(message_id: str, message: str, severity: str) -> None:
    found = find_event_fault(CATALOG, message_id, message, severity)
    assert found is not None or severity != "Critical"


def test_a_pattern_by_severity_names_nothing_else() -> None:
    with pytest.raises(ValueError, match="only severity"):
        SelPattern(severity="Critical", message="x")
    with pytest.raises(ValueError, match="only severity"):
        SelPattern()


def test_another_catalogue_decides_on_unknown_entries_itself() -> None:
    without = CATALOG.model_copy(update={"classes": {}})
    assert find_event_fault(without, "", "anything", "Critical") is None


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("GPU_SXM_4 XID 79 GPU has fallen off the bus.", ("gpu.xid.79", "GPU_SXM_4")),
        ("The resource property HGX_GPU_SXM_4 has detected errors of type Xid: 48", ("gpu.xid.48", "GPU_SXM_4")),
        ("XID error 119 detected on GPU 3", ("gpu.xid.119", "GPU 3")),
        ("GPU#2: Xid event (94)", ("gpu.xid.94", "GPU#2")),
        ("NVSwitch_1 SXID = 12028, Non-fatal", ("nvswitch.sxid.12028", "NVSwitch_1")),
        ("GPU_SXM_4 XID 0", None),
        ("XID 79 without a part", None),
        ("GPU_SXM_4 firmware XID-7 was activated", None),
        ("GPU_SXM_4 Driver Event Message: '[Wed Dec 6 17:31:51 UTC 2023][1][03] XID 79 and more'", None),
    ],
)
def test_an_xid_in_other_words_of_a_bmc_is_one_where_it_names_a_part_and_a_number(message, found):
    assert find_event_fault(CATALOG, "", message, "Warning") == found
    assert find_event_fault(CATALOG, "", message, "OK") is None


@pytest.mark.parametrize(
    ("message_id", "message", "severity", "fault"),
    [
        ("StorageDevice.1.0.DriveFailure", "The fan of the power supply failed.", "Critical", "bmc.event.drive"),
        ("Environmental.1.0.FanFailed", "Memory ECC uncorrectable error.", "Critical", "bmc.event.fan"),
        ("Power.1.0.PowerSupplyFailed", "The drive in bay 4 failed.", "Warning", "bmc.event.power-supply"),
        ("OpenBMC.0.4.MemoryECCUncorrectable", "Leak detected", "Critical", "bmc.event.memory.uncorrectable"),
        ("NetworkDevice.1.0.1.LinkFlapDetected", "volume failed", "Warning", "bmc.event.network"),
        ("StorageDevice.1.0.DriveOK", "The drive is back.", "OK", None),
        ("ResourceEvent.ResourceErrorsDetected", SENSOR_READ, "Warning", "bmc.event.sensor"),
        ("", "Network Controller Connectivity status changed to Link Failure", "Critical", "bmc.event.network"),
        ("", "All links are down in adapter 3", "Critical", "bmc.event.network"),
        ("", "ldap: Transport endpoint is not connected", "Warning", None),
        ("", "Server Critical Fault (Service Information: Runtime Fault, Processor 1)", "Critical", PROCESSOR),
    ],
)
def test_the_registry_decides_before_the_words(message_id: str, message: str, severity: str, fault: str | None) -> None:
    named = find_event_fault(CATALOG, message_id, message, severity)
    assert (named[0] if named else None) == fault
