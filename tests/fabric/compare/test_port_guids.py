"""Files that name adapters by the GUIDs of their ports: those of the devices themselves, or beside them."""

from dataclasses import replace

import pytest

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.device_names import resolve_designed_adapters
from assay.fabric.design.compiled_topology import CableTable, CompiledTopology
from assay.fabric.design.devices import DesignedDevice
from assay.fabric.discovery import DiscoveredDevice
from assay.fabric.readers.format_detection import read_topology
from assay.model.specs.fabric.cable import PortId
from tests.fabric.compare.test_any_mix import applied
from tests.fabric.random_mixes import RandomMix
from tests.support.fabrics.fat_trees import RATE, as_built, fat_tree, in_reach, renamed


def shift(seen):
    """The discovery as ibsim and ConnectX-3 show it: each adapter's port as a device with a GUID of its own."""
    hca = {guid for guid, device in seen.devices.items() if device.kind == "hca"}

    def move(port):
        apart = 1 if port.guid.startswith("0xa") else 1 << 20  # new devices have GUIDs without gaps in random mixes
        return PortId(f"0x{int(port.guid, 16) + apart * port.number:016x}", port.number) if port.guid in hca else port

    devices = {guid: device for guid, device in seen.devices.items() if guid not in hca}
    for port in sorted({port for cable in seen.cables for port in cable[:2] if port.guid in hca}):
        device = seen.devices[port.guid]
        devices[move(port).guid] = device._replace(guid=move(port).guid, ports=port.number)
    cables = [cable._replace(a=move(cable.a), b=move(cable.b)) for cable in seen.cables]
    return replace(seen, cables=cables, devices=devices, port_guids=True)


def edges(discovery):
    return {frozenset(cable[:2]): cable.rate for cable in discovery.cables}


def kinds(plan, seen):
    return [one.kind for one in compare_cabling(plan, seen).discrepancies]


def test_ports_beside_the_devices_are_those_devices():
    plan = fat_tree()
    assert kinds(plan, shift(in_reach(plan, as_built(plan)))) == []


def test_what_befalls_such_a_fabric_is_told_as_in_any_other():
    for seed in range(60):
        mix = RandomMix(seed)
        if mix.cables:
            seen = shift(mix.seen())
            read = resolve_designed_adapters(mix.plan, seen)
            assert applied(mix.plan, compare_cabling(mix.plan, seen)) == edges(read), f"seed {seed}: {mix.done}"


def test_guids_of_devices_stay_whatever_befalls_the_fabric():
    for seed in range(60):
        mix = RandomMix(seed)
        if mix.cables:
            seen = replace(mix.seen(), port_guids=True)
            assert edges(resolve_designed_adapters(mix.plan, seen)) == edges(seen), f"seed {seed}: {mix.done}"


@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize("new", [1, 2, 9])
def test_a_replaced_adapter_is_told_even_if_its_guid_is_the_next(new, shifted):
    plan = fat_tree()
    old = next(device.guid for device in plan if device.kind == "hca")
    guid = f"0x{int(old, 16) + new:016x}"
    card = DiscoveredDevice(guid, "hca", 1, plan.devices[old].description)
    seen = replace(in_reach(plan, renamed(as_built(plan), {old: guid}), [card]), port_guids=True)
    assert kinds(plan, shift(seen) if shifted else seen) == ["device-replaced"]


def test_cards_of_two_generations_are_told_apart_by_the_driver_that_they_announce():
    plan = fat_tree()
    seen = in_reach(plan, as_built(plan))
    called = {
        guid: device._replace(description=device.description.replace("mlx5", "mlx4"))
        for guid, device in seen.devices.items()
        if device.description.startswith("n000")
    }
    mixed = replace(seen, devices=seen.devices | called)
    old = {f"0x{int(guid, 16) + 1:016x}": device for guid, device in called.items()}
    there = {device.guid: guid for guid, device in old.items()}
    devices = {guid: device for guid, device in mixed.devices.items() if guid not in called}
    devices |= {guid: device._replace(guid=guid) for guid, device in old.items()}
    assert kinds(plan, replace(mixed, cables=renamed(seen.cables, there), devices=devices, port_guids=True)) == []


def two_ports() -> CompiledTopology:
    """Four nodes, each with one adapter whose two ports lead to two switches. GUIDs are as close as they can be."""
    cards = [
        DesignedDevice(f"0x{0xA00 + 3 * n:016x}", f"n{n} mlx4_0", "hca", 2, "r1", n, "", f"n{n}") for n in range(4)
    ]
    leaves = [DesignedDevice(f"0x{0xB00 + n:016x}", f"leaf-{n}", "switch", 36, "r2", n, "") for n in range(2)]
    links = CableTable()
    for n in range(4):
        links.add([n, n], [1, 2], [4, 5], [n + 1, n + 1])
    links.add([4], [9], [5], [9])
    links.set_rate_and_length(RATE, 5)
    return CompiledTopology("two", [*cards, *leaves], links)


PORTS = "".join(
    f"CA {port} {port} 0x{0xA00 + 3 * n + port:016x} 4x NDR - SW 9 {n + 1} 0x{0xB00 + port - 1:016x}"
    f" ( 'n{n} mlx4_0' - 'leaf-{port - 1}' )\n"
    f"SW 9 {n + 1} 0x{0xB00 + port - 1:016x} 4x NDR - CA {port} {port} 0x{0xA00 + 3 * n + port:016x}"
    f" ( 'leaf-{port - 1}' - 'n{n} mlx4_0' )\n"
    for port in (1, 2)
    for n in range(4)
)
TRUNK = "".join(
    f"SW 9 {port} 0x{0xB00 + a:016x} 4x NDR - SW 9 {port} 0x{0xB00 + 1 - a:016x} ( 'leaf-{a}' - 'leaf-{1 - a}' )\n"
    if port == 9
    else f"SW 9 {port} 0x{0xB00 + a:016x} 4x SDR                                    'leaf-{a}'\n"
    for a in (0, 1)
    for port in range(5, 10)
)


def test_both_ports_of_an_adapter_are_that_adapter():
    plan = two_ports()
    seen = read_topology(PORTS + TRUNK)
    assert (kinds(plan, seen), seen.problems) == ([], ())
    found = resolve_designed_adapters(plan, seen)
    assert {guid: found.devices[guid].ports for guid in plan.devices if plan.devices[guid].kind == "hca"} == {
        device.guid: 2 for device in plan if device.kind == "hca"
    }


def test_a_line_that_cannot_be_read_puts_the_adapter_in_doubt_not_its_port():
    garbled = [*PORTS.splitlines(), *TRUNK.splitlines()]
    garbled[2] = garbled[2][:20]
    plan = two_ports()
    comparison = compare_cabling(plan, read_topology("\n".join(garbled)))
    assert comparison.verdict == "partial"
    assert comparison.discrepancies == ()


def test_only_formats_with_the_guids_of_ports_are_read_so():
    plan = fat_tree()
    shifted = shift(in_reach(plan, as_built(plan)))
    assert set(kinds(plan, replace(shifted, port_guids=False))) == {"device-replaced"}
