"""BMCs of other makers: units that they name, two schemas that complete each other, and parts in child chassis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.adapters.bmc.firmware import name_kind
from assay.observe.evidence_collector import read_bmc_channel

BOX = "/redfish/v1/Chassis/Box"


def read(tiny: Any, ca_file: Path) -> dict[str, Any]:
    return read_bmc_channel(tiny.node(bmc_ca=str(ca_file)), Path(), 60)


def put_sensors(tiny: Any, *sensors: dict[str, Any]) -> None:
    tiny.tree[BOX]["Sensors"] = {"@odata.id": f"{BOX}/Sensors"}
    members = [{"@odata.id": f"/s{number}", "Id": f"S{number}", **sensor} for number, sensor in enumerate(sensors)]
    tiny.tree[f"{BOX}/Sensors"] = {"Members": members}


@pytest.mark.parametrize(
    ("kind", "unit", "reading", "branch", "read_as"),
    [
        ("Temperature", "Cel", 40, "temperature", {"c": {"value": 40}, "high_c": {"value": 80}}),
        ("Temperature", "K", 313.15, "temperature", {"c": {"value": 40}, "high_c": {"value": -193.15}}),
        ("Temperature", "[degF]", 104, "temperature", {"c": {"value": 40}, "high_c": {"value": 26.666667}}),
        ("Voltage", "mV", 12100, "voltage", {"v": {"value": 12.1}, "high_v": {"value": 0.08}}),
        ("Power", "kW", 4.2, "power", {"w": {"value": 4200}, "high_w": {"value": 80000}}),
        ("Power", None, 300, "power", {"w": {"value": 300}, "high_w": {"value": 80}}),
        ("Power", "[HP]", 2, "power", {"w": {"unsupported": "the BMC gives Meter in [HP], not in w"}}),
    ],
)
def test_a_sensor_is_read_in_the_unit_that_it_names(
    tiny: Any, ca_file: Path, kind: str, unit: str | None, reading: float, branch: str, read_as: dict[str, Any]
) -> None:
    limits = {"UpperCaution": {"Reading": 80}}
    sensor = {"Name": "Meter", "ReadingType": kind, "ReadingUnits": unit, "Reading": reading, "Thresholds": limits}
    put_sensors(tiny, sensor)
    assert read(tiny, ca_file)["sensor"][branch] == {"S0": read_as}


def test_percent_is_no_speed(tiny: Any, ca_file: Path) -> None:
    del tiny.tree[BOX]["ThermalSubsystem"]
    tiny.tree[BOX]["Thermal"] = {"@odata.id": "/redfish/v1/T"}
    fans = [{"MemberId": "0", "Name": "Fan 1", "Status": {"Health": "OK"}, "Reading": 26, "ReadingUnits": "Percent"}]
    tiny.tree["/redfish/v1/T"] = {"Fans": [*fans, {"MemberId": "1", "Reading": 9000, "ReadingUnits": "RPM"}]}
    tree = read(tiny, ca_file)["fan"]
    assert tree["0"]["rpm"] == {"unsupported": "the BMC gives Fan 1 in Percent, not in rpm"}
    assert tree["0"]["health"] == {"value": "OK"}
    assert tree["1"]["rpm"] == {"value": 9000}


def test_sensors_and_the_older_schema_complete_each_other(tiny: Any, ca_file: Path) -> None:
    """Gigabyte's Sensors hold the power alone; bmcweb shows each sensor in both, with names spelled differently."""
    box = tiny.tree[BOX]
    del box["ThermalSubsystem"], box["PowerSubsystem"]
    put_sensors(
        tiny,
        {"Name": "Meter", "ReadingType": "Power", "Reading": 196},
        {"Id": "CPU1Temp", "Name": "CPU1 SOC", "ReadingType": "Temperature", "Reading": 50},
    )
    box["Thermal"], box["Power"] = {"@odata.id": "/redfish/v1/T"}, {"@odata.id": "/redfish/v1/P"}
    heats = [("CPU1_SOC Temperature", 51), ("CPU10 SOC", 41), ("DIMM", 33)]
    tiny.tree["/redfish/v1/T"] = {
        "Temperatures": [
            {"MemberId": str(place), "Name": name, "ReadingCelsius": heat} for place, (name, heat) in enumerate(heats)
        ]
    }
    tiny.tree["/redfish/v1/P"] = {"PowerSupplies": [], "Voltages": [{"Name": "12V", "ReadingVolts": 12.1}]}
    sensor = read(tiny, ca_file)["sensor"]
    assert sensor["power"]["S0"]["w"] == {"value": 196}
    assert {name: leaf["c"]["value"] for name, leaf in sensor["temperature"].items()} == {
        "CPU1Temp": 50,
        "CPU10 SOC": 41,
        "DIMM": 33,
    }
    assert sensor["voltage"] == {"12V": {"v": {"value": 12.1}}}


def test_an_empty_newer_schema_hides_no_fans_of_the_older_one(tiny: Any, ca_file: Path) -> None:
    tiny.tree[f"{BOX}/ThermalSubsystem/Fans"]["Members"] = []
    tiny.tree[BOX]["Thermal"] = {"@odata.id": "/redfish/v1/T"}
    tiny.tree["/redfish/v1/T"] = {"Fans": [{"MemberId": "3", "Reading": 7000}]}
    assert read(tiny, ca_file)["fan"]["3"]["rpm"] == {"value": 7000}


def test_a_bmc_with_sensors_alone_shows_fans_and_inlet(tiny: Any, ca_file: Path) -> None:
    del tiny.tree[BOX]["ThermalSubsystem"], tiny.tree[BOX]["PowerSubsystem"]
    put_sensors(
        tiny,
        {"ReadingType": "Rotational", "ReadingUnits": "RPM", "Reading": 8100, "Status": {"Health": "OK"}},
        {"ReadingType": "Temperature", "PhysicalContext": "Intake", "Reading": 22, "ReadingUnits": "Cel"},
    )
    tree = read(tiny, ca_file)
    assert tree["fan"] == {"0": {"health": {"value": "OK"}, "rpm": {"value": 8100}}}
    assert tree["sensor"]["inlet_c"] == {"value": 22}
    assert "unsupported" in tree["psu"]


@pytest.mark.parametrize("how", ["Contains", "ComputerSystems"])
def test_the_parts_of_a_child_chassis_are_the_nodes(tiny: Any, ca_file: Path, how: str) -> None:
    """Intel's chassis holds nothing; its card, which names the system, holds fans, supplies and sensors."""
    card = "/redfish/v1/Chassis/Box/Card"
    parts = {name: tiny.tree[BOX].pop(name) for name in ("PowerSubsystem", "ThermalSubsystem")}
    tiny.tree[card] = {"@odata.id": card, "Id": "Card", "ChassisType": "Card", **parts}
    tiny.tree[card]["Sensors"] = {"@odata.id": f"{card}/Sensors"}
    heat = {"@odata.id": "/s", "Id": "H", "ReadingType": "Temperature", "Reading": 30}
    tiny.tree[f"{card}/Sensors"] = {"Members": [heat]}
    tiny.tree["/redfish/v1/Chassis"] = {"Members": [{"@odata.id": BOX}, {"@odata.id": card}]}
    if how == "Contains":
        tiny.tree[BOX]["Links"] = {"Contains": [{"@odata.id": card}]}
    else:
        tiny.tree[card]["Links"] = {"ComputerSystems": [{"@odata.id": "/redfish/v1/Systems/Host"}]}
    tree = read(tiny, ca_file)
    assert sorted(tree["psu"]) == ["0", "1", "2"]
    assert len(tree["fan"]) == 2
    assert tree["sensor"]["temperature"]["H"]["c"] == {"value": 30}


@pytest.mark.parametrize(
    ("one", "other", "are_alike"),
    [
        (("16", "NVIDIA A40"), ("19", "NVIDIA A40"), True),
        (("16", "NVIDIA A40"), ("20", "NVIDIA A100"), False),
        (("1", "iLO 5"), ("2", "System ROM"), False),
        (("FPGA0", "nFPGA"), ("FPGA1", "mFPGA0"), False),
        (("GPU0", "GPU 0 VBIOS"), ("GPU1", "GPU 1 VBIOS"), True),
        (("HGX_FW_GPU_SXM_1", "Software Inventory"), ("HGX_FW_GPU_SXM_2", "Software Inventory"), True),
        (("12345678", "Software Inventory"), ("87654321", "Software Inventory"), False),
        (("27", ""), ("28", ""), False),
        (("NIC1", "NIC1"), ("NIC2", "NIC2"), True),
    ],
)
def test_parts_are_alike_by_what_the_bmc_calls_them(
    one: tuple[str, str], other: tuple[str, str], are_alike: bool
) -> None:
    kinds = {name_kind(ident, {"Id": ident, "Name": name}) for ident, name in (one, other)}
    assert (len(kinds) == 1) == are_alike


def test_a_software_id_tells_parts_of_one_name_apart() -> None:
    assert name_kind("PSU1", {"Name": "PSU", "SoftwareId": "a"}) != name_kind(
        "PSU2", {"Name": "PSU", "SoftwareId": "b"}
    )
