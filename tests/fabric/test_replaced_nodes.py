"""A node that another one stands for is gone, and costs what it costs when it is off. What is new has its own name."""

from itertools import pairwise

import pytest
from fat_trees import as_built, fat_tree, in_reach, renamed
from hypothesis import given
from hypothesis import strategies as st

from assay.fabric.comparison.compare import compare_cabling
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice
from assay.model.fabric.ports_and_cables import PortId

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
    first, *others = found.as_json()["faults"]
    assert (first["severity"], first["gbps"], first["nodes"]) == ("degraded", RAILS * 400, [nodes[-1]])
    assert [fault["gbps"] for fault in others] == [0] * with_new
    told = [one for one in found.discrepancies if "gpu98" in one.summary]
    assert len(told) == with_new
    for one in told:
        assert f"{nodes[0]} itself is in the place of {nodes[1]}" in one.summary
        assert all(device.guid in one.summary for device in new)
        assert not any("write" in step for step in one.steps)


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
    faults = compare_cabling(plan, in_reach(plan, cables, new)).as_json()["faults"]
    return sorted((fault["title"] if len(fault["members"]) > 1 else "", len(fault["members"])) for fault in faults)


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
