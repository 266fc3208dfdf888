"""Routes that lead nowhere and routes that can block each other are found; those of a tree are well."""

import re

import pytest
from typer.testing import CliRunner

from assay.cli.fabric.compare_scan_evaluate_impact import fabric_app
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.health.routing_check import check_routing, format_routing
from assay.fabric.readers.forwarding_tables import ForwardingEntry, ForwardingTable
from assay.fabric.readers.lid_addresses import LidAddresses
from assay.lab.fabric.ibnetdiscover import format_net_file
from assay.model.errors import AssayError
from assay.model.fabric.ports_and_cables import PortId

SWITCHES = 4
NEXT, PREVIOUS, HOST = 1, 2, 3


def switch(number):
    return f"0x{0xB0 + number % SWITCHES:016x}"


def host(number):
    return f"0x{0xA0 + number % SWITCHES:016x}"


def ring():
    """Four switches in a ring, an adapter at each."""
    cables = [DiscoveredCable(PortId(switch(n), NEXT), PortId(switch(n + 1), PREVIOUS), "4xHDR") for n in range(4)]
    cables += [DiscoveredCable(PortId(switch(n), HOST), PortId(host(n), 1), "4xHDR") for n in range(4)]
    devices = [DiscoveredDevice(switch(n), "switch", 8, f"s{n}") for n in range(4)]
    devices += [DiscoveredDevice(host(n), "hca", 1, f"h{n} mlx5_0") for n in range(4)]
    return FabricDiscovery(cables, {device.guid: device for device in devices})


def tables(choose):
    """The table of each switch; `choose(here, there)` is the port to a far adapter."""
    return [
        ForwardingTable(switch(n), tuple(
            ForwardingEntry(to + 1, HOST if n == to else port, host(to))
            for to in range(4) if (port := HOST if n == to else choose(n, to))))
        for n in range(4)
    ]  # fmt: skip


def around(here, there):
    return NEXT


def never_past_the_last(here, there):
    """As on a line: nothing goes from the last switch to the first."""
    return NEXT if there > here else PREVIOUS


def test_routes_around_a_ring_have_a_credit_loop():
    report = check_routing(ring(), tables(around), LidAddresses())
    assert (report.unreachable, report.unread, report.destinations) == ((), (), 4)
    assert set(report.credit_loop) == {PortId(switch(n), NEXT) for n in range(4)}
    assert any("a credit loop" in line for line in format_routing(report, ring()))


def test_routes_along_a_line_have_none():
    report = check_routing(ring(), tables(never_past_the_last), LidAddresses())
    assert (report.unreachable, report.credit_loop) == ((), ())


@pytest.mark.parametrize(
    ("choose", "reason"),
    [
        (lambda here, there: 0 if (here, there) == (0, 2) else never_past_the_last(here, there), "has no route to it"),
        (lambda here, there: 7 if (here, there) == (0, 2) else never_past_the_last(here, there), "which has no link"),
        (lambda here, there: PREVIOUS if (here, there) == (1, 2) else never_past_the_last(here, there), "twice"),
    ],
)
def test_an_adapter_that_cannot_be_reached_is_told_with_the_reason(choose, reason):
    report = check_routing(ring(), tables(choose), LidAddresses())
    (one,) = report.unreachable
    assert (one.port, one.lid) == (PortId(host(2), 1), 3)
    assert reason in one.reason


def test_a_switch_without_a_table_is_unknown():
    report = check_routing(ring(), tables(never_past_the_last)[:-1], LidAddresses())
    assert report.unread == (switch(3),)


def test_an_adapter_whose_lid_nobody_tells_is_unknown():
    lost = [table._replace(entries=tuple(one for one in table.entries if one.lid != 3))
            for table in tables(never_past_the_last)]  # fmt: skip
    report = check_routing(ring(), lost, LidAddresses())
    assert (report.unreachable, report.unaddressed, report.partial) == ((), (PortId(host(2), 1),), True)


def test_each_lid_of_a_port_with_several_is_followed():
    """With LMC 1, a port has two LIDs, and only the second one of this port leads nowhere."""
    addresses = LidAddresses(lid_ports={lid: PortId(host((lid - 2) // 2), 1) for lid in range(2, 10)})
    by_lid = [
        ForwardingTable(switch(n), tuple(
            ForwardingEntry(lid, HOST if n == to else never_past_the_last(n, to))
            for lid in range(2, 10) if (n, lid) != (0, 7) for to in [(lid - 2) // 2]))
        for n in range(4)
    ]  # fmt: skip
    report = check_routing(ring(), by_lid, addresses)
    assert [(one.port, one.lid, one.switches) for one in report.unreachable] == [(PortId(host(2), 1), 7, (switch(0),))]


def dump_fts(found):
    for table in found:
        yield f"Unicast lids [0x0-0x8] of switch DR path guid {table.switch} (s):"
        for one in table.entries:  # an adapter's port has the next GUID
            node = f"Channel Adapter portguid 0x{int(one.guid, 16) + 1:016x}: 'h'"
            yield f"0x{one.lid:04x} {one.port:03} : ({node})"
        yield f"{len(table.entries)} valid lids dumped "


def lfts(found):
    for line in dump_fts(found):
        yield line.replace(" : (", " # ").replace("'h')", "'h'").replace("DR path guid", "Lid 9 guid")


def fdbs(found):
    for table in found:
        ports = {one.lid: one.port for one in table.entries}
        yield f"osm_ucast_mgr_dump_ucast_routes: Switch {table.switch}"
        yield from ("LID    : Port : Hops : Optimal", "PLFT_NUM: 0")
        for lid in range(1, 5):
            yield f"0x{lid:04X} : " + (f"{ports[lid]:03}  : 00   : yes" if lid in ports else "UNREACHABLE")
        yield ""


def addressed(net_file):
    """As after a subnet manager gave a LID to each adapter: the last digit of its port's GUID."""
    return re.sub(r"(?m)^(\[1\]\(a(\d)\).*?# )lid 0", r"\1lid \2", net_file)


@pytest.mark.parametrize(("choose", "code", "said"), [
    (never_past_the_last, 0, "4 of 4 LIDs of adapters can be reached from every switch"),
    (around, 1, "a credit loop, if all traffic uses one virtual lane: "),
])  # fmt: skip
@pytest.mark.parametrize("tool", [dump_fts, lfts, fdbs])
def test_the_verb_reads_what_the_tools_print(tmp_path, tool, choose, code, said):
    done = check(tmp_path, "\n".join(tool(tables(choose))) + "\n")
    assert (done.exit_code, said in done.output) == (code, True), done.output


def check(home, text):
    seen = ring()
    (home / "dump").write_text(addressed(format_net_file(seen.devices, seen.cables)))
    (home / "tables").write_text(text)
    return CliRunner().invoke(fabric_app, ["routes", "--from", str(home / "dump"), "--tables", str(home / "tables")])


def damaged(change):
    lines = list(fdbs(tables(never_past_the_last)))
    return "\n".join(change(lines)) + "\n"


@pytest.mark.parametrize(("text", "said"), [
    (damaged(lambda lines: lines[:-3]), f"the forwarding table of {switch(3)} was cut off"),
    (damaged(lambda lines: [*lines[:5], *lines[6:]]), f"the forwarding table of {switch(0)} has line 6, which cannot"),
    (damaged(lambda lines: lines * 2), f"the forwarding table of {switch(0)} stands twice"),
    (damaged(lambda lines: [line.replace("PLFT_NUM: 0", "PLFT_NUM: 1") for line in lines]), "is one of several"),
    ("\n".join(list(dump_fts(tables(never_past_the_last)))[:-1]), f"the forwarding table of {switch(3)} was cut off"),
])  # fmt: skip
def test_a_table_that_is_not_whole_is_unknown_and_never_a_lost_route(tmp_path, text, said):
    done = check(tmp_path, text)
    assert (done.exit_code, said in done.output) == (2, True), done.output
    assert "cannot reach it" not in done.output
    assert "no whole forwarding table" in done.output


def test_a_text_without_tables_is_refused(tmp_path):
    done = check(tmp_path, "Multicast mlids [0xc000] of switch guid 0xb000000000000040\n")
    assert isinstance(done.exception, AssayError)
