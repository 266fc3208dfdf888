"""What new devices call themselves tells crossed cables from new devices; so do the names of exchanged cards."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.compare.device_names import AnnouncedNames, find_wrong_names
from assay.fabric.compare.tickets import make_cabling_tickets
from assay.fabric.discovery import DiscoveredDevice
from assay.fabric.lazy_discovery import LazyDiscovery
from assay.model.specs.fabric.cable import PortId
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach, renamed

RAILS = 4
SCHEMES = ["{node} mlx5_{rail}", "{node} HCA-{up}", "{node}.cluster mlx5_{down}", "{node}-ib{rail}"]


def tree():
    return fat_tree(units=2, nodes=4, rails=RAILS, spines=2, pair=2)


def adapters(plan, node):
    return [device.guid for device in plan if device.node == node]


def switch(plan, name):
    return next(device.guid for device in plan if device.name == name)


def called(plan, scheme):
    """What each adapter of the fabric announces."""
    return {
        guid: scheme.format(node=device.node, rail=rail, up=rail + 1, down=RAILS - rail)
        for node in sorted({device.node for device in plan if device.node})
        for rail, guid in enumerate(adapters(plan, node))
        for device in [plan.devices[guid]]
    }


def compared(plan, cables, new, said):
    """The comparison of cables at devices some of which have `new` GUIDs; each announces what is `said`."""
    extra = [DiscoveredDevice(guid, plan.devices[old].kind, 64, "new") for old, guid in new.items()]
    seen = in_reach(plan, renamed(cables, new), extra)
    said = said | {guid: said.get(old, plan.devices[old].description) for old, guid in new.items()}
    devices = {g: one._replace(description=said.get(g, one.description)) for g, one in seen.devices.items()}
    return compare_cabling(plan, replace(seen, devices=devices))


def made_new(guids):
    return {guid: f"0xe{number:015x}" for number, guid in enumerate(guids, start=1)}


def turned(cables, one, other):
    """The cables with two ports exchanged."""
    there = {one: other, other: one}
    return [cable._replace(a=there.get(cable.a, cable.a), b=there.get(cable.b, cable.b)) for cable in cables]


def list_costs(comparison):
    """What each fault costs. A device with a new GUID in its place costs nothing."""
    faults = comparison.list_faults()
    return [(one.severity, one.gbps, one.nodes) for one in faults if one.severity != "informational"]


@given(st.sampled_from(SCHEMES), st.permutations(range(RAILS)), st.sets(st.integers(0, RAILS - 1), min_size=1))
def test_crossed_cables_of_new_adapters_cost_what_they_cost_on_old_ones(scheme, order, replaced):
    plan = tree()
    own = adapters(plan, "n003")
    crossed = renamed(as_built(plan), dict(zip(own, [own[at] for at in order], strict=True)))
    said = called(plan, scheme)
    found = compared(plan, crossed, made_new(own[rail] for rail in sorted(replaced)), said)
    assert list_costs(found) == list_costs(compared(plan, crossed, {}, said))
    text = " ".join(one.summary for one in found.discrepancies)
    assert all(guid in text for guid in made_new(own[rail] for rail in replaced).values())


@pytest.mark.parametrize(("one", "other"), [("n000", "n006"), ("leaf-0-1", "leaf-0-6"), ("spine-0-0", "spine-0-1")])
@pytest.mark.parametrize("replaced", [1, 2])
def test_a_new_unit_in_the_place_of_another_is_told_with_it(one, other, replaced):
    plan = tree()
    units = [[device.guid for device in plan if name in (device.node, device.name)] for name in (one, other)]
    pairs = list(zip(*units, strict=True))
    moves = {a: b for pair in pairs for a, b in (pair, pair[::-1])}
    new = made_new(guid for unit in units[:replaced] for guid in unit)
    found = compared(plan, renamed(as_built(plan), moves), new, called(plan, SCHEMES[0]))
    (told,) = found.discrepancies
    assert (told.kind, told.device) == ("device-exchanged", f"{one} and {other}")
    assert all(guid in told.summary for guid in new.values())
    assert told.corrections[0].startswith("exchange the devices")
    assert [fault.severity for fault in found.list_faults()] == ["degraded"]


def test_a_new_node_in_the_slot_of_one_that_is_gone_is_one_fault_with_its_empty_place():
    plan = tree()
    ours, slot = adapters(plan, "n001"), adapters(plan, "n005")
    cables = [cable for cable in as_built(plan) if cable.a.guid not in ours]
    found = compared(
        plan, renamed(cables, dict(zip(slot, ours, strict=True))), made_new(ours), called(plan, SCHEMES[1])
    )
    (told,) = found.discrepancies
    assert told.kind == "device-replaced"
    assert "n001 is cabled in the place of n005" in told.summary
    assert "the place of n001 (r00 U2) is empty" in told.summary
    assert f"n001 is known by its name, and has new GUIDs: {', '.join(made_new(ours).values())}" in told.summary
    assert list_costs(found) == [("degraded", RAILS * 400, ["n005"])]


def test_a_new_adapter_in_another_port_is_one_fault():
    plan = tree()
    own = adapters(plan, "n001")[2]
    free = PortId(switch(plan, "spine-0-1"), 60)
    cables = [cable._replace(b=free) if cable.a.guid == own else cable for cable in as_built(plan)]
    found = compared(plan, cables, made_new([own]), called(plan, SCHEMES[0]))
    (told,) = found.discrepancies
    assert (told.kind, list_costs(found)) == ("moved", [("degraded", 400, ["n001"])])
    assert "n001 mlx5_2 has the new GUID 0xe000000000000001" in told.summary
    assert told.corrections[0].endswith("; then write 0xe000000000000001 into the design")


def test_adapters_that_changed_nodes_are_exchanged_and_no_cable_is():
    plan = tree()
    a, b = adapters(plan, "n000")[1], adapters(plan, "n006")[1]
    said = called(plan, SCHEMES[1])
    found = compared(plan, renamed(as_built(plan), {a: b, b: a}), {}, said | {a: said[b], b: said[a]})
    (told,) = found.discrepancies
    assert (told.kind, told.device) == ("device-exchanged", "n000 mlx5_1 and n006 mlx5_1")
    assert told.corrections[0] == "exchange the GUIDs of n000 mlx5_1 and n006 mlx5_1 in the inventory or the design"
    (ticket,) = make_cabling_tickets(found)
    assert [(place.device, place.rack) for place in ticket.places] == [("n000 mlx5_1", "r00"), ("n006 mlx5_1", "r03")]


@given(st.sets(st.integers(0, RAILS - 1), min_size=1, max_size=RAILS - 1))
def test_several_adapters_that_changed_nodes_are_one_fault(rails):
    plan = tree()
    said, changed = called(plan, SCHEMES[0]), {}
    for rail in rails:
        a, b = adapters(plan, "n000")[rail], adapters(plan, "n006")[rail]
        changed |= {a: b, b: a}
    found = compared(
        plan, renamed(as_built(plan), changed), {}, said | {one: said[two] for one, two in changed.items()}
    )
    (fault,) = found.list_faults()
    assert {one.kind for one in found.discrepancies} == {"device-exchanged"}
    assert (fault.severity, len(fault.members)) == ("degraded", len(rails))


def test_adapters_that_kept_their_nodes_have_exchanged_cables():
    plan = tree()
    a, b = adapters(plan, "n000")[1], adapters(plan, "n006")[1]
    found = compared(plan, renamed(as_built(plan), {a: b, b: a}), {}, called(plan, SCHEMES[1]))
    assert [one.kind for one in found.discrepancies] == ["swap"]


def test_an_adapter_of_a_node_that_is_gone_serves_in_another():
    plan = tree()
    gone, a = adapters(plan, "n000"), adapters(plan, "n006")[1]
    said = called(plan, SCHEMES[0])
    cables = [cable for cable in as_built(plan) if cable.a.guid not in gone]
    found = compared(plan, renamed(cables, {a: gone[1]}), {}, said | {gone[1]: said[a]})
    assert any("n000 mlx5_1 is cabled in the place of n006 mlx5_1" in one.summary for one in found.discrepancies)


MIXED = [(0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 3, 2), (3, 2, 1, 0)]


@given(st.permutations(range(RAILS)), st.booleans())
def test_names_that_nodes_use_in_different_orders_say_nothing(order, whole):
    """Node by node, the same names stand for other rails: what a new node calls its adapters shows no crossing."""
    plan = tree()
    said = {
        guid: f"{node} mlx5_{MIXED[number % 4][rail]}"
        for number, node in enumerate(sorted({device.node for device in plan if device.node}))
        for rail, guid in enumerate(adapters(plan, node))
    }
    own = adapters(plan, "n003")
    said |= {guid: f"n003 mlx5_{order[rail]}" for rail, guid in enumerate(own)}
    found = compared(plan, as_built(plan), made_new(own if whole else own[:2]), said)
    assert [one.kind for one in found.discrepancies] == ["device-replaced"]


def test_a_node_that_lacks_an_adapter_tells_nothing_by_its_names():
    plan = tree()
    own = adapters(plan, "n003")
    devices = {g: DiscoveredDevice(g, d.kind, 1, d.description) for g, d in plan.devices.items() if g != own[0]}
    assert AnnouncedNames(plan, devices).find_claims(own) == {}
    devices[own[0]] = DiscoveredDevice(own[0], "hca", 1, "n003 mlx5_0")
    assert AnnouncedNames(plan, devices).find_claims(own) == {guid: guid for guid in own}


def test_a_name_that_two_devices_announce_is_nobody_s():
    plan = tree()
    one, other = switch(plan, "leaf-0-1"), switch(plan, "leaf-0-2")
    devices = {guid: DiscoveredDevice(guid, "switch", 64, "leaf-0-1") for guid in (one, other)}
    assert AnnouncedNames(plan, devices).find_claims([one, other]) == {}


@pytest.mark.parametrize(("host", "known"), [("n0031", False), ("N003.lab", True), ("n003-b", True), ("xn003", False)])
def test_a_node_is_known_by_its_name_to_the_end_of_a_word(host, known):
    plan = tree()
    own = adapters(plan, "n003")
    devices = {g: DiscoveredDevice(g, d.kind, 1, d.description) for g, d in plan.devices.items() if g not in own}
    said = {g: one._replace(description=one.description.replace(" ", host[4:] + " ")) for g, one in devices.items()}
    new = made_new(own)
    said |= {guid: DiscoveredDevice(guid, "hca", 1, f"{host} mlx5_{rail}") for rail, guid in enumerate(new.values())}
    claims = AnnouncedNames(plan, said).find_claims(new.values())
    assert claims == ({guid: old for old, guid in new.items()} if known else {})


def test_a_node_whose_other_adapters_have_names_of_their_own_order_tells_nothing():
    plan = tree()
    own = adapters(plan, "n003")
    said = called(plan, SCHEMES[0]) | {guid: f"n003 mlx5_{RAILS - 1 - rail}" for rail, guid in enumerate(own)}
    found = compared(plan, as_built(plan), made_new(own[:2]), said)
    assert [one.kind for one in found.discrepancies] == ["device-replaced"]


@given(st.sampled_from(SCHEMES), st.permutations(["n000", "n003", "n006", "n007"]), st.integers(1, 4))
def test_nodes_that_announce_each_other_s_names_are_told(scheme, order, many):
    plan = tree()
    said = called(plan, scheme)
    for node, other in zip(order[:many], [*order[1:many], order[0]], strict=True):
        for one, two in zip(adapters(plan, node), adapters(plan, other), strict=True):
            said[one] = called(plan, scheme)[two]
    found = compared(plan, as_built(plan), {}, said)
    assert [one.kind for one in found.discrepancies] == ["device-exchanged"] * (many > 1)
    assert (found.verdict, found.matching) == ("mismatch" if many > 1 else "match", found.expected)
    for one in found.discrepancies:
        assert one.nodes == tuple(sorted(order[:many]))
        assert [fault.severity for fault in found.list_faults()] == ["degraded"]


def test_a_node_with_the_name_of_another_that_has_it_too_is_noted():
    """Two nodes with one name: both stand as designed, and one of them is called wrongly."""
    plan = tree()
    said = called(plan, SCHEMES[0])
    said |= {one: said[two] for one, two in zip(adapters(plan, "n001"), adapters(plan, "n002"), strict=True)}
    found = compared(plan, as_built(plan), {}, said)
    assert (found.verdict, found.notes) == ("match", ("n001 announces the name n002",))


@given(st.permutations(["n000", "n003", "n006"]))
def test_exchanged_names_are_told_beside_a_third_node_with_one_of_them(order):
    plan, names = tree(), called(tree(), SCHEMES[0])
    said = dict(names)
    for node, other in ((order[0], order[1]), (order[1], order[0]), (order[2], order[1])):
        said |= {one: names[two] for one, two in zip(adapters(plan, node), adapters(plan, other), strict=True)}
    found = compared(plan, as_built(plan), {}, said)
    assert [one.nodes for one in found.discrepancies] == [tuple(sorted(order[:2]))]
    assert found.notes == (f"{order[2]} announces the name {order[1]}",)


def test_nodes_that_are_called_otherwise_than_in_the_design_say_nothing():
    plan = tree()
    said = {guid: f"az-{guid[-4:]} mlx5_0" for guid, device in plan.devices.items() if device.node}
    assert compared(plan, as_built(plan), {}, said).verdict == "match"


def test_a_listing_with_padded_names_is_read_alike():
    plan = tree()
    devices = {g: DiscoveredDevice(g, d.kind, d.ports, d.description) for g, d in plan.devices.items()}
    for one, two in zip(adapters(plan, "n001"), adapters(plan, "n002"), strict=True):
        for here, there in ((one, two), (two, one)):
            devices[here] = devices[here]._replace(description=f"  {plan.devices[there].description}")
    heads = {g[2:]: (d.kind, str(d.ports), d.description, "") for g, d in devices.items()}
    assert find_wrong_names(plan, LazyDiscovery(heads, plan.rows)) == ([("n001", "n002")], {})
