"""Overrides, spares, splits, rates and lengths: what a design says beside its rules is in every cable that it gives."""

import pytest

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.model.errors import AssayError
from assay.model.specs.fabric.cable import PortId, PortLabelling

HCA, LEAF, SPINE = "0x000000000000a000", "0x0000000000005002", "0x0000000000006000"
BROKEN = {"device": "leaf-1-2", "port": 3, "to": {"device": "leaf-1-2", "port": 40}, "why": "port 3 is broken"}


@pytest.fixture
def compiled(make_design, fleet):
    return lambda **changes: compile_topology(make_design(**changes), fleet)


def cables(one):
    return {frozenset(end.port_id for end in cable.ends) for cable in one.cables}


def test_an_override_moves_one_plug_and_nothing_else(compiled, small):
    moved = compiled(overrides=[BROKEN])
    cable = moved.cables_of_node("n03")[-1]
    assert (str(cable.a), str(cable.b)) == ("n03 mlx5_2 port R2 (r01 U24)", "leaf-1-2 port 20/2 (r09 U12)")
    assert len(cables(small) - cables(moved)) == len(cables(moved) - cables(small)) == 1


def test_an_override_may_change_rate_and_length_of_its_cable(compiled):
    cable = compiled(overrides=[BROKEN | {"rate": "4xHDR", "length_m": 7}]).cable_at(PortId(LEAF, 40))
    assert (cable.rate, cable.length_m) == ("4xHDR", 7)


def test_both_plugs_of_a_cable_may_be_elsewhere(compiled):
    up = {"device": "leaf-1-2", "port": 9, "to": {"device": "leaf-1-2", "port": 41}}
    far = {"device": "spine-1", "port": 9, "to": {"device": "spine-1", "port": 50}}
    cable = compiled(overrides=[up, far]).cable_at(PortId(LEAF, 41))
    assert cable.b.port_id == PortId(SPINE, 50)


def test_two_plugs_may_have_changed_places(compiled, small):
    one = {"device": "leaf-1-2", "port": 3, "to": {"device": "leaf-1-2", "port": 4}}
    other = {"device": "leaf-1-2", "port": 4, "to": {"device": "leaf-1-2", "port": 3}}
    changed = compiled(overrides=[one, other])
    assert changed.cable_at(PortId(LEAF, 4)).b.node == "n03"
    assert len(changed.cables) == len(small.cables)


def test_a_cable_may_be_taken_out_and_another_laid(compiled, small):
    out = {"device": "leaf-1-2", "port": 9}
    assert len(compiled(overrides=[out]).cables) == len(small.cables) - 1
    laid = compiled(overrides=[out], cables=["leaf-1-3/33 - spine-1/9 4xNDR 2.5m"])
    cable = laid.cable_at(PortId(SPINE, 9))
    assert (cable.b.device, cable.b.port, cable.length_m) == ("leaf-1-3", 33, 2.5)


def test_a_design_with_overrides_is_compared_as_any_other(compiled):
    moved = compiled(overrides=[BROKEN, {"device": "leaf-1-2", "port": 9}])
    devices = {g: DiscoveredDevice(g, one.kind, one.ports, one.description) for g, one in moved.devices.items()}
    found = FabricDiscovery([DiscoveredCable(c.a.port_id, c.b.port_id, c.rate) for c in moved.cables], devices)
    assert compare_cabling(moved, found).verdict == "match"


def test_what_is_spare_is_known_and_has_no_cable(compiled):
    switch = {"guid": "0x0000000000009999", "name": "leaf-spare", "rack": "r09", "u": 30}
    kept = compiled(
        devices=[switch], spares=[{"device": "leaf-1-0", "ports": "7..8"}, {"device": "leaf-spare"}]
    )  # fmt: skip
    assert PortId("0x0000000000005000", 8) in kept.spare
    assert len(kept.spare) == 2 + 64
    assert str(kept.end(PortId(switch["guid"], 33))) == "leaf-spare port 17/1 (r09 U30)"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"overrides": [BROKEN | {"port": 7}]}, "the rules have no cable at port 7 of leaf-1-2"),
        ({"overrides": [BROKEN | {"device": "leaf-9"}]}, "there is no device leaf-9"),
        ({"overrides": [BROKEN | {"to": {"device": "leaf-1-2", "port": 65}}]}, "leaf-1-2 has no port 65"),
        ({"overrides": [BROKEN | {"to": {"device": "leaf-1-2", "port": 4}}]}, r"leaf-1-2 port 2/2 .* has two cables"),
        ({"spares": [{"device": "leaf-1-2", "ports": "3..3"}]}, r"leaf-1-2 port 2/1 .* has two cables"),
        ({"spares": [{"device": "leaf-9"}]}, "there is no device leaf-9"),
        ({"devices": [{"guid": HCA, "name": "other"}]}, f"other has the GUID {HCA} of n01 mlx5_0"),
    ],
)
def test_what_leads_nowhere_is_named(compiled, changes, says):
    with pytest.raises(AssayError, match=says):
        compiled(**changes)


def test_tiers_may_have_rates_and_lengths_of_their_own(compiled):
    one = compiled(rates={"node_leaf": "2xNDR"}, lengths={"node_leaf": 3, "leaf_spine": 30})
    kinds = {(bool(c.a.node), c.rate, c.length_m) for c in one.cables}
    assert kinds == {(True, "2xNDR", 3), (False, "4xNDR", 30)}


def test_a_split_port_reads_cage_port_part(compiled):
    """A QM9700 of which every port is split in two: 128 ports of half the width."""
    switch = {"product": "MQM9700", "ports": 64, "labels": "cage/port", "split": 2}
    leaves = [{"guid": f"0x{0x5000 + rail:016x}", "rack": "r09", "u": 10 + rail} for rail in range(4)]
    rules = {"name": "leaf-{unit}-{rail}", "down": "1..8", "up": "121..128", "at": leaves}
    one = compiled(switch=switch, leaves=rules, rates={"node_leaf": "2xNDR"})
    assert [one.devices[LEAF].label(port) for port in (1, 2, 3, 5, 128)] == [
        "1/1/1",
        "1/1/2",
        "1/2/1",
        "2/1/1",
        "32/2/2",
    ]
    assert one.devices[LEAF].ports == 128


@pytest.mark.parametrize(
    ("labels", "port", "together"),
    [(PortLabelling(2), 34, range(33, 35)), (PortLabelling(2, 2), 6, range(5, 9)), (PortLabelling(), 34, range(34, 35)),
     (PortLabelling(0, 2), 34, range(33, 35))],
)  # fmt: skip
def test_ports_of_one_cage_go_down_together(labels, port, together):
    assert labels.ports_sharing_cage(port) == together
