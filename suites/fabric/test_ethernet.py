"""Switches of an Ethernet fabric (RoCE) receive whole packets, lose none, and seldom pause or mark them.

Checks of a node's link judge the switch's port: the node's own checks judge the adapter's.
"""

import pytest

pytestmark = [pytest.mark.phase("fabric"), pytest.mark.passive]


@pytest.mark.fault("ib.link.errors")
def test_switch_port_receives_whole_packets(link, fabric_limits, measure):
    """Count the broken packets at the switch's end of the link, and the blocks that FEC could not correct."""
    for port in link.ports:
        _few_broken(port, fabric_limits, measure)


@pytest.mark.fault("ib.link.errors")
def test_ports_between_switches_receive_whole_packets(switch, fabric_limits, measure):
    """Count the broken packets of the switch's ports to other switches, and the blocks that FEC could not correct."""
    for name in ("PortRcvErrors", "FecUncorrected"):
        for port in _worst(switch.ports, name):
            _few_broken(port, fabric_limits, measure)


@pytest.mark.fault("ib.congestion")
def test_rail_discards_nothing_received(rail, fabric_limits, measure):
    """Check the leaf port of the rail that discarded most of what it received since the last scan."""
    for port in _worst(rail.ports, "InDiscards"):
        discards = port.per_hour("InDiscards")
        measure("discards_in", discards, at_most=fabric_limits.discards, unit="count/h", place=port.place)


@pytest.mark.fault("ib.congestion")
def test_rail_is_seldom_paused(rail, fabric_limits, measure):
    """Check the leaf ports of the rail that were paused most, and that paused most, since the last scan (PFC)."""
    for name, counter in (("pauses_in", "PausesIn"), ("pauses_out", "PausesOut")):
        for port in _worst(rail.ports, counter):
            measure(name, port.per_hour(counter), at_most=fabric_limits.pauses, unit="count/h", place=port.place)


@pytest.mark.fault("ib.congestion")
def test_rail_marks_few_packets(rail, fabric_limits, measure):
    """Check the leaf port of the rail that marked most packets since the last scan (ECN)."""
    for port in _worst(rail.ports, "EcnMarked"):
        marked = port.per_hour("EcnMarked")
        measure("ecn_marked", marked, at_most=fabric_limits.ecn_marked, unit="count/h", place=port.place)


def _few_broken(port, fabric_limits, measure):
    broken, blocks = port.per_hour("PortRcvErrors"), port.per_hour("FecUncorrected")
    measure("receive_errors", broken, at_most=fabric_limits.receive_errors, unit="count/h", place=port.place)
    measure("fec_uncorrected", blocks, at_most=fabric_limits.fec_uncorrected, unit="count/h", place=port.place)


def _worst(ports, counter):
    return sorted(ports, key=lambda port: port.per_hour(counter))[-1:]
