"""Cables that a design lists one by one are compiled, compared and ticketed like those of its rules."""

import pytest

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.model.errors import AssayError
from assay.model.specs.fabric.cable import PortId

STORAGE = {"device": "storage-sw1", "guid": "0x" + "9" * 16, "rack": "r20", "u": 7}
CABLE = {"a": {"device": "leaf-1-0", "port": 33}, "b": STORAGE | {"port": 1}, "length_m": 20}


def found(compiled):
    devices = {
        one.guid: DiscoveredDevice(one.guid, one.kind, one.ports, one.description) for one in compiled.devices.values()
    }
    return FabricDiscovery(
        [DiscoveredCable(cable.a.port_id, cable.b.port_id, cable.rate) for cable in compiled.cables], devices
    )


@pytest.fixture
def with_cables(make_design, fleet):
    def compiled(*cables):
        return compile_topology(make_design(cables=list(cables)), fleet)

    return compiled


def test_a_listed_cable_comes_after_those_of_the_rules(with_cables, small):
    compiled = with_cables(CABLE)
    assert compiled.cables[:-1] == small.cables
    cable = compiled.cables[-1]
    assert str(cable.a) == "leaf-1-0 port 17/1 (r09 U10)"
    assert str(cable.b) == "storage-sw1 port 1 (r20 U7)"
    assert (cable.rate, cable.length_m) == ("4xNDR", 20)


def test_a_listed_cable_may_have_a_rate_of_its_own(with_cables):
    assert with_cables(CABLE | {"rate": "2xNDR"}).cables[-1].rate == "2xNDR"


def test_a_device_of_its_own_has_as_many_ports_as_are_named(with_cables):
    more = {"a": {"device": "leaf-1-1", "port": 33}, "b": STORAGE | {"port": 40}}
    compiled = with_cables(CABLE, more)
    device = compiled.devices[STORAGE["guid"]]
    assert (device.name, device.kind, device.ports, device.description) == ("storage-sw1", "switch", 40, "storage-sw1")
    named = {"a": {"device": "leaf-1-1", "port": 33}, "b": {"device": "storage-sw1", "port": 41}}
    assert with_cables(CABLE, named).devices[STORAGE["guid"]].ports == 41
    assert with_cables(named, CABLE).devices[STORAGE["guid"]].ports == 41


def test_an_end_may_name_a_node_s_adapter(make_design, make_fleet):
    design = make_design(
        nodes=["n01..n05"], cables=[{"a": {"device": "n06 mlx5_2", "port": 1}, "b": {"device": "leaf-1-2", "port": 33}}]
    )
    cable = compile_topology(design, make_fleet(design)).cables[-1]
    assert (cable.a.node, cable.a.label, cable.b.device) == ("n06", "R2", "leaf-1-2")


def test_a_fabric_with_its_listed_cables_matches(with_cables):
    compiled = with_cables(CABLE | {"rate": "2xNDR"})
    assert compare_cabling(compiled, found(compiled)).verdict == "match"


def test_a_listed_cable_that_is_missing_is_a_ticket_at_its_place(with_cables):
    compiled = with_cables(CABLE | {"rate": "2xNDR"})
    seen = found(compiled)
    comparison = compare_cabling(compiled, FabricDiscovery(seen.cables[:-1], seen.devices))
    (one,) = comparison.discrepancies
    assert one.kind == "missing"
    assert one.cables[0].expected.rate == "2xNDR"
    (ticket,) = make_cabling_tickets(comparison)
    assert "storage-sw1" in str(ticket)
    assert "r20" in str(ticket)


def test_a_listed_cable_that_is_in_another_port_is_moved(with_cables):
    compiled = with_cables(CABLE)
    seen = found(compiled)
    moved = seen.cables[-1]._replace(a=PortId(seen.cables[-1].a.guid, 34))
    (one,) = compare_cabling(compiled, FabricDiscovery([*seen.cables[:-1], moved], seen.devices)).discrepancies
    assert one.kind == "moved"


@pytest.mark.parametrize(
    ("a", "says"),
    [
        ({"device": "leaf-1-9", "port": 33}, "there is no device leaf-1-9"),
        ({"device": "n01 mlx5_9", "port": 1}, "there is no device n01 mlx5_9"),
        ({"device": "leaf-1-0", "port": 65}, "leaf-1-0 has no port 65"),
        ({"device": "leaf-1-0", "port": 9}, r"leaf-1-0 port 5/1 \(r09 U10\) has two cables"),
        ({"device": "n01 mlx5_0", "port": 1}, "n01 mlx5_0 port R0 .* has two cables"),
    ],
)
def test_an_end_that_cannot_be_is_named(with_cables, a, says):
    with pytest.raises(AssayError, match=says) as trouble:
        with_cables(CABLE | {"a": a})
    assert trouble.value.fix
