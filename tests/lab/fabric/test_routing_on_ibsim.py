"""What OpenSM's routing engines do on simulated fabrics: routes of trees are well, those around a ring can block."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from fat_trees import fat_tree
from partners import AVAILABLE, WHY_NOT, Partners

from assay.fabric.discovery import FabricDiscovery
from assay.fabric.health.routing_check import check_routing, format_routing
from assay.fabric.health.subnet_manager import parse_sminfo
from assay.fabric.readers.format_detection import read_tool_output, read_topology
from assay.fabric.readers.forwarding_tables import read_forwarding_tables
from assay.fabric.readers.lid_addresses import read_addresses
from assay.fabric.topology.compiled_topology import CableTable, CompiledTopology
from assay.fabric.topology.designed_device import DesignedDevice
from assay.fabric.weekly.evaluation import evaluate_fabric_week
from assay.fabric.weekly.text_report import format_weekly_text
from assay.fabric.weekly.week_aggregation import aggregate_week
from assay.model.evidence import EvidenceDocument
from assay.model.reading import absent, value

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


DUMP_ROUTES = ("-D", "0x43")
"""OpenSM's log level with which it writes its forwarding tables."""


def routed(plan, engine, home, *arguments):
    """The report on the routes that OpenSM made, and the subnet manager that answers.

    OpenSM's own files name destinations in two other ways; they must lead to the same report.
    """
    running = Partners(plan, home, patience=90)
    try:
        running.manage(engine, *DUMP_ROUTES, *arguments)
        text = running.ask("ibnetdiscover")[0]
        dumps = [
            running.ask("dump_fts")[0],
            *((home / name).read_text() for name in ("opensm.fdbs", "opensm-lfts.dump")),
        ]
        manager = parse_sminfo(running.ask("sminfo")[0])
    finally:
        running.end()
    found = [read_forwarding_tables(dump) for dump in dumps]
    assert [one.problems for one in found] == [[], [], []]
    listings = (text, (home / "opensm-subnet.lst").read_text())
    reports = [
        check_routing(read_topology(one), each.tables, read_addresses(one)) for one in listings for each in found
    ]
    assert len({(one.destinations, one.unreachable, bool(one.credit_loop), one.partial) for one in reports}) == 1, (
        reports
    )
    return reports[0], manager


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


def test_stale_routes_into_a_link_that_went_down_are_found(tmp_path):
    """OpenSM sleeps while a cable between switches is pulled: its tables still lead there."""
    plan = fat_tree(units=2, nodes=4, rails=2, spines=2, pair=1, rate="4xHDR")
    running = Partners(plan, tmp_path, patience=60)
    try:
        running.manage()
        tables = running.ask("dump_fts")[0]
        with running.unmanaged():
            running.unplug(next(cable for cable in plan.cables if not cable.a.node))
            text = running.ask("ibnetdiscover")[0]
    finally:
        running.end()
    report = check_routing(read_topology(text), read_forwarding_tables(tables).tables, read_addresses(text))
    assert 0 < len(report.unreachable) < report.destinations == 16
    assert report.unread == ()


def test_lash_reaches_everything_and_its_loop_is_told_for_one_lane(tmp_path):
    """LASH keeps the circle of a ring apart by service levels, of which forwarding tables say nothing."""
    report, _ = routed(ring(), "lash", tmp_path)
    assert (report.destinations, report.unreachable) == (10, ())
    assert report.credit_loop
    assert "if all traffic uses one virtual lane" in "\n".join(format_routing(report, FabricDiscovery([], {})))


def test_a_manager_that_moved_is_told_by_the_week(tmp_path):
    plan = fat_tree(units=1, nodes=4, rails=2, spines=2, pair=1, rate="4xHDR")
    running = Partners(plan, tmp_path, patience=60)
    try:
        running.manage()
        said = [running.ask("sminfo")[0]]
        first = running.manage_beside("leaf-0-1", priority=0)
        running.lose_first_manager(first)
        said.append(running.ask("sminfo")[0])
    finally:
        running.end()
    week = _week_of(plan, said)
    assert len(week.manager_moves) == 1
    lines = format_weekly_text(evaluate_fabric_week(week, list(plan.cables), {}, {})).splitlines()
    assert any(line.endswith("to leaf-0-1, seen at 2026-11-20 18:00 UTC") for line in lines), lines


def _week_of(plan, said):
    """A week with one scan for each text of sminfo, six hours apart."""
    scans, start = {}, datetime(2026, 11, 20, 12, tzinfo=UTC)
    for number, text in enumerate(said):
        ports = {"subnet": {"text": value(text), "stderr": value("")}}
        previous = value(next(reversed(scans))) if scans else absent("first")
        channels = {"ports": ports, "earlier": absent("first"), "previous": previous}
        document = EvidenceDocument("fabric-tree", start + number * timedelta(hours=6), channels)
        scans[document.digest()] = document
    return aggregate_week("tree", list(plan.cables), document, scans.__getitem__, document.at)


def test_partitions_that_opensm_gave_are_read_port_by_port(tmp_path):
    plan = fat_tree(units=1, nodes=4, rails=2, spines=2, pair=1, rate="4xHDR")
    full, limited, outside = (cable.a.port_id for cable in list(plan.cables)[:3])
    members = ((full, "full"), (limited, "limited"))  # by their port GUIDs: in the simulator, the node's plus one
    blue = ", ".join(f"0x{int(port.guid, 16) + 1:016x}={kind}" for port, kind in members)
    (tmp_path / "partitions.conf").write_text(f"Default=0x7fff : ALL=limited, SELF=full ;\nblue=0x0001 : {blue} ;\n")
    running = Partners(plan, tmp_path, patience=60)
    try:
        running.manage("minhop", "-P", str(tmp_path / "partitions.conf"))
        lids = {guid: lid for lid, guid in read_addresses(running.ask("ibnetdiscover")[0]).lids.items()}
        tables = {}
        for port in (full, limited, outside):
            words = (("nodeinfo",), ("portinfo", "1"), ("pkeys", "1"))
            texts = (running.ask("smpquery", name, str(lids[port.guid]), *rest)[0] for name, *rest in words)
            facts = read_tool_output("".join(texts)).facts
            tables[port] = facts[port].pkeys
    finally:
        running.end()
    assert tables == {full: {0x7FFF, 0x8001}, limited: {0x7FFF, 0x0001}, outside: {0x7FFF}}


def test_an_adapter_whose_route_was_lost_is_found(tmp_path):
    plan = fat_tree(units=1, nodes=4, rails=2, spines=2, pair=1, rate="4xHDR")
    running = Partners(plan, tmp_path, patience=60)
    try:
        running.manage()
        text, tables = running.ask("ibnetdiscover")[0], running.ask("dump_fts")[0]
    finally:
        running.end()
    gone = re.search(r"(?m)^0x(\w+) 00[1-9] : \(Channel Adapter portguid 0x\w+: .*\n", tables)
    found = read_forwarding_tables(tables.replace(gone[0], "", 1))
    report = check_routing(read_topology(text), found.tables, read_addresses(text))
    assert [one.lid for one in report.unreachable] == [int(gone[1], 16)]
