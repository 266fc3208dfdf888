"""Every processor is online and runs at full speed."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]


@pytest.mark.fault("host.config.drift")
def test_every_cpu_is_online(node, measure):
    """Compare the CPUs that are online with those that are present."""
    measure("cpus_online", node.host.cpu.online, equals=node.host.cpu.present, unit="count")


@pytest.mark.fault("host.config.drift")
def test_frequency_governor(node, spec, measure):
    """Check that all CPUs use the frequency governor of the spec."""
    found = " and ".join(node.host.cpu.governors)
    measure("governor", found, equals=spec.host.governor or found)


@pytest.mark.fault("host.config.drift")
def test_numa_nodes(node, spec, measure):
    """Count the NUMA nodes with processors: a BIOS setting splits or joins them."""
    measure("numa_nodes", node.kernel.numa_nodes, equals=spec.host.numa_nodes, unit="count")
