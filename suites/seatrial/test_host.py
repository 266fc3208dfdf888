"""The host is the one that the inventory names, and is as large as the spec says."""

import pytest

pytestmark = [pytest.mark.phase("seatrial"), pytest.mark.passive]


@pytest.mark.phase("initializing", "seatrial")
@pytest.mark.fault("identity.changed")
def test_serial_is_the_inventorys(node, measure):
    """Compare the serial number of the host, and of its BMC if it has one, with the inventory."""
    measure("serial", node.host.serial, equals=node.declared.serial)
    if node.declared.bmc_address:
        measure("serial at the BMC", node.bmc.system.serial, equals=node.declared.serial)


@pytest.mark.phase("initializing", "seatrial")
@pytest.mark.fault("host.config.drift")
def test_product(node, spec, measure):
    """Compare the product name with the spec."""
    measure("product", node.host.product, equals=spec.product)


@pytest.mark.fault("host.config.drift")
def test_cpus(node, spec, measure):
    """Count sockets and threads."""
    measure("cpu_sockets", node.host.cpu_sockets, equals=spec.cpu_sockets)
    measure("cpu_threads", node.host.cpu_threads, equals=spec.cpu_threads)


@pytest.mark.phase("seatrial", "production")
@pytest.mark.fault("host.memory.missing")
def test_memory_size(node, spec, limits, measure):
    """Compare the memory that the kernel has with the installed memory."""
    measure(
        "memory_usable",
        100 * node.host.memory_bytes / (spec.memory_gib * 2**30),
        at_least=limits.memory_usable,
        unit="%",
    )
