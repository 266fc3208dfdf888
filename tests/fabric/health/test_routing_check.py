"""Routes that lead nowhere and routes that can block each other are found; those of a tree are well."""

import pytest
from typer.testing import CliRunner

from assay.cli.fabric.compare_scan_evaluate_impact import fabric_app
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.health.routing_check import check_routing, format_routing
from assay.fabric.readers.forwarding_tables import ForwardingEntry, ForwardingTable
from assay.fabric.readers.lid_addresses import LidAddresses
from assay.lab.fabric.ibnetdiscover import format_net_file
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
            ForwardingEntry(host(to), f"h{to}", HOST if n == to else port)
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
    assert one.guid == host(2)
    assert reason in one.reason


def test_a_switch_without_a_table_is_unknown():
    report = check_routing(ring(), tables(never_past_the_last)[:-1], LidAddresses())
    assert report.unread == (switch(3),)


@pytest.mark.parametrize(("choose", "code", "said"), [
    (never_past_the_last, 0, "4 of 4 adapter ports can be reached from every switch"),
    (around, 1, "a credit loop, if all traffic uses one virtual lane: "),
])  # fmt: skip
def test_the_verb_reads_what_the_tools_print(tmp_path, choose, code, said):
    seen = ring()
    (tmp_path / "dump").write_text(format_net_file(seen.devices, seen.cables))
    lines = []
    for table in tables(choose):
        lines.append(f"Unicast lids [0x0-0x8] of switch DR path guid {table.switch} (s):")
        ports = [(one.port, int(one.guid, 16) + 1) for one in table.entries]  # an adapter's port has the next GUID
        lines += [f"0x0001 {port:03} : (Channel Adapter portguid 0x{guid:016x}: 'h')" for port, guid in ports]
    (tmp_path / "fts").write_text("\n".join(lines) + "\n")
    words = ["routes", "--from", str(tmp_path / "dump"), "--tables", str(tmp_path / "fts")]
    done = CliRunner().invoke(fabric_app, words)
    assert (done.exit_code, said in done.output) == (code, True), done.output
