"""Adapters and drives are in their slots, with all their lanes."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]


@pytest.mark.phase("seatrial")
@pytest.mark.fault("host.config.drift")
def test_hca_is_in_its_slot(hca, measure):
    """Compare the adapter's PCI address with the spec: in another slot, the adapter is far from its GPU."""
    measure("pci", hca.pci, equals=hca.declared.pci)


@pytest.mark.fault("host.pcie.degraded")
def test_hca_pcie_link(node, hca, limits, measure):
    """Check that the adapter's PCIe link has full width and generation: half the lanes halve the rail."""
    link = node.pci[hca.pci].link
    measure("pcie_width", link.width, at_least=limits.hca_pcie_width, unit="lanes")
    measure("pcie_generation", link.generation, at_least=limits.hca_pcie_generation, unit="generation")


@pytest.mark.fault("host.pcie.degraded")
def test_drive_pcie_link(node, nvme, limits, measure):
    """Check that the drive's PCIe link has full width and generation."""
    link = node.pci[nvme.pci].link
    measure("pcie_width", link.width, at_least=limits.nvme_pcie_width, unit="lanes")
    measure("pcie_generation", link.generation, at_least=limits.nvme_pcie_generation, unit="generation")


@pytest.mark.phase("seatrial")
@pytest.mark.fault("host.config.drift")
def test_rails_are_near_their_gpus(node, spec, measure):
    """Check that each adapter is on the NUMA node of its GPU, if each GPU has one adapter."""
    seen = {hca.name: node.hca[hca.name].numa_node for hca in spec.hcas}
    for gpu, hca in zip(spec.gpus.pci, spec.hcas, strict=False) if len(seen) == len(spec.gpus.pci) else ():
        near = node.pci[gpu].numa_node
        measure("numa_node", seen[hca.name], equals=near, unit="count", place=f"of {hca.name}")
