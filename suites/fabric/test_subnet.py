"""The subnet has a manager, its partitions let traffic through, and its switches run one firmware."""

import pytest

pytestmark = [pytest.mark.phase("fabric"), pytest.mark.passive]


@pytest.mark.fault("ib.sm")
def test_subnet_has_a_master(fabric):
    """Check that the subnet manager that answers is the master."""
    manager = fabric.manager
    assert manager.master, f"the subnet manager {manager.guid} is in state {manager.state}"


@pytest.mark.fault("ib.sm")
def test_partitions_let_traffic_through(fabric, fabric_limits, measure):
    """Find ports that drop management packets, or drop packets because of their P_Key."""
    port = max(fabric.every_port, key=lambda port: port.forbidden)
    measure("forbidden", port.forbidden, at_most=fabric_limits.forbidden_packets, unit="count/h", place=port.place)
    port = max(fabric.every_port, key=lambda port: port.management_drops)
    measure(
        "management_drops",
        port.management_drops,
        at_most=fabric_limits.management_drops,
        unit="count/h",
        place=port.place,
    )


@pytest.mark.fault("ib.sm")
def test_adapter_is_in_its_partitions(link):
    """Compare the adapter's partition table with the design: no partition is missing, and none is extra."""
    wrong = link.partitions
    assert not wrong, f"{link.ports[0].place}: {', '.join(wrong)}"


@pytest.mark.fault("ib.sm")
def test_m_key_is_protected(link, fabric, measure):
    """Compare the protect bits of the adapter's M_Key with the design: without them, a host may set other ports."""
    measure("m_key_protect", link.ports[0].m_key_protect, at_least=fabric.m_key_protect, place=link.ports[0].place)


@pytest.mark.fault("ib.switch.health")
def test_switches_run_one_firmware(fabric):
    """Find switches whose firmware differs from the others."""
    odd = [f"{name} runs {firmware}" for name, firmware in fabric.odd_firmware.items()]
    assert not odd, f"not as the others: {'; '.join(odd)}"
