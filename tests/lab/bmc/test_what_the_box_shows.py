"""What only a BMC sees: leaks, memory, processors, settings, clock; each fault shows in the right resource."""

from __future__ import annotations

from typing import Any

import pytest

from assay.lab.bmc import computer_system, power_transitions, virtual_bmc
from assay.lab.bmc.authentication import RedfishErrorResponse
from assay.lab.bmc.odata_responses import parse_filter
from assay.lab.faults.injection import inject_fault
from assay.lab.node.healthy_host import make_healthy_chassis
from assay.model.errors import AssayError

SYSTEM, BOX = "/redfish/v1/Systems/System_0", "/redfish/v1/Chassis/Chassis_0"
BMC = "/redfish/v1/Managers/BMC_0"
PLANTED = [
    ("psu.lost", {"psu": 2}, f"{BOX}/PowerSubsystem/PowerSupplies/2", ("Status", "State"), "Absent"),
    ("psu.degraded", {"psu": 2}, f"{BOX}/PowerSubsystem/PowerSupplies/2", ("LineInputStatus",), "OutOfRange"),
    ("psu.degraded", {"psu": 2}, f"{BOX}/PowerSubsystem", ("Status", "HealthRollup"), "Warning"),
    ("psu.failed", {"psu": 2}, f"{BOX}/PowerSubsystem/PowerSupplies/2", ("LineInputStatus",), "LossOfInput"),
    ("fan.failed", {"fan": 1}, f"{BOX}/ThermalSubsystem/Fans/1", ("Status", "Health"), "Critical"),
    ("fan.failed", {"fan": 1}, f"{BOX}/ThermalSubsystem", ("Status", "HealthRollup"), "Critical"),
    ("fan.slow", {"fan": 1}, f"{BOX}/ThermalSubsystem/Fans/1", ("SpeedPercent", "SpeedRPM"), 4100),
    ("inlet.hot", {}, f"{BOX}/Sensors/TEMP_INLET", ("Reading",), 41.0),
    (
        "bios.changed",
        {"attribute": "SRIOVSupport", "value": "Disabled"},
        f"{SYSTEM}/Bios",
        ("Attributes", "SRIOVSupport"),
        "Disabled",
    ),
    ("boot.override", {}, SYSTEM, ("Boot", "BootSourceOverrideEnabled"), "Continuous"),
    ("power.restore", {}, SYSTEM, ("PowerRestorePolicy",), "AlwaysOff"),
    ("bmc.ntp", {"servers": "x.example"}, f"{BMC}/NetworkProtocol", ("NTP", "NTPServers"), ["x.example"]),
    ("secure-boot", {"on": True}, f"{SYSTEM}/SecureBoot", ("SecureBootCurrentBoot",), "Enabled"),
    ("dimm.unhealthy", {"dimm": 3}, f"{SYSTEM}/Memory/DIMM_3", ("Status", "Health"), "Critical"),
    ("dimm.unhealthy", {"dimm": 3}, SYSTEM, ("MemorySummary", "Status", "HealthRollup"), "Critical"),
    ("cpu.unhealthy", {"cpu": 1}, f"{SYSTEM}/Processors/CPU_1", ("Status", "Health"), "Critical"),
    ("cpu.unhealthy", {"cpu": 1}, BOX, ("Status", "HealthRollup"), "Critical"),
    ("chassis.open", {}, BOX, ("PhysicalSecurity", "IntrusionSensor"), "HardwareIntrusion"),
    ("power.cap", {"watts": 4000}, f"{BOX}/EnvironmentMetrics", ("PowerLimitWatts", "SetPoint"), 4000),
]


@pytest.mark.parametrize(("fault", "how", "path", "where", "seen"), PLANTED)
def test_a_planted_fault_shows_where_a_bmc_would_show_it(
    lab: Any, fault: str, how: dict[str, Any], path: str, where: tuple[str, ...], seen: Any
) -> None:
    assert _at(lab.ask("GET", path).json(), where) != seen
    inject_fault(lab.world, fault, "n0003", how)
    assert _at(lab.ask("GET", path).json(), where) == seen


def _at(body: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        body = body[step]
    return body


def test_where_no_water_flows_there_is_nothing_that_looks_for_leaks(lab: Any) -> None:
    assert "LeakDetection" not in lab.ask("GET", f"{BOX}/ThermalSubsystem").json()
    assert lab.ask("GET", f"{BOX}/ThermalSubsystem/LeakDetection").status_code == 404
    with pytest.raises(AssayError):
        inject_fault(lab.world, "cooling.leak", "n0003", {})


def test_a_leak_shows_at_its_detector_in_the_roll_up_and_in_the_log(lab: Any, fleet: Any) -> None:
    with lab.world.change("n0003") as state:
        state["box"] = make_healthy_chassis(fleet.node_specs["gb200-nvl72"])
    detectors = f"{BOX}/ThermalSubsystem/LeakDetection/LeakDetectors"
    assert lab.ask("GET", detectors).json()["Members@odata.count"] == 2
    inject_fault(lab.world, "cooling.leak", "n0003", {"detector": 1})
    assert lab.ask("GET", f"{detectors}/LEAK_1").json()["DetectorState"] == "Critical"
    assert lab.ask("GET", SYSTEM).json()["Status"]["HealthRollup"] == "Critical"
    assert lab.state()["events"][-1]["severity"] == "Critical"


def test_a_bios_setting_waits_for_the_reset_of_the_host(lab: Any) -> None:
    path = f"/redfish/v1{computer_system.BIOS_SETTINGS}"
    asked = lab.ask("PATCH", path, json={"Attributes": {"SRIOVSupport": "Disabled", "ACSControl": "Disabled"}})
    assert asked.status_code == 200
    assert lab.ask("GET", f"{SYSTEM}/Bios").json()["Attributes"]["SRIOVSupport"] == "Enabled"
    assert lab.state()["box"]["bios_pending"] == {"SRIOVSupport": "Disabled"}
    lab.ask("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", json={"ResetType": "ForceRestart"})
    assert lab.ask("GET", f"{SYSTEM}/Bios").json()["Attributes"]["SRIOVSupport"] == "Disabled"
    assert lab.state()["box"]["bios_pending"] == {}


@pytest.mark.parametrize(
    "asked", [{"Attributes": {"NoSuch": "x"}}, {"Attributes": {"SRIOVSupport": 1}}, {"Attributes": []}, {}]
)
def test_a_bios_setting_that_cannot_be_is_refused(lab: Any, asked: Any) -> None:
    assert lab.ask("PATCH", f"/redfish/v1{computer_system.BIOS_SETTINGS}", json=asked).status_code == 400


def test_staged_firmware_is_listed_beside_what_runs(lab: Any) -> None:
    with lab.world.change("n0003") as state:
        state["staged"] = {"BIOS": {"version": "9.9", "reset": "host"}}
    inventory = "/redfish/v1/UpdateService/FirmwareInventory"
    assert lab.ask("GET", f"{inventory}/BIOS").json()["Version"] == lab.state()["firmware"]["BIOS"]
    assert lab.ask("GET", f"{inventory}/BIOS_Pending").json()["Version"] == "9.9"
    assert lab.ask("GET", f"{inventory}/BMC_Pending").status_code == 404


def test_the_clock_of_a_bmc_may_be_off(lab: Any) -> None:
    before = lab.ask("GET", "/redfish/v1/Managers/BMC_0").json()["DateTime"]
    inject_fault(lab.world, "bmc.clock", "n0003", {"seconds": 3600})
    assert lab.ask("GET", "/redfish/v1/Managers/BMC_0").json()["DateTime"][:13] > before[:13]


def test_a_log_is_filtered_and_paged(lab: Any) -> None:
    for number in range(6):
        inject_fault(
            lab.world, "sel.entry", "n0003", {"message": f"{number}", "severity": "OK" if number % 2 else "Warning"}
        )
    entries = f"{SYSTEM}/LogServices/SEL/Entries"
    warned = lab.ask("GET", f"{entries}?$filter=Severity eq 'Warning'").json()
    assert [entry["Message"] for entry in warned["Members"]] == ["0", "2", "4"]
    planted = "$filter=MessageId eq 'Assay.1.0.Planted'"
    page = lab.ask("GET", f"{entries}?{planted}&$skip=4&$top=2").json()
    assert [entry["Message"] for entry in page["Members"]] == ["4", "5"]


def test_expanding_deeper_brings_what_lies_deeper(lab: Any) -> None:
    power_at = f"{BOX}/PowerSubsystem"
    shallow = lab.ask("GET", f"{power_at}?$expand=.($levels=1)").json()["PowerSupplies"]
    deep = lab.ask("GET", f"{power_at}?$expand=.($levels=3)").json()["PowerSupplies"]
    assert set(shallow["Members"][0]) == {"@odata.id"}
    assert deep["Members"][0]["Metrics"]["InputVoltage"]["Reading"] == 230


RESOURCE = {"Id": "7", "Severity": "OK", "Created": "2026-11-01T08:00:00+00:00", "Status": {"Health": None}, "N": 3}


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("Id eq '7'", True),
        ("Id ne '7'", False),
        ("N ge 3", True),
        ("N lt 3", False),
        ("Status/Health eq null", True),
        ("Created ge '2026-11-01T07:59:59Z'", True),
        ("Created gt 2026-11-01T09:00:00+01:00", False),
        ("NoSuch gt 3", False),
        ("Id eq 'it''s'", False),
        ("N eq true", False),
    ],
)
def test_a_filter_says_what_fits(text: str, fits: bool) -> None:
    assert parse_filter(text)(RESOURCE) is fits


@pytest.mark.parametrize(
    "text", ["", "Id", "Id eq", "Id is '7'", "(Id eq '7'", "Id eq '7' and", "Id eq '7", "Id eq '7' or Id eq '8'"]
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(RedfishErrorResponse):
        parse_filter(text)


def test_an_area_is_as_well_as_its_worst_part(healthy: dict[str, Any]) -> None:
    assert virtual_bmc.node_health(healthy) == "OK"
    healthy["fans"][0]["health"] = "Warning"
    healthy["box"]["dimms"][0]["health"] = "Critical"
    assert (
        virtual_bmc.cooling_health(healthy),
        virtual_bmc.memory_health(healthy),
        virtual_bmc.node_health(healthy),
    ) == (
        "Warning",
        "Critical",
        "Critical",
    )


def test_soldered_memory_is_one_module_for_each_socket(fleet: Any) -> None:
    spec = fleet.node_specs["hgx-h100"]
    assert [len(make_healthy_chassis(replace_memory(spec, gib))["dimms"]) for gib in (2048, 894)] == [32, 2]


def replace_memory(spec: Any, gib: int) -> Any:
    return spec.model_copy(update={"memory_gib": gib})


def test_settings_of_the_bios_run_after_any_reset_of_the_host(healthy: dict[str, Any]) -> None:
    from datetime import UTC, datetime

    healthy["box"]["bios_pending"] = {"QuietBoot": "Enabled"}
    after = power_transitions.reset_node(healthy, "PowerCycle", datetime(2026, 11, 2, tzinfo=UTC))
    assert (after["box"]["bios"]["QuietBoot"], after["box"]["bios_pending"]) == ("Enabled", {})
