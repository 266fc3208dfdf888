"""A node that another one stands for is gone, and costs what it costs when it is off. What is new has its own name."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.model.specs.fabric.cable import PortId
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach, renamed

RAILS = 3


def adapters(plan, node):
    return [device.guid for device in plan if device.node == node]


def chain(plan, nodes, with_new):
    """The first node in the second's place, and so on; the last is gone. A new node in the first's place, or none."""
    own = [adapters(plan, node) for node in nodes]
    moves = dict(pair for a, b in pairwise(own) for pair in zip(b, a, strict=True))
    cables = [cable for cable in as_built(plan) if with_new or not {port.guid for port in cable[:2]} & {*own[0]}]
    new = [DiscoveredDevice(f"0xe{guid[3:]}", "hca", 1, f"gpu98 mlx5_{rail}") for rail, guid in enumerate(own[0])]
    moves |= {guid: device.guid for guid, device in zip(own[0], new, strict=True)}
    return compare_cabling(plan, in_reach(plan, renamed(cables, moves), new)), new


@given(st.permutations([f"n0{number:02}" for number in range(6)]), st.integers(2, 4), st.booleans())
def test_a_node_that_another_stands_for_costs_its_bandwidth(order, many, with_new):
    plan = fat_tree()
    nodes = order[:many]
    found, new = chain(plan, nodes, with_new)
    (fault,) = found.list_faults()
    assert (fault.severity, fault.gbps, fault.nodes) == ("degraded", RAILS * 400, [nodes[-1]])
    (one,) = found.discrepancies
    assert f"{nodes[0]} is cabled in the place of {nodes[1]}" in one.summary
    assert ("gpu98" in one.summary) == with_new
    assert not with_new or all(device.guid in one.summary for device in new)


@st.composite
def repairs(draw):
    """One piece of work on nodes: what was moved where, by GUID, and the cables that are gone with it."""
    plan = fat_tree(units=2, nodes=4, rails=draw(st.integers(2, 5)), spines=2, pair=2)
    nodes = draw(st.permutations(sorted({device.node for device in plan if device.node})))[: draw(st.integers(2, 4))]
    own = [adapters(plan, node) for node in nodes]
    deed = draw(st.sampled_from(["exchange", "exchange some adapters", "chain", "chain and a new node"]))
    if deed == "exchange some adapters":
        rails = draw(st.sets(st.sampled_from(range(len(own[0]))), min_size=min(2, len(own[0]))))
        return plan, nodes[:2], {own[at][rail]: own[1 - at][rail] for at in (0, 1) for rail in rails}, []
    moves = dict(pair for a, b in pairwise(own) for pair in zip(b, a, strict=True))
    new = [f"0xe{guid[3:]}" for guid in own[0]] if deed == "chain and a new node" else []
    moves |= dict(zip(own[0], own[-1] if deed == "exchange" else new or own[0], strict=True))
    standing = [guid for guid, now in moves.items() if now not in (guid, *new)] if len(own[0]) > 2 else []
    for guid in draw(st.lists(st.sampled_from(standing), max_size=1)) if standing else []:
        moves[guid] = f"0xe{guid[3:]}"  # this adapter was replaced on the way
    gone = own[0] if deed == "chain" else []
    return plan, nodes, moves, gone


@given(repairs())
def test_one_piece_of_work_on_nodes_is_one_fault_that_names_them_and_all_of_their_plugs(repair):
    plan, nodes, moves, gone = repair
    cables = [cable for cable in as_built(plan) if not {port.guid for port in cable[:2]} & {*gone}]
    new = [DiscoveredDevice(guid, "hca", 1, "MT4129") for guid in moves.values() if guid.startswith("0xe")]
    found = compare_cabling(plan, in_reach(plan, renamed(cables, moves), new))
    (fault,) = found.list_faults()
    members = [found.discrepancies[at] for at in fault.members]
    assert {node for one in members for node in one.nodes} == {*nodes}
    plugs = {end.guid for one in members for pair in one.cables if pair.expected for end in pair.expected.ends}
    assert {guid for guid, now in moves.items() if now != guid} | {*gone} <= plugs


def test_nodes_that_moved_on_to_free_ports_are_one_fault():
    plan = fat_tree()
    cables = as_built(plan)
    for node, port in (("n001", 40), ("n000", 2)):
        own = adapters(plan, node)
        cables = [one._replace(b=PortId(one.b.guid, port)) if one.a.guid in own else one for one in cables]
    (fault,) = compare_cabling(plan, in_reach(plan, cables)).list_faults()
    assert fault.title == "Nodes in other ports: n000 and n001, 6 plugs"


def test_a_new_node_in_the_place_of_one_that_is_gone_is_told_by_its_name():
    plan = fat_tree()
    found, new = chain(plan, ["n003"], with_new=True)
    (one,) = found.discrepancies
    assert (one.device, len(new)) == ("n003", RAILS)
    assert one.summary.endswith("; they call themselves gpu98: another node may stand there")


def test_a_node_whose_adapters_are_new_keeps_its_name():
    plan = fat_tree()
    own = adapters(plan, "n003")
    new = [DiscoveredDevice(f"0xe{guid[3:]}", "hca", 1, f"N003 HCA-{rail}") for rail, guid in enumerate(own, start=1)]
    moves = dict(zip(own, [device.guid for device in new], strict=True))
    (one,) = compare_cabling(plan, in_reach(plan, renamed(as_built(plan), moves), new)).discrepancies
    assert "all adapters of n003" in one.summary
    assert "call themselves" not in one.summary


def added(plan, *names):
    """The faults with new adapters of these names, each in a free port of a leaf."""
    cables = as_built(plan)
    new = [DiscoveredDevice(f"0xf{number:015x}", "hca", 1, name) for number, name in enumerate(names)]
    leaf = next(device.guid for device in plan if device.name == "leaf-0-0")
    cables += [DiscoveredCable(PortId(one.guid, 1), PortId(leaf, 40 + n), "4xNDR") for n, one in enumerate(new)]
    faults = compare_cabling(plan, in_reach(plan, cables, new)).list_faults()
    return sorted((fault.title if len(fault.members) > 1 else "", len(fault.members)) for fault in faults)


@pytest.mark.parametrize("form", ["{} mlx5_{}", "{} HCA-{}", "{}:ibp{}s0", "{}-ib{}", "rack4.{}.ib{}"])
def test_the_adapters_of_a_new_node_are_one_fault(form):
    two = [form.format(host, slot) for host in ("gpu98", "gpu99") for slot in range(3)]
    host = form.partition("{}")[0]
    title = f"Node that is not in the design: {host}gpu9%d, 3 adapters"
    assert added(fat_tree(), *two) == [(title % 8, 3), (title % 9, 3)]


@pytest.mark.parametrize(
    "names",
    [
        ("stor-01", "stor-02"), ("MT4129 ConnectX7 Mellanox Technologies",) * 2, ("n1 mlx5_0", "n1 mlx5_0"),
        ("localhost HCA-1", "localhost HCA-2"), ("gpu98 mlx5_0", "gpu99 mlx5_0"),
    ],
)  # fmt: skip
def test_adapters_that_name_no_common_host_are_a_fault_each(names):
    assert added(fat_tree(), *names) == [("", 1), ("", 1)]
