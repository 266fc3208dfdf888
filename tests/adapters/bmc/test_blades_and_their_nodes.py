"""The BMC of a blade serves several nodes: what is read and ordered is one node's own, or nothing is."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from assay.adapters.bmc.client import open_bmc, order_next_boot, write_asset_tag
from assay.model.errors import AssayError
from assay.observe.evidence_collector import read_bmc_channel

ROOT = "/redfish/v1"


@pytest.fixture
def blade(tiny: Any) -> Any:
    """The small BMC as HPE Cray's: systems and chassis are alike by name alone, and link to nothing."""
    nodes = []
    for number, serial in enumerate(("S41", "S42")):
        path = f"{ROOT}/Systems/Node{number}"
        tiny.tree[path] = {
            "@odata.id": path,
            "Id": f"Node{number}",
            "SerialNumber": serial,
            "PowerState": "On",
            "Bios": {"@odata.id": f"{path}/Bios"},
            "Actions": {"#ComputerSystem.Reset": {"target": f"{path}/Actions/ComputerSystem.Reset"}},
            "Processors": {"@odata.id": f"{path}/Processors"},
        }
        cpus = [{"@odata.id": f"/cpu{cpu}", "Id": f"CPU{number}{cpu}", "ProcessorType": "CPU"} for cpu in (0, 1)]
        tiny.tree[f"{path}/Processors"] = {"Members": cpus}
        heat = {"@odata.id": "/s", "Id": "CPU0", "ReadingType": "Temperature", "Reading": 40 + number}
        tiny.tree[f"{ROOT}/Chassis/Node{number}"] = {
            "@odata.id": f"{ROOT}/Chassis/Node{number}",
            "Id": f"Node{number}",
            "ChassisType": "Blade",
            "Sensors": {"@odata.id": f"{ROOT}/Chassis/Node{number}/Sensors"},
        }
        tiny.tree[f"{ROOT}/Chassis/Node{number}/Sensors"] = {"Members": [heat]}
        nodes.append({"@odata.id": path})
    enclosure = {"@odata.id": f"{ROOT}/Chassis/Enclosure"}
    tiny.tree[f"{ROOT}/Chassis/Enclosure"] = {**enclosure, "Id": "Enclosure", "ChassisType": "Enclosure"}
    tiny.tree[f"{ROOT}/Systems"] = {"Members": nodes}
    chassis = [{"@odata.id": f"{ROOT}/Chassis/Node{number}"} for number in (0, 1)]
    tiny.tree[f"{ROOT}/Chassis"] = {"Members": [enclosure, *chassis]}
    return tiny


def accept_resets(tiny: Any) -> list[str]:
    """Let the BMC take every reset; return the list of those that it takes."""
    taken: list[str] = []

    def take(call: BaseHTTPRequestHandler) -> None:
        taken.append(call.path)
        tiny.status(200)(call)

    for path in list(tiny.tree):
        offer = tiny.tree[path].get("Actions", {}).get("#ComputerSystem.Reset") if path.count("/") == 4 else None
        if offer:
            tiny.odd[offer["target"]] = take
    return taken


def orders_of(tiny: Any) -> list[str]:
    return [asked for asked in tiny.asked if asked.startswith(("POST", "PATCH")) and "Sessions" not in asked]


def test_the_serial_number_chooses_the_system_and_its_chassis(blade: Any, ca_file: Path) -> None:
    tree = read_bmc_channel(blade.node(bmc_ca=str(ca_file)), Path(), 60)
    assert tree["system"]["serial"] == {"value": "S42"}
    assert list(tree["processor"]["cpu"]) == ["CPU10", "CPU11"]
    assert tree["sensor"]["temperature"] == {"CPU0": {"c": {"value": 41}}}
    taken = accept_resets(blade)
    with open_bmc(blade.node(bmc_ca=str(ca_file))) as bmc:
        bmc.reset_system("On")
    assert taken == [f"{ROOT}/Systems/Node1/Actions/ComputerSystem.Reset"]


def test_one_serial_number_for_the_whole_blade_needs_the_systems_name(blade: Any, ca_file: Path) -> None:
    blade.tree[f"{ROOT}/Systems/Node0"]["SerialNumber"] = "S42"
    taken = accept_resets(blade)
    tree = read_bmc_channel(blade.node(bmc_ca=str(ca_file)), Path(), 60)
    assert "of Node0, Node1: which is the node's is unknown" in tree["system"]["failed"]
    assert "value" not in tree["sensor"]["temperature"]
    with open_bmc(blade.node(bmc_ca=str(ca_file))) as bmc, pytest.raises(AssayError, match="is unknown") as refused:
        bmc.reset_system("On")
    assert "bmc_system" in refused.value.fix
    assert not orders_of(blade)
    named = blade.node(bmc_ca=str(ca_file), bmc_system="Node0")
    tree = read_bmc_channel(named, Path(), 60)
    assert tree["sensor"]["temperature"]["CPU0"]["c"] == {"value": 40}
    assert tree["system"]["serial"] == {"unsupported": "Node1 has the same serial number"}
    with open_bmc(named) as bmc:
        bmc.reset_system("On")
    assert taken == [f"{ROOT}/Systems/Node0/Actions/ComputerSystem.Reset"]


@pytest.mark.parametrize("system", ["Node7", "node0"])
def test_a_system_that_the_bmc_does_not_have_is_refused(blade: Any, ca_file: Path, system: str) -> None:
    node = blade.node(bmc_ca=str(ca_file), bmc_system=system)
    with open_bmc(node) as bmc, pytest.raises(AssayError, match=f"has no system {system} of Node0, Node1"):
        bmc.reset_system("On")
    assert not orders_of(blade)


@pytest.mark.parametrize("shown", ["S99", "", None])
def test_one_system_that_does_not_show_the_nodes_serial_number_is_read_and_gets_no_order(
    tiny: Any, ca_file: Path, shown: str | None
) -> None:
    host = tiny.tree[f"{ROOT}/Systems/Host"]
    host |= {
        "SerialNumber": shown,
        "Id": "Host",
        "Boot": {},
        "Actions": {"#ComputerSystem.Reset": {"target": "/reset"}},
    }
    node = tiny.node(bmc_ca=str(ca_file))
    assert read_bmc_channel(node, Path(), 60)["system"]["power"] == {"value": "On"}
    with open_bmc(node) as bmc:
        for order in (
            lambda: bmc.reset_system("On"),
            lambda: order_next_boot(bmc, "Pxe"),
            lambda: write_asset_tag(bmc, "x"),
            lambda: bmc.push_firmware(Path(__file__), "multipart"),
        ):
            with pytest.raises(AssayError, match=r"nothing was sent: the BMC's system shows .*, and S42 is declared"):
                order()
    assert not orders_of(tiny)
    with open_bmc(tiny.node(bmc_ca=str(ca_file), bmc_system="Host")) as bmc:
        write_asset_tag(bmc, "x")
    assert orders_of(tiny) == [f"PATCH {ROOT}/Systems/Host"]


def test_an_image_that_could_reach_another_node_is_not_sent(blade: Any, ca_file: Path) -> None:
    blade.tree[f"{ROOT}/UpdateService"]["MultipartHttpPushUri"] = "/push"
    with open_bmc(blade.node(bmc_ca=str(ca_file))) as bmc, pytest.raises(AssayError, match="Node0 of other nodes"):
        bmc.push_firmware(Path(__file__), "multipart")
    assert not orders_of(blade)
