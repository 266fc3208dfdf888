"""A load leaves no trace: the node stays up, logs no fault, and counts no error."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.fault("host.load.fault")
def test_node_stays_up(load):
    """Check that the node did not restart under the load."""
    assert not load.restarted, "the node restarted under the load"


@pytest.mark.fault("host.load.fault")
def test_kernel_logs_no_fault(load):
    """Search what the kernel logged since the load began for faults, such as XIDs."""
    faults = load.kernel_faults
    assert not faults, f"logged under the load: {'; '.join(faults)}"


@pytest.mark.fault("host.load.fault")
def test_bmc_logs_no_fault(load):
    """Search what the BMC logged since the load began for faults."""
    faults = load.bmc_faults
    assert not faults, f"logged under the load: {'; '.join(faults)}"


@pytest.mark.fault("gpu.memory.uncorrectable")
def test_gpu_memory_counts_no_errors(gpu, load, limits, measure):
    """Count the uncorrectable memory errors under the load."""
    errors = load.growth(gpu.ecc.volatile.uncorrected)
    measure("ecc_uncorrected", errors, at_most=limits.load_ecc_uncorrected, unit="count")


@pytest.mark.fault("gpu.nvlink.errors")
def test_nvlinks_count_no_errors(gpu, load, limits, measure):
    """Count the errors and recoveries of each NVLink under the load, and compare the worst link."""
    links = [gpu.nvlink.link[link] for link in gpu.nvlink.link]
    worst = max(load.growth(link.crc_errors) + load.growth(link.recoveries) for link in links)
    measure("nvlink_errors", worst, at_most=limits.load_nvlink_errors, unit="count")


@pytest.mark.fault("host.pcie.errors")
def test_devices_lose_no_transactions(node, load, limits, measure):
    """Count the uncorrectable PCIe errors of the worst device under the load."""
    worst = max(load.growth(node.aer[pci].fatal) + load.growth(node.aer[pci].nonfatal) for pci in node.aer)
    measure("pcie_errors", worst, at_most=limits.load_pcie_errors, unit="count")


@pytest.mark.fault("ib.link.errors")
def test_adapter_counts_no_link_errors(hca, load, limits, measure):
    """Count how often the adapter's link went down or recovered under the load."""
    counters = hca.counters
    errors = load.growth(counters.link_downed) + load.growth(counters.link_error_recovery)
    measure("link_errors", errors, at_most=limits.load_link_errors, unit="count")
