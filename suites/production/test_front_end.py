"""Front-end interfaces have the declared settings, and carry data without errors."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]


@pytest.mark.fault("nic.errors")
def test_front_end_is_clean(nic, limits, measure, since_last_pass):
    """Count the errors since the last pass, in and out."""
    for counter in ("rx_errors", "rx_crc_errors", "tx_errors"):
        measure(counter, since_last_pass(nic.counters[counter]), at_most=limits.nic_errors, unit="count")


@pytest.mark.fault("host.config.drift")
def test_front_end_mtu(nic, measure):
    """Compare the packet size (MTU) with the spec: a smaller one slows storage, a larger one gets lost."""
    measure("mtu", nic.mtu_bytes, equals=nic.declared.mtu)


@pytest.mark.fault("nic.link.down")
def test_bonds_are_whole(node, measure):
    """Count the members of each bond that carry data: if one is down, the speed halves without an error."""
    for name in node.bond:
        bond = node.bond[name]
        measure("members_up", len(bond.up), equals=len(bond.members), unit="count", place=f"of {name}")


@pytest.mark.fault("nic.errors")
def test_front_end_is_full_duplex(nic, measure):
    """Check for full duplex: half duplex means that the negotiation failed."""
    measure("duplex", nic.duplex, equals="full")
