"""What OpenSM's routing engines do on simulated fabrics: routes of trees are well, those around a ring can block."""

import re

import pytest
from fat_trees import fat_tree
from partners import AVAILABLE, WHY_NOT, Partners

from assay.fabric.health.routing_check import check_routing
from assay.fabric.health.subnet_manager import parse_sminfo
from assay.fabric.readers.format_detection import read_topology
from assay.fabric.readers.forwarding_tables import read_forwarding_tables
from assay.fabric.readers.lid_addresses import read_addresses
from assay.fabric.topology.compiled_topology import CableTable, CompiledTopology
from assay.fabric.topology.designed_device import DesignedDevice

pytestmark = [pytest.mark.skipif(not AVAILABLE, reason=WHY_NOT), pytest.mark.slow]


def ring(switches=5):
    """Switches in a ring, two nodes at each. With five, the shortest ways around depend on each other in a circle."""
    links = CableTable()
    devices = [DesignedDevice(f"0xb{16 * n:015x}", f"s{n}", "switch", 8, "r1", n + 1) for n in range(switches)]
    for n in range(switches):
        links.add([n], [1], [(n + 1) % switches], [2])
        for k in range(2):
            number = len(devices)
            guid, node = f"0xa{16 * number:015x}", f"h{n}{k}"
            devices.append(DesignedDevice(guid, f"{node} mlx5_0", "hca", 1, "r2", 1, "", node))
            links.add([number], [1], [n], [3 + k])
    links.set_rate_and_length("4xHDR", 1)
    return CompiledTopology("ring", devices, links)


def routed(plan, engine, home, *arguments):
    """The report on the routes that OpenSM made, and the subnet manager that answers."""
    running = Partners(plan, home, patience=90)
    try:
        running.manage(engine, *arguments)
        text = running.ask("ibnetdiscover")[0]
        tables = read_forwarding_tables(running.ask("dump_fts")[0])
        manager = parse_sminfo(running.ask("sminfo")[0])
    finally:
        running.end()
    return check_routing(read_topology(text), tables, read_addresses(text)), manager


@pytest.mark.parametrize("engine", ["minhop", "updn", "ftree"])
def test_routes_of_a_tree_reach_everything_and_cannot_block(engine, tmp_path):
    plan = fat_tree(units=2, nodes=8, rails=4, spines=4, pair=2, rate="4xHDR")
    report, manager = routed(plan, engine, tmp_path)
    assert (report.destinations, report.unreachable, report.credit_loop, report.unread) == (64, (), (), ())
    assert manager is not None
    assert manager.master


def test_shortest_routes_around_a_ring_can_block_and_up_down_routes_cannot(tmp_path):
    (tmp_path / "roots").write_text("0xb000000000000000\n")  # up/down needs a root, which a ring has not by itself
    for engine, arguments, blocks in (("minhop", (), True), ("updn", ("-a", str(tmp_path / "roots")), False)):
        (tmp_path / engine).mkdir()
        report, _ = routed(ring(), engine, tmp_path / engine, *arguments)
        assert report.unreachable == ()
        assert bool(report.credit_loop) == blocks, engine


def test_an_adapter_whose_route_was_lost_is_found(tmp_path):
    plan = fat_tree(units=1, nodes=4, rails=2, spines=2, pair=1, rate="4xHDR")
    running = Partners(plan, tmp_path, patience=60)
    try:
        running.manage()
        text, tables = running.ask("ibnetdiscover")[0], running.ask("dump_fts")[0]
    finally:
        running.end()
    gone = re.search(r"(?m)^0x\w+ 00[1-9] : \(Channel Adapter portguid (0x\w+): .*\n", tables)
    report = check_routing(
        read_topology(text), read_forwarding_tables(tables.replace(gone[0], "", 1)), read_addresses(text)
    )
    assert [one.guid for one in report.unreachable] == [gone[1]]
